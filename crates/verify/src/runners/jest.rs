//! Runs `jest` and reads its JSON report from a private path. Vitest uses the same format.

use std::path::Path;

use futures_util::future::FutureExt as _;
use serde::Deserialize;

use super::super::build::BuildError;
use super::super::command::program;
use super::super::outcome::{Outcome, TestState};
use super::super::report::{ReportAdapter, TerminalOutput, TestRunReport, failed, strip_ansi};
use super::super::step::SuiteStep;
use super::npm::{Tool, run_tool};
use super::{Runner, escape_regex, never_detected};
use supervisor_languages::JAVASCRIPT;
use supervisor_process::FinishedProcess;

pub(super) static RUNNER: Runner = Runner {
    name: "jest",
    ecosystem: Some(&JAVASCRIPT),
    manifests: &[],
    command: &["npx", "jest"],
    find: never_detected,
    recognises,
    run: |step, session| async move { run_tool(&TOOL, step, session).await }.boxed(),
    select,
    names_are_paths: true,
};

pub(super) static TOOL: Tool = Tool {
    adapter: ReportAdapter {
        program: "jest",
        file: "jest.json",
        parse: |t, s| parse(t, s.root()),
        explain,
        terminal: TerminalOutput::ShowsFailures,
    },
    flags: |session| {
        let report = session.file(TOOL.adapter.file);
        // Some wrappers start watch mode by default.
        Ok(vec![
            String::from("--json"),
            format!("--outputFile={}", report.display()),
            String::from("--watchAll=false"),
        ])
    },
    options_first: false,
};

fn recognises(argv: &[String]) -> bool {
    let is_react_scripts =
        program(argv).ends_with("react-scripts") && argv.get(1).is_some_and(|a| a == "test");
    (program(argv) == "jest" || is_react_scripts)
        && !argv
            .iter()
            .any(|a| a.starts_with("--outputFile") || a.starts_with("--watch"))
}

/// Jest writes no report if it finds no tests.
pub(super) fn explain(finished: &FinishedProcess, code: i32) -> Option<Outcome> {
    let all = format!("{}\n{}", finished.stdout.text(), finished.stderr.text());
    let messages = [
        "No tests found, exiting",
        "No test files found",
        "No test suite found in file",
    ];
    (code != 0 && messages.iter().any(|what| all.contains(what))).then_some(Outcome::NoTests)
}

/// `src/a.test.js > sum > adds` becomes the file and an anchored pattern of the titles.
pub(super) fn select(step: &SuiteStep, names: &[&str]) -> Option<Vec<String>> {
    let mut argv = step.argv.clone();
    let mut patterns = Vec::new();
    for name in names {
        let (file, titles) = name.split_once(" > ")?;
        patterns.push(escape_regex(&titles.replace(" > ", " ")));
        if !argv.iter().any(|word| word == file) {
            argv.push(file.to_owned());
        }
    }
    argv.extend([String::from("-t"), match_any_title(&patterns)]);
    Some(argv)
}

/// A pattern that matches exactly one of these titles.
pub(super) fn match_any_title(patterns: &[String]) -> String {
    match patterns {
        [one] => format!("^{one}$"),
        many => format!("^(?:{})$", many.join("|")),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    test_results: Vec<FileResult>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileResult {
    name: String,
    status: String,
    #[serde(default)]
    message: String,
    assertion_results: Vec<Assertion>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Assertion {
    #[serde(default)]
    ancestor_titles: Vec<String>,
    title: String,
    status: String,
    #[serde(default)]
    failure_messages: Option<Vec<String>>,
}

pub(super) fn parse(text: &str, root: &Path) -> Option<TestRunReport> {
    let document: Document = serde_json::from_str(text).ok()?;
    let mut report = TestRunReport::default();
    for file in document.test_results {
        let path = Path::new(&file.name);
        let path = path
            .strip_prefix(root)
            .unwrap_or(path)
            .to_string_lossy()
            .into_owned();
        if file.status == "failed" && file.assertion_results.is_empty() {
            let message = strip_ansi(&file.message);
            if message.contains("must contain at least one test")
                || message.contains("No test suite found")
            {
                continue;
            }
            let is_error_line = |l: &&str| {
                (l.contains("Error") || l.contains("Cannot find"))
                    && !l.trim_start().starts_with("at ")
            };
            let error_line = message
                .lines()
                .find(is_error_line)
                .unwrap_or(message.trim())
                .trim()
                .to_owned();
            let mut error = BuildError::new(error_line);
            if error.missing.is_empty() {
                error.missing = BuildError::new(&message).missing;
            }
            report.errors.push(error.at(path, None));
            continue;
        }
        for test in file.assertion_results {
            let titles: Vec<String> = test
                .ancestor_titles
                .into_iter()
                .filter(|t| !t.is_empty())
                .chain([test.title])
                .collect();
            let state = match test.status.as_str() {
                "passed" => TestState::Passed,
                "failed" => failed(test.failure_messages.unwrap_or_default().join("\n")),
                _ => TestState::Skipped,
            };
            report.add(&format!("{path} > {}", titles.join(" > ")), state);
        }
    }
    Some(report)
}

#[cfg(test)]
mod tests {
    use super::super::super::command::argv;
    use super::super::super::outcome::TestName;
    use super::*;

    #[test]
    fn results_are_named_by_file_and_titles() {
        let text = r#"{"numTotalTests":3,"testResults":[{"name":"/p/a.test.js","status":"failed","message":"","assertionResults":[
            {"ancestorTitles":["sum"],"title":"adds","status":"passed","failureMessages":[]},
            {"ancestorTitles":["sum"],"title":"bad","status":"failed","failureMessages":["Error: boo"]},
            {"ancestorTitles":[],"title":"later","status":"pending","failureMessages":[]}]},
            {"name":"/p/b.test.js","status":"failed","message":"  Cannot find module './nope' from 'b.test.js'","assertionResults":[]}]}"#;
        let report = parse(text, Path::new("/p")).expect("a complete report");
        assert_eq!(
            report.tests[&TestName::from("a.test.js > sum > adds")],
            TestState::Passed
        );
        assert_eq!(
            report.tests[&TestName::from("a.test.js > sum > bad")],
            failed("Error: boo")
        );
        assert_eq!(
            report.tests[&TestName::from("a.test.js > later")],
            TestState::Skipped
        );
        assert_eq!(report.errors[0].missing, ["./nope"]);
        assert_eq!(parse("{}", Path::new("/p")), None);
    }

    #[test]
    fn test_is_selected_by_file_and_titles() {
        let step = SuiteStep::new(argv("npx jest"), "/p");
        let narrowed = select(&step, &["a.test.js > sum > adds (1)"]).expect("can select");
        assert_eq!(
            narrowed,
            ["npx", "jest", "a.test.js", "-t", r"^sum adds \(1\)$"]
        );
        let narrowed =
            select(&step, &["a.test.js > adds", "a.test.js > halves"]).expect("can select");
        assert_eq!(
            narrowed,
            ["npx", "jest", "a.test.js", "-t", "^(?:adds|halves)$"]
        );
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_reports_do_not_panic(text in super::super::super::garbage::garbage(
            r#"{"testResults":[{"name":"/p/a.js","status":"failed","message":"Cannot find module './x'","assertionResults":[]}]}"#
        )) {
            let _ = parse(&text, Path::new("/p"));
        }
    }
}
