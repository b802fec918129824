//! Runs minitest and test-unit with the project's own command. A plug-in that is required first waits until one of the two
//! frameworks is loaded and then records every result at a private path.

use std::path::{Path, PathBuf};

use futures_util::future::{BoxFuture, FutureExt as _};

use super::super::build::BuildError;
use super::super::command::{inner_commands, program};
use super::super::detect::SearchPlace;
use super::super::outcome::Outcome;
use super::super::report::{ReportAdapter, TerminalOutput};
use super::super::report_lines;
use super::super::session::{RunnerResult, Session};
use super::super::step::SuiteStep;
use super::{Runner, escape_regex, jest, never_detected, rspec};
use supervisor_languages::RUBY;
use supervisor_process::FinishedProcess;

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
    file: report_lines::FILE,
    parse: |text, session| report_lines::parse(text, session.root(), " ", report_lines::load_error),
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
        let plugin = match session.write_program("report.rb", REPORT_PLUGIN) {
            Ok(path) => path,
            Err(error) => return RunnerResult::no_report_dir(&error),
        };
        let own_options = session
            .variable("RUBYOPT")
            .map(|o| o.to_string_lossy().into_owned())
            .unwrap_or_default();
        let options = format!("{own_options} -r{plugin}");
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
    let (mut file, mut patterns) = (None, Vec::new());
    for name in names {
        let (stem, test) = name.split_once(".rb ")?;
        patterns.push(method_pattern(test)?);
        // Ruby runs only one file.
        let path = format!("{stem}.rb");
        (*file.get_or_insert_with(|| path.clone()) == path).then_some(())?;
    }
    argv.push(file?);
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

#[cfg(test)]
mod tests {
    use super::super::super::command::argv;
    use super::*;

    #[test]
    fn pattern_ignores_numbers() {
        for (name, pattern) in [
            ("Cart::size#is empty #2", r"test_\d+_is empty"),
            ("CartTest#test_2024_12", "test_2024_12"),
        ] {
            assert_eq!(method_pattern(name).as_deref(), Some(pattern));
        }
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
