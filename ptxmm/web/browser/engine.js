// What answers requests where there is no server: workers of this browser, one for each engine.

const SECONDS = 10; // for a request, as of `ptxmm serve`
const GRACE = 3; // for an engine that looks at the clock seldom

/**
 * The answer to a request of kind `check`, `explain` or `fences`. Verdicts are those of the explicit engine; what it
 * has no time or no means for, and all reasons, are for Z3, which takes longer to load.
 */
export async function answered(request) {
  const data = JSON.stringify(request);
  if (request.ask === "check") {
    const found = await explicit.ask(request.ask, data);
    if (found && found.status !== "timeout" && found.problems?.[0].kind !== "timeout") return found;
  }
  return solver.ask(request.ask, data);
}

const refused = (kind, message) => ({ answer: "error", problems: [{ kind, message, line: null, column: null, width: 1, hint: null }] });

/** A worker with an engine, which answers one request at a time. One that takes too long is ended, and made anew. */
class Engine {
  #name;
  #worker = null;
  #ready = null;
  #waiting = [];
  #busy = false;

  constructor(name) {
    this.#name = name;
  }

  /** The answer; null if this engine has no means for it. Of requests of a `kind` that wait, the last is answered. */
  ask(kind, data) {
    return new Promise((done) => {
      const others = this.#waiting.filter((item) => item.kind !== kind);
      for (const item of this.#waiting) if (item.kind === kind) item.done(refused("request", "another was asked since"));
      this.#waiting = [...others, { kind, data, done }];
      this.#next();
    });
  }

  async #next() {
    if (this.#busy || !this.#waiting.length) return;
    this.#busy = true;
    const { data, done } = this.#waiting.shift();
    done(await this.#one(data).catch((error) => {
      this.#end();
      return refused("internal", `internal error: ${error.message}`);
    }));
    this.#busy = false;
    this.#next();
  }

  async #one(data) {
    if (!this.#worker) this.#start();
    await this.#ready;
    this.#worker.postMessage({ data, seconds: SECONDS });
    let timer = 0;
    const late = new Promise((done) => (timer = setTimeout(done, (SECONDS + GRACE) * 1000, null)));
    const found = await Promise.race([this.#told(), late]);
    clearTimeout(timer);
    if (found) return JSON.parse(found.answer);
    this.#end();
    this.#start();
    return refused("timeout", "the time limit ended the search");
  }

  #start() {
    this.#worker = new Worker(new URL("worker.js", import.meta.url), { type: "module", name: this.#name });
    this.#ready = this.#told();
    this.#ready.catch(() => {}); // who asks next is told
  }

  #end() {
    this.#worker.terminate();
    this.#worker = null;
  }

  /** The next message of the worker. */
  #told() {
    const worker = this.#worker;
    return new Promise((done, failed) => {
      worker.onmessage = ({ data }) => (data.error ? failed(new Error(data.error)) : done(data));
      worker.onerror = (event) => failed(new Error(event.message || "Python can't be loaded"));
    });
  }
}

const explicit = new Engine("enumerate");
const solver = new Engine("z3");
