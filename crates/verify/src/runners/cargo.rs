//! `cargo test`: first built, with errors as data, then run, with each test program under a witness.
//!
//! The programs share cargo's output and may write what they like there, so none of it is believed: a program's tests
//! are those it lists before it runs, and their results those in the log the harness itself writes, one line each.

mod artifacts;
mod libtest;
mod workspace;

use std::collections::BTreeMap;

use futures_util::future::{BoxFuture, FutureExt as _};

use super::super::build::BuildError;
use super::super::command::{program, split_at_dashes};
use super::super::outcome::{Outcome, TestName, TestState, Tests};
use super::super::session::{Judgement, Session, agree, exit_code, join_output, output_of};
use super::super::step::SuiteStep;
use super::super::witness::{self, SeenProgram};
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

/// Where the witness keeps what it saw.
const SEEN: &str = "programs";

/// With one of these cargo runs what they name, and no doctests.
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

/// How many programs and tests of documentation any text speaks of.
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

fn run<'a>(step: &'a SuiteStep, session: &'a Session<'a>) -> BoxFuture<'a, Judgement> {
    async move {
        let (before, after) = split_at_dashes(step.argv());
        let quiet = [
            ("CARGO_TERM_COLOR", String::from("never")),
            ("CARGO_TERM_PROGRESS_WHEN", String::from("never")),
            // Where a test panicked is in its message; the frames below it are the harness's own.
            ("RUST_BACKTRACE", String::from("0")),
        ];

        let build: Vec<String> = words(before, &["--no-run", "--message-format=json"]);
        let finished = session.run_into("build.json", &build, &quiet).await;
        if let Some(outcome) = session.cut_short(&finished, "cargo") {
            return Judgement::without_tests(outcome, &finished);
        }
        let built = artifacts::parse(&session.report("build.json").unwrap_or_default());
        if exit_code(&finished) != Some(0) {
            return not_built(built, &finished);
        }

        let selected = before.iter().any(|a| SELECTS_TARGETS.contains(&a.as_str()));
        let doctests_only = before.iter().any(|a| a == "--doc");
        let mut parts = Vec::new();
        if !doctests_only {
            let dir = session.file(SEEN);
            if let Err(error) = witness::write_plan(&dir, &built.plan()) {
                return Judgement::no_place(&error);
            }
            let runner = serde_json::json!([session.program(), "witness", "libtest", dir]);
            let config = format!("target.\"cfg(all())\".runner={runner}");
            let mut test = words(before, &["--no-fail-fast", "--config", &config]);
            // Everything but the doctests: rustdoc isolates them only where no runner is configured.
            test.extend((!selected).then(|| String::from("--tests")));
            test.push(String::from("--"));
            test.extend_from_slice(after);
            let finished = session.run(&test, &quiet).await;
            parts.push(programs(&built.programs, &witness::read(&dir), finished));
        }
        if doctests_only || (!selected && built.has_doctests && parts.iter().all(Part::ended)) {
            let doc = if doctests_only {
                &[][..]
            } else {
                &["--doc"][..]
            };
            let mut test = words(before, doc);
            test.extend(["--no-fail-fast", "--"].map(String::from));
            test.extend_from_slice(after);
            let finished = session.run(&test, &quiet).await;
            parts.push(doctests(finished));
        }
        judge(parts, session)
    }
    .boxed()
}

/// Builds the tests and runs none, for the errors.
pub(super) async fn build_alone(session: &Session<'_>, flags: &[String]) -> Judgement {
    let mut build: Vec<String> = ["cargo", "test", "--no-run", "--message-format=json"]
        .map(String::from)
        .to_vec();
    build.extend_from_slice(flags);
    let finished = session.run_into("build.json", &build, &[]).await;
    match session.cut_short(&finished, "cargo") {
        Some(outcome) => Judgement::without_tests(outcome, &finished),
        None => not_built(
            artifacts::parse(&session.report("build.json").unwrap_or_default()),
            &finished,
        ),
    }
}

/// What one of the two commands showed.
struct Part {
    tests: BTreeMap<TestName, TestState>,
    /// Why an exit code of 0 would not be believed.
    doubts: Vec<String>,
    output: String,
    finished: FinishedProcess,
}

