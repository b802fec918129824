//! Runs `go test -json` and checks its events against what the `witness` sub-command recorded of each test program.
//!
//! Go derives the events from the program's output, so a program could print them itself. The witness first asks the
//! program for its list of tests. It also requests a heap profile, which Go writes only after the last test. A program
//! that exits early is therefore detected, whatever it prints.

mod events;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use futures_util::future::{BoxFuture, FutureExt as _};

use super::super::build::BuildError;
use super::super::command::program;
use super::super::detect::{FoundSuite, SearchPlace};
use super::super::outcome::{Outcome, TestName, TestState, Tests};
use super::super::session::{RunnerResult, Session, decide_outcome, exit_code, join_output};
use super::super::step::SuiteStep;
use super::super::test_wrapper::{self, ObservedProgram};
use super::{Runner, escape_regex, find_by_manifest};
use events::{Events, GoTestResult};
use supervisor_languages::GO;
use supervisor_text::words;

pub(super) static RUNNER: Runner = Runner {
    name: "go",
    ecosystem: Some(&GO),
    manifests: &["go.mod"],
    command: &["go", "test", "./..."],
    find,
    recognises,
    run,
    select,
    // Names begin with an import path, which does not depend on the directory.
    names_are_paths: false,
};

/// The directory in which the witness records each program.
const WITNESS_DIR: &str = "programs";
const EVENTS: &str = "events.json";

/// The number of packages that the parser finds in arbitrary text. For fuzzing.
pub(super) fn count_packages(text: &str) -> usize {
    events::parse(text).packages.len()
}

fn recognises(argv: &[String]) -> bool {
    const RESERVED_FLAGS: &[&str] = &["-exec", "-c", "-list", "-memprofile", "-n"];
    program(argv) == "go"
        && argv.get(1).is_some_and(|a| a == "test")
        && !argv.iter().any(|a| RESERVED_FLAGS.contains(&flag_name(a)))
}

/// Finds all modules of a `go.work`; without one, the module in this directory.
fn find(runner: &'static Runner, place: &SearchPlace<'_>) -> Option<FoundSuite> {
    let Some(work) = place.read("go.work") else {
        return find_by_manifest(runner, place);
    };
    let modules = used_modules(&work);
    let steps: Vec<SuiteStep> = modules
        .iter()
        .map(|module| place.dir.join(module))
        .filter(|dir| dir.join("go.mod").is_file())
        .map(|dir| {
            SuiteStep::new(runner.default_argv(), dir.components().collect::<PathBuf>())
                .with_runner(runner)
        })
        .collect();
    let first = steps.first()?.clone();
    let mut suite = FoundSuite {
        steps,
        ..FoundSuite::new(first, "go.work")
    };
    suite.notes.push(format!(
        "run in each module of the workspace: {}",
        modules.join(", ")
    ));
    Some(suite)
}

/// The module directories listed in a `go.work`.
fn used_modules(work: &str) -> Vec<String> {
    let mut modules = Vec::new();
    let mut inside = false;
    for line in work
        .lines()
        .map(|l| l.split("//").next().unwrap_or(l).trim())
    {
        let named = match line.strip_prefix("use") {
            Some(rest) if rest.trim_start().starts_with('(') => {
                inside = true;
                continue;
            }
            Some(rest) if rest.starts_with(char::is_whitespace) => Some(rest),
            _ if inside && line == ")" => {
                inside = false;
                continue;
            }
            _ => Some(line).filter(|_| inside),
        };
        let named = named
            .map(|n| n.trim().trim_matches(['"', '`']).to_owned())
            .filter(|n| !n.is_empty());
        modules.extend(named);
    }
    modules
}

/// The message of a test that its program did not reach.
const UNREACHED: &str = "the test program ended before this test had a result";

