// The model: its axioms, each of which can be switched off, and its readings.
import { fill, h } from "./dom.js";

/**
 * Show the parts of the model `entry`. `without`: the axioms that are off, `readings`: those that differ from the
 * default; `changed(without, readings)`: something was switched.
 */
export function showModel(place, entry, without, readings, changed) {
  const unfolded = [...place.querySelectorAll("details")].map((details) => details.open);
  const axioms = entry.axioms.map((axiom) =>
    h("label", { class: "switch" },
      h("input", {
        type: "checkbox", checked: !without.includes(axiom.name), "data-key": `axiom-${axiom.name}`,
        onchange: (event) => changed(event.target.checked ? without.filter((name) => name !== axiom.name) : [...without, axiom.name], readings),
      }),
      h("span", {}, h("b", {}, axiom.name), axiom.section ? ` §${axiom.section}` : "", h("small", {}, axiom.text))));
  const choices = entry.readings.map((reading) =>
    h("div", { class: "reading" },
      h("label", {}, h("b", {}, reading.key), reading.section ? ` §${reading.section} ` : " ",
        h("select", {
          "data-key": `reading-${reading.key}`,
          onchange: (event) => {
            const { [reading.key]: _, ...others } = readings;
            const { value } = event.target;
            changed(without, value === reading.default ? others : { ...others, [reading.key]: value });
          },
        }, reading.values.map((value) => h("option", { value, selected: value === (readings[reading.key] ?? reading.default) },
          value === reading.default ? `${value} (default)` : value)))),
      h("small", {}, reading.about),
      h("q", {}, reading.sentence)));
  const off = without.length ? `${without.length} off` : "all on";
  const other = Object.keys(readings).length;
  fill(place,
    h("p", { class: "hint" }, entry.summary),
    h("details", { open: unfolded[0] ?? without.length > 0 }, h("summary", { "data-key": "axioms" }, `Axioms (${off})`), axioms),
    choices.length
      ? h("details", { open: unfolded[1] ?? other > 0 }, h("summary", { "data-key": "readings" }, `Readings (${other ? `${other} changed` : "the default"})`), choices)
      : null);
}
