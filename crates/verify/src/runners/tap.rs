//! Runs `tape` and `tap` and reads the TAP that they write to standard output. The code under test prints to the same
//! stream, so [`super::super::tap`] checks that the numbers of the points are consistent.

use futures_util::future::{BoxFuture, FutureExt as _};

use super::super::build::BuildError;
use super::super::command::{program, strip_wrappers};
use super::super::outcome::{Outcome, Tests};
use super::super::report::{failed as failed_test, strip_ansi};
use super::super::session::{
    RunnerResult, Session, decide_outcome, exit_code, join_output, output_of,
};
use super::super::step::SuiteStep;
use super::super::tap::{self, TapDocument};
use super::super::test_titles::{TestFileText, find_file_with_title, read_test_files};
use super::{Runner, never_detected};
use supervisor_languages::JAVASCRIPT;
use supervisor_text::words;

pub(super) static RUNNER: Runner = Runner {
    name: "tap",
    ecosystem: Some(&JAVASCRIPT),
    manifests: &[],
    command: &["npx", "tap"],
    find: never_detected,
    recognises,
    run,
    select,
    names_are_paths: true,
};

const OUTPUT: &str = "output.tap";

fn recognises(argv: &[String]) -> bool {
    match program(argv) {
        "tape" => true,
        // Other sub-commands manage tap itself: `tap plugin add`, `tap versions`.
        "tap" => !argv
            .iter()
            .any(|a| a == "--watch" || a == "-w" || a.starts_with("--reporter") || a == "plugin"),
        _ => false,
    }
}

fn run<'a>(step: &'a SuiteStep, session: &'a Session<'a>) -> BoxFuture<'a, RunnerResult> {
    async move {
        let judgement = run_once(step, session).await;
        let inner = strip_wrappers(&step.argv);
        let is_wrapped = inner.len() < step.argv.len() && step.shell.is_none();
        let nyc_error = judgement
            .output
            .lines()
            .find(|line| line.contains(NYC_WRAPPER_DIR) && line.contains("Error:"));
        let nyc_error = nyc_error.map(str::to_owned);
        let Some(nyc_error) = nyc_error.filter(|_| is_wrapped && !judgement.outcome.is_passed())
        else {
            return judgement;
        };
        // Coverage is not needed here, and a coverage tool that fails to start says nothing about the tests.
        let unwrapped = SuiteStep {
            argv: inner.to_vec(),
            ..step.clone()
        };
        let mut again = run_once(&unwrapped, session).await;
        let (wrapper, why) = (
            program(&step.argv).to_owned(),
            words::short(nyc_error.trim(), 200),
        );
        again.notes.push(format!(
            "run without `{wrapper}`, since it starts nothing: {why}"
        ));
        again
    }
    .boxed()
}

/// Part of the name of the directory that older versions of nyc always create in the home directory.
const NYC_WRAPPER_DIR: &str = ".node-spawn-wrap-";

async fn run_once(step: &SuiteStep, session: &Session<'_>) -> RunnerResult {
    let is_tap = program(strip_wrappers(&step.argv)) == "tap";
    let more: &[String] = if is_tap {
        &[String::from("--reporter=tap")]
    } else {
        &[]
    };
    let finished = session
        .run_into(OUTPUT, &step.with_arguments(more), &[])
        .await;
    let text = session.report(OUTPUT).unwrap_or_default();
    let files = read_test_files(&session.files_root(), &JAVASCRIPT);
    let output = join_output([strip_ansi(&text).as_str(), &output_of(&finished)]);
    let mut judgement = judge(tap::parse(&text), exit_code(&finished), &output, &files);
    if let Some(cut_short) =
        session.abnormal_outcome(&finished, if is_tap { "tap" } else { "tape" })
    {
        judgement.outcome = cut_short;
    }
    judgement
}

