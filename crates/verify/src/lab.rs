//! One test of the project, run by the name that a model gives it. The project does not change meanwhile, so that a run of
//! the whole suite is good for every tier of a call. Knows names and runs. Does not know what anybody predicts of them.

use std::sync::{Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use super::outcome::{TestName, TestRun, TestState, Tests};
use super::session::Bench;
use super::settle::{SettledRun, run_settled};
use super::suite::Suite;
use supervisor_text::words;

/// The tests of a project as they are known during one call.
#[derive(Debug)]
pub struct TestLab {
    /// Or why there are no tests to run.
    suite: Result<Suite, String>,
    whole: Mutex<Option<TestRun>>,
}

impl TestLab {
    pub fn new(suite: Result<Suite, String>) -> Self {
        Self {
            suite,
            whole: Mutex::default(),
        }
    }

    pub fn suite(&self) -> Option<&Suite> {
        self.suite.as_ref().ok()
    }

    /// Does the test pass? `None` where that was not shown; the sentence says what was seen.
    pub async fn run_named(
        &self,
        name: &str,
        bench: &Bench,
        stop: &CancellationToken,
    ) -> (Option<bool>, String) {
        let suite = match &self.suite {
            Ok(suite) => suite,
            Err(why) => return (None, why.clone()),
        };
        let name = test_in_command(name, suite.argv(), suite.runner());
        let known = self
            .known()
            .as_ref()
            .map(|run| find_called(run, name))
            .filter(|names| !names.is_empty());
        // Where its full name is known or given, it runs alone.
        let alone = match known.as_deref() {
            Some([one]) => suite.only(one),
            Some(_) => None,
            None => suite.only(&TestName::from(name)),
        };
        if let Some(alone) = alone {
            match run_settled(&alone, bench, None, &|_| false, stop).await {
                SettledRun::Flaky { .. } => return (None, flaky(name)),
                SettledRun::Sure(run) => {
                    let names = find_called(&run, name);
                    if !names.is_empty() && run.outcome().speaks_about_the_code() {
                        return read_tests(&run, &names);
                    }
                }
            }
        }
        if self.known().is_none() {
            let whole = suite.run(bench, stop).await;
            *self.known() = Some(whole);
        }
        let Some(whole) = self.known().clone() else {
            return (None, String::from("the tests were not run"));
        };
        let names = find_called(&whole, name);
        match whole.tests() {
            _ if !whole.outcome().speaks_about_the_code() => (None, whole.sentence()),
            Tests::Unknown => (
                None,
                format!(
                    "`{}` does not name its tests",
                    words::plain(whole.command())
                ),
            ),
            Tests::Named(_) if names.is_empty() => (
                None,
                format!(
                    "no test is called `{}`",
                    words::cut_end(&words::plain(name), 200)
                ),
            ),
            Tests::Named(_) => read_tests(&whole, &names),
        }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Option<TestRun>> {
        self.whole.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What these tests did.
fn read_tests(run: &TestRun, names: &[TestName]) -> (Option<bool>, String) {
    let failed = names.iter().find_map(|name| match run.state(name) {
        Some(TestState::Failed(message)) => Some((name, message)),
        _ => None,
    });
    if let Some((name, message)) = failed {
        let said = message
            .lines()
            .map(str::trim)
            .find(|line| !line.is_empty())
            .unwrap_or_default();
        let said = words::cut_end(&words::plain(said), 200).into_owned();
        let colon = if said.is_empty() { "" } else { ": " };
        return (Some(false), format!("`{name}` fails{colon}{said}"));
    }
    let passed: Vec<String> = names
        .iter()
        .filter(|name| run.state(name) == Some(&TestState::Passed))
        .map(|name| format!("`{name}`"))
        .collect();
    match passed.len() {
        0 => (
            None,
            names
                .first()
                .map_or_else(String::new, |name| format!("`{name}` is skipped")),
        ),
        n => {
            let more = if n > 3 {
                format!(" and {}", words::count(n - 3, "other"))
            } else {
                String::new()
            };
            let verb = if n == 1 { "passes" } else { "pass" };
            (
                Some(true),
                format!("{}{more} {verb}", passed[..n.min(3)].join(", ")),
            )
        }
    }
}

/// The tests that a model means: by the whole name, by its end, by a file, or by a file and a name in it.
fn find_called(run: &TestRun, said: &str) -> Vec<TestName> {
    let said = said.trim().trim_start_matches("./");
    let all: Vec<&TestName> = run.named().map(|(name, _)| name).collect();
    let pick = |fits: &dyn Fn(&str) -> bool| -> Vec<TestName> {
        all.iter()
            .filter(|name| fits(&name.0))
            .map(|name| (*name).clone())
            .collect()
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
    let Some((stem, _)) = file
        .rsplit('/')
        .next()
        .and_then(|name| name.rsplit_once('.'))
    else {
        return Vec::new();
    };
    let in_file = |name: &str| {
        let by_path = name
            .strip_prefix(file)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()));
        by_path || name.split([' ', ':', '/', '.']).any(|part| part == stem)
    };
    pick(&|name| in_file(name) && test.is_none_or(|test| ends_with(name, test)))
}

/// `adds` of `cargo test adds`: what begins with the runner is a command, and its last plain word is the test.
fn test_in_command<'a>(said: &'a str, argv: &[String], runner: &str) -> &'a str {
    let is_runner =
        |first: &str| first == runner || argv.first().is_some_and(|program| program == first);
    let mut words = said.split_whitespace();
    match words.next() {
        Some(first) if is_runner(first) => words
            .rfind(|word| !word.starts_with(['-', '.']))
            .unwrap_or(said),
        _ => said,
    }
}

fn ends_with(name: &str, said: &str) -> bool {
    let outer = name.split('[').next().unwrap_or(name);
    [name, outer].iter().any(|name| {
        name.strip_suffix(said)
            .is_some_and(|before| before.is_empty() || before.ends_with([':', ' ', '/', '.', '>']))
    })
}

fn flaky(name: &str) -> String {
    format!(
        "two runs of `{}` differ: it is flaky",
        words::cut_end(&words::plain(name), 200)
    )
}

#[cfg(test)]
mod tests {
    use super::super::baseline::tests::run;
    use super::*;

    fn named(names: &[&str]) -> TestRun {
        // Names with spaces cannot be written as words.
        let mut made = run("+x");
        made.tests = Tests::Named(
            names
                .iter()
                .map(|n| (TestName::from(*n), TestState::Passed))
                .collect(),
        );
        made
    }

    #[test]
    fn a_test_is_found_by_the_names_that_models_give_it() {
        let rust = named(&[
            "demo::old one_is_one",
            "demo tests::adds",
            "demo::old two_is_two",
            "demo::it math::adds",
        ]);
        let python = named(&[
            "tests/test_a.py::test_x[1]",
            "tests/test_a.py::test_x[2]",
            "tests/test_b.py::test_y",
        ]);
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
            assert_eq!(
                find_called(run, said).len(),
                found,
                "{said}: {:?}",
                find_called(run, said)
            );
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
            assert_eq!(test_in_command(said, &argv, "cargo"), test, "{said}");
        }
        assert_eq!(
            test_in_command("go test -run TestPut ./cache", &[String::from("go")], "go"),
            "TestPut"
        );
    }

    #[test]
    fn one_failure_among_them_is_a_failure_and_skipped_ones_show_nothing() {
        let all = |words: &str| {
            let run = run(words);
            let names: Vec<TestName> = run.named().map(|(name, _)| name.clone()).collect();
            read_tests(&run, &names).0
        };
        assert_eq!(all("+a +b"), Some(true));
        assert_eq!(all("+a -b"), Some(false));
        assert_eq!(all("+a ~b"), Some(true));
        assert_eq!(all("~b"), None);
    }
}
