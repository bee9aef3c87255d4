// The one way to ask anything: whatever answers is behind this function.
import { answered } from "./engine.js";

/**
 * The answer to a request: `check`, `explain` and `fences` (a test and a model to run it under), `catalog` (what can be
 * chosen) and `test` (the text of a test of the catalog, by family and name).
 */
export async function backend(request) {
  try {
    if (request.ask === "catalog") return await (await fetched("catalog.json")).json();
    if (request.ask === "test") {
      const path = [request.family, request.name].map(encodeURIComponent).join("/");
      return { answer: "test", text: await (await fetched(`litmus/${path}`)).text() };
    }
    return await answered(request);
  } catch (error) {
    return { answer: "error", problems: [{ kind: "request", message: `there is no answer: ${error.message}` }] };
  }
}

async function fetched(path) {
  const response = await fetch(path);
  if (!response.ok) throw new Error(`${response.status}`);
  return response;
}
