//! `tape` and `tap`: results as TAP, which they write to their standard output. What the code under test prints comes in
//! between, so that the numbers of the points must fit ([`super::super::tap`]).

use futures_util::future::{BoxFuture, FutureExt as _};

use super::super::build::BuildError;
use super::super::command::{program, without_wrappers};
use super::super::outcome::{Outcome, Tests};
use super::super::report::{failed as failed_test, without_colour};
use super::super::session::{Judgement, Session, agree, exit_code, join_output, output_of};
use super::super::step::SuiteStep;
use super::super::tap::{self, TapDocument};
use super::super::titles::{TitledFile, only_holder, titled_files};
use super::{Runner, by_command_alone};
use supervisor_languages::JAVASCRIPT;
use supervisor_text::words;

pub(super) static RUNNER: Runner = Runner {
    name: "tap",
    ecosystem: Some(&JAVASCRIPT),
    manifests: &[],
    command: &["npx", "tap"],
    find: by_command_alone,
    recognises,
    run,
    select,
    names_are_paths: true,
};

const OUTPUT: &str = "output.tap";

fn recognises(argv: &[String]) -> bool {
    match program(argv) {
        "tape" => true,
        // Its other words are about itself: `tap plugin add`, `tap versions`.
        "tap" => !argv
            .iter()
            .any(|a| a == "--watch" || a == "-w" || a.starts_with("--reporter") || a == "plugin"),
        _ => false,
    }
}

fn run<'a>(step: &'a SuiteStep, session: &'a Session<'a>) -> BoxFuture<'a, Judgement> {
    async move {
        let judgement = run_once(step, session).await;
        let inner = without_wrappers(&step.argv);
        let is_wrapped = inner.len() < step.argv.len() && step.shell.is_none();
        let refused = judgement
            .output
            .lines()
            .find(|line| line.contains(WRAPPERS_OF_NYC) && line.contains("Error:"));
        let refused = refused.map(str::to_owned);
        let Some(refused) = refused.filter(|_| is_wrapped && !judgement.outcome.is_passed()) else {
            return judgement;
        };
        // Coverage is not asked for here; what keeps its tool from starting says nothing about the tests.
        let bare = SuiteStep {
            argv: inner.to_vec(),
            ..step.clone()
        };
        let mut again = run_once(&bare, session).await;
        let (nyc, why) = (
            program(&step.argv).to_owned(),
            words::cut_end(&words::plain(refused.trim()), 200).into_owned(),
        );
        again.notes.push(format!(
            "run without `{nyc}`, since it starts nothing: {why}"
        ));
        again
    }
    .boxed()
}

/// The directory of wrappers that older versions of nyc make in the home directory, wherever else they might.
const WRAPPERS_OF_NYC: &str = ".node-spawn-wrap-";

async fn run_once(step: &SuiteStep, session: &Session<'_>) -> Judgement {
    let is_tap = program(without_wrappers(&step.argv)) == "tap";
    let more: &[String] = if is_tap {
        &[String::from("--reporter=tap")]
    } else {
        &[]
    };
    let finished = session
        .run_into(OUTPUT, &step.with_arguments(more), &[])
        .await;
    let text = session.report(OUTPUT).unwrap_or_default();
    let files = titled_files(&session.files(), &JAVASCRIPT);
    let said = join_output([without_colour(&text).as_str(), &output_of(&finished)]);
    let mut judgement = judge(tap::read(&text), exit_code(&finished), &said, &files);
    if let Some(cut_short) = session.cut_short(&finished, if is_tap { "tap" } else { "tape" }) {
        judgement.outcome = cut_short;
    }
    judgement
}

