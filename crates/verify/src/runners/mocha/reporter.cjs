// Writes the result of each test at the end, in the format of `report_lines.rs`, next to this file. Every version of mocha
// accepts a reporter by its path, but only newer ones can write a report to a file.
const { writeFileSync } = require("fs");
const { join } = require("path");
const { inspect } = require("util");

module.exports = function Report(runner) {
  // Keyed by the test object, because titles need not be unique. A passed test can still fail, for example by calling
  // `done` twice.
  const results = new Map();
  const errorMessage = (err) => (err && typeof err.message === "string" ? err.message : inspect(err));
  const record = (test, state, message) =>
    results.set(test, { test: test.fullTitle(), file: test.file, state, message });

  runner.on("pass", (test) => results.has(test) || record(test, "passed"));
  runner.on("pending", (test) => record(test, "skipped"));
  runner.on("fail", (test, err) => record(test, "failed", errorMessage(err)));
  runner.on("end", () => {
    const lines = [...results.values(), { state: "end" }].map((line) => JSON.stringify(line));
    writeFileSync(join(__dirname, "report.jsonl"), lines.join("\n"));
  });
};
