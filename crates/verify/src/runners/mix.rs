//! Runs `mix test` with our own ExUnit formatter, which writes the results to a private path.

mod stale;

use futures_util::future::{BoxFuture, FutureExt as _};

use super::super::build::BuildError;
use super::super::command::program;
use super::super::outcome::{Outcome, TestState};
use super::super::report::{ReportAdapter, TerminalOutput, TestRunReport, failed, strip_ansi};
use super::super::session::{RunnerResult, Session};
use super::super::step::SuiteStep;
use super::{Runner, find_by_manifest};
use supervisor_languages::ELIXIR;
use supervisor_process::FinishedProcess;

pub(super) static RUNNER: Runner = Runner {
    name: "mix",
    ecosystem: Some(&ELIXIR),
    manifests: &["mix.exs"],
    command: &["mix", "test"],
    find: find_by_manifest,
    recognises,
    run,
    select,
    names_are_paths: false,
};

static ADAPTER: ReportAdapter = ReportAdapter {
    program: "mix",
    file: "mix.report",
    parse: |text, _| parse(text),
    explain,
    terminal: TerminalOutput::ShowsFailures,
};

/// The formatter. It writes each field in hexadecimal, so that names and messages need no quoting.
const FORMATTER: &str = include_str!("mix/formatter.ex");

fn recognises(argv: &[String]) -> bool {
    program(argv) == "mix"
        && argv.get(1).is_some_and(|a| a == "test")
        && !argv.iter().any(|a| a == "--formatter")
}

fn run<'a>(step: &'a SuiteStep, session: &'a Session<'a>) -> BoxFuture<'a, RunnerResult> {
    async move {
        // The random name of the private directory makes the module name unique.
        let report = session.file(ADAPTER.file);
        let unique: String = report
            .to_string_lossy()
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .collect();
        let module = format!("SupervisorReport{unique}");
        let source = FORMATTER
            .replace("@MODULE@", &module)
            .replace("@REPORT@", &elixir_string(&report.to_string_lossy()));
        let formatter = session.file("formatter.ex");
        if let Err(error) = std::fs::write(&formatter, source) {
            return RunnerResult::no_report_dir(&error);
        }
        let formatter = formatter.to_string_lossy().into_owned();
        stale::force_content_check(&session.files_root());
        let mut argv: Vec<String> = ["elixir", "-r", &formatter, "-S"]
            .map(String::from)
            .to_vec();
        argv.extend_from_slice(step.argv());
        argv.extend(
            ["--formatter", &module, "--formatter", "ExUnit.CLIFormatter"].map(String::from),
        );
        ADAPTER.run(session, &argv, &[]).await
    }
    .boxed()
}

fn elixir_string(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace("#{", "\\#{")
}

/// Explains a run in which no suite started, from the compiler output.
fn explain(finished: &FinishedProcess, code: i32) -> Option<Outcome> {
    let all = strip_ansi(&format!(
        "{}\n{}",
        finished.stdout.text(),
        finished.stderr.text()
    ));
    if code == 0 && all.contains("There are no tests to run") {
        return Some(Outcome::NoTests);
    }
    // Without Hex, mix cannot fetch dependencies and prompts for input, which nobody can answer here.
    if let Some(line) = all.lines().find(|l| {
        l.contains("Could not find Hex") || l.contains("Could not find an SCM for dependency")
    }) {
        let why = line.trim_start_matches("** (Mix) ").trim().to_owned();
        let remedy =
            String::from("install Hex with `mix local.hex --force`, then run `mix deps.get`");
        return Some(Outcome::CouldNotRun {
            why: format!("Hex, the package manager, is missing: {why}"),
            remedy,
        });
    }
    let missing = all
        .lines()
        .find(|l| l.contains("Can't continue due to errors on dependencies"));
    if let Some(line) = missing {
        let remedy = String::from("run `mix deps.get` or name a `test_cmd`");
        return Some(Outcome::CouldNotRun {
            why: line.trim_start_matches("** (Mix) ").to_owned(),
            remedy,
        });
    }
    let errors = compile_errors(&all);
    (code != 0 && !errors.is_empty()).then_some(Outcome::DidNotBuild { errors })
}