/// What a document, if there is one, and an exit code come to.
pub(super) fn judge(
    document: Option<TapDocument>,
    code: Option<i32>,
    said: &str,
    files: &[TitledFile],
) -> Judgement {
    let judgement = |outcome, tests, notes| Judgement {
        outcome,
        tests,
        exit_code: code,
        output: said.to_owned(),
        notes,
    };
    let failed = code.is_some_and(|code| code != 0);
    let Some(document) = document else {
        let outcome = match died(said, None, files).filter(|_| failed) {
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
    let (points, is_whole) = (document.points, document.is_whole);
    let died = died(said, document.last_heading.as_deref(), files).filter(|_| failed && !is_whole);
    let heading = document.last_heading.clone();
    let mut report = document.into_report(|path| name_of(path, files));
    if let (Some(error), Some(heading)) = (&died, heading) {
        let name = name_of(&[heading], files);
        report
            .tests
            .insert(name.as_str().into(), failed_test(&error.message));
    }
    let outcome = match (died, is_whole) {
        (Some(error), _) => Outcome::DidNotBuild {
            errors: vec![error],
        },
        (None, false) => Outcome::Unclear {
            why: String::from("the results end before their plan"),
        },
        (None, true) => match agree(&report.tests, code) {
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

/// What ended the run before its plan was written: an error that nothing caught, while loading or in the test that the
/// last heading names.
fn died(said: &str, heading: Option<&str>, files: &[TitledFile]) -> Option<BuildError> {
    let is_complaint = |line: &&str| {
        let kind = line.split([':', ' ']).next().unwrap_or_default();
        kind.ends_with("Error") && kind.chars().all(char::is_alphanumeric) && line.contains(": ")
    };
    let complaint = said.lines().map(str::trim).find(is_complaint)?;
    let traced = said
        .lines()
        .find_map(|line| files.iter().find(|file| is_traced(line, &file.path)));
    let titled = heading.and_then(|title| only_holder(files.iter(), title));
    let error = BuildError::new(complaint);
    Some(match traced.or(titled) {
        Some(file) => error.at(&file.path, None),
        None => error,
    })
}

/// `    at Test.<anonymous> (/p/test/a.js:6:5)`, `/p/test/a.js:1`
fn is_traced(line: &str, path: &str) -> bool {
    line.match_indices(path)
        .any(|(at, _)| line[at + path.len()..].starts_with(':') && line[..at].ends_with('/'))
}

/// By file and title. `tap` names the file itself.
fn name_of(path: &[String], files: &[TitledFile]) -> String {
    let own = path.join(" > ");
    let Some(first) = path
        .first()
        .filter(|first| !files.iter().any(|file| file.path == **first))
    else {
        return own;
    };
    match only_holder(files.iter(), first) {
        Some(file) => format!("{} > {own}", file.path),
        None => own,
    }
}

/// Neither selects tests by title; the files that hold them are run alone.
fn select(step: &SuiteStep, names: &[&str]) -> Option<Vec<String>> {
    let files: Option<Vec<&str>> = names
        .iter()
        .map(|name| name.split(" > ").next().filter(|f| has_ending(f)))
        .collect();
    let mut files = files?;
    files.sort_unstable();
    files.dedup();
    let is_place =
        |word: &&String| !word.starts_with('-') && (has_ending(word) || word.contains(['*', '/']));
    let from = step.argv.len() - without_wrappers(&step.argv).len() + 1;
    let (start, rest) = step.argv.split_at(from.min(step.argv.len()));
    let kept = rest.iter().enumerate().filter(|(at, word)| {
        // `-r ./setup.js` is a module, and no place of tests.
        !is_place(word)
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

fn has_ending(word: &str) -> bool {
    [".js", ".cjs", ".mjs", ".ts", ".mts", ".cts", ".jsx", ".tsx"]
        .iter()
        .any(|ending| word.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::super::super::command::argv;
    use super::super::super::outcome::{TestName, TestState};
    use super::*;

    fn files() -> Vec<TitledFile> {
        let file = |path: &str, text: &str| TitledFile {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        vec![
            file("test/a.js", "test('adds'"),
            file("test/b.js", "test('halves'"),
        ]
    }

    #[test]
    fn a_pass_has_its_plan_and_every_number_once() {
        let run = "TAP version 13\n# adds\nok 1 a\n# halves\nok 2 b\n1..2\n";
        let judged = |text: &str, code| judge(tap::read(text), Some(code), text, &files());
        let whole = judged(run, 0);
        let Tests::Named(tests) = &whole.tests else {
            panic!("named")
        };
        assert_eq!(
            tests.keys().collect::<Vec<_>>(),
            [
                &TestName::from("test/a.js > adds"),
                &"test/b.js > halves".into()
            ]
        );
        assert_eq!(whole.outcome, Outcome::Passed);
        assert!(
            matches!(
                judged(&run.replace("1..2", ""), 0).outcome,
                Outcome::Unclear { .. }
            ),
            "no end"
        );
        assert!(
            matches!(
                judged(&run.replace("ok 2", "ok 2 x\nok 2"), 0).outcome,
                Outcome::Unclear { .. }
            ),
            "twice"
        );
        assert!(
            matches!(judged(run, 1).outcome, Outcome::Unclear { .. }),
            "the exit code says otherwise"
        );
        assert_eq!(
            judged(&run.replace("ok 2", "not ok 2"), 1).outcome,
            Outcome::Failed
        );
    }

    #[test]
    fn an_error_that_nothing_caught_is_told_with_its_file() {
        let said = "TAP version 13\n# adds\nok 1 a\n# halves\n/p/test/b.js:4\nTypeError: lib.halve is not a function\n    at Test.<anonymous> \
                    (/p/test/b.js:4:11)\n";
        let Outcome::DidNotBuild { errors } =
            judge(tap::read(said), Some(1), said, &files()).outcome
        else {
            panic!()
        };
        assert_eq!(
            (errors[0].file.as_deref(), errors.len()),
            (Some("test/b.js"), 1)
        );
        let Tests::Named(tests) = judge(tap::read(said), Some(1), said, &files()).tests else {
            panic!()
        };
        assert!(
            matches!(&tests[&TestName::from("test/b.js > halves")], TestState::Failed(why) if why.contains("lib.halve"))
        );
        let missing = "Error: Cannot find module '../half'\nRequire stack:\n- /p/test/b.js\n";
        let Outcome::DidNotBuild { errors } =
            judge(tap::read(missing), Some(1), missing, &files()).outcome
        else {
            panic!()
        };
        assert_eq!(errors[0].missing, ["../half"]);
    }

    #[test]
    fn tests_are_selected_by_the_files_that_hold_them() {
        let alone = |words: &str, name: &str| {
            select(&SuiteStep::new(argv(words), "/p"), &[name]).map(|w| w.join(" "))
        };
        assert_eq!(
            alone("nyc tape -r ./setup.js 'test/**/*.js'", "test/a.js > adds").as_deref(),
            Some("nyc tape -r ./setup.js test/a.js")
        );
        assert_eq!(
            alone("tap", "test/a.js > adds > more").as_deref(),
            Some("tap test/a.js")
        );
        assert_eq!(alone("tape test/*.js", "made while running"), None);
    }
}
