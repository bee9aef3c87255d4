// The page: what is asked, when, and where the answers go.
import { backend } from "./backend.js";
import { showDials } from "./dials.js";
import { $, fill, h, toast } from "./dom.js";
import { editor } from "./editor.js";
import { png, saved } from "./export.js";
import { showFences } from "./fences.js";
import { gallery, modelOf, versions } from "./gallery.js";
import { packed, unpacked } from "./link.js";
import { showModel } from "./model.js";
import { quiz } from "./quiz.js";
import { showStates, stateOf } from "./states.js";
import { showVerdict } from "./verdict.js";
import { showMisuse, showWhy } from "./why.js";

const FIRST = `PTX MP+rel+acq
"A release store publishes data; an acquire load of the flag subscribes to it."
{
  .global .u32 data = 0;
  .global .u32 flag = 0;
}
 P0 @ cta 0                          | P1 @ cta 1                           ;
 st.global.u32 [data], 1             | ld.acquire.gpu.global.u32 r0, [flag] ;
 st.release.gpu.global.u32 [flag], 1 | ld.global.u32 r1, [data]             ;
exists (P1:r0 == 1 /\\ P1:r1 == 0)
`;

/**
 * What is looked at. `base`: the test as written (`part`: which of those in it); `turns` and `level`: what the sliders make of it;
 * `bug`: the version of a real bug that it is; `stage`: how far the picture is shown, null for all of it.
 */
const state = {
  base: FIRST, part: 0, turns: new Map(), level: null, model: "ptx-8.5", readings: {}, without: [], all: false, chosen: null,
  bug: null, stage: null, hidden: false,
};
let answer = null;
let why = null;
let catalog = null;

const edit = editor($("editor"), edited, () => refresh(0));

function program() {
  const turns = [...state.turns].map(([key, turn]) => {
    const cut = key.lastIndexOf("/");
    return { thread: key.slice(0, cut), index: Number(key.slice(cut + 1)), ...turn };
  });
  const { base: text, part, level, model, readings, without } = state;
  return { text, part, model, readings, without, turns, level };
}

function edited(text) {
  Object.assign(state, { base: text, turns: new Map(), level: null, bug: null });
  switches();
  refresh(200);
}

// -- Asking: one question at a time, and then the latest.

let timer = 0;
let asking = false;
let again = false;

function refresh(delay = 0) {
  clearTimeout(timer);
  timer = setTimeout(check, delay);
}

async function check() {
  if (asking) {
    again = true;
    return;
  }
  asking = true;
  document.body.classList.add("busy");
  const asked = JSON.stringify([program(), state.all]);
  const found = await backend({ ask: "check", ...program(), all_state: state.all });
  asking = false;
  document.body.classList.remove("busy");
  if (again) {
    again = false;
    await check();
    return;
  }
  if (asked !== JSON.stringify([program(), state.all])) return; // the next question waits for the user to pause
  answer = found;
  show();
  remember();
}

function show() {
  const failed = answer.answer === "error";
  const turned = state.turns.size > 0 || state.level !== null;
  if (answer.text) edit.show(answer.text);
  else if (!turned) edit.show(state.base);
  edit.mark(failed ? answer.problems : []);
  problems(failed ? answer.problems : []);
  $("reset").hidden = !turned;
  $("verdict-text").hidden = state.hidden;
  document.body.classList.toggle("hidden-verdict", state.hidden);
  showVerdict($("verdict-text"), answer);
  $("states").inert = failed;
  if (failed) return;
  if (state.chosen?.length !== answer.columns.length) state.chosen = null;
  showStates($("states"), answer, state.chosen, pick);
  showDials($("dials"), answer, state.turns, state.level, turn, move, write);
  parts();
  about();
  why = null;
  explainSoon();
}

function problems(found) {
  const list = $("problems");
  list.hidden = found.length === 0;
  fill(list, found.map((problem) => {
    const text = `${problem.message}${problem.hint ? ` (${problem.hint})` : ""}`;
    const place = problem.line
      ? h("button", { type: "button", class: "place", onclick: () => edit.goto(problem.line, problem.column) }, `line ${problem.line}`)
      : null;
    return h("li", {}, place, " ", text);
  }));
}

/** Which of the tests, or of the claims, in the same text. */
function parts() {
  const place = $("part");
  place.hidden = answer.parts.length < 2 || state.hidden;
  fill(place, answer.parts.map((name, number) => h("option", { value: number, selected: number === state.part }, name)));
}