fn run<'a>(step: &'a SuiteStep, session: &'a Session<'a>) -> BoxFuture<'a, RunnerResult> {
    async move {
        let dir = session.file(WITNESS_DIR);
        if let Err(error) = std::fs::create_dir_all(&dir) {
            return RunnerResult::no_report_dir(&error);
        }
        let witness =
            shell_words::join([&session.program(), "witness", "go", &dir.to_string_lossy()]);
        let (start, rest) = step.argv().split_at(2);
        let mut argv = start.to_vec();
        // A cached result is not evidence, so run every test.
        argv.extend([
            String::from("-json"),
            String::from("-count=1"),
            format!("-exec={witness}"),
        ]);
        argv.extend(
            rest.iter()
                .filter(|a| flag_name(a) != "-json" && flag_name(a) != "-count")
                .cloned(),
        );
        let finished = session.run_into(EVENTS, &argv, &[]).await;

        let events = events::parse(&session.report(EVENTS).unwrap_or_default());
        let stderr = finished.stderr.text();
        let mut notes = Vec::new();
        let (outcome, tests) = match session.abnormal_outcome(&finished, "go") {
            Some(outcome) => (outcome, events.tests()),
            None => {
                let package_dirs = package_dirs(&events, session).await;
                let is_selection = rest
                    .iter()
                    .any(|a| ["-run", "-skip", "-failfast", "-short"].contains(&flag_name(a)));
                let (outcome, mut tests) = judge(
                    &events,
                    &stderr,
                    &test_wrapper::read_programs(&dir),
                    &package_dirs,
                    is_selection,
                    exit_code(&finished),
                );
                if outcome == Outcome::Failed {
                    notes.extend(rerun_unreached(step, session, &mut tests).await);
                }
                (outcome, tests)
            }
        };
        let output = join_output([events.printed.as_str(), &stderr]);
        RunnerResult {
            outcome,
            tests: Tests::Named(tests),
            exit_code: exit_code(&finished),
            output,
            notes,
        }
    }
    .boxed()
}

/// A panic ends the test program of its package before the remaining tests run. Runs those tests again without the one
/// that panicked.
async fn rerun_unreached(
    step: &SuiteStep,
    session: &Session<'_>,
    tests: &mut BTreeMap<TestName, TestState>,
) -> Option<String> {
    /// Each round can reveal another panic. Tests not reached after this many rounds have failed.
    const MAX_ROUNDS: usize = 4;
    let unreached = |tests: &BTreeMap<TestName, TestState>| -> Vec<TestName> {
        tests
            .iter()
            .filter(|(_, s)| matches!(s, TestState::Failed(m) if m == UNREACHED))
            .map(|(n, _)| n.clone())
            .collect()
    };
    let initially_unreached = unreached(tests).len();
    for round in 0..MAX_ROUNDS {
        let left = unreached(tests);
        let names: Vec<&str> = left.iter().map(|name| name.0.as_str()).collect();
        let Some(narrowed) = select(step, &names).filter(|_| !names.is_empty()) else {
            break;
        };
        let dir = session.file(&format!("{WITNESS_DIR}-{round}"));
        std::fs::create_dir_all(&dir).ok()?;
        let witness =
            shell_words::join([&session.program(), "witness", "go", &dir.to_string_lossy()]);
        let (start, rest) = narrowed.split_at(2);
        let mut argv = start.to_vec();
        argv.extend([
            String::from("-json"),
            String::from("-count=1"),
            format!("-exec={witness}"),
        ]);
        argv.extend(rest.iter().cloned());
        let file = format!("{EVENTS}-{round}");
        let finished = session.run_into(&file, &argv, &[]).await;
        // A program that exits without its profile proves nothing.
        let is_complete = test_wrapper::read_programs(&dir)
            .iter()
            .all(|program| program.code != Some(0) || program.log.is_some());
        if session.abnormal_outcome(&finished, "go").is_some() || !is_complete {
            break;
        }
        let events = events::parse(&session.report(&file).unwrap_or_default());
        // The import path contains slashes too, so split it off first.
        let outermost = |name: &TestName| match name.0.split_once(' ') {
            Some((package, test)) => TestName(format!(
                "{package} {}",
                test.split('/').next().unwrap_or(test)
            )),
            None => name.clone(),
        };
        let ambiguous: Vec<&TestName> = events.tests_with_several_results().collect();
        let results = events
            .tests()
            .into_iter()
            .filter(|(name, _)| left.contains(&outermost(name)) && !ambiguous.contains(&name));
        tests.extend(results);
        if unreached(tests).len() == left.len() {
            break;
        }
    }
    let reached = initially_unreached - unreached(tests).len();
    (reached > 0).then(|| {
        format!(
            "{} after a panic ran without it",
            words::count(reached, "test")
        )
    })
}

/// The directory of each package. The witness identifies programs by the directory they ran in.
async fn package_dirs(events: &Events, session: &Session<'_>) -> BTreeMap<PathBuf, String> {
    let mut argv: Vec<String> = ["go", "list", "-e", "-f", "{{.ImportPath}}\t{{.Dir}}"]
        .map(String::from)
        .to_vec();
    argv.extend(events.packages.keys().cloned());
    if events.packages.is_empty() {
        return BTreeMap::new();
    }
    session.run_into("packages", &argv, &[]).await;
    let listed = session.report("packages").unwrap_or_default();
    listed
        .lines()
        .filter_map(|l| l.split_once('\t'))
        .map(|(name, dir)| (PathBuf::from(dir), name.to_owned()))
        .collect()
}

