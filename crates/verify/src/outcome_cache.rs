//! Caches test outcomes in this process, so that a baseline with the same files, command and environment runs once.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::path::PathBuf;

use parking_lot::Mutex;

use super::baseline::{Baseline, BaselineOrigin};
use super::outcome::{Outcome, TestRun};
use super::suite::Suite;
use supervisor_process::NetworkReach;

/// Everything an outcome depends on: the project's content, the command, its directory and the environment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OutcomeKey([u8; 32]);

impl OutcomeKey {
    /// `manifest` is the caller's digest of every file that could matter.
    pub fn new(manifest: &[u8], suite: &Suite, env: &BTreeMap<OsString, OsString>) -> Self {
        let mut hasher = blake3::Hasher::new();
        let mut part = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        part(manifest);
        part(suite.root().as_os_str().as_encoded_bytes());
        part(&(suite.argv().len() as u64).to_le_bytes());
        suite.argv().iter().for_each(|word| part(word.as_bytes()));
        for (name, value) in env {
            part(name.as_encoded_bytes());
            part(value.as_encoded_bytes());
        }
        Self(*hasher.finalize().as_bytes())
    }

    pub fn to_hex(&self) -> String {
        blake3::Hash::from_bytes(self.0).to_hex().to_string()
    }
}

/// An outcome and the files that the run created after the key was computed, with the digest of their bytes; directories
/// have an all-zero digest.
#[derive(Debug, Clone)]
pub struct CachedOutcome {
    pub run: TestRun,
    pub by_products: BTreeMap<PathBuf, [u8; 32]>,
    /// The network that the run had, if it was decided; later runs must have the same.
    pub network: Option<NetworkReach>,
}

/// A small cache that evicts the oldest outcome first.
#[derive(Debug, Default)]
pub struct OutcomeCache {
    entries: Mutex<VecDeque<(OutcomeKey, CachedOutcome)>>,
}

/// One process works on few projects, and each run holds up to 64 KiB of output.
const MAX_OUTCOMES: usize = 32;

impl OutcomeCache {
    /// Stores an outcome that depends on the files alone: a valid baseline or a failed build. Ignores all others.
    pub fn insert(&self, key: OutcomeKey, outcome: CachedOutcome) {
        let run = &outcome.run;
        let is_deterministic = Baseline::of(run.clone(), BaselineOrigin::Ran).is_ok()
            || matches!(run.outcome, Outcome::DidNotBuild { .. });
        if !is_deterministic {
            return;
        }
        let mut entries = self.entries.lock();
        entries.retain(|(k, _)| *k != key);
        entries.push_back((key, outcome));
        while entries.len() > MAX_OUTCOMES {
            entries.pop_front();
        }
    }

    /// The cached outcome, with a note that it was not run again.
    pub fn get(&self, key: &OutcomeKey) -> Option<CachedOutcome> {
        let entries = self.entries.lock();
        let mut outcome = entries.iter().find(|(k, _)| k == key)?.1.clone();
        let note = "not run again: known from a run of the same files, command and environment";
        outcome.run.notes.push(String::from(note));
        Some(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::super::baseline::tests::run;
    use super::super::detect::detect;
    use super::*;

    fn outcome(run: TestRun) -> CachedOutcome {
        CachedOutcome {
            run,
            by_products: BTreeMap::new(),
            network: None,
        }
    }

    #[test]
    fn key_depends_on_files_command_and_environment() {
        let dir = tempfile::tempdir().expect("a directory");
        let suite = |cmd: &str| detect(dir.path(), None, Some(cmd)).expect("a suite");
        let env = |v: &str| BTreeMap::from([(OsString::from("A"), OsString::from(v))]);
        let key = OutcomeKey::new(b"m", &suite("make a b"), &env("1"));
        assert_eq!(key, OutcomeKey::new(b"m", &suite("make a b"), &env("1")));
        assert_ne!(key, OutcomeKey::new(b"n", &suite("make a b"), &env("1")));
        assert_ne!(key, OutcomeKey::new(b"m", &suite("make 'a b'"), &env("1")));
        assert_ne!(key, OutcomeKey::new(b"m", &suite("make a b"), &env("2")));

        let memo = OutcomeCache::default();
        assert!(memo.get(&key).is_none());
        memo.insert(key.clone(), outcome(run("+a")));
        let known = memo.get(&key).expect("kept");
        assert!(known.run.notes()[0].contains("not run again"));
    }

    #[test]
    fn nondeterministic_outcome_is_not_cached() {
        let dir = tempfile::tempdir().expect("a directory");
        let suite = detect(dir.path(), None, Some("make")).expect("a suite");
        let memo = OutcomeCache::default();
        let key = |n: u8| OutcomeKey::new(&[n], &suite, &BTreeMap::new());
        let mut killed = run("+a");
        killed.outcome = Outcome::Killed { signal: 9 };
        memo.insert(key(0), outcome(killed));
        assert!(memo.get(&key(0)).is_none());
        for n in 1..=40 {
            memo.insert(key(n), outcome(run("+a")));
        }
        assert!(memo.get(&key(1)).is_none() && memo.get(&key(40)).is_some());
    }
}
