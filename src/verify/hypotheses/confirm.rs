//! Runs what a hypothesis predicts: one test of the project, or a search in a file. Nothing else is ever run.

use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::super::outcome::{State, TestName, TestRun, Tests};
use super::super::session::Bench;
use super::super::settle::{Settled, run_settled};
use super::super::suite::Suite;
use super::evidence::Shelf;
use super::{Experiment, Hypothesis, Outcome};
use crate::words;

/// Lines of a search that are told.
const LINES: usize = 10;
const ASIDE: &str = "the hypothesis says no word of what is searched, so this shows nothing about it";

/// What came of one experiment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Confirmation {
    /// `None` if it could not be run.
    outcome: Option<Outcome>,
    detail: String,
    #[serde(skip)]
    predicted: Outcome,
    /// It looks for nothing that the hypothesis speaks of, so that nothing is shown if it comes true.
    #[serde(skip)]
    aside: bool,
}

impl Confirmation {
    pub fn outcome(&self) -> Option<Outcome> {
        self.outcome
    }

    /// `None` if nothing was shown either way.
    pub fn as_predicted(&self) -> Option<bool> {
        self.outcome.map(|outcome| outcome == self.predicted).filter(|came_true| !(*came_true && self.aside))
    }

    pub fn detail(&self) -> &str {
        &self.detail
    }
}

/// The tests of a project as they are known during one call. The project does not change meanwhile, so that a run of the
/// whole suite is good for every tier.
#[derive(Debug)]
pub struct Lab {
    /// Or why there are no tests to run.
    suite: Result<Suite, String>,
    whole: Mutex<Option<TestRun>>,
}

impl Lab {
    pub fn new(suite: Result<Suite, String>) -> Self {
        Self { suite, whole: Mutex::default() }
    }

    pub fn suite(&self) -> Option<&Suite> {
        self.suite.as_ref().ok()
    }

    /// Does what the hypothesis asks for.
    pub async fn confirm(
        &self,
        hypothesis: &Hypothesis,
        shelf: &Shelf,
        bench: &Bench,
        stop: &CancellationToken,
    ) -> Confirmation {
        let (outcome, detail) = match &hypothesis.experiment {
            Experiment::RunTest(name) => self.run_test(name, bench, stop).await,
            Experiment::Search { pattern, file } => {
                let named = file.to_string_lossy();
                // Read together with the citations; a path that the project uses is its own name.
                match shelf.text(file).map(|text| pattern.lines(text)) {
                    Some(Ok(found)) if found.is_empty() => (Some(Outcome::NotFound), format!("no line of `{named}`")),
                    Some(Ok(found)) => (Some(Outcome::Found), lines(&found)),
                    Some(Err(why)) => (None, why),
                    None => (None, format!("`{named}` cannot be read")),
                }
            }
        };
        let aside = !hypothesis.is_about_its_test();
        let detail =
            if aside && outcome == Some(hypothesis.expect_if_true) { format!("{detail}; {ASIDE}") } else { detail };
        Confirmation { outcome, detail, predicted: hypothesis.expect_if_true, aside }
    }

    async fn run_test(&self, name: &str, bench: &Bench, stop: &CancellationToken) -> (Option<Outcome>, String) {
        let suite = match &self.suite {
            Ok(suite) => suite,
            Err(why) => return (None, why.clone()),
        };
        let name = test_of(name, suite.argv(), suite.runner());
        let known = self.known().as_ref().map(|run| called(run, name)).filter(|names| !names.is_empty());
        // Where its full name is known or given, it runs alone.
        let alone = match known.as_deref() {
            Some([one]) => suite.only(one),
            Some(_) => None,
            None => suite.only(&TestName::from(name)),
        };
        if let Some(alone) = alone {
            match run_settled(&alone, bench, None, stop).await {
                Settled::Flaky { .. } => return (None, flaky(name)),
                Settled::Sure(run) => {
                    let names = called(&run, name);
                    if !names.is_empty() && run.outcome().speaks_about_the_code() {
                        return judged(&run, &names);
                    }
                }
            }
        }
        if self.known().is_none() {
            let whole = suite.run(bench, stop).await;
            *self.known() = Some(whole);
        }
        let Some(whole) = self.known().clone() else { return (None, String::from("the tests were not run")) };
        let names = called(&whole, name);
        match whole.tests() {
            _ if !whole.outcome().speaks_about_the_code() => (None, whole.sentence()),
            Tests::Unknown => (None, format!("`{}` does not name its tests", words::plain(whole.command()))),
            Tests::Named(_) if names.is_empty() => {
                (None, format!("no test is called `{}`", words::cut_end(&words::plain(name), 200)))
            }
            Tests::Named(_) => judged(&whole, &names),
        }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Option<TestRun>> {
        self.whole.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What these tests did.
fn judged(run: &TestRun, names: &[TestName]) -> (Option<Outcome>, String) {
    let failed = names.iter().find_map(|name| match run.state(name) {
        Some(State::Failed(message)) => Some((name, message)),
        _ => None,
    });
    if let Some((name, message)) = failed {
        let said = message.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        let said = words::cut_end(&words::plain(said), 200).into_owned();
        let colon = if said.is_empty() { "" } else { ": " };
        return (Some(Outcome::Fails), format!("`{name}` fails{colon}{said}"));
    }
    let passed: Vec<String> =
        names.iter().filter(|name| run.state(name) == Some(&State::Passed)).map(|name| format!("`{name}`")).collect();
    match passed.len() {
        0 => (None, names.first().map_or_else(String::new, |name| format!("`{name}` is skipped"))),
        n => {
            let more = if n > 3 { format!(" and {}", words::count(n - 3, "other")) } else { String::new() };
            let verb = if n == 1 { "passes" } else { "pass" };
            (Some(Outcome::Passes), format!("{}{more} {verb}", passed[..n.min(3)].join(", ")))
        }
    }
}

/// The tests that a model means: by the whole name, by its end, by a file, or by a file and a name in it.
fn called(run: &TestRun, said: &str) -> Vec<TestName> {
    let said = said.trim().trim_start_matches("./");
    let all: Vec<&TestName> = run.named().map(|(name, _)| name).collect();
    let pick = |fits: &dyn Fn(&str) -> bool| -> Vec<TestName> {
        all.iter().filter(|name| fits(&name.0)).map(|name| (*name).clone()).collect()
    };
    let exact = pick(&|name| name == said);
    if !exact.is_empty() {
        return exact;
    }
    let ending = pick(&|name| ends_with(name, said));
    if !ending.is_empty() {
        return ending;
    }
    let (file, test) = match said.split_once("::") {
        Some((file, test)) => (file, Some(test)),
        None => (said, None),
    };
    let Some((stem, _)) = file.rsplit('/').next().and_then(|name| name.rsplit_once('.')) else { return Vec::new() };
    let in_file = |name: &str| {
        let by_path = name.strip_prefix(file).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()));
        by_path || name.split([' ', ':', '/', '.']).any(|part| part == stem)
    };
    pick(&|name| in_file(name) && test.is_none_or(|test| ends_with(name, test)))
}

/// `adds` of `cargo test adds`: what begins with the runner is a command, and its last plain word is the test.
fn test_of<'a>(said: &'a str, argv: &[String], runner: &str) -> &'a str {
    let is_runner = |first: &str| first == runner || argv.first().is_some_and(|program| program == first);
    let mut words = said.split_whitespace();
    match words.next() {
        Some(first) if is_runner(first) => words.rfind(|word| !word.starts_with(['-', '.'])).unwrap_or(said),
        _ => said,
    }
}

