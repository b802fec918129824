//! Runs `mvn test` and reads the reports that Surefire writes into each module, ignoring those of earlier runs. Surefire
//! has no option for another path. The code under test can write there too, but cannot change Maven's exit code.

use std::path::Path;
use std::sync::LazyLock;

use futures_util::future::{BoxFuture, FutureExt as _};
use regex::Regex;

use super::super::build::BuildError;
use super::super::command::program;
use super::super::detect::{Confidence, FoundSuite, SearchPlace, is_executable, read_small_file};
use super::super::junit::JunitCase;
use super::super::outcome::Outcome;
use super::super::report::TestRunReport;
use super::super::session::{RunnerResult, Session};
use super::super::step::SuiteStep;
use super::Runner;
use super::reports::{RunReports, run_and_collect};
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
    // A module is built together with its siblings, from the project that lists them.
    find_build(runner, place, "mvnw", |dir| lists_module(dir, place.dir))
}

/// Finds a build by its manifest. It is only a part if a directory above it builds it too.
pub(super) fn find_build(
    runner: &'static Runner,
    place: &SearchPlace<'_>,
    wrapper: &str,
    is_whole_build: impl Fn(&Path) -> bool,
) -> Option<FoundSuite> {
    let manifest = runner.manifests.iter().find(|m| place.has(m))?;
    let mut argv = runner.default_argv();
    if is_executable(&place.dir.join(wrapper)) {
        argv[0] = format!("./{wrapper}");
    }
    let confidence = if place.ancestors().skip(1).any(is_whole_build) {
        Confidence::ManifestOnly
    } else {
        Confidence::Explicit
    };
    Some(FoundSuite::new(SuiteStep::new(argv, place.dir), *manifest).with_confidence(confidence))
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
        // Test all modules even if one fails.
        let argv = step.with_arguments(&["--batch-mode", "--fail-at-end"].map(String::from));
        let explain = |_: &RunReports, output: &str, code| explain(output, code, session.root());
        run_and_collect(
            session,
            ("mvn", &argv, &[]),
            REPORTS,
            report_from_cases,
            explain,
        )
        .await
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
    let missing = [
        "Could not resolve dependencies",
        "could not be resolved",
        "in offline mode",
        "Non-resolvable",
    ];
    if code == Some(0) {
        return None;
    }
    if let Some(outcome) = explain_build(output, root, &missing, "mvn dependency:go-offline") {
        return Some(outcome);
    }
    let line = |whats: &[&str]| whats.iter().find_map(|what| find_line(output, what));
    if let Some(why) = line(&["Non-parseable POM", "COMPILATION ERROR"]) {
        return Some(Outcome::DidNotBuild {
            errors: vec![BuildError::new(why)],
        });
    }
    let crashed = [
        "VM terminated without properly saying goodbye",
        "VM terminated without saying properly goodbye",
    ];
    if line(&crashed).is_some() {
        return Some(Outcome::Unclear {
            why: String::from("the test process ended before all tests had run"),
        });
    }
    line(&["No tests were executed", "No tests matching pattern"]).map(|_| Outcome::NoTests)
}

/// Explains a failed build by its compile errors, or by a line about `missing` dependencies, which `command` fetches.
pub(super) fn explain_build(
    output: &str,
    root: &Path,
    missing: &[&str],
    command: &str,
) -> Option<Outcome> {
    let errors = compile_errors(output, root);
    if !errors.is_empty() {
        return Some(Outcome::DidNotBuild { errors });
    }
    let why = missing.iter().find_map(|what| find_line(output, what))?;
    Some(Outcome::CouldNotRun {
        why: supervisor_text::words::cut_end(why, 300).into_owned(),
        remedy: format!(
            "run `{command}` where the repositories are reachable, or name a `test_cmd`"
        ),
    })
}

/// The first line that contains this, without the marker of the build tool.
pub(super) fn find_line<'o>(output: &'o str, what: &str) -> Option<&'o str> {
    let line = output.lines().find(|l| l.contains(what))?;
    let line = line.trim_start_matches("[ERROR] ").trim();
    Some(line.trim_start_matches("> "))
}

/// Parses Maven's `[ERROR] /p/CalcTest.java:[18,29] cannot find symbol` and javac's `/p/CalcTest.java:18: error: cannot find
/// symbol`, with details below.
fn compile_errors(output: &str, root: &Path) -> Vec<BuildError> {
    const MAX_DETAIL_LINES: usize = 5;
    static LOCATION: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^(?:\[ERROR\] )?(.*?\.java):(?:\[(\d+)[^\]]*\]|(\d+): error: )(.*)$")
            .expect("the pattern is valid")
    });
    let lines: Vec<&str> = output.lines().collect();
    let mut errors: Vec<BuildError> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(found) = LOCATION.captures(line) else {
            continue;
        };
        let details = lines[at + 1..].iter().take(MAX_DETAIL_LINES);
        let details = details.take_while(|l| !LOCATION.is_match(l));
        let details = details.map(|l| l.trim_start_matches("[ERROR]"));
        let details: Vec<&str> = details.filter(|l| is_detail(l)).collect();
        let file = Path::new(&found[1]);
        let file = file.strip_prefix(root).unwrap_or(file).display();
        let number = found.get(2).or(found.get(3));
        let error = BuildError::new(join_details(&found[4], &details)).at(
            file.to_string(),
            number.and_then(|n| n.as_str().parse().ok()),
        );
        if !errors.contains(&error) {
            errors.push(error);
        }
    }
    errors
}

fn is_detail(line: &str) -> bool {
    let line = line.trim_start();
    ["symbol:", "location:", "required:", "found:", "reason:"]
        .iter()
        .any(|word| line.starts_with(word))
}

/// Joins a message and its details: `cannot find symbol (symbol: method twice(int), location: class Calc)`.
fn join_details(what: &str, details: &[&str]) -> String {
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
