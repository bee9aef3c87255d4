"use strict";
const form = document.getElementById("filters");
const rows = [...document.querySelectorAll("tr[data-test]")];
const sections = new Map([...document.querySelectorAll("section.test")].map((section) => [section.id, section]));

function apply() {
  const name = form.elements.name.value.trim().toLowerCase();
  const verdict = form.elements.verdict.value;
  const model = form.elements.model.value;
  const kept = new Set();
  let count = 0;
  for (const row of rows) {
    const { test, verdict: own, model: under, name: called } = row.dataset;
    const shown = called.toLowerCase().includes(name) && (!verdict || verdict === own) && (!model || model === under);
    row.hidden = !shown;
    if (shown) {
      kept.add(test);
      count += 1;
    }
  }
  for (const [id, section] of sections) section.hidden = !kept.has(id);
  form.elements.count.value = `${count} of ${rows.length}`;
}

form.hidden = false;
form.addEventListener("input", apply);
form.addEventListener("submit", (event) => event.preventDefault());
apply();
