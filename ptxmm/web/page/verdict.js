// The verdict, in a word, a sentence and what it rests on.
import { fill, h } from "./dom.js";

const SIGNS = { never: "⊘", sometimes: "◐", always: "●", undefined: "⚠", unknown: "?", states: "≡", error: "✕" };

/** What an answer of kind `check` or `error` says: [kind, word, sentence, condition or nothing]. */
export function words(answer) {
  if (answer.answer === "error") {
    const [first, ...rest] = answer.problems;
    const more = rest.length ? ` (and ${rest.length} more)` : "";
    const placed = first.line ? `Line ${first.line}: ` : "";
    return ["error", titles[first.kind] ?? "Not a test yet", placed + first.message + more];
  }
  const { observation, status, condition, quantifier, rows, listed } = answer;
  if (status === "undefined") return ["undefined", "Undefined", "The program has no meaning: any state may come out."];
  const number = `${listed ? "" : "at least "}${rows.length} final state${rows.length === 1 ? "" : "s"}`;
  if (answer.flags.includes("vacuous")) return ["unknown", "No execution", "No execution of the program reaches its end."];
  if (answer.claim !== null) {
    const [kind, word] = { true: ["never", "Holds"], false: ["sometimes", "Fails"], null: ["unknown", "Not decided"] }[answer.holds];
    return [kind, word, `What is claimed of the kernel: ${answer.claim}.`];
  }
  if (quantifier === null) return ["states", number, "The test has no condition."];
  if (observation === null) {
    if (answer.holds === null) return ["unknown", "Not decided", "A longer search could find more executions."];
    return ["unknown", answer.holds ? "Holds" : "Fails", `${quantifier} `, condition];
  }
  const every = quantifier === "forall";
  return {
    never: ["never", every ? "Never true" : "Forbidden", "No execution ends with ", condition],
    sometimes: ["sometimes", every ? "Not always true" : "Allowed", "Some execution ends with ", condition],
    always: ["always", every ? "Always true" : "Always", "Every execution ends with ", condition],
  }[observation];
}

const titles = {
  timeout: "Out of time", memory: "Out of memory", killed: "Out of memory", request: "No answer", internal: "A bug of ptxmm",
  unsupported: "Not covered", usage: "Not possible", model: "Not possible",
};

/** Show the verdict of `answer` in `place`. */
export function showVerdict(place, answer) {
  const [kind, word, sentence, condition] = words(answer);
  place.parentElement.dataset.kind = kind;
  const chips = [];
  if (answer.answer === "check") {
    const { model, engine, status, flags, rows, listed, expected, conclusion, seconds } = answer;
    chips.push(chip(model, "the model"));
    chips.push(chip(`${rows.length}${listed ? "" : "+"} state${rows.length === 1 ? "" : "s"}`, "final states found"));
    if (status !== "complete" && status !== "undefined") chips.push(chip(status, "how far the search went", "warn"));
    for (const flag of flags) chips.push(chip(flag.replaceAll("-", " "), "found in some execution", "warn"));
    if (expected !== null) {
      const contradicted = conclusion === "contradicted";
      const text = contradicted ? `the file expects ${expected}` : "as the file expects";
      chips.push(chip(text, `Expect=${expected}`, contradicted ? "warn" : null));
    }
    chips.push(chip(`${Math.max(1, Math.round(seconds * 1000))} ms`, `time of the search, by the engine ${engine}`));
  }
  const notes = (answer.notes ?? []).map((note) => h("li", {}, note.text));
  fill(
    place,
    h("p", { class: "word" }, h("span", { class: "sign", "aria-hidden": "true" }, SIGNS[kind]), word),
    h("div", { class: "said" }, h("p", { class: "sentence" }, sentence, condition ? h("code", {}, condition) : null), h("p", { class: "chips" }, chips)),
    notes.length ? h("ul", { class: "notes" }, notes) : null,
  );
}

function chip(text, title, kind) {
  return h("span", { class: kind ? `chip ${kind}` : "chip", title }, text);
}
