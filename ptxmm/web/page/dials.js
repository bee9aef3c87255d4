// Sliders: the placement of the threads, and the order and scope of each instruction.
import { fill, h } from "./dom.js";

/** The key of a dial among the turns. */
export const keyOf = (dial) => `${dial.thread}/${dial.index}`;

const unscoped = (order) => order === "weak" || order === "none";
const WORDS = { none: "no fence", present: "fence", weak: "weak" };
let built = "";
let update = [];

/**
 * Show the sliders of `answer`. `turns`: by key the order and scope that differ from the text, `level`: the placement;
 * `turn(key, {order, scope} or null)` and `move(level or null)` say that one was moved,
 * `write(text)` puts a litmus test in the place of what has no sliders. Sliders that are there already
 * stay, so that one that is being moved is not taken from under the hand.
 */
export function showDials(place, answer, turns, level, turn, move, write) {
  const shape = JSON.stringify([answer.dials, answer.placings, answer.litmus]);
  if (shape !== built) {
    built = shape;
    update = [];
    fill(place,
      answer.placings.length ? placing(answer.placings, move) : null,
      [...new Set(answer.dials.map((dial) => dial.thread))].map((thread) =>
        h("fieldset", {}, h("legend", {}, thread),
          answer.dials.filter((dial) => dial.thread === thread).map((dial) => instruction(dial, turn)))),
      answer.dials.length || answer.placings.length ? null
        : h("p", { class: "hint" }, answer.format === "litmus" ? "No instruction of this test has an order or a scope to change."
          : "Sliders are for litmus tests. "),
      answer.litmus ? h("button", { type: "button", onclick: () => write(answer.litmus) }, "Write it as a litmus test") : null);
  }
  for (const one of update) one(turns, level);
}

function instruction(dial, turn) {
  const at = { order: dial.order, scope: dial.scope };
  const name = `${dial.thread} line ${dial.line}`;
  const moved = () => {
    const same = at.order === dial.order && (at.scope === dial.scope || unscoped(dial.orders[at.order]));
    turn(keyOf(dial), same ? null : { order: dial.orders[at.order], scope: dial.scopes[at.scope] ?? null });
  };
  const orders = slider(`${keyOf(dial)}/order`, `Order of ${name}`, dial.orders.map((o) => WORDS[o] ?? `.${o}`), (n) => {
    at.order = n;
    moved();
  });
  const scopes = slider(`${keyOf(dial)}/scope`, `Scope of ${name}`, dial.scopes.map((s) => `.${s}`), (n) => {
    at.scope = n;
    moved();
  });
  const box = h("div", { class: "dial" },
    h("code", { title: dial.text }, dial.text.split(/(?=\.)/).flatMap((part) => [h("wbr"), part])),
    h("div", { class: "sliders" },
      dial.orders.length > 1 ? orders.element : null, dial.scopes.length > 1 ? scopes.element : null));
  update.push((turns) => {
    const turned = turns.get(keyOf(dial));
    at.order = turned ? dial.orders.indexOf(turned.order) : dial.order;
    at.scope = turned?.scope ? dial.scopes.indexOf(turned.scope) : dial.scope;
    box.classList.toggle("turned", Boolean(turned));
    orders.set(at.order);
    scopes.set(at.scope, unscoped(dial.orders[at.order]));
  });
  return box;
}

function placing(placings, move) {
  const names = ["as written", ...placings.map((place) => place.words)];
  const levels = [null, ...placings.map((place) => place.level)];
  const where = slider("level", "Placement of the threads", names, (n) => move(levels[n]));
  const reason = h("p", { class: "hint" });
  const box = h("div", { class: "dial" }, h("span", { class: "label" }, "Threads in"),
    h("div", { class: "sliders" }, where.element), reason);
  update.push((turns, level) => {
    const at = Math.max(0, levels.indexOf(level));
    where.set(at);
    box.classList.toggle("turned", at > 0);
    const why = at > 0 ? placings[at - 1].impossible : null;
    reason.textContent = why ? `Not here: ${why}` : "";
  });
  return box;
}

function slider(key, label, names, moved) {
  const output = h("output", { "aria-hidden": "true" });
  const input = h("input", {
    type: "range", min: "0", max: String(names.length - 1), step: "1", "aria-label": label, "data-key": key,
    title: names.join("  <  "),
    oninput: () => {
      tell(Number(input.value), false);
      moved(Number(input.value));
    },
  });
  const tell = (n, disabled) => {
    output.textContent = disabled ? "–" : names[n];
    input.setAttribute("aria-valuetext", names[n] ?? "");
  };
  return {
    element: h("span", { class: "slider" }, input, output),
    set(n, disabled = false) {
      if (input.value !== String(n)) input.value = String(n);
      if (input.disabled !== disabled) input.disabled = disabled;
      tell(n, disabled);
    },
  };
}
