//! Falsifies passing tests: changes them so that they must fail, and runs them again. A test that still passes proves
//! nothing, whatever the reason: an equality that always holds, a patched assertion, a forged report, an answer read from
//! the test file. This check works without knowing how a run could be faked.
//!
//! `queries/<language>/expectations.scm` finds the parts of a test file:
//!
//! - tests: `@test` and `@group` with their `@title`, and a `@suite` named by the test; the `@body` to append to, the
//!   `@expression` that is a whole body, the `@tail` that a body evaluates to
//! - literals: `@number`, `@text`, `@char`, `@flag`, `@nothing`, `@pattern`
//! - assertions: two sides are `@equal` (`@left` and `@right`, or `@sides` as tokens between brackets); a `@condition`
//!   holds (or `@conditions` as tokens; `@flip` is the word to replace by its opposite); an `@error` is raised
//! - `@binding`s of a `@name` to a `@value`
//! - `@table`s of `@rows` whose columns are `@params`
//! - constructs that can keep a statement from running: `@return`, `@scope`, `@maybe`
//!
//! Settings of a query are templates: `fails` is an assertion that two unequal numbers are equal; `negated`, `flips` and
//! `other` are replacement texts; `wrapped` adds a statement after an expression; `instead` is a value that equals nothing
//! else, for languages where types do not matter; `expected` is the side that holds the expected value.

mod actual_value;
mod added_failure;
mod expectation;
mod lists;
mod literal;
mod run;
mod tables;
mod test_source;

use std::ops::Range;
use std::path::Path;

use super::outcome::{TestName, TestRun};
use supervisor_languages::Language;
use test_source::TestSource;

pub use run::{Falsification, FalsificationVerdict, FalsifiedFileRunner, falsify};

/// The target tests of one file, ready to be falsified.
#[derive(Debug)]
pub struct FalsifiableTests {
    source: TestSource,
    /// For each target found in the file: its site and its names in the run (several if it has table rows).
    targets: Vec<FalsifiableTest>,
    /// Targets that were not found in the file.
    missing: Vec<TestName>,
}

#[derive(Debug, Clone)]
struct FalsifiableTest {
    site: usize,
    names: Vec<TestName>,
}

/// The test file with falsified targets.
#[derive(Debug, Clone)]
pub(super) struct FalsifiedText {
    pub(super) text: String,
    pub(super) tests: Vec<FalsifiedTest>,
}

/// One falsified test, which must fail.
#[derive(Debug, Clone)]
pub(super) struct FalsifiedTest {
    target: usize,
    names: Vec<TestName>,
    /// The changed expectation, for messages.
    new_value: String,
    /// The test must fail: the changed code is always reached, and the changed value is not an input.
    is_sure: bool,
    /// All of its names must fail, not only one row.
    in_every_row: bool,
    /// One of its rows may have a different name now.
    may_rename: bool,
    /// The index of the changed expectation, so that a retry can pick another one.
    choice: usize,
}

/// A replacement in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextEdit {
    range: Range<usize>,
    text: String,
}

/// The literal inputs of an assertion and the literal that it expects, as written in the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectation {
    pub inputs: Vec<String>,
    pub value: String,
}

impl FalsifiableTests {
    /// The literal inputs and expected values of the targets.
    pub fn expectations(&self) -> Vec<Expectation> {
        self.targets
            .iter()
            .flat_map(|target| expectation::literal_expectations(&self.source, target.site))
            .collect()
    }

    /// Finds the targets in their file. `None` if the language is unknown or the file cannot be parsed.
    pub fn find(path: &Path, source: &str, targets: &[TestName]) -> Option<Self> {
        let source = parse_source(path, source)?;
        let mut found: Vec<FalsifiableTest> = Vec::new();
        let mut missing = Vec::new();
        for name in targets {
            let Some(site) = source.site_of(name) else {
                missing.push(name.clone());
                continue;
            };
            match found.iter_mut().find(|test| test.site == site) {
                Some(test) => test.names.push(name.clone()),
                None => found.push(FalsifiableTest {
                    site,
                    names: vec![name.clone()],
                }),
            }
        }
        Some(Self {
            source,
            targets: found,
            missing,
        })
    }

    /// Whether every target was found in the file.
    pub fn has_all(&self) -> bool {
        self.missing.is_empty()
    }

