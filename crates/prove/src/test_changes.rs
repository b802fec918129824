//! What a change does to tests that existed before. Whether an edit of a test hides a regression is decided by running the
//! old version of the tests on the new code; what a test does not check any more is found by comparing its versions.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Serialize;
use similar::{ChangeTag, TextDiff};
use supervisor_text::words;
use supervisor_verify::falsify::FalsifiableTests;
use supervisor_verify::protected::role;
use supervisor_verify::{TestName, TestRun, TestState};

use crate::changed_tests::{TestFile, with_tests_of};
use crate::prove::ProofRun;
use crate::request::ProveError;

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
    /// It still passes in its old version, and an assertion of it was changed or removed.
    Weakened,
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
            TestChangeKind::Weakened => "an assertion was changed or removed",
            TestChangeKind::Edited => "edited; its old version still passes",
        };
        match (&self.test, &self.file, self.line) {
            (Some(test), Some(file), Some(line)) => {
                write!(f, "{}:{line}: `{test}`: {what}", file.display())
            }
            (Some(test), ..) => write!(f, "`{test}`: {what}"),
            (None, Some(file), Some(line)) => write!(f, "{}:{line}: {what}", file.display()),
            (None, Some(file), None) => write!(f, "{}: {what}", file.display()),
            (None, None, _) => f.write_str(what),
        }
    }
}

impl ProofRun<'_> {
    /// What became of existing tests. If their files lost lines, their old version is run on the new code.
    pub(crate) async fn test_changes(
        &mut self,
        before: &TestRun,
        after: &TestRun,
    ) -> Result<Vec<TestChange>, ProveError> {
        let mut found = lost(before, after);
        let old_files = self
            .finder()
            .changed_test_files(&self.change, before, |v| v.base.as_deref());
        let is_touched = |change: &TestChange| {
            change
                .test
                .as_ref()
                .is_some_and(|test| old_files.iter().any(|file| file.tests.contains(test)))
        };
        // Names with times or addresses differ from run to run. Only a second run without the change can show that.
        if !found.iter().all(is_touched) {
            let suite = self.suite.clone();
            let again = self
                .test_state("base again", &suite, |_, versions| versions.base.clone())
                .await?;
            let all = found.len();
            found.retain(|change| {
                is_touched(change)
                    || change
                        .test
                        .as_ref()
                        .is_none_or(|test| again.state(test) == before.state(test))
            });
            if found.len() < all {
                self.report.notes.push(format!(
                    "{} of the base differ from run to run and are not compared",
                    words::count(all - found.len(), "test name")
                ));
            }
        }
        let mut edited = Vec::new();
        let mut edited_files = Vec::new();
        for file in old_files {
            if let Some(line) = self.first_edited_line(&file.path) {
                edited.push(TestChange {
                    kind: TestChangeKind::Edited,
                    test: None,
                    file: Some(file.path.clone()),
                    line: Some(line),
                });
                edited_files.push(file);
            }
        }
        if edited.is_empty() {
            return Ok(found);
        }
        let tests: Vec<TestName> = edited_files
            .iter()
            .flat_map(|file| file.tests.iter().cloned())
            .collect();
        let ecosystem = self.suite.ecosystem();
        let old_tests = self
            .selected_state("old tests", &tests, move |path, versions| {
                if role(ecosystem, path).belongs_to_tests() {
                    return versions.base.clone();
                }
                with_tests_of(path, versions.change.as_deref(), versions.base.as_deref())
            })
            .await?;
        let changed = changed_expectations(before, after, &old_tests);
        let names: Vec<&TestName> = changed.iter().filter_map(|c| c.test.as_ref()).collect();
        let weakened: Vec<TestChange> = edited_files
            .iter()
            .flat_map(|file| self.weakened_tests(file))
            .filter(|change| {
                change
                    .test
                    .as_ref()
                    .is_none_or(|test| !names.contains(&test))
            })
            .collect();
        // Old tests that do not build with the new code were changed because an interface was.
        if changed.is_empty() && weakened.is_empty() {
            found.extend(edited);
        }
        found.extend(weakened);
        found.extend(changed);
        Ok(found)
    }

    /// The first line of the file's old tests that is gone.
    fn first_edited_line(&self, path: &Path) -> Option<usize> {
        let versions = &self.change.files[path];
        let finder = self.finder();
        let old = finder.tests_in(path, versions.base.as_deref())?;
        match finder.tests_in(path, versions.change.as_deref()) {
            Some(new) => first_lost_line(&old, &new),
            None => Some(1),
        }
    }

    /// Tests of an old file whose new version lacks assertions or values that the old one has.
    fn weakened_tests(&self, file: &TestFile) -> Vec<TestChange> {
        let versions = &self.change.files[&file.path];
        let Some(new) = versions
            .change
            .as_deref()
            .and_then(|bytes| std::str::from_utf8(bytes).ok())
        else {
            return Vec::new();
        };
        let relative = self.finder().suite_relative(&file.path);
        let find = |source: &str| FalsifiableTests::find(&relative, source, &file.tests);
        let (Some(old_tests), Some(new_tests)) = (find(&file.source), find(new)) else {
            return Vec::new();
        };
        let mut found: Vec<TestChange> = Vec::new();
        let mut seen: Vec<Range<usize>> = Vec::new();
        for test in &file.tests {
            let (Some(old_range), Some(new_range)) =
                (old_tests.range_of(test), new_tests.range_of(test))
            else {
                continue;
            };
            if seen.contains(&old_range) {
                continue;
            }
            if let Some(at) = first_lost_check(&file.source[old_range.clone()], &new[new_range]) {
                let line = file.source[..old_range.start + at].matches('\n').count() + 1;
                found.push(TestChange {
                    kind: TestChangeKind::Weakened,
                    test: Some(test.clone()),
                    file: Some(file.path.clone()),
                    line: Some(line),
                });
            }
            seen.push(old_range);
        }
        found
    }
}

