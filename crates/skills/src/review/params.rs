//! The arguments of `review`, and the target they describe.

use serde::{Deserialize, Deserializer};

use crate::common::{filled, params};

params!(ReviewParams {
    /// Paths to review
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_more")]
    files: Vec<String>,
    /// Or a commit: what `head` changed since
    base: Option<String>,
    /// Default `HEAD`
    head: Option<String>,
    /// One per line, each judged
    requirements: Option<String>,
});

/// The files or commits to review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReviewTarget {
    Files(Vec<String>),
    Range { base: String, head: String },
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
        match (files.is_empty(), base, head) {
            (false, None, None) => Ok(ReviewTarget::Files(files)),
            (true, Some(base), head) => Ok(ReviewTarget::Range {
                base,
                head: head.unwrap_or_else(|| String::from("HEAD")),
            }),
            (true, None, None) => Err(String::from(
                "there is nothing to review: give `files` (paths in the project), or `base` (a commit to compare `head` with)",
            )),
            (true, None, Some(_)) => Err(String::from(
                "`head` needs `base`: the commit since which changes are reviewed, such as `main`",
            )),
            (false, ..) => Err(String::from(
                "give `files` or `base` and `head`, not both: one review looks at one of the two",
            )),
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
    fn files_and_range_are_mutually_exclusive() {
        let target = |files: &[&str], base: Option<&str>, head: Option<&str>| {
            let files = files.iter().map(|&f| f.into()).collect();
            ReviewParams {
                files,
                base: base.map(Into::into),
                head: head.map(Into::into),
                ..Default::default()
            }
            .target()
        };
        assert_eq!(
            target(&["a", " "], Some(""), None),
            Ok(ReviewTarget::Files(vec!["a".into()]))
        );
        assert_eq!(
            target(&[], Some("main"), None),
            Ok(ReviewTarget::Range {
                base: "main".into(),
                head: "HEAD".into()
            })
        );
        assert!(target(&["a"], Some("main"), None).is_err_and(|e| e.contains("not both")));
        assert!(target(&["a"], None, Some("x")).is_err_and(|e| e.contains("not both")));
        assert!(target(&[], None, Some("x")).is_err_and(|e| e.contains("`head` needs `base`")));
        assert!(target(&[""], None, Some(" ")).is_err_and(|e| e.contains("nothing to review")));
    }
}
