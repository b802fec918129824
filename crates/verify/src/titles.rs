//! Test files by the titles written in them, for runners that print titles without their files.

use std::path::{Path, PathBuf};

use super::detect::read_small;
use super::sealed::{FileRole, role};
use supervisor_languages::Language;

/// A file that holds tests.
pub(super) struct TitledFile {
    /// Relative to where the tests run.
    pub(super) path: String,
    pub(super) text: String,
}

impl TitledFile {
    fn holds(&self, title: &str) -> bool {
        self.text.contains(title)
    }
}

/// Files that hold tests, by their names.
pub(super) fn titled_files(root: &Path, language: &'static Language) -> Vec<TitledFile> {
    const MOST: usize = 2_000;
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
        Some(TitledFile {
            text: read_small(&root.join(&path))?,
            path: path.display().to_string(),
        })
    };
    tests.filter_map(read).take(MOST).collect()
}

/// The one file among `files` that holds this title; `None` if it stands in several, or is made while the tests run.
pub(super) fn only_holder<'a>(
    mut files: impl Iterator<Item = &'a TitledFile>,
    title: &str,
) -> Option<&'a TitledFile> {
    let first = files.by_ref().find(|file| file.holds(title))?;
    files.all(|file| !file.holds(title)).then_some(first)
}