    /// Adds all passed rows of the targets. The falsified row is chosen at random, and an assertion at the end of a test
    /// fails the test, not its rows.
    pub fn include_rows(&mut self, plain: &TestRun) {
        for test in &mut self.targets {
            let site = &self.source.sites[test.site];
            let mut wholes: Vec<TestName> = test
                .names
                .iter()
                .map(|name| site.whole_name(name))
                .collect();
            wholes.dedup();
            let rows = plain
                .passed()
                .filter(|name| wholes.contains(&site.whole_name(name)));
            let new: Vec<TestName> = rows
                .filter(|name| !test.names.contains(name))
                .cloned()
                .collect();
            test.names.extend(new);
        }
    }

    /// The one test that contains all targets as rows, if the run names it.
    pub fn single_test(&self, plain: &TestRun) -> Option<TestName> {
        let [test] = self.targets.as_slice() else {
            return None;
        };
        let whole = self.source.sites[test.site].whole_name(test.names.first()?);
        let is_one = test
            .names
            .iter()
            .all(|name| self.source.sites[test.site].whole_name(name) == whole);
        (is_one && self.missing.is_empty() && plain.state(&whole).is_some()).then_some(whole)
    }

    /// Whether the source of this test mentions that it may be skipped.
    pub fn may_skip(&self, name: &TestName) -> bool {
        let Some(range) = self.range_of(name) else {
            return false;
        };
        let text = self.source.slice(&range).to_lowercase();
        ["skip", "pending", "ignore"]
            .iter()
            .any(|word| text.contains(word))
    }

    /// Where this test is in the file, with the lines directly above it, such as a decorator or an attribute.
    pub fn range_of(&self, name: &TestName) -> Option<Range<usize>> {
        let whole = &self.source.sites[self.source.site_of(name)?].whole;
        let above = self.source.text[..whole.start]
            .rfind("\n\n")
            .map_or(0, |gap| gap + 2);
        Some(above..whole.end)
    }

    /// Targets every test of the file, for commands that do not name their tests and are judged by exit code.
    pub fn whole_file(path: &Path, source: &str) -> Option<Self> {
        let source = parse_source(path, source)?;
        let targets = (0..source.sites.len())
            .map(|site| FalsifiableTest {
                site,
                names: Vec::new(),
            })
            .collect();
        Some(Self {
            source,
            targets,
            missing: Vec::new(),
        })
    }

    /// The file with only a comment added at its end. Without this control, code could react to any changed test file.
    pub(super) fn with_neutral_edit(&self, rng: &mut fastrand::Rng) -> String {
        let text = &self.source.text;
        let gap = if text.ends_with('\n') { "" } else { "\n" };
        format!(
            "{text}{gap}{} {}\n",
            self.source.comment,
            literal::random_word(rng)
        )
    }

    /// The file with one random expectation of each target changed, avoiding the ones in `tried`.
    pub(super) fn with_changed_expectations(
        &self,
        rng: &mut fastrand::Rng,
        targets: &[usize],
        tried: &[(usize, usize)],
    ) -> FalsifiedText {
        let mut edits: Vec<TextEdit> = Vec::new();
        let mut tests = Vec::new();
        for &target in targets {
            let test = &self.targets[target];
            let mut all: Vec<_> = expectation::changes(&self.source, test.site, rng)
                .into_iter()
                .enumerate()
                .collect();
            // A decisive value is better than a negated word, which is better than a guess. Only changes of the best rank
            // are used: if an equality always holds, negating it fails and would hide the cheat.
            let best = all.iter().map(|(_, change)| change.rank).min();
            all.retain(|(choice, change)| {
                Some(change.rank) == best && !tried.contains(&(target, *choice))
            });
            let does_not_overlap = |change: &expectation::ExpectationChange| {
                change
                    .edits
                    .iter()
                    .all(|new| edits.iter().all(|old| !overlaps(&old.range, &new.range)))
            };
            all.retain(|(_, change)| does_not_overlap(change));
            if all.is_empty() {
                continue;
            }
            let (choice, change) = all.swap_remove(rng.usize(..all.len()));
            edits.extend(change.edits);
            tests.push(FalsifiedTest {
                target,
                names: test.names.clone(),
                new_value: change.new_value,
                is_sure: change.is_sure,
                in_every_row: false,
                may_rename: change.may_rename,
                choice,
            });
        }
        FalsifiedText {
            text: apply(&self.source.text, edits),
            tests,
        }
    }

