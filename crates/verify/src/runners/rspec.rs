//! `rspec`: results from its JSON formatter at a private path. Finds all tests of Ruby; which framework they are written
//! for is told by what lies about.

use futures_util::future::{BoxFuture, FutureExt as _};
use serde::Deserialize;

use super::super::build::BuildError;
use super::super::command::program;
use super::super::detect::{FoundSuite, SearchPlace, Strength};
use super::super::outcome::{Outcome, TestState};
use super::super::report::{Reporting, Terminal, TestRunReport, failed};
use super::super::session::{Judgement, Session};
use super::super::step::SuiteStep;
use super::{Runner, minitest};
use supervisor_languages::RUBY;
use supervisor_process::FinishedProcess;
use supervisor_text::words;

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

static REPORTING: Reporting = Reporting {
    program: "rspec",
    file: "rspec.json",
    parse: |text, _| parse(text),
    explain,
    terminal: Terminal::Tells,
};

/// See there.
const MORE: &str = include_str!("rspec/report.rb");
/// Said where RSpec tells no more itself.
const OUTSIDE: &str = "an error occurred outside of the examples";
/// Stands for the description of an example that has none.
const NO_NAME: &str = "(unnamed)";

fn find(_: &'static Runner, place: &SearchPlace<'_>) -> Option<FoundSuite> {
    let manifest = ["Gemfile", "gems.rb", "Rakefile"]
        .into_iter()
        .find(|m| place.has(m));
    let of_gem = || {
        let names = place
            .dir
            .read_dir()
            .into_iter()
            .flatten()
            .flatten()
            .map(|e| e.file_name().to_string_lossy().into_owned());
        names.filter(|n| n.ends_with(".gemspec")).min()
    };
    let specs = minitest::files(place.dir, &["spec"], |stem| stem.ends_with("_spec"));
    let tests = minitest::test_files(place.dir);
    let manifest = manifest.map(str::to_owned).or_else(of_gem);
    let (because, strength) = match (&manifest, specs.first().or(tests.first())) {
        (Some(manifest), Some(_)) => (manifest.clone(), Strength::Stated),
        // A task runner alone is anybody's.
        (Some(manifest), None) if manifest != "Rakefile" => (manifest.clone(), Strength::Nominal),
        (None, Some(file)) => (file.display().to_string(), Strength::FilesOnly),
        _ => return None,
    };
    let bundled = place.has("Gemfile") || place.has("gems.rb");
    let with_bundle = |words: &[&str]| {
        let bundle: &[&str] = if bundled { &["bundle", "exec"] } else { &[] };
        bundle
            .iter()
            .chain(words)
            .map(|w| (*w).to_owned())
            .collect::<Vec<_>>()
    };
    let by_rspec = place.has(".rspec") || !specs.is_empty() || tests.is_empty();
    let argv = if by_rspec {
        with_bundle(&["rspec"])
    } else {
        minitest::command(place, &tests, &with_bundle)
    };
    let mut suite =
        FoundSuite::of(SuiteStep::new(argv, place.dir), because).with_strength(strength);
    if by_rspec && !tests.is_empty() {
        suite.notes.push(format!(
            "tests for another framework are not run: {} below `test`",
            supervisor_text::words::count(tests.len(), "file")
        ));
    }
    Some(suite)
}

fn run<'a>(step: &'a SuiteStep, session: &'a Session<'a>) -> BoxFuture<'a, Judgement> {
    async move {
        let report = session.file(REPORTING.file).display().to_string();
        let more = session.file("report.rb");
        if let Err(error) = std::fs::write(&more, MORE) {
            return Judgement::no_place(&error);
        }
        let more = more.display().to_string();
        let reported = [
            "--require",
            &more,
            "--format",
            "progress",
            "--format",
            "json",
            "--out",
            &report,
        ];
        let argv = step.with_arguments(&reported.map(String::from));
        let mut judgement = run_bundled(&REPORTING, session, &argv, &[]).await;
        // What goes wrong before there is a report is told on the terminal alone.
        if let Outcome::DidNotBuild { errors } = &mut judgement.outcome
            && errors.as_slice() == [BuildError::new(OUTSIDE)]
        {
            let said = judgement
                .output
                .replace(&format!("{}/", session.root().display()), "");
            errors.splice(
                ..,
                load_error(&said).or_else(|| Some(BuildError::new(OUTSIDE))),
            );
        }
        judgement
    }
    .boxed()
}

