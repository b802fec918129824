// Writes the result of each test as one JSON document at the end. Every version of mocha accepts a reporter by its path,
// but only newer ones can write a report to a file. REPORT is replaced with the path of the document.
const { writeFileSync } = require("fs");
const { inspect } = require("util");

module.exports = function Report(runner) {
  // Keyed by the test object, because titles need not be unique. A passed test can still fail, for example by calling
  // `done` twice.
  const results = new Map();
  const errorMessage = (err) => (err && typeof err.message === "string" ? err.message : inspect(err));
  const record = (test, state, message) =>
    results.set(test, { title: test.fullTitle(), file: test.file, state, message });

  runner.on("pass", (test) => results.has(test) || record(test, "passed"));
  runner.on("pending", (test) => record(test, "skipped"));
  runner.on("fail", (test, err) => record(test, "failed", errorMessage(err)));
  runner.on("end", () => writeFileSync(REPORT, JSON.stringify([...results.values()])));
};
