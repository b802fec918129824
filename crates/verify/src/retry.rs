//! Runs the tests again after an unexpected failure. If the two runs differ, the tests are flaky, neither red nor green.

use std::collections::BTreeSet;

use tokio_util::sync::CancellationToken;

use super::baseline::Baseline;
use super::outcome::{Outcome, TestName, TestRun, TestState};
use super::session::RunEnvironment;
use super::suite::Suite;

/// A run that was repeated if its result was unexpected.
#[derive(Debug, Clone)]
pub enum RetryOutcome {
    /// Green at once, red twice in the same way, or inconclusive.
    Stable(Box<TestRun>),
    /// Two runs of the same files differ. This is never green.
    Flaky {
        names: Vec<TestName>,
        runs: Box<(TestRun, TestRun)>,
    },
}

impl RetryOutcome {
    /// The run to report: the first one.
    pub fn run(&self) -> &TestRun {
        match self {
            Self::Stable(run) => run,
            Self::Flaky { runs, .. } => &runs.0,
        }
    }
}

/// Runs the suite, and runs it again if a test fails that did not fail in the baseline and is not in `is_expected`.
pub async fn run_with_retry(
    suite: &Suite,
    environment: &RunEnvironment,
    baseline: Option<&Baseline>,
    is_expected: &(dyn Fn(&TestName) -> bool + Sync),
    stop: &CancellationToken,
) -> RetryOutcome {
    let first = suite.run(environment, stop).await;
    repeat_if_unexpected(first, suite, environment, baseline, is_expected, stop).await
}

/// Runs the suite again if a test failed in `first` that did not fail in the baseline and is not in `is_expected`.
pub async fn repeat_if_unexpected(
    first: TestRun,
    suite: &Suite,
    environment: &RunEnvironment,
    baseline: Option<&Baseline>,
    is_expected: &(dyn Fn(&TestName) -> bool + Sync),
    stop: &CancellationToken,
) -> RetryOutcome {
    if !is_unexpected(&first, baseline, is_expected) {
        return RetryOutcome::Stable(Box::new(first));
    }
    let second = suite.run(&environment.for_repetition(), stop).await;
    compare_runs(first, second)
}

fn is_unexpected(
    run: &TestRun,
    baseline: Option<&Baseline>,
    is_expected: &dyn Fn(&TestName) -> bool,
) -> bool {
    run.outcome == Outcome::Failed
        && ((run.failed().next().is_none() && run.failed_checks().next().is_none())
            || run.failed().any(|(name, _)| {
                !is_expected(name) && !baseline.is_some_and(|b| b.failed_before(name))
            }))
}

fn compare_runs(first: TestRun, second: TestRun) -> RetryOutcome {
    // A second run that timed out or was cancelled says nothing about the first.
    if !second.outcome.is_conclusive() {
        return RetryOutcome::Stable(Box::new(first));
    }
    let kind = |state: Option<&TestState>| state.map(std::mem::discriminant);
    let all: BTreeSet<&TestName> = first
        .named()
        .chain(second.named())
        .map(|(name, _)| name)
        .collect();
    let names: Vec<TestName> = all
        .into_iter()
        .filter(|n| kind(first.state(n)) != kind(second.state(n)))
        .cloned()
        .collect();
    if names.is_empty() && first.outcome == second.outcome {
        return RetryOutcome::Stable(Box::new(first));
    }
    RetryOutcome::Flaky {
        names,
        runs: Box::new((first, second)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::baseline::BaselineOrigin;
    use super::super::baseline::tests::run;
    use super::*;

    #[test]
    fn only_unexpected_failure_is_run_again() {
        let baseline = Baseline::of(run("+a -old"), BaselineOrigin::Ran).expect("a baseline");
        assert!(!is_unexpected(&run("+a +b"), Some(&baseline), &|_| false));
        assert!(!is_unexpected(&run("+a -old"), Some(&baseline), &|_| false));
        assert!(is_unexpected(&run("-a -old"), Some(&baseline), &|_| false));
        assert!(is_unexpected(&run("-a"), None, &|_| false));
        assert!(!is_unexpected(
            &run("+a -old -new"),
            Some(&baseline),
            &|name| name.0 == "new"
        ));
    }

    #[test]
    fn differing_runs_name_flaky_tests() {
        let RetryOutcome::Flaky { names, .. } = compare_runs(run("+a -b"), run("+a +b")) else {
            panic!("not flaky")
        };
        assert_eq!(names, [TestName::from("b")]);
        assert!(matches!(
            compare_runs(run("+a -b"), run("+a -b")),
            RetryOutcome::Stable(_)
        ));
        let mut late = run("+a +b");
        late.outcome = Outcome::TimedOut { limit_s: 1 };
        assert!(
            matches!(compare_runs(run("+a -b"), late), RetryOutcome::Stable(r) if r.outcome == Outcome::Failed)
        );
    }
}
