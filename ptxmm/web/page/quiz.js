// Allowed or forbidden? A test without its verdict; after the answer the page says why.
import { fill, h } from "./dom.js";

const FAMILIES = new Set(["mp", "sb", "lb", "iriw", "wrc", "isa2", "coherence", "fences", "scopes", "s", "r", "2+2w", "rmw", "atomics", "bugs"]);

/**
 * A quiz over the tests of `catalog` in `place`. `ask(entry)` shows a test without its verdict, `reveal()` the verdict,
 * which it returns; `stop()` ends the quiz. Returns what starts it.
 */
export function quiz(place, catalog, ask, reveal, stop) {
  const pool = catalog.tests.filter((test) => FAMILIES.has(test.family) && /^(never|sometimes|always)$/.test(test.expect["ptx-8.5"] ?? ""));
  const score = { right: 0, of: 0 };
  let last = null;

  async function next() {
    do last = pool[Math.floor(Math.random() * pool.length)];
    while (!(await ask(last)));
    show();
  }

  function show() {
    fill(place,
      h("p", { class: "word" }, "Can it happen?"),
      h("p", {}, "Is there an execution under ptx-8.5 that ends with the condition of this test?"),
      h("p", { class: "row" },
        h("button", { type: "button", class: "strong", onclick: () => answer(true) }, "Allowed"),
        h("button", { type: "button", class: "strong", onclick: () => answer(false) }, "Forbidden"),
        h("button", { type: "button", onclick: end }, "End the quiz"),
        tally()));
    place.querySelector("button").focus();
  }

  function answer(allowed) {
    const right = allowed === (reveal() !== "never");
    score.of += 1;
    score.right += right ? 1 : 0;
    fill(place,
      h("p", { class: "word" }, right ? "✓ Right" : "✗ No"),
      h("p", {}, last.about || "", " Why, is said below."),
      h("p", { class: "row" },
        h("button", { type: "button", class: "strong", onclick: next }, "Next question"),
        h("button", { type: "button", onclick: end }, "End the quiz"),
        tally()));
    place.querySelector("button").focus();
  }

  const tally = () => h("span", { class: "hint" }, score.of ? `${score.right} of ${score.of} right` : "");

  function end() {
    fill(place);
    stop();
  }

  return next;
}