/// Judges a run by its document, if any, and its exit code.
pub(super) fn judge(
    document: Option<TapDocument>,
    code: Option<i32>,
    output: &str,
    files: &[TestFileText],
) -> RunnerResult {
    let judgement = |outcome, tests, notes| RunnerResult {
        outcome,
        tests,
        exit_code: code,
        output: output.to_owned(),
        notes,
    };
    let failed = code.is_some_and(|code| code != 0);
    let Some(document) = document else {
        let outcome = match uncaught_error(output, None, files).filter(|_| failed) {
            Some(error) => Outcome::DidNotBuild {
                errors: vec![error],
            },
            None => Outcome::NoTests,
        };
        return judgement(
            outcome,
            Tests::Named(std::collections::BTreeMap::new()),
            Vec::new(),
        );
    };
    let (points, is_complete) = (document.points, document.is_complete);
    let uncaught = uncaught_error(output, document.last_heading.as_deref(), files)
        .filter(|_| failed && !is_complete);
    let heading = document.last_heading.clone();
    let mut report = document.into_report(|path| test_name(path, files));
    if let (Some(error), Some(heading)) = (&uncaught, heading) {
        let name = test_name(&[heading], files);
        report
            .tests
            .insert(name.as_str().into(), failed_test(&error.message));
    }
    let outcome = match (uncaught, is_complete) {
        (Some(error), _) => Outcome::DidNotBuild {
            errors: vec![error],
        },
        (None, false) => Outcome::Unclear {
            why: String::from("the results end before their plan"),
        },
        (None, true) => match decide_outcome(&report.tests, code) {
            Outcome::Passed if !report.doubts.is_empty() => {
                let why = report
                    .doubts
                    .iter()
                    .take(5)
                    .cloned()
                    .collect::<Vec<_>>()
                    .join(", ");
                Outcome::Unclear {
                    why: format!("the exit code is 0, but {why}"),
                }
            }
            other => other,
        },
    };
    let mut notes = Vec::new();
    if points > report.tests.len() {
        let (tests, points) = (
            words::count(report.tests.len(), "test"),
            words::count(points, "test point"),
        );
        notes.push(format!("{points} of TAP in {tests}"));
    }
    judgement(outcome, Tests::Named(report.tests), notes)
}

/// The uncaught error that ended the run before its plan was written, while loading or in the test of the last heading.
fn uncaught_error(
    output: &str,
    heading: Option<&str>,
    files: &[TestFileText],
) -> Option<BuildError> {
    let is_error_line = |line: &&str| {
        let kind = line.split([':', ' ']).next().unwrap_or_default();
        kind.ends_with("Error") && kind.chars().all(char::is_alphanumeric) && line.contains(": ")
    };
    let error_line = output.lines().map(str::trim).find(is_error_line)?;
    let traced = output
        .lines()
        .find_map(|line| files.iter().find(|file| names_file(line, &file.path)));
    let titled = heading.and_then(|title| find_file_with_title(files.iter(), title));
    let error = BuildError::new(error_line);
    Some(match traced.or(titled) {
        Some(file) => error.at(&file.path, None),
        None => error,
    })
}

/// Whether a stack trace line names this file: `    at Test.<anonymous> (/p/test/a.js:6:5)`, `/p/test/a.js:1`.
fn names_file(line: &str, path: &str) -> bool {
    line.match_indices(path)
        .any(|(at, _)| line[at + path.len()..].starts_with(':') && line[..at].ends_with('/'))
}

/// The test name: file and titles. `tap` already includes the file in the path.
fn test_name(path: &[String], files: &[TestFileText]) -> String {
    let own = path.join(" > ");
    let Some(first) = path
        .first()
        .filter(|first| !files.iter().any(|file| file.path == **first))
    else {
        return own;
    };
    match find_file_with_title(files.iter(), first) {
        Some(file) => format!("{} > {own}", file.path),
        None => own,
    }
}

/// Neither runner selects tests by title, so this selects the files that contain them.
fn select(step: &SuiteStep, names: &[&str]) -> Option<Vec<String>> {
    let files: Option<Vec<&str>> = names
        .iter()
        .map(|name| name.split(" > ").next().filter(|f| is_js_file(f)))
        .collect();
    let mut files = files?;
    files.sort_unstable();
    files.dedup();
    let is_test_path =
        |word: &&String| !word.starts_with('-') && (is_js_file(word) || word.contains(['*', '/']));
    let from = step.argv.len() - strip_wrappers(&step.argv).len() + 1;
    let (start, rest) = step.argv.split_at(from.min(step.argv.len()));
    let kept = rest.iter().enumerate().filter(|(at, word)| {
        // Keep the value of `-r ./setup.js`: it is a module, not a test file.
        !is_test_path(word)
            || (*at > 0
                && matches!(
                    rest[at - 1].as_str(),
                    "-r" | "--require" | "-i" | "--ignore"
                ))
    });
    let kept: Vec<String> = kept.map(|(_, word)| word.clone()).collect();
    Some(
        start
            .iter()
            .cloned()
            .chain(kept)
            .chain(files.into_iter().map(str::to_owned))
            .collect(),
    )
}

