// Light or dark: that of the system, or what was chosen.
const THEMES = { auto: ["◐", "those of the system"], light: ["☀", "light"], dark: ["☾", "dark"] };
const names = Object.keys(THEMES);
const button = document.getElementById("theme");

function stored() {
  try {
    return localStorage.getItem("theme");
  } catch {
    return null;
  }
}

function show(name) {
  document.documentElement.dataset.theme = name;
  button.textContent = THEMES[name][0];
  button.setAttribute("aria-label", `Colours: ${THEMES[name][1]}`);
  button.title = `Colours: ${THEMES[name][1]}`;
}

let chosen = names.includes(stored()) ? stored() : "auto";
show(chosen);
button.addEventListener("click", () => {
  chosen = names[(names.indexOf(chosen) + 1) % names.length];
  try {
    localStorage.setItem("theme", chosen);
  } catch {
    // it holds for this page only
  }
  show(chosen);
  document.dispatchEvent(new Event("theme"));
});
