//! Runs `cargo nextest run` and reads its JSON events from standard output. Nextest runs each test in its own process and
//! captures its output, so tests cannot write to that stream.

use futures_util::future::{BoxFuture, FutureExt as _};
use serde::Deserialize;

use super::super::command::program;
use super::super::outcome::{Outcome, TestState};
use super::super::report::{ReportAdapter, TerminalOutput, TestRunReport, failed};
use super::super::session::{RunnerResult, Session, exit_code};
use super::super::step::SuiteStep;
use super::{Runner, cargo, never_detected};
use supervisor_languages::RUST;

pub(super) static RUNNER: Runner = Runner {
    name: "nextest",
    ecosystem: Some(&RUST),
    manifests: &[],
    command: &["cargo", "nextest", "run"],
    find: never_detected,
    recognises,
    run,
    select,
    names_are_paths: false,
};

static ADAPTER: ReportAdapter = ReportAdapter {
    program: "cargo nextest",
    file: "nextest.jsonl",
    parse: |text, _| parse(text),
    explain: |finished, code| {
        let err = finished.stderr.text();
        if code == 4 || err.contains("no tests to run") {
            return Some(Outcome::NoTests);
        }
        let why = err
            .lines()
            .find(|l| l.contains("no such command: `nextest`"))?;
        let remedy = String::from("install cargo-nextest or name `cargo test` as `test_cmd`");
        Some(Outcome::CouldNotRun {
            why: why.trim_start_matches("error: ").to_owned(),
            remedy,
        })
    },
    terminal: TerminalOutput::HidesFailures,
};

fn recognises(argv: &[String]) -> bool {
    program(argv) == "cargo"
        && argv.get(1).is_some_and(|a| a == "nextest")
        && argv.get(2).is_some_and(|a| a == "run" || a == "r")
        && !argv.iter().any(|a| a.starts_with("--message-format"))
}

fn run<'a>(step: &'a SuiteStep, session: &'a Session<'a>) -> BoxFuture<'a, RunnerResult> {
    async move {
        let argv = step.with_arguments(
            &["--no-fail-fast", "--message-format", "libtest-json-plus"].map(String::from),
        );
        let env = [
            ("NEXTEST_EXPERIMENTAL_LIBTEST_JSON", String::from("1")),
            ("CARGO_TERM_COLOR", String::from("never")),
            ("RUST_BACKTRACE", String::from("0")),
        ];
        let finished = session.run_into(ADAPTER.file, &argv, &env).await;
        // Only cargo reports build errors as JSON.
        if exit_code(&finished) == Some(101) {
            let flags: Vec<String> = argv
                .iter()
                .filter(|a| *a == "--workspace" || *a == "--all-features")
                .cloned()
                .collect();
            return cargo::build_only(session, &flags).await;
        }
        ADAPTER.judge(session, &finished)
    }
    .boxed()
}

/// Selects by a filter expression over binary and test name, which is exact.
fn select(step: &SuiteStep, names: &[&str]) -> Option<Vec<String>> {
    let mut tests = Vec::new();
    for name in names {
        let (binary, test) = name.split_once(' ')?;
        tests.push(format!("(binary_id(={binary}) and test(={test}))"));
    }
    Some(
        step.argv
            .iter()
            .cloned()
            .chain([String::from("-E"), tests.join(" or ")])
            .collect(),
    )
}

#[derive(Deserialize)]
struct NextestEvent {
    #[serde(rename = "type")]
    kind: String,
    event: String,
    name: Option<String>,
    stdout: Option<String>,
    nextest: Option<NextestBinary>,
}

#[derive(Deserialize)]
struct NextestBinary {
    #[serde(rename = "crate")]
    package: String,
    test_binary: String,
    kind: String,
}

impl NextestBinary {
    /// The same identifier as for `cargo test`: `demo`, `demo::api`, `demo::bin/tool`.
    fn id(&self) -> String {
        match self.kind.as_str() {
            "lib" | "proc-macro" => self.package.clone(),
            "test" => format!("{}::{}", self.package, self.test_binary),
            kind => format!("{}::{kind}/{}", self.package, self.test_binary),
        }
    }
}

pub(super) fn parse(text: &str) -> Option<TestRunReport> {
    let mut report = TestRunReport::default();
    let mut binary = String::new();
    let mut open_suites = 0_usize;
    for line in text.lines().filter(|l| l.starts_with('{')) {
        let event: NextestEvent = serde_json::from_str(line).ok()?;
        match (event.kind.as_str(), event.event.as_str()) {
            ("suite", "started") => {
                binary = event.nextest.as_ref()?.id();
                open_suites += 1;
            }
            ("suite", _) => open_suites = open_suites.checked_sub(1)?,
            ("test", "started") => {}
            ("test", outcome) => {
                let name = event.name?;
                let test = name.split_once('$').map_or(name.as_str(), |(_, test)| test);
                // The name of a retried test ends with the number of the attempt.
                let test = test
                    .rsplit_once('#')
                    .filter(|(_, n)| n.parse::<u32>().is_ok())
                    .map_or(test, |(test, _)| test);
                let state = match outcome {
                    "ok" => TestState::Passed,
                    "ignored" => TestState::Skipped,
                    _ => failed(event.stdout.unwrap_or_default()),
                };
                let name = super::super::outcome::TestName(format!("{binary} {test}"));
                // A binary with failures is reported twice, the second time with the failed tests.
                if matches!(state, TestState::Failed(_)) || !report.tests.contains_key(&name) {
                    report.tests.insert(name, state);
                }
            }
            _ => {}
        }
    }
    (open_suites == 0).then_some(report)
}

#[cfg(test)]
mod tests {
    use super::super::super::command::argv;
    use super::super::super::outcome::TestName;
    use super::*;

    #[test]
    fn results_have_the_names_of_cargo_test() {
        let suite = |event: &str, kind: &str| {
            format!(
                r#"{{"type":"suite","event":"{event}","nextest":{{"crate":"demo","test_binary":"demo","kind":"{kind}"}}}}"#
            )
        };
        let test = |event: &str, name: &str| {
            format!(
                r#"{{"type":"test","event":"{event}","name":"demo::demo${name}","stdout":"boo"}}"#
            )
        };
        let lines = [
            suite("started", "lib"),
            test("started", "tests::adds"),
            test("ok", "tests::adds"),
            test("ignored", "tests::later"),
            suite("ok", "lib"),
            suite("started", "bin"),
            test("failed", "inbin"),
            suite("failed", "bin"),
        ];
        let report = parse(&lines.join("\n")).expect("a complete report");
        assert_eq!(
            report.tests[&TestName::from("demo tests::adds")],
            TestState::Passed
        );
        assert_eq!(
            report.tests[&TestName::from("demo tests::later")],
            TestState::Skipped
        );
        assert_eq!(
            report.tests[&TestName::from("demo::bin/demo inbin")],
            failed("boo")
        );
        assert_eq!(parse(&lines[..6].join("\n")), None, "without its end");
    }

    #[test]
    fn tests_are_selected_by_binary_and_name() {
        let step = SuiteStep::new(argv("cargo nextest run"), "/p");
        let narrowed = select(&step, &["demo::api adds"]).expect("can select");
        assert_eq!(
            narrowed,
            [
                "cargo",
                "nextest",
                "run",
                "-E",
                "(binary_id(=demo::api) and test(=adds))"
            ]
        );
    }
}