function about() {
  const place = $("about");
  const source = answer.info.find(([key]) => key === "Source")?.[1];
  const text = [answer.description, source].filter(Boolean).join(" — ");
  place.hidden = !text || state.hidden;
  place.textContent = text;
}

// -- Why

let whyTimer = 0;
let whyNumber = 0;
/** How often the address was to be changed. */
let remembered = 0;

function explainSoon(delay = 350) {
  clearTimeout(whyTimer);
  whyNumber += 1;
  whyTimer = setTimeout(explain, delay);
}

async function explain() {
  clearTimeout(whyTimer);
  const number = (whyNumber += 1);
  const place = $("why");
  if (answer.claim !== null) {
    showMisuse(place, answer.execution, edit.goto, answer.holds === false ? "This execution refutes it." : "There is no execution to show.");
    return;
  }
  let asked = null;
  if (state.chosen) asked = stateOf(answer.columns, state.chosen);
  else if (answer.quantifier === null && answer.rows.length) asked = stateOf(answer.columns, answer.rows[0].values);
  if (asked === "" || (asked === null && answer.quantifier === null)) {
    fill(place, h("p", { class: "hint" }, "Choose a final state."));
    return;
  }
  if (answer.status === "undefined" && !state.chosen) {
    showMisuse(place, answer.execution, edit.goto);
    return;
  }
  place.setAttribute("aria-busy", "true");
  if (!place.hasChildNodes()) fill(place, h("p", { class: "hint" }, "Looking for the reason …"));
  const found = await backend({ ask: "explain", ...program(), state: asked });
  if (number !== whyNumber) return;
  place.removeAttribute("aria-busy");
  why = found;
  showWhy(place, found, edit.goto, { at: state.stage, moved: (stage) => ((state.stage = stage), remember()) });
}

async function fences() {
  const number = (whyNumber += 1);
  clearTimeout(whyTimer);
  const place = $("why");
  place.setAttribute("aria-busy", "true");
  const found = await backend({ ask: "fences", ...program() });
  if (number !== whyNumber) return;
  place.removeAttribute("aria-busy");
  why = found;
  showFences(place, found, edit.goto, write);
  place.scrollIntoView({ block: "nearest" });
}

// -- What the user does

function write(text) {
  edit.show(text);
  edited(text);
  refresh(0);
}

function pick(values) {
  state.chosen = values;
  showStates($("states"), answer, state.chosen, pick);
  explainSoon(0);
  remember();
}

function turn(key, to) {
  if (to) state.turns.set(key, to);
  else state.turns.delete(key);
  refresh();
}

function move(level) {
  state.level = level;
  refresh();
}

function modelChanged() {
  const entry = catalog.models.find((item) => item.name === state.model);
  $("model").value = state.model;
  showModel($("model-parts"), entry, state.without, state.readings, (without, readings) => {
    Object.assign(state, { without, readings });
    modelChanged();
    refresh();
  });
}

let opening = 0;

async function open(entry, hidden = false) {
  const turn = ++opening;
  const found = await backend({ ask: "test", family: entry.family, name: entry.name });
  if (turn !== opening) return false; // another was chosen since
  if (found.answer === "error") {
    toast(found.problems[0].message);
    return false;
  }
  const text = hidden ? untold(found.text) : found.text;
  if (hidden && (text.length > 1200 || !/^exists/m.test(text))) return false;
  Object.assign(state, {
    base: text, part: 0, turns: new Map(), level: null, model: modelOf(entry), readings: {}, without: [], chosen: null,
    bug: entry.bug && entry.name, stage: null, hidden,
  });
  edit.show(text);
  $("states").inert = true; // they are those of the test before
  modelChanged();
  switches();
  await check();
  return true;
}

