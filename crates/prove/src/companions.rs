//! The files that tests use: tables and helpers in other test files, fixtures, golden files and snapshots. What they expect
//! is changed as well.

use std::path::{Path, PathBuf};

use supervisor_languages::{GO, Language, is_built_dir, is_installed_dir};
use supervisor_verify::falsify::FalsifiableTests;
use supervisor_verify::protected::role;

/// Larger files are not read.
const MAX_BYTES: u64 = 512 << 10;
/// Larger projects are not searched to the end.
const MAX_ENTRIES: usize = 20_000;
const MAX_COMPANIONS: usize = 24;

/// Adds the files that the tests of `test` use, as their text says.
pub(crate) fn add_companions(tests: &mut FalsifiableTests, root: &Path, test: &Path) {
    let language = Language::of_path(test);
    let source = tests.text().to_owned();
    let mut found = 0;
    for path in files_below(root) {
        if found == MAX_COMPANIONS {
            return;
        }
        if path == test
            || !role(language, &path).belongs_to_tests()
            || !is_used(&source, language, test, &path)
        {
            continue;
        }
        let full = root.join(&path);
        let is_small = full.symlink_metadata().is_ok_and(|m| m.len() <= MAX_BYTES);
        if let Some(text) = is_small
            .then(|| std::fs::read_to_string(full).ok())
            .flatten()
        {
            tests.add_companion(&path, &text);
            found += 1;
        }
    }
}

/// Whether the source of `test` names this file: by its name, its module, its directory and extension, or because it is a
/// snapshot of the test.
pub(crate) fn is_used(
    source: &str,
    language: Option<&'static Language>,
    test: &Path,
    path: &Path,
) -> bool {
    let text_of = |part: Option<&std::ffi::OsStr>| {
        part.map(|part| part.to_string_lossy().into_owned())
            .unwrap_or_default()
    };
    let (name, stem) = (text_of(path.file_name()), text_of(path.file_stem()));
    if let Some(other) = Language::of_path(path) {
        // A Go package is all files of its directory.
        return Some(other) == language
            && if other == &GO {
                path.parent() == test.parent()
            } else {
                mentions(source, &stem)
            };
    }
    let dir = text_of(path.parent().and_then(Path::file_name));
    let extension = text_of(path.extension());
    let is_snapshot = extension == "snap"
        && [test.file_name(), test.file_stem()]
            .into_iter()
            .any(|own| !text_of(own).is_empty() && name.contains(&text_of(own)));
    source.contains(&name)
        || is_snapshot
        || (!dir.is_empty()
            && mentions_as_last(source, &dir)
            && !extension.is_empty()
            && source.contains(&format!(".{extension}")))
}

fn is_word_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether a text has this name as a word.
pub fn mentions(text: &str, name: &str) -> bool {
    rests_after(text, name).next().is_some()
}

/// Whether a text names this directory, and not only the path of something in it: `golden/*.txt`, but not `golden/a.txt`.
fn mentions_as_last(text: &str, dir: &str) -> bool {
    rests_after(text, dir).any(|rest| {
        !rest
            .strip_prefix(['/', '\\'])
            .is_some_and(|below| below.starts_with(is_word_part))
    })
}

/// What follows each mention of a name.
fn rests_after<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    let mentions = text.match_indices(name).filter_map(move |(at, _)| {
        let rest = &text[at + name.len()..];
        let is_word = !text[..at].ends_with(is_word_part) && !rest.starts_with(is_word_part);
        is_word.then_some(rest)
    });
    mentions.filter(move |_| name.len() > 1)
}

/// The files of a project, without hidden, installed and built ones.
pub fn files_below(root: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut dirs = vec![PathBuf::new()];
    let mut seen = 0;
    while let Some(dir) = dirs.pop() {
        let entries = std::fs::read_dir(root.join(&dir)).into_iter().flatten();
        for entry in entries.flatten() {
            seen += 1;
            if seen > MAX_ENTRIES {
                return files;
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = dir.join(&name);
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => {
                    let is_beside = |file: &str| root.join(&dir).join(file).exists();
                    if !(name.starts_with('.')
                        || is_installed_dir(&name, is_beside)
                        || is_built_dir(&name))
                    {
                        dirs.push(path);
                    }
                }
                Ok(kind) if kind.is_file() => files.push(path),
                _ => {}
            }
        }
    }
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_the_test_uses_are_added() {
        let source = "cases = json.load(open('tests/data/cases.json'))\nfrom helpers import check\nfor f in glob('tests/golden/*.txt'): pass\n";
        let is_used = |path: &str| {
            let test = Path::new("tests/test_a.py");
            super::is_used(source, Language::of_path(test), test, Path::new(path))
        };
        for used in [
            "tests/data/cases.json",
            "tests/helpers.py",
            "tests/golden/one.txt",
            "tests/__snapshots__/test_a.snap",
        ] {
            assert!(is_used(used), "{used}");
        }
        for other in ["tests/data/other.json", "tests/test_b.py", "tests/a.txt"] {
            assert!(!is_used(other), "{other}");
        }
        let go = |path: &str| {
            let test = Path::new("a/a_test.go");
            super::is_used("package a", Language::of_path(test), test, Path::new(path))
        };
        assert!(go("a/cases_test.go") && !go("b/cases_test.go"));
    }
}
