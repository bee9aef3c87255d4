// The copy button of a session takes its commands alone, without prompts and output.
document.addEventListener("click", (event) => {
  const button = event.target.closest(".language-console [data-clipboard-target]");
  if (!button) return;
  const lines = document.querySelector(button.dataset.clipboardTarget).textContent.split("\n");
  button.dataset.clipboardText = lines.filter((line) => line.startsWith("$ ")).map((line) => line.slice(2)).join("\n");
}, true);
