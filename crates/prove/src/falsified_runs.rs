//! Runs changed versions of a test file, for the tools that ask for work and for anybody's change alike. The runs share
//! nothing: each writes to a layer of its own that is thrown away, and has temporary files of its own. Without such layers,
//! what a run wrote is removed before the next.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use futures_util::future::{BoxFuture, FutureExt as _};
use supervisor_edits::Edit;
use supervisor_languages::ELIXIR;
use supervisor_process::{ProjectGuard, ScratchDir};
use supervisor_verify::falsify::{
    FalsifiableTests, Falsification, FalsifiedFileRunner, TestFiles, falsify,
};
use supervisor_verify::{RunEnvironment, Suite, TestRun};
use supervisor_workspace::{ChangeKind, ChangeSet, EntryType};
use tokio_util::sync::CancellationToken;

use crate::companions::add_companions;

/// Larger by-products are not restored between two runs.
const MAX_RESTORED_BYTES: u64 = 1 << 20;

/// A state of the project that edits and test runs can be made in, and that somebody else restores.
pub trait EditedProject: Send {
    fn apply(&mut self, edits: &[Edit]) -> Result<(), String>;
    /// What differs from the state that will be restored.
    fn changes(&mut self) -> Result<ChangeSet, String>;
    /// Where its files can be read.
    fn files_root(&self) -> PathBuf;
    /// The bytes of a file in the state that will be restored.
    fn original(&mut self, path: &Path) -> Option<Vec<u8>>;
    /// For one run, whose writes go to a layer of their own where that is possible.
    fn run_guard(&mut self) -> Result<Option<ProjectGuard>, String>;
    /// Throws away what the last run wrote in its layer, and returns which files of the project that were.
    fn discard_run(&mut self) -> Vec<PathBuf>;
}

/// Runs of one test file in several versions.
pub struct FalsifiedRuns<'a> {
    pub project: &'a mut dyn EditedProject,
    /// The test file, relative to the project.
    path: &'a Path,
    /// The project's own path. In an overlay its files are elsewhere.
    root: &'a Path,
    suite: Suite,
    pub environment: RunEnvironment,
    stop: &'a CancellationToken,
    /// Files of the tests that runs wrote to, which they must not.
    pub rewritten: BTreeSet<PathBuf>,
    /// What differed before the first run, with small files' bytes.
    before: BTreeMap<PathBuf, Difference>,
}

/// A path that differs from the state that will be restored.
#[derive(Debug, PartialEq, Eq)]
struct Difference {
    /// The file is there in that state.
    existed: bool,
    /// The bytes of a small file.
    bytes: Option<Vec<u8>>,
}

impl<'a> FalsifiedRuns<'a> {
    pub fn new(
        project: &'a mut dyn EditedProject,
        root: &'a Path,
        path: &'a Path,
        suite: Suite,
        environment: RunEnvironment,
        stop: &'a CancellationToken,
    ) -> Self {
        let before = differences(project);
        Self {
            project,
            path,
            root,
            suite,
            environment,
            stop,
            rewritten: BTreeSet::new(),
            before,
        }
    }

    /// Writes the test file.
    pub fn write(&mut self, text: &str) -> Result<(), String> {
        let path = self.path.to_str().ok_or("its name is not UTF-8")?;
        self.project.apply(&[Edit::Replace {
            path: path.to_owned(),
            contents: text.as_bytes().to_vec(),
        }])
    }

    /// Writes the other files that the tests use. Returns their texts before.
    fn write_others(
        &mut self,
        files: &[(PathBuf, String)],
    ) -> Result<Vec<(PathBuf, String)>, String> {
        let root = self.project.files_root();
        let mut originals = Vec::new();
        let mut edits = Vec::new();
        for (path, text) in files {
            let original = std::fs::read_to_string(root.join(path))
                .map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
            originals.push((path.clone(), original));
            edits.push(Edit::Replace {
                path: path.to_str().ok_or("its name is not UTF-8")?.to_owned(),
                contents: text.as_bytes().to_vec(),
            });
        }
        if !edits.is_empty() {
            self.project.apply(&edits)?;
        }
        Ok(originals)
    }

    /// Falsifies these tests, which passed in `plain`. The repository is hidden, because its history contains the original
    /// tests, from which code could read its answers; if the tests need it, it is not. Returns whether they do.
    pub async fn falsify(
        &mut self,
        tests: &mut FalsifiableTests,
        plain: &TestRun,
    ) -> (Falsification, bool) {
        add_companions(tests, &self.project.files_root(), self.path);
        let tests = &*tests;
        let seed = fastrand::u64(..);
        self.environment.sandbox.hides_git = true;
        let hidden = falsify(tests, plain, seed, self).await;
        // The neutral edit comes first, so that nothing else was run yet.
        if !hidden.fails_neutral_edit {
            return (hidden, false);
        }
        self.environment.sandbox.hides_git = false;
        let visible = falsify(tests, plain, seed, self).await;
        let needs_git = !visible.fails_neutral_edit;
        (visible, needs_git)
    }

