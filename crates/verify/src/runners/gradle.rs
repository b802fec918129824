//! Runs `gradle test` and reads the JUnit reports that each project writes. Tests that Gradle considers up to date run
//! again, because a run that writes no report proves nothing.

use std::path::Path;

use futures_util::future::{BoxFuture, FutureExt as _};

use super::super::command::program;
use super::super::detect::{FoundSuite, SearchPlace};
use super::super::outcome::Outcome;
use super::super::session::{RunnerResult, Session};
use super::super::step::SuiteStep;
use super::Runner;
use super::maven::{explain_build, find_build, find_line, report_from_cases};
use super::reports::{RunReports, run_and_collect};
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
    // A subproject is tested from the directory with the build's settings.
    let has_settings = |dir: &Path| {
        dir.join("settings.gradle").is_file() || dir.join("settings.gradle.kts").is_file()
    };
    find_build(runner, place, "gradlew", |dir| {
        !has_settings(place.dir) && has_settings(dir)
    })
}

fn run<'a>(step: &'a SuiteStep, session: &'a Session<'a>) -> BoxFuture<'a, RunnerResult> {
    async move {
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
        let explain = |_: &RunReports, output: &str, code| explain(output, code, session.root());
        let command = ("gradle", argv.as_slice(), &options[..]);
        run_and_collect(session, command, REPORTS, report_from_cases, explain).await
    }
    .boxed()
}

fn explain(output: &str, code: Option<i32>, root: &Path) -> Option<Outcome> {
    if code == Some(0) {
        return None;
    }
    let missing = ["Could not resolve", "No cached version of"];
    explain_build(output, root, &missing, "gradle build").or_else(|| {
        find_line(output, "No tests found for given includes").map(|_| Outcome::NoTests)
    })
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
