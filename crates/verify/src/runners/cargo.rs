//! Runs `cargo test` in two stages: a build with JSON diagnostics, then a run in which the `witness` sub-command starts
//! each test program.
//!
//! The programs share cargo's output and can write anything there, so that output is not trusted. The tests of a program
//! are those it lists before it runs. Their results come from the log file that the harness itself writes.

mod artifacts;
mod libtest;
mod workspace;

use std::collections::BTreeMap;

use futures_util::future::{BoxFuture, FutureExt as _};

use super::super::build::BuildError;
use super::super::command::{program, split_at_dashes};
use super::super::outcome::{Outcome, TestName, TestState, Tests};
use super::super::session::{
    RunnerResult, Session, decide_outcome, exit_code, join_output, output_of,
};
use super::super::step::SuiteStep;
use super::super::test_wrapper::{self, ObservedProgram};
use super::Runner;
use artifacts::{Build, Program};
use supervisor_languages::RUST;
use supervisor_process::FinishedProcess;

pub(super) static RUNNER: Runner = Runner {
    name: "cargo",
    ecosystem: Some(&RUST),
    manifests: &["Cargo.toml"],
    command: &["cargo", "test"],
    find: workspace::find,
    recognises,
    run,
    select,
    names_are_paths: false,
};

/// The directory in which the witness records each program.
const WITNESS_DIR: &str = "programs";

/// With one of these flags, cargo runs only the named targets and no doctests.
const SELECTS_TARGETS: &[&str] = &[
    "--lib",
    "--bin",
    "--bins",
    "--test",
    "--tests",
    "--example",
    "--examples",
    "--bench",
    "--benches",
    "--all-targets",
];

/// The number of test programs and doctests that the parsers find in arbitrary text. For fuzzing.
pub(super) fn count_programs(text: &str) -> (usize, usize) {
    (
        artifacts::parse(text).programs.len(),
        libtest::doctests(text).len(),
    )
}

fn recognises(argv: &[String]) -> bool {
    let sub_command = argv
        .iter()
        .skip(1)
        .find(|a| !a.starts_with(['+', '-']))
        .map(String::as_str);
    let (before, _) = split_at_dashes(argv);
    program(argv) == "cargo"
        && matches!(sub_command, Some("test" | "t"))
        && !before
            .iter()
            .any(|a| a == "--no-run" || a.starts_with("--message-format"))
}

fn run<'a>(step: &'a SuiteStep, session: &'a Session<'a>) -> BoxFuture<'a, RunnerResult> {
    async move {
        let (before, after) = split_at_dashes(step.argv());
        let quiet = [
            ("CARGO_TERM_COLOR", String::from("never")),
            ("CARGO_TERM_PROGRESS_WHEN", String::from("never")),
            // The panic message already has the location; the frames below it belong to the harness.
            ("RUST_BACKTRACE", String::from("0")),
        ];

        let build: Vec<String> = append_words(before, &["--no-run", "--message-format=json"]);
        let finished = session.run_into("build.json", &build, &quiet).await;
        if let Some(outcome) = session.abnormal_outcome(&finished, "cargo") {
            return RunnerResult::without_tests(outcome, &finished);
        }
        let built = artifacts::parse(&session.report("build.json").unwrap_or_default());
        if exit_code(&finished) != Some(0) {
            return build_failure(built, &finished);
        }

        let selects_targets = before.iter().any(|a| SELECTS_TARGETS.contains(&a.as_str()));
        let doctests_only = before.iter().any(|a| a == "--doc");
        let mut parts = Vec::new();
        if !doctests_only {
            let dir = session.file(WITNESS_DIR);
            if let Err(error) = test_wrapper::write_plan(&dir, &built.plan()) {
                return RunnerResult::no_report_dir(&error);
            }
            let runner = serde_json::json!([session.program(), "witness", "libtest", dir]);
            let config = format!("target.\"cfg(all())\".runner={runner}");
            let mut test = append_words(before, &["--no-fail-fast", "--config", &config]);
            // Run doctests separately: rustdoc isolates them only if no runner is configured.
            test.extend((!selects_targets).then(|| String::from("--tests")));
            test.push(String::from("--"));
            test.extend_from_slice(after);
            let finished = session.run(&test, &quiet).await;
            parts.push(judge_programs(
                &built.programs,
                &test_wrapper::read_programs(&dir),
                finished,
            ));
        }
        if doctests_only
            || (!selects_targets
                && built.has_doctests
                && parts.iter().all(CargoCommandResult::has_exited))
        {
            let doc = if doctests_only {
                &[][..]
            } else {
                &["--doc"][..]
            };
            let mut test = append_words(before, doc);
            test.extend(["--no-fail-fast", "--"].map(String::from));
            test.extend_from_slice(after);
            let finished = session.run(&test, &quiet).await;
            parts.push(judge_doctests(finished));
        }
        judge(parts, session)
    }
    .boxed()
}

