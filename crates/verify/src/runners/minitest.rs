//! Runs minitest and test-unit with the project's own command. A plug-in that is required first waits until one of the two
//! frameworks is loaded and then records every result at a private path.

use std::path::{Path, PathBuf};

use futures_util::future::{BoxFuture, FutureExt as _};
use serde::Deserialize;

use super::super::build::BuildError;
use super::super::command::{inner_commands, program};
use super::super::detect::SearchPlace;
use super::super::outcome::{Outcome, TestState};
use super::super::report::{ReportAdapter, TerminalOutput, TestRunReport, failed};
use super::super::session::{RunnerResult, Session};
use super::super::step::SuiteStep;
use super::{Runner, escape_regex, jest, never_detected, rspec};
use supervisor_languages::RUBY;
use supervisor_process::FinishedProcess;
use supervisor_text::words;

pub(super) static RUNNER: Runner = Runner {
    name: "minitest",
    ecosystem: Some(&RUBY),
    manifests: &[],
    command: &["bundle", "exec", "rake", "test"],
    find: never_detected,
    recognises,
    run,
    select,
    names_are_paths: true,
};

static ADAPTER: ReportAdapter = ReportAdapter {
    program: "ruby",
    file: "minitest.jsonl",
    parse: |text, _| parse(text),
    explain,
    terminal: TerminalOutput::ShowsFailures,
};

/// The plug-in that records the results.
const REPORT_PLUGIN: &str = include_str!("minitest/report.rb");

/// Files named like tests of either framework, relative to `dir`: those below `test`, or else those in `dir` itself.
pub(super) fn find_test_files(dir: &Path) -> Vec<PathBuf> {
    let is_test = |stem: &str| {
        stem.ends_with("_test") || stem.starts_with("test_") || stem.starts_with("spec_")
    };
    let below = find_ruby_files(dir, &["test"], |stem| {
        is_test(stem) && stem != "test_helper"
    });
    if below.is_empty() {
        find_ruby_files(dir, &[""], |stem| {
            stem.ends_with("_test") || stem.starts_with("test_")
        })
    } else {
        below
    }
}

/// Globs for the same files. Ruby expands them in each run, so that new test files are included.
const TEST_DIR_GLOB: &str = "test/**/{*_test,test_*,spec_*}.rb";
const TOP_LEVEL_GLOB: &str = "{*_test,test_*}.rb";
/// Loads the files and removes the arguments from `ARGV`, because the frameworks would read them as well.
const LOAD_SCRIPT: &str =
    "Dir.glob(ARGV.slice!(0..)).sort.each { |file| require File.expand_path(file) }";

/// Finds Ruby files by name below these subdirectories of `dir`. The empty name is `dir` itself, without its
/// subdirectories.
pub(super) fn find_ruby_files(
    dir: &Path,
    subdirs: &[&str],
    is_test: impl Fn(&str) -> bool,
) -> Vec<PathBuf> {
    const MAX_FILES: usize = 5_000;
    let mut found: Vec<PathBuf> = Vec::new();
    for subdir in subdirs {
        let depth = if subdir.is_empty() { 1 } else { 8 };
        let walk = ignore::WalkBuilder::new(dir.join(subdir))
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
                .take(MAX_FILES),
        );
    }
    found.sort();
    found
}

/// The command to run the tests: the project's own task if there is one, or else Ruby with all test files.
pub(super) fn test_command(
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
        LOAD_SCRIPT,
        if is_below {
            TEST_DIR_GLOB
        } else {
            TOP_LEVEL_GLOB
        },
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

fn run<'a>(step: &'a SuiteStep, session: &'a Session<'a>) -> BoxFuture<'a, RunnerResult> {
    async move {
        let (plugin, report) = (session.file("report.rb"), session.file(ADAPTER.file));
        let text = REPORT_PLUGIN.replace(
            "@REPORT@",
            &report
                .to_string_lossy()
                .replace('\\', "\\\\")
                .replace('\'', "\\'"),
        );
        if let Err(error) = std::fs::write(&plugin, text) {
            return RunnerResult::no_report_dir(&error);
        }
        let own_options = session
            .variable("RUBYOPT")
            .map(|o| o.to_string_lossy().into_owned())
            .unwrap_or_default();
        let options = format!("{own_options} -r{}", plugin.display());
        let mut judgement = rspec::run_bundled(
            &ADAPTER,
            session,
            &step.with_arguments(&[]),
            &[("RUBYOPT", options.trim().to_owned())],
        )
        .await;
        // Make the absolute paths in errors relative.
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
    let error_line = err.lines().find(|l| {
        l.contains("(NameError)")
            || l.contains("(LoadError)")
            || l.contains("(SyntaxError)")
            || l.contains("(NoMethodError)")
    });
    let error_line = error_line.or_else(|| {
        err.lines()
            .find(|l| l.contains("cannot load such file") || l.contains("syntax error"))
    });
    let (line, has_failed) = (error_line?, code != 0);
    if line.contains("cannot load such file -- rake") {
        let remedy = String::from("install rake or name another command as `test_cmd`");
        return Some(Outcome::CouldNotRun {
            why: line.trim().to_owned(),
            remedy,
        });
    }
    has_failed.then(|| Outcome::DidNotBuild {
        errors: vec![load_error(line)],
    })
}

