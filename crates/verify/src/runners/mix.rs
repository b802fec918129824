//! Runs `mix test` with our own ExUnit formatter, which writes the results to a private path.

mod stale;

use futures_util::future::{BoxFuture, FutureExt as _};

use super::super::build::BuildError;
use super::super::command::program;
use super::super::outcome::Outcome;
use super::super::report::{ReportAdapter, TerminalOutput, strip_ansi};
use super::super::report_lines;
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
    file: report_lines::FILE,
    parse: |text, session| report_lines::parse(text, session.root(), "", report_lines::load_error),
    explain,
    terminal: TerminalOutput::ShowsFailures,
};

const FORMATTER: &str = include_str!("mix/formatter.ex");

fn recognises(argv: &[String]) -> bool {
    program(argv) == "mix"
        && argv.get(1).is_some_and(|a| a == "test")
        && !argv.iter().any(|a| a == "--formatter")
}

fn run<'a>(step: &'a SuiteStep, session: &'a Session<'a>) -> BoxFuture<'a, RunnerResult> {
    async move {
        // The random name of the private directory makes the module name unique.
        let unique: String = session
            .file("")
            .to_string_lossy()
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .collect();
        let module = format!("SupervisorReport{unique}");
        let source = FORMATTER.replace("@MODULE@", &module);
        let formatter = match session.write_program("formatter.ex", &source) {
            Ok(path) => path,
            Err(error) => return RunnerResult::no_report_dir(&error),
        };
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

#[cfg(test)]
mod tests {
    use super::*;

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
        fn arbitrary_output_does_not_panic(
            output in super::super::super::garbage::garbage("    error: undefined function foo/0\n    └─ lib/x.ex:3:5: X.add/2\n** (CompileError) lib/x.ex:3: x\n"),
        ) {
            let _ = compile_errors(&output);
        }
    }
}
