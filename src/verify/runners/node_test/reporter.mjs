// Every event as one line of JSON; the last one says that all is told.
const KEPT = new Set(["test:enqueue", "test:start", "test:pass", "test:fail", "test:stderr"]);

export default async function* report(source) {
  for await (const { type, data = {} } of source) {
    if (!KEPT.has(type)) continue;
    const error = data.details?.error;
    const cause = error?.cause;
    yield JSON.stringify({
      type,
      name: data.name,
      nesting: data.nesting,
      file: data.file,
      line: data.line,
      skipped: data.skip !== undefined && data.skip !== false,
      todo: data.todo !== undefined && data.todo !== false,
      suite: data.details?.type === "suite",
      error: error && String(cause?.stack ?? cause?.message ?? cause ?? error.message ?? error),
      message: data.message,
    }) + "\n";
  }
  yield JSON.stringify({ type: "end" }) + "\n";
}
