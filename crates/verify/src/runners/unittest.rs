//! Runs `python -m unittest` through our own small program in the same interpreter, which records every result at a
//! private path.

use std::path::PathBuf;

use futures_util::future::{BoxFuture, FutureExt as _};
use serde::Deserialize;

use super::super::build::BuildError;
use super::super::command::program;
use super::super::outcome::{Outcome, TestState};
use super::super::report::{ReportAdapter, TerminalOutput, TestRunReport, failed};
use super::super::session::{RunnerResult, Session};
use super::super::step::SuiteStep;
use super::{Runner, never_detected};
use supervisor_languages::PYTHON;
use supervisor_process::FinishedProcess;

pub(super) static RUNNER: Runner = Runner {
    name: "unittest",
    ecosystem: Some(&PYTHON),
    manifests: &[],
    command: &["python3", "-m", "unittest"],
    find: never_detected,
    recognises: |argv| module_position(argv).is_some(),
    run,
    select,
    names_are_paths: true,
};

static ADAPTER: ReportAdapter = ReportAdapter {
    program: "python",
    file: "unittest.jsonl",
    parse: |text, _| parse(text),
    explain,
    terminal: TerminalOutput::ShowsFailures,
};

/// The program that runs the tests and records the results.
const PROGRAM: &str = include_str!("unittest/run.py");

/// The command that runs the tests in these files.
pub(super) fn test_command(python: &str, files: &[PathBuf]) -> Vec<String> {
    let mut argv: Vec<String> = [python, "-m", "unittest"].map(String::from).to_vec();
    let dir = files
        .iter()
        .find_map(|f| f.parent().filter(|d| !d.as_os_str().is_empty()));
    let uses_suffix = files.iter().all(|f| {
        f.file_stem()
            .is_some_and(|s| s.to_string_lossy().ends_with("_test"))
    });
    if dir.is_some() || uses_suffix {
        argv.push(String::from("discover"));
    }
    if let Some(dir) = dir {
        argv.extend([
            String::from("-s"),
            dir.display().to_string(),
            String::from("-t"),
            String::from("."),
        ]);
    }
    if uses_suffix {
        argv.extend(["-p", "*_test.py"].map(String::from));
    }
    argv
}

/// The position of `-m unittest` in the command of a Python interpreter.
fn module_position(argv: &[String]) -> Option<usize> {
    program(argv).starts_with("python").then_some(())?;
    argv.windows(2)
        .position(|w| w[0] == "-m" && w[1] == "unittest")
}

fn run<'a>(step: &'a SuiteStep, session: &'a Session<'a>) -> BoxFuture<'a, RunnerResult> {
    async move {
        let (script, report) = (session.file("run_unittest.py"), session.file(ADAPTER.file));
        if let Err(error) = std::fs::write(&script, PROGRAM) {
            return RunnerResult::no_report_dir(&error);
        }
        let mut argv = step.argv.clone();
        let at = argv
            .windows(2)
            .position(|w| w[0] == "-m" && w[1] == "unittest")
            .unwrap_or_default();
        argv.splice(
            at..at + 2,
            [script.display().to_string(), report.display().to_string()],
        );
        ADAPTER.run(session, &argv, &[]).await
    }
    .boxed()
}

/// Python 3.12 exits with 5 if it finds no tests.
fn explain(finished: &FinishedProcess, code: i32) -> Option<Outcome> {
    let err = finished.stderr.text();
    if err.contains("Ran 0 tests") {
        return Some(Outcome::NoTests);
    }
    let missing = err.lines().find(|l| l.contains("No module named unittest"));
    missing.filter(|_| code != 0).map(|l| Outcome::CouldNotRun {
        why: l.trim().to_owned(),
        remedy: String::from("use a whole Python or name another command as `test_cmd`"),
    })
}

/// `tests/test_a.py::TestA::test_x` becomes `tests.test_a.TestA.test_x`.
fn select(step: &SuiteStep, names: &[&str]) -> Option<Vec<String>> {
    let at = module_position(&step.argv)? + 2;
    let mut argv = step.argv[..at].to_vec();
    for name in names {
        let (file, inside) = name.split_once("::")?;
        let module = file.strip_suffix(".py")?.replace('/', ".");
        argv.push(format!("{module}.{}", inside.replace("::", ".")));
    }
    Some(argv)
}

