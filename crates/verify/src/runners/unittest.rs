//! `python -m unittest`: run by a small program of ours in the same interpreter, which notes every result at a private
//! path.

use std::path::PathBuf;

use futures_util::future::{BoxFuture, FutureExt as _};
use serde::Deserialize;

use super::super::build::BuildError;
use super::super::command::program;
use super::super::outcome::{Outcome, TestState};
use super::super::report::{Reporting, Terminal, TestRunReport, failed};
use super::super::session::{Judgement, Session};
use super::super::step::SuiteStep;
use super::{Runner, by_command_alone};
use supervisor_languages::PYTHON;
use supervisor_process::FinishedProcess;

pub(super) static RUNNER: Runner = Runner {
    name: "unittest",
    ecosystem: Some(&PYTHON),
    manifests: &[],
    command: &["python3", "-m", "unittest"],
    find: by_command_alone,
    recognises: |argv| module_at(argv).is_some(),
    run,
    select,
    names_are_paths: true,
};

static REPORTING: Reporting = Reporting {
    program: "python",
    file: "unittest.jsonl",
    parse: |text, _| parse(text),
    explain,
    terminal: Terminal::Tells,
};

/// See there.
const PROGRAM: &str = include_str!("unittest/run.py");

/// The command for tests that stand in these files.
pub(super) fn command(python: &str, files: &[PathBuf]) -> Vec<String> {
    let mut argv: Vec<String> = [python, "-m", "unittest"].map(String::from).to_vec();
    let dir = files
        .iter()
        .find_map(|f| f.parent().filter(|d| !d.as_os_str().is_empty()));
    let behind = files.iter().all(|f| {
        f.file_stem()
            .is_some_and(|s| s.to_string_lossy().ends_with("_test"))
    });
    if dir.is_some() || behind {
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
    if behind {
        argv.extend(["-p", "*_test.py"].map(String::from));
    }
    argv
}

/// Where `-m unittest` stands behind an interpreter of Python.
fn module_at(argv: &[String]) -> Option<usize> {
    program(argv).starts_with("python").then_some(())?;
    argv.windows(2)
        .position(|w| w[0] == "-m" && w[1] == "unittest")
}

fn run<'a>(step: &'a SuiteStep, session: &'a Session<'a>) -> BoxFuture<'a, Judgement> {
    async move {
        let (script, report) = (
            session.file("run_unittest.py"),
            session.file(REPORTING.file),
        );
        if let Err(error) = std::fs::write(&script, PROGRAM) {
            return Judgement::no_place(&error);
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
        REPORTING.run(session, &argv, &[]).await
    }
    .boxed()
}

/// Python 3.12 ends with 5 where nothing was found.
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

/// `tests/test_a.py::TestA::test_x` is `tests.test_a.TestA.test_x`.
fn select(step: &SuiteStep, names: &[&str]) -> Option<Vec<String>> {
    let at = module_at(&step.argv)? + 2;
    let mut argv = step.argv[..at].to_vec();
    for name in names {
        let (file, inside) = name.split_once("::")?;
        let module = file.strip_suffix(".py")?.replace('/', ".");
        argv.push(format!("{module}.{}", inside.replace("::", ".")));
    }
    Some(argv)
}

#[derive(Deserialize)]
struct NotedResult {
    /// `None` in the last line, which says that all is told.
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
    let mut ended = false;
    for line in text.lines() {
        let noted: NotedResult = serde_json::from_str(line).ok()?;
        let Some(id) = noted.id else {
            ended = true;
            continue;
        };
        let state = match noted.state.as_str() {
            "passed" => TestState::Passed,
            "skipped" => TestState::Skipped,
            "unloaded" => {
                let last = noted
                    .message
                    .lines()
                    .rev()
                    .find(|l| l.contains("Error"))
                    .unwrap_or(&noted.message);
                let mut error = BuildError::new(last.trim());
                if !noted.file.is_empty() {
                    error = error.at(noted.file, None);
                }
                report.errors.push(error);
                continue;
            }
            _ => failed(why_first(&noted.message)),
        };
        report.add(&format!("{}::{id}", noted.file), state);
    }
    ended.then_some(report)
}

/// The last line of a trace tells why.
fn why_first(trace: &str) -> String {
    let from = trace.lines().position(|l| {
        l.split(':')
            .next()
            .is_some_and(|kind| kind.ends_with("Error") && !kind.contains(' '))
    });
    let why: Vec<&str> = from
        .map(|at| trace.lines().skip(at).collect())
        .unwrap_or_default();
    if why.is_empty() {
        trace.to_owned()
    } else {
        format!("{}\n\n{trace}", why.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::command::argv;
    use super::super::super::outcome::TestName;
    use super::*;

    #[test]
    fn results_are_named_as_pytest_would_and_a_module_that_cannot_be_imported_is_a_build_error() {
        let text = "{\"id\":\"TestA::test_x\",\"file\":\"test_a.py\",\"state\":\"passed\"}\n\
            {\"id\":\"TestA::test_y\",\"file\":\"test_a.py\",\"state\":\"failed\",\"message\":\"Traceback:\\n  x\\nAssertionError: 1 != 2\"}\n\
            {\"id\":\"test_b\",\"file\":\"test_b.py\",\"state\":\"unloaded\",\"message\":\"ModuleNotFoundError: No module named 'calc'\"}\n{\"id\":null}\n";
        let report = parse(text).expect("whole");
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
    fn the_command_finds_tests_where_they_are() {
        let by = |files: &[&str]| {
            command(
                "python3",
                &files.iter().map(PathBuf::from).collect::<Vec<_>>(),
            )
            .join(" ")
        };
        assert_eq!(by(&["test_a.py"]), "python3 -m unittest");
        assert_eq!(
            by(&["a_test.py"]),
            "python3 -m unittest discover -p *_test.py"
        );
        assert_eq!(
            by(&["tests/test_a.py"]),
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
