#!/usr/bin/env node
// Starts the program of this platform's package, or the one on the PATH. Signals are passed on, and the exit code comes back.
"use strict";
const { spawn } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");

function installed() {
  const name = `@supervisor-mcp/${process.platform}-${process.arch}/bin/supervisor`;
  try {
    return require.resolve(name);
  } catch {
    return undefined;
  }
}

function onPath() {
  const self = fs.realpathSync(__filename);
  for (const folder of (process.env.PATH || "").split(path.delimiter).filter(Boolean)) {
    const program = path.join(folder, "supervisor");
    try {
      fs.accessSync(program, fs.constants.X_OK);
      // Not this launcher again, which npm puts on the PATH too.
      if (fs.realpathSync(program) !== self) return program;
    } catch {
      // Not here.
    }
  }
  return undefined;
}

const program = installed() || onPath();
if (!program) {
  console.error(
    `supervisor: no program for ${process.platform}-${process.arch} is installed, and none is on the PATH. ` +
      "In a clone of the repository run: cargo install --path . --locked" +
      (process.platform === "win32" ? " (on Windows in WSL)" : ""),
  );
  process.exit(127);
}
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`supervisor: ${program} cannot be started: ${error.message}`);
  process.exit(126);
});
child.on("exit", (code, signal) => {
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  } else {
    process.exit(code ?? 1);
  }
});
