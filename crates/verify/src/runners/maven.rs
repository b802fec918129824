//! Runs `mvn test` and reads the reports that Surefire writes into each module, ignoring those of earlier runs. Surefire
//! has no option for another path. The code under test can write there too, but cannot change Maven's exit code.

use std::path::Path;

use futures_util::future::{BoxFuture, FutureExt as _};

use super::super::build::BuildError;
use super::super::command::program;
use super::super::detect::{Confidence, FoundSuite, SearchPlace, is_executable, read_small_file};
use super::super::junit::JunitCase;
use super::super::outcome::{Outcome, Tests};
use super::super::report::{TestRunReport, strip_ansi};
use super::super::session::{RunnerResult, Session, decide_outcome, exit_code, output_of};
use super::super::step::SuiteStep;
use super::Runner;
use super::reports::ReportSnapshot;
use supervisor_languages::JAVA;

pub(super) static RUNNER: Runner = Runner {
    name: "maven",
    ecosystem: Some(&JAVA),
    manifests: &["pom.xml"],
    command: &["mvn", "test"],
    find,
    recognises: |argv| {
        let goals = ["test", "verify", "package", "install"];
        matches!(program(argv), "mvn" | "mvnw" | "mvnd")
            && argv.iter().any(|word| goals.contains(&word.as_str()))
    },
    run,
    select,
    names_are_paths: false,
};

const REPORTS: &[&str] = &[
    "**/target/surefire-reports/TEST-*.xml",
    "**/target/failsafe-reports/TEST-*.xml",
];

fn find(runner: &'static Runner, place: &SearchPlace<'_>) -> Option<FoundSuite> {
    place.has("pom.xml").then_some(())?;
    let mut argv = runner.default_argv();
    if is_executable(&place.dir.join("mvnw")) {
        argv[0] = String::from("./mvnw");
    }
    // A module is built together with its siblings, from the project that lists them.
    let is_module = place
        .ancestors()
        .skip(1)
        .any(|dir| lists_module(dir, place.dir));
    let confidence = if is_module {
        Confidence::ManifestOnly
    } else {
        Confidence::Explicit
    };
    Some(FoundSuite::new(SuiteStep::new(argv, place.dir), "pom.xml").with_confidence(confidence))
}

fn lists_module(dir: &Path, module: &Path) -> bool {
    let Some(pom) = read_small_file(&dir.join("pom.xml")) else {
        return false;
    };
    let listed = pom
        .split("<module>")
        .skip(1)
        .filter_map(|rest| rest.split("</module>").next());
    listed
        .map(|name| dir.join(name.trim()))
        .any(|path| module.starts_with(path))
}

