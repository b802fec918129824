//! Decides how much network access the tests need. The first run decides, and every later run gets the same access;
//! otherwise a comparison of two runs would measure the sandbox instead of the code.

use std::sync::LazyLock;

use regex::Regex;
use tokio_util::sync::CancellationToken;

use super::outcome::{Outcome, TestName, TestRun, TestState};
use super::session::RunEnvironment;
use super::suite::Suite;
use supervisor_process::{NetworkReach, NetworkRule, SandboxMode};

/// Words in the output of programs that could not reach the network.
static NETWORK_WORDS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)network|resolve|connect|unreachable|offline|getaddrinfo|ECONN|ENET|EAI_|no matching package|timed? ?out|dial tcp|name or service|socket")
        .expect("the pattern is valid")
});

/// Whether what failed mentions the network. Names and output of passing tests say nothing, so the whole output counts only
/// where no test is named as failed.
fn mentions_network(run: &TestRun) -> bool {
    let mut failed = run.failed().peekable();
    if failed.peek().is_none() {
        return NETWORK_WORDS.is_match(run.output());
    }
    failed.any(|(_, message)| message.is_empty() || NETWORK_WORDS.is_match(message))
}

/// The parts by which two runs are compared. Messages are left out because times and addresses in them differ.
fn comparison_key(run: &TestRun) -> (std::mem::Discriminant<Outcome>, Vec<(&TestName, bool)>) {
    let named = run
        .named()
        .map(|(name, state)| (name, matches!(state, TestState::Passed)));
    (std::mem::discriminant(run.outcome()), named.collect())
}

/// Runs a suite for the first time, in a private network. If it fails and what failed mentions the network, runs it again
/// on the host's network, which is kept only if the results differ. The decision is stored in `bench`.
pub async fn run_first(
    suite: &Suite,
    bench: &mut RunEnvironment,
    stop: &CancellationToken,
) -> TestRun {
    let run = suite.run(bench, stop).await;
    let rules = bench.launcher.rules();
    let is_undecided = rules.mode != SandboxMode::Off
        && rules.network == NetworkRule::Auto
        && bench.sandbox.network.is_none();
    if !is_undecided || run.outcome().is_passed() || stop.is_cancelled() || !mentions_network(&run)
    {
        return run;
    }
    bench.sandbox.network = Some(NetworkReach::Host);
    let mut again = suite.run(bench, stop).await;
    if comparison_key(&again) == comparison_key(&run) {
        bench.sandbox.network = Some(NetworkReach::Private);
        return run;
    }
    again.notes.push(String::from(
        "these tests need more than a private network, so they ran on the host's; `network` under [sandbox] decides otherwise",
    ));
    again
}
