//! How far does the network of the tests have to reach? The first run decides, and every later one has the same: else a
//! comparison would measure the walls and not the code.

use std::sync::LazyLock;

use regex::Regex;
use tokio_util::sync::CancellationToken;

use super::outcome::{Outcome, TestName, TestRun, TestState};
use super::session::Bench;
use super::suite::Suite;
use supervisor_process::{NetworkReach, NetworkRule, SandboxMode};

/// What a program says, in one way or another, when it could not reach something.
static ABOUT_NETWORK: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)network|resolve|connect|unreachable|offline|getaddrinfo|ECONN|ENET|EAI_|no matching package|timed? ?out|dial tcp|name or service|socket")
        .expect("the pattern is part of the program")
});

/// What two runs are compared by: messages may differ in times and addresses.
fn essence(run: &TestRun) -> (std::mem::Discriminant<Outcome>, Vec<(&TestName, bool)>) {
    let named = run
        .named()
        .map(|(name, state)| (name, matches!(state, TestState::Passed)));
    (std::mem::discriminant(run.outcome()), named.collect())
}

/// The first run of a suite: in a private network and, if it fails with a word about the network, once more on the host's.
/// The host's is taken only if that makes a difference. The bench keeps what was decided.
pub async fn run_first(suite: &Suite, bench: &mut Bench, stop: &CancellationToken) -> TestRun {
    let run = suite.run(bench, stop).await;
    let rules = bench.launcher.rules();
    let open = rules.mode != SandboxMode::Off
        && rules.network == NetworkRule::Auto
        && bench.walls.network.is_none();
    if !open
        || run.outcome().is_passed()
        || stop.is_cancelled()
        || !ABOUT_NETWORK.is_match(run.output())
    {
        return run;
    }
    bench.walls.network = Some(NetworkReach::Host);
    let mut again = suite.run(bench, stop).await;
    if essence(&again) == essence(&run) {
        bench.walls.network = Some(NetworkReach::Private);
        return run;
    }
    again.notes.push(String::from(
        "these tests need more than a private network, so they ran on the host's; `network` under [sandbox] decides otherwise",
    ));
    again
}
