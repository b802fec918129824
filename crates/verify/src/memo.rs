//! Outcomes known in this process: the same files, command and environment need not be run twice for a baseline.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use super::baseline::{Baseline, BaselineOrigin};
use super::outcome::{Outcome, TestRun};
use super::suite::Suite;

/// What an outcome depends on: the content of the project, the command and where it runs, the environment.
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
}

/// An outcome, and the files that its run wrote and that were not there when the key was made, by the digest of
/// their bytes; of a directory all zeros.
#[derive(Debug, Clone)]
pub struct KnownOutcome {
    pub run: TestRun,
    pub by_products: BTreeMap<PathBuf, [u8; 32]>,
}

/// A small memory of outcomes, oldest forgotten first.
#[derive(Debug, Default)]
pub struct Memo {
    known: Mutex<VecDeque<(OutcomeKey, KnownOutcome)>>,
}

/// Projects worked on in one process are few, and each run holds up to 64 KiB of output.
const KEPT: usize = 32;

impl Memo {
    /// Keeps an outcome that is a fact about the files: one that speaks about the code, or that it does not build.
    pub fn keep(&self, key: OutcomeKey, outcome: KnownOutcome) {
        let run = &outcome.run;
        let is_fact = Baseline::of(run.clone(), BaselineOrigin::Ran).is_ok()
            || matches!(run.outcome, Outcome::DidNotBuild { .. });
        if !is_fact {
            return;
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(k, _)| *k != key);
        known.push_back((key, outcome));
        while known.len() > KEPT {
            known.pop_front();
        }
    }

    /// The outcome of such files, which says where it comes from.
    pub fn known(&self, key: &OutcomeKey) -> Option<KnownOutcome> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut outcome = known.iter().find(|(k, _)| k == key)?.1.clone();
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

    fn outcome(run: TestRun) -> KnownOutcome {
        KnownOutcome {
            run,
            by_products: BTreeMap::new(),
        }
    }

    #[test]
    fn another_file_command_or_environment_is_another_outcome() {
        let dir = tempfile::tempdir().expect("a directory");
        let suite = |cmd: &str| detect(dir.path(), None, Some(cmd)).expect("a suite");
        let env = |v: &str| BTreeMap::from([(OsString::from("A"), OsString::from(v))]);
        let key = OutcomeKey::new(b"m", &suite("make a b"), &env("1"));
        assert_eq!(key, OutcomeKey::new(b"m", &suite("make a b"), &env("1")));
        assert_ne!(key, OutcomeKey::new(b"n", &suite("make a b"), &env("1")));
        assert_ne!(key, OutcomeKey::new(b"m", &suite("make 'a b'"), &env("1")));
        assert_ne!(key, OutcomeKey::new(b"m", &suite("make a b"), &env("2")));

        let memo = Memo::default();
        assert!(memo.known(&key).is_none());
        memo.keep(key.clone(), outcome(run("+a")));
        let known = memo.known(&key).expect("kept");
        assert!(known.run.notes()[0].contains("not run again"));
    }

    #[test]
    fn what_is_no_fact_about_the_files_is_not_kept() {
        let dir = tempfile::tempdir().expect("a directory");
        let suite = detect(dir.path(), None, Some("make")).expect("a suite");
        let memo = Memo::default();
        let key = |n: u8| OutcomeKey::new(&[n], &suite, &BTreeMap::new());
        let mut killed = run("+a");
        killed.outcome = Outcome::Killed { signal: 9 };
        memo.keep(key(0), outcome(killed));
        assert!(memo.known(&key(0)).is_none());
        for n in 1..=40 {
            memo.keep(key(n), outcome(run("+a")));
        }
        assert!(memo.known(&key(1)).is_none() && memo.known(&key(40)).is_some());
    }
}