/// Parses `** (CompileError) lib/x.ex:3: message` or, since Elixir 1.15, `error: message` with the location some lines
/// below.
fn compile_errors(text: &str) -> Vec<BuildError> {
    let mut errors = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        let line = line.trim();
        if let Some(message) = line.strip_prefix("error: ") {
            let mut error = BuildError::new(message);
            let below = lines[at + 1..].iter().take(12).map(|l| l.trim());
            if let Some((file, number)) = below
                .filter_map(|l| l.strip_prefix("└─ "))
                .find_map(parse_location)
            {
                error = error.at(file, Some(number));
            }
            errors.push(error);
        } else if let Some((kind, rest)) =
            line.strip_prefix("** (").and_then(|l| l.split_once(") "))
            && kind.ends_with("Error")
        {
            let error = match parse_location(rest) {
                Some((file, number)) => {
                    let message = rest.split(": ").nth(1).unwrap_or(rest);
                    BuildError::new(format!("{kind}: {message}")).at(file, Some(number))
                }
                // `lib/x.ex: cannot compile module` only repeats that there were errors.
                None if !errors.is_empty() => continue,
                None => BuildError::new(format!("{kind}: {rest}")),
            };
            errors.push(error);
        }
    }
    errors
}

/// Parses `lib/x.ex:3`.
fn parse_location(text: &str) -> Option<(String, u32)> {
    let mut parts = text.split(':');
    let file = parts
        .next()
        .filter(|f| f.ends_with(".ex") || f.ends_with(".exs"))?;
    Some((
        file.trim_start_matches("./").to_owned(),
        parts.next()?.trim().parse().ok()?,
    ))
}

/// Selects `XTest test adds` by name. Tests of the same name in other modules run as well.
fn select(step: &SuiteStep, names: &[&str]) -> Option<Vec<String>> {
    let mut argv = step.argv.clone();
    for name in names {
        let (_, test) = name.split_once(' ')?;
        argv.extend([String::from("--only"), format!("test:{test}")]);
    }
    Some(argv)
}

/// Parses lines `T state module name message` between `B` and `E`; `None` if `E` is missing.
pub(super) fn parse(text: &str) -> Option<TestRunReport> {
    let mut report = TestRunReport::default();
    let mut lines = text.lines();
    (lines.next() == Some("B")).then_some(())?;
    for line in lines {
        let fields: Vec<&str> = line.split(' ').collect();
        match fields.as_slice() {
            ["E"] => return Some(report),
            ["T", state, module, name, message] => {
                let state = match *state {
                    "passed" => TestState::Passed,
                    "failed" => failed(decode_hex(message)?),
                    _ => TestState::Skipped,
                };
                report.add(
                    &format!("{} {}", decode_hex(module)?, decode_hex(name)?),
                    state,
                );
            }
            _ => return None,
        }
    }
    None
}

fn decode_hex(text: &str) -> Option<String> {
    let digit = |c: u8| {
        char::from(c)
            .to_digit(16)
            .and_then(|d| u8::try_from(d).ok())
    };
    let digits: Option<Vec<u8>> = text.bytes().map(digit).collect();
    let bytes = digits?
        .chunks(2)
        .map(|c| Some(c.first()? << 4 | c.get(1)?))
        .collect::<Option<Vec<u8>>>()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_needs_the_end_of_the_suite() {
        let complete = "B\nT passed 58 61 \nT failed 58 62 626f6f\nT skipped 58 63 \nE\n";
        let report = parse(complete).expect("a complete report");
        assert_eq!(
            report.tests.values().collect::<Vec<_>>(),
            [&TestState::Passed, &failed("boo"), &TestState::Skipped]
        );
        assert_eq!(parse(complete.trim_end().trim_end_matches('E')), None);
        assert_eq!(parse("B\nT passed zz 61 \nE\n"), None);
    }

    #[test]
    fn both_formats_of_compile_errors_are_parsed() {
        let old = "== Compilation error in file lib/x.ex ==\n** (CompileError) lib/x.ex:3: undefined function foo/0";
        let new = "    error: undefined function foo/0\n    │\n  3 │   foo()\n    │\n    └─ lib/x.ex:3:5: X.add/2\n\n\n\
            == Compilation error in file lib/x.ex ==\n** (CompileError) lib/x.ex: cannot compile module X";
        for text in [old, new] {
            let errors = compile_errors(text);
            assert_eq!(errors.len(), 1, "{errors:?}");
            assert_eq!(
                (errors[0].file.as_deref(), errors[0].line),
                (Some("lib/x.ex"), Some(3))
            );
            assert_eq!(errors[0].missing, ["foo"]);
        }
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_reports_do_not_panic(
            text in super::super::super::garbage::garbage("B\nT failed 58 62 626f6f\nE\n"),
            output in super::super::super::garbage::garbage("    error: undefined function foo/0\n    └─ lib/x.ex:3:5: X.add/2\n** (CompileError) lib/x.ex:3: x\n"),
        ) {
            let _ = (parse(&text), compile_errors(&output));
        }
    }
}
