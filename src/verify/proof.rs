//! The value that says "it works". Nothing outside [`crate::verify`] can make one, or the evidence it is made from.

use std::path::Path;

use serde::Serialize;

use super::baseline::{Baseline, compare};
use super::build::{Blame, blame};
use super::outcome::{Outcome, TestName, TestRun, Tests};
use crate::words;

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

/// One deterministic check of an answer, made in this module's siblings alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    id: &'static str,
    pass: bool,
    detail: String,
}

/// Why there is no proof; each is feedback for whoever tries next.
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
            Outcome::Passed => Ok(Self { kind: Kind::Tests { sentence: run.sentence() } }),
            _ => Err(Refusal::NotPassed(run.sentence())),
        }
    }

    /// The targets pass and nothing that was true before is lost: no new failure, no test gone or skipped.
    /// Tests that failed before may still fail.
    pub fn of_green(before: &Baseline, after: &TestRun, targets: &[TestName]) -> Result<Self, Refusal> {
        if !after.outcome.speaks_about_the_code() {
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
                Some(_) if !passed.contains(&target) => return Err(Refusal::StillFails(target.clone())),
                Some(_) => {}
            }
        }
        let old = after.failed().count();
        if old == 0 || after.tests == Tests::Unknown {
            return Self::of_tests(after);
        }
        let sentence = format!("{}; {} before and still do", after.sentence(), words::count(old, "test") + " failed");
        Ok(Self { kind: Kind::Tests { sentence } })
    }

    /// Exactly one new test fails, and everything else is as it was.
    pub fn of_red(before: &Baseline, after: &TestRun) -> Result<(Self, TestName), Refusal> {
        match after.outcome {
            Outcome::Failed if after.tests == Tests::Unknown => return Err(Refusal::NamesUnknown),
            Outcome::Failed => {}
            Outcome::Passed => return Err(Refusal::PassesAtOnce),
            _ => return Err(Refusal::NotPassed(after.sentence())),
        }
        let comparison = compare(before.run(), after);
        let (new, broken): (Vec<_>, Vec<_>) =
            comparison.newly_failing.into_iter().partition(|name| comparison.added.contains(name));
        if !broken.is_empty() {
            return Err(Refusal::Broke(broken));
        }
        if !comparison.vanished.is_empty() {
            return Err(Refusal::Vanished(comparison.vanished));
        }
        if !comparison.newly_skipped.is_empty() {
            return Err(Refusal::Skipped(comparison.newly_skipped));
        }
        // Subtests fail together with the test they belong to; the outermost is the one.
        let outermost: Vec<TestName> = new.iter().filter(|n| !new.iter().any(|m| is_below(n, m))).cloned().collect();
        match outermost.as_slice() {
            [] => Err(Refusal::PassesAtOnce),
            [one] => {
                let sentence = format!("{}; `{one}` is new and fails", after.sentence());
                Ok((Self { kind: Kind::Tests { sentence } }, one.clone()))
            }
            _ => Err(Refusal::TooMany(outermost)),
        }
    }

    /// The tests do not build, for the one reason that makes a fair red: `test_file` names what nobody has written yet.
    pub fn of_unwritten(after: &TestRun, test_file: &Path, source: &str) -> Result<Self, Refusal> {
        match &after.outcome {
            Outcome::DidNotBuild { errors } if blame(errors, test_file, source) == Blame::MissingNames => {
                let sentence = format!("{}; what it names is not written yet", after.sentence());
                Ok(Self { kind: Kind::Tests { sentence } })
            }
            _ => Err(Refusal::NotPassed(after.sentence())),
        }
    }

    /// Every check holds, and there is at least one.
    pub fn of_checks(checks: Vec<Check>) -> Result<Self, Refusal> {
        if checks.is_empty() {
            return Err(Refusal::Nothing);
        }
        match checks.iter().find(|c| !c.pass) {
            Some(check) => Err(Refusal::Check { id: check.id, detail: check.detail.clone() }),
            None => Ok(Self { kind: Kind::Checks(checks) }),
        }
    }

    /// What was shown, in a sentence.
    pub fn sentence(&self) -> String {
        match &self.kind {
            Kind::Tests { sentence } => sentence.clone(),
            Kind::Checks(checks) => {
                let ids: Vec<&str> = checks.iter().map(|c| c.id).collect();
                format!("{} held: {}", words::count(checks.len(), "check"), ids.join(", "))
            }
        }
    }
}

