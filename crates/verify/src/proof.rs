//! The value that says "it works". It is made in [`crate`] alone: from a test run, or from checks that all held.

use std::path::Path;

use serde::Serialize;

use super::baseline::{Baseline, compare};
use super::build::{BuildBlame, blame};
use super::outcome::{Outcome, TestName, TestRun, TestState, Tests, counted_as_written};
use supervisor_text::words;

/// What was run or checked here, and held.
#[derive(Debug, Clone)]
pub struct Proof {
    // Private on purpose: nothing outside this module can claim a pass.
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Tests { sentence: String },
    Checks(Vec<Check>),
}

/// One deterministic check of an answer: made here and in [`supervisor_skills::answers`], which compare what a model said with what
/// the server read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    id: &'static str,
    pass: bool,
    detail: String,
}

/// Why there is no proof; each is feedback for the next attempt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("{0}")]
    NotPassed(String),
    #[error("{} that passed before: {}", words::count(.0.len(), "test"), list(.0, "now fails"))]
    Broke(Vec<TestName>),
    #[error("tests are gone: {}", list(.0, "vanished"))]
    Vanished(Vec<TestName>),
    #[error("tests are newly skipped: {}", list(.0, "skipped"))]
    Skipped(Vec<TestName>),
    #[error("{} beside the tests that passed before: {}", words::count(.0.len(), "command"), .0.iter().map(|c| format!("`{}` now fails", words::plain(c))).collect::<Vec<_>>().join(", "))]
    CheckFails(Vec<String>),
    #[error("the test `{0}` is not among those that ran")]
    NotThere(TestName),
    #[error("the test `{0}` does not pass")]
    StillFails(TestName),
    #[error("no new test fails: the behaviour is there already, or the new test does not test it")]
    PassesAtOnce,
    #[error("{} new tests fail where one should: {}", .0.len(), list(.0, "fails"))]
    TooMany(Vec<TestName>),
    #[error("the names of the tests are unknown, so a new failure cannot be told from an old one")]
    NamesUnknown,
    #[error("there was nothing to check")]
    Nothing,
    #[error("the check `{id}` failed: {detail}")]
    Check { id: &'static str, detail: String },
}

impl Proof {
    /// The tests pass.
    pub fn of_tests(run: &TestRun) -> Result<Self, Refusal> {
        match run.outcome {
            Outcome::Passed => Ok(Self {
                kind: Kind::Tests {
                    sentence: run.sentence(),
                },
            }),
            _ => Err(Refusal::NotPassed(run.sentence())),
        }
    }

    /// The targets pass and nothing that was true before is lost: no new failure, no test gone or skipped.
    /// Tests that failed before may still fail.
    pub fn of_green(
        before: &Baseline,
        after: &TestRun,
        targets: &[TestName],
    ) -> Result<Self, Refusal> {
        // What did not build before may still not, elsewhere; what was run is compared by name.
        if !after.outcome.speaks_about_the_code() && !before.is_as_unbuilt_as(after) {
            return Err(Refusal::NotPassed(after.sentence()));
        }
        let comparison = compare(before.run(), after);
        if !comparison.newly_failing.is_empty() {
            return Err(Refusal::Broke(comparison.newly_failing));
        }
        if !comparison.vanished.is_empty() {
            return Err(Refusal::Vanished(comparison.vanished));
        }
        if !comparison.newly_skipped.is_empty() {
            return Err(Refusal::Skipped(comparison.newly_skipped));
        }
        let passed: Vec<&TestName> = after.passed().collect();
        for target in targets {
            match after.state(target) {
                None => return Err(Refusal::NotThere(target.clone())),
                Some(_) if !passed.contains(&target) => {
                    return Err(Refusal::StillFails(target.clone()));
                }
                Some(_) => {}
            }
        }
        if !comparison.checks_failing.is_empty() {
            return Err(Refusal::CheckFails(comparison.checks_failing));
        }
        let old = after.failed().count();
        if after.outcome == Outcome::Passed
            || after.tests == Tests::Unknown
            || (before.is_whole() && old == 0 && after.failed_checks().next().is_none())
        {
            return Self::of_tests(after);
        }
        let sentence = format!("{}; what fails did so before", after.sentence());
        Ok(Self {
            kind: Kind::Tests { sentence },
        })
    }

    /// The targets pass in a project of which nothing was known before, because nothing of it could be built: what else
    /// fails now did not pass then either.
    pub fn of_first_green(after: &TestRun, targets: &[TestName]) -> Result<Self, Refusal> {
        if !after.outcome.speaks_about_the_code() || targets.is_empty() {
            return Err(Refusal::NotPassed(after.sentence()));
        }
        for target in targets {
            match after.state(target) {
                None => return Err(Refusal::NotThere(target.clone())),
                Some(TestState::Passed) => {}
                Some(_) => return Err(Refusal::StillFails(target.clone())),
            }
        }
        Ok(Self {
            kind: Kind::Tests {
                sentence: after.sentence(),
            },
        })
    }

