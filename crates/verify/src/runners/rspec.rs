//! Runs `rspec` with our own formatter, which writes to a private path. Also detects Ruby tests of the other
//! frameworks, by the files of the project.

use std::path::Path;

use futures_util::future::{BoxFuture, FutureExt as _};

use super::super::build::BuildError;
use super::super::command::program;
use super::super::detect::{Confidence, FoundSuite, SearchPlace};
use super::super::outcome::Outcome;
use super::super::report::{ReportAdapter, TerminalOutput, TestRunReport};
use super::super::report_lines;
use super::super::session::{RunnerResult, Session};
use super::super::step::SuiteStep;
use super::{Runner, minitest};
use supervisor_languages::RUBY;
use supervisor_process::FinishedProcess;

pub(super) static RUNNER: Runner = Runner {
    name: "rspec",
    ecosystem: Some(&RUBY),
    manifests: &["Gemfile"],
    command: &["bundle", "exec", "rspec"],
    find,
    recognises: |argv| program(argv) == "rspec",
    run,
    select,
    names_are_paths: true,
};

static ADAPTER: ReportAdapter = ReportAdapter {
    program: "rspec",
    file: report_lines::FILE,
    parse: |text, session| parse(text, session.root()),
    explain,
    terminal: TerminalOutput::ShowsFailures,
};

/// Defines the formatter.
const REPORT_PLUGIN: &str = include_str!("rspec/report.rb");
/// The message of the formatter if RSpec gives no details.
const ERROR_OUTSIDE_EXAMPLES: &str = "an error occurred outside of the examples";
/// Used for an example without a description.
const UNNAMED: &str = "(unnamed)";

fn find(_: &'static Runner, place: &SearchPlace<'_>) -> Option<FoundSuite> {
    let manifest = ["Gemfile", "gems.rb", "Rakefile"]
        .into_iter()
        .find(|m| place.has(m));
    let find_gemspec = || {
        let names = place
            .dir
            .read_dir()
            .into_iter()
            .flatten()
            .flatten()
            .map(|e| e.file_name().to_string_lossy().into_owned());
        names.filter(|n| n.ends_with(".gemspec")).min()
    };
    let specs = minitest::find_ruby_files(place.dir, &["spec"], |stem| stem.ends_with("_spec"));
    let tests = minitest::find_test_files(place.dir);
    let manifest = manifest.map(str::to_owned).or_else(find_gemspec);
    let (found_by, confidence) = match (&manifest, specs.first().or(tests.first())) {
        (Some(manifest), Some(_)) => (manifest.clone(), Confidence::Explicit),
        // A Rakefile alone does not mean that there are tests.
        (Some(manifest), None) if manifest != "Rakefile" => {
            (manifest.clone(), Confidence::ManifestOnly)
        }
        (None, Some(file)) => (file.display().to_string(), Confidence::TestFilesOnly),
        _ => return None,
    };
    let is_bundled = place.has("Gemfile") || place.has("gems.rb");
    let with_bundle = |words: &[&str]| {
        let bundle: &[&str] = if is_bundled { &["bundle", "exec"] } else { &[] };
        bundle
            .iter()
            .chain(words)
            .map(|w| (*w).to_owned())
            .collect::<Vec<_>>()
    };
    let uses_rspec = place.has(".rspec") || !specs.is_empty() || tests.is_empty();
    let argv = if uses_rspec {
        with_bundle(&["rspec"])
    } else {
        minitest::test_command(place, &tests, &with_bundle)
    };
    let mut suite =
        FoundSuite::new(SuiteStep::new(argv, place.dir), found_by).with_confidence(confidence);
    if uses_rspec && !tests.is_empty() {
        suite.notes.push(format!(
            "tests for another framework are not run: {} below `test`",
            supervisor_text::words::count(tests.len(), "file")
        ));
    }
    Some(suite)
}

