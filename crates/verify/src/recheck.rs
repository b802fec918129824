//! Re-runs accepted tests after the project changed underneath. Tests that passed must still pass. Tests that the user
//! added or fixed meanwhile do not count against the work.

use tokio_util::sync::CancellationToken;

use super::outcome::{Outcome, TestName, TestRun, TestState, Tests};
use super::session::RunEnvironment;
use super::suite::Suite;
use supervisor_process::ProjectGuard;
use supervisor_text::words;

/// The run for which work was accepted, and everything needed to repeat it.
#[derive(Debug, Clone)]
pub struct Recheck {
    pub suite: Suite,
    pub environment: RunEnvironment,
    pub accepted: TestRun,
    /// Tests that must fail, such as the new test of a red phase.
    pub must_fail: Vec<TestName>,
}

impl Recheck {
    /// Runs the tests again. The error says what no longer holds.
    pub async fn run(
        &self,
        guard: Option<ProjectGuard>,
        stop: &CancellationToken,
    ) -> Result<TestRun, String> {
        let environment = RunEnvironment {
            guard,
            ..self.environment.clone()
        };
        let now = self.suite.run(&environment, stop).await;
        compare(&self.accepted, &now, &self.must_fail).map(|()| now)
    }
}

fn compare(accepted: &TestRun, now: &TestRun, must_fail: &[TestName]) -> Result<(), String> {
    let is_same_kind =
        std::mem::discriminant(accepted.outcome()) == std::mem::discriminant(now.outcome());
    if *accepted.tests() == Tests::Unknown
        || matches!(accepted.outcome(), Outcome::DidNotBuild { .. })
    {
        return if is_same_kind {
            Ok(())
        } else {
            Err(now.sentence())
        };
    }
    if !matches!(now.outcome(), Outcome::Passed | Outcome::Failed) {
        return Err(now.sentence());
    }
    let lost: Vec<String> = accepted
        .passed()
        .filter(|name| now.state(name) != Some(&TestState::Passed))
        .map(|name| format!("`{name}`"))
        .collect();
    if let Some(first) = lost.first() {
        let more = if lost.len() == 1 {
            String::new()
        } else {
            format!(" and {} more", lost.len() - 1)
        };
        return Err(format!(
            "{first}{more} no longer passes: {}",
            words::plain(&now.sentence())
        ));
    }
    let unexpected_pass = must_fail
        .iter()
        .find(|name| !matches!(now.state(name), Some(TestState::Failed(_))));
    unexpected_pass.map_or(Ok(()), |name| {
        Err(format!(
            "`{name}` should fail and does not: {}",
            now.sentence()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::super::baseline::tests::run;
    use super::*;

    #[test]
    fn passed_tests_must_still_pass() {
        let check = |was: &str, now: &str, must_fail: &[&str]| {
            let must_fail: Vec<TestName> =
                must_fail.iter().map(|name| TestName::from(*name)).collect();
            compare(&run(was), &run(now), &must_fail).is_ok()
        };
        assert!(check("+a +t", "+a +t", &[]));
        assert!(
            check("+a +t -old", "+a +t +old -users", &[]),
            "fixed or added by the user"
        );
        assert!(!check("+a +t", "+a -t", &[]));
        assert!(!check("+a +t", "+a", &[]), "a missing test did not pass");
        assert!(check("+a -t", "+a -t", &["t"]));
        assert!(!check("+a -t", "+a +t", &["t"]));
    }
}
