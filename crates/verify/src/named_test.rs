//! Runs one test of the project by the name that a model gives it. The project does not change during a call, so one
//! run of the whole suite serves every tier.

use parking_lot::Mutex;

use tokio_util::sync::CancellationToken;

use super::outcome::{TestName, TestRun, TestState, Tests};
use super::retry::{RetryOutcome, run_with_retry};
use super::session::RunEnvironment;
use super::suite::Suite;
use supervisor_text::words;

/// The tests of a project during one call.
#[derive(Debug)]
pub struct NamedTestRunner {
    /// The error says why there are no tests to run.
    suite: Result<Suite, String>,
    full_run: Mutex<Option<TestRun>>,
}

impl NamedTestRunner {
    pub fn new(suite: Result<Suite, String>) -> Self {
        Self {
            suite,
            full_run: Mutex::default(),
        }
    }

    pub fn suite(&self) -> Option<&Suite> {
        self.suite.as_ref().ok()
    }

    /// Whether the test passes, `None` if that is unknown, and a sentence that says why.
    pub async fn run_named(
        &self,
        name: &str,
        environment: &RunEnvironment,
        stop: &CancellationToken,
    ) -> (Option<bool>, String) {
        let suite = match &self.suite {
            Ok(suite) => suite,
            Err(why) => return (None, why.clone()),
        };
        let name = test_in_command(name, suite.argv(), suite.runner());
        let matching = self
            .full_run()
            .as_ref()
            .map(|run| find_tests(run, name))
            .filter(|names| !names.is_empty());
        // A test whose full name is known or given runs alone.
        let alone = match matching.as_deref() {
            Some([one]) => suite.only(one),
            Some(_) => None,
            None => suite.only(&TestName::from(name)),
        };
        if let Some(alone) = alone {
            match run_with_retry(&alone, environment, None, &|_| false, stop).await {
                RetryOutcome::Flaky { .. } => return (None, flaky_message(name)),
                RetryOutcome::Stable(run) => {
                    let names = find_tests(&run, name);
                    if !names.is_empty() && run.outcome().is_conclusive() {
                        return summarize_tests(&run, &names);
                    }
                }
            }
        }
        if self.full_run().is_none() {
            let full_run = suite.run(environment, stop).await;
            *self.full_run() = Some(full_run);
        }
        let Some(full_run) = self.full_run().clone() else {
            return (None, String::from("the tests were not run"));
        };
        let names = find_tests(&full_run, name);
        match full_run.tests() {
            _ if !full_run.outcome().is_conclusive() => (None, full_run.sentence()),
            Tests::Unknown => (
                None,
                format!(
                    "`{}` does not name its tests",
                    words::plain(full_run.command())
                ),
            ),
            Tests::Named(_) if names.is_empty() => (
                None,
                format!(
                    "no test is called `{}`",
                    words::cut_end(&words::plain(name), 200)
                ),
            ),
            Tests::Named(_) => summarize_tests(&full_run, &names),
        }
    }

    fn full_run(&self) -> parking_lot::MutexGuard<'_, Option<TestRun>> {
        self.full_run.lock()
    }
}

/// Whether these tests passed, and a sentence about it.
fn summarize_tests(run: &TestRun, names: &[TestName]) -> (Option<bool>, String) {
    let failed = names.iter().find_map(|name| match run.state(name) {
        Some(TestState::Failed(message)) => Some((name, message)),
        _ => None,
    });
    if let Some((name, message)) = failed {
        let first_line = message
            .lines()
            .map(str::trim)
            .find(|line| !line.is_empty())
            .unwrap_or_default();
        let first_line = words::short(first_line, 200);
        let colon = if first_line.is_empty() { "" } else { ": " };
        return (Some(false), format!("`{name}` fails{colon}{first_line}"));
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

/// Finds tests by full name, by the end of the name, by file, or by file and name.
fn find_tests(run: &TestRun, query: &str) -> Vec<TestName> {
    let query = query.trim().trim_start_matches("./");
    let all: Vec<&TestName> = run.named().map(|(name, _)| name).collect();
    let pick = |fits: &dyn Fn(&str) -> bool| -> Vec<TestName> {
        all.iter()
            .filter(|name| fits(&name.0))
            .map(|name| (*name).clone())
            .collect()
    };
    let exact = pick(&|name| name == query);
    if !exact.is_empty() {
        return exact;
    }
    let ending = pick(&|name| ends_with(name, query));
    if !ending.is_empty() {
        return ending;
    }
    let (file, test) = match query.split_once("::") {
        Some((file, test)) => (file, Some(test)),
        None => (query, None),
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

/// Extracts `adds` from `cargo test adds`: a query that starts with the runner is a command, and its last word that is
/// not an option is the test.
fn test_in_command<'a>(query: &'a str, argv: &[String], runner: &str) -> &'a str {
    let is_runner =
        |first: &str| first == runner || argv.first().is_some_and(|program| program == first);
    let mut words = query.split_whitespace();
    match words.next() {
        Some(first) if is_runner(first) => words
            .rfind(|word| !word.starts_with(['-', '.']))
            .unwrap_or(query),
        _ => query,
    }
}

fn ends_with(name: &str, suffix: &str) -> bool {
    let outer = name.split('[').next().unwrap_or(name);
    [name, outer].iter().any(|name| {
        name.strip_suffix(suffix)
            .is_some_and(|before| before.is_empty() || before.ends_with([':', ' ', '/', '.', '>']))
    })
}

fn flaky_message(name: &str) -> String {
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
        // `run` cannot build names with spaces.
        let mut test_run = run("+x");
        test_run.tests = Tests::Named(
            names
                .iter()
                .map(|n| (TestName::from(*n), TestState::Passed))
                .collect(),
        );
        test_run
    }

    #[test]
    fn test_is_found_by_partial_names() {
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
        for (run, query, found) in [
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
                find_tests(run, query).len(),
                found,
                "{query}: {:?}",
                find_tests(run, query)
            );
        }
    }

    #[test]
    fn test_name_is_extracted_from_command() {
        let argv = [String::from("cargo"), String::from("test")];
        for (query, test) in [
            ("adds", "adds"),
            ("demo::old one_is_one", "demo::old one_is_one"),
            ("ids are cargo test", "ids are cargo test"),
            ("cargo test adds", "adds"),
            ("cargo test adds -- --nocapture", "adds"),
            ("cargo", "cargo"),
        ] {
            assert_eq!(test_in_command(query, &argv, "cargo"), test, "{query}");
        }
        assert_eq!(
            test_in_command("go test -run TestPut ./cache", &[String::from("go")], "go"),
            "TestPut"
        );
    }

    #[test]
    fn any_failure_fails_and_skipped_is_unknown() {
        let all = |words: &str| {
            let run = run(words);
            let names: Vec<TestName> = run.named().map(|(name, _)| name.clone()).collect();
            summarize_tests(&run, &names).0
        };
        assert_eq!(all("+a +b"), Some(true));
        assert_eq!(all("+a -b"), Some(false));
        assert_eq!(all("+a ~b"), Some(true));
        assert_eq!(all("~b"), None);
    }
}
