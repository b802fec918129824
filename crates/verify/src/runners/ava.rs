//! Runs `ava` and reads its results from the TAP that AVA writes to standard output. The output of tests goes elsewhere.

use futures_util::future::{BoxFuture, FutureExt as _};

use super::super::build::BuildError;
use super::super::command::program;
use super::super::outcome::{Outcome, TestState};
use super::super::report::{ReportAdapter, TerminalOutput, TestRunReport, failed};
use super::super::session::{RunnerResult, Session};
use super::super::step::SuiteStep;
use super::super::test_titles::{TestFileText, find_file_with_title, read_test_files};
use super::{Runner, never_detected};
use supervisor_languages::JAVASCRIPT;
use supervisor_process::FinishedProcess;

pub(super) static RUNNER: Runner = Runner {
    name: "ava",
    ecosystem: Some(&JAVASCRIPT),
    manifests: &[],
    command: &["npx", "ava"],
    find: never_detected,
    recognises: |argv| {
        program(argv) == "ava"
            && !argv
                .iter()
                .any(|a| a == "--watch" || a == "-w" || a == "--tap")
    },
    run,
    select,
    names_are_paths: true,
};

static ADAPTER: ReportAdapter = ReportAdapter {
    program: "ava",
    file: "ava.tap",
    parse: |text, session| parse(text, &read_test_files(&session.files_root(), &JAVASCRIPT)),
    explain,
    terminal: TerminalOutput::HidesFailures,
};

fn run<'a>(step: &'a SuiteStep, session: &'a Session<'a>) -> BoxFuture<'a, RunnerResult> {
    async move {
        let argv = step.with_arguments(&[String::from("--tap")]);
        let finished = session.run_into(ADAPTER.file, &argv, &[]).await;
        ADAPTER.judge(session, &finished)
    }
    .boxed()
}

fn explain(finished: &FinishedProcess, code: i32) -> Option<Outcome> {
    let err = finished.stderr.text();
    (code != 0 && err.contains("Couldn’t find any")).then_some(Outcome::NoTests)
}

/// Selects by file and title. A `*` in a title also matches other titles.
fn select(step: &SuiteStep, names: &[&str]) -> Option<Vec<String>> {
    let mut argv = step.argv.clone();
    for name in names {
        let (file, title) = name.split_once(" > ")?;
        argv.push(format!("--match={title}"));
        if !argv.iter().any(|word| word == file) {
            argv.push(file.to_owned());
        }
    }
    Some(argv)
}

/// One TAP result line with the indented lines below it.
struct TapPoint<'a> {
    passed: bool,
    title: &'a str,
    directive: &'a str,
    below: Vec<&'a str>,
}

/// `None` without the plan, which AVA writes last.
pub(super) fn parse(text: &str, files: &[TestFileText]) -> Option<TestRunReport> {
    let mut points: Vec<TapPoint<'_>> = Vec::new();
    let mut has_plan = false;
    for line in text.lines() {
        let passed = line.starts_with("ok ");
        if passed || line.starts_with("not ok ") {
            let (_, rest) = line.split_once(" - ")?;
            let (title, directive) = rest.rsplit_once(" # ").unwrap_or((rest, ""));
            points.push(TapPoint {
                passed,
                title: title.trim(),
                directive,
                below: Vec::new(),
            });
        } else if let (Some(point), true) = (points.last_mut(), line.starts_with("  ")) {
            point.below.push(line);
        }
        has_plan |= line.starts_with("1..");
    }
    has_plan.then_some(())?;
    let mut report = TestRunReport::default();
    let mut uncaught: Option<&str> = None;
    for point in &points {
        // A file that could not be run is reported twice: first the error, then its exit code.
        if !point.passed
            && let Some((file, _)) = point.title.split_once(" exited ")
        {
            let error = BuildError::new(uncaught.take().unwrap_or(point.title)).at(file, None);
            report.errors.push(error);
            continue;
        }
        if !point.passed && is_error_title(point.title) {
            uncaught = Some(point.title);
            continue;
        }
        let state = match point.directive {
            "SKIP" | "TODO" => TestState::Skipped,
            _ if point.passed => TestState::Passed,
            _ => failed(
                point
                    .below
                    .iter()
                    .map(|l| l.trim_start_matches("  "))
                    .collect::<Vec<_>>()
                    .join("\n"),
            ),
        };
        report.add(&test_name(point.title, files), state);
    }
    report.errors.extend(uncaught.map(BuildError::new));
    Some(report)
}

/// Whether a title is an error such as `Error [ERR_MODULE_NOT_FOUND]: …` or `TypeError: …` instead of a test.
fn is_error_title(title: &str) -> bool {
    let kind = title.split([':', ' ']).next().unwrap_or_default();
    kind.ends_with("Error") && kind.chars().all(char::is_alphanumeric) && title.contains(": ")
}

/// The file and title of a test. AVA names a file only by the part of its path that differs, and not at all if there is
/// only one file.
fn test_name(title: &str, files: &[TestFileText]) -> String {
    let stem = |path: &str| {
        path.rsplit_once('.')
            .map_or(path, |(stem, _)| stem)
            .replace("test/", "")
            .replace(".test", "")
    };
    let parts: Vec<&str> = title.split(" › ").collect();
    for at in (0..parts.len()).rev() {
        let (prefix, own) = (parts[..at].join("/"), parts[at..].join(" › "));
        let fits = |f: &&TestFileText| {
            prefix.is_empty() || stem(&f.path).ends_with(&prefix) || f.path.contains(&prefix)
        };
        if let Some(file) = find_file_with_title(files.iter().filter(fits), &own) {
            return format!("{} > {own}", file.path);
        }
    }
    match files {
        [only] => format!("{} > {title}", only.path),
        _ => title.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::outcome::TestName;
    use super::*;

    const RUN: &str = "TAP version 13\nok 1 - a › later # SKIP\nok 2 - a › adds\nnot ok 3 - a › bad\n  ---\n    message: why\n  ...\n\
        \n1..3\n# tests 3\n";

    fn files() -> Vec<TestFileText> {
        let file = |path: &str, text: &str| TestFileText {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        vec![
            file("test/a.js", "test('adds' test('bad' test.skip('later'"),
            file("test/b.js", "test('adds'"),
        ]
    }

    #[test]
    fn results_are_named_by_file_and_title() {
        let report = parse(RUN, &files()).expect("a complete report");
        assert_eq!(
            report.tests[&TestName::from("test/a.js > adds")],
            TestState::Passed
        );
        assert_eq!(
            report.tests[&TestName::from("test/a.js > later")],
            TestState::Skipped
        );
        assert!(
            matches!(&report.tests[&TestName::from("test/a.js > bad")], TestState::Failed(m) if m.contains("why"))
        );
        assert_eq!(
            parse(&RUN.replace("1..3", ""), &files()),
            None,
            "without its plan"
        );
    }

    #[test]
    fn unloadable_file_is_a_build_error() {
        let text = "not ok 1 - Error [ERR_MODULE_NOT_FOUND]: Cannot find module '/p/nope.js' imported from /p/test/b.js\n\
            not ok 2 - test/b.js exited with a non-zero exit code: 1\n1..0\n";
        let report = parse(text, &files()).expect("a complete report");
        assert_eq!(report.errors[0].file.as_deref(), Some("test/b.js"));
        assert_eq!(report.errors[0].missing, ["/p/nope.js"]);
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_reports_do_not_panic(text in super::super::super::garbage::garbage(RUN)) {
            let _ = parse(&text, &files());
        }
    }
}