    /// Exactly one new test fails, and everything else is as it was. `written` is the one test that is new in the source,
    /// if that can be told.
    pub fn of_red(
        before: &Baseline,
        after: &TestRun,
        written: Option<&str>,
    ) -> Result<(Self, TestName), Refusal> {
        match after.outcome {
            Outcome::Failed if after.tests == Tests::Unknown => return Err(Refusal::NamesUnknown),
            Outcome::Failed => {}
            Outcome::DidNotBuild { .. } if before.is_as_unbuilt_as(after) => {}
            Outcome::Passed => return Err(Refusal::PassesAtOnce),
            _ => return Err(Refusal::NotPassed(after.sentence())),
        }
        let comparison = compare(before.run(), after);
        let (new, broken): (Vec<_>, Vec<_>) = comparison
            .newly_failing
            .into_iter()
            .partition(|name| comparison.added.contains(name));
        if !broken.is_empty() {
            return Err(Refusal::Broke(broken));
        }
        if !comparison.vanished.is_empty() {
            return Err(Refusal::Vanished(comparison.vanished));
        }
        if !comparison.newly_skipped.is_empty() {
            return Err(Refusal::Skipped(comparison.newly_skipped));
        }
        match counted_as_written(&new, written).as_slice() {
            [] => Err(Refusal::PassesAtOnce),
            [one] => {
                let sentence = format!("{}; `{one}` is new and fails", after.sentence());
                Ok((
                    Self {
                        kind: Kind::Tests { sentence },
                    },
                    one.clone(),
                ))
            }
            many => Err(Refusal::TooMany(many.to_vec())),
        }
    }

    /// The command passed before and fails now, and names no tests: all that can be shown by an exit code.
    pub fn of_unnamed_red(before: &Baseline, after: &TestRun) -> Result<Self, Refusal> {
        match (&before.run().outcome, &after.outcome) {
            (Outcome::Passed | Outcome::NoTests, Outcome::Failed) => {
                let sentence = format!("{}; it passed before", after.sentence());
                Ok(Self {
                    kind: Kind::Tests { sentence },
                })
            }
            (_, Outcome::Passed) => Err(Refusal::PassesAtOnce),
            (Outcome::Failed, _) => Err(Refusal::NamesUnknown),
            _ => Err(Refusal::NotPassed(after.sentence())),
        }
    }

    /// The tests do not build, for the one reason that makes a fair red: `test_file` names what is not written yet.
    /// What did not build before either is no part of it.
    pub fn of_unwritten(
        before: &Baseline,
        after: &TestRun,
        test_file: &Path,
        source: &str,
    ) -> Result<Self, Refusal> {
        if blame(&before.new_errors(after), test_file, source) != BuildBlame::MissingNames {
            return Err(Refusal::NotPassed(after.sentence()));
        }
        let sentence = format!("{}; what it names is not written yet", after.sentence());
        Ok(Self {
            kind: Kind::Tests { sentence },
        })
    }

    /// Every check holds, and there is at least one.
    pub fn of_checks(checks: Vec<Check>) -> Result<Self, Refusal> {
        if checks.is_empty() {
            return Err(Refusal::Nothing);
        }
        match checks.iter().find(|c| !c.pass) {
            Some(check) => Err(Refusal::Check {
                id: check.id,
                detail: check.detail.clone(),
            }),
            None => Ok(Self {
                kind: Kind::Checks(checks),
            }),
        }
    }

    /// What was shown, in a sentence.
    pub fn sentence(&self) -> String {
        match &self.kind {
            Kind::Tests { sentence } => sentence.clone(),
            Kind::Checks(checks) => {
                let ids: Vec<&str> = checks.iter().map(|c| c.id).collect();
                format!(
                    "{} held: {}",
                    words::count(checks.len(), "check"),
                    ids.join(", ")
                )
            }
        }
    }
}

impl Check {
    pub fn new(id: &'static str, pass: bool, detail: impl Into<String>) -> Self {
        Self {
            id,
            pass,
            detail: detail.into(),
        }
    }

    pub fn id(&self) -> &'static str {
        self.id
    }

    pub fn passed(&self) -> bool {
        self.pass
    }

    pub fn detail(&self) -> &str {
        &self.detail
    }
}

