// Why a state is allowed (an execution) or not (the reasons), from the JSON of an explanation.
import { fill, h } from "./dom.js";
import { picture } from "./picture.js";

/** Show an explanation; `goto(line, column)` leads to an instruction in the editor, `stage` is as `steps` takes it. */
export function showWhy(place, answer, goto, stage) {
  if (answer.answer === "error") {
    fill(place, answer.problems.map((problem) => h("p", { class: "hint" }, problem.message, hinted(problem))));
    return;
  }
  const { result } = answer;
  const parts = [h("p", { class: "lead" }, h("strong", { class: `is-${result.verdict}` }, leads[result.verdict]), " ",
    h("code", {}, result.state))];
  if (answer.picture) parts.push(...picture(answer.picture, answer.stages, stage));
  if (result.expected) parts.push(...expected(result.expected, goto));
  if (result.execution) parts.push(execution(result.execution, goto, Boolean(answer.picture)));
  for (const item of result.synchronization) {
    parts.push(h("p", { class: "sync" }, event(item.first, goto), ` ${item.text}${section(item.section)} with `,
      event(item.second, goto)));
  }
  const reasons = result.groups.flatMap((group) => group.reasons);
  const means = new Map(result.definitions.map((found) => [`${found.relation} ${found.section}`, found]));
  const shown = reasons.map((reason, number) => told(reason, number, reasons.length, means, goto));
  parts.push(...(result.cases.length ? [tree(result.cases, shown)] : shown));
  parts.push(...result.impossible.map(impossible));
  if (result.searched && result.verdict !== "allowed") parts.push(misses(result.misses));
  parts.push(...result.notes.map((note) => h("p", { class: "hint" }, note.text)));
  fill(place, parts);
}

/** Show the execution in which a program without a meaning loses it, if one is known, or that of which something else is `told`. */
export function showMisuse(place, found, goto, told) {
  told ??= found ? "The program has no meaning: this execution takes it away." : "The program has no meaning; the notes beside the verdict say why.";
  fill(place, h("p", { class: "hint" }, told), found ? execution(found, goto, false) : null);
}

const leads = {
  allowed: "Allowed: this execution ends with", forbidden: "Forbidden: no execution ends with",
  impossible: "Impossible: whatever the axioms say, no execution ends with", unknown: "Not known:",
};

const section = (number) => (number ? ` (§${number})` : "");
const hinted = (problem) => (problem.hint ? ` (${problem.hint})` : "");

/** Why an allowed state is not forbidden: a circle, and what the steps lack that are no orders. */
function expected(found, goto) {
  const lead = h("p", {}, h("b", {}, "Why not forbidden: "), `${found.sentence}.`);
  if (!found.links.length) return [lead];
  const items = found.links.flatMap(({ edge, gap }, number) => {
    const after = found.links[number + 1]?.edge.first;
    const lone = !after || ends({ first: after, second: after }) !== ends({ first: edge.second, second: edge.second });
    return [
      h("li", { class: "at" }, event(edge.first, goto)),
      h("li", { class: "edge" }, `${gap ? "✗" : "↓"} ${edge.text}${section(edge.section)}`,
        gap ? h("div", { class: "gap" }, `missing between ${gap.first} and ${gap.second}: ${gap.text}${section(gap.section)}`,
          h("ul", {}, gap.fails.map((fail) => h("li", {}, h("b", {}, fail.name), `${section(fail.section)}: ${fail.text}`)))) : null),
      lone ? h("li", { class: "at" }, event(edge.second, goto)) : null,
    ];
  });
  return [lead, h("ol", { class: "chain" }, items)];
}

/** The cases of a split, each with its reason (if that is not in a case before it) or with its own cases. */
function tree(cases, reasons, met = new Set()) {
  return h("ul", { class: "cases" }, cases.map((item, number) => {
    const known = met.has(item.reason);
    met.add(item.reason);
    const then = item.reason === null ? tree(item.cases, reasons, met) : known ? `Reason ${item.reason}, as above` : reasons[item.reason - 1];
    return h("li", {}, h("p", {}, h("b", {}, number ? "Or " : "Either "), `${item.text}${item.cases.length ? ", and" : ":"}`), then);
  }));
}

/** One reason: the axiom, the contradiction in a sentence, and the chain of steps that it is. */
function told(reason, number, count, means, goto) {
  const body = [h("p", {}, `${reason.sentence}.`), meaning(reason.axiom, reason.section, means)];
  if (reason.member) body.push(h("p", {}, event(reason.member, goto)));
  if (reason.edges.length) body.push(...chain(reason.edges, means, goto));
  if (reason.beside.length) body.push(h("p", { class: "hint" }, "where also"), ...reason.beside.flatMap((e) => chain([e], means, goto)));
  for (const gap of reason.absent) {
    const second = gap.second ? [gap.unrelated ? " and " : " does not come before ", event(gap.second, goto)] : [];
    const what = gap.text === null ? " not as the axiom demands" : `${gap.unrelated ? " unrelated" : ""} in ${gap.text}${section(gap.section)}`;
    body.push(h("p", {}, "but ", event(gap.first, goto), ...second, what));
  }
  return h("details", { class: "reason", open: number === 0 },
    h("summary", {}, count > 1 ? `Reason ${number + 1} of ${count}: ` : "", h("b", {}, reason.axiom), `${section(reason.section)}: ${reason.text}`),
    body);
}

