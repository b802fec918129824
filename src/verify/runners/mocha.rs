//! `mocha`: results from its JSON reporter at a private path.

use std::path::Path;

use futures_util::future::FutureExt as _;
use serde::Deserialize;

use super::super::build::BuildError;
use super::super::command::program;
use super::super::outcome::{Outcome, TestState};
use super::super::report::{Reporting, Terminal, TestRunReport, failed};
use super::npm::{Tool, run_tool};
use super::{Runner, by_command_alone, jest, quoted};
use crate::languages::JAVASCRIPT;
use crate::process::FinishedProcess;

pub(super) static RUNNER: Runner = Runner {
    name: "mocha",
    ecosystem: Some(&JAVASCRIPT),
    manifests: &[],
    command: &["npx", "mocha"],
    find: by_command_alone,
    recognises,
    run: |step, session| async move { run_tool(&TOOL, step, session).await }.boxed(),
    select: |step, names| {
        let mut argv = step.argv.clone();
        let mut patterns = Vec::new();
        for name in names {
            let (file, title) = name.split_once(" > ")?;
            patterns.push(quoted(title));
            if !argv.iter().any(|word| word == file) {
                argv.push(file.to_owned());
            }
        }
        argv.extend([String::from("--grep"), jest::one_of_titles(&patterns)]);
        Some(argv)
    },
    names_are_paths: true,
};

pub(super) static TOOL: Tool = Tool {
    reporting: Reporting {
        program: "mocha",
        file: "mocha.json",
        parse: |t, s| parse(t, s.root()),
        explain,
        terminal: Terminal::Silent,
    },
    flags: |session| {
        let report = session.file(TOOL.reporting.file);
        Ok(["--reporter", "json", "--reporter-option", &format!("output={}", report.display())]
            .map(String::from)
            .to_vec())
    },
    options_first: false,
};

fn recognises(argv: &[String]) -> bool {
    matches!(program(argv), "mocha" | "_mocha" | "ts-mocha")
        && !argv.iter().any(|a| a == "--watch" || a == "-w" || a == "--parallel")
}

/// A file that cannot be loaded ends mocha before it reports.
fn explain(finished: &FinishedProcess, code: i32) -> Option<Outcome> {
    let err = format!("{}\n{}", finished.stdout.text(), finished.stderr.text());
    if code != 0 && err.contains("No test files found") {
        return Some(Outcome::NoTests);
    }
    const LOADING: &[&str] =
        &["SyntaxError", "Cannot find module", "ERR_MODULE_NOT_FOUND", "does not provide an export"];
    let said = err.lines().find(|l| LOADING.iter().any(|what| l.contains(what)))?;
    (code != 0).then(|| Outcome::DidNotBuild { errors: vec![BuildError::new(said.trim())] })
}

#[derive(Deserialize)]
struct Document {
    stats: Stats,
    tests: Vec<Test>,
    #[serde(default)]
    pending: Vec<Test>,
    failures: Vec<Test>,
}

#[derive(Deserialize)]
struct Stats {
    passes: usize,
    failures: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Test {
    full_title: String,
    #[serde(default)]
    file: Option<String>,
    #[serde(default)]
    err: Failure,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Failure {
    message: Option<String>,
}

pub(super) fn parse(text: &str, root: &Path) -> Option<TestRunReport> {
    let document: Document = serde_json::from_str(text).ok()?;
    let name = |test: &Test| {
        let path = test.file.as_deref().map(Path::new).unwrap_or(Path::new(""));
        format!("{} > {}", path.strip_prefix(root).unwrap_or(path).display(), test.full_title)
    };
    let is_in =
        |list: &[Test], test: &Test| list.iter().any(|t| t.full_title == test.full_title && t.file == test.file);
    let mut report = TestRunReport::default();
    for test in document.failures.iter().chain(document.tests.iter().filter(|t| !is_in(&document.failures, t))) {
        let state = if let Some(message) = &test.err.message {
            failed(message)
        } else if is_in(&document.failures, test) {
            failed("")
        } else if is_in(&document.pending, test) {
            TestState::Skipped
        } else {
            TestState::Passed
        };
        report.add(&name(test), state);
    }
    let count = |passed: bool| {
        report.tests.values().filter(|s| (**s == TestState::Passed) == passed && **s != TestState::Skipped).count()
    };
    if count(true) != document.stats.passes || count(false) != document.stats.failures {
        report.doubts.push(String::from("mocha's counts and its list of tests differ"));
    }
    Some(report)
}

#[cfg(test)]
mod tests {
    use super::super::super::outcome::TestName;
    use super::*;

    #[test]
    fn lists_become_named_results() {
        let text = r#"{"stats":{"passes":1,"failures":1,"pending":1},
            "tests":[{"fullTitle":"sum adds","file":"/p/t.js","err":{}},{"fullTitle":"sum bad","file":"/p/t.js","err":{"message":"boo"}},
                     {"fullTitle":"later","file":"/p/t.js","err":{}}],
            "pending":[{"fullTitle":"later","file":"/p/t.js","err":{}}],
            "failures":[{"fullTitle":"sum bad","file":"/p/t.js","err":{"message":"boo"}}],"passes":[]}"#;
        let report = parse(text, Path::new("/p")).expect("whole");
        assert_eq!(report.tests[&TestName::from("t.js > sum adds")], TestState::Passed);
        assert_eq!(report.tests[&TestName::from("t.js > sum bad")], failed("boo"));
        assert_eq!(report.tests[&TestName::from("t.js > later")], TestState::Skipped);
        assert!(report.doubts.is_empty(), "{report:?}");
    }

    proptest::proptest! {
        #[test]
        fn no_report_is_too_odd(text in super::super::super::garbage::garbage(
            r#"{"stats":{"passes":0,"failures":1},"tests":[{"fullTitle":"a","err":{"message":"b"}}],"failures":[]}"#
        )) {
            let _ = parse(&text, Path::new("/p"));
        }
    }
}
