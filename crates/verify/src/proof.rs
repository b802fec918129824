//! [`Proof`]: the value that says a change works. Only [`crate`] creates one, from a test run or from checks that
//! all passed.

use std::path::Path;

use serde::Serialize;

use super::baseline::{Baseline, compare};
use super::build::{BuildBlame, blame};
use super::outcome::{Outcome, TestName, TestRun, TestState, Tests, distinct_written_tests};
use supervisor_text::words;

/// Evidence that the tests or checks passed. Only the constructors below create one:
///
/// ```compile_fail,E0451
/// use supervisor_verify::Proof;
///
/// fn forge(proof: Proof) -> Proof {
///     let Proof { kind } = proof;
///     Proof { kind }
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Proof {
    // Private, so that nothing outside this module can claim a pass.
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Tests { sentence: String },
    Checks(Vec<Check>),
}

/// One deterministic check of an answer. This module and `supervisor_skills::answers` create them by comparing the model's answer
/// with data that the server read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    id: &'static str,
    pass: bool,
    detail: String,
}

/// Why there is no proof. The message is feedback for the next attempt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    #[error("{0}")]
    NotPassed(String),
    #[error("{} that passed before: {}", words::count(.0.len(), "test"), list(.0, "now fails"))]
    TestsBroken(Vec<TestName>),
    #[error("tests are gone: {}{}", list(.gone, "vanished"), in_their_place(.came))]
    TestsMissing {
        gone: Vec<TestName>,
        /// Tests that were not there before.
        came: Vec<TestName>,
    },
    #[error("tests are newly skipped: {}", list(.0, "skipped"))]
    TestsSkipped(Vec<TestName>),
    #[error("{} beside the tests that passed before: {}", words::count(.0.len(), "command"), .0.iter().map(|c| format!("`{}` now fails", words::plain(c))).collect::<Vec<_>>().join(", "))]
    ChecksBroken(Vec<String>),
    #[error("the test `{0}` is not among those that ran")]
    TargetMissing(TestName),
    #[error("the test `{0}` does not pass")]
    TargetFails(TestName),
    #[error("no new test fails: the behaviour is there already, or the new test does not test it")]
    NoNewFailure,
    #[error("{} new tests fail where one should: {}", .0.len(), list(.0, "fails"))]
    SeveralNewFailures(Vec<TestName>),
    #[error("the names of the tests are unknown, so a new failure cannot be told from an old one")]
    NamesUnknown,
    #[error("there was nothing to check")]
    NoChecks,
    #[error("the check `{id}` failed: {detail}")]
    CheckFailed { id: &'static str, detail: String },
}

impl Proof {
    /// All tests pass.
    pub fn of_tests(run: &TestRun) -> Result<Self, ProofError> {
        match run.outcome {
            Outcome::Passed => Ok(Self {
                kind: Kind::Tests {
                    sentence: run.sentence(),
                },
            }),
            _ => Err(ProofError::NotPassed(run.sentence())),
        }
    }

    /// The targets pass and nothing regressed: no new failure, no test missing or newly skipped. Tests that failed before
    /// may still fail.
    pub fn of_green(
        before: &Baseline,
        after: &TestRun,
        targets: &[TestName],
    ) -> Result<Self, ProofError> {
        // A project that did not fully build before may still not; the tests that ran are compared by name.
        if !after.outcome.is_conclusive() && !before.fails_to_build_as_before(after) {
            return Err(ProofError::NotPassed(after.sentence()));
        }
        let comparison = compare(before.run(), after);
        if !comparison.newly_failing.is_empty() {
            return Err(ProofError::TestsBroken(comparison.newly_failing));
        }
        if !comparison.vanished.is_empty() {
            return Err(ProofError::TestsMissing {
                gone: comparison.vanished,
                came: comparison.added,
            });
        }
        if !comparison.newly_skipped.is_empty() {
            return Err(ProofError::TestsSkipped(comparison.newly_skipped));
        }
        let passed: Vec<&TestName> = after.passed().collect();
        for target in targets {
            match after.state(target) {
                None => return Err(ProofError::TargetMissing(target.clone())),
                Some(_) if !passed.contains(&target) => {
                    return Err(ProofError::TargetFails(target.clone()));
                }
                Some(_) => {}
            }
        }
        if !comparison.checks_failing.is_empty() {
            return Err(ProofError::ChecksBroken(comparison.checks_failing));
        }
        let failures = after.failed().count();
        if after.outcome == Outcome::Passed
            || after.tests == Tests::Unknown
            || (before.is_complete() && failures == 0 && after.failed_checks().next().is_none())
        {
            return Self::of_tests(after);
        }
        let sentence = format!("{}; what fails did so before", after.sentence());
        Ok(Self {
            kind: Kind::Tests { sentence },
        })
    }

