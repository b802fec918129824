// Writes the results in the format of `report_lines.rs`.
import { readFileSync } from "node:fs";
import { relative, resolve } from "node:path";
import { inspect } from "node:util";

const LOAD_ERROR = /SyntaxError|Cannot find module|ERR_MODULE_NOT_FOUND|does not provide an export/;

const pathOf = (name) => resolve(name.replace(/^file:\/\//, ""));
const shown = (file) => `\`${relative("", pathOf(file))}\``;
const line = (state, file, test, message) => JSON.stringify({ state, file, test, message }) + "\n";

// A test may throw anything, even a value that cannot be converted to a string.
function errorText(error) {
  const { cause } = error;
  const texts = [cause?.stack, cause?.message, cause, cause == null ? error.message : undefined];
  return texts.find((text) => typeof text === "string") ?? inspect(cause ?? error);
}

// The result of a file without tests: a plain script, one that could not be loaded, or one that exited before its tests ran.
function fileResult(file, passed, stderr) {
  if (!passed) return line(LOAD_ERROR.test(stderr) ? "unloaded" : "failed", file, "", stderr);
  const declaresTests = readFileSync(pathOf(file), "utf8").includes("node:test");
  return declaresTests
    ? line("doubt", file, "", `${shown(file)} ended before any of its tests had a result`)
    : line("passed", file);
}

export default async function* report(source) {
  // Per file: the current path of titles and the text written to stderr. Also the tests without a result.
  const [titles, stderr, unfinished] = [{}, {}, new Map()];
  for await (const { type, data = {} } of source) {
    const { name = "", nesting = 0, file = "", details, message } = data;
    const path = (titles[file] ??= []);
    const key = JSON.stringify([file, nesting, name, data.line]);
    const count = (step) => unfinished.set(key, { name, file, open: (unfinished.get(key)?.open ?? 0) + step });
    const isFile = nesting === 0 && file !== "" && pathOf(name) === pathOf(file);
    const passed = type === "test:pass";
    if (type === "test:stderr") stderr[file] = (stderr[file] ?? "") + message;
    else if (type === "test:start" && !isFile) path.splice(nesting, Infinity, name);
    else if (type === "test:enqueue" && !isFile) count(1);
    else if (passed || type === "test:fail") {
      if (isFile) {
        yield fileResult(file, passed, stderr[file] ?? "");
        continue;
      }
      count(-1);
      const error = details?.error ? errorText(details.error) : "";
      // A suite that failed only because of its subtests is not a failure of its own; a failed hook is.
      if (details?.type === "suite" && (passed || error.includes("subtest"))) continue;
      const isSkipped = [data.skip, data.todo].some((mark) => mark !== undefined && mark !== false);
      const state = isSkipped ? "skipped" : passed ? "passed" : "failed";
      yield line(state, file, [...path.slice(0, nesting), name].join(" > "), error);
    }
  }
  for (const { name, file, open } of unfinished.values()) {
    if (open > 0) yield line("doubt", file, "", `\`${name}\` in ${shown(file)} was begun and has no result`);
  }
  yield line("end");
}
