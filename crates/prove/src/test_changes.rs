//! What a change does to tests that existed before. Whether an edit of a test hides a regression is decided by running the
//! old version of the tests on the new code, not by reading the edit.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use similar::{ChangeTag, TextDiff};
use supervisor_verify::{TestName, TestRun, TestState};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TestChange {
    pub kind: TestChangeKind,
    pub test: Option<TestName>,
    pub file: Option<PathBuf>,
    /// The first line of the old file that is gone.
    pub line: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TestChangeKind {
    /// It ran on the base and does not exist any more.
    Deleted,
    /// It ran on the base and is skipped now.
    Skipped,
    /// Its old version fails on the new code, its new version passes.
    ExpectationChanged,
    /// Lines of an existing test file changed, and its old version still passes.
    Edited,
}

impl TestChange {
    fn of_test(kind: TestChangeKind, test: &TestName) -> Self {
        Self {
            kind,
            test: Some(test.clone()),
            file: None,
            line: None,
        }
    }

    /// Whether a proof needs the user's permission for it.
    pub fn needs_permission(&self) -> bool {
        self.kind != TestChangeKind::Edited
    }

    /// Whether one of these names, given by the user, allows it. `*` allows everything.
    pub fn is_allowed_by(&self, names: &[String]) -> bool {
        names.iter().any(|name| {
            name == "*"
                || self
                    .test
                    .as_ref()
                    .is_some_and(|test| test.0.contains(name.as_str()))
                || self.file.as_deref() == Some(Path::new(name))
        })
    }
}

impl fmt::Display for TestChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            TestChangeKind::Deleted => "deleted",
            TestChangeKind::Skipped => "skipped now",
            TestChangeKind::ExpectationChanged => "its old version fails on the new code",
            TestChangeKind::Edited => "edited; its old version still passes",
        };
        match (&self.test, &self.file, self.line) {
            (Some(test), ..) => write!(f, "`{test}`: {what}"),
            (None, Some(file), Some(line)) => write!(f, "{}:{line}: {what}", file.display()),
            (None, Some(file), None) => write!(f, "{}: {what}", file.display()),
            (None, None, _) => f.write_str(what),
        }
    }
}

/// Tests that are gone or skipped with the change.
pub(crate) fn lost(before: &TestRun, after: &TestRun) -> Vec<TestChange> {
    let ran = before
        .named()
        .filter(|(_, state)| !matches!(state, TestState::Skipped))
        .map(|(name, _)| name);
    ran.filter_map(|name| match after.state(name) {
        None => Some(TestChange::of_test(TestChangeKind::Deleted, name)),
        Some(TestState::Skipped) => Some(TestChange::of_test(TestChangeKind::Skipped, name)),
        Some(_) => None,
    })
    .collect()
}

/// Tests that passed on the base, and whose old version fails on the new code.
pub(crate) fn changed_expectations(
    before: &TestRun,
    after: &TestRun,
    old_tests_on_new_code: &TestRun,
) -> Vec<TestChange> {
    let fails_now = |name: &&TestName| {
        matches!(
            old_tests_on_new_code.state(name),
            Some(TestState::Failed(_))
        ) && matches!(after.state(name), Some(TestState::Passed))
    };
    before
        .passed()
        .filter(fails_now)
        .map(|name| TestChange::of_test(TestChangeKind::ExpectationChanged, name))
        .collect()
}

/// The first line of `old` that `new` does not have; `None` if lines were only added.
pub(crate) fn first_lost_line(old: &str, new: &str) -> Option<usize> {
    TextDiff::from_lines(old, new)
        .iter_all_changes()
        .filter(|change| change.tag() == ChangeTag::Delete && !change.value().trim().is_empty())
        .find_map(|change| change.old_index())
        .map(|index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_lines_lose_nothing() {
        assert_eq!(first_lost_line("a\nb\n", "a\nnew\nb\n"), None);
        assert_eq!(first_lost_line("a\n\nb\n", "a\nb\n"), None, "a blank line");
        assert_eq!(first_lost_line("a\nb\n", "a\nc\n"), Some(2));
    }
}
