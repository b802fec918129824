//! Which file of the project is meant by a path as a model wrote it? Only spelling is decided here; what may be edited is
//! the workspace's to say, and it says so for every path that comes out of here.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use icu_normalizer::ComposingNormalizerBorrowed;

use super::rule::ReadingRule;
use super::{ProjectFacts, UnreadableAnswer};

/// The files of the project, looked up by name in constant time.
pub(super) struct KnownFiles<'f> {
    pub(super) facts: &'f dyn ProjectFacts,
    names: HashSet<&'f str>,
    folded: HashMap<String, Vec<&'f str>>,
    /// Directories at the top.
    tops: HashSet<&'f str>,
}

impl<'f> KnownFiles<'f> {
    pub(super) fn new(facts: &'f dyn ProjectFacts) -> Self {
        let mut folded: HashMap<String, Vec<&'f str>> = HashMap::new();
        for path in facts.paths() {
            folded.entry(fold(path)).or_default().push(path);
        }
        let tops = facts
            .paths()
            .iter()
            .filter_map(|path| path.split_once('/'))
            .map(|(top, _)| top)
            .collect();
        Self {
            facts,
            names: facts.paths().iter().map(String::as_str).collect(),
            folded,
            tops,
        }
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        self.names.contains(path)
    }

    pub(super) fn is_sealed(&self, path: &str) -> bool {
        self.facts.is_sealed(path)
    }

    /// The text of a file that is there.
    pub(super) fn text(&self, path: &str) -> Option<String> {
        self.exists(path).then(|| self.facts.text(path)).flatten()
    }
}

/// A path as the workspace takes it, and the rules that led to it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ResolvedPath {
    pub(super) path: String,
    pub(super) rules: Vec<ReadingRule>,
}

/// The file that is there under this name, however it is spelt; `None` if there is none, or more than one.
pub(super) fn find_file(written: &str, facts: &KnownFiles<'_>) -> Option<String> {
    let resolved = resolve(written, facts).ok()?;
    facts.exists(&resolved.path).then_some(resolved.path)
}

/// The path that is meant. A path that cannot be beneath the root is left as it is, for the workspace to refuse.
pub(super) fn resolve(
    written: &str,
    facts: &KnownFiles<'_>,
) -> Result<ResolvedPath, UnreadableAnswer> {
    let mut rules = Vec::new();
    let tidy = written.trim().trim_matches(['`', '"', '\'', '*']);
    let tidy = tidy.strip_prefix("file://").unwrap_or(tidy);
    let mut path: Cow<'_, str> = Cow::Borrowed(tidy.strip_prefix("./").unwrap_or(tidy));
    if path.contains('\\') && !facts.exists(&path) {
        path = Cow::Owned(path.replace('\\', "/").trim_start_matches("./").to_owned());
        rules.push(ReadingRule::OtherSpelling);
    }
    if let Some(beneath) = beneath_root(&path, facts) {
        rules.push(ReadingRule::AbsolutePath);
        path = Cow::Owned(beneath);
    }
    if facts.exists(&path) {
        return Ok(ResolvedPath {
            path: path.into_owned(),
            rules,
        });
    }
    if let Some(inside) = after_project_name(&path, facts) {
        rules.push(ReadingRule::ProjectName);
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
            rules.push(ReadingRule::OtherSpelling);
            Ok(ResolvedPath { path: known, rules })
        }
        OtherSpelling::None => Ok(ResolvedPath {
            path: path.into_owned(),
            rules,
        }),
        OtherSpelling::Several(known) => Err(UnreadableAnswer::AmbiguousPath {
            path: path.into_owned(),
            known,
        }),
    }
}

/// An absolute path beneath the root; or one that takes the project for the root of everything, if that file is there.
fn beneath_root(path: &str, facts: &KnownFiles<'_>) -> Option<String> {
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

/// `demo/src/lib.rs` for `src/lib.rs` in a project that lies in `…/demo` and holds no `demo` itself.
fn after_project_name(path: &str, facts: &KnownFiles<'_>) -> Option<String> {
    let name = facts.facts.root().file_name()?.to_str()?;
    let inside = path.strip_prefix(name)?.strip_prefix('/')?;
    let is_real = facts.tops.contains(name);
    (!inside.is_empty() && (!is_real || facts.exists(inside))).then(|| inside.to_owned())
}

enum OtherSpelling {
    None,
    One(String),
    Several(Vec<String>),
}

/// A file that is there under a name which differs only in case or Unicode form; else the one file that may be edited
/// and has this bare name.
fn other_spelling(path: &str, facts: &KnownFiles<'_>) -> OtherSpelling {
    let known = facts.folded.get(&fold(path));
    let mut alike: Vec<String> = known
        .into_iter()
        .flatten()
        .map(|known| (*known).to_owned())
        .collect();
    if alike.is_empty() && !path.contains('/') {
        let named = |known: &&String| known.rsplit('/').next() == Some(path);
        alike = facts
            .facts
            .editable()
            .iter()
            .filter(named)
            .cloned()
            .collect();
        if alike.len() > 1 {
            // A new file at the top, perhaps.
            alike.clear();
        }
    }
    match alike.len() {
        0 => OtherSpelling::None,
        1 => OtherSpelling::One(alike.remove(0)),
        _ => OtherSpelling::Several(alike),
    }
}

/// As a file system without case and with one Unicode form would compare it.
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
        resolve(path, &KnownFiles::new(&facts))
            .map_or_else(|e| e.to_string(), |resolved| resolved.path)
    }

    #[test]
    fn each_spelling_leads_to_the_file_that_is_there() {
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
    fn what_is_not_beneath_the_root_stays_what_it_is() {
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
