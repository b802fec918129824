//! Runs `python -m unittest` through our own small program in the same interpreter, which records every result at a
//! private path.

use std::path::PathBuf;

use futures_util::future::{BoxFuture, FutureExt as _};

use super::super::command::program;
use super::super::outcome::Outcome;
use super::super::report::{ReportAdapter, TerminalOutput};
use super::super::report_lines;
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

pub(super) static ADAPTER: ReportAdapter = ReportAdapter {
    program: "python",
    file: report_lines::FILE,
    parse: |text, session| {
        report_lines::parse(text, session.root(), "::", report_lines::load_error)
    },
    explain,
    terminal: TerminalOutput::ShowsFailures,
};

/// The program that runs the tests and records the results.
const PROGRAM: &str = concat!(
    include_str!("unittest/record.py"),
    include_str!("unittest/run.py")
);

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
        let script = match session.write_program("run_unittest.py", PROGRAM) {
            Ok(path) => path,
            Err(error) => return RunnerResult::no_report_dir(&error),
        };
        let mut argv = step.argv.clone();
        let at = module_position(&argv).unwrap_or_default();
        argv.splice(at..at + 2, [script]);
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

#[cfg(test)]
mod tests {
    use super::super::super::command::argv;
    use super::*;

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
