//! Runs `mocha` with our own reporter, which every version of mocha accepts and which writes to a private path.

use std::path::Path;

use futures_util::future::FutureExt as _;
use serde::Deserialize;

use super::super::build::BuildError;
use super::super::command::program;
use super::super::outcome::{Outcome, TestState};
use super::super::report::{ReportAdapter, TerminalOutput, TestRunReport, failed};
use super::super::session::Session;
use super::super::step::SuiteStep;
use super::npm::{Tool, run_tool};
use super::{Runner, escape_regex, jest, never_detected};
use supervisor_languages::JAVASCRIPT;
use supervisor_process::FinishedProcess;

pub(super) static RUNNER: Runner = Runner {
    name: "mocha",
    ecosystem: Some(&JAVASCRIPT),
    manifests: &[],
    command: &["npx", "mocha"],
    find: never_detected,
    recognises,
    run: |step, session| {
        async move { run_tool(&TOOL, &strip_reporter(step), session).await }.boxed()
    },
    select: |step, names| {
        let mut argv = step.argv.clone();
        let mut patterns = Vec::new();
        for name in names {
            let (file, title) = name.split_once(" > ")?;
            patterns.push(escape_regex(title));
            if !argv.iter().any(|word| word == file) {
                argv.push(file.to_owned());
            }
        }
        argv.extend([String::from("--grep"), jest::match_any_title(&patterns)]);
        Some(argv)
    },
    names_are_paths: true,
};

pub(super) static TOOL: Tool = Tool {
    adapter: ReportAdapter {
        program: "mocha",
        file: "mocha.json",
        parse: |t, s| parse(t, s.root()),
        explain,
        terminal: TerminalOutput::HidesFailures,
    },
    flags,
    options_first: false,
};

const REPORTER: &str = include_str!("mocha/reporter.cjs");

fn flags(session: &Session<'_>) -> std::io::Result<Vec<String>> {
    let report = serde_json::to_string(&session.file(TOOL.adapter.file))?;
    let reporter = session.file("reporter.cjs");
    std::fs::write(
        &reporter,
        REPORTER.replace("REPORT,", &format!("{report},")),
    )?;
    Ok(vec![
        String::from("--reporter"),
        reporter.display().to_string(),
    ])
}

fn recognises(argv: &[String]) -> bool {
    matches!(program(argv), "mocha" | "_mocha" | "ts-mocha")
        && !argv
            .iter()
            .any(|a| a == "--watch" || a == "-w" || a == "--parallel")
}

/// Removes the command's own reporter, because some versions reject a second one.
fn strip_reporter(step: &SuiteStep) -> SuiteStep {
    let mut argv = Vec::new();
    let mut words = step.argv.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--reporter" | "-R" => drop(words.next()),
            word if word.starts_with("--reporter=") => {}
            _ => argv.push(word.clone()),
        }
    }
    SuiteStep {
        argv,
        ..step.clone()
    }
}

/// Mocha exits without a report if a file cannot be loaded.
fn explain(finished: &FinishedProcess, code: i32) -> Option<Outcome> {
    let output = format!("{}\n{}", finished.stdout.text(), finished.stderr.text());
    if code != 0 && output.contains("No test files found") {
        return Some(Outcome::NoTests);
    }
    const LOAD_ERRORS: &[&str] = &[
        "SyntaxError",
        "Cannot find module",
        "ERR_MODULE_NOT_FOUND",
        "does not provide an export",
    ];
    let error_line = output
        .lines()
        .find(|l| LOAD_ERRORS.iter().any(|what| l.contains(what)))?;
    (code != 0).then(|| Outcome::DidNotBuild {
        errors: vec![BuildError::new(error_line.trim())],
    })
}

#[derive(Deserialize)]
struct Test {
    title: String,
    #[serde(default)]
    file: Option<String>,
    state: State,
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Passed,
    Skipped,
    Failed,
}

pub(super) fn parse(text: &str, root: &Path) -> Option<TestRunReport> {
    let tests: Vec<Test> = serde_json::from_str(text).ok()?;
    let mut report = TestRunReport::default();
    for test in tests {
        let path = test.file.as_deref().map(Path::new).unwrap_or(Path::new(""));
        let name = format!(
            "{} > {}",
            path.strip_prefix(root).unwrap_or(path).display(),
            test.title
        );
        let state = match test.state {
            State::Passed => TestState::Passed,
            State::Skipped => TestState::Skipped,
            State::Failed => failed(test.message),
        };
        report.add(&name, state);
    }
    Some(report)
}

#[cfg(test)]
mod tests {
    use super::super::super::command::argv;
    use super::super::super::outcome::TestName;
    use super::*;

    #[test]
    fn repeated_titles_are_numbered() {
        let text = r#"[{"title":"sum adds","file":"/p/t.js","state":"passed"},
            {"title":"sum bad","file":"/p/t.js","state":"failed","message":"boo"},
            {"title":"sum adds","file":"/p/t.js","state":"failed","message":"no"},
            {"title":"later","file":"/p/t.js","state":"skipped"}]"#;
        let report = parse(text, Path::new("/p")).expect("a complete report");
        assert_eq!(
            report.tests[&TestName::from("t.js > sum adds")],
            TestState::Passed
        );
        assert_eq!(
            report.tests[&TestName::from("t.js > sum adds #2")],
            failed("no")
        );
        assert_eq!(
            report.tests[&TestName::from("t.js > sum bad")],
            failed("boo")
        );
        assert_eq!(
            report.tests[&TestName::from("t.js > later")],
            TestState::Skipped
        );
    }

    #[test]
    fn own_reporter_of_the_command_is_removed() {
        for words in [
            "mocha --reporter spec test/a.js",
            "mocha -R dot test/a.js",
            "mocha test/a.js --reporter=min",
        ] {
            let step = SuiteStep::new(argv(words), Path::new("/p"));
            assert_eq!(
                strip_reporter(&step).argv,
                argv("mocha test/a.js"),
                "{words}"
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_reports_do_not_panic(text in super::super::super::garbage::garbage(
            r#"[{"title":"a","state":"failed","message":"b"},{"title":"c","file":"t.js","state":"passed"}]"#
        )) {
            let _ = parse(&text, Path::new("/p"));
        }
    }
}
