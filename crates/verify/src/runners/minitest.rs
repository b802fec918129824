//! minitest and test-unit: whatever command the project has for them, with a file of ours required first, which notes
//! every result at a private path as soon as one of the two frameworks is loaded.

use std::path::{Path, PathBuf};

use futures_util::future::{BoxFuture, FutureExt as _};
use serde::Deserialize;

use super::super::build::BuildError;
use super::super::command::{program, unwrapped};
use super::super::detect::SearchPlace;
use super::super::outcome::{Outcome, TestState};
use super::super::report::{Reporting, Terminal, TestRunReport, failed};
use super::super::session::{Judgement, Session};
use super::super::step::SuiteStep;
use super::{Runner, by_command_alone, jest, quoted, rspec};
use supervisor_languages::RUBY;
use supervisor_process::FinishedProcess;
use supervisor_text::words;

pub(super) static RUNNER: Runner = Runner {
    name: "minitest",
    ecosystem: Some(&RUBY),
    manifests: &[],
    command: &["bundle", "exec", "rake", "test"],
    find: by_command_alone,
    recognises,
    run,
    select,
    names_are_paths: true,
};

static REPORTING: Reporting = Reporting {
    program: "ruby",
    file: "minitest.jsonl",
    parse: |text, _| parse(text),
    explain,
    terminal: Terminal::Tells,
};

/// See there.
const MORE: &str = include_str!("minitest/report.rb");

/// Files that are called like tests of either framework, relative to the directory: where they usually stand, else in it.
pub(super) fn test_files(dir: &Path) -> Vec<PathBuf> {
    let is_test = |stem: &str| {
        stem.ends_with("_test") || stem.starts_with("test_") || stem.starts_with("spec_")
    };
    let below = files(dir, &["test"], |stem| {
        is_test(stem) && stem != "test_helper"
    });
    if below.is_empty() {
        files(dir, &[""], |stem| {
            stem.ends_with("_test") || stem.starts_with("test_")
        })
    } else {
        below
    }
}

/// The same files, as Ruby finds them: in each run anew, for a file that is written later is a test, too.
const BELOW_TEST: &str = "test/**/{*_test,test_*,spec_*}.rb";
const BESIDE_CODE: &str = "{*_test,test_*}.rb";
/// The words are taken away, because the frameworks would read them as well.
const LOAD: &str = "Dir.glob(ARGV.slice!(0..)).sort.each { |file| require File.expand_path(file) }";

/// Ruby files by name, to some depth below these directories; in the directory itself no deeper.
pub(super) fn files(dir: &Path, homes: &[&str], is_test: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    const MOST: usize = 5_000;
    let mut found: Vec<PathBuf> = Vec::new();
    for home in homes {
        let depth = if home.is_empty() { 1 } else { 8 };
        let walk = ignore::WalkBuilder::new(dir.join(home))
            .max_depth(Some(depth))
            .require_git(false)
            .build();
        let files = walk
            .flatten()
            .map(ignore::DirEntry::into_path)
            .filter(|p| p.extension().is_some_and(|e| e == "rb"));
        let tests = files.filter(|p| p.file_stem().is_some_and(|s| is_test(&s.to_string_lossy())));
        found.extend(
            tests
                .filter_map(|p| Some(p.strip_prefix(dir).ok()?.to_owned()))
                .take(MOST),
        );
    }
    found.sort();
    found
}

/// The project's own task, where there is one; else Ruby with all files.
pub(super) fn command(
    place: &SearchPlace<'_>,
    tests: &[PathBuf],
    with_bundle: &dyn Fn(&[&str]) -> Vec<String>,
) -> Vec<String> {
    let rakefile = ["Rakefile", "rakefile", "Rakefile.rb"]
        .iter()
        .find_map(|f| place.read(f))
        .unwrap_or_default();
    let has_task = [
        "TestTask",
        "task :test",
        "task test:",
        "task \"test\"",
        "task 'test'",
    ]
    .iter()
    .any(|t| rakefile.contains(t));
    if has_task {
        return with_bundle(&["rake", "test"]);
    }
    if place.has("bin/rails") {
        return with_bundle(&["bin/rails", "test"]);
    }
    let is_below = tests.iter().any(|path| path.starts_with("test"));
    with_bundle(&[
        "ruby",
        "-Ilib",
        "-Itest",
        "-e",
        LOAD,
        if is_below { BELOW_TEST } else { BESIDE_CODE },
    ])
}

fn recognises(argv: &[String]) -> bool {
    let is_test = |word: &String| word.contains("test") || word.contains("spec_");
    match program(argv) {
        "rake" => argv.iter().skip(1).any(is_test),
        "rails" => argv.get(1).is_some_and(|a| a == "test"),
        "minitest" | "m" => true,
        "ruby" => argv
            .iter()
            .skip(1)
            .any(|w| !w.starts_with('-') && w.ends_with(".rb") && is_test(w)),
        _ => false,
    }
}

