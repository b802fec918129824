//! `go test`: events from `-json`, checked against what a witness saw of each test program.
//!
//! The events are made from what the program prints, so a program could print them itself. The witness asks it for its
//! list of tests first, and for a heap profile which is written only after the last test: a program that leaves early,
//! with whatever words, is noticed.

mod events;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use futures_util::future::{BoxFuture, FutureExt as _};

use super::super::build::BuildError;
use super::super::command::program;
use super::super::detect::{FoundSuite, SearchPlace};
use super::super::outcome::{Outcome, TestName, TestState, Tests};
use super::super::session::{Judgement, Session, agree, exit_code, join_output};
use super::super::step::SuiteStep;
use super::super::witness::{self, SeenProgram};
use super::{Runner, by_manifest, quoted};
use events::{Events, GoTestEnd};
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
    // They begin with the path of a package, which is the same from everywhere.
    names_are_paths: false,
};

const SEEN: &str = "programs";
const EVENTS: &str = "events.json";

/// How many packages any text speaks of.
pub(super) fn count_packages(text: &str) -> usize {
    events::parse(text).packages.len()
}

fn recognises(argv: &[String]) -> bool {
    const OURS: &[&str] = &["-exec", "-c", "-list", "-memprofile", "-n"];
    program(argv) == "go"
        && argv.get(1).is_some_and(|a| a == "test")
        && !argv.iter().any(|a| OURS.contains(&flag(a)))
}

/// A workspace is every module it uses; without one, the module of this directory.
fn find(runner: &'static Runner, place: &SearchPlace<'_>) -> Option<FoundSuite> {
    let Some(work) = place.read("go.work") else {
        return by_manifest(runner, place);
    };
    let modules = used_modules(&work);
    let steps: Vec<SuiteStep> = modules
        .iter()
        .map(|module| place.dir.join(module))
        .filter(|dir| dir.join("go.mod").is_file())
        .map(|dir| {
            SuiteStep::new(runner.argv(), dir.components().collect::<PathBuf>()).run_by(runner)
        })
        .collect();
    let first = steps.first()?.clone();
    let mut suite = FoundSuite {
        steps,
        ..FoundSuite::of(first, "go.work")
    };
    suite.notes.push(format!(
        "run in each module of the workspace: {}",
        modules.join(", ")
    ));
    Some(suite)
}

/// The directories that a `go.work` uses.
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

/// What is said of a test that its program did not come to.
const UNREACHED: &str = "the test program ended before this test had a result";

fn run<'a>(step: &'a SuiteStep, session: &'a Session<'a>) -> BoxFuture<'a, Judgement> {
    async move {
        let dir = session.file(SEEN);
        if let Err(error) = std::fs::create_dir_all(&dir) {
            return Judgement::no_place(&error);
        }
        let witness =
            shell_words::join([&session.program(), "witness", "go", &dir.to_string_lossy()]);
        let (start, rest) = step.argv().split_at(2);
        let mut argv = start.to_vec();
        // A remembered result was not seen by anybody: every test runs.
        argv.extend([
            String::from("-json"),
            String::from("-count=1"),
            format!("-exec={witness}"),
        ]);
        argv.extend(
            rest.iter()
                .filter(|a| flag(a) != "-json" && flag(a) != "-count")
                .cloned(),
        );
        let finished = session.run_into(EVENTS, &argv, &[]).await;

        let events = events::parse(&session.report(EVENTS).unwrap_or_default());
        let stderr = finished.stderr.text();
        let mut notes = Vec::new();
        let (outcome, tests) = match session.cut_short(&finished, "go") {
            Some(outcome) => (outcome, events.tests()),
            None => {
                let directories = directories(&events, session).await;
                let selects = rest
                    .iter()
                    .any(|a| ["-run", "-skip", "-failfast", "-short"].contains(&flag(a)));
                let (outcome, mut tests) = judge(
                    &events,
                    &stderr,
                    &witness::read(&dir),
                    &directories,
                    selects,
                    exit_code(&finished),
                );
                if outcome == Outcome::Failed {
                    notes.extend(resume(step, session, &mut tests).await);
                }
                (outcome, tests)
            }
        };
        let output = join_output([events.printed.as_str(), &stderr]);
        Judgement {
            outcome,
            tests: Tests::Named(tests),
            exit_code: exit_code(&finished),
            output,
            notes,
        }
    }
    .boxed()
}