    /// The targets pass, and there is no baseline because nothing could be built before. Other failures are allowed: those
    /// tests did not pass before either.
    pub fn of_first_green(after: &TestRun, targets: &[TestName]) -> Result<Self, ProofError> {
        if !after.outcome.is_conclusive() || targets.is_empty() {
            return Err(ProofError::NotPassed(after.sentence()));
        }
        for target in targets {
            match after.state(target) {
                None => return Err(ProofError::TargetMissing(target.clone())),
                Some(TestState::Passed) => {}
                Some(_) => return Err(ProofError::TargetFails(target.clone())),
            }
        }
        Ok(Self {
            kind: Kind::Tests {
                sentence: after.sentence(),
            },
        })
    }

    /// Exactly one new test fails and everything else is unchanged. `written` is the only new test in the source, if that
    /// is known.
    pub fn of_red(
        before: &Baseline,
        after: &TestRun,
        written: Option<&str>,
    ) -> Result<(Self, TestName), ProofError> {
        match after.outcome {
            Outcome::Failed if after.tests == Tests::Unknown => {
                return Err(ProofError::NamesUnknown);
            }
            Outcome::Failed => {}
            Outcome::DidNotBuild { .. } if before.fails_to_build_as_before(after) => {}
            Outcome::Passed => return Err(ProofError::NoNewFailure),
            _ => return Err(ProofError::NotPassed(after.sentence())),
        }
        let comparison = compare(before.run(), after);
        let (new, broken): (Vec<_>, Vec<_>) = comparison
            .newly_failing
            .into_iter()
            .partition(|name| comparison.added.contains(name));
        if !broken.is_empty() {
            return Err(ProofError::TestsBroken(broken));
        }
        if !comparison.vanished.is_empty() {
            return Err(ProofError::TestsMissing {
                gone: comparison.vanished,
                came: comparison.added,
            });
        }
        if !comparison.newly_skipped.is_empty() {
            return Err(ProofError::TestsSkipped(comparison.newly_skipped));
        }
        match distinct_written_tests(&new, written).as_slice() {
            [] => Err(ProofError::NoNewFailure),
            [one] => {
                let sentence = format!("{}; `{one}` is new and fails", after.sentence());
                Ok((
                    Self {
                        kind: Kind::Tests { sentence },
                    },
                    one.clone(),
                ))
            }
            many => Err(ProofError::SeveralNewFailures(many.to_vec())),
        }
    }

    /// The command passed before and fails now, and does not name its tests. The exit code is the only evidence.
    pub fn of_unnamed_red(before: &Baseline, after: &TestRun) -> Result<Self, ProofError> {
        match (&before.run().outcome, &after.outcome) {
            (Outcome::Passed | Outcome::NoTests, Outcome::Failed) => {
                let sentence = format!("{}; it passed before", after.sentence());
                Ok(Self {
                    kind: Kind::Tests { sentence },
                })
            }
            (_, Outcome::Passed) => Err(ProofError::NoNewFailure),
            (Outcome::Failed, _) => Err(ProofError::NamesUnknown),
            _ => Err(ProofError::NotPassed(after.sentence())),
        }
    }

    /// The tests do not build because `test_file` uses names that are not written yet, which is the only accepted build
    /// failure. Errors that were there before are ignored.
    pub fn of_missing_names(
        before: &Baseline,
        after: &TestRun,
        test_file: &Path,
        source: &str,
    ) -> Result<Self, ProofError> {
        if blame(&before.new_errors(after), test_file, source) != BuildBlame::MissingNames {
            return Err(ProofError::NotPassed(after.sentence()));
        }
        let sentence = format!("{}; what it names is not written yet", after.sentence());
        Ok(Self {
            kind: Kind::Tests { sentence },
        })
    }

    /// All checks pass, and there is at least one.
    pub fn of_checks(checks: Vec<Check>) -> Result<Self, ProofError> {
        if checks.is_empty() {
            return Err(ProofError::NoChecks);
        }
        match checks.iter().find(|c| !c.pass) {
            Some(check) => Err(ProofError::CheckFailed {
                id: check.id,
                detail: check.detail.clone(),
            }),
            None => Ok(Self {
                kind: Kind::Checks(checks),
            }),
        }
    }

