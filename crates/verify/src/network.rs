//! Decides how much network access the tests need. The first run decides, and every later run gets the same access;
//! otherwise a comparison of two runs would measure the sandbox instead of the code.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use regex::Regex;
use tokio_util::sync::CancellationToken;

use super::outcome::{Outcome, TestName, TestRun, TestState};
use super::outcome_cache::OutcomeKey;
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
    failed.any(|(_, message)| may_be_network(message))
}

fn may_be_network(message: &str) -> bool {
    message.is_empty() || NETWORK_WORDS.is_match(message)
}

/// The parts by which two runs are compared. Messages are left out because times and addresses in them differ.
fn comparison_key(run: &TestRun) -> (std::mem::Discriminant<Outcome>, Vec<(&TestName, bool)>) {
    let named = run
        .named()
        .map(|(name, state)| (name, matches!(state, TestState::Passed)));
    (std::mem::discriminant(run.outcome()), named.collect())
}

/// Whether any of these tests that fail in a private network passes on the host's. `true` if only the whole suite can
/// tell.
async fn pass_on_host(
    suite: &Suite,
    on_host: &RunEnvironment,
    run: &TestRun,
    stop: &CancellationToken,
) -> bool {
    const MAX_SELECTED: usize = 20;
    let suspects: Vec<TestName> = run
        .failed()
        .filter(|(_, message)| may_be_network(message))
        .map(|(name, _)| name.clone())
        .collect();
    let alone = (suspects.len() <= MAX_SELECTED && suspects.len() < run.named().count())
        .then(|| suite.select(&suspects))
        .flatten();
    let Some(alone) = alone else {
        return true;
    };
    let again = alone.run(on_host, stop).await;
    !suspects
        .iter()
        .all(|name| matches!(again.state(name), Some(TestState::Failed(_))))
}

/// Runs a suite for the first time, in a private network. If it fails and what failed mentions the network, runs that again
/// on the host's network, which is kept only if the results differ. The decision is stored in `bench`, and in `known` for
/// later calls.
pub async fn run_first(
    suite: &Suite,
    bench: &mut RunEnvironment,
    known: Option<&KnownNetwork>,
    stop: &CancellationToken,
) -> TestRun {
    let rules = bench.launcher.rules();
    let is_auto = rules.mode != SandboxMode::Off && rules.network == NetworkRule::Auto;
    if is_auto && bench.sandbox.network.is_none() && known.is_some_and(KnownNetwork::is_host) {
        bench.sandbox.network = Some(NetworkReach::Host);
    }
    let is_undecided = is_auto && bench.sandbox.network.is_none();
    let run = suite.run(bench, stop).await;
    if !is_undecided || run.outcome().is_passed() || stop.is_cancelled() || !mentions_network(&run)
    {
        return run;
    }
    bench.sandbox.network = Some(NetworkReach::Host);
    if pass_on_host(suite, bench, &run, stop).await {
        let mut again = suite.run(bench, stop).await;
        if comparison_key(&again) != comparison_key(&run) {
            again.notes.push(String::from(
                "these tests need more than a private network, so they ran on the host's; `network` under [sandbox] decides otherwise",
            ));
            if let Some(known) = known {
                known.remember_host();
            }
            return again;
        }
    }
    bench.sandbox.network = Some(NetworkReach::Private);
    run
}

/// Remembers in a file that the tests of a command need the host's network, so that they do not run twice in each call.
#[derive(Debug)]
pub struct KnownNetwork(PathBuf);

impl KnownNetwork {
    /// After this time it is decided again.
    const MAX_AGE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

    /// `folder` holds one file per project and command.
    pub fn in_folder(folder: &Path, suite: &Suite) -> Self {
        let key = OutcomeKey::new(b"network", suite, &BTreeMap::new());
        Self(folder.join(key.to_hex()))
    }

    fn is_host(&self) -> bool {
        let modified = self.0.metadata().and_then(|meta| meta.modified());
        let age = modified.map(|time| SystemTime::now().duration_since(time));
        age.is_ok_and(|age| age.is_ok_and(|age| age < Self::MAX_AGE))
    }

    /// A file that cannot be written costs a run in the next call.
    fn remember_host(&self) {
        let _ = std::fs::write(&self.0, "host\n");
    }
}
