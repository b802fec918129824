// What became of each test, as one JSON document at the end: every version of mocha takes a reporter by its path, and
// only newer ones write a report to a file. The path stands in place of REPORT.
const { writeFileSync } = require("fs");
const { inspect } = require("util");

module.exports = function Report(runner) {
  // By the test itself, because titles need not be unique. What has passed can still fail, as when it calls `done` twice.
  const results = new Map();
  const told = (err) => (err && typeof err.message === "string" ? err.message : inspect(err));
  const note = (test, state, message) =>
    results.set(test, { title: test.fullTitle(), file: test.file, state, message });

  runner.on("pass", (test) => results.has(test) || note(test, "passed"));
  runner.on("pending", (test) => note(test, "skipped"));
  runner.on("fail", (test, err) => note(test, "failed", told(err)));
  runner.on("end", () => writeFileSync(REPORT, JSON.stringify([...results.values()])));
};