/// Bundler starts nothing if one gem of the Gemfile is missing, were it one for release notes. What the tests need may be
/// installed all the same: then they are run without it, and that is said.
pub(super) async fn run_bundled(
    reporting: &'static Reporting,
    session: &Session<'_>,
    argv: &[String],
    env: &[(&str, String)],
) -> Judgement {
    let judgement = reporting.run(session, argv, env).await;
    let Outcome::CouldNotRun { why, .. } = &judgement.outcome else {
        return judgement;
    };
    let Some(plain) = argv.strip_prefix(&["bundle", "exec"].map(String::from)) else {
        return judgement;
    };
    let mut without = reporting.run(session, plain, env).await;
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
    // Without the place in Bundler that says so.
    let line = |what: &str| {
        err.lines()
            .find_map(|l| Some(l[l.find(what)?..].trim().to_owned()))
    };
    // Bundler: 7 a gem is missing, 10 no Gemfile.
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

/// `spec/a_spec.rb A adds` becomes the file and the description, if there is one.
fn select(step: &SuiteStep, names: &[&str]) -> Option<Vec<String>> {
    let keep =
        |a: &&String| a.starts_with('-') || !(a.contains("_spec.rb") || a.starts_with("spec/"));
    let mut argv: Vec<String> = step.argv.iter().filter(keep).cloned().collect();
    for name in names {
        let (file, description) = name
            .split_once(".rb ")
            .map(|(f, d)| (format!("{f}.rb"), d))?;
        if description.contains(NO_NAME) {
            return None;
        }
        if !argv.contains(&file) {
            argv.push(file);
        }
        argv.extend([String::from("-e"), description.to_owned()]);
    }
    Some(argv)
}

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    messages: Vec<String>,
    examples: Vec<Example>,
    summary: Summary,
}

#[derive(Deserialize)]
struct Summary {
    example_count: usize,
    #[serde(default)]
    errors_outside_of_examples_count: usize,
    /// How many there are, begun or not.
    expected_count: Option<usize>,
}

#[derive(Deserialize)]
struct Example {
    full_description: String,
    status: String,
    file_path: String,
    /// `./spec/a_spec.rb[1:2]`: the file that is run, also if the example stands in a shared one.
    id: Option<String>,
    /// Its group, if it has no description of its own.
    unnamed_in: Option<String>,
    #[serde(default)]
    left_as_if_skipped: bool,
    exception: Option<Exception>,
}

#[derive(Deserialize)]
struct Exception {
    class: String,
    message: String,
}

impl Example {
    fn name(&self) -> String {
        let file = self
            .id
            .as_deref()
            .and_then(|id| id.rsplit_once('['))
            .map_or(self.file_path.as_str(), |(file, _)| file);
        let file = file.trim_start_matches("./");
        match &self.unnamed_in {
            Some(group) => format!("{file} {group} {NO_NAME}"),
            None => format!("{file} {}", self.full_description),
        }
    }
}

pub(super) fn parse(text: &str) -> Option<TestRunReport> {
    let document: Document = serde_json::from_str(text).ok()?;
    let mut report = TestRunReport::default();
    for example in &document.examples {
        let state = match (example.status.as_str(), &example.exception) {
            _ if example.left_as_if_skipped => {
                report.doubts.push(format!(
                    "`{}` was left as if skipped, by code that is no example",
                    example.name()
                ));
                TestState::Skipped
            }
            ("passed", _) => TestState::Passed,
            ("pending", _) => TestState::Skipped,
            (_, Some(e)) => failed(format!("{}: {}", e.class, e.message.trim())),
            (status, None) => failed(status),
        };
        report.add(&example.name(), state);
    }
    if document.examples.len() != document.summary.example_count {
        report.doubts.push(String::from(
            "rspec's count and its list of examples differ",
        ));
    }
    let missed = document
        .summary
        .expected_count
        .unwrap_or_default()
        .saturating_sub(document.examples.len());
    if missed > 0 {
        report
            .doubts
            .push(format!("{} never began", words::count(missed, "example")));
    }
    if document.summary.errors_outside_of_examples_count > 0 {
        report.errors = document
            .messages
            .iter()
            .filter_map(|m| load_error(m))
            .collect();
        if report.errors.is_empty() {
            report.errors.push(BuildError::new(OUTSIDE));
        }
    }
    Some(report)
}

fn load_error(message: &str) -> Option<BuildError> {
    let (_, after) = message.split_once("An error occurred while loading ")?;
    let (file, rest) = after.split_once('\n').unwrap_or((after, ""));
    let file = file.trim_end_matches('.').trim_start_matches("./");
    if !file.ends_with(".rb") {
        return Some(required(rest));
    }
    let said: Vec<&str> = rest
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
        .collect();
    let at = |text: &str| {
        text.split(&format!("{file}:"))
            .nth(1)?
            .split(|c: char| !c.is_ascii_digit())
            .next()?
            .parse()
            .ok()
    };
    let what = said
        .iter()
        .position(|l| l.ends_with("Error:") && !l.starts_with("Failure/"))
        .map_or(&said[..], |at| &said[at..]);
    Some(BuildError::new(what.join("\n")).at(file, at(rest)))
}

