//! Resolves a path as a model wrote it to a file of the project. Only spelling is decided here; the
//! workspace decides which paths may be edited.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use icu_normalizer::ComposingNormalizerBorrowed;

use super::rule::ParseRule;
use super::{EditAnswerError, ProjectFacts};

/// The files of the project, with constant-time lookup by name.
pub(super) struct FileLookup<'f> {
    pub(super) facts: &'f dyn ProjectFacts,
    names: HashSet<&'f str>,
    folded: HashMap<String, Vec<&'f str>>,
    /// Top-level directories.
    top_dirs: HashSet<&'f str>,
}

impl<'f> FileLookup<'f> {
    pub(super) fn new(facts: &'f dyn ProjectFacts) -> Self {
        let mut folded: HashMap<String, Vec<&'f str>> = HashMap::new();
        for path in facts.paths() {
            folded.entry(fold(path)).or_default().push(path);
        }
        let top_dirs = facts
            .paths()
            .iter()
            .filter_map(|path| path.split_once('/'))
            .map(|(top, _)| top)
            .collect();
        Self {
            facts,
            names: facts.paths().iter().map(String::as_str).collect(),
            folded,
            top_dirs,
        }
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        self.names.contains(path)
    }

    pub(super) fn is_protected(&self, path: &str) -> bool {
        self.facts.is_protected(path)
    }

    /// The text of an existing file.
    pub(super) fn text(&self, path: &str) -> Option<String> {
        self.exists(path).then(|| self.facts.text(path)).flatten()
    }
}

/// A path for the workspace, and the rules that led to it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ResolvedPath {
    pub(super) path: String,
    pub(super) rules: Vec<ParseRule>,
}

/// The existing file with this name, in any spelling; `None` if there is none, or more than one.
pub(super) fn find_file(written: &str, facts: &FileLookup<'_>) -> Option<String> {
    let resolved = resolve(written, facts).ok()?;
    facts.exists(&resolved.path).then_some(resolved.path)
}

/// Resolves a path. A path outside the root is left unchanged, for the workspace to reject.
pub(super) fn resolve(
    written: &str,
    facts: &FileLookup<'_>,
) -> Result<ResolvedPath, EditAnswerError> {
    let mut rules = Vec::new();
    let trimmed = written.trim().trim_matches(['`', '"', '\'', '*']);
    let trimmed = trimmed.strip_prefix("file://").unwrap_or(trimmed);
    let mut path: Cow<'_, str> = Cow::Borrowed(trimmed.strip_prefix("./").unwrap_or(trimmed));
    if path.contains('\\') && !facts.exists(&path) {
        path = Cow::Owned(path.replace('\\', "/").trim_start_matches("./").to_owned());
        rules.push(ParseRule::OtherSpelling);
    }
    if let Some(below) = below_root(&path, facts) {
        rules.push(ParseRule::AbsolutePath);
        path = Cow::Owned(below);
    }
    if facts.exists(&path) {
        return Ok(ResolvedPath {
            path: path.into_owned(),
            rules,
        });
    }
    if let Some(inside) = after_project_name(&path, facts) {
        rules.push(ParseRule::ProjectName);
        path = Cow::Owned(inside);
        if facts.exists(&path) {
            return Ok(ResolvedPath {
                path: path.into_owned(),
                rules,
            });
        }
    }
    match other_spelling(&path, facts) {
        OtherSpelling::One(known) => {
            rules.push(ParseRule::OtherSpelling);
            Ok(ResolvedPath { path: known, rules })
        }
        OtherSpelling::None => Ok(ResolvedPath {
            path: path.into_owned(),
            rules,
        }),
        OtherSpelling::Several(known) => Err(EditAnswerError::AmbiguousPath {
            path: path.into_owned(),
            known,
        }),
    }
}

/// The relative form of an absolute path below the root, or of one that treats the project as `/`,
/// if that file exists.
fn below_root(path: &str, facts: &FileLookup<'_>) -> Option<String> {
    let inside = path.strip_prefix('/')?;
    let root = facts.facts.root().to_str()?.trim_end_matches('/');
    if let Some(rest) = path
        .strip_prefix(root)
        .and_then(|rest| rest.strip_prefix('/'))
    {
        return Some(rest.to_owned());
    }
    facts.exists(inside).then(|| inside.to_owned())
}

/// Strips the project name: `demo/src/lib.rs` becomes `src/lib.rs` in a project in `…/demo` that
/// has no `demo` directory.
fn after_project_name(path: &str, facts: &FileLookup<'_>) -> Option<String> {
    let name = facts.facts.root().file_name()?.to_str()?;
    let inside = path.strip_prefix(name)?.strip_prefix('/')?;
    let is_real = facts.top_dirs.contains(name);
    (!inside.is_empty() && (!is_real || facts.exists(inside))).then(|| inside.to_owned())
}

enum OtherSpelling {
    None,
    One(String),
    Several(Vec<String>),
}

/// An existing file whose name differs only in case or Unicode form; else the only editable file
/// with this bare name.
fn other_spelling(path: &str, facts: &FileLookup<'_>) -> OtherSpelling {
    let known = facts.folded.get(&fold(path));
    let mut similar: Vec<String> = known
        .into_iter()
        .flatten()
        .map(|known| (*known).to_owned())
        .collect();
    if similar.is_empty() && !path.contains('/') {
        let named = |known: &&String| known.rsplit('/').next() == Some(path);
        similar = facts
            .facts
            .editable()
            .iter()
            .filter(named)
            .cloned()
            .collect();
        if similar.len() > 1 {
            // It may be a new file at the top level.
            similar.clear();
        }
    }
    match similar.len() {
        0 => OtherSpelling::None,
        1 => OtherSpelling::One(similar.remove(0)),
        _ => OtherSpelling::Several(similar),
    }
}

/// Folds a path as a case-insensitive, Unicode-normalizing file system would.
pub(super) fn fold(path: &str) -> String {
    if path.is_ascii() {
        return path.to_ascii_lowercase();
    }
    ComposingNormalizerBorrowed::new_nfc()
        .normalize(path)
        .to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::super::tests::SampleProject;
    use super::*;

    fn resolved(path: &str) -> String {
        let facts = SampleProject::new(&[
            ("src/lib.rs", ""),
            ("src/caf\u{e9}.rs", ""),
            ("a/X.py", ""),
            ("a/x.py", ""),
        ]);
        resolve(path, &FileLookup::new(&facts))
            .map_or_else(|e| e.to_string(), |resolved| resolved.path)
    }

    #[test]
    fn every_spelling_resolves_to_the_file() {
        for path in [
            "src/lib.rs",
            "./src/lib.rs",
            "`src/lib.rs`",
            "/p/demo/src/lib.rs",
            "/src/lib.rs",
            "demo/src/lib.rs",
            "src\\lib.rs",
            "Src/Lib.rs",
            "lib.rs",
        ] {
            assert_eq!(resolved(path), "src/lib.rs", "{path}");
        }
        assert_eq!(resolved("src/cafe\u{301}.rs"), "src/caf\u{e9}.rs");
    }

    #[test]
    fn outside_paths_are_unchanged() {
        for path in [
            "/etc/passwd",
            "../x",
            "/p/demo2/src/lib.rs",
            "~/x.rs",
            "src/new.rs",
            "new.rs",
            "/p/demo",
        ] {
            assert_eq!(resolved(path), path, "{path}");
        }
        assert!(
            resolved("A/X.PY").contains("`a/X.py`"),
            "{}",
            resolved("A/X.PY")
        );
    }
}