fn list(names: &[TestName], what: &str) -> String {
    let shown: Vec<String> = names.iter().take(5).map(|n| format!("`{n}`")).collect();
    let more = names.len().saturating_sub(5);
    let more = if more > 0 {
        format!(" and {}", words::count(more, "other"))
    } else {
        String::new()
    };
    format!("{}{more} ({what})", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::baseline::BaselineOrigin;
    use super::super::baseline::tests::run;
    use super::*;

    fn before(words: &str) -> Baseline {
        Baseline::of(run(words), BaselineOrigin::Ran).expect("a baseline")
    }

    fn green(was: &str, is: &str, target: &str) -> Result<Proof, Refusal> {
        Proof::of_green(&before(was), &run(is), &[TestName::from(target)])
    }

    #[test]
    fn green_needs_its_target_and_loses_nothing() {
        assert!(green("+a -t", "+a +t", "t").is_ok());
        assert!(
            green("+a -old -t", "+a -old +t", "t").is_ok(),
            "old failures are not held against anybody"
        );
        assert!(matches!(
            green("+a -t", "-a +t", "t"),
            Err(Refusal::Broke(_))
        ));
        assert!(matches!(
            green("+a -t", "+t", "t"),
            Err(Refusal::Vanished(_))
        ));
        assert!(matches!(
            green("+a -t", "~a +t", "t"),
            Err(Refusal::Skipped(_))
        ));
        assert!(matches!(
            green("+a -t", "+a -t", "t"),
            Err(Refusal::StillFails(_))
        ));
        assert!(matches!(green("+a", "+a", "t"), Err(Refusal::NotThere(_))));
        let with_lint = |passed: bool| {
            let mut after = run("+a +t");
            let output = String::new();
            after.checks.push(super::super::step::CheckResult {
                command: String::from("eslint ."),
                passed,
                output,
            });
            after.outcome = if passed {
                Outcome::Passed
            } else {
                Outcome::Failed
            };
            after
        };
        let target = [TestName::from("t")];
        assert!(Proof::of_green(&before("+a -t"), &with_lint(true), &target).is_ok());
        let refused = Proof::of_green(&before("+a -t"), &with_lint(false), &target)
            .expect_err("a linter that passed before");
        assert_eq!(
            refused.to_string(),
            "1 command beside the tests that passed before: `eslint .` now fails"
        );
        let failed_before =
            Baseline::of(with_lint(false), BaselineOrigin::Ran).expect("a baseline");
        assert!(
            Proof::of_green(&failed_before, &with_lint(false), &target).is_ok(),
            "no news"
        );
    }

    #[test]
    fn where_nothing_was_known_before_the_targets_decide() {
        let first = |is: &str| Proof::of_first_green(&run(is), &[TestName::from("t")]).map(|_| ());
        assert_eq!(first("+a +t"), Ok(()));
        assert_eq!(first("-other +t"), Ok(()), "it did not pass before either");
        assert_eq!(first("+a -t"), Err(Refusal::StillFails("t".into())));
        assert_eq!(first("+a ~t"), Err(Refusal::StillFails("t".into())));
        assert_eq!(first("+a"), Err(Refusal::NotThere("t".into())));
        assert!(Proof::of_first_green(&run("+a"), &[]).is_err());
    }

    #[test]
    fn red_is_exactly_one_new_failure() {
        let red = |was: &str, is: &str| {
            Proof::of_red(&before(was), &run(is), None).map(|(_, name)| name.0)
        };
        assert_eq!(red("+a", "+a -t"), Ok("t".into()));
        assert_eq!(red("", "-t"), Ok("t".into()));
        assert_eq!(red("+a", "+a -t -t/sub"), Ok("t".into()));
        assert_eq!(red("+a", "+a +t"), Err(Refusal::PassesAtOnce));
        assert_eq!(red("+a -old", "+a -old +t"), Err(Refusal::PassesAtOnce));
        assert_eq!(
            red("+a", "+a -t[1] +t[2] -t[3]"),
            Ok("t[1]".into()),
            "cases of one test"
        );
        assert!(matches!(red("+a", "+a -t -u"), Err(Refusal::TooMany(_))));
        assert!(matches!(red("+a", "-a -t"), Err(Refusal::Broke(_))));
        assert!(matches!(red("+a +b", "+a -t"), Err(Refusal::Vanished(_))));
    }

    #[test]
    fn a_command_that_names_no_tests_is_red_only_if_it_passed_before() {
        let unnamed = |outcome: Outcome| {
            let mut made = run("+a");
            (made.outcome, made.tests) = (outcome, Tests::Unknown);
            made
        };
        let red = |was: Outcome, is: Outcome| {
            let before = Baseline::of(unnamed(was), BaselineOrigin::Ran).expect("a baseline");
            Proof::of_unnamed_red(&before, &unnamed(is)).map(|_| ())
        };
        assert_eq!(red(Outcome::Passed, Outcome::Failed), Ok(()));
        assert_eq!(
            red(Outcome::Passed, Outcome::Passed),
            Err(Refusal::PassesAtOnce)
        );
        assert_eq!(
            red(Outcome::Failed, Outcome::Failed),
            Err(Refusal::NamesUnknown)
        );
        assert!(matches!(
            red(Outcome::Passed, Outcome::TimedOut { limit_s: 1 }),
            Err(Refusal::NotPassed(_))
        ));
    }

    #[test]
    fn only_a_pass_and_only_checks_that_hold_are_proof() {
        assert!(Proof::of_tests(&run("+a")).is_ok());
        assert!(Proof::of_tests(&run("+a -b")).is_err());
        assert!(Proof::of_tests(&run("")).is_err());
        assert!(matches!(Proof::of_checks(vec![]), Err(Refusal::Nothing)));
        assert!(Proof::of_checks(vec![Check::new("a", true, "")]).is_ok());
        let mixed = vec![Check::new("a", true, ""), Check::new("b", false, "no")];
        assert!(matches!(
            Proof::of_checks(mixed),
            Err(Refusal::Check { id: "b", .. })
        ));
    }
}