impl Check {
    pub(super) fn new(id: &'static str, pass: bool, detail: impl Into<String>) -> Self {
        Self { id, pass, detail: detail.into() }
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

fn is_below(name: &TestName, other: &TestName) -> bool {
    name != other && (name.0.starts_with(&format!("{}/", other.0)) || name.0.starts_with(&format!("{} > ", other.0)))
}

fn list(names: &[TestName], what: &str) -> String {
    let shown: Vec<String> = names.iter().take(5).map(|n| format!("`{n}`")).collect();
    let more = names.len().saturating_sub(5);
    let more = if more > 0 { format!(" and {}", words::count(more, "other")) } else { String::new() };
    format!("{}{more} ({what})", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::baseline::Origin;
    use super::super::baseline::tests::run;
    use super::*;

    fn before(words: &str) -> Baseline {
        Baseline::of(run(words), Origin::Ran).expect("a baseline")
    }

    fn green(was: &str, is: &str, target: &str) -> Result<Proof, Refusal> {
        Proof::of_green(&before(was), &run(is), &[TestName::from(target)])
    }

    #[test]
    fn green_needs_its_target_and_loses_nothing() {
        assert!(green("+a -t", "+a +t", "t").is_ok());
        assert!(green("+a -old -t", "+a -old +t", "t").is_ok(), "old failures are not held against anybody");
        assert!(matches!(green("+a -t", "-a +t", "t"), Err(Refusal::Broke(_))));
        assert!(matches!(green("+a -t", "+t", "t"), Err(Refusal::Vanished(_))));
        assert!(matches!(green("+a -t", "~a +t", "t"), Err(Refusal::Skipped(_))));
        assert!(matches!(green("+a -t", "+a -t", "t"), Err(Refusal::StillFails(_))));
        assert!(matches!(green("+a", "+a", "t"), Err(Refusal::NotThere(_))));
    }

    #[test]
    fn red_is_exactly_one_new_failure() {
        let red = |was: &str, is: &str| Proof::of_red(&before(was), &run(is)).map(|(_, name)| name.0);
        assert_eq!(red("+a", "+a -t"), Ok("t".into()));
        assert_eq!(red("", "-t"), Ok("t".into()));
        assert_eq!(red("+a", "+a -t -t/sub"), Ok("t".into()));
        assert_eq!(red("+a", "+a +t"), Err(Refusal::PassesAtOnce));
        assert_eq!(red("+a -old", "+a -old +t"), Err(Refusal::PassesAtOnce));
        assert!(matches!(red("+a", "+a -t -u"), Err(Refusal::TooMany(_))));
        assert!(matches!(red("+a", "-a -t"), Err(Refusal::Broke(_))));
        assert!(matches!(red("+a +b", "+a -t"), Err(Refusal::Vanished(_))));
    }

    #[test]
    fn only_a_pass_and_only_checks_that_hold_are_proof() {
        assert!(Proof::of_tests(&run("+a")).is_ok());
        assert!(Proof::of_tests(&run("+a -b")).is_err());
        assert!(Proof::of_tests(&run("")).is_err());
        assert!(matches!(Proof::of_checks(vec![]), Err(Refusal::Nothing)));
        assert!(Proof::of_checks(vec![Check::new("a", true, "")]).is_ok());
        let mixed = vec![Check::new("a", true, ""), Check::new("b", false, "no")];
        assert!(matches!(Proof::of_checks(mixed), Err(Refusal::Check { id: "b", .. })));
    }
}
