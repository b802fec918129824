//! `ctest`: results from the JUnit report that it writes to a path of ours. It runs what was built before, so the build
//! is brought up to date first, by CMake and in the same directory.

use std::path::Path;

use futures_util::future::{BoxFuture, FutureExt as _};

use super::super::build::{BuildError, errors_in_output};
use super::super::command::program;
use super::super::detect::{FoundSuite, SearchPlace, Strength, read_small};
use super::super::junit;
use super::super::outcome::{Outcome, TestState};
use super::super::report::{Reporting, Terminal, TestRunReport, failed, without_colour};
use super::super::session::{Judgement, Session, exit_code, output_of};
use super::super::step::SuiteStep;
use super::{Runner, quoted};
use supervisor_languages::CPP;
use supervisor_process::FinishedProcess;

pub(super) static RUNNER: Runner = Runner {
    name: "ctest",
    ecosystem: Some(&CPP),
    manifests: &["CMakeLists.txt"],
    command: &["ctest", "--test-dir", BUILD],
    find,
    recognises: |argv| program(argv) == "ctest",
    run,
    select,
    names_are_paths: false,
};

/// Where a project is built if it says nothing else.
const BUILD: &str = "build";

static REPORTING: Reporting = Reporting {
    program: "ctest",
    file: "ctest.xml",
    parse: |text, _| parse(text),
    explain,
    terminal: Terminal::Tells,
};

fn find(runner: &'static Runner, place: &SearchPlace<'_>) -> Option<FoundSuite> {
    let text = place.read("CMakeLists.txt")?.to_lowercase();
    // A directory below says how a part is built, and not that it is a project.
    text.contains("project(").then_some(())?;
    let says = [
        "enable_testing",
        "include(ctest)",
        "add_test",
        "discover_tests",
        "add_subdirectory(test",
    ];
    let is_part = || {
        let above = place
            .upwards()
            .skip(1)
            .filter_map(|dir| read_small(&dir.join("CMakeLists.txt")));
        above
            .into_iter()
            .any(|text| text.to_lowercase().contains("add_subdirectory"))
    };
    let is_stated = says.iter().any(|word| text.contains(word)) && !is_part();
    let strength = if is_stated {
        Strength::Stated
    } else {
        Strength::Nominal
    };
    let mut argv = runner.argv();
    if let Some(dir) = configured(place.dir) {
        argv[2] = dir;
    }
    Some(FoundSuite::of(SuiteStep::new(argv, place.dir), "CMakeLists.txt").with_strength(strength))
}

/// A directory of another name in which the project has been built already.
fn configured(dir: &Path) -> Option<String> {
    let is_cache = |name: &str| dir.join(name).join("CMakeCache.txt").is_file();
    if is_cache(BUILD) {
        return None;
    }
    let entries = dir
        .read_dir()
        .ok()?
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    entries.filter(|name| is_cache(name)).min()
}

fn run<'a>(step: &'a SuiteStep, session: &'a Session<'a>) -> BoxFuture<'a, Judgement> {
    async move {
        if let Some(failure) = build(step, session).await {
            return failure;
        }
        let report = session.file(REPORTING.file).display().to_string();
        let argv = step
            .with_arguments(&["--output-on-failure", "--output-junit", &report].map(String::from));
        REPORTING.run(session, &argv, &[]).await
    }
    .boxed()
}

/// Configures where that was not done, and builds. `None` if the tests can be run.
async fn build(step: &SuiteStep, session: &Session<'_>) -> Option<Judgement> {
    let at = step.argv.iter().position(|word| word == "--test-dir");
    let dir = at.and_then(|at| step.argv.get(at + 1))?;
    if !session.files().join("CMakeLists.txt").is_file() {
        return None;
    }
    let words = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
    if !session.files().join(dir).join("CMakeCache.txt").is_file() {
        let finished = session
            .run(&words(&["cmake", "-S", ".", "-B", dir]), &[])
            .await;
        if exit_code(&finished) != Some(0) {
            return Some(judged(session, &finished, not_configured));
        }
    }
    let jobs = std::thread::available_parallelism()
        .map_or(1, std::num::NonZero::get)
        .to_string();
    let finished = session
        .run(&words(&["cmake", "--build", dir, "--parallel", &jobs]), &[])
        .await;
    if exit_code(&finished) == Some(0) {
        return None;
    }
    Some(judged(session, &finished, |said| Outcome::DidNotBuild {
        errors: build_errors(said, session.root()),
    }))
}

fn judged(
    session: &Session<'_>,
    finished: &FinishedProcess,
    outcome: impl Fn(&str) -> Outcome,
) -> Judgement {
    let said = without_colour(&output_of(finished));
    let outcome = session
        .cut_short(finished, "cmake")
        .unwrap_or_else(|| outcome(&said));
    Judgement::without_tests(outcome, finished)
}

/// `CMake Error at CMakeLists.txt:6 (find_package):`, with the reason below it.
fn not_configured(said: &str) -> Outcome {
    let mut lines = said.lines();
    let place = lines
        .find_map(|line| line.strip_prefix("CMake Error at "))
        .unwrap_or_default();
    let why = lines
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or("`cmake` could not configure the project");
    if place.contains("find_package") || place.contains("FindPackage") || place.is_empty() {
        let remedy = String::from("install what CMake asks for, or name a `test_cmd`");
        return Outcome::CouldNotRun {
            why: supervisor_text::words::cut_end(why, 300).into_owned(),
            remedy,
        };
    }
    let (file, line) = place.split_once(':').unwrap_or((place, ""));
    let line = line
        .split(|c: char| !c.is_ascii_digit())
        .next()
        .and_then(|n| n.parse().ok());
    Outcome::DidNotBuild {
        errors: vec![BuildError::new(why).at(file, line)],
    }
}

