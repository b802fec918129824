//! Runs `bun test` and reads its JUnit report from a private path.

use futures_util::future::FutureExt as _;

use super::super::build::BuildError;
use super::super::command::program;
use super::super::junit;
use super::super::outcome::Outcome;
use super::super::report::{ReportAdapter, TerminalOutput};
use super::npm::{Tool, run_tool};
use super::{Runner, escape_regex, jest, never_detected};
use supervisor_languages::JAVASCRIPT;
use supervisor_process::FinishedProcess;

pub(super) static RUNNER: Runner = Runner {
    name: "bun",
    ecosystem: Some(&JAVASCRIPT),
    manifests: &[],
    command: &["bun", "test"],
    find: never_detected,
    recognises: |argv| {
        program(argv) == "bun"
            && argv.get(1).is_some_and(|a| a == "test")
            && !argv.iter().any(|a| a.starts_with("--reporter"))
    },
    run: |step, session| async move { run_tool(&TOOL, step, session).await }.boxed(),
    select: |step, names| {
        let mut argv = step.argv.clone();
        let mut patterns = Vec::new();
        for name in names {
            let (file, titles) = name.split_once(" > ")?;
            patterns.push(escape_regex(&titles.replace(" > ", " ")));
            let file = format!("./{file}");
            if !argv.contains(&file) {
                argv.push(file);
            }
        }
        argv.extend([String::from("-t"), jest::match_any_title(&patterns)]);
        Some(argv)
    },
    names_are_paths: true,
};

static TOOL: Tool = Tool {
    adapter: ReportAdapter {
        program: "bun",
        file: "bun.xml",
        parse: |text, _| {
            Some(junit::into_report(
                &junit::parse(text)?,
                junit::Naming::Titles,
            ))
        },
        explain,
        terminal: TerminalOutput::ShowsFailures,
    },
    flags: |session| {
        let report = session.file(TOOL.adapter.file);
        Ok(vec![
            String::from("--reporter=junit"),
            format!("--reporter-outfile={}", report.display()),
        ])
    },
    options_first: false,
};

fn explain(finished: &FinishedProcess, code: i32) -> Option<Outcome> {
    let output = format!("{}\n{}", finished.stdout.text(), finished.stderr.text());
    if code != 0 && output.contains("did not match any test files")
        || output.contains("No tests found")
    {
        return Some(Outcome::NoTests);
    }
    let error = output.lines().find(|l| l.starts_with("error: "))?;
    (code != 0).then(|| Outcome::DidNotBuild {
        errors: vec![BuildError::new(error.trim_start_matches("error: "))],
    })
}