    /// The evidence in one sentence.
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

fn in_their_place(names: &[TestName]) -> String {
    if names.is_empty() {
        return String::new();
    }
    format!("; new in their place: {}", list(names, "added"))
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

    fn green(was: &str, is: &str, target: &str) -> Result<Proof, ProofError> {
        Proof::of_green(&before(was), &run(is), &[TestName::from(target)])
    }

    #[test]
    fn green_needs_target_and_no_regression() {
        assert!(green("+a -t", "+a +t", "t").is_ok());
        assert!(
            green("+a -old -t", "+a -old +t", "t").is_ok(),
            "failures from before are allowed"
        );
        assert!(matches!(
            green("+a -t", "-a +t", "t"),
            Err(ProofError::TestsBroken(_))
        ));
        assert!(matches!(
            green("+a -t", "+t", "t"),
            Err(ProofError::TestsMissing { .. })
        ));
        assert!(matches!(
            green("+a -t", "~a +t", "t"),
            Err(ProofError::TestsSkipped(_))
        ));
        assert!(matches!(
            green("+a -t", "+a -t", "t"),
            Err(ProofError::TargetFails(_))
        ));
        assert!(matches!(
            green("+a", "+a", "t"),
            Err(ProofError::TargetMissing(_))
        ));
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
            "the linter failed before"
        );
    }

    #[test]
    fn without_baseline_only_targets_count() {
        let first = |is: &str| Proof::of_first_green(&run(is), &[TestName::from("t")]).map(|_| ());
        assert_eq!(first("+a +t"), Ok(()));
        assert_eq!(first("-other +t"), Ok(()), "it did not pass before either");
        assert_eq!(first("+a -t"), Err(ProofError::TargetFails("t".into())));
        assert_eq!(first("+a ~t"), Err(ProofError::TargetFails("t".into())));
        assert_eq!(first("+a"), Err(ProofError::TargetMissing("t".into())));
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
        assert_eq!(red("+a", "+a +t"), Err(ProofError::NoNewFailure));
        assert_eq!(red("+a -old", "+a -old +t"), Err(ProofError::NoNewFailure));
        assert_eq!(
            red("+a", "+a -t[1] +t[2] -t[3]"),
            Ok("t[1]".into()),
            "cases of one test"
        );
        assert!(matches!(
            red("+a", "+a -t -u"),
            Err(ProofError::SeveralNewFailures(_))
        ));
        assert!(matches!(
            red("+a", "-a -t"),
            Err(ProofError::TestsBroken(_))
        ));
        assert!(matches!(
            red("+a +b", "+a -t"),
            Err(ProofError::TestsMissing { .. })
        ));
    }

    #[test]
    fn unnamed_red_requires_earlier_pass() {
        let unnamed = |outcome: Outcome| {
            let mut test_run = run("+a");
            (test_run.outcome, test_run.tests) = (outcome, Tests::Unknown);
            test_run
        };
        let red = |was: Outcome, is: Outcome| {
            let before = Baseline::of(unnamed(was), BaselineOrigin::Ran).expect("a baseline");
            Proof::of_unnamed_red(&before, &unnamed(is)).map(|_| ())
        };
        assert_eq!(red(Outcome::Passed, Outcome::Failed), Ok(()));
        assert_eq!(
            red(Outcome::Passed, Outcome::Passed),
            Err(ProofError::NoNewFailure)
        );
        assert_eq!(
            red(Outcome::Failed, Outcome::Failed),
            Err(ProofError::NamesUnknown)
        );
        assert!(matches!(
            red(Outcome::Passed, Outcome::TimedOut { limit_s: 1 }),
            Err(ProofError::NotPassed(_))
        ));
    }

    #[test]
    fn proof_requires_pass_or_passing_checks() {
        assert!(Proof::of_tests(&run("+a")).is_ok());
        assert!(Proof::of_tests(&run("+a -b")).is_err());
        assert!(Proof::of_tests(&run("")).is_err());
        assert!(matches!(
            Proof::of_checks(vec![]),
            Err(ProofError::NoChecks)
        ));
        assert!(Proof::of_checks(vec![Check::new("a", true, "")]).is_ok());
        let mixed = vec![Check::new("a", true, ""), Check::new("b", false, "no")];
        assert!(matches!(
            Proof::of_checks(mixed),
            Err(ProofError::CheckFailed { id: "b", .. })
        ));
    }
}
