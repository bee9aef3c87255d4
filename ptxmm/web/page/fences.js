// Which fences, orders and scopes are needed, and the smallest repairs.
import { fill, h } from "./dom.js";

const WORDS = { needed: "needed", removable: "can go", weaker: "can be weaker", unknown: "not decided" };

/** Show what `fences` says; `take(text)` puts a repaired program into the editor. */
export function showFences(place, answer, goto, take) {
  if (answer.answer === "error") {
    fill(place, answer.problems.map((problem) => h("p", { class: "hint" }, problem.message, problem.hint ? ` (${problem.hint})` : "")));
    return;
  }
  const { result, changed } = answer;
  const verdict = result.holds === null ? "not decided" : result.holds ? "holds" : "fails";
  const items = result.items.map((item) =>
    h("tr", {},
      h("td", {}, h("button", { type: "button", class: "place", onclick: () => goto(item.line, item.column) }, `${item.thread}:${item.line}`), " ", h("code", {}, item.text)),
      h("td", {}, h("span", { class: `tag is-${item.verdict}` }, WORDS[item.verdict]), item.weaker.length ? ` ${item.weaker.join(" or ")}` : ""),
      h("td", {}, item.without ? `without it ${stated(item.without)}` : item.why === "outcome" ? "" : item.why)));
  const repairs = result.repairs.flatMap((repair, number) => repair.changes.length ? [one(repair, changed[number], take)] : []);
  const heading = result.holds ? "Smallest programs that keep it" : "Smallest repairs";
  fill(place,
    h("p", { class: "lead" }, "Property ", h("code", {}, result.required), ": ", h("strong", { class: `is-${verdict.split(" ")[0]}` }, verdict)),
    result.bad ? h("p", {}, `Allowed: ${stated(result.bad)}`) : null,
    items.length ? h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Instructions that order" }, h("table", {},
      h("thead", {}, h("tr", {}, ["instruction", "verdict", ""].map((name) => h(name ? "th" : "td", name ? { scope: "col" } : {}, name)))),
      h("tbody", {}, items))) : null,
    repairs.length ? h("h3", {}, heading) : result.holds ? h("p", { class: "hint" }, "No order and no scope can go.") : null,
    repairs,
    result.notes.map((note) => h("p", { class: "hint" }, note.text)));
}

function one(repair, text, take) {
  const lines = (repair.diff ?? repair.changes.map(told)).filter((line) => !/^(---|\+\+\+|@@)/.test(line));
  const drawn = lines.map((line) => h("span", { class: line.startsWith("+") ? "added" : line.startsWith("-") ? "gone" : null }, `${line}\n`));
  const by = repair.engines.length ? `, confirmed by ${repair.engines.join(" and ")}` : "";
  return h("div", { class: "repair" },
    h("p", {}, `Cost ${repair.cost}${by}${repair.keeps ? "" : "; prevents outcomes that are wanted"} `,
      text ? h("button", { type: "button", onclick: () => take(text) }, "Take it") : null),
    h("pre", { tabindex: "0" }, drawn));
}

const told = (change) => `${change.thread}:${change.line}: ${change.old ?? "add"} → ${change.new ?? "nothing"}`;

const stated = ({ registers, memory }) => Object.entries({ ...registers, ...memory })
  .map(([name, value]) => `${name}=${value !== null && typeof value === "object" ? `?${value.unknown}` : value}`).join(" ");