fn run<'a>(step: &'a SuiteStep, session: &'a Session<'a>) -> BoxFuture<'a, Judgement> {
    async move {
        let (more, report) = (session.file("report.rb"), session.file(REPORTING.file));
        let text = MORE.replace(
            "@REPORT@",
            &report
                .to_string_lossy()
                .replace('\\', "\\\\")
                .replace('\'', "\\'"),
        );
        if let Err(error) = std::fs::write(&more, text) {
            return Judgement::no_place(&error);
        }
        let own = session
            .variable("RUBYOPT")
            .map(|o| o.to_string_lossy().into_owned())
            .unwrap_or_default();
        let options = format!("{own} -r{}", more.display());
        let mut judgement = rspec::run_bundled(
            &REPORTING,
            session,
            &step.with_arguments(&[]),
            &[("RUBYOPT", options.trim().to_owned())],
        )
        .await;
        // Paths in errors are whole ones.
        if let Outcome::DidNotBuild { errors } = &mut judgement.outcome {
            let root = format!("{}/", session.root().display());
            for error in errors {
                error.file = error
                    .file
                    .take()
                    .map(|f| f.strip_prefix(&root).map(str::to_owned).unwrap_or(f));
            }
        }
        judgement
    }
    .boxed()
}

fn explain(finished: &FinishedProcess, code: i32) -> Option<Outcome> {
    if let Some(outcome) = rspec::explain(finished, code) {
        return Some(outcome);
    }
    let err = finished.stderr.text();
    let told = err.lines().find(|l| {
        l.contains("(NameError)")
            || l.contains("(LoadError)")
            || l.contains("(SyntaxError)")
            || l.contains("(NoMethodError)")
    });
    let told = told.or_else(|| {
        err.lines()
            .find(|l| l.contains("cannot load such file") || l.contains("syntax error"))
    });
    let (line, failed) = (told?, code != 0);
    if line.contains("cannot load such file -- rake") {
        let remedy = String::from("install rake or name another command as `test_cmd`");
        return Some(Outcome::CouldNotRun {
            why: line.trim().to_owned(),
            remedy,
        });
    }
    failed.then(|| Outcome::DidNotBuild {
        errors: vec![load_error(line)],
    })
}

/// `/p/test/a_test.rb:3:in 'block': uninitialized constant Calc (NameError)`
fn load_error(line: &str) -> BuildError {
    let line = line.trim();
    let Some((file, rest)) = line.split_once(".rb:") else {
        return BuildError::new(line);
    };
    let number = rest
        .split(|c: char| !c.is_ascii_digit())
        .next()
        .and_then(|n| n.parse().ok());
    let said = rest.split_once(": ").map_or(rest, |(_, said)| said);
    BuildError::new(said).at(format!("{file}.rb"), number)
}

/// `test/a_test.rb ATest#test_adds` becomes the file and a pattern of the name.
fn select(step: &SuiteStep, names: &[&str]) -> Option<Vec<String>> {
    let bundled = unwrapped(&step.argv)
        .next()
        .is_some_and(|inner| inner.len() < step.argv.len());
    let mut argv: Vec<String> = if bundled {
        ["bundle", "exec"].map(String::from).to_vec()
    } else {
        Vec::new()
    };
    argv.extend(["ruby", "-Ilib", "-Itest"].map(String::from));
    let (mut files, mut patterns): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for name in names {
        let (file, test) = name
            .split_once(".rb ")
            .map(|(f, t)| (format!("{f}.rb"), t))?;
        patterns.push(pattern_of(test)?);
        if !files.contains(&file) {
            files.push(file);
        }
    }
    if files.len() > 1 {
        argv.extend([
            String::from("-e"),
            String::from(
                "ARGV.take_while { |a| a != '--' }.each { |file| require File.expand_path(file) }",
            ),
        ]);
        return None;
    }
    argv.extend(files);
    argv.extend([
        String::from("-n"),
        format!("/{}/", jest::one_of_titles(&patterns)),
    ]);
    Some(argv)
}

/// What a method is called by the name that it has here: numbers of specs, and of names that come twice, are left open.
fn pattern_of(test: &str) -> Option<String> {
    let (_, rest) = test.split_once('#')?;
    let is_twice = |(_, n): &(&str, &str)| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit());
    let method = rest
        .rsplit_once(" #")
        .filter(is_twice)
        .map_or(rest, |(method, _)| method);
    Some(if method.starts_with("test_") {
        quoted(method)
    } else {
        format!("test_\\d+_{}", quoted(method))
    })
}

/// `test_0030_is written`: a spec is called by what it says, and its number by those before it.
fn without_number(name: &str) -> (String, u32) {
    let numbered = |(owner, method): (&str, &str)| {
        let (number, said) = method.strip_prefix("test_")?.split_once('_')?;
        let is_number = number.len() == 4 && number.bytes().all(|b| b.is_ascii_digit());
        (is_number && !said.is_empty())
            .then(|| Some((format!("{owner}#{said}"), number.parse().ok()?)))?
    };
    name.split_once('#')
        .and_then(numbered)
        .unwrap_or((name.to_owned(), 0))
}

