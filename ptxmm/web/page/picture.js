// Pictures come from the server as SVG; only what draws is taken from them.
import { steps } from "./steps.js";

const ELEMENTS = new Set([
  "svg", "g", "path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "text", "tspan", "title", "desc",
  "defs", "marker", "use", "symbol", "clipPath",
]);
const ATTRIBUTES = new Set([
  "id", "class", "d", "x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "r", "rx", "ry", "dx", "dy", "width", "height",
  "viewbox", "points", "transform", "fill", "fill-opacity", "fill-rule", "stroke", "stroke-width", "stroke-dasharray",
  "stroke-linecap", "stroke-linejoin", "stroke-opacity", "opacity", "font-family", "font-size", "font-style",
  "font-weight", "text-anchor", "dominant-baseline", "letter-spacing", "marker-start", "marker-mid", "marker-end",
  "markerwidth", "markerheight", "markerunits", "refx", "refy", "orient", "preserveaspectratio", "role", "aria-label",
  "aria-labelledby", "aria-describedby", "aria-hidden", "clip-path", "paint-order", "textlength", "lengthadjust",
  "xml:space", "version", "tabindex", "href",
]);

/**
 * The picture that `text` draws, without anything that could run, load or lead elsewhere, and below it the way through
 * its `stages` (with `stage`, as `steps` takes it); nothing if it is none.
 */
export function picture(text, stages = [], stage = {}) {
  // A style sheet is not let in as a part of a document, only as an object.
  const sheets = [];
  const rest = text.replace(/<style>([^<]*)<\/style>/g, (_, rules) => (sheets.push(rules), ""));
  const parsed = new DOMParser().parseFromString(rest, "image/svg+xml").documentElement;
  if (parsed.localName !== "svg") return [];
  const drawn = copied(parsed);
  const place = document.createElement("div");
  place.className = "picture";
  place.tabIndex = 0;
  place.role = "group";
  place.ariaLabel = "Picture of the execution";
  // In a shadow tree the styles of the picture hold for the picture only.
  const root = place.attachShadow({ mode: "open" });
  const sheet = new CSSStyleSheet();
  const width = parseFloat(drawn.getAttribute("width")) || 0;
  sheets.push(`:host > svg { display: block; max-width: 100%; min-width: ${0.75 * width}px; height: auto } .latest .line { stroke-width: 3.5 }`);
  sheet.replaceSync(sheets.join("\n").replace(/@import|url\((?!\s*["']?#)/gi, ""));
  root.adoptedStyleSheets = [sheet];
  shades = [...sheet.cssRules]
    .filter((rule) => rule instanceof CSSMediaRule && rule.media.mediaText.includes("prefers-color-scheme"))
    .map((rule) => [rule, rule.media.mediaText.includes("dark")]);
  coloured();
  root.append(drawn);
  return [place, steps(drawn, stages, stage)];
}

/** The rules of the picture that is shown which are for the light or the dark, and for which. */
let shades = [];

/** Let the rules for the dark hold where the page is dark, whatever the system is. */
function coloured() {
  const { theme } = document.documentElement.dataset;
  const dark = theme === "dark" || (theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  for (const [rule, forDark] of shades) rule.media.mediaText = forDark === dark ? "all" : "not all";
}

document.addEventListener("theme", coloured);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", coloured);

function copied(element) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", element.localName);
  for (const { name, value } of element.attributes) {
    const inside = !/url\(\s*["']?(?!#)/i.test(value) && (name !== "href" || value.startsWith("#"));
    if (ATTRIBUTES.has(name.toLowerCase()) && inside) made.setAttribute(name, value);
  }
  for (const child of element.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) made.append(child.data);
    else if (child.nodeType === Node.ELEMENT_NODE && ELEMENTS.has(child.localName)) {
      made.append(copied(child));
    }
  }
  return made;
}
