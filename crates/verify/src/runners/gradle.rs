//! Runs `gradle test` and reads the JUnit reports that each project writes. Tests that Gradle considers up to date run
//! again, because a run that writes no report proves nothing.

use std::path::Path;

use futures_util::future::{BoxFuture, FutureExt as _};

use super::super::build::BuildError;
use super::super::command::program;
use super::super::detect::{Confidence, FoundSuite, SearchPlace, is_executable};
use super::super::outcome::{Outcome, Tests};
use super::super::report::strip_ansi;
use super::super::session::{RunnerResult, Session, decide_outcome, exit_code, output_of};
use super::super::step::SuiteStep;
use super::Runner;
use super::maven::{is_detail, join_details, report_from_cases};
use super::reports::ReportSnapshot;
use supervisor_languages::JAVA;

pub(super) static RUNNER: Runner = Runner {
    name: "gradle",
    ecosystem: Some(&JAVA),
    manifests: &[
        "build.gradle",
        "build.gradle.kts",
        "settings.gradle",
        "settings.gradle.kts",
    ],
    command: &["gradle", "test"],
    find,
    recognises: |argv| {
        let is_test_task = |word: &str| {
            word.rsplit(':')
                .next()
                .is_some_and(|task| ["test", "check", "build"].contains(&task))
        };
        matches!(program(argv), "gradle" | "gradlew") && argv.iter().any(|word| is_test_task(word))
    },
    run,
    select,
    names_are_paths: false,
};

const REPORTS: &[&str] = &["**/build/test-results/**/TEST-*.xml"];

fn find(runner: &'static Runner, place: &SearchPlace<'_>) -> Option<FoundSuite> {
    let manifest = runner.manifests.iter().find(|m| place.has(m))?;
    let mut argv = runner.default_argv();
    if is_executable(&place.dir.join("gradlew")) {
        argv[0] = String::from("./gradlew");
    }
    // A subproject is tested from the directory with the build's settings.
    let has_settings = |dir: &Path| {
        dir.join("settings.gradle").is_file() || dir.join("settings.gradle.kts").is_file()
    };
    let is_part = !has_settings(place.dir) && place.ancestors().skip(1).any(has_settings);
    let confidence = if is_part {
        Confidence::ManifestOnly
    } else {
        Confidence::Explicit
    };
    Some(FoundSuite::new(SuiteStep::new(argv, place.dir), *manifest).with_confidence(confidence))
}

fn run<'a>(step: &'a SuiteStep, session: &'a Session<'a>) -> BoxFuture<'a, RunnerResult> {
    async move {
        let before = ReportSnapshot::take(&session.files_root(), REPORTS);
        let mut argv = step.with_arguments(
            &["--continue", "--console=plain", "--no-build-cache"].map(String::from),
        );
        if step.shell.is_none() {
            argv.insert(1, String::from("cleanTest"));
        }
        // The daemon would be killed at the end of this run anyway.
        let options = session
            .variable("GRADLE_OPTS")
            .map(|o| o.to_string_lossy().into_owned())
            .unwrap_or_default();
        let options = [(
            "GRADLE_OPTS",
            format!("{options} -Dorg.gradle.daemon=false")
                .trim()
                .to_owned(),
        )];
        let finished = session.run(&argv, &options).await;
        let (code, output) = (exit_code(&finished), output_of(&finished));
        let written = before.collect_new();
        let cases = written.cases();
        let report = cases
            .as_ref()
            .map(|cases| report_from_cases(cases))
            .unwrap_or_default();
        let outcome = session
            .abnormal_outcome(&finished, "gradle")
            .unwrap_or_else(|| {
                match (&cases, explain(&strip_ansi(&output), code, session.root())) {
                    (Err(why), _) => Outcome::Unclear { why: why.clone() },
                    (_, Some(explained)) => explained,
                    (Ok(_), None) => decide_outcome(&report.tests, code),
                }
            });
        let notes = written.stale_note().into_iter().collect();
        RunnerResult {
            outcome,
            tests: Tests::Named(report.tests),
            exit_code: code,
            output,
            notes,
        }
    }
    .boxed()
}

fn explain(output: &str, code: Option<i32>, root: &Path) -> Option<Outcome> {
    if code == Some(0) {
        return None;
    }
    let errors = compile_errors(output, root);
    if !errors.is_empty() {
        return Some(Outcome::DidNotBuild { errors });
    }
    let line = |what: &str| {
        output
            .lines()
            .find(|l| l.contains(what))
            .map(|l| l.trim().trim_start_matches("> "))
    };
    if let Some(why) = line("Could not resolve").or_else(|| line("No cached version of")) {
        let remedy = String::from(
            "run `gradle build` once where the repositories are reachable, or name a `test_cmd`",
        );
        return Some(Outcome::CouldNotRun {
            why: supervisor_text::words::cut_end(why, 300).into_owned(),
            remedy,
        });
    }
    line("No tests found for given includes")
        .is_some()
        .then_some(Outcome::NoTests)
}

