//! Runs `pytest` and reads its JUnit report from a private path.

mod environment;
mod names;
mod project;

use futures_util::future::{BoxFuture, FutureExt as _};

use super::super::build::BuildError;
use super::super::command::program;
use super::super::detect::SearchPlace;
use super::super::outcome::Outcome;
use super::super::report::{ReportAdapter, TerminalOutput};
use super::super::session::{RunnerResult, Session};
use super::super::step::{StepEnvironment, SuiteStep};
use super::Runner;
use supervisor_languages::PYTHON;
use supervisor_process::FinishedProcess;

pub(super) static RUNNER: Runner = Runner {
    name: "pytest",
    ecosystem: Some(&PYTHON),
    manifests: &[
        "pyproject.toml",
        "pytest.ini",
        "setup.cfg",
        "setup.py",
        "tox.ini",
    ],
    command: &["pytest"],
    find: project::find,
    recognises,
    run,
    select,
    names_are_paths: true,
};

static ADAPTER: ReportAdapter = ReportAdapter {
    program: "pytest",
    file: "pytest.xml",
    parse: |text, session| names::parse(text, &|file| session.files_root().join(file).is_file()),
    explain,
    terminal: TerminalOutput::ShowsFailures,
};

/// The first usable environment of a Python project.
pub(super) fn project_environment(place: &SearchPlace<'_>) -> Option<StepEnvironment> {
    let found = environment::environments(place);
    let usable = found.iter().find(|environment| environment.is_usable);
    usable.map(environment::PythonEnvironment::step_environment)
}

/// Parses a report. `is_file` tells whether a path is a file of the project.
pub(super) fn parse(
    text: &str,
    is_file: &dyn Fn(&str) -> bool,
) -> Option<super::super::report::TestRunReport> {
    names::parse(text, is_file)
}

fn recognises(argv: &[String]) -> bool {
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    // `hatch run tests:pytest` names the environment before the program.
    let name = program(argv).rsplit(':').next().unwrap_or_default();
    matches!(name, "pytest" | "py.test")
        || (program(argv).starts_with("python") && matches!(words[1..], ["-m", "pytest", ..]))
}

fn run<'a>(step: &'a SuiteStep, session: &'a Session<'a>) -> BoxFuture<'a, RunnerResult> {
    async move {
        let mut more = vec![format!(
            "--junitxml={}",
            session.file(ADAPTER.file).display()
        )];
        // The older `xunit1` family includes the file of each test, which is needed to select tests.
        more.extend(["-o", "junit_family=xunit1", "-o"].map(String::from));
        // Move the cache instead of disabling the plug-in, because the project's configuration may set its options.
        more.push(format!(
            "cache_dir={}",
            session.file("pytest_cache").display()
        ));
        // Report a file that cannot be imported and still run the others.
        more.push(String::from("--continue-on-collection-errors"));
        ADAPTER.run(session, &step.with_arguments(&more), &[]).await
    }
    .boxed()
}

/// Exit codes: 1 failures, 2 interrupted, 3 internal error, 4 usage, 5 nothing collected.
fn explain(finished: &FinishedProcess, code: i32) -> Option<Outcome> {
    let (out, err) = (finished.stdout.text(), finished.stderr.text());
    let all = format!("{out}\n{err}");
    match code {
        5 => Some(Outcome::NoTests),
        // What ran until then is not the suite. Files that cannot be imported end with 1, by our option.
        2 | 3 => {
            let is_cause = |line: &&str| {
                line.starts_with("INTERNALERROR") && line.contains("Error:")
                    || line.starts_with("!!!")
            };
            let cause = all.lines().rfind(is_cause).unwrap_or_default();
            let cause = cause.trim_matches(|c: char| c == '!' || c.is_whitespace());
            Some(Outcome::Unclear {
                why: format!("pytest ended before the tests did, with exit code {code}: {cause}"),
            })
        }
        1 | 4 if all.contains("No module named pytest") => Some(Outcome::CouldNotRun {
            why: String::from("Python has no module `pytest`"),
            remedy: String::from(
                "install pytest in that environment or name another command as `test_cmd`",
            ),
        }),
        4 if all.contains("while loading conftest") => {
            let error_lines: Vec<&str> =
                all.lines().filter_map(|l| l.strip_prefix("E   ")).collect();
            Some(Outcome::DidNotBuild {
                errors: vec![BuildError::new(error_lines.join("\n")).at("conftest.py", None)],
            })
        }
        4 => {
            let line = all
                .lines()
                .find(|l| l.to_lowercase().starts_with("error"))
                .unwrap_or("wrong usage")
                .to_owned();
            Some(Outcome::CouldNotRun {
                why: line,
                remedy: String::from("correct the command or the configuration"),
            })
        }
        _ => None,
    }
}

fn select(step: &SuiteStep, names: &[&str]) -> Option<Vec<String>> {
    names.iter().all(|name| name.contains("::")).then_some(())?;
    // Remove the command's own paths, because they would add tests to the selection.
    let keep = |a: &&String| {
        a.starts_with('-') || !(a.ends_with(".py") || a.contains("::") || a.ends_with('/'))
    };
    let names = names.iter().map(|name| (*name).to_owned());
    Some(
        step.argv
            .iter()
            .filter(keep)
            .cloned()
            .chain(names)
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::super::super::command::argv;
    use super::*;

    #[test]
    fn test_commands_are_recognised() {
        for (words, known) in [
            ("pytest", true),
            ("pytest -q tests/", true),
            (".venv/bin/pytest", true),
            ("python -m pytest -x", true),
            ("python3.11 -m pytest", true),
            ("python -m unittest", false),
            ("python", false),
        ] {
            assert_eq!(recognises(&argv(words)), known, "{words}");
        }
    }

    #[test]
    fn selected_test_replaces_paths_of_the_command() {
        let step = SuiteStep::new(argv("pytest -q tests/"), "/p");
        let narrowed = select(&step, &["tests/test_a.py::TestK::test_p[a b]"]).expect("can select");
        assert_eq!(
            narrowed,
            ["pytest", "-q", "tests/test_a.py::TestK::test_p[a b]"]
        );
    }
}
