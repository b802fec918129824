//! An accepted run, made once more on other ground: the project was changed while the work was judged. What held then must
//! hold now; what is new or was fixed meanwhile is the user's, and is not held against the work.

use tokio_util::sync::CancellationToken;

use super::outcome::{Outcome, TestName, TestRun, TestState, Tests};
use super::session::Bench;
use super::suite::Suite;
use supervisor_process::Guard;
use supervisor_text::words;

/// A run that work was accepted for, and how to make it again.
#[derive(Debug, Clone)]
pub struct Recheck {
    pub suite: Suite,
    pub bench: Bench,
    pub accepted: TestRun,
    /// Tests that must fail, such as the one that a red is about.
    pub failing: Vec<TestName>,
}

impl Recheck {
    /// The error says what no longer holds.
    pub async fn run(
        &self,
        guard: Option<Guard>,
        stop: &CancellationToken,
    ) -> Result<TestRun, String> {
        let bench = Bench {
            guard,
            ..self.bench.clone()
        };
        let now = self.suite.run(&bench, stop).await;
        compare(&self.accepted, &now, &self.failing).map(|()| now)
    }
}

fn compare(accepted: &TestRun, now: &TestRun, failing: &[TestName]) -> Result<(), String> {
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
    let passing = failing
        .iter()
        .find(|name| !matches!(now.state(name), Some(TestState::Failed(_))));
    passing.map_or(Ok(()), |name| {
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
    fn what_passed_must_pass_and_what_must_fail_must_fail_and_the_rest_is_the_users() {
        let check = |was: &str, now: &str, failing: &[&str]| {
            let failing: Vec<TestName> = failing.iter().map(|name| TestName::from(*name)).collect();
            compare(&run(was), &run(now), &failing).is_ok()
        };
        assert!(check("+a +t", "+a +t", &[]));
        assert!(
            check("+a +t -old", "+a +t +old -users", &[]),
            "fixed or added by the user"
        );
        assert!(!check("+a +t", "+a -t", &[]));
        assert!(!check("+a +t", "+a", &[]), "gone is not passed");
        assert!(check("+a -t", "+a -t", &["t"]));
        assert!(!check("+a -t", "+a +t", &["t"]));
    }
}