fn run<'a>(step: &'a SuiteStep, session: &'a Session<'a>) -> BoxFuture<'a, RunnerResult> {
    async move {
        let report = session.file(ADAPTER.file).display().to_string();
        let plugin = match session.write_program("report.rb", REPORT_PLUGIN) {
            Ok(path) => path,
            Err(error) => return RunnerResult::no_report_dir(&error),
        };
        let report_flags = [
            "--require",
            &plugin,
            "--format",
            "progress",
            "--format",
            "SupervisorTestReport",
            "--out",
            &report,
        ];
        let argv = step.with_arguments(&report_flags.map(String::from));
        let mut judgement = run_bundled(&ADAPTER, session, &argv, &[]).await;
        // Errors before the report is started appear only in the terminal output.
        if let Outcome::DidNotBuild { errors } = &mut judgement.outcome
            && errors.as_slice() == [BuildError::new(ERROR_OUTSIDE_EXAMPLES)]
        {
            let output = judgement
                .output
                .replace(&format!("{}/", session.root().display()), "");
            errors.splice(
                ..,
                load_error(&output).or_else(|| Some(BuildError::new(ERROR_OUTSIDE_EXAMPLES))),
            );
        }
        judgement
    }
    .boxed()
}

/// Runs a command and retries it without Bundler. Bundler refuses to start if any gem of the Gemfile is missing, even one
/// that the tests do not need. If the run without it works, its result is used, with a note.
pub(super) async fn run_bundled(
    adapter: &'static ReportAdapter,
    session: &Session<'_>,
    argv: &[String],
    env: &[(&str, String)],
) -> RunnerResult {
    let judgement = adapter.run(session, argv, env).await;
    let Outcome::CouldNotRun { why, .. } = &judgement.outcome else {
        return judgement;
    };
    let Some(plain) = argv.strip_prefix(&["bundle", "exec"].map(String::from)) else {
        return judgement;
    };
    let mut without = adapter.run(session, plain, env).await;
    if !matches!(without.outcome, Outcome::Passed | Outcome::Failed) {
        return judgement;
    }
    without.notes.push(format!(
        "run without Bundler, since it starts nothing: {why}"
    ));
    without
}

pub(super) fn explain(finished: &FinishedProcess, code: i32) -> Option<Outcome> {
    let err = finished.stderr.text();
    // Drop the source location in Bundler before the message.
    let line = |what: &str| {
        err.lines()
            .find_map(|l| Some(l[l.find(what)?..].trim().to_owned()))
    };
    // Bundler exits with 7 if a gem is missing and with 10 without a Gemfile.
    let why = line("Could not find")
        .or_else(|| line("Could not locate Gemfile"))
        .or_else(|| line("can't find gem"));
    match (code, why) {
        (0, _) | (_, None) => None,
        (_, Some(why)) => Some(Outcome::CouldNotRun {
            why,
            remedy: String::from("run `bundle install` or name a `test_cmd`"),
        }),
    }
}

/// `spec/a_spec.rb A adds` becomes the file and the description. Unnamed examples cannot be selected.
fn select(step: &SuiteStep, names: &[&str]) -> Option<Vec<String>> {
    let keep =
        |a: &&String| a.starts_with('-') || !(a.contains("_spec.rb") || a.starts_with("spec/"));
    let mut argv: Vec<String> = step.argv.iter().filter(keep).cloned().collect();
    for name in names {
        let (file, description) = name
            .split_once(".rb ")
            .map(|(f, d)| (format!("{f}.rb"), d))?;
        if description.contains(UNNAMED) {
            return None;
        }
        if !argv.contains(&file) {
            argv.push(file);
        }
        argv.extend([String::from("-e"), description.to_owned()]);
    }
    Some(argv)
}

pub(super) fn parse(text: &str, root: &Path) -> Option<TestRunReport> {
    report_lines::parse(text, root, " ", |_, message| {
        load_error(message).unwrap_or_else(|| BuildError::new(message))
    })
}

