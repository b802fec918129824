//! Runs `ctest` and reads its JUnit report from a private path. `ctest` does not build, so CMake first brings the build up
//! to date in the same directory.

use std::path::Path;

use futures_util::future::{BoxFuture, FutureExt as _};

use super::super::build::{BuildError, parse_compiler_errors};
use super::super::command::program;
use super::super::detect::{Confidence, FoundSuite, SearchPlace, read_small_file};
use super::super::junit;
use super::super::outcome::{Outcome, TestState};
use super::super::report::{ReportAdapter, TerminalOutput, TestRunReport, failed, strip_ansi};
use super::super::session::{RunnerResult, Session, exit_code, output_of};
use super::super::step::SuiteStep;
use super::{Runner, escape_regex};
use supervisor_languages::CPP;
use supervisor_process::FinishedProcess;

pub(super) static RUNNER: Runner = Runner {
    name: "ctest",
    ecosystem: Some(&CPP),
    manifests: &["CMakeLists.txt"],
    command: &["ctest", "--test-dir", BUILD_DIR],
    find,
    recognises: |argv| program(argv) == "ctest",
    run,
    select,
    names_are_paths: false,
};

/// The default build directory.
const BUILD_DIR: &str = "build";

static ADAPTER: ReportAdapter = ReportAdapter {
    program: "ctest",
    file: "ctest.xml",
    parse: |text, _| parse(text),
    explain,
    terminal: TerminalOutput::ShowsFailures,
};

fn find(runner: &'static Runner, place: &SearchPlace<'_>) -> Option<FoundSuite> {
    let text = place.read("CMakeLists.txt")?.to_lowercase();
    // The `CMakeLists.txt` of a subdirectory describes a part of a project and has no `project()`.
    text.contains("project(").then_some(())?;
    let test_markers = [
        "enable_testing",
        "include(ctest)",
        "add_test",
        "discover_tests",
        "add_subdirectory(test",
    ];
    let is_part = || {
        let above = place
            .ancestors()
            .skip(1)
            .filter_map(|dir| read_small_file(&dir.join("CMakeLists.txt")));
        above
            .into_iter()
            .any(|text| text.to_lowercase().contains("add_subdirectory"))
    };
    let states_tests = test_markers.iter().any(|word| text.contains(word)) && !is_part();
    let confidence = if states_tests {
        Confidence::Explicit
    } else {
        Confidence::ManifestOnly
    };
    let mut argv = runner.default_argv();
    if let Some(dir) = other_build_dir(place.dir) {
        argv[2] = dir;
    }
    Some(
        FoundSuite::new(SuiteStep::new(argv, place.dir), "CMakeLists.txt")
            .with_confidence(confidence),
    )
}

/// An already configured build directory with another name.
fn other_build_dir(dir: &Path) -> Option<String> {
    let is_cache = |name: &str| dir.join(name).join("CMakeCache.txt").is_file();
    if is_cache(BUILD_DIR) {
        return None;
    }
    let entries = dir
        .read_dir()
        .ok()?
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    entries.filter(|name| is_cache(name)).min()
}

fn run<'a>(step: &'a SuiteStep, session: &'a Session<'a>) -> BoxFuture<'a, RunnerResult> {
    async move {
        if let Some(failure) = build(step, session).await {
            return failure;
        }
        let report = session.file(ADAPTER.file).display().to_string();
        let argv = step
            .with_arguments(&["--output-on-failure", "--output-junit", &report].map(String::from));
        ADAPTER.run(session, &argv, &[]).await
    }
    .boxed()
}