/// What went wrong in a file that was required by its name alone, where the first place in it tells which one it was.
fn required(said: &str) -> BuildError {
    let lines: Vec<&str> = said
        .lines()
        .map(str::trim)
        .take_while(|l| !l.starts_with('#'))
        .collect();
    let from = lines
        .iter()
        .position(|l| l.ends_with("Error:") && !l.starts_with("Failure/"))
        .unwrap_or(0);
    let error = BuildError::new(lines[from..].join("\n").replacen(":\n", ": ", 1));
    let place = said.split_whitespace().find_map(|word| {
        let (file, rest) = word.split_once(".rb:")?;
        let line = rest
            .split(|c: char| !c.is_ascii_digit())
            .next()?
            .parse()
            .ok()?;
        Some((format!("{}.rb", file.trim_start_matches("./")), line))
    });
    match place {
        Some((file, line)) => error.at(file, Some(line)),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::command::argv;
    use super::super::super::outcome::TestName;
    use super::*;

    #[test]
    fn examples_become_named_results() {
        let report = parse(
            r#"{"version":"3.12.0","examples":[
            {"id":"./spec/a_spec.rb[1:1]","full_description":"A ok","status":"passed","file_path":"./spec/a_spec.rb"},
            {"id":"./spec/a_spec.rb[1:2]","full_description":"A bad","status":"failed","file_path":"./spec/a_spec.rb",
             "exception":{"class":"RSpec::Expectations::ExpectationNotMetError","message":"\nexpected: 2\n     got: 1\n"}},
            {"id":"./spec/a_spec.rb[1:3]","full_description":"A ok","status":"pending","file_path":"./spec/a_spec.rb"}],
            "summary":{"example_count":3,"failure_count":1,"pending_count":1,"errors_outside_of_examples_count":0}}"#,
        )
        .expect("whole");
        let names: Vec<_> = report.tests.keys().map(|n| n.0.as_str()).collect();
        assert_eq!(
            names,
            [
                "spec/a_spec.rb A bad",
                "spec/a_spec.rb A ok",
                "spec/a_spec.rb A ok #2"
            ]
        );
        assert!(
            matches!(&report.tests[&TestName::from("spec/a_spec.rb A bad")], TestState::Failed(m) if m.contains("got: 1"))
        );
        assert!(report.doubts.is_empty());
    }

    #[test]
    fn an_example_is_called_the_same_whether_it_passes_or_not_and_stands_where_it_is_run() {
        let named = |example: &str| {
            let text = format!(r#"{{"examples":[{{{example}}}],"summary":{{"example_count":1}}}}"#);
            parse(&text)
                .expect("whole")
                .tests
                .into_keys()
                .next()
                .expect("one")
                .0
        };
        let red = r#""full_description":"A ","status":"failed","file_path":"./spec/a_spec.rb","unnamed_in":"A""#;
        let green = r#""full_description":"A is expected to eq 2","status":"passed","file_path":"./spec/a_spec.rb","unnamed_in":"A""#;
        assert_eq!(
            (named(red), named(green)),
            (
                "spec/a_spec.rb A (unnamed)".into(),
                "spec/a_spec.rb A (unnamed)".into()
            )
        );
        assert_eq!(
            select(&SuiteStep::new(argv("rspec"), "/p"), &[&named(red)]),
            None
        );
        let shared = r#""id":"./spec/a_spec.rb[1:1:1]","full_description":"A ok","status":"passed","file_path":"./spec/support/s.rb""#;
        assert_eq!(named(shared), "spec/a_spec.rb A ok");
    }

    #[test]
    fn a_file_that_does_not_load_is_a_build_error() {
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
    fn an_example_left_as_if_skipped_is_a_doubt_and_one_that_never_began_is_missed() {
        let text = r#"{"examples":[{"full_description":"A","status":"passed","file_path":"./s.rb","left_as_if_skipped":true}],
            "summary":{"example_count":1,"expected_count":3}}"#;
        let report = parse(text).expect("whole");
        assert_eq!(report.tests[&TestName::from("s.rb A")], TestState::Skipped);
        assert_eq!(report.doubts.len(), 2, "{report:?}");
        assert!(
            report.doubts[0].contains("left as if skipped")
                && report.doubts[1] == "2 examples never began"
        );
    }

    #[test]
    fn one_example_is_selected_by_file_and_description() {
        let step = SuiteStep::new(argv("bundle exec rspec"), "/p");
        let narrowed = select(&step, &["spec/a_spec.rb A bad"]).expect("can select");
        assert_eq!(
            narrowed,
            argv("bundle exec rspec spec/a_spec.rb -e 'A bad'")
        );
    }

    proptest::proptest! {
        #[test]
        fn no_report_is_too_odd(
            text in super::super::super::garbage::garbage(r#"{"examples":[{"full_description":"A","status":"failed","file_path":"./s.rb"}],"summary":{"example_count":1}}"#),
            said in super::super::super::garbage::garbage("An error occurred while loading ./spec/b_spec.rb.\nNameError:\n  uninitialized constant Calc\n# ./spec/b_spec.rb:2:in"),
        ) {
            let _ = (parse(&text), load_error(&said));
        }
    }
}