fn load_error(message: &str) -> Option<BuildError> {
    let (_, after) = message.split_once("An error occurred while loading ")?;
    let (file, rest) = after.split_once('\n').unwrap_or((after, ""));
    let file = file.trim_end_matches('.').trim_start_matches("./");
    if !file.ends_with(".rb") {
        return Some(required_file_error(rest));
    }
    let lines: Vec<&str> = rest
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
        .collect();
    let line_number = |text: &str| {
        text.split(&format!("{file}:"))
            .nth(1)?
            .split(|c: char| !c.is_ascii_digit())
            .next()?
            .parse()
            .ok()
    };
    let error_lines = lines
        .iter()
        .position(|l| l.ends_with("Error:") && !l.starts_with("Failure/"))
        .map_or(&lines[..], |at| &lines[at..]);
    Some(BuildError::new(error_lines.join("\n")).at(file, line_number(rest)))
}

/// The error in a file that was required by name only. Its path is the first location in the message.
fn required_file_error(message: &str) -> BuildError {
    let lines: Vec<&str> = message
        .lines()
        .map(str::trim)
        .take_while(|l| !l.starts_with('#'))
        .collect();
    let from = lines
        .iter()
        .position(|l| l.ends_with("Error:") && !l.starts_with("Failure/"))
        .unwrap_or(0);
    let error = BuildError::new(lines[from..].join("\n").replacen(":\n", ": ", 1));
    let location = message.split_whitespace().find_map(|word| {
        let (file, rest) = word.split_once(".rb:")?;
        let line = rest
            .split(|c: char| !c.is_ascii_digit())
            .next()?
            .parse()
            .ok()?;
        Some((format!("{}.rb", file.trim_start_matches("./")), line))
    });
    match location {
        Some((file, line)) => error.at(file, Some(line)),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::command::argv;
    use super::*;

    #[test]
    fn unnamed_example_cannot_be_selected() {
        let step = SuiteStep::new(argv("rspec"), "/p");
        assert_eq!(select(&step, &["spec/a_spec.rb A (unnamed)"]), None);
    }

    #[test]
    fn unloadable_file_is_a_build_error() {
        let message = "\nAn error occurred while loading ./spec/b_spec.rb.\nFailure/Error:\n  Calc.new\n\nNameError:\n  \
            uninitialized constant Calc\n# ./spec/b_spec.rb:2:in `<top (required)>'\n";
        let error = load_error(message).expect("recognised");
        assert_eq!(
            (error.file.as_deref(), error.line),
            (Some("spec/b_spec.rb"), Some(2))
        );
        assert_eq!(error.missing, ["Calc"]);
        let message = "\nAn error occurred while loading spec_helper.\nFailure/Error: require_relative \"../lib/calc\"\n\n\
            SyntaxError:\n  lib/calc.rb:8: syntax error, unexpected `end'\n    end\n# ./spec/spec_helper.rb:1:in `x'\n";
        let error = load_error(message).expect("recognised");
        assert_eq!(
            (error.file.as_deref(), error.line),
            (Some("lib/calc.rb"), Some(8))
        );
        assert!(error.to_string().contains("syntax error"), "{error}");
    }

    #[test]
    fn example_is_selected_by_file_and_description() {
        let step = SuiteStep::new(argv("bundle exec rspec"), "/p");
        let narrowed = select(&step, &["spec/a_spec.rb A bad"]).expect("can select");
        assert_eq!(
            narrowed,
            argv("bundle exec rspec spec/a_spec.rb -e 'A bad'")
        );
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_messages_do_not_panic(
            message in super::super::super::garbage::garbage("An error occurred while loading ./spec/b_spec.rb.\nNameError:\n  uninitialized constant Calc\n# ./spec/b_spec.rb:2:in"),
        ) {
            let _ = load_error(&message);
        }
    }
}
