//! `mix test`: ExUnit tells its results to a formatter of ours, which writes them to a path only it knows.

mod stale;

use futures_util::future::{BoxFuture, FutureExt as _};

use super::super::build::BuildError;
use super::super::command::program;
use super::super::outcome::{Outcome, TestState};
use super::super::report::{Reporting, Terminal, TestRunReport, failed, without_colour};
use super::super::session::{Judgement, Session};
use super::super::step::SuiteStep;
use super::{Runner, by_manifest};
use supervisor_languages::ELIXIR;
use supervisor_process::FinishedProcess;

pub(super) static RUNNER: Runner = Runner {
    name: "mix",
    ecosystem: Some(&ELIXIR),
    manifests: &["mix.exs"],
    command: &["mix", "test"],
    find: by_manifest,
    recognises,
    run,
    select,
    names_are_paths: false,
};

static REPORTING: Reporting = Reporting {
    program: "mix",
    file: "mix.report",
    parse: |text, _| parse(text),
    explain,
    terminal: Terminal::Tells,
};

/// Each field in hexadecimal, so that neither names nor messages need quoting.
const FORMATTER: &str = include_str!("mix/formatter.ex");

fn recognises(argv: &[String]) -> bool {
    program(argv) == "mix"
        && argv.get(1).is_some_and(|a| a == "test")
        && !argv.iter().any(|a| a == "--formatter")
}

fn run<'a>(step: &'a SuiteStep, session: &'a Session<'a>) -> BoxFuture<'a, Judgement> {
    async move {
        // The random name of the private directory makes the module's name one the project cannot have.
        let report = session.file(REPORTING.file);
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
            return Judgement::no_place(&error);
        }
        let formatter = formatter.to_string_lossy().into_owned();
        stale::look_twice(&session.files());
        let mut argv: Vec<String> = ["elixir", "-r", &formatter, "-S"]
            .map(String::from)
            .to_vec();
        argv.extend_from_slice(step.argv());
        argv.extend(
            ["--formatter", &module, "--formatter", "ExUnit.CLIFormatter"].map(String::from),
        );
        REPORTING.run(session, &argv, &[]).await
    }
    .boxed()
}

fn elixir_string(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace("#{", "\\#{")
}

/// Without a suite that began, the reason is in what the compiler said.
fn explain(finished: &FinishedProcess, code: i32) -> Option<Outcome> {
    let all = without_colour(&format!(
        "{}\n{}",
        finished.stdout.text(),
        finished.stderr.text()
    ));
    if code == 0 && all.contains("There are no tests to run") {
        return Some(Outcome::NoTests);
    }
    // Without Hex nothing is fetched, and that is asked for where no user can answer.
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

/// `** (CompileError) lib/x.ex:3: message`, or since 1.15 `error: message` with the place some lines below.
fn compile_errors(text: &str) -> Vec<BuildError> {
    let mut errors = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        let line = line.trim();
        if let Some(message) = line.strip_prefix("error: ") {
            let mut error = BuildError::new(message);
            let below = lines[at + 1..].iter().take(12).map(|l| l.trim());
            if let Some((file, number)) =
                below.filter_map(|l| l.strip_prefix("└─ ")).find_map(place)
            {
                error = error.at(file, Some(number));
            }
            errors.push(error);
        } else if let Some((kind, rest)) =
            line.strip_prefix("** (").and_then(|l| l.split_once(") "))
            && kind.ends_with("Error")
        {
            let said = match place(rest) {
                Some((file, number)) => {
                    let message = rest.split(": ").nth(1).unwrap_or(rest);
                    BuildError::new(format!("{kind}: {message}")).at(file, Some(number))
                }
                // `lib/x.ex: cannot compile module`, after the errors themselves.
                None if !errors.is_empty() => continue,
                None => BuildError::new(format!("{kind}: {rest}")),
            };
            errors.push(said);
        }
    }
    errors
}

fn place(text: &str) -> Option<(String, u32)> {
    let mut parts = text.split(':');
    let file = parts
        .next()
        .filter(|f| f.ends_with(".ex") || f.ends_with(".exs"))?;
    Some((
        file.trim_start_matches("./").to_owned(),
        parts.next()?.trim().parse().ok()?,
    ))
}

/// `XTest test adds` is selected by its name; the same name in another module comes along.
fn select(step: &SuiteStep, names: &[&str]) -> Option<Vec<String>> {
    let mut argv = step.argv.clone();
    for name in names {
        let (_, test) = name.split_once(' ')?;
        argv.extend([String::from("--only"), format!("test:{test}")]);
    }
    Some(argv)
}

/// Lines `T state module name message`, between `B` and `E`.
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
                    "failed" => failed(unhex(message)?),
                    _ => TestState::Skipped,
                };
                report.add(&format!("{} {}", unhex(module)?, unhex(name)?), state);
            }
            _ => return None,
        }
    }
    None
}

fn unhex(text: &str) -> Option<String> {
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
    fn a_report_counts_only_when_the_suite_came_to_its_end() {
        let whole = "B\nT passed 58 61 \nT failed 58 62 626f6f\nT skipped 58 63 \nE\n";
        let report = parse(whole).expect("whole");
        assert_eq!(
            report.tests.values().collect::<Vec<_>>(),
            [&TestState::Passed, &failed("boo"), &TestState::Skipped]
        );
        assert_eq!(parse(whole.trim_end().trim_end_matches('E')), None);
        assert_eq!(parse("B\nT passed zz 61 \nE\n"), None);
    }

    #[test]
    fn both_ways_of_saying_that_it_does_not_compile_are_read() {
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
        fn no_report_is_too_odd(
            text in super::super::super::garbage::garbage("B\nT failed 58 62 626f6f\nE\n"),
            said in super::super::super::garbage::garbage("    error: undefined function foo/0\n    └─ lib/x.ex:3:5: X.add/2\n** (CompileError) lib/x.ex:3: x\n"),
        ) {
            let _ = (parse(&text), compile_errors(&said));
        }
    }
}