/// Parses `/p/src/test/java/demo/CalcTest.java:18: error: cannot find symbol`, then the source line, a caret and details.
fn compile_errors(output: &str, root: &Path) -> Vec<BuildError> {
    const MAX_DETAIL_LINES: usize = 5;
    let lines: Vec<&str> = output.lines().collect();
    let mut errors: Vec<BuildError> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some((file, (number, what))) = line
            .split_once(".java:")
            .and_then(|(file, rest)| Some((file, rest.split_once(": error: ")?)))
        else {
            continue;
        };
        let details = lines[at + 1..]
            .iter()
            .take(MAX_DETAIL_LINES)
            .take_while(|l| !l.contains(": error: "));
        let details: Vec<&str> = details.copied().filter(|l| is_detail(l)).collect();
        let file = format!("{file}.java");
        let file = Path::new(&file)
            .strip_prefix(root)
            .map_or(file.clone(), |inside| inside.display().to_string());
        errors.push(BuildError::new(join_details(what, &details)).at(file, number.parse().ok()));
    }
    errors
}

/// `demo.CalcTest#adds` becomes `--tests demo.CalcTest.adds`.
fn select(step: &SuiteStep, names: &[&str]) -> Option<Vec<String>> {
    let mut argv = step.argv.clone();
    for name in names {
        let (class, method) = name.split_once('#')?;
        let filter = format!("{class}.{}", method.split('[').next().unwrap_or(method));
        if !argv.contains(&filter) {
            argv.extend([String::from("--tests"), filter]);
        }
    }
    Some(argv)
}

#[cfg(test)]
mod tests {
    use super::super::super::command::argv;
    use super::super::super::junit::parse;
    use super::super::super::outcome::TestState;
    use super::*;

    /// Recorded from Gradle 8, because distributions package an older version.
    const RECORDED: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="demo.CalcTest" tests="3" skipped="1" failures="1" errors="0" timestamp="2024-05-04T10:00:00" hostname="h" time="0.02">
  <properties/>
  <testcase name="adds()" classname="demo.CalcTest" time="0.01"/>
  <testcase name="halves()" classname="demo.CalcTest" time="0.0"><skipped/></testcase>
  <testcase name="doubles()" classname="demo.CalcTest" time="0.01">
    <failure message="org.opentest4j.AssertionFailedError: expected: &lt;4&gt; but was: &lt;3&gt;" type="org.opentest4j.AssertionFailedError">org.opentest4j.AssertionFailedError: expected: &lt;4&gt; but was: &lt;3&gt;
	at demo.CalcTest.doubles(CalcTest.java:14)
</failure>
  </testcase>
  <system-out><![CDATA[]]></system-out>
  <system-err><![CDATA[]]></system-err>
</testsuite>"#;

    #[test]
    fn recorded_report_is_parsed() {
        let tests = report_from_cases(&parse(RECORDED).expect("a complete report")).tests;
        let results: Vec<(&str, bool)> = tests
            .iter()
            .map(|(n, state)| (n.0.as_str(), *state == TestState::Passed))
            .collect();
        let expected = [
            ("demo.CalcTest#adds", true),
            ("demo.CalcTest#doubles", false),
            ("demo.CalcTest#halves", false),
        ];
        assert_eq!(results, expected);
        let step = SuiteStep::new(argv("gradle test"), "/p");
        let selected =
            select(&step, &["demo.CalcTest#adds", "demo.CalcTest#rows[1]"]).expect("can select");
        assert_eq!(
            selected[2..],
            [
                "--tests",
                "demo.CalcTest.adds",
                "--tests",
                "demo.CalcTest.rows"
            ]
        );
    }

    #[test]
    fn javac_errors_have_missing_names() {
        let output = "> Task :compileTestJava FAILED\n/p/src/test/java/demo/CalcTest.java:18: error: cannot find symbol\n        \
                    assertEquals(4, Calc.twice(1));\n                            ^\n  symbol:   method twice(int)\n  location: class \
                    Calc\n1 error\n";
        let Some(Outcome::DidNotBuild { errors }) = explain(output, Some(1), Path::new("/p"))
        else {
            panic!("{output}")
        };
        let parsed: Vec<String> = errors
            .iter()
            .map(|e| format!("{e} {:?}", e.missing))
            .collect();
        assert_eq!(
            parsed,
            [
                "src/test/java/demo/CalcTest.java:18: cannot find symbol (symbol: method twice(int), location: class Calc) [\"twice\"]"
            ]
        );
    }
}
