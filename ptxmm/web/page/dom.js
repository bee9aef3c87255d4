// Elements are made of text and attributes only: nothing is ever parsed as HTML.

/** An element with attributes (`on...`: listeners, null or false: left out) and children (text or nodes). */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && typeof value === "boolean") element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** The element with this id. */
export const $ = (id) => document.getElementById(id);

/** Say something for a moment. */
export function toast(text) {
  const place = $("toast");
  place.textContent = text;
  place.classList.add("shown");
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => place.classList.remove("shown"), 2500);
}

/** Put children in the place of what is there, unless the focus would be lost: then it goes to what has its `key`. */
export function fill(place, ...children) {
  const key = place.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  place.replaceChildren(...children.flat().filter(Boolean));
  if (key) [...place.querySelectorAll("[data-key]")].find((element) => element.dataset.key === key)?.focus();
}
