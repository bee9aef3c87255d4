// The model: its axioms and the rules of its definitions, each of which can be switched off, and its readings.
import { fill, h } from "./dom.js";

/**
 * Show the parts of the model `entry`. `without`: the axioms and rules that are off, `readings`: those that differ from
 * the default; `changed(without, readings)`: something was switched.
 */
export function showModel(place, entry, without, readings, changed) {
  const before = new Map([...place.querySelectorAll("details")].map((details) => [details.dataset.part, details.open]));
  const part = (name, title, said, different, children) => children.length
    ? h("details", { "data-part": name, open: before.get(name) ?? different }, h("summary", { "data-key": name }, `${title} (${said})`), children)
    : null;
  const toggle = (item, key, ...label) =>
    h("label", { class: "switch" },
      h("input", {
        type: "checkbox", checked: !without.includes(item), "data-key": key,
        onchange: (event) => changed(event.target.checked ? without.filter((name) => name !== item) : [...without, item], readings),
      }),
      h("span", {}, label));
  const axioms = entry.axioms.map((axiom) =>
    toggle(axiom.name, `axiom-${axiom.name}`, h("b", {}, axiom.name), section(axiom.section), h("small", {}, axiom.text)));
  const rules = entry.definitions.map((definition) =>
    h("fieldset", {},
      h("legend", {}, definition.name, definition.text ? `: ${definition.text}` : "", section(definition.section)),
      definition.rules.map((rule) =>
        toggle(rule.item, `rule-${rule.item}`, h("code", {}, rule.written), rule.text ? h("small", {}, rule.text, section(rule.section)) : null))));
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
  const off = (kind) => without.filter((item) => item.includes(":") === kind).length;
  const said = (number) => (number ? `${number} off` : "all on");
  const other = Object.keys(readings).length;
  fill(place,
    h("p", { class: "hint" }, entry.summary),
    part("axioms", "Axioms", said(off(false)), off(false) > 0, axioms),
    part("rules", "Rules of definitions", said(off(true)), off(true) > 0, rules),
    part("readings", "Readings", other ? `${other} changed` : "the default", other > 0, choices));
}

const section = (number) => (number ? ` §${number}` : "");
