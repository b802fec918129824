//! What one call leaves for the next in the life of a server: outcomes of the same files, and which tests there were
//! before a red that does not build.
//! A memory is used only while every test it speaks of is still as it was.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::verify::sealed::role;
use crate::verify::{Baseline, Ecosystem, Memo};

/// Inventories by project and command.
#[derive(Debug, Default)]
pub struct Memory {
    /// Outcomes of runs that wrote nothing, for calls that find the very same project again.
    pub(super) outcomes: Memo,
    known: Mutex<HashMap<Key, Known>>,
}

/// Where it is, and how it is run.
type Key = (PathBuf, String);

#[derive(Debug)]
struct Known {
    before: Baseline,
    tests: Digests,
}

/// The digest of every file that holds tests.
pub(super) type Digests = BTreeMap<PathBuf, [u8; 32]>;

/// Projects worked on by one server are few.
const KEPT: usize = 64;

impl Memory {
    fn keep(&self, key: Key, one: Known) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KEPT {
            known.clear();
        }
        known.insert(key, one);
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
pub(super) struct Pending(Mutex<Option<(Key, Known)>>);

impl Pending {
    pub(super) fn put(&self, root: &Path, command: &str, before: Baseline, tests: Digests) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *held = Some(((root.to_owned(), command.to_owned()), Known { before, tests }));
    }

    pub(super) fn settle(&self, memory: &Memory) {
        if let Some((key, one)) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            memory.keep(key, one);
        }
    }
}

/// Those of these files that hold tests; any Rust source may.
pub(super) fn digests<'a>(ecosystem: Option<Ecosystem>, files: impl Iterator<Item = (&'a Path, [u8; 32])>) -> Digests {
    let holds_tests = |path: &Path| {
        role(ecosystem, path).belongs_to_tests()
            || (ecosystem == Some(Ecosystem::Rust) && path.extension().is_some_and(|e| e == "rs"))
    };
    files.filter(|(path, _)| holds_tests(path)).map(|(path, hash)| (path.to_owned(), hash)).collect()
}
