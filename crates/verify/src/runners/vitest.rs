//! `vitest`: results from its JSON reporter at a private path, in the format of jest.

use futures_util::future::FutureExt as _;

use super::super::command::program;
use super::super::report::{Reporting, Terminal};
use super::jest;
use super::npm::{Tool, run_tool};
use super::{Runner, by_command_alone};
use supervisor_languages::JAVASCRIPT;

pub(super) static RUNNER: Runner = Runner {
    name: "vitest",
    ecosystem: Some(&JAVASCRIPT),
    manifests: &[],
    command: &["npx", "vitest", "run"],
    find: by_command_alone,
    recognises,
    run: |step, session| async move { run_tool(&TOOL, step, session).await }.boxed(),
    select: jest::select,
    names_are_paths: true,
};

pub(super) static TOOL: Tool = Tool {
    reporting: Reporting {
        program: "vitest",
        file: "vitest.json",
        parse: |t, s| jest::parse(t, s.root()),
        explain: jest::explain,
        terminal: Terminal::Tells,
    },
    flags: |session| {
        let report = session.file(TOOL.reporting.file);
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