/// Parses `/p/test/a_test.rb:3:in 'block': uninitialized constant Calc (NameError)`.
fn load_error(line: &str) -> BuildError {
    let line = line.trim();
    let Some((file, rest)) = line.split_once(".rb:") else {
        return BuildError::new(line);
    };
    let number = rest
        .split(|c: char| !c.is_ascii_digit())
        .next()
        .and_then(|n| n.parse().ok());
    let message = rest.split_once(": ").map_or(rest, |(_, message)| message);
    BuildError::new(message).at(format!("{file}.rb"), number)
}

/// `test/a_test.rb ATest#test_adds` becomes the file and a pattern of the name.
fn select(step: &SuiteStep, names: &[&str]) -> Option<Vec<String>> {
    let is_bundled = inner_commands(&step.argv)
        .next()
        .is_some_and(|inner| inner.len() < step.argv.len());
    let mut argv: Vec<String> = if is_bundled {
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
        patterns.push(method_pattern(test)?);
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
        format!("/{}/", jest::match_any_title(&patterns)),
    ]);
    Some(argv)
}

/// A pattern for the method behind a test name. It ignores the numbers of specs and of repeated names.
fn method_pattern(test: &str) -> Option<String> {
    let (_, rest) = test.split_once('#')?;
    let is_repeat_number =
        |(_, n): &(&str, &str)| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit());
    let method = rest
        .rsplit_once(" #")
        .filter(is_repeat_number)
        .map_or(rest, |(method, _)| method);
    Some(if method.starts_with("test_") {
        escape_regex(method)
    } else {
        format!("test_\\d+_{}", escape_regex(method))
    })
}

/// Splits the number off a spec's method name, such as `test_0030_is written`. The number depends on the specs before it
/// and is therefore not part of the test name.
fn split_spec_number(name: &str) -> (String, u32) {
    let split = |(owner, method): (&str, &str)| {
        let (number, description) = method.strip_prefix("test_")?.split_once('_')?;
        let is_number = number.len() == 4 && number.bytes().all(|b| b.is_ascii_digit());
        (is_number && !description.is_empty())
            .then(|| Some((format!("{owner}#{description}"), number.parse().ok()?)))?
    };
    name.split_once('#')
        .and_then(split)
        .unwrap_or((name.to_owned(), 0))
}

#[derive(Deserialize)]
struct MinitestRecord {
    /// `None` in the first and last line of a process.
    name: Option<String>,
    /// True in the first line of a process, false in its last.
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
    let mut open_processes = 0_i64;
    let mut has_lines = false;
    let mut found: Vec<(String, u32, TestState)> = Vec::new();
    for line in text.lines() {
        let record: MinitestRecord = serde_json::from_str(line).ok()?;
        has_lines = true;
        let Some(name) = record.name else {
            open_processes += if record.begins { 1 } else { -1 };
            continue;
        };
        let state = match record.state.as_str() {
            "passed" => TestState::Passed,
            "skipped" => TestState::Skipped,
            _ => failed(record.message),
        };
        let (name, number) = split_spec_number(&name);
        found.push((
            format!("{} {name}", record.file).trim().to_owned(),
            number,
            state,
        ));
    }
    // Tests run in random order. Sort by spec number, so that repeated names are numbered in the order of the source.
    found.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
    for (name, _, state) in found {
        report.add(&name, state);
    }
    if open_processes > 0 {
        report.doubts.push(format!(
            "{} never came to its end",
            words::count(usize::try_from(open_processes).unwrap_or(1), "test process")
        ));
    }
    has_lines.then_some(report)
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
        let report = parse(text).expect("a complete report");
        assert_eq!(
            report.tests[&TestName::from("test/a_test.rb ATest#test_adds")],
            TestState::Passed
        );
        assert_eq!(
            report.tests[&TestName::from("test/a_test.rb ATest#test_bad")],
            failed("Expected: 1")
        );
        assert!(report.doubts.is_empty());
        let truncated = text.trim_end().trim_end_matches("{\"begins\":false}");
        assert_eq!(
            parse(truncated).expect("readable").doubts.len(),
            1,
            "a process that exited early"
        );
        assert_eq!(parse(""), None);
    }

    #[test]
    fn spec_is_named_without_its_number() {
        let record = |method: &str| {
            format!(
                "{{\"name\":\"Cart::size#{method}\",\"file\":\"test/spec_cart.rb\",\"state\":\"passed\"}}\n"
            )
        };
        let text = record("test_0003_is empty")
            + &record("test_0001_counts")
            + &record("test_0002_is empty");
        let names: Vec<String> = parse(&text)
            .expect("a complete report")
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
            method_pattern("Cart::size#is empty #2").as_deref(),
            Some(r"test_\d+_is empty")
        );
        assert_eq!(
            method_pattern("CartTest#test_2024_12").as_deref(),
            Some("test_2024_12")
        );
        assert_eq!(
            split_spec_number("CartTest#test_2024"),
            ("CartTest#test_2024".into(), 0)
        );
    }

    #[test]
    fn test_commands_are_recognised() {
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
    fn test_is_selected_by_file_and_name() {
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
    fn unloadable_file_is_a_build_error() {
        let error =
            load_error("/p/test/a_test.rb:3:in '<main>': uninitialized constant Calc (NameError)");
        assert_eq!(
            (error.file.as_deref(), error.line),
            (Some("/p/test/a_test.rb"), Some(3))
        );
        assert_eq!(error.missing, ["Calc"]);
    }
}
