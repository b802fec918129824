//! `vitest`: results from its JSON reporter at a private path, in the format of jest.

use futures_util::future::FutureExt as _;

use super::super::command::{program, without_wrappers};
use super::super::report::{Reporting, Terminal};
use super::super::suite::Ecosystem;
use super::Runner;
use super::jest;
use super::npm::{Tool, run_tool};

pub(super) static RUNNER: Runner = Runner {
    name: "vitest",
    ecosystem: Some(Ecosystem::Node),
    manifests: &[],
    command: &["npx", "vitest", "run"],
    recognises,
    run: |suite, session| async move { run_tool(&TOOL, suite, session).await }.boxed(),
    only: jest::only,
};

pub(super) static TOOL: Tool = Tool {
    recognises,
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
    let argv = without_wrappers(argv);
    // Watching and benchmarks are not test runs.
    program(argv) == "vitest"
        && !argv
            .iter()
            .skip(1)
            .any(|a| a.starts_with("--outputFile") || matches!(a.as_str(), "watch" | "dev" | "bench"))
}
