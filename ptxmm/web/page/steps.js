// An execution step by step, in the order of chapter 8: its events, and then one kind of relation after the other.
import { h } from "./dom.js";

/** What shows a stage in a picture: classes of its elements. */
const SHOWN = {
  po: ["po"], rf: ["rf"], co: ["co", "fr"], ms: ["strong"], obs: ["has-obs"], dependency: ["dependency"], asynchronous: ["asynchronous"],
  fsc: ["fsc"], sync: ["sync", "phase"], bc: ["band"], axioms: ["absent", "race", "other"],
};

/**
 * A slider over the `stages` of the execution that the picture `svg` shows; null without. It begins with the stage of the
 * name `at` (null: with all of it), and says to `moved` the name of another.
 */
export function steps(svg, stages, { at = null, moved }) {
  if (!stages.length) return null;
  const parts = [...svg.querySelectorAll(".link, .band, text.label")].map((element) => ({ element, at: places(element, stages) }));
  const told = h("div", { class: "told" });
  const name = h("output", { "aria-hidden": "true" });
  const input = h("input", {
    type: "range", min: "0", max: String(stages.length), step: "1", value: String(stages.length),
    "aria-label": "Step by step", "data-key": "steps",
    oninput: () => {
      show(Number(input.value));
      moved(stages[Number(input.value)]?.name ?? null);
    },
  });

  /** Show the picture up to a stage; after the last, all of it as it was. */
  function show(at) {
    const whole = at === stages.length;
    for (const { element, at: places } of parts) {
      if (!places.length) continue;
      element.setAttribute("display", whole || Math.min(...places) <= at ? "inline" : "none");
      element.classList.toggle("latest", !whole && places.includes(at));
    }
    const text = whole ? "all of it" : stages[at].title;
    name.textContent = text;
    input.setAttribute("aria-valuetext", text);
    told.replaceChildren(...(whole ? [] : tale(stages[at])));
  }

  const first = stages.findIndex(({ name }) => name === at);
  input.value = String(first < 0 ? stages.length : first);
  show(Number(input.value));
  return h("div", { class: "steps" }, h("label", {}, "Step by step ", input), name, told);
}

/** The numbers of the stages that a part of the picture belongs to. */
function places(element, stages) {
  const kinds = [...element.classList].flatMap((name) => [name, name.replace(/^has-(?!obs$)/, "")]);
  return stages.flatMap(({ name }, number) => (SHOWN[name]?.some((kind) => kinds.includes(kind)) ? [number] : []));
}

/** What there is of a stage, and beside it what the ISA says of that. */
function tale({ name, clauses, lines }) {
  const none = lines.length || name === "events" || name === "po" ? [] : ["none in this execution"];
  const quotes = clauses.map(({ section, text }) => h("blockquote", {}, text, " ", h("cite", {}, `§${section}`)));
  return [h("ul", {}, [...lines, ...none].map((line) => h("li", {}, line))), quotes.length ? h("div", { class: "meaning" }, quotes) : null].filter(Boolean);
}