fn judge(
    events: &Events,
    stderr: &str,
    seen: &[ObservedProgram],
    package_dirs: &BTreeMap<PathBuf, String>,
    is_selection: bool,
    code: Option<i32>,
) -> (Outcome, BTreeMap<TestName, TestState>) {
    let mut tests = events.tests();
    let mut doubts: Vec<String> = events
        .tests_with_several_results()
        .map(|name| format!("`{name}` has more than one result"))
        .collect();
    let mut observed = BTreeSet::new();
    for program in seen {
        let canonical = program
            .cwd
            .canonicalize()
            .unwrap_or_else(|_| program.cwd.clone());
        let Some(package) = package_dirs
            .get(&program.cwd)
            .or_else(|| package_dirs.get(&canonical))
        else {
            continue;
        };
        observed.insert(package.as_str());
        if program.code == Some(0) && program.log.is_none() {
            doubts.push(format!(
                "the tests of `{package}` did not come to their end"
            ));
        }
        for name in program
            .list
            .as_deref()
            .unwrap_or_default()
            .lines()
            .filter(|l| is_test(l) && !is_selection)
        {
            let name = TestName(format!("{package} {name}"));
            if tests.contains_key(&name) {
                continue;
            }
            doubts.push(format!("`{name}` has no result"));
            if program.code != Some(0) {
                tests.insert(name, TestState::Failed(UNREACHED.to_owned()));
            }
        }
    }
    for (package, _) in events
        .packages
        .iter()
        .filter(|(p, end)| **end == Some(GoTestResult::Pass) && !observed.contains(p.as_str()))
    {
        doubts.push(format!("no report shows that the tests of `{package}` ran"));
    }
    let build_output = format!("{}{stderr}", events.build);
    let build_failed =
        events.printed.contains("[build failed]") || events.printed.contains("[setup failed]");
    let errors = if code == Some(0) {
        Vec::new()
    } else {
        build_errors(&build_output)
    };
    let outcome = if build_failed || (!errors.is_empty() && tests.is_empty()) {
        let unknown = || vec![BuildError::new("a package did not build")];
        Outcome::DidNotBuild {
            errors: if errors.is_empty() { unknown() } else { errors },
        }
    } else if build_output.contains("no packages to test")
        || build_output.contains("matched no packages")
    {
        Outcome::NoTests
    } else if code != Some(0) && tests.is_empty() && build_output.contains("go: ") {
        let why = build_output
            .lines()
            .find_map(|l| l.strip_prefix("go: "))
            .unwrap_or_default()
            .to_owned();
        Outcome::CouldNotRun {
            why,
            remedy: String::from("run `go test ./...` by hand to see all it says"),
        }
    } else if let Some(error) =
        panic_before_tests(&events.printed).filter(|_| code != Some(0) && tests.is_empty())
    {
        Outcome::DidNotBuild {
            errors: vec![error],
        }
    } else {
        decide_outcome(&tests, code)
    };
    if matches!(outcome, Outcome::Passed | Outcome::NoTests) && !doubts.is_empty() {
        doubts.truncate(5);
        let why = format!("go ended with exit code 0, but {}", doubts.join(", "));
        return (Outcome::Unclear { why }, tests);
    }
    (outcome, tests)
}

/// A panic during package initialisation, for example in a table of test cases that calls unwritten code. It ends the
/// program before any test starts, so it counts as a build error, located at the innermost frame.
fn panic_before_tests(printed: &str) -> Option<BuildError> {
    let mut lines = printed
        .lines()
        .skip_while(|line| !line.starts_with("panic: "));
    let error = BuildError::new(format!("{} (before the first test)", lines.next()?));
    let location = lines.find_map(|line| {
        let (file, rest) = line.trim().rsplit_once(':')?;
        let number = rest.split_whitespace().next()?.parse().ok()?;
        let name = file.rsplit('/').next()?;
        (name.ends_with(".go") && line.starts_with('\t')).then(|| (name.to_owned(), number))
    });
    Some(match location {
        Some((file, number)) => error.at(&file, Some(number)),
        None => error,
    })
}

/// Whether a listed name is a test. Benchmarks are listed too, but do not run.
fn is_test(name: &str) -> bool {
    ["Test", "Example", "Fuzz"]
        .iter()
        .any(|kind| name.starts_with(kind))
}

/// Parses compiler errors: `./a_test.go:5:2: undefined: Add`, also after `vet: `.
fn build_errors(text: &str) -> Vec<BuildError> {
    let mut errors: Vec<BuildError> = Vec::new();
    for line in text.lines() {
        let line = line.trim_start_matches("vet: ");
        let mut parts = line.splitn(3, ':');
        let (Some(file), Some(Ok(number))) = (parts.next(), parts.next().map(str::parse)) else {
            continue;
        };
        if !file.ends_with(".go") || file.starts_with(char::is_whitespace) {
            continue;
        }
        let rest = parts.next().unwrap_or_default();
        let message = rest
            .split_once(": ")
            .filter(|(column, _)| column.parse::<u32>().is_ok())
            .map_or(rest, |(_, m)| m);
        let error = BuildError::new(message.trim()).at(file.trim_start_matches("./"), Some(number));
        if !errors.contains(&error) {
            errors.push(error);
        }
    }
    errors
}