/// Builds the tests without running them, to get the build errors.
pub(super) async fn build_only(session: &Session<'_>, flags: &[String]) -> RunnerResult {
    let mut build: Vec<String> = ["cargo", "test", "--no-run", "--message-format=json"]
        .map(String::from)
        .to_vec();
    build.extend_from_slice(flags);
    let finished = session.run_into("build.json", &build, &[]).await;
    match session.abnormal_outcome(&finished, "cargo") {
        Some(outcome) => RunnerResult::without_tests(outcome, &finished),
        None => build_failure(
            artifacts::parse(&session.report("build.json").unwrap_or_default()),
            &finished,
        ),
    }
}

/// The result of one of the two commands: test programs or doctests.
struct CargoCommandResult {
    tests: BTreeMap<TestName, TestState>,
    /// Reasons not to trust an exit code of 0.
    doubts: Vec<String>,
    output: String,
    finished: FinishedProcess,
}

impl CargoCommandResult {
    fn has_exited(&self) -> bool {
        exit_code(&self.finished).is_some()
    }
}

fn judge_programs(
    programs: &[Program],
    seen: &[ObservedProgram],
    finished: FinishedProcess,
) -> CargoCommandResult {
    let (mut tests, mut doubts, mut shown_output) = (BTreeMap::new(), Vec::new(), Vec::new());
    for program in programs {
        let Some(seen) = seen.iter().find(|s| s.program == program.path) else {
            doubts.push(format!("`{}` was not run", program.id));
            continue;
        };
        let output = seen.output.as_deref().unwrap_or_default();
        if program.has_harness {
            let results = libtest::read(seen);
            doubts.extend(results.doubt.map(|why| format!("`{}` {why}", program.id)));
            doubts.extend(
                results
                    .without_result
                    .iter()
                    .map(|name| format!("`{} {name}` has no result", program.id)),
            );
            tests.extend(
                results
                    .tests
                    .into_iter()
                    .map(|(name, s)| (TestName(format!("{} {name}", program.id)), s)),
            );
        } else {
            let state = match seen.code {
                Some(0) => TestState::Passed,
                _ => TestState::Failed(libtest::cut_message(output)),
            };
            tests.insert(TestName(program.id.clone()), state);
        }
        // For a passing program, the summary line is enough.
        if seen.code != Some(0) {
            shown_output.push(output);
        } else if let Some(summary) = output
            .lines()
            .rev()
            .find(|line| line.starts_with("test result: "))
        {
            shown_output.push(summary);
        }
    }
    let stderr = finished
        .stderr
        .text()
        .replace("warning: `--logfile` is deprecated", "");
    let output = join_output([stderr.as_str()].into_iter().chain(shown_output));
    CargoCommandResult {
        tests,
        doubts,
        output,
        finished,
    }
}

fn judge_doctests(finished: FinishedProcess) -> CargoCommandResult {
    let stdout = finished.stdout.text();
    let doubts = finished
        .stdout
        .is_cut()
        .then(|| String::from("the doctests wrote too much to be read"));
    let tests = libtest::doctests(&stdout);
    CargoCommandResult {
        tests,
        doubts: doubts.into_iter().collect(),
        output: output_of(&finished),
        finished,
    }
}

fn judge(parts: Vec<CargoCommandResult>, session: &Session<'_>) -> RunnerResult {
    let (mut tests, mut doubts, mut outputs) = (BTreeMap::new(), Vec::new(), Vec::new());
    let mut code = Some(0);
    let mut cut_short = None;
    for part in parts {
        tests.extend(part.tests);
        doubts.extend(part.doubts);
        outputs.push(part.output);
        cut_short = cut_short.or_else(|| session.abnormal_outcome(&part.finished, "cargo"));
        code = if code == Some(0) {
            exit_code(&part.finished)
        } else {
            code
        };
    }
    let mut outcome = cut_short.unwrap_or_else(|| decide_outcome(&tests, code));
    if matches!(outcome, Outcome::Passed | Outcome::NoTests) && !doubts.is_empty() {
        doubts.truncate(5);
        outcome = Outcome::Unclear {
            why: format!("cargo ended with exit code 0, but {}", doubts.join(", ")),
        };
    }
    let output = join_output(outputs.iter().map(String::as_str));
    RunnerResult {
        outcome,
        tests: Tests::Named(tests),
        exit_code: code,
        output,
        notes: Vec::new(),
    }
}

