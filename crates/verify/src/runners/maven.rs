//! `mvn test`: results from the reports that Surefire writes into each module, told from older ones. Surefire has no
//! option for a place of ours; what the code under test writes there cannot hide a failure from Maven's exit code.

use std::path::Path;

use futures_util::future::{BoxFuture, FutureExt as _};

use super::super::build::BuildError;
use super::super::command::program;
use super::super::detect::{FoundSuite, SearchPlace, Strength, is_executable, read_small};
use super::super::junit::JunitCase;
use super::super::outcome::{Outcome, Tests};
use super::super::report::{TestRunReport, without_colour};
use super::super::session::{Judgement, Session, agree, exit_code, output_of};
use super::super::step::SuiteStep;
use super::Runner;
use super::reports::ReportsBefore;
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
    let mut argv = runner.argv();
    if is_executable(&place.dir.join("mvnw")) {
        argv[0] = String::from("./mvnw");
    }
    // A module is built with its siblings, from where they are listed.
    let is_module = place
        .upwards()
        .skip(1)
        .any(|dir| lists_module(dir, place.dir));
    let strength = if is_module {
        Strength::Nominal
    } else {
        Strength::Stated
    };
    Some(FoundSuite::of(SuiteStep::new(argv, place.dir), "pom.xml").with_strength(strength))
}

fn lists_module(dir: &Path, module: &Path) -> bool {
    let Some(pom) = read_small(&dir.join("pom.xml")) else {
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

fn run<'a>(step: &'a SuiteStep, session: &'a Session<'a>) -> BoxFuture<'a, Judgement> {
    async move {
        let before = ReportsBefore::look(&session.files(), REPORTS);
        // All modules, whatever became of the first.
        let more = ["--batch-mode", "--fail-at-end"].map(String::from);
        let finished = session.run(&step.with_arguments(&more), &[]).await;
        let (code, output) = (exit_code(&finished), output_of(&finished));
        let written = before.after_the_run();
        let cases = written.cases();
        let report = cases
            .as_ref()
            .map(|cases| named_cases(cases))
            .unwrap_or_default();
        let outcome = session.cut_short(&finished, "mvn").unwrap_or_else(|| {
            let said = without_colour(&output);
            match (&cases, explain(&said, code, session.root())) {
                (Err(why), _) => Outcome::Unclear { why: why.clone() },
                (_, Some(explained)) => explained,
                (Ok(_), None) => agree(&report.tests, code),
            }
        });
        let notes = written.note().into_iter().collect();
        Judgement {
            outcome,
            tests: Tests::Named(report.tests),
            exit_code: code,
            output,
            notes,
        }
    }
    .boxed()
}

/// `demo.CalcTest#adds`, as Maven itself names a test. Rows keep their number: `demo.CalcTest#adds[2]`.
pub(super) fn named_cases(cases: &[JunitCase]) -> TestRunReport {
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

/// What Maven says beside its reports: that something does not compile, cannot be had, or ended the test process.
fn explain(said: &str, code: Option<i32>, root: &Path) -> Option<Outcome> {
    if code == Some(0) {
        return None;
    }
    let errors = compile_errors(said, root);
    if !errors.is_empty() {
        return Some(Outcome::DidNotBuild { errors });
    }
    let line = |what: &str| {
        said.lines()
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
    let none = ["No tests were executed", "No tests matching pattern"];
    none.iter()
        .any(|what| line(what).is_some())
        .then_some(Outcome::NoTests)
}

/// `[ERROR] /p/src/test/java/demo/CalcTest.java:[18,29] cannot find symbol`, with details on the next lines.
fn compile_errors(said: &str, root: &Path) -> Vec<BuildError> {
    let mut errors: Vec<BuildError> = Vec::new();
    let mut lines = said.lines().peekable();
    while let Some(line) = lines.next() {
        let place = line
            .strip_prefix("[ERROR] ")
            .and_then(|rest| rest.split_once(".java:["));
        let Some((file, (at, what))) =
            place.and_then(|(file, rest)| Some((file, rest.split_once(']')?)))
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
        let error = BuildError::new(on_one_line(what, &details)).at(file, number);
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

/// `cannot find symbol (symbol: method twice(int), location: class Calc)`
pub(super) fn on_one_line(what: &str, details: &[&str]) -> String {
    let one_spaced = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let details: Vec<String> = details.iter().map(|detail| one_spaced(detail)).collect();
    match details.as_slice() {
        [] => one_spaced(what),
        details => format!("{} ({})", one_spaced(what), details.join(", ")),
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
    // Modules without these tests are no mistake; older and newer plug-ins have their own word for it.
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
    fn names_are_those_that_maven_selects_by() {
        let report = r#"<testsuite name="demo.CalcTest"><testcase name="adds" classname="demo.CalcTest" time="0"/>
            <testcase name="rows{int, int}[2]" classname="demo.CalcTest"><failure message="no" type="x"/></testcase>
            <testcase name="rows(int, int)[1]" classname="demo.CalcTest$Inner"/></testsuite>"#;
        let tests = named_cases(&parse(report).expect("whole")).tests;
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
            select(&step, &["a.B#c", "a.B#d[1]", "a.B#d[2]", "a.E#f"]).expect("can be said");
        assert_eq!(selected[3], "-Dtest=a.B#c+d,a.E#f");
    }

    #[test]
    fn what_javac_says_is_read_with_the_name_that_is_missing() {
        let said = "[ERROR] COMPILATION ERROR : \n[ERROR] /p/src/test/java/CalcTest.java:[18,29] cannot find symbol\n  symbol:   method \
                    twice(int)\n  location: class demo.Calc\n[ERROR] /p/src/test/java/CalcTest.java:[18,29] cannot find symbol\n[ERROR]   \
                    symbol:   method twice(int)\n[ERROR]   location: class demo.Calc\n[ERROR] /p/src/A.java:[3,1] ';' expected\n";
        let Some(Outcome::DidNotBuild { errors }) = explain(said, Some(1), Path::new("/p")) else {
            panic!("{said}")
        };
        let told: Vec<String> = errors
            .iter()
            .map(|e| format!("{e} {:?}", e.missing))
            .collect();
        assert_eq!(
            told,
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
        assert_eq!(explain(said, Some(0), Path::new("/p")), None);
    }
}