#[derive(Deserialize)]
struct NotedTest {
    /// `None` in the last line of a process, which says that all is told.
    name: Option<String>,
    /// In the first line of a process: how many there will be.
    #[serde(default)]
    begins: bool,
    #[serde(default)]
    file: String,
    #[serde(default)]
    state: String,
    #[serde(default)]
    message: String,
}

pub(super) fn parse(text: &str) -> Option<TestRunReport> {
    let mut report = TestRunReport::default();
    let mut open = 0_i64;
    let mut any = false;
    let mut found: Vec<(String, u32, TestState)> = Vec::new();
    for line in text.lines() {
        let noted: NotedTest = serde_json::from_str(line).ok()?;
        any = true;
        let Some(name) = noted.name else {
            open += if noted.begins { 1 } else { -1 };
            continue;
        };
        let state = match noted.state.as_str() {
            "passed" => TestState::Passed,
            "skipped" => TestState::Skipped,
            _ => failed(noted.message),
        };
        let (name, number) = without_number(&name);
        found.push((
            format!("{} {name}", noted.file).trim().to_owned(),
            number,
            state,
        ));
    }
    // They run in any order; what comes twice is told apart by the order in which it is written.
    found.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
    for (name, _, state) in found {
        report.add(&name, state);
    }
    if open > 0 {
        report.doubts.push(format!(
            "{} never came to its end",
            words::count(usize::try_from(open).unwrap_or(1), "test process")
        ));
    }
    any.then_some(report)
}

#[cfg(test)]
mod tests {
    use super::super::super::command::argv;
    use super::super::super::outcome::TestName;
    use super::*;

    #[test]
    fn results_are_named_by_file_class_and_method() {
        let text = "{\"begins\":true}\n{\"name\":\"ATest#test_adds\",\"file\":\"test/a_test.rb\",\"state\":\"passed\"}\n\
            {\"name\":\"ATest#test_bad\",\"file\":\"test/a_test.rb\",\"state\":\"failed\",\"message\":\"Expected: 1\"}\n{\"begins\":false}\n";
        let report = parse(text).expect("whole");
        assert_eq!(
            report.tests[&TestName::from("test/a_test.rb ATest#test_adds")],
            TestState::Passed
        );
        assert_eq!(
            report.tests[&TestName::from("test/a_test.rb ATest#test_bad")],
            failed("Expected: 1")
        );
        assert!(report.doubts.is_empty());
        let cut = text.trim_end().trim_end_matches("{\"begins\":false}");
        assert_eq!(
            parse(cut).expect("readable").doubts.len(),
            1,
            "a process that left early"
        );
        assert_eq!(parse(""), None);
    }

    #[test]
    fn a_spec_is_named_without_its_number() {
        let noted = |method: &str| {
            format!(
                "{{\"name\":\"Cart::size#{method}\",\"file\":\"test/spec_cart.rb\",\"state\":\"passed\"}}\n"
            )
        };
        let text =
            noted("test_0003_is empty") + &noted("test_0001_counts") + &noted("test_0002_is empty");
        let names: Vec<String> = parse(&text)
            .expect("whole")
            .tests
            .into_keys()
            .map(|n| n.0)
            .collect();
        assert_eq!(
            names,
            ["counts", "is empty", "is empty #2"]
                .map(|n| format!("test/spec_cart.rb Cart::size#{n}"))
        );
        assert_eq!(
            pattern_of("Cart::size#is empty #2").as_deref(),
            Some(r"test_\d+_is empty")
        );
        assert_eq!(
            pattern_of("CartTest#test_2024_12").as_deref(),
            Some("test_2024_12")
        );
        assert_eq!(
            without_number("CartTest#test_2024"),
            ("CartTest#test_2024".into(), 0)
        );
    }

    #[test]
    fn it_knows_its_own_commands() {
        for words in [
            "rake test",
            "rake test:regular",
            "ruby -Itest test/a_test.rb",
            "rails test",
        ] {
            assert!(recognises(&argv(words)), "{words}");
        }
        for words in ["rake", "rake build", "ruby lib/a.rb", "rspec"] {
            assert!(!recognises(&argv(words)), "{words}");
        }
    }

    #[test]
    fn one_test_is_selected_by_file_and_name() {
        let step = SuiteStep::new(argv("bundle exec rake test"), "/p");
        let narrowed = select(&step, &["test/a_test.rb ATest#test_adds"]).expect("can select");
        assert_eq!(
            narrowed,
            [
                "bundle",
                "exec",
                "ruby",
                "-Ilib",
                "-Itest",
                "test/a_test.rb",
                "-n",
                "/^test_adds$/"
            ]
        );
    }

    #[test]
    fn a_file_that_does_not_load_is_a_build_error() {
        let error =
            load_error("/p/test/a_test.rb:3:in '<main>': uninitialized constant Calc (NameError)");
        assert_eq!(
            (error.file.as_deref(), error.line),
            (Some("/p/test/a_test.rb"), Some(3))
        );
        assert_eq!(error.missing, ["Calc"]);
    }
}
