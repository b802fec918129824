//! The arguments of `review`, and the target they describe.

use serde::{Deserialize, Deserializer};

use crate::common::{filled, params};

params!(ReviewParams {
    /// Paths to review whole; without files and base: the uncommitted work
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_more")]
    files: Vec<String>,
    /// Or a commit: what changed since, uncommitted work included
    base: Option<String>,
    /// Compare base with this commit only
    head: Option<String>,
    /// Only what is staged
    #[serde(default)]
    staged: bool,
    /// One per line, each judged
    requirements: Option<String>,
});

/// The files or the change to review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReviewTarget {
    Files(Vec<String>),
    /// What changed since `base`; without one, since the last commit.
    Change {
        base: Option<String>,
        until: ChangeEnd,
    },
}

/// Where a change ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChangeEnd {
    Commit(String),
    Staged,
    /// Staged, unstaged and untracked.
    WorkingTree,
}

impl ReviewParams {
    /// The files or the range to review. The error is a message for the caller.
    pub(super) fn target(&self) -> Result<ReviewTarget, String> {
        let files: Vec<String> = self
            .files
            .iter()
            .filter_map(|file| filled(Some(file)))
            .collect();
        let (base, head) = (filled(self.base.as_deref()), filled(self.head.as_deref()));
        let no_files = files.is_empty();
        match (no_files, base, head, self.staged) {
            (false, None, None, false) => Ok(ReviewTarget::Files(files)),
            (false, ..) => Err(String::from(
                "give `files`, or `base`, `head` and `staged`, not both: one review looks at one of the two",
            )),
            (true, _, Some(_), true) => Err(String::from(
                "give `head` or `staged`, not both: a commit holds nothing that is staged",
            )),
            (true, None, Some(_), false) => Err(String::from(
                "`head` needs `base`: the commit since which changes are reviewed, such as `main`",
            )),
            (true, base, head, staged) => Ok(ReviewTarget::Change {
                base,
                until: match head {
                    Some(head) => ChangeEnd::Commit(head),
                    None if staged => ChangeEnd::Staged,
                    None => ChangeEnd::WorkingTree,
                },
            }),
        }
    }
}

/// Accepts a single path in place of a list.
fn one_or_more<'de, D: Deserializer<'de>>(given: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a list of paths")]
    enum GivenPaths {
        One(String),
        More(Vec<String>),
    }
    GivenPaths::deserialize(given).map(|given| match given {
        GivenPaths::One(file) => vec![file],
        GivenPaths::More(files) => files,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_change_are_mutually_exclusive() {
        let target = |files: &[&str], base: Option<&str>, head: Option<&str>, staged: bool| {
            let files = files.iter().map(|&f| f.into()).collect();
            ReviewParams {
                files,
                base: base.map(Into::into),
                head: head.map(Into::into),
                staged,
                ..Default::default()
            }
            .target()
        };
        let change = |base: Option<&str>, until: ChangeEnd| {
            let base = base.map(Into::into);
            Ok(ReviewTarget::Change { base, until })
        };
        assert_eq!(
            target(&["a", " "], Some(""), None, false),
            Ok(ReviewTarget::Files(vec!["a".into()]))
        );
        for (base, head, staged, expected) in [
            (Some("main"), None, false, ChangeEnd::WorkingTree),
            (Some("main"), None, true, ChangeEnd::Staged),
            (Some("a"), Some("b"), false, ChangeEnd::Commit("b".into())),
            (None, None, false, ChangeEnd::WorkingTree),
            (None, None, true, ChangeEnd::Staged),
        ] {
            assert_eq!(
                target(&[""], base, head, staged),
                change(base, expected),
                "{base:?} {head:?} {staged}"
            );
        }
        for (files, base, head, staged, words) in [
            ("a", Some("main"), None, false, "not both"),
            ("a", None, Some("x"), false, "not both"),
            ("a", None, None, true, "not both"),
            ("", Some("main"), Some("x"), true, "`head` or `staged`"),
            ("", None, Some("x"), false, "`head` needs `base`"),
        ] {
            let refused = target(&[files], base, head, staged);
            assert!(
                refused.as_ref().is_err_and(|e| e.contains(words)),
                "{refused:?}"
            );
        }
    }
}