/// The flag without its value and with a single dash.
fn flag_name(word: &str) -> &str {
    let word = word.split('=').next().unwrap_or(word);
    if let Some(rest) = word.strip_prefix("--") {
        &word[word.len() - rest.len() - 1..]
    } else {
        word
    }
}

/// `example.com/x TestA/sub` becomes `go test -run ^TestA$/^sub$ example.com/x`; several, by their outermost names.
fn select(step: &SuiteStep, names: &[&str]) -> Option<Vec<String>> {
    let (mut packages, mut tests): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for name in names {
        let (package, test) = name.split_once(' ')?;
        packages.push(package);
        tests.push(test);
    }
    packages.sort_unstable();
    packages.dedup();
    let pattern = match tests.as_slice() {
        [one] => one
            .split('/')
            .map(|part| format!("^{}$", escape_regex(part)))
            .collect::<Vec<_>>()
            .join("/"),
        many => {
            let outermost: std::collections::BTreeSet<String> = many
                .iter()
                .map(|t| escape_regex(t.split('/').next().unwrap_or(t)))
                .collect();
            format!(
                "^(?:{})$",
                outermost.into_iter().collect::<Vec<_>>().join("|")
            )
        }
    };
    let flags = step
        .argv
        .iter()
        .skip(2)
        .filter(|a| a.starts_with('-') && a.contains('='))
        .cloned();
    let mut narrowed: Vec<String> = step.argv[..2].iter().cloned().chain(flags).collect();
    narrowed.extend([String::from("-run"), pattern]);
    narrowed.extend(packages.into_iter().map(str::to_owned));
    Some(narrowed)
}

#[cfg(test)]
mod tests {
    use super::super::super::command::argv;
    use super::*;

    #[test]
    fn test_commands_are_recognised() {
        assert!(
            recognises(&argv("go test ./pkg")) && recognises(&argv("go test -run TestA ./..."))
        );
        assert!(!recognises(&argv("go vet ./...")) && !recognises(&argv("go test -exec=x ./...")));
    }

    #[test]
    fn test_is_selected_with_its_package() {
        let step = SuiteStep::new(argv("go test -tags=x ./..."), "/p");
        let narrowed = select(&step, &["example.com/x TestA/one+one"]).expect("can select");
        assert_eq!(
            narrowed,
            [
                "go",
                "test",
                "-tags=x",
                "-run",
                r"^TestA$/^one\+one$",
                "example.com/x"
            ]
        );
        let narrowed =
            select(&step, &["example.com/x TestA/one", "example.com/x TestB"]).expect("can select");
        assert_eq!(
            narrowed,
            [
                "go",
                "test",
                "-tags=x",
                "-run",
                "^(?:TestA|TestB)$",
                "example.com/x"
            ]
        );
    }

    #[test]
    fn panic_before_first_test_has_its_location() {
        let printed = "panic: not written yet\n\ngoroutine 1 [running]:\npov.New(...)\n\t/p/pov/pov.go:9\npov.init()\n\t\
                       /p/pov/cases_test.go:19 +0x25\nFAIL\tpov\t0.018s\n";
        let error = panic_before_tests(printed).expect("a panic");
        assert_eq!(
            error,
            BuildError::new("panic: not written yet (before the first test)").at("pov.go", Some(9))
        );
        assert_eq!(panic_before_tests("FAIL\tpov\t0.018s\n"), None);
    }

    #[test]
    fn workspace_modules_are_read_in_both_forms() {
        assert_eq!(
            used_modules("go 1.22\n\nuse ./a // first\nuse (\n\t.\n\t\"./b c\"\n)\n"),
            ["./a", ".", "./b c"]
        );
    }

    #[test]
    fn compiler_errors_have_location_and_missing_name() {
        let errors = build_errors(
            "# example.com/x [example.com/x.test]\n./a_test.go:5:9: undefined: Add\n\tnote\nvet: b.go:1:2: x",
        );
        assert_eq!(errors.len(), 2);
        assert_eq!(errors[0].to_string(), "a_test.go:5: undefined: Add");
        assert_eq!(errors[0].missing, ["Add"]);
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_compiler_output_does_not_panic(text in super::super::super::garbage::garbage("# x\n./a_test.go:5:9: undefined: Add\nvet: b.go:1:2: x.Foo undefined (type T has no field or method Foo)")) {
            let _ = build_errors(&text);
        }
    }
}
