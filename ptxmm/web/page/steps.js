// An execution step by step: its events first, and then one kind of relation after the other, each with what it relates.
import { h } from "./dom.js";

/** Kinds of lines in a picture, in the order in which the model is built from them; null: what is behind the lines. */
const STEPS = [
  ["what the threads do", []],
  ["program order", ["po"]],
  ["who reads from whom", ["rf"]],
  ["coherence order, and from-reads which follows from it", ["co", "fr"]],
  ["dependencies, completion of asynchronous operations, phases of barriers", ["dependency", "asynchronous", "phase"]],
  ["Fence-SC order, and what synchronizes", ["fsc", "sync"]],
  ["base causality order", ["band"]],
  ["what the axioms say of it", ["absent", "race", "other"]],
];

/** A slider over the lines of the picture `svg`; null if it has none. */
export function steps(svg) {
  const kinds = STEPS.map(([, names]) => names.flatMap((name) => [...svg.querySelectorAll(`.${name}`)]));
  const shown = STEPS.map((step, n) => n).filter((n) => n === 0 || kinds[n].length);
  if (shown.length < 2) return null;
  const told = h("ul", { class: "hint" });
  const name = h("output", { "aria-hidden": "true" });
  const input = h("input", {
    type: "range", min: "0", max: String(shown.length), step: "1", value: String(shown.length),
    "aria-label": "Step by step", "data-key": "steps",
    oninput: () => show(Number(input.value)),
  });

  /** Show the picture up to a step; after the last, all of it as it was. */
  function show(at) {
    const whole = at === shown.length;
    for (const [place, n] of shown.entries()) {
      for (const element of kinds[n]) {
        element.setAttribute("display", whole || place <= at ? "inline" : "none");
        element.classList.toggle("latest", !whole && place === at);
      }
    }
    const text = whole ? "all of it" : STEPS[shown[at]][0];
    name.textContent = text;
    input.setAttribute("aria-valuetext", text);
    const lines = whole ? [] : kinds[shown[at]].map((element) => element.querySelector("title")?.textContent).filter(Boolean);
    told.replaceChildren(...lines.map((line) => h("li", {}, line)));
  }

  show(shown.length);
  return h("div", { class: "steps" }, h("label", {}, "Step by step ", input), name, told);
}
