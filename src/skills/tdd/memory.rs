//! What one phase leaves for the next in the life of a server: which tests there were before a red that does not build.
//! A memory is used only while every test it speaks of is still as it was.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::verify::sealed::role;
use crate::verify::{Baseline, Ecosystem};

/// Inventories by project and command.
#[derive(Debug, Default)]
pub struct Memory {
    known: Mutex<HashMap<(PathBuf, String), Known>>,
}

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
    pub(super) fn keep(&self, root: &Path, command: &str, before: Baseline, tests: Digests) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KEPT {
            known.clear();
        }
        known.insert((root.to_owned(), command.to_owned()), Known { before, tests });
    }

    /// What was true before the test that does not build was written.
    pub(super) fn before(&self, root: &Path, command: &str, tests: &Digests) -> Option<Baseline> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let one = known.get(&(root.to_owned(), command.to_owned()))?;
        (one.tests == *tests).then(|| one.before.clone())
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
