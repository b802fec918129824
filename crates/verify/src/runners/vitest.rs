//! Runs `vitest` and reads its JSON report from a private path. The format is that of jest.

use futures_util::future::FutureExt as _;

use super::super::command::program;
use super::super::report::{ReportAdapter, TerminalOutput};
use super::jest;
use super::npm::{Tool, run_tool};
use super::{Runner, never_detected};
use supervisor_languages::JAVASCRIPT;

pub(super) static RUNNER: Runner = Runner {
    name: "vitest",
    ecosystem: Some(&JAVASCRIPT),
    manifests: &[],
    command: &["npx", "vitest", "run"],
    find: never_detected,
    recognises,
    run: |step, session| async move { run_tool(&TOOL, step, session).await }.boxed(),
    select: jest::select,
    names_are_paths: true,
};

pub(super) static TOOL: Tool = Tool {
    adapter: ReportAdapter {
        program: "vitest",
        file: "vitest.json",
        parse: |t, s| jest::parse(t, s.root()),
        explain: jest::explain,
        terminal: TerminalOutput::ShowsFailures,
    },
    flags: |session| {
        let report = session.file(TOOL.adapter.file);
        Ok(vec![
            String::from("--reporter=default"),
            String::from("--reporter=json"),
            format!("--outputFile.json={}", report.display()),
        ])
    },
    options_first: false,
};

fn recognises(argv: &[String]) -> bool {
    // Watching and benchmarks are not test runs.
    program(argv) == "vitest"
        && !argv.iter().skip(1).any(|a| {
            a.starts_with("--outputFile") || matches!(a.as_str(), "watch" | "dev" | "bench")
        })
}