fn build_failure(built: Build, finished: &FinishedProcess) -> RunnerResult {
    let stderr = finished.stderr.text();
    let mentions = |what: &str| stderr.contains(what);
    let first = stderr
        .lines()
        .find_map(|l| l.strip_prefix("error: "))
        .unwrap_or("cargo gave no reason")
        .to_owned();
    let outcome = if !built.errors.is_empty() {
        Outcome::DidNotBuild {
            errors: built.errors,
        }
    } else if mentions("could not compile")
        || mentions("custom build command")
        || mentions("failed to parse manifest")
    {
        Outcome::DidNotBuild {
            errors: vec![BuildError::new(&first)],
        }
    } else {
        Outcome::CouldNotRun {
            why: first,
            remedy: String::from("run `cargo test` by hand to see all it says"),
        }
    };
    let mut judgement = RunnerResult::without_tests(outcome, finished);
    judgement.output = join_output([built.rendered.as_str(), &output_of(finished)]);
    judgement
}

/// `demo::api rejects_empty` becomes `cargo test --test api -- --exact rejects_empty`; several, if they share a target.
fn select(step: &SuiteStep, names: &[&str]) -> Option<Vec<String>> {
    let (before, _) = split_at_dashes(&step.argv);
    let split: Option<Vec<(&str, &str)>> = names.iter().map(|n| n.split_once(' ')).collect();
    let split = split?;
    let (binary, _) = split.first()?;
    split
        .iter()
        .all(|(other, _)| other == binary)
        .then_some(())?;
    // Do not add `--package`: features may unify differently then, which rebuilds everything.
    let target: Vec<&str> = match binary.split_once("::").map(|(_, target)| target) {
        _ if *binary == libtest::DOCTEST => return None,
        None => vec!["--lib"],
        Some(target) => match target.split_once('/') {
            Some(("bin", name)) => vec!["--bin", name],
            Some(("example", name)) => vec!["--example", name],
            Some(("bench", name)) => vec!["--bench", name],
            _ => vec!["--test", target],
        },
    };
    let mut narrowed = append_words(before, &target);
    narrowed.extend(["--", "--exact"].map(String::from));
    narrowed.extend(split.iter().map(|(_, test)| (*test).to_owned()));
    Some(narrowed)
}

fn append_words(first: &[String], more: &[&str]) -> Vec<String> {
    first
        .iter()
        .cloned()
        .chain(more.iter().map(|w| (*w).to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::command::argv;
    use super::*;

    #[test]
    fn test_commands_are_recognised() {
        for (words, known) in [
            ("cargo test", true),
            ("cargo +nightly test -p api -- --nocapture", true),
            ("/usr/bin/cargo t", true),
            ("cargo --locked test", true),
            ("cargo nextest run", false),
            ("cargo test --no-run", false),
            ("cargo build", false),
        ] {
            assert_eq!(recognises(&argv(words)), known, "{words}");
        }
    }

    #[test]
    fn test_is_selected_with_its_target() {
        let step = SuiteStep::new(argv("cargo test -- --nocapture"), "/p");
        let narrowed = |name: &str| select(&step, &[name]).map(|a| a.join(" "));
        assert_eq!(
            narrowed("demo tests::adds").as_deref(),
            Some("cargo test --lib -- --exact tests::adds")
        );
        assert_eq!(
            narrowed("demo::api adds").as_deref(),
            Some("cargo test --test api -- --exact adds")
        );
        assert_eq!(
            narrowed("demo::bin/x a::b").as_deref(),
            Some("cargo test --bin x -- --exact a::b")
        );
        assert_eq!(narrowed("doctest src/lib.rs - add"), None);
        let several = |names: &[&str]| select(&step, names).map(|a| a.join(" "));
        assert_eq!(
            several(&["demo::api a", "demo::api b"]).as_deref(),
            Some("cargo test --test api -- --exact a b")
        );
        assert_eq!(several(&["demo::api a", "demo b"]), None, "in two targets");
    }
}