impl Part {
    fn ended(&self) -> bool {
        exit_code(&self.finished).is_some()
    }
}

fn programs(programs: &[Program], seen: &[SeenProgram], finished: FinishedProcess) -> Part {
    let (mut tests, mut doubts, mut shown) = (BTreeMap::new(), Vec::new(), Vec::new());
    for program in programs {
        let Some(seen) = seen.iter().find(|s| s.program == program.path) else {
            doubts.push(format!("`{}` was not run", program.id));
            continue;
        };
        let output = seen.output.as_deref().unwrap_or_default();
        if program.lists {
            let read = libtest::read(seen);
            doubts.extend(read.doubtful.map(|why| format!("`{}` {why}", program.id)));
            doubts.extend(
                read.lost
                    .iter()
                    .map(|name| format!("`{} {name}` has no result", program.id)),
            );
            tests.extend(
                read.tests
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
        // Of a program whose tests pass, the line that sums up is enough.
        if seen.code != Some(0) {
            shown.push(output);
        } else if let Some(sum) = output
            .lines()
            .rev()
            .find(|line| line.starts_with("test result: "))
        {
            shown.push(sum);
        }
    }
    let stderr = finished
        .stderr
        .text()
        .replace("warning: `--logfile` is deprecated", "");
    let output = join_output([stderr.as_str()].into_iter().chain(shown));
    Part {
        tests,
        doubts,
        output,
        finished,
    }
}

fn doctests(finished: FinishedProcess) -> Part {
    let stdout = finished.stdout.text();
    let doubts = finished
        .stdout
        .is_cut()
        .then(|| String::from("the doctests wrote too much to be read"));
    let tests = libtest::doctests(&stdout);
    Part {
        tests,
        doubts: doubts.into_iter().collect(),
        output: output_of(&finished),
        finished,
    }
}

fn judge(parts: Vec<Part>, session: &Session<'_>) -> Judgement {
    let (mut tests, mut doubts, mut outputs) = (BTreeMap::new(), Vec::new(), Vec::new());
    let mut code = Some(0);
    let mut cut_short = None;
    for part in parts {
        tests.extend(part.tests);
        doubts.extend(part.doubts);
        outputs.push(part.output);
        cut_short = cut_short.or_else(|| session.cut_short(&part.finished, "cargo"));
        code = if code == Some(0) {
            exit_code(&part.finished)
        } else {
            code
        };
    }
    let mut outcome = cut_short.unwrap_or_else(|| agree(&tests, code));
    if matches!(outcome, Outcome::Passed | Outcome::NoTests) && !doubts.is_empty() {
        doubts.truncate(5);
        outcome = Outcome::Unclear {
            why: format!("cargo ended with exit code 0, but {}", doubts.join(", ")),
        };
    }
    let output = join_output(outputs.iter().map(String::as_str));
    Judgement {
        outcome,
        tests: Tests::Named(tests),
        exit_code: code,
        output,
        notes: Vec::new(),
    }
}

fn not_built(built: Build, finished: &FinishedProcess) -> Judgement {
    let stderr = finished.stderr.text();
    let said = |what: &str| stderr.contains(what);
    let first = stderr
        .lines()
        .find_map(|l| l.strip_prefix("error: "))
        .unwrap_or("cargo gave no reason")
        .to_owned();
    let outcome = if !built.errors.is_empty() {
        Outcome::DidNotBuild {
            errors: built.errors,
        }
    } else if said("could not compile")
        || said("custom build command")
        || said("failed to parse manifest")
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
    let mut judgement = Judgement::without_tests(outcome, finished);
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
    // Packages are not selected: features may unify differently then, and everything would be built once more.
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
    let mut narrowed = words(before, &target);
    narrowed.extend(["--", "--exact"].map(String::from));
    narrowed.extend(split.iter().map(|(_, test)| (*test).to_owned()));
    Some(narrowed)
}

fn words(first: &[String], more: &[&str]) -> Vec<String> {
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
    fn it_knows_its_own_commands() {
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
    fn one_test_is_selected_with_its_target() {
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
        assert_eq!(several(&["demo::api a", "demo b"]), None, "of two targets");
    }
}