fn ends_with(name: &str, said: &str) -> bool {
    let outer = name.split('[').next().unwrap_or(name);
    [name, outer].iter().any(|name| {
        name.strip_suffix(said).is_some_and(|before| before.is_empty() || before.ends_with([':', ' ', '/', '.', '>']))
    })
}

fn flaky(name: &str) -> String {
    format!("two runs of `{}` differ: it is flaky", words::cut_end(&words::plain(name), 200))
}

fn lines(found: &[usize]) -> String {
    let shown: Vec<String> = found.iter().take(LINES).map(ToString::to_string).collect();
    let more = found.len().saturating_sub(LINES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{} {}{more}", if found.len() == 1 { "line" } else { "lines" }, shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::super::baseline::tests::run;
    use super::*;

    fn named(names: &[&str]) -> TestRun {
        // Names with spaces cannot be written as words.
        let mut made = run("+x");
        made.tests = Tests::Named(names.iter().map(|n| (TestName::from(*n), State::Passed)).collect());
        made
    }

    #[test]
    fn a_test_is_found_by_the_names_that_models_give_it() {
        let rust = named(&["demo::old one_is_one", "demo tests::adds", "demo::old two_is_two", "demo::it math::adds"]);
        let python = named(&["tests/test_a.py::test_x[1]", "tests/test_a.py::test_x[2]", "tests/test_b.py::test_y"]);
        let node = named(&["a.test.js > sum > adds"]);
        for (run, said, found) in [
            (&rust, "demo::old one_is_one", 1),
            (&rust, "one_is_one", 1),
            (&rust, "tests::adds", 1),
            (&rust, "adds", 2),
            (&rust, "tests/old.rs", 2),
            (&rust, "tests/old.rs::one_is_one", 1),
            (&rust, "tests/it/math.rs::adds", 1),
            (&rust, "is_one", 0),
            (&rust, "tests/none.rs", 0),
            (&python, "tests/test_a.py::test_x", 2),
            (&python, "test_y", 1),
            (&python, "./tests/test_b.py", 1),
            (&python, "tests/test_c.py::test_y", 0),
            (&node, "a.test.js > sum > adds", 1),
            (&node, "adds", 1),
        ] {
            assert_eq!(called(run, said).len(), found, "{said}: {:?}", called(run, said));
        }
    }

    #[test]
    fn a_command_is_read_as_the_test_that_it_names() {
        let argv = [String::from("cargo"), String::from("test")];
        for (said, test) in [
            ("adds", "adds"),
            ("demo::old one_is_one", "demo::old one_is_one"),
            ("ids are cargo test", "ids are cargo test"),
            ("cargo test adds", "adds"),
            ("cargo test adds -- --nocapture", "adds"),
            ("cargo", "cargo"),
        ] {
            assert_eq!(test_of(said, &argv, "cargo"), test, "{said}");
        }
        assert_eq!(test_of("go test -run TestPut ./cache", &[String::from("go")], "go"), "TestPut");
    }

    #[test]
    fn one_failure_among_them_is_a_failure_and_skipped_ones_show_nothing() {
        let all = |words: &str| {
            let run = run(words);
            let names: Vec<TestName> = run.named().map(|(name, _)| name.clone()).collect();
            judged(&run, &names).0
        };
        assert_eq!(all("+a +b"), Some(Outcome::Passes));
        assert_eq!(all("+a -b"), Some(Outcome::Fails));
        assert_eq!(all("+a ~b"), Some(Outcome::Passes));
        assert_eq!(all("~b"), None);
    }
}
