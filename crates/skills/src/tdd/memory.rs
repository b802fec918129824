//! State that one call leaves for later calls of the same server: test outcomes of identical
//! files, the tests that existed before a red test that does not build, and specifications. A
//! remembered baseline is used only while all test files are unchanged.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::mutants::AcceptedChange;
use supervisor_languages::Language;
use supervisor_pack::ParsedFiles;
use supervisor_verify::protected::role;
use supervisor_verify::{Baseline, CachedOutcome, OutcomeCache, OutcomeKey, Suite, VaryingNames};

/// Remembered baselines by project and command, test outcomes and specifications.
#[derive(Debug, Default)]
pub struct TddMemory {
    /// Outcomes of runs, for calls on identical files.
    pub(super) outcomes: OutcomeCache,
    baselines: Mutex<HashMap<ProjectKey, KnownBaseline>>,
    /// Files that briefs parsed.
    pub(super) parsed: Arc<ParsedFiles>,
    /// The specification of a red test, by the file it was written to.
    specs: Mutex<HashMap<PathBuf, String>>,
    /// The tests of a suite whose names vary, once that is found.
    varying_names: Mutex<HashMap<ProjectKey, Arc<OnceLock<VaryingNames>>>>,
}

/// Project root and test command.
type ProjectKey = (PathBuf, String);

#[derive(Debug)]
struct KnownBaseline {
    baseline: Baseline,
    tests: TestDigests,
}

/// The digest of every file that contains tests.
pub(super) type TestDigests = BTreeMap<PathBuf, [u8; 32]>;

/// A server works on few projects, so this is rarely reached.
const MAX_ENTRIES: usize = 64;

impl TddMemory {
    fn insert_baseline(&self, key: ProjectKey, known_baseline: KnownBaseline) {
        let mut baselines = self.baselines.lock();
        if baselines.len() >= MAX_ENTRIES {
            baselines.clear();
        }
        baselines.insert(key, known_baseline);
    }

    /// Lets a suite use what calls before it found about its names.
    pub(super) fn share_varying_names(&self, root: &Path, suite: &mut Suite) {
        let mut all = self.varying_names.lock();
        if all.len() >= MAX_ENTRIES {
            all.clear();
        }
        let found = all.entry((root.to_owned(), suite.command())).or_default();
        suite.share_varying_names(Arc::clone(found));
    }

    /// Remembers the specification of the latest test in this file.
    pub(super) fn remember_spec(&self, test: PathBuf, spec: &str) {
        let mut specs = self.specs.lock();
        if specs.len() >= MAX_ENTRIES {
            specs.clear();
        }
        specs.insert(test, spec.to_owned());
    }

    /// The specification of the latest test in this file, if this server wrote it.
    pub(super) fn spec(&self, test: &Path) -> Option<String> {
        self.specs.lock().get(test).cloned()
    }

    /// The baseline from before the test that does not build was written.
    pub(super) fn baseline_before(
        &self,
        root: &Path,
        command: &str,
        tests: &TestDigests,
    ) -> Option<Baseline> {
        let baselines = self.baselines.lock();
        let known_baseline = baselines.get(&(root.to_owned(), command.to_owned()))?;
        (known_baseline.tests == *tests).then(|| known_baseline.baseline.clone())
    }
}

/// Held back until the call passes, then stored in the memory.
#[derive(Debug, Default)]
pub(super) struct PendingMemory {
    inventory: Mutex<Option<(ProjectKey, KnownBaseline)>>,
    outcome: Mutex<Option<(OutcomeKey, CachedOutcome)>>,
    change: Mutex<Option<AcceptedChange>>,
}

impl PendingMemory {
    pub(super) fn set_inventory(
        &self,
        root: &Path,
        command: &str,
        baseline: Baseline,
        tests: TestDigests,
    ) {
        let mut inventory_slot = self.inventory.lock();
        *inventory_slot = Some((
            (root.to_owned(), command.to_owned()),
            KnownBaseline { baseline, tests },
        ));
    }

    /// The last run of the call, with the key of the files it ran on.
    pub(super) fn set_outcome(&self, key: OutcomeKey, outcome: CachedOutcome) {
        *self.outcome.lock() = Some((key, outcome));
    }

    pub(super) fn set_change(&self, change: AcceptedChange) {
        *self.change.lock() = Some(change);
    }

    pub(super) fn take_change(&self) -> Option<AcceptedChange> {
        self.change.lock().take()
    }

    pub(super) fn commit(&self, memory: &TddMemory) {
        if let Some((key, outcome)) = self.outcome.lock().take() {
            memory.outcomes.insert(key, outcome);
        }
        if let Some((key, known_baseline)) = self.inventory.lock().take() {
            memory.insert_baseline(key, known_baseline);
        }
    }
}

/// The key under which an outcome of exactly these files is remembered.
pub(super) fn outcome_key(
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

/// Selects the files that contain tests. In Rust, any source file may.
pub(super) fn select_test_digests<'a>(
    ecosystem: Option<&'static Language>,
    files: impl Iterator<Item = (&'a Path, [u8; 32])>,
) -> TestDigests {
    let holds_tests = |path: &Path| {
        role(ecosystem, path).belongs_to_tests()
            || ecosystem.is_some_and(|language| language.has_inline_tests && language.owns(path))
    };
    files
        .filter(|(path, _)| holds_tests(path))
        .map(|(path, hash)| (path.to_owned(), hash))
        .collect()
}
