//! Finds the test file that contains a test title, for runners that report titles without files.

use std::path::{Path, PathBuf};

use super::detect::read_small_file;
use super::protected::{FileRole, role};
use supervisor_languages::Language;

/// A test file and its text.
pub(super) struct TestFileText {
    /// Relative to the directory in which the tests run.
    pub(super) path: String,
    pub(super) text: String,
}

impl TestFileText {
    fn has_title(&self, title: &str) -> bool {
        self.text.contains(title)
    }
}

/// Reads all files that are tests by their names.
pub(super) fn read_test_files(root: &Path, language: &'static Language) -> Vec<TestFileText> {
    const MAX_FILES: usize = 2_000;
    let walk = ignore::WalkBuilder::new(root)
        .max_depth(Some(8))
        .require_git(false)
        .build();
    let files = walk
        .flatten()
        .take(20_000)
        .filter(|e| e.file_type().is_some_and(|t| t.is_file()));
    let relative: Vec<PathBuf> = files
        .filter_map(|e| Some(e.path().strip_prefix(root).ok()?.to_owned()))
        .collect();
    let tests = relative
        .into_iter()
        .filter(|p| role(Some(language), p) == FileRole::Test);
    let read = |path: PathBuf| {
        Some(TestFileText {
            text: read_small_file(&root.join(&path))?,
            path: path.display().to_string(),
        })
    };
    tests.filter_map(read).take(MAX_FILES).collect()
}

/// The only file that contains this title. `None` if several do, or if the title is generated at run time.
pub(super) fn find_file_with_title<'a>(
    mut files: impl Iterator<Item = &'a TestFileText>,
    title: &str,
) -> Option<&'a TestFileText> {
    let first = files.by_ref().find(|file| file.has_title(title))?;
    files.all(|file| !file.has_title(title)).then_some(first)
}