/// Configures the project if necessary and builds it. `None` if the tests can be run.
async fn build(step: &SuiteStep, session: &Session<'_>) -> Option<RunnerResult> {
    let at = step.argv.iter().position(|word| word == "--test-dir");
    let dir = at.and_then(|at| step.argv.get(at + 1))?;
    if !session.files_root().join("CMakeLists.txt").is_file() {
        return None;
    }
    let words = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
    if !session
        .files_root()
        .join(dir)
        .join("CMakeCache.txt")
        .is_file()
    {
        let finished = session
            .run(&words(&["cmake", "-S", ".", "-B", dir]), &[])
            .await;
        if exit_code(&finished) != Some(0) {
            return Some(build_judgement(session, &finished, configure_failure));
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
    Some(build_judgement(session, &finished, |output| {
        Outcome::DidNotBuild {
            errors: build_errors(output, session.root()),
        }
    }))
}

fn build_judgement(
    session: &Session<'_>,
    finished: &FinishedProcess,
    outcome: impl Fn(&str) -> Outcome,
) -> RunnerResult {
    let output = strip_ansi(&output_of(finished));
    let outcome = session
        .abnormal_outcome(finished, "cmake")
        .unwrap_or_else(|| outcome(&output));
    RunnerResult::without_tests(outcome, finished)
}

/// Explains a failed configuration: `CMake Error at CMakeLists.txt:6 (find_package):`, with the reason below it.
fn configure_failure(output: &str) -> Outcome {
    let mut lines = output.lines();
    let location = lines
        .find_map(|line| line.strip_prefix("CMake Error at "))
        .unwrap_or_default();
    let why = lines
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or("`cmake` could not configure the project");
    if location.contains("find_package") || location.contains("FindPackage") || location.is_empty()
    {
        let remedy = String::from("install what CMake asks for, or name a `test_cmd`");
        return Outcome::CouldNotRun {
            why: supervisor_text::words::cut_end(why, 300).into_owned(),
            remedy,
        };
    }
    let (file, line) = location.split_once(':').unwrap_or((location, ""));
    let line = line
        .split(|c: char| !c.is_ascii_digit())
        .next()
        .and_then(|n| n.parse().ok());
    Outcome::DidNotBuild {
        errors: vec![BuildError::new(why).at(file, line)],
    }
}

/// Parses compiler and linker errors, with quotes made straight and paths made relative to the project.
fn build_errors(output: &str, root: &Path) -> Vec<BuildError> {
    let output = output
        .replace(['\u{2018}', '\u{2019}'], "'")
        .replace(&format!("{}/", root.display()), "");
    let mut errors = parse_compiler_errors(&output);
    for error in &mut errors {
        if let Some(header) = error.message.strip_suffix(": No such file or directory") {
            let missing = BuildError::new(format!("header not found: {header}"));
            *error = BuildError {
                file: error.file.take(),
                line: error.line,
                ..missing
            };
        }
    }
    // `calc_test.cpp:(.text+0x1b): undefined reference to `twice(int)'`
    for line in output.lines() {
        let Some((location, name)) = line.split_once("undefined reference to `") else {
            continue;
        };
        let file = location
            .split(":(")
            .next()
            .unwrap_or(location)
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
        let line = output
            .lines()
            .find(|l| l.contains("rror"))
            .unwrap_or("the build failed");
        errors.push(BuildError::new(line.trim()));
    }
    errors
}

fn explain(finished: &FinishedProcess, code: i32) -> Option<Outcome> {
    let output = strip_ansi(&output_of(finished));
    if output.contains("No tests were found") {
        return Some(Outcome::NoTests);
    }
    let is_old = code != 0 && output.contains("Unknown argument");
    is_old.then(|| Outcome::CouldNotRun {
        why: String::from("this `ctest` writes no JUnit report"),
        remedy: String::from("install CMake 3.21 or newer, or name a `test_cmd`"),
    })
}

pub(super) fn parse(text: &str) -> Option<TestRunReport> {
    let mut report = TestRunReport::default();
    for case in junit::parse(text)? {
        let state = match case.state() {
            // The failure element is empty; the message is in the test's output.
            TestState::Failed(_) => failed(without_passed_cases(&case.output)),
            state => state,
        };
        report.add(&case.name, state);
    }
    Some(report)
}

/// The output of a GoogleTest program without its passed cases, which would hide the failed ones in a long output.
fn without_passed_cases(output: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut case_start = None;
    for line in output.lines() {
        if line.starts_with("[ RUN      ]") {
            case_start = Some(kept.len());
        }
        if line.starts_with("[       OK ]") {
            kept.truncate(case_start.take().unwrap_or(kept.len()));
        } else {
            kept.push(line);
        }
    }
    kept.join("\n")
}

/// Selects by one pattern over the names: `-R ^(CalcTest\.Doubles|text)$`.
fn select(step: &SuiteStep, names: &[&str]) -> Option<Vec<String>> {
    let names = names
        .iter()
        .map(|name| escape_regex(name))
        .collect::<Vec<_>>()
        .join("|");
    let mut argv = step.argv.clone();
    argv.extend([String::from("-R"), format!("^({names})$")]);
    Some(argv)
}

#[cfg(test)]
mod tests {
    use super::super::super::command::argv;
    use super::super::super::outcome::TestName;
    use super::*;

    #[test]
    fn passed_cases_of_a_program_are_left_out_of_its_failure() {
        let output = "[==========] Running 2 tests\n[ RUN      ] A.ok\nnoise\n[       OK ] A.ok (0 ms)\n[ RUN      ] A.bad\n\
                      test/a_test.cpp:12: Failure\n[  FAILED  ] A.bad (0 ms)";
        assert_eq!(
            without_passed_cases(output),
            "[==========] Running 2 tests\n[ RUN      ] A.bad\ntest/a_test.cpp:12: Failure\n[  FAILED  ] A.bad (0 ms)"
        );
        assert_eq!(without_passed_cases("plain\ntext"), "plain\ntext");
    }

    #[test]
    fn failure_message_is_the_test_output() {
        let text = r#"<testsuite name="(empty)" tests="3"><testcase name="CalcTest.Doubles" classname="x" status="run"><system-out>ok</system-out></testcase>
            <testcase name="CalcTest.Triples" status="fail"><failure message=""/><system-out>Which is: 2</system-out></testcase>
            <testcase name="CalcTest.Off" status="disabled"><system-out>Disabled</system-out></testcase></testsuite>"#;
        let tests = parse(text).expect("a complete report").tests;
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
            select(&step, &["A.b", "c"]).expect("can select")[3..],
            ["-R", r"^(A\.b|c)$"]
        );
    }

    #[test]
    fn compiler_and_linker_errors_have_missing_names() {
        let output = "/p/tests/a.cpp:8:15: error: \u{2018}twice\u{2019} was not declared in this scope; did you mean 'trice'?\n\
                    /p/tests/a.cpp:2:10: fatal error: calc2.h: No such file or directory\n/usr/bin/ld: CMakeFiles/t.dir/tests/a.cpp.o: in \
                    function `f()':\na.cpp:(.text+0x1b): undefined reference to `half(int)'\n";
        let parsed: Vec<String> = build_errors(output, Path::new("/p"))
            .iter()
            .map(|e| format!("{e} {:?}", e.missing))
            .collect();
        assert_eq!(
            parsed,
            [
                "tests/a.cpp:8: 'twice' was not declared in this scope; did you mean 'trice'? [\"twice\"]",
                "tests/a.cpp:2: header not found: calc2.h [\"calc2.h\"]",
                "a.cpp: undefined reference to 'half(int)' [\"half\"]",
            ]
        );
        let missing = "CMake Error at CMakeLists.txt:6 (find_package):\n  By not providing \"FindX.cmake\" …\n";
        assert!(matches!(
            configure_failure(missing),
            Outcome::CouldNotRun { .. }
        ));
        let wrong = "CMake Error at CMakeLists.txt:3 (add_library):\n  Cannot find source file:\n";
        assert!(matches!(
            configure_failure(wrong),
            Outcome::DidNotBuild { .. }
        ));
    }
}
