// An engine in Python, compiled to WebAssembly. The name of the worker is that of the engine.
import { loadPyodide } from "../python/pyodide.mjs";

const folder = new URL("../python/", import.meta.url).href;
const archives = ["msgspec.zip", "ptxmm.zip", ...(self.name === "z3" ? ["z3.zip"] : [])];
const CODE = `
from ptxmm.web.answers import answer
lambda data, seconds, engine: answer(data.encode(), seconds, engine).decode()
`;

async function loaded(name) {
  const response = await fetch(folder + name);
  if (!response.ok) throw new Error(`${name}: ${response.status}`);
  return response.arrayBuffer();
}

async function started() {
  const [python, ...parts] = await Promise.all([loadPyodide({ indexURL: folder }), ...archives.map(loaded)]);
  for (const part of parts) python.unpackArchive(part, "wheel");
  return python.runPython(CODE);
}

/** The answer, as JSON; that of a Python error which is no answer. */
function answered(answer, { data, seconds }) {
  try {
    return answer(data, seconds, self.name);
  } catch (error) {
    if (error.type === "ModuleNotFoundError" && self.name !== "z3") return "null"; // it takes Z3
    if (error.type === "MemoryError") return problem("memory", "there is not enough memory");
    throw error;
  }
}

const problem = (kind, message) =>
  JSON.stringify({ answer: "error", problems: [{ kind, message, line: null, column: null, width: 1, hint: null }] });

const told = (error) => postMessage({ error: String(error.message).trim().split("\n").at(-1) });

try {
  const answer = await started();
  onmessage = ({ data }) => {
    try {
      postMessage({ answer: answered(answer, data) });
    } catch (error) {
      told(error); // Python may be broken: the worker is ended
    }
  };
  postMessage({ ready: true });
} catch (error) {
  told(error);
}