/** Events with the steps between them. Each can be unfolded: what it means, and the steps that it stands for. */
function chain(edges, means, goto) {
  const items = [];
  const steps = firstLevel(edges);
  for (const edge of steps) {
    items.push(h("li", { class: "at" }, event(edge.first, goto)), h("li", { class: "edge" }, step(edge, means, edge.backwards ? "↑ " : "↓ ")));
  }
  if (steps.length) items.push(h("li", { class: "at" }, event(steps.at(-1).second, goto)));
  const orders = edges.filter((edge) => !edge.whole);
  const whole = orders.length ? h("ul", { class: "orders" }, orders.map((edge) => h("li", {}, step(edge, means, ends(edge))))) : null;
  return [h("ol", { class: "chain" }, items), whole];
}

/** Steps that are one on the first level: an order of causality is not, what it is made of stands for it. */
const firstLevel = (edges) => edges.flatMap((edge) => (edge.whole ? [edge] : firstLevel(edge.inner)));

/** One step, to be unfolded; `lead` stands before what it is called. */
function step(edge, means, lead) {
  const strong = edge.strong ? ", morally strong" : "";
  const text = `${lead}${edge.text}${strong}${section(edge.section)}${edge.detail ? `: ${edge.detail}` : ""}`;
  const parts = [...edge.inner, ...edge.also];
  const found = meaning(edge.relation, edge.section, means);
  if (!parts.length && !found) return text;
  return h("details", {}, h("summary", {}, text), found,
    parts.length ? h("ul", { class: "orders" }, parts.map((part) => h("li", {}, step(part, means, ends(part))))) : null);
}

/** The instructions of a step, in its direction. */
function ends(edge) {
  const [a, b] = (edge.backwards ? [edge.second, edge.first] : [edge.first, edge.second]).map(place);
  return a === b ? `${a}: ` : `${a} → ${b}: `;
}

const place = (found) => (found.instruction ? `${found.instruction.thread}:${found.instruction.line}` : found.text);

/** What a step means: how the model writes it, and the sentence of the ISA. */
function meaning(relation, clause, means) {
  const found = means.get(`${relation} ${clause}`);
  if (!found || !(found.written || found.sentence)) return null;
  return h("div", { class: "meaning" }, found.written ? h("code", {}, found.written) : null,
    found.sentence ? h("blockquote", {}, found.sentence) : null);
}

function event(found, goto) {
  const action = found.action ? h("span", { class: "action" }, ` ${found.action}`) : null;
  if (!found.instruction) return h("span", { class: "event" }, found.text, action);
  const { thread, line, column, text } = found.instruction;
  const round = found.round ? ` (round ${found.round + 1})` : "";
  return h("span", { class: "event" },
    h("button", { type: "button", class: "place", title: "Show it in the test", onclick: () => goto(line, column) }, `${thread}:${line}`),
    round, " ", h("code", {}, text), action);
}

/** An execution: for each thread what it does, in order. */
function execution(found, goto, folded) {
  const threads = found.threads.map((thread) =>
    h("section", { class: "thread" },
      h("h3", {}, thread.thread),
      h("ol", {}, thread.steps.map((step) =>
        h("li", {}, event({ ...step, action: "" }, goto),
          step.accesses.map((access) => h("span", { class: "action" }, ` ${accessed(access)}`)))))));
  const orders = [
    ...found.coherence.map((pair) => h("li", {}, `${pair.location}: ${pair.first} before ${pair.second} in coherence order`)),
    ...found.fence_sc.map((pair) => h("li", {}, `${pair.first} before ${pair.second} in Fence-SC order`)),
  ];
  const body = [h("div", { class: "threads" }, threads), orders.length ? h("ul", { class: "orders" }, orders) : null];
  return folded ? h("details", {}, h("summary", {}, "The execution as text"), body) : h("div", {}, body);
}

function accessed({ kind, location, value, sources }) {
  const from = sources?.length ? ` from ${sources.join(" and ")}` : "";
  return `${kind === "W" ? "writes" : "reads"} ${location} = ${typeof value === "object" ? `?${value.unknown}` : value}${from}`;
}

function impossible(item) {
  const values = Object.entries(item.values ?? {}).map(([name, found]) =>
    h("li", {}, `${name} may be ${found.map(shown).join(", ") || "nothing"}`));
  if (item.state === "true") return h("p", {}, "No execution reaches its end.");
  return h("div", {}, h("p", {}, h("code", {}, item.state), values.length ? " holds at the end of none:" : ": its parts may hold one by one, but not together"), h("ul", {}, values));
}

const shown = (value) => (typeof value === "object" && value ? `?${value.unknown}` : String(value));

/** The nearest misses: what would make it allowed. */
function misses(found) {
  if (!found.length) return h("p", { class: "hint" }, "No single order, scope, fence, barrier or placement is what forbids it.");
  const items = found.map((miss) =>
    h("li", {},
      miss.move ? h("span", {}, `${miss.move.thread} @ ${miss.move.before || "a CTA of its own"} → ${miss.move.after || "a CTA of its own"}`) : null,
      miss.changes.map((change) => h("span", {}, `${change.thread}:${change.line} `, h("code", {}, change.old ?? ""), " → ", h("code", {}, change.new ?? "nothing")))));
  return h("div", { class: "misses" }, h("p", {}, "Nearest miss: it would be allowed with ", found.length > 1 ? "any of these changes" : "this change"), h("ul", {}, items));
}
