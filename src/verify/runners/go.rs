//! `go test`: events from `-json`, checked against what a witness saw of each test program.
//!
//! The events are made from what the program prints, so a program could print them itself. The witness asks it for its
//! list of tests first, and for a heap profile which is written only after the last test: whoever leaves early, with
//! whatever words, is noticed.

mod events;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use futures_util::future::{BoxFuture, FutureExt as _};

use super::super::build::BuildError;
use super::super::command::program;
use super::super::outcome::{Outcome, State, TestName, Tests};
use super::super::session::{Judgement, Session, agree, exit_code, join_output};
use super::super::suite::{Ecosystem, Suite};
use super::super::witness::{self, Seen};
use super::Runner;
use events::{End, Events};

pub(super) static RUNNER: Runner = Runner {
    name: "go",
    ecosystem: Some(Ecosystem::Go),
    manifests: &["go.mod"],
    command: &["go", "test", "./..."],
    recognises,
    run,
    only,
};

const SEEN: &str = "programs";
const EVENTS: &str = "events.json";

fn recognises(argv: &[String]) -> bool {
    const OURS: &[&str] = &["-exec", "-c", "-list", "-memprofile", "-n"];
    program(argv) == "go" && argv.get(1).is_some_and(|a| a == "test") && !argv.iter().any(|a| OURS.contains(&flag(a)))
}

fn run<'a>(suite: &'a Suite, session: &'a Session<'a>) -> BoxFuture<'a, Judgement> {
    async move {
        let dir = session.file(SEEN);
        if let Err(error) = std::fs::create_dir_all(&dir) {
            return Judgement::no_place(&error);
        }
        let witness = shell_words::join([&session.program(), "witness", "go", &dir.to_string_lossy()]);
        let (start, rest) = suite.argv().split_at(2);
        let mut argv = start.to_vec();
        // A remembered result was not seen by anybody: every test runs.
        argv.extend([String::from("-json"), String::from("-count=1"), format!("-exec={witness}")]);
        argv.extend(rest.iter().filter(|a| flag(a) != "-json" && flag(a) != "-count").cloned());
        let finished = session.run_into(EVENTS, &argv, &[]).await;

        let events = events::parse(&session.report(EVENTS).unwrap_or_default());
        let stderr = finished.stderr.text();
        let (outcome, tests) = match session.cut_short(&finished, "go") {
            Some(outcome) => (outcome, events.tests()),
            None => {
                let directories = directories(&events, session).await;
                let selects = rest.iter().any(|a| ["-run", "-skip", "-failfast", "-short"].contains(&flag(a)));
                judge(&events, &stderr, &witness::read(&dir), &directories, selects, exit_code(&finished))
            }
        };
        let output = join_output([events.printed.as_str(), &stderr]);
        Judgement { outcome, tests: Tests::Named(tests), exit_code: exit_code(&finished), output, notes: Vec::new() }
    }
    .boxed()
}

/// Where each package lives; the witness knows programs by the directory they ran in.
async fn directories(events: &Events, session: &Session<'_>) -> BTreeMap<PathBuf, String> {
    let mut argv: Vec<String> = ["go", "list", "-e", "-f", "{{.ImportPath}}\t{{.Dir}}"].map(String::from).to_vec();
    argv.extend(events.packages.keys().cloned());
    if events.packages.is_empty() {
        return BTreeMap::new();
    }
    session.run_into("packages", &argv, &[]).await;
    let listed = session.report("packages").unwrap_or_default();
    listed.lines().filter_map(|l| l.split_once('\t')).map(|(name, dir)| (PathBuf::from(dir), name.to_owned())).collect()
}