    /// Removes files that the last run made, and restores those that it changed. A file that was there before the call is
    /// left alone if nothing is known of it: the user may have saved it just now.
    fn restore_by_products(&mut self) {
        let files = self.project.files_root();
        for (path, now) in differences(self.project) {
            let full_path = files.join(&path);
            // In an overlay, the project keeps its own path unless a link leads elsewhere.
            let is_inside = full_path
                .parent()
                .and_then(|dir| dir.canonicalize().ok())
                .is_some_and(|dir| dir.starts_with(self.root) || dir.starts_with(&files));
            if path == self.path || !is_inside {
                continue;
            }
            match self.before.get(&path) {
                None if now.existed => {}
                None => drop(std::fs::remove_file(&full_path)),
                Some(Difference {
                    bytes: Some(bytes), ..
                }) if now.bytes.as_ref() != Some(bytes) => {
                    drop(std::fs::write(&full_path, bytes));
                }
                Some(_) => {}
            }
        }
    }
}

impl FalsifiedFileRunner for FalsifiedRuns<'_> {
    fn run(&mut self, files: TestFiles) -> BoxFuture<'_, Result<TestRun, String>> {
        async move {
            self.write(&files.text)
                .map_err(|why| format!("the test file cannot be written: {why}"))?;
            let originals = self.write_others(&files.others)?;
            touch_test_file(&self.project.files_root().join(self.path));
            let temp_dir = ScratchDir::new("")
                .map_err(|e| format!("there is no place for temporary files: {e}"))?;
            // After the files were written: they must not change below the layer of the run.
            let layer = self.project.run_guard()?;
            let mut environment = self.environment.clone();
            environment.guard = layer.or(environment.guard.take());
            for name in ["TMPDIR", "TMP", "TEMP"] {
                environment.env.insert(name.into(), temp_dir.path().into());
            }
            let run = self.suite.run(&environment, self.stop).await;
            drop(environment);
            let written = self.project.discard_run();
            let root = self.project.files_root();
            let texts = files
                .others
                .iter()
                .map(|(path, text)| (path.as_path(), text));
            for (path, text) in texts.chain([(self.path, &files.text)]) {
                let is_same =
                    std::fs::read(root.join(path)).is_ok_and(|now| now == text.as_bytes());
                if !is_same || written.iter().any(|written| written == path) {
                    self.rewritten.insert(path.to_owned());
                }
            }
            self.write_others(&originals)?;
            self.restore_by_products();
            Ok(run)
        }
        .boxed()
    }
}

/// Elixir's build does not notice when a file that was read at compile time changes.
pub fn with_forced_rebuild(suite: &Suite) -> Suite {
    if suite.ecosystem() == Some(&ELIXIR) {
        suite.with_argument("--force")
    } else {
        suite.clone()
    }
}

/// Sets the time of a test file to now before a normal run. Falsified runs rewrite the file, so a recent time must not
/// distinguish them. A file whose time may not be set stays as it is.
pub fn touch_test_file(path: &Path) {
    if path.symlink_metadata().is_ok_and(|m| m.is_file()) {
        let file = std::fs::File::options().append(true).open(path);
        let _ = file.and_then(|file| file.set_modified(std::time::SystemTime::now()));
    }
}

/// The files that differ from the state that will be restored.
fn differences(project: &mut dyn EditedProject) -> BTreeMap<PathBuf, Difference> {
    let Ok(changes) = project.changes() else {
        return BTreeMap::new();
    };
    let root = project.files_root();
    let changed_files = changes.changes.iter().filter(|c| {
        c.entry_type == EntryType::File
            && c.kind != ChangeKind::Git
            && c.kind != ChangeKind::Deleted
    });
    let paths: Vec<PathBuf> = changed_files
        .map(|c| c.path.clone())
        .chain(changes.by_products.iter().map(|b| b.path.clone()))
        .collect();
    paths
        .into_iter()
        .map(|path| {
            let full_path = root.join(&path);
            let is_small = full_path
                .symlink_metadata()
                .is_ok_and(|m| m.is_file() && m.len() <= MAX_RESTORED_BYTES);
            let difference = Difference {
                existed: project.original(&path).is_some(),
                bytes: is_small.then(|| std::fs::read(full_path).ok()).flatten(),
            };
            (path, difference)
        })
        .collect()
}
