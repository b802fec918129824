//! An unexpected red is run again: if the second run says something else, the tests are flaky, not red or green.

use std::collections::BTreeSet;

use tokio_util::sync::CancellationToken;

use super::baseline::Baseline;
use super::outcome::{Outcome, TestName, TestRun, TestState};
use super::session::Bench;
use super::suite::Suite;

/// A run, settled.
#[derive(Debug, Clone)]
pub enum SettledRun {
    /// Green at once, red twice in the same way, or nothing to say about the code.
    Sure(Box<TestRun>),
    /// Two runs of the same files differ. Never green.
    Flaky {
        names: Vec<TestName>,
        runs: Box<(TestRun, TestRun)>,
    },
}

impl SettledRun {
    /// The run to show: the first red one.
    pub fn run(&self) -> &TestRun {
        match self {
            Self::Sure(run) => run,
            Self::Flaky { runs, .. } => &runs.0,
        }
    }
}

/// Runs the suite; a failure outside the baseline that is not among `expects` is run again.
pub async fn run_settled(
    suite: &Suite,
    bench: &Bench,
    baseline: Option<&Baseline>,
    expects: &(dyn Fn(&TestName) -> bool + Sync),
    stop: &CancellationToken,
) -> SettledRun {
    let first = suite.run(bench, stop).await;
    if !is_surprising(&first, baseline, expects) {
        return SettledRun::Sure(Box::new(first));
    }
    let second = suite.run(bench, stop).await;
    settle(first, second)
}

fn is_surprising(
    run: &TestRun,
    baseline: Option<&Baseline>,
    expects: &dyn Fn(&TestName) -> bool,
) -> bool {
    run.outcome == Outcome::Failed
        && ((run.failed().next().is_none() && run.failed_checks().next().is_none())
            || run.failed().any(|(name, _)| {
                !expects(name) && !baseline.is_some_and(|b| b.failed_before(name))
            }))
}

fn settle(first: TestRun, second: TestRun) -> SettledRun {
    // A second run that was cut short or cancelled says nothing about the first.
    if !second.outcome.speaks_about_the_code() {
        return SettledRun::Sure(Box::new(first));
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
        return SettledRun::Sure(Box::new(first));
    }
    SettledRun::Flaky {
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
    fn only_a_failure_that_is_not_in_the_baseline_is_run_again() {
        let baseline = Baseline::of(run("+a -old"), BaselineOrigin::Ran).expect("a baseline");
        assert!(!is_surprising(&run("+a +b"), Some(&baseline), &|_| false));
        assert!(!is_surprising(&run("+a -old"), Some(&baseline), &|_| false));
        assert!(is_surprising(&run("-a -old"), Some(&baseline), &|_| false));
        assert!(is_surprising(&run("-a"), None, &|_| false));
        assert!(!is_surprising(
            &run("+a -old -new"),
            Some(&baseline),
            &|name| name.0 == "new"
        ));
    }

    #[test]
    fn unequal_runs_are_flaky_by_name() {
        let SettledRun::Flaky { names, .. } = settle(run("+a -b"), run("+a +b")) else {
            panic!("not flaky")
        };
        assert_eq!(names, [TestName::from("b")]);
        assert!(matches!(
            settle(run("+a -b"), run("+a -b")),
            SettledRun::Sure(_)
        ));
        let mut late = run("+a +b");
        late.outcome = Outcome::TimedOut { limit_s: 1 };
        assert!(
            matches!(settle(run("+a -b"), late), SettledRun::Sure(r) if r.outcome == Outcome::Failed)
        );
    }
}
