//! Runs `mocha` with our own reporter, which every version of mocha accepts and which writes to a private path.

use futures_util::future::FutureExt as _;

use super::super::build::BuildError;
use super::super::command::program;
use super::super::outcome::Outcome;
use super::super::report::{ReportAdapter, TerminalOutput};
use super::super::report_lines;
use super::super::step::SuiteStep;
use super::npm::{Tool, run_tool};
use super::{Runner, escape_regex, jest, never_detected};
use supervisor_languages::JAVASCRIPT;
use supervisor_process::FinishedProcess;

pub(super) static RUNNER: Runner = Runner {
    name: "mocha",
    ecosystem: Some(&JAVASCRIPT),
    manifests: &[],
    command: &["npx", "mocha"],
    find: never_detected,
    recognises,
    run: |step, session| {
        async move { run_tool(&TOOL, &strip_reporter(step), session).await }.boxed()
    },
    select: |step, names| {
        let mut argv = step.argv.clone();
        let mut patterns = Vec::new();
        for name in names {
            let (file, title) = name.split_once(" > ")?;
            patterns.push(escape_regex(title));
            if !argv.iter().any(|word| word == file) {
                argv.push(file.to_owned());
            }
        }
        argv.extend([String::from("--grep"), jest::match_any_title(&patterns)]);
        Some(argv)
    },
    names_are_paths: true,
};

pub(super) static TOOL: Tool = Tool {
    adapter: ReportAdapter {
        program: "mocha",
        file: report_lines::FILE,
        parse: |text, session| {
            report_lines::parse(text, session.root(), " > ", report_lines::load_error)
        },
        explain,
        terminal: TerminalOutput::HidesFailures,
    },
    flags: |session| {
        let reporter = session.write_program("reporter.cjs", REPORTER)?;
        Ok(vec![String::from("--reporter"), reporter])
    },
    options_first: false,
};

const REPORTER: &str = include_str!("mocha/reporter.cjs");

fn recognises(argv: &[String]) -> bool {
    matches!(program(argv), "mocha" | "_mocha" | "ts-mocha")
        && !argv
            .iter()
            .any(|a| a == "--watch" || a == "-w" || a == "--parallel")
}

/// Removes the command's own reporter, because some versions reject a second one.
fn strip_reporter(step: &SuiteStep) -> SuiteStep {
    let mut argv = Vec::new();
    let mut words = step.argv.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--reporter" | "-R" => drop(words.next()),
            word if word.starts_with("--reporter=") => {}
            _ => argv.push(word.clone()),
        }
    }
    SuiteStep {
        argv,
        ..step.clone()
    }
}

/// Mocha exits without a report if a file cannot be loaded.
fn explain(finished: &FinishedProcess, code: i32) -> Option<Outcome> {
    let output = format!("{}\n{}", finished.stdout.text(), finished.stderr.text());
    if code != 0 && output.contains("No test files found") {
        return Some(Outcome::NoTests);
    }
    const LOAD_ERRORS: &[&str] = &[
        "SyntaxError",
        "Cannot find module",
        "ERR_MODULE_NOT_FOUND",
        "does not provide an export",
    ];
    let error_line = output
        .lines()
        .find(|l| LOAD_ERRORS.iter().any(|what| l.contains(what)))?;
    (code != 0).then(|| Outcome::DidNotBuild {
        errors: vec![BuildError::new(error_line.trim())],
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::command::argv;
    use super::*;

    #[test]
    fn own_reporter_of_the_command_is_removed() {
        for words in [
            "mocha --reporter spec test/a.js",
            "mocha -R dot test/a.js",
            "mocha test/a.js --reporter=min",
        ] {
            let step = SuiteStep::new(argv(words), "/p");
            assert_eq!(
                strip_reporter(&step).argv,
                argv("mocha test/a.js"),
                "{words}"
            );
        }
    }
}
