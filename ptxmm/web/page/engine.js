// What answers requests: the server that the page came from.

/** The answer to a request of kind `check`, `explain` or `fences`. */
export async function answered(request) {
  const body = JSON.stringify(request);
  const response = await fetch("api", { method: "POST", headers: { "content-type": "application/json" }, body });
  return await response.json();
}