fn judge(
    events: &Events,
    stderr: &str,
    seen: &[Seen],
    directories: &BTreeMap<PathBuf, String>,
    selects: bool,
    code: Option<i32>,
) -> (Outcome, BTreeMap<TestName, State>) {
    let mut tests = events.tests();
    let mut doubts: Vec<String> = events.doubled().map(|name| format!("`{name}` has more than one result")).collect();
    let mut witnessed = BTreeSet::new();
    for program in seen {
        let canonical = program.cwd.canonicalize().unwrap_or_else(|_| program.cwd.clone());
        let Some(package) = directories.get(&program.cwd).or_else(|| directories.get(&canonical)) else { continue };
        witnessed.insert(package.as_str());
        if program.code == Some(0) && program.log.is_none() {
            doubts.push(format!("the tests of `{package}` did not come to their end"));
        }
        for name in program.list.as_deref().unwrap_or_default().lines().filter(|l| is_test(l) && !selects) {
            let name = TestName(format!("{package} {name}"));
            if tests.contains_key(&name) {
                continue;
            }
            doubts.push(format!("`{name}` has no result"));
            if program.code != Some(0) {
                tests.insert(name, State::Failed(String::from("the test program ended before this test had a result")));
            }
        }
    }
    for (package, _) in
        events.packages.iter().filter(|(p, end)| **end == Some(End::Pass) && !witnessed.contains(p.as_str()))
    {
        doubts.push(format!("nobody saw the tests of `{package}` run"));
    }
    let said = format!("{}{stderr}", events.build);
    let not_built = events.printed.contains("[build failed]") || events.printed.contains("[setup failed]");
    let errors = if code == Some(0) { Vec::new() } else { build_errors(&said) };
    let outcome = if not_built || (!errors.is_empty() && tests.is_empty()) {
        let unknown = || vec![BuildError::new("a package did not build")];
        Outcome::DidNotBuild { errors: if errors.is_empty() { unknown() } else { errors } }
    } else if said.contains("no packages to test") || said.contains("matched no packages") {
        Outcome::NoTests
    } else if code != Some(0) && tests.is_empty() && said.contains("go: ") {
        let why = said.lines().find_map(|l| l.strip_prefix("go: ")).unwrap_or_default().to_owned();
        Outcome::CouldNotRun { why, remedy: String::from("run `go test ./...` by hand to see all it says") }
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

/// Benchmarks are listed too, but do not run.
fn is_test(name: &str) -> bool {
    ["Test", "Example", "Fuzz"].iter().any(|kind| name.starts_with(kind))
}

/// `./a_test.go:5:2: undefined: Add`, also behind `vet: `.
fn build_errors(text: &str) -> Vec<BuildError> {
    let mut errors: Vec<BuildError> = Vec::new();
    for line in text.lines() {
        let line = line.trim_start_matches("vet: ");
        let mut parts = line.splitn(3, ':');
        let (Some(file), Some(Ok(number))) = (parts.next(), parts.next().map(str::parse)) else { continue };
        if !file.ends_with(".go") || file.starts_with(char::is_whitespace) {
            continue;
        }
        let rest = parts.next().unwrap_or_default();
        let message =
            rest.split_once(": ").filter(|(column, _)| column.parse::<u32>().is_ok()).map_or(rest, |(_, m)| m);
        let error = BuildError::new(message.trim()).at(file.trim_start_matches("./"), Some(number));
        if !errors.contains(&error) {
            errors.push(error);
        }
    }
    errors
}

fn flag(word: &str) -> &str {
    let word = word.split('=').next().unwrap_or(word);
    if let Some(rest) = word.strip_prefix("--") { &word[word.len() - rest.len() - 1..] } else { word }
}

/// `example.com/x TestA/sub` becomes `go test example.com/x -run ^TestA$/^sub$`.
fn only(argv: &[String], name: &str) -> Option<Vec<String>> {
    let (package, test) = name.split_once(' ')?;
    let pattern: Vec<String> = test.split('/').map(|part| format!("^{}$", quoted(part))).collect();
    let flags = argv.iter().skip(2).filter(|a| a.starts_with('-') && a.contains('=')).cloned();
    let mut narrowed: Vec<String> = argv[..2].iter().cloned().chain(flags).collect();
    narrowed.extend([String::from("-run"), pattern.join("/"), package.to_owned()]);
    Some(narrowed)
}

fn quoted(text: &str) -> String {
    text.chars().flat_map(|c| r"\.+*?()|[]{}^$".contains(c).then_some('\\').into_iter().chain([c])).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::command::argv;
    use super::*;

    #[test]
    fn it_knows_its_own_commands() {
        assert!(recognises(&argv("go test ./pkg")) && recognises(&argv("go test -run TestA ./...")));
        assert!(!recognises(&argv("go vet ./...")) && !recognises(&argv("go test -exec=x ./...")));
    }

    #[test]
    fn one_test_is_selected_with_its_package() {
        let narrowed = only(&argv("go test -tags=x ./..."), "example.com/x TestA/one+one").expect("can select");
        assert_eq!(narrowed, ["go", "test", "-tags=x", "-run", r"^TestA$/^one\+one$", "example.com/x"]);
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