    /// The file with as many expectations of the targets changed as possible. A single one may never be reached, but one
    /// of them must be.
    pub(super) fn with_all_expectations_changed(
        &self,
        rng: &mut fastrand::Rng,
        targets: &[usize],
    ) -> FalsifiedText {
        let mut edits: Vec<TextEdit> = Vec::new();
        let mut tests = Vec::new();
        for &target in targets {
            let test = &self.targets[target];
            let all = expectation::changes(&self.source, test.site, rng);
            // Only the best rank, as in `with_changed_expectations`.
            let best = all.iter().map(|change| change.rank).min();
            let mut last = None;
            for change in all.into_iter().filter(|change| Some(change.rank) == best) {
                let does_not_overlap =
                    |new: &TextEdit| edits.iter().all(|old| !overlaps(&old.range, &new.range));
                if change.edits.iter().all(does_not_overlap) {
                    edits.extend(change.edits.iter().cloned());
                    last = Some(change);
                }
            }
            tests.extend(last.map(|change| FalsifiedTest {
                target,
                names: test.names.clone(),
                new_value: change.new_value,
                is_sure: false,
                in_every_row: false,
                may_rename: change.may_rename,
                choice: usize::MAX,
            }));
        }
        FalsifiedText {
            text: apply(&self.source.text, edits),
            tests,
        }
    }

    /// The file with an assertion that always fails at the end of each target.
    pub(super) fn with_failing_assertions(
        &self,
        rng: &mut fastrand::Rng,
        targets: &[usize],
    ) -> FalsifiedText {
        let mut edits = Vec::new();
        let mut tests = Vec::new();
        for &target in targets {
            let test = &self.targets[target];
            let Some(added) = added_failure::append_failure(&self.source, test.site, rng) else {
                continue;
            };
            edits.extend(added.edits);
            tests.push(FalsifiedTest {
                target,
                names: test.names.clone(),
                new_value: added.statement,
                is_sure: true,
                in_every_row: true,
                may_rename: false,
                choice: 0,
            });
        }
        FalsifiedText {
            text: apply(&self.source.text, edits),
            tests,
        }
    }
}

impl FalsifiableTests {
    /// Applies every kind of falsification and checks the invariants that hold for any text. For fuzzing.
    pub(super) fn check_invariants(&self, original: &str) {
        let all: Vec<usize> = (0..self.targets.len()).collect();
        let rng = || fastrand::Rng::with_seed(1);
        assert!(
            self.with_neutral_edit(&mut rng()).starts_with(original),
            "the neutral edit only appends"
        );
        let changes = [
            self.with_changed_expectations(&mut rng(), &all, &[]),
            self.with_all_expectations_changed(&mut rng(), &all),
            self.with_failing_assertions(&mut rng(), &all),
        ];
        for change in changes {
            assert!(change.tests.len() <= all.len());
            // Tests are reported as falsified exactly if the text changed.
            assert_eq!(
                change.tests.is_empty(),
                change.text == original,
                "{:?}",
                change.tests
            );
        }
        let again = self.with_changed_expectations(&mut rng(), &all, &[]).text;
        assert_eq!(
            again,
            self.with_changed_expectations(&mut rng(), &all, &[]).text,
            "the same seed gives the same text"
        );
        drop((self.expectations(), self.with_actual_value(original)));
    }
}

fn parse_source(path: &Path, source: &str) -> Option<TestSource> {
    let language = Language::of_path(path)?;
    Some(TestSource::read(
        &language.parse(path, source)?,
        language.line_comment,
    ))
}

fn overlaps(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

/// Applies all edits to the text. Skips an edit that overlaps an earlier one.
fn apply(text: &str, mut edits: Vec<TextEdit>) -> String {
    edits.sort_by_key(|edit| (edit.range.start, edit.range.end));
    let mut out = String::with_capacity(text.len() + 64 * edits.len());
    let mut at = 0;
    for edit in edits {
        if edit.range.start < at {
            continue;
        }
        out.push_str(text.get(at..edit.range.start).unwrap_or_default());
        out.push_str(&edit.text);
        at = edit.range.end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests;
