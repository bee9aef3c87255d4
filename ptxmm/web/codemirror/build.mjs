// Writes codemirror.js and the licence texts of all that is in it into the folder of the page.
import { build } from "esbuild";
import { readFileSync, writeFileSync } from "node:fs";

const out = new URL("../page/vendor/", import.meta.url);
const made = await build({
  entryPoints: ["entry.js"],
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2021",
  legalComments: "none",
  metafile: true,
  outfile: new URL("codemirror.js", out).pathname,
});

const inputs = Object.keys(made.metafile.inputs).filter((path) => path.startsWith("node_modules/"));
const packages = new Set(inputs.map((path) => path.match(/node_modules\/((?:@[^/]+\/)?[^/]+)/)[1]));
const texts = [...packages].sort().map((name) => {
  const { version } = JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf-8"));
  return `${name} ${version}\n\n${readFileSync(`node_modules/${name}/LICENSE`, "utf-8").trim()}\n`;
});
writeFileSync(new URL("codemirror.txt", out), texts.join(`\n${"-".repeat(80)}\n\n`));