/// Where the first assertion, comparison or literal is in `old` that `new` has fewer of, or the first line with an
/// assertion that is not the same in `new`. Moved and reformatted code loses nothing.
fn first_lost_check(old: &str, new: &str) -> Option<usize> {
    let words = |text: &str| text.replace(|c: char| c.is_whitespace() || c == ',', "");
    if words(old) == words(new) {
        return None;
    }
    let mut left: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, check) in checks(new) {
        *left.entry(check).or_default() += 1;
    }
    let lost = checks(old).into_iter().find_map(|(at, check)| {
        let is_there = left.get_mut(check).filter(|count| **count > 0);
        match is_there {
            Some(count) => {
                *count -= 1;
                None
            }
            None => Some(at),
        }
    });
    let changed_line = || {
        let mut at = 0;
        old.split_inclusive('\n').find_map(|line| {
            let start = at;
            at += line.len();
            let is_assertion = checks(line).iter().any(|(_, check)| {
                check.starts_with(|c: char| c.is_alphabetic() || matches!(c, '=' | '!' | '<' | '>'))
            });
            let is_kept = new.lines().any(|other| words(other) == words(line));
            (is_assertion && !is_kept).then_some(start)
        })
    };
    lost.or_else(changed_line)
}

/// The literals, comparisons and words for assertions in a text, with their positions.
fn checks(text: &str) -> Vec<(usize, &str)> {
    const WORDS: [&str; 18] = [
        "assert", "expect", "should", "must", "require", "refute", "fail", "fatal", "error",
        "raise", "throw", "panic", "equal", "contain", "match", "tobe", "check", "verify",
    ];
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let at = text.len() - rest.len();
        let length = match first {
            '"' | '\'' | '`' => string_length(rest),
            '=' | '!' | '<' | '>' | '~' => rest
                .find(|c| !matches!(c, '=' | '!' | '<' | '>' | '~'))
                .unwrap_or(rest.len()),
            _ if is_word(first) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let token = &rest[..length];
        let lower = token.to_lowercase();
        let counts = match first {
            '"' | '\'' | '`' => true,
            // One sign alone is an assignment, a type or an arrow as often as a comparison.
            '=' | '!' | '<' | '>' | '~' => token.len() > 1,
            _ if first.is_ascii_digit() => true,
            _ => WORDS.iter().any(|word| lower.contains(word)),
        };
        if counts {
            found.push((at, token));
        }
        rest = &rest[length..];
    }
    found
}

/// How long the literal is that a text begins with; one character if it does not end on its line.
fn string_length(text: &str) -> usize {
    let quote = text.chars().next().unwrap_or('"');
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '\n' => break,
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    1
}

/// Tests that are gone or skipped with the change.
fn lost(before: &TestRun, after: &TestRun) -> Vec<TestChange> {
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

/// Tests that pass now, and whose old version fails on the new code.
fn changed_expectations(
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
        .named()
        .map(|(name, _)| name)
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
    fn lost_assertions_and_values_are_found() {
        let lost = |old: &str, new: &str| first_lost_check(old, new).map(|at| old[at..].to_owned());
        assert_eq!(lost("assert f(2) == 4", "assert f(2)").unwrap(), "== 4");
        assert_eq!(
            lost("assert a == 0.5, 'x'", "assert a == 5.5, 'x'").unwrap(),
            "0.5, 'x'"
        );
        assert_eq!(
            lost("f(1)\nassert g(2)", "assert   g(2)\nf(1)\nassert h(3)"),
            None
        );
        assert_eq!(
            lost("it's", "its"),
            Some(String::from("'s")),
            "an open quote"
        );
    }

    #[test]
    fn added_lines_lose_nothing() {
        assert_eq!(first_lost_line("a\nb\n", "a\nnew\nb\n"), None);
        assert_eq!(first_lost_line("a\n\nb\n", "a\nb\n"), None, "a blank line");
        assert_eq!(first_lost_line("a\nb\n", "a\nc\n"), Some(2));
    }
}