#[derive(Deserialize)]
struct UnittestRecord {
    /// `None` in the last line, which marks the end of the report.
    id: Option<String>,
    #[serde(default)]
    file: String,
    #[serde(default)]
    state: String,
    #[serde(default)]
    message: String,
}

pub(super) fn parse(text: &str) -> Option<TestRunReport> {
    let mut report = TestRunReport::default();
    let mut has_end = false;
    for line in text.lines() {
        let record: UnittestRecord = serde_json::from_str(line).ok()?;
        let Some(id) = record.id else {
            has_end = true;
            continue;
        };
        let state = match record.state.as_str() {
            "passed" => TestState::Passed,
            "skipped" => TestState::Skipped,
            "unloaded" => {
                let last = record
                    .message
                    .lines()
                    .rev()
                    .find(|l| l.contains("Error"))
                    .unwrap_or(&record.message);
                let mut error = BuildError::new(last.trim());
                if !record.file.is_empty() {
                    error = error.at(record.file, None);
                }
                report.errors.push(error);
                continue;
            }
            _ => failed(error_first(&record.message)),
        };
        report.add(&format!("{}::{id}", record.file), state);
    }
    has_end.then_some(report)
}

/// The error from the end of a traceback, then the whole traceback.
fn error_first(trace: &str) -> String {
    let from = trace.lines().position(|l| {
        l.split(':')
            .next()
            .is_some_and(|kind| kind.ends_with("Error") && !kind.contains(' '))
    });
    let error: Vec<&str> = from
        .map(|at| trace.lines().skip(at).collect())
        .unwrap_or_default();
    if error.is_empty() {
        trace.to_owned()
    } else {
        format!("{}\n\n{trace}", error.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::command::argv;
    use super::super::super::outcome::TestName;
    use super::*;

    #[test]
    fn names_follow_pytest_and_import_errors_are_found() {
        let text = "{\"id\":\"TestA::test_x\",\"file\":\"test_a.py\",\"state\":\"passed\"}\n\
            {\"id\":\"TestA::test_y\",\"file\":\"test_a.py\",\"state\":\"failed\",\"message\":\"Traceback:\\n  x\\nAssertionError: 1 != 2\"}\n\
            {\"id\":\"test_b\",\"file\":\"test_b.py\",\"state\":\"unloaded\",\"message\":\"ModuleNotFoundError: No module named 'calc'\"}\n{\"id\":null}\n";
        let report = parse(text).expect("a complete report");
        assert_eq!(
            report.tests[&TestName::from("test_a.py::TestA::test_x")],
            TestState::Passed
        );
        assert!(
            matches!(&report.tests[&TestName::from("test_a.py::TestA::test_y")], TestState::Failed(m) if m.starts_with("AssertionError: 1 != 2"))
        );
        assert_eq!(
            (
                report.errors[0].file.as_deref(),
                report.errors[0].missing.as_slice()
            ),
            (Some("test_b.py"), &["calc".to_owned()][..])
        );
        assert_eq!(
            parse(text.trim_end().trim_end_matches("{\"id\":null}")),
            None,
            "without its end"
        );
    }

    #[test]
    fn command_depends_on_location_of_tests() {
        let command_for = |files: &[&str]| {
            test_command(
                "python3",
                &files.iter().map(PathBuf::from).collect::<Vec<_>>(),
            )
            .join(" ")
        };
        assert_eq!(command_for(&["test_a.py"]), "python3 -m unittest");
        assert_eq!(
            command_for(&["a_test.py"]),
            "python3 -m unittest discover -p *_test.py"
        );
        assert_eq!(
            command_for(&["tests/test_a.py"]),
            "python3 -m unittest discover -s tests -t ."
        );
    }

    #[test]
    fn tests_are_selected_by_module_and_class() {
        let step = SuiteStep::new(argv("python3 -m unittest discover -s tests"), "/p");
        let narrowed = select(&step, &["tests/test_a.py::TestA::test_x"]).expect("can select");
        assert_eq!(
            narrowed,
            argv("python3 -m unittest tests.test_a.TestA.test_x")
        );
    }
}