fn run<'a>(step: &'a SuiteStep, session: &'a Session<'a>) -> BoxFuture<'a, RunnerResult> {
    async move {
        let before = ReportSnapshot::take(&session.files_root(), REPORTS);
        // Test all modules even if one fails.
        let more = ["--batch-mode", "--fail-at-end"].map(String::from);
        let finished = session.run(&step.with_arguments(&more), &[]).await;
        let (code, output) = (exit_code(&finished), output_of(&finished));
        let written = before.collect_new();
        let cases = written.cases();
        let report = cases
            .as_ref()
            .map(|cases| report_from_cases(cases))
            .unwrap_or_default();
        let outcome = session
            .abnormal_outcome(&finished, "mvn")
            .unwrap_or_else(|| {
                let plain_output = strip_ansi(&output);
                match (&cases, explain(&plain_output, code, session.root())) {
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

/// Converts cases into a report with Maven's names: `demo.CalcTest#adds`. Parameterised tests keep their row number:
/// `demo.CalcTest#adds[2]`.
pub(super) fn report_from_cases(cases: &[JunitCase]) -> TestRunReport {
    let mut report = TestRunReport::default();
    for case in cases {
        let (method, row) = case
            .name
            .rsplit_once('[')
            .filter(|(_, row)| row.ends_with(']'))
            .unzip();
        let method = method
            .unwrap_or(&case.name)
            .split(['(', '{'])
            .next()
            .unwrap_or_default();
        let row = row.map(|row| format!("[{row}")).unwrap_or_default();
        report.add(
            &format!("{}#{}{row}", case.classname, method.trim()),
            case.state(),
        );
    }
    report
}

/// Explains a failure from Maven's output: compile errors, missing dependencies or a crashed test process.
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
            .map(|l| l.trim_start_matches("[ERROR] ").trim())
    };
    let missing = [
        "Could not resolve dependencies",
        "could not be resolved",
        "in offline mode",
        "Non-resolvable",
    ];
    if let Some(why) = missing.iter().find_map(|what| line(what)) {
        let remedy = String::from(
            "run `mvn dependency:go-offline` where the repositories are reachable, or name a `test_cmd`",
        );
        return Some(Outcome::CouldNotRun {
            why: supervisor_text::words::cut_end(why, 300).into_owned(),
            remedy,
        });
    }
    if let Some(why) = line("Non-parseable POM").or_else(|| line("COMPILATION ERROR")) {
        return Some(Outcome::DidNotBuild {
            errors: vec![BuildError::new(why)],
        });
    }
    if line("VM terminated without properly saying goodbye")
        .or_else(|| line("VM terminated without saying properly goodbye"))
        .is_some()
    {
        return Some(Outcome::Unclear {
            why: String::from("the test process ended before all tests had run"),
        });
    }
    let no_tests = ["No tests were executed", "No tests matching pattern"];
    no_tests
        .iter()
        .any(|what| line(what).is_some())
        .then_some(Outcome::NoTests)
}

/// Parses `[ERROR] /p/src/test/java/demo/CalcTest.java:[18,29] cannot find symbol`, with details on the next lines.
fn compile_errors(output: &str, root: &Path) -> Vec<BuildError> {
    let mut errors: Vec<BuildError> = Vec::new();
    let mut lines = output.lines().peekable();
    while let Some(line) = lines.next() {
        let location = line
            .strip_prefix("[ERROR] ")
            .and_then(|rest| rest.split_once(".java:["));
        let Some((file, (at, what))) =
            location.and_then(|(file, rest)| Some((file, rest.split_once(']')?)))
        else {
            continue;
        };
        let mut details = Vec::new();
        while let Some(more) = lines.next_if(|l| is_detail(l)) {
            details.push(more.trim_start_matches("[ERROR]"));
        }
        let file = format!("{file}.java");
        let file = Path::new(&file)
            .strip_prefix(root)
            .map_or(file.clone(), |inside| inside.display().to_string());
        let number = at.split(',').next().and_then(|n| n.parse().ok());
        let error = BuildError::new(join_details(what, &details)).at(file, number);
        if !errors.contains(&error) {
            errors.push(error);
        }
    }
    errors
}

pub(super) fn is_detail(line: &str) -> bool {
    let line = line.trim_start_matches("[ERROR]").trim_start();
    ["symbol:", "location:", "required:", "found:", "reason:"]
        .iter()
        .any(|word| line.starts_with(word))
}

/// Joins a message and its details: `cannot find symbol (symbol: method twice(int), location: class Calc)`.
pub(super) fn join_details(what: &str, details: &[&str]) -> String {
    let collapse_spaces = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let details: Vec<String> = details
        .iter()
        .map(|detail| collapse_spaces(detail))
        .collect();
    match details.as_slice() {
        [] => collapse_spaces(what),
        details => format!("{} ({})", collapse_spaces(what), details.join(", ")),
    }
}

/// `demo.CalcTest#adds` becomes `-Dtest=demo.CalcTest#adds`, several methods of a class `demo.CalcTest#adds+halves`.
fn select(step: &SuiteStep, names: &[&str]) -> Option<Vec<String>> {
    let mut classes: Vec<(&str, Vec<&str>)> = Vec::new();
    for name in names {
        let (class, method) = name.split_once('#')?;
        let method = method.split('[').next().unwrap_or(method);
        match classes.iter_mut().find(|(known, _)| *known == class) {
            Some((_, methods)) if methods.contains(&method) => {}
            Some((_, methods)) => methods.push(method),
            None => classes.push((class, vec![method])),
        }
    }
    let tests: Vec<String> = classes
        .iter()
        .map(|(class, methods)| format!("{class}#{}", methods.join("+")))
        .collect();
    let mut argv: Vec<String> = step
        .argv
        .iter()
        .filter(|word| !word.starts_with("-Dtest="))
        .cloned()
        .collect();
    argv.push(format!("-Dtest={}", tests.join(",")));
    // A module without these tests is not an error. Older and newer plug-ins use different properties for that.
    argv.extend(
        [
            "-DfailIfNoTests=false",
            "-Dsurefire.failIfNoSpecifiedTests=false",
        ]
        .map(String::from),
    );
    Some(argv)
}

#[cfg(test)]
mod tests {
    use super::super::super::command::argv;
    use super::super::super::junit::parse;
    use super::super::super::outcome::{TestName, TestState};
    use super::*;

    #[test]
    fn names_can_be_selected_by_maven() {
        let report = r#"<testsuite name="demo.CalcTest"><testcase name="adds" classname="demo.CalcTest" time="0"/>
            <testcase name="rows{int, int}[2]" classname="demo.CalcTest"><failure message="no" type="x"/></testcase>
            <testcase name="rows(int, int)[1]" classname="demo.CalcTest$Inner"/></testsuite>"#;
        let tests = report_from_cases(&parse(report).expect("a complete report")).tests;
        assert_eq!(
            tests[&TestName::from("demo.CalcTest#adds")],
            TestState::Passed
        );
        assert!(matches!(
            tests[&TestName::from("demo.CalcTest#rows[2]")],
            TestState::Failed(_)
        ));
        assert!(tests.contains_key(&TestName::from("demo.CalcTest$Inner#rows[1]")));
        let step = SuiteStep::new(argv("mvn -o test"), "/p");
        let selected =
            select(&step, &["a.B#c", "a.B#d[1]", "a.B#d[2]", "a.E#f"]).expect("can select");
        assert_eq!(selected[3], "-Dtest=a.B#c+d,a.E#f");
    }

    #[test]
    fn javac_errors_have_missing_names() {
        let output = "[ERROR] COMPILATION ERROR : \n[ERROR] /p/src/test/java/CalcTest.java:[18,29] cannot find symbol\n  symbol:   method \
                    twice(int)\n  location: class demo.Calc\n[ERROR] /p/src/test/java/CalcTest.java:[18,29] cannot find symbol\n[ERROR]   \
                    symbol:   method twice(int)\n[ERROR]   location: class demo.Calc\n[ERROR] /p/src/A.java:[3,1] ';' expected\n";
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
                "src/test/java/CalcTest.java:18: cannot find symbol (symbol: method twice(int), location: class demo.Calc) [\"twice\"]",
                "src/A.java:3: ';' expected []"
            ]
        );
        let offline = "[ERROR] Failed to execute goal on project x: Could not resolve dependencies for project a:b:jar:1: Cannot \
                       access central in offline mode\n";
        assert!(matches!(
            explain(offline, Some(1), Path::new("/p")),
            Some(Outcome::CouldNotRun { .. })
        ));
        assert_eq!(explain(output, Some(0), Path::new("/p")), None);
    }
}
