// Allowed or forbidden, and then why? A test without its verdict; after the answers the page tells both.
import { fill, h } from "./dom.js";

const FAMILIES = new Set(["mp", "sb", "lb", "iriw", "wrc", "isa2", "coherence", "fences", "scopes", "s", "r", "2+2w", "rmw", "atomics", "bugs"]);

/** What an allowed test may lack, by the names of the conditions that fail. */
const MISSING = {
  order: "A strong operation in place of a weak one", scope: "A scope that includes the other thread",
  "release pattern": "A release pattern", "acquire pattern": "An acquire pattern",
  "fence.sc": "A fence.sc between the accesses of a thread", "proxy fence": "A proxy fence",
  proxy: "Accesses through the same proxy", overlap: "Accesses of exactly the same bytes", wait: "A wait for the completion",
};
const TURNS = "Nothing: the threads only take turns";
const NONE = "None: whatever the axioms say, no execution ends so";
const CHOICES = 4;

/**
 * A quiz over the tests of `catalog` in `place`. `ask(entry)` shows a test without its verdict; of it `judged()` is the
 * observation and `reason()` the explanation, null where there is none; `reveal()` shows them; `stop()` ends the quiz.
 * Returns what starts it.
 */
export function quiz(place, catalog, { ask, judged, reason, reveal, stop }) {
  const pool = catalog.tests.filter((test) => FAMILIES.has(test.family) && /^(never|sometimes|always)$/.test(test.expect["ptx-8.5"] ?? ""));
  const { axioms } = catalog.models.find((model) => model.name === "ptx-8.5");
  const score = { right: 0, of: 0 };
  let last = null;

  async function next() {
    do last = pool[Math.floor(Math.random() * pool.length)];
    while (!(await ask(last)));
    show("Can it happen?", "Is there an execution under ptx-8.5 that ends with the condition of this test?",
      button("Allowed", () => answer(true)), button("Forbidden", () => answer(false)));
  }

  async function answer(allowed) {
    const possible = judged() !== "never";
    const told = `${count(allowed === possible)}: it is ${possible ? "allowed" : "forbidden"}`;
    show(told, "Looking for the reason …");
    const entry = last;
    const found = await reason();
    if (place.hidden || entry !== last) return; // ended, or begun anew
    const question = found && (possible ? lacks(found) : forbids(found));
    if (!question) {
      after(told, "");
      return;
    }
    show(`${told}. Then why?`, question.text,
      question.choices.map(([key, text]) => button(text, () => after(count(question.right.has(key)), right(question)), key)));
  }

  function after(word, told) {
    reveal();
    show(word, [told, last.about, "Why, is said below."].filter(Boolean).join(" "), button("Next question", next));
  }

  function show(word, text, ...buttons) {
    fill(place,
      h("p", { class: "word" }, word),
      h("p", {}, text),
      h("p", { class: "row" }, buttons.flat(), h("button", { type: "button", onclick: end }, "End the quiz"),
        h("span", { class: "hint" }, score.of ? `${score.right} of ${score.of} right` : "")));
    place.querySelector("button").focus();
  }

  function count(right) {
    score.of += 1;
    score.right += right ? 1 : 0;
    return right ? "✓ Right" : "✗ No";
  }

  /** Which axiom forbids it? */
  function forbids({ groups, verdict }) {
    const right = new Set(verdict === "impossible" ? [""] : groups.flatMap((group) => group.reasons.map((found) => found.axiom)));
    const all = [...axioms.map((axiom) => [axiom.name, `${axiom.name}: ${axiom.text}`]), ["", NONE]];
    return right.size ? asked("Which axiom does every execution violate that ends so?", right, all) : null;
  }

  /** What is missing, that would forbid it? */
  function lacks({ expected }) {
    if (!expected) return null;
    const right = new Set(expected.axiom === null ? [""] : expected.links.flatMap(({ gap }) => gap?.fails.map((fail) => fail.name) ?? []));
    return right.size ? asked("What is missing, that would forbid it?", right, [...Object.entries(MISSING), ["", TURNS]]) : null;
  }

  function end() {
    fill(place);
    stop();
  }

  return next;
}

/** A question with one of the answers that are `right`, and others that are not. */
function asked(text, right, all) {
  const [one] = shuffled(all.filter(([key]) => right.has(key)));
  const others = shuffled(all.filter(([key]) => !right.has(key))).slice(0, CHOICES - 1);
  return { text, right, choices: shuffled([one, ...others]) };
}

const right = ({ choices, right }) => `The answer: ${choices.find(([key]) => right.has(key))[1]}.`;

const button = (text, onclick, key) => h("button", { type: "button", class: "strong", "data-answer": key, onclick }, text);

const shuffled = (items) => items.map((item) => [Math.random(), item]).sort(([a], [b]) => a - b).map(([, item]) => item);