fn is_js_file(word: &str) -> bool {
    [".js", ".cjs", ".mjs", ".ts", ".mts", ".cts", ".jsx", ".tsx"]
        .iter()
        .any(|ending| word.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::super::super::command::argv;
    use super::super::super::outcome::{TestName, TestState};
    use super::*;

    fn files() -> Vec<TestFileText> {
        let file = |path: &str, text: &str| TestFileText {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        vec![
            file("test/a.js", "test('adds'"),
            file("test/b.js", "test('halves'"),
        ]
    }

    #[test]
    fn pass_needs_plan_and_consistent_numbers() {
        let run = "TAP version 13\n# adds\nok 1 a\n# halves\nok 2 b\n1..2\n";
        let judge_text = |text: &str, code| judge(tap::parse(text), Some(code), text, &files());
        let complete = judge_text(run, 0);
        let Tests::Named(tests) = &complete.tests else {
            panic!("named")
        };
        assert_eq!(
            tests.keys().collect::<Vec<_>>(),
            [
                &TestName::from("test/a.js > adds"),
                &"test/b.js > halves".into()
            ]
        );
        assert_eq!(complete.outcome, Outcome::Passed);
        assert!(
            matches!(
                judge_text(&run.replace("1..2", ""), 0).outcome,
                Outcome::Unclear { .. }
            ),
            "no end"
        );
        assert!(
            matches!(
                judge_text(&run.replace("ok 2", "ok 2 x\nok 2"), 0).outcome,
                Outcome::Unclear { .. }
            ),
            "twice"
        );
        assert!(
            matches!(judge_text(run, 1).outcome, Outcome::Unclear { .. }),
            "the exit code says otherwise"
        );
        assert_eq!(
            judge_text(&run.replace("ok 2", "not ok 2"), 1).outcome,
            Outcome::Failed
        );
    }

    #[test]
    fn uncaught_error_has_its_file() {
        let output = "TAP version 13\n# adds\nok 1 a\n# halves\n/p/test/b.js:4\nTypeError: lib.halve is not a function\n    at Test.<anonymous> \
                    (/p/test/b.js:4:11)\n";
        let Outcome::DidNotBuild { errors } =
            judge(tap::parse(output), Some(1), output, &files()).outcome
        else {
            panic!()
        };
        assert_eq!(
            (errors[0].file.as_deref(), errors.len()),
            (Some("test/b.js"), 1)
        );
        let Tests::Named(tests) = judge(tap::parse(output), Some(1), output, &files()).tests else {
            panic!()
        };
        assert!(
            matches!(&tests[&TestName::from("test/b.js > halves")], TestState::Failed(why) if why.contains("lib.halve"))
        );
        let missing = "Error: Cannot find module '../half'\nRequire stack:\n- /p/test/b.js\n";
        let Outcome::DidNotBuild { errors } =
            judge(tap::parse(missing), Some(1), missing, &files()).outcome
        else {
            panic!()
        };
        assert_eq!(errors[0].missing, ["../half"]);
    }

    #[test]
    fn tests_are_selected_by_file() {
        let select_one = |words: &str, name: &str| {
            select(&SuiteStep::new(argv(words), "/p"), &[name]).map(|w| w.join(" "))
        };
        assert_eq!(
            select_one("nyc tape -r ./setup.js 'test/**/*.js'", "test/a.js > adds").as_deref(),
            Some("nyc tape -r ./setup.js test/a.js")
        );
        assert_eq!(
            select_one("tap", "test/a.js > adds > more").as_deref(),
            Some("tap test/a.js")
        );
        assert_eq!(select_one("tape test/*.js", "made while running"), None);
    }
}
