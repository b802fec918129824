// Writes every event as one line of JSON. The last line marks the end of the report.
import { inspect } from "node:util";

const KEPT = new Set(["test:enqueue", "test:start", "test:pass", "test:fail", "test:stderr"]);

// A test may throw anything, even a value that cannot be converted to a string.
function errorText(error) {
  const { cause } = error;
  const texts = [cause?.stack, cause?.message, cause, cause == null ? error.message : undefined];
  return texts.find((text) => typeof text === "string") ?? inspect(cause ?? error);
}

export default async function* report(source) {
  for await (const { type, data = {} } of source) {
    if (!KEPT.has(type)) continue;
    const error = data.details?.error;
    yield JSON.stringify({
      type,
      name: data.name,
      nesting: data.nesting,
      file: data.file,
      line: data.line,
      skipped: data.skip !== undefined && data.skip !== false,
      todo: data.todo !== undefined && data.todo !== false,
      suite: data.details?.type === "suite",
      error: error && errorText(error),
      message: data.message,
    }) + "\n";
  }
  yield JSON.stringify({ type: "end" }) + "\n";
}
