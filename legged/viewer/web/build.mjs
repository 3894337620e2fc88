// Bundles src/ with three.js and uPlot into replay.js and replay.css, which pages contain; setup.py runs it
import { createHash } from "node:crypto";
import { copyFileSync, readFileSync, readdirSync } from "node:fs";
import { build } from "esbuild";

const sources = readdirSync("src").sort().map((name) => readFileSync(`src/${name}`));
const digest = createHash("sha256").update(Buffer.concat([...sources, readFileSync("package.json")])).digest("hex");
const version = (name) => JSON.parse(readFileSync(`node_modules/${name}/package.json`)).version;
const banner =
  `/* legged replay, sources ${digest}\n` +
  ` * contains three.js ${version("three")}, Copyright 2010-2026 three.js authors, MIT license (LICENSE-three.txt)\n` +
  ` * contains uPlot ${version("uplot")}, Copyright 2019-2026 Leon Sorokin, MIT license (LICENSE-uplot.txt) */`;

await build({
  entryPoints: { replay: "src/main.js" },
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  legalComments: "none",
  charset: "utf8",
  outdir: ".",
  banner: { js: banner, css: banner },
});
for (const name of ["three", "uplot"]) copyFileSync(`node_modules/${name}/LICENSE`, `LICENSE-${name}.txt`);