/** A test without what its head tells of the verdict. */
const untold = (text) => text.replace(/^PTX[^\n]*\n[\s\S]*?(?=^\{)/m, "PTX quiz\n");

/** Between the versions of a real bug, where the test is one. */
function switches() {
  const place = $("variants");
  const entry = state.bug && catalog?.tests.find((test) => test.bug && test.name === state.bug);
  place.hidden = !entry || state.hidden;
  if (place.hidden) return;
  fill(place, versions(catalog, entry.bug).map((version) =>
    h("label", {}, h("input", {
      type: "radio", name: "variant", checked: version.name === entry.name, "data-key": `variant-${version.variant}`,
      onchange: () => open(version),
    }), version.variant)));
}

// -- The link

/** Keep the state in the address; of several at once the last one counts, whichever is packed first. */
async function remember() {
  if (state.hidden) return;
  const number = ++remembered;
  const { turns, hidden, ...rest } = state;
  const said = await packed({ v: 1, ...rest, turns: [...turns] });
  if (number === remembered) history.replaceState(null, "", `#${said}`);
}

async function recall() {
  const said = location.hash.length > 1 ? await unpacked(location.hash.slice(1)) : null;
  if (!said || typeof said.base !== "string") return false;
  const list = (value) => (Array.isArray(value) ? value : []);
  const texts = (value) => list(value).filter((item) => typeof item === "string");
  const known = Object.entries(said.readings ?? {}).filter(([, value]) => typeof value === "string");
  Object.assign(state, {
    base: said.base,
    part: Number.isInteger(said.part) && said.part > 0 ? said.part : 0,
    turns: new Map(list(said.turns).filter((pair) => Array.isArray(pair) && typeof pair[0] === "string" && typeof pair[1]?.order === "string")),
    level: typeof said.level === "string" ? said.level : null,
    model: typeof said.model === "string" ? said.model : "ptx-8.5",
    readings: Object.fromEntries(known),
    without: texts(said.without),
    all: said.all === true,
    chosen: Array.isArray(said.chosen) ? texts(said.chosen) : null,
    bug: typeof said.bug === "string" ? said.bug : null,
    stage: typeof said.stage === "string" ? said.stage : null,
    hidden: false,
  });
  return true;
}

// -- Taking away

const EXPORTS = {
  test: () => saved(`${name()}.${{ nvlitmus: "test", ptx: "ptx" }[answer?.format] ?? "litmus"}`, "text/plain", edit.text()),
  json: () => saved(`${name()}.json`, "application/json", JSON.stringify({ program: program(), verdict: answer, why }, null, 2)),
  svg: () => (why?.picture ? saved(`${name()}.svg`, "image/svg+xml", why.picture) : toast("There is no picture: choose a state that is allowed")),
  png: async () => (why?.picture ? saved(`${name()}.png`, "image/png", await png(why.picture)) : toast("There is no picture: choose a state that is allowed")),
};

const name = () => (answer?.test ?? "test").replace(/[^\w.+-]/g, "_").slice(0, 80);

// -- The start

async function start() {
  await recall();
  edit.show(state.base);
  $("all-state").checked = state.all;
  await check();
  catalog = await backend({ ask: "catalog" });
  if (catalog.answer === "error") return;
  $("version").textContent = `ptxmm ${catalog.version}`;
  fill($("model"), catalog.models.map((entry) => h("option", { value: entry.name }, entry.name)));
  if (!catalog.models.some((entry) => entry.name === state.model)) state.model = "ptx-8.5";
  modelChanged();
  switches();
  const show_ = gallery($("gallery"), catalog, (entry) => open(entry));
  $("open-gallery").addEventListener("click", show_);
  $("open-quiz").addEventListener("click", quiz($("quiz"), catalog, {
    ask: (entry) => ($("quiz").hidden = false, open(entry, true)),
    judged: () => answer.observation,
    reason: async () => (why ?? await backend({ ask: "explain", ...program(), misses: false })).result ?? null,
    reveal,
    stop: () => {
      $("quiz").hidden = true;
      reveal();
    },
  }));
}

function reveal() {
  state.hidden = false;
  show();
  remember();
}

$("all-state").addEventListener("change", (event) => {
  state.all = event.target.checked;
  state.chosen = null;
  refresh();
});
$("model").addEventListener("change", (event) => {
  Object.assign(state, { model: event.target.value, readings: {}, without: [] });
  modelChanged();
  refresh();
});
$("part").addEventListener("change", (event) => {
  Object.assign(state, { part: Number(event.target.value), chosen: null });
  refresh();
});
$("reset").addEventListener("click", () => {
  Object.assign(state, { turns: new Map(), level: null });
  edit.show(state.base);
  refresh();
});
$("ask-fences").addEventListener("click", fences);
$("share").addEventListener("click", async () => {
  await remember();
  try {
    await navigator.clipboard.writeText(location.href);
    toast("The link is copied");
  } catch {
    toast("The link is in the address bar");
  }
});
for (const button of document.querySelectorAll("[data-export]")) {
  button.addEventListener("click", () => {
    $("export").open = false;
    EXPORTS[button.dataset.export]();
  });
}
document.addEventListener("click", (event) => {
  if (!$("export").contains(event.target)) $("export").open = false;
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && $("export").open) {
    $("export").open = false;
    $("export").querySelector("summary").focus();
  }
});
addEventListener("hashchange", async () => {
  if (await recall()) {
    edit.show(state.base);
    if (catalog) modelChanged();
    switches();
    refresh();
  }
});

start();
