// The tests that come with ptxmm, by family; of a real bug the buggy and the fixed version.
import { fill, h } from "./dom.js";

const MOST = 150;
const NAMES = { bugs: "Real bugs", mp: "Message passing", sb: "Store buffering", lb: "Load buffering", iriw: "IRIW", wrc: "WRC" };

/** The dialog `box` over the tests of `catalog`; `open(entry)`: one was chosen. Returns what shows it. */
export function gallery(box, catalog, open) {
  const tests = catalog.tests.filter((test) => !test.bug || test.variant === first(catalog, test.bug));
  const families = ["bugs", ...new Set(tests.map((test) => test.family).filter((family) => family !== "bugs"))];
  let family = "bugs";
  const search = h("input", { type: "search", placeholder: "Search all tests", "aria-label": "Search all tests", oninput: list });
  const tabs = h("select", { "aria-label": "Family", onchange: () => ((family = tabs.value), (search.value = ""), list()) },
    families.map((name) => h("option", { value: name }, `${NAMES[name] ?? name} (${tests.filter((t) => t.family === name).length})`)));
  const found = h("ul", { class: "tests" });
  const count = h("p", { class: "hint", role: "status" });
  fill(box,
    h("div", { class: "title" }, h("h2", { id: "gallery-title" }, "Gallery"),
      h("button", { type: "button", "aria-label": "Close the gallery", onclick: () => box.close() }, "✕")),
    h("div", { class: "row" }, tabs, search),
    count, found);

  function list() {
    const asked = search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (test) => asked.every((word) => `${test.family} ${test.name} ${test.about} ${test.source}`.toLowerCase().includes(word));
    const some = asked.length ? tests.filter(fits) : tests.filter((test) => test.family === family);
    count.textContent = some.length > MOST ? `The first ${MOST} of ${some.length}` : `${some.length} tests`;
    fill(found, some.slice(0, MOST).map((test) =>
      h("li", {}, h("button", { type: "button", onclick: () => (box.close(), open(test)) },
        h("b", {}, test.bug ?? test.name), badge(test), h("span", {}, test.about),
        test.bug && test.source ? h("small", {}, test.source) : null))));
  }

  list();
  return () => {
    box.showModal();
    search.focus();
  };
}

function badge(test) {
  const expected = test.expect["ptx-8.5"] ?? Object.values(test.expect)[0];
  return expected ? h("span", { class: `tag is-${expected.split("+")[0]}` }, expected) : null;
}

const first = (catalog, bug) => versions(catalog, bug)[0].variant;

/** The versions of a bug, the buggy one first. */
export function versions(catalog, bug) {
  const order = ["buggy", "fixed", "variant"];
  return catalog.tests.filter((test) => test.bug === bug).sort((a, b) => order.indexOf(a.variant) - order.indexOf(b.variant));
}

/** The model to look at a test under: the latest that it speaks of. */
export function modelOf(test) {
  const named = Object.keys(test.expect).filter((name) => !name.includes("[") && name !== "sc");
  return named.length === 0 || named.includes("ptx-8.5") ? "ptx-8.5" : named.at(-1);
}