/// A panic ends the program of its package, and with it tests that have done nothing wrong: they run again without it.
async fn resume(
    step: &SuiteStep,
    session: &Session<'_>,
    tests: &mut BTreeMap<TestName, TestState>,
) -> Option<String> {
    /// As many tests may panic; what is not reached then has failed.
    const ROUNDS: usize = 4;
    let unreached = |tests: &BTreeMap<TestName, TestState>| -> Vec<TestName> {
        tests
            .iter()
            .filter(|(_, s)| matches!(s, TestState::Failed(m) if m == UNREACHED))
            .map(|(n, _)| n.clone())
            .collect()
    };
    let all = unreached(tests).len();
    for round in 0..ROUNDS {
        let left = unreached(tests);
        let names: Vec<&str> = left.iter().map(|name| name.0.as_str()).collect();
        let Some(narrowed) = select(step, &names).filter(|_| !names.is_empty()) else {
            break;
        };
        let dir = session.file(&format!("{SEEN}-{round}"));
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
        // A program that ends without a report has shown nothing.
        let is_whole = witness::read(&dir)
            .iter()
            .all(|program| program.code != Some(0) || program.log.is_some());
        if session.cut_short(&finished, "go").is_some() || !is_whole {
            break;
        }
        let events = events::parse(&session.report(&file).unwrap_or_default());
        // The package has slashes of its own.
        let outermost = |name: &TestName| match name.0.split_once(' ') {
            Some((package, test)) => TestName(format!(
                "{package} {}",
                test.split('/').next().unwrap_or(test)
            )),
            None => name.clone(),
        };
        let doubled: Vec<&TestName> = events.doubled().collect();
        let seen = events
            .tests()
            .into_iter()
            .filter(|(name, _)| left.contains(&outermost(name)) && !doubled.contains(&name));
        tests.extend(seen);
        if unreached(tests).len() == left.len() {
            break;
        }
    }
    let reached = all - unreached(tests).len();
    (reached > 0).then(|| {
        format!(
            "{} after a panic ran without it",
            words::count(reached, "test")
        )
    })
}

