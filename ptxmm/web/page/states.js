// The table of final states, one of which is chosen, and the question for one that is not there.
import { fill, h } from "./dom.js";

/** The state of a row, as `explain` takes it. A value that is unknown can't be asked for. */
export function stateOf(columns, values) {
  const parts = columns.map((column, i) => [column, values[i]]).filter(([, value]) => value && !value.startsWith("?"));
  return parts.map(([column, value]) => `${column}=${value}`).join(", ");
}

/**
 * Show the states of `answer`. `chosen`: the values of the one that is looked at, or null; `pick(values)`: another is
 * chosen, which may be none of the table.
 */
export function showStates(place, answer, chosen, pick) {
  const { columns, rows } = answer;
  if (!rows.length) {
    fill(place, h("p", { class: "hint" }, answer.claim === null ? "There are none." : "This is about all executions, not about a final state."));
    return;
  }
  const at = chosen === null ? -1 : rows.findIndex((row) => same(row.values, chosen));
  const conditional = rows.some((row) => row.satisfies !== null);
  const head = h(
    "tr", {},
    h("th", { scope: "col" }, h("span", { class: "only-heard" }, "State")),
    columns.map((column) => h("th", { scope: "col" }, column)),
    conditional ? h("th", { scope: "col" }, "condition") : null,
  );
  const body = rows.map((row, number) =>
    h(
      "tr", { class: number === at ? "chosen" : null, onclick: () => pick(row.values) },
      h("td", {}, h("input", {
        type: "radio", name: "state", checked: number === at, "data-key": `state-${number}`,
        "aria-label": `State ${number + 1}: ${stateOf(columns, row.values)}`,
        onchange: () => pick(row.values), onclick: (event) => event.stopPropagation(),
      })),
      row.values.map((value) => h("td", {}, value)),
      conditional ? h("td", { class: row.satisfies ? "yes" : "no" }, row.satisfies ? "✓ holds" : "–") : null,
    ),
  );
  const step = (by) => pick(rows[(at + by + rows.length) % rows.length].values);
  fill(
    place,
    h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Table of final states" },
      h("table", { class: "states" }, h("thead", {}, head), h("tbody", {}, body))),
    h("p", { class: "row" },
      h("button", { type: "button", "data-key": "previous", onclick: () => step(at < 0 ? 0 : -1) }, "← Previous"),
      h("button", { type: "button", "data-key": "next", onclick: () => step(1) }, "Next →"),
      h("span", { class: "hint" }, at < 0 ? `${rows.length} in all` : `${at + 1} of ${rows.length}`)),
    ask(answer, chosen, pick),
  );
}

/** Pick values: why is this state not there? */
function ask(answer, chosen, pick) {
  const { columns, rows } = answer;
  const inputs = columns.map((column, i) => {
    const known = [...new Set(rows.map((row) => row.values[i]))];
    const list = `values-${i}`;
    const value = chosen?.[i] ?? wanted(answer.condition ?? "", column) ?? known[0];
    return h("label", {}, `${column} =`,
      h("input", { list, value, size: "3", "data-key": `ask-${i}`, autocomplete: "off", spellcheck: "false" }),
      h("datalist", { id: list }, known.map((item) => h("option", { value: item }))));
  });
  const submit = (event) => {
    event.preventDefault();
    pick(inputs.map((label) => label.querySelector("input").value.trim()));
  };
  return h("form", { class: "ask", onsubmit: submit, "aria-label": "Ask for a state" },
    h("span", { class: "hint" }, "Pick values:"), inputs, h("button", { "data-key": "ask" }, "Why, or why not?"));
}

/** The value that the condition gives to a register or location, if it names one. */
function wanted(condition, column) {
  const at = condition.search(new RegExp(`(?<![\\w:])${column.replace(/[^\w\s]/g, "\\$&")}\\s*==?\\s*-?\\w`));
  return at < 0 ? undefined : condition.slice(at + column.length).match(/==?\s*(-?\w+)/)?.[1];
}

const same = (left, right) => left.length === right.length && left.every((value, i) => value === right[i]);