/// What the compiler and the linker said, with straight quotes and paths inside of the project.
fn build_errors(said: &str, root: &Path) -> Vec<BuildError> {
    let said = said
        .replace(['\u{2018}', '\u{2019}'], "'")
        .replace(&format!("{}/", root.display()), "");
    let mut errors = errors_in_output(&said);
    for error in &mut errors {
        if let Some(header) = error.message.strip_suffix(": No such file or directory") {
            let named = BuildError::new(format!("header not found: {header}"));
            *error = BuildError {
                file: error.file.take(),
                line: error.line,
                ..named
            };
        }
    }
    // `calc_test.cpp:(.text+0x1b): undefined reference to `twice(int)'`
    for line in said.lines() {
        let Some((place, name)) = line.split_once("undefined reference to `") else {
            continue;
        };
        let file = place
            .split(":(")
            .next()
            .unwrap_or(place)
            .rsplit([' ', '/'])
            .next()
            .unwrap_or_default();
        let error =
            BuildError::new(format!("undefined reference to '{}", name.trim())).at(file, None);
        if !errors.contains(&error) {
            errors.push(error);
        }
    }
    if errors.is_empty() {
        let line = said
            .lines()
            .find(|l| l.contains("rror"))
            .unwrap_or("the build failed");
        errors.push(BuildError::new(line.trim()));
    }
    errors
}

fn explain(finished: &FinishedProcess, code: i32) -> Option<Outcome> {
    let said = without_colour(&output_of(finished));
    if said.contains("No tests were found") {
        return Some(Outcome::NoTests);
    }
    let is_old = code != 0 && said.contains("Unknown argument");
    is_old.then(|| Outcome::CouldNotRun {
        why: String::from("this `ctest` writes no JUnit report"),
        remedy: String::from("install CMake 3.21 or newer, or name a `test_cmd`"),
    })
}

pub(super) fn parse(text: &str) -> Option<TestRunReport> {
    let mut report = TestRunReport::default();
    for case in junit::parse(text)? {
        let state = match case.state() {
            // The report has no more to say than what the test wrote.
            TestState::Failed(_) => failed(&case.output),
            state => state,
        };
        report.add(&case.name, state);
    }
    Some(report)
}

/// Names as one pattern: `-R ^(CalcTest\.Doubles|text)$`.
fn select(step: &SuiteStep, names: &[&str]) -> Option<Vec<String>> {
    let all = names
        .iter()
        .map(|name| quoted(name))
        .collect::<Vec<_>>()
        .join("|");
    let mut argv = step.argv.clone();
    argv.extend([String::from("-R"), format!("^({all})$")]);
    Some(argv)
}

#[cfg(test)]
mod tests {
    use super::super::super::command::argv;
    use super::super::super::outcome::TestName;
    use super::*;

    #[test]
    fn what_a_test_wrote_is_why_it_failed() {
        let text = r#"<testsuite name="(empty)" tests="3"><testcase name="CalcTest.Doubles" classname="x" status="run"><system-out>ok</system-out></testcase>
            <testcase name="CalcTest.Triples" status="fail"><failure message=""/><system-out>Which is: 2</system-out></testcase>
            <testcase name="CalcTest.Off" status="disabled"><system-out>Disabled</system-out></testcase></testsuite>"#;
        let tests = parse(text).expect("whole").tests;
        assert_eq!(
            tests[&TestName::from("CalcTest.Doubles")],
            TestState::Passed
        );
        assert_eq!(
            tests[&TestName::from("CalcTest.Triples")],
            TestState::Failed("Which is: 2".into())
        );
        assert_eq!(tests[&TestName::from("CalcTest.Off")], TestState::Skipped);
        let step = SuiteStep::new(argv("ctest --test-dir build"), "/p");
        assert_eq!(
            select(&step, &["A.b", "c"]).expect("can be said")[3..],
            ["-R", r"^(A\.b|c)$"]
        );
    }

    #[test]
    fn what_compiler_and_linker_say_is_read_with_the_name_that_is_missing() {
        let said = "/p/tests/a.cpp:8:15: error: \u{2018}twice\u{2019} was not declared in this scope; did you mean 'trice'?\n\
                    /p/tests/a.cpp:2:10: fatal error: calc2.h: No such file or directory\n/usr/bin/ld: CMakeFiles/t.dir/tests/a.cpp.o: in \
                    function `f()':\na.cpp:(.text+0x1b): undefined reference to `half(int)'\n";
        let told: Vec<String> = build_errors(said, Path::new("/p"))
            .iter()
            .map(|e| format!("{e} {:?}", e.missing))
            .collect();
        assert_eq!(
            told,
            [
                "tests/a.cpp:8: 'twice' was not declared in this scope; did you mean 'trice'? [\"twice\"]",
                "tests/a.cpp:2: header not found: calc2.h [\"calc2.h\"]",
                "a.cpp: undefined reference to 'half(int)' [\"half\"]",
            ]
        );
        let missing = "CMake Error at CMakeLists.txt:6 (find_package):\n  By not providing \"FindX.cmake\" …\n";
        assert!(matches!(
            not_configured(missing),
            Outcome::CouldNotRun { .. }
        ));
        let wrong = "CMake Error at CMakeLists.txt:3 (add_library):\n  Cannot find source file:\n";
        assert!(matches!(not_configured(wrong), Outcome::DidNotBuild { .. }));
    }
}