/// Where each package lives; the witness knows programs by the directory they ran in.
async fn directories(events: &Events, session: &Session<'_>) -> BTreeMap<PathBuf, String> {
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
    seen: &[SeenProgram],
    directories: &BTreeMap<PathBuf, String>,
    selects: bool,
    code: Option<i32>,
) -> (Outcome, BTreeMap<TestName, TestState>) {
    let mut tests = events.tests();
    let mut doubts: Vec<String> = events
        .doubled()
        .map(|name| format!("`{name}` has more than one result"))
        .collect();
    let mut witnessed = BTreeSet::new();
    for program in seen {
        let canonical = program
            .cwd
            .canonicalize()
            .unwrap_or_else(|_| program.cwd.clone());
        let Some(package) = directories
            .get(&program.cwd)
            .or_else(|| directories.get(&canonical))
        else {
            continue;
        };
        witnessed.insert(package.as_str());
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
            .filter(|l| is_test(l) && !selects)
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
        .filter(|(p, end)| **end == Some(GoTestEnd::Pass) && !witnessed.contains(p.as_str()))
    {
        doubts.push(format!("no report shows that the tests of `{package}` ran"));
    }
    let said = format!("{}{stderr}", events.build);
    let not_built =
        events.printed.contains("[build failed]") || events.printed.contains("[setup failed]");
    let errors = if code == Some(0) {
        Vec::new()
    } else {
        build_errors(&said)
    };
    let outcome = if not_built || (!errors.is_empty() && tests.is_empty()) {
        let unknown = || vec![BuildError::new("a package did not build")];
        Outcome::DidNotBuild {
            errors: if errors.is_empty() { unknown() } else { errors },
        }
    } else if said.contains("no packages to test") || said.contains("matched no packages") {
        Outcome::NoTests
    } else if code != Some(0) && tests.is_empty() && said.contains("go: ") {
        let why = said
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
        agree(&tests, code)
    };
    if matches!(outcome, Outcome::Passed | Outcome::NoTests) && !doubts.is_empty() {
        doubts.truncate(5);
        let why = format!("go ended with exit code 0, but {}", doubts.join(", "));
        return (Outcome::Unclear { why }, tests);
    }
    (outcome, tests)
}

/// A table of tests that is made by code still to be written ends the program before any test has a name: as good as not
/// built. With the innermost place that the trace names.
fn panic_before_tests(printed: &str) -> Option<BuildError> {
    let mut lines = printed
        .lines()
        .skip_while(|line| !line.starts_with("panic: "));
    let error = BuildError::new(format!("{} (before the first test)", lines.next()?));
    let place = lines.find_map(|line| {
        let (file, rest) = line.trim().rsplit_once(':')?;
        let number = rest.split_whitespace().next()?.parse().ok()?;
        let name = file.rsplit('/').next()?;
        (name.ends_with(".go") && line.starts_with('\t')).then(|| (name.to_owned(), number))
    });
    Some(match place {
        Some((file, number)) => error.at(&file, Some(number)),
        None => error,
    })
}

/// Benchmarks are listed too, but do not run.
fn is_test(name: &str) -> bool {
    ["Test", "Example", "Fuzz"]
        .iter()
        .any(|kind| name.starts_with(kind))
}

/// `./a_test.go:5:2: undefined: Add`, also behind `vet: `.
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

fn flag(word: &str) -> &str {
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
            .map(|part| format!("^{}$", quoted(part)))
            .collect::<Vec<_>>()
            .join("/"),
        many => {
            let outermost: std::collections::BTreeSet<String> = many
                .iter()
                .map(|t| quoted(t.split('/').next().unwrap_or(t)))
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
    fn it_knows_its_own_commands() {
        assert!(
            recognises(&argv("go test ./pkg")) && recognises(&argv("go test -run TestA ./..."))
        );
        assert!(!recognises(&argv("go vet ./...")) && !recognises(&argv("go test -exec=x ./...")));
    }

    #[test]
    fn one_test_is_selected_with_its_package() {
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
    fn a_panic_before_the_first_test_is_told_with_its_place() {
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
    fn a_workspace_names_its_modules_on_one_line_or_on_several() {
        assert_eq!(
            used_modules("go 1.22\n\nuse ./a // first\nuse (\n\t.\n\t\"./b c\"\n)\n"),
            ["./a", ".", "./b c"]
        );
    }

    #[test]
    fn compiler_errors_carry_place_and_missing_name() {
        let errors = build_errors(
            "# example.com/x [example.com/x.test]\n./a_test.go:5:9: undefined: Add\n\tnote\nvet: b.go:1:2: x",
        );
        assert_eq!(errors.len(), 2);
        assert_eq!(errors[0].to_string(), "a_test.go:5: undefined: Add");
        assert_eq!(errors[0].missing, ["Add"]);
    }

    proptest::proptest! {
        #[test]
        fn no_compiler_is_too_odd(text in super::super::super::garbage::garbage("# x\n./a_test.go:5:9: undefined: Add\nvet: b.go:1:2: x.Foo undefined (type T has no field or method Foo)")) {
            let _ = build_errors(&text);
        }
    }
}
