//! `mocha`: results from a reporter of ours at a private path, which every version of mocha takes.

use std::path::Path;

use futures_util::future::FutureExt as _;
use serde::Deserialize;

use super::super::build::BuildError;
use super::super::command::program;
use super::super::outcome::{Outcome, TestState};
use super::super::report::{Reporting, Terminal, TestRunReport, failed};
use super::super::session::Session;
use super::super::step::SuiteStep;
use super::npm::{Tool, run_tool};
use super::{Runner, by_command_alone, jest, quoted};
use supervisor_languages::JAVASCRIPT;
use supervisor_process::FinishedProcess;

pub(super) static RUNNER: Runner = Runner {
    name: "mocha",
    ecosystem: Some(&JAVASCRIPT),
    manifests: &[],
    command: &["npx", "mocha"],
    find: by_command_alone,
    recognises,
    run: |step, session| {
        async move { run_tool(&TOOL, &without_reporter(step), session).await }.boxed()
    },
    select: |step, names| {
        let mut argv = step.argv.clone();
        let mut patterns = Vec::new();
        for name in names {
            let (file, title) = name.split_once(" > ")?;
            patterns.push(quoted(title));
            if !argv.iter().any(|word| word == file) {
                argv.push(file.to_owned());
            }
        }
        argv.extend([String::from("--grep"), jest::one_of_titles(&patterns)]);
        Some(argv)
    },
    names_are_paths: true,
};

pub(super) static TOOL: Tool = Tool {
    reporting: Reporting {
        program: "mocha",
        file: "mocha.json",
        parse: |t, s| parse(t, s.root()),
        explain,
        terminal: Terminal::Silent,
    },
    flags,
    options_first: false,
};

const REPORTER: &str = include_str!("mocha/reporter.cjs");

fn flags(session: &Session<'_>) -> std::io::Result<Vec<String>> {
    let report = serde_json::to_string(&session.file(TOOL.reporting.file))?;
    let reporter = session.file("reporter.cjs");
    std::fs::write(
        &reporter,
        REPORTER.replace("REPORT,", &format!("{report},")),
    )?;
    Ok(vec![
        String::from("--reporter"),
        reporter.display().to_string(),
    ])
}

fn recognises(argv: &[String]) -> bool {
    matches!(program(argv), "mocha" | "_mocha" | "ts-mocha")
        && !argv
            .iter()
            .any(|a| a == "--watch" || a == "-w" || a == "--parallel")
}

/// Some versions refuse a second reporter.
fn without_reporter(step: &SuiteStep) -> SuiteStep {
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

/// A file that cannot be loaded ends mocha before it reports.
fn explain(finished: &FinishedProcess, code: i32) -> Option<Outcome> {
    let err = format!("{}\n{}", finished.stdout.text(), finished.stderr.text());
    if code != 0 && err.contains("No test files found") {
        return Some(Outcome::NoTests);
    }
    const LOADING: &[&str] = &[
        "SyntaxError",
        "Cannot find module",
        "ERR_MODULE_NOT_FOUND",
        "does not provide an export",
    ];
    let said = err
        .lines()
        .find(|l| LOADING.iter().any(|what| l.contains(what)))?;
    (code != 0).then(|| Outcome::DidNotBuild {
        errors: vec![BuildError::new(said.trim())],
    })
}

#[derive(Deserialize)]
struct Test {
    title: String,
    #[serde(default)]
    file: Option<String>,
    state: State,
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Passed,
    Skipped,
    Failed,
}

pub(super) fn parse(text: &str, root: &Path) -> Option<TestRunReport> {
    let tests: Vec<Test> = serde_json::from_str(text).ok()?;
    let mut report = TestRunReport::default();
    for test in tests {
        let path = test.file.as_deref().map(Path::new).unwrap_or(Path::new(""));
        let name = format!(
            "{} > {}",
            path.strip_prefix(root).unwrap_or(path).display(),
            test.title
        );
        let state = match test.state {
            State::Passed => TestState::Passed,
            State::Skipped => TestState::Skipped,
            State::Failed => failed(test.message),
        };
        report.add(&name, state);
    }
    Some(report)
}

#[cfg(test)]
mod tests {
    use super::super::super::command::argv;
    use super::super::super::outcome::TestName;
    use super::*;

    #[test]
    fn what_became_of_each_test_is_named_also_where_titles_stand_twice() {
        let text = r#"[{"title":"sum adds","file":"/p/t.js","state":"passed"},
            {"title":"sum bad","file":"/p/t.js","state":"failed","message":"boo"},
            {"title":"sum adds","file":"/p/t.js","state":"failed","message":"no"},
            {"title":"later","file":"/p/t.js","state":"skipped"}]"#;
        let report = parse(text, Path::new("/p")).expect("whole");
        assert_eq!(
            report.tests[&TestName::from("t.js > sum adds")],
            TestState::Passed
        );
        assert_eq!(
            report.tests[&TestName::from("t.js > sum adds #2")],
            failed("no")
        );
        assert_eq!(
            report.tests[&TestName::from("t.js > sum bad")],
            failed("boo")
        );
        assert_eq!(
            report.tests[&TestName::from("t.js > later")],
            TestState::Skipped
        );
    }

    #[test]
    fn the_reporter_of_a_command_gives_way_to_ours() {
        for own in [
            "mocha --reporter spec test/a.js",
            "mocha -R dot test/a.js",
            "mocha test/a.js --reporter=min",
        ] {
            let step = SuiteStep::new(argv(own), Path::new("/p"));
            assert_eq!(
                without_reporter(&step).argv,
                argv("mocha test/a.js"),
                "{own}"
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn no_report_is_too_odd(text in super::super::super::garbage::garbage(
            r#"[{"title":"a","state":"failed","message":"b"},{"title":"c","file":"t.js","state":"passed"}]"#
        )) {
            let _ = parse(&text, Path::new("/p"));
        }
    }
}
