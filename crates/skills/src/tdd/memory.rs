//! What one call leaves for the next in the life of a server: outcomes of the same files, and which tests there were
//! before a red that does not build.
//! A memory is used only while every test it speaks of is still as it was.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use supervisor_languages::Language;
use supervisor_verify::sealed::role;
use supervisor_verify::{Baseline, KnownOutcome, Memo, OutcomeKey, Suite};

/// Inventories by project and command.
#[derive(Debug, Default)]
pub struct Memory {
    /// Outcomes of runs, for calls that find the very same project again.
    pub(super) outcomes: Memo,
    known: Mutex<HashMap<Key, KnownBaseline>>,
    /// What a red was asked for, by the test file it wrote.
    specs: Mutex<HashMap<PathBuf, String>>,
}

/// Where it is, and how it is run.
type Key = (PathBuf, String);

#[derive(Debug)]
struct KnownBaseline {
    before: Baseline,
    tests: Digests,
}

/// The digest of every file that holds tests.
pub(super) type Digests = BTreeMap<PathBuf, [u8; 32]>;

/// Projects worked on by one server are few.
const KEPT: usize = 64;

impl Memory {
    fn keep(&self, key: Key, one: KnownBaseline) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KEPT {
            known.clear();
        }
        known.insert(key, one);
    }

    /// Keeps what the test in this file was asked for; the latest counts.
    pub(super) fn keep_spec(&self, test: PathBuf, spec: &str) {
        let mut specs = self.specs.lock().unwrap_or_else(PoisonError::into_inner);
        if specs.len() >= KEPT {
            specs.clear();
        }
        specs.insert(test, spec.to_owned());
    }

    /// What the latest test in this file was asked for, if this server wrote it.
    pub(super) fn spec(&self, test: &Path) -> Option<String> {
        self.specs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(test)
            .cloned()
    }

    /// What was true before the test that does not build was written.
    pub(super) fn before(&self, root: &Path, command: &str, tests: &Digests) -> Option<Baseline> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let one = known.get(&(root.to_owned(), command.to_owned()))?;
        (one.tests == *tests).then(|| one.before.clone())
    }
}

/// What a call would have remembered; it is, once the call has ended well.
#[derive(Debug, Default)]
pub(super) struct Pending {
    inventory: Mutex<Option<(Key, KnownBaseline)>>,
    outcome: Mutex<Option<(OutcomeKey, KnownOutcome)>>,
}

impl Pending {
    pub(super) fn put(&self, root: &Path, command: &str, before: Baseline, tests: Digests) {
        let mut held = self
            .inventory
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *held = Some((
            (root.to_owned(), command.to_owned()),
            KnownBaseline { before, tests },
        ));
    }

    /// The last run of the call, and the files it was about.
    pub(super) fn put_outcome(&self, key: OutcomeKey, outcome: KnownOutcome) {
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some((key, outcome));
    }

    pub(super) fn settle(&self, memory: &Memory) {
        if let Some((key, outcome)) = self
            .outcome
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        {
            memory.outcomes.keep(key, outcome);
        }
        if let Some((key, one)) = self
            .inventory
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        {
            memory.keep(key, one);
        }
    }
}

/// What an outcome of these very files is remembered by.
pub(super) fn files_key(
    files: &BTreeMap<PathBuf, [u8; 32]>,
    suite: &Suite,
    env: &BTreeMap<OsString, OsString>,
) -> OutcomeKey {
    let mut hasher = blake3::Hasher::new();
    for (path, hash) in files {
        let path = path.as_os_str().as_encoded_bytes();
        hasher
            .update(&(path.len() as u64).to_le_bytes())
            .update(path)
            .update(hash);
    }
    OutcomeKey::new(hasher.finalize().as_bytes(), suite, env)
}

/// Those of these files that hold tests; any Rust source may.
pub(super) fn digests<'a>(
    ecosystem: Option<&'static Language>,
    files: impl Iterator<Item = (&'a Path, [u8; 32])>,
) -> Digests {
    let holds_tests = |path: &Path| {
        role(ecosystem, path).belongs_to_tests()
            || ecosystem.is_some_and(|language| language.tests_beside_code && language.owns(path))
    };
    files
        .filter(|(path, _)| holds_tests(path))
        .map(|(path, hash)| (path.to_owned(), hash))
        .collect()
}
