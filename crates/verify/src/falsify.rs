//! A green that can turn red: the tests that passed are made wrong and run once more, and each must now fail. A test
//! that still passes proves nothing, whatever the reason: an equality that always holds, a patched assertion, a forged
//! report, an answer read from the test itself. This is the one check that need not know how a run is deceived.
//!
//! What stands where is asked of the language (`queries/<language>/expectations.scm`): `@test` and `@group` with their
//! `@title`, a `@suite` that the test itself names; the `@body` to append to, the `@expression` that is a whole body, the `@tail` that a body evaluates to;
//! literals (`@number`, `@text`, `@char`, `@flag`, `@nothing`, `@pattern`); assertions that two sides are `@equal`
//! (`@left` and `@right`, or `@sides` as tokens between brackets), that a `@condition` holds (or `@conditions` as tokens;
//! `@flip` is the word that says so), that an `@error` is raised; `@binding`s of a `@name` to a `@value`; `@table`s of
//! `@rows` whose columns are `@params`; and what may keep a statement from being run (`@return`, `@scope`, `@maybe`).
//! Settings are templates: `fails` is a statement that never holds for two unequal numbers, `negated`, `flips` and
//! `other` are what to write instead, `wrapped` makes room for a statement behind an expression; `instead` is a value that
//! nothing equals, where types do not matter, and `expected` is the side on which it belongs.
//!
//! Knows text and runs. Does not know how a file is written, nor who asked.

mod certificate;
mod columns;
mod expectation;
mod failure;
mod literal;
mod sites;
mod splitting;
mod trial;

use std::ops::Range;
use std::path::Path;

use super::outcome::{TestName, TestRun};
use sites::TestSource;
use supervisor_languages::Language;

pub use trial::{Falsification, FalsificationStage, FalsificationVerdict, falsify};

/// The target tests of one file, ready to be made wrong.
#[derive(Debug)]
pub struct FalsifiableTests {
    source: TestSource,
    /// For each target that stands in the file: its site and its names in the run, several if it has rows.
    targets: Vec<FalsifiableTest>,
    /// Targets that no test of the file could be found for.
    missing: Vec<TestName>,
}

#[derive(Debug, Clone)]
struct FalsifiableTest {
    site: usize,
    names: Vec<TestName>,
}

/// The file with its targets made wrong.
#[derive(Debug, Clone)]
pub(super) struct FalsifiedText {
    pub(super) text: String,
    pub(super) tests: Vec<FalsifiedTest>,
}

/// One test that must fail now.
#[derive(Debug, Clone)]
pub(super) struct FalsifiedTest {
    target: usize,
    names: Vec<TestName>,
    /// What it expects now; for people.
    now: String,
    /// Surely wrong now: the place is always reached, and what was changed is no input.
    is_sure: bool,
    /// Every one of its names must fail, not only one row.
    in_every_row: bool,
    /// A row of it may have another name now.
    may_rename: bool,
    /// Which of the test's expectations, so that another can be tried.
    choice: usize,
}

/// A replacement in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextEdit {
    range: Range<usize>,
    text: String,
}

/// What a test gives and what it expects for it, as both stand in the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectation {
    pub inputs: Vec<String>,
    pub value: String,
}

impl FalsifiableTests {
    /// What the targets give and expect, where both are literals.
    pub fn expectations(&self) -> Vec<Expectation> {
        self.targets
            .iter()
            .flat_map(|target| expectation::visible(&self.source, target.site))
            .collect()
    }

    /// Finds the targets in their file. `None` if the file's language is none we know, or cannot be read.
    pub fn find(path: &Path, source: &str, targets: &[TestName]) -> Option<Self> {
        let source = read(path, source)?;
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

    /// Does every target stand in the file?
    pub fn has_all(&self) -> bool {
        self.missing.is_empty()
    }

    /// Takes in all rows of the targets: which of them is made wrong is left to chance, and an assertion at the end of a
    /// test fails the test and not its rows. Only what passed must fail.
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

    /// The one test that all targets are rows of, if the runner knows it by a name.
    pub fn only_test(&self, plain: &TestRun) -> Option<TestName> {
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

    /// Does the test of this name say itself that it may be skipped?
    pub fn may_skip(&self, name: &TestName) -> bool {
        let Some(site) = self.source.site_of(name) else {
            return false;
        };
        let whole = &self.source.sites[site].whole;
        // What stands above it belongs to it, such as a decorator or an attribute.
        let above = self.source.text[..whole.start]
            .rfind("\n\n")
            .map_or(0, |gap| gap + 2);
        let text = self.source.slice(&(above..whole.end)).to_lowercase();
        ["skip", "pending", "ignore"]
            .iter()
            .any(|word| text.contains(word))
    }

    /// A command that names no tests is judged by its exit code: any test of the file may turn it.
    pub fn whole_file(path: &Path, source: &str) -> Option<Self> {
        let source = read(path, source)?;
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

    /// The file with nothing changed but a comment at its end, so that a changed file alone betrays nothing.
    pub(super) fn placebo(&self, dice: &mut fastrand::Rng) -> String {
        let text = &self.source.text;
        let gap = if text.ends_with('\n') { "" } else { "\n" };
        format!(
            "{text}{gap}{} {}\n",
            self.source.comment,
            literal::random_word(dice)
        )
    }

    /// The file with one expectation of each of these targets changed at random; those tried before are avoided.
    pub(super) fn with_changed_expectations(
        &self,
        dice: &mut fastrand::Rng,
        targets: &[usize],
        tried: &[(usize, usize)],
    ) -> FalsifiedText {
        let mut edits: Vec<TextEdit> = Vec::new();
        let mut tests = Vec::new();
        for &target in targets {
            let test = &self.targets[target];
            let mut all: Vec<_> = expectation::changes(&self.source, test.site, dice)
                .into_iter()
                .enumerate()
                .collect();
            // A value that surely decides is better than a word turned around, and that better than a guess. The worse
            // ones are never tried after a better one: an equality that always holds makes its opposite fail.
            let best = all.iter().map(|(_, change)| change.rank).min();
            all.retain(|(choice, change)| {
                Some(change.rank) == best && !tried.contains(&(target, *choice))
            });
            let free = |change: &expectation::ExpectationChange| {
                change
                    .edits
                    .iter()
                    .all(|new| edits.iter().all(|old| !overlaps(&old.range, &new.range)))
            };
            all.retain(|(_, change)| free(change));
            if all.is_empty() {
                continue;
            }
            let (choice, change) = all.swap_remove(dice.usize(..all.len()));
            edits.extend(change.edits);
            tests.push(FalsifiedTest {
                target,
                names: test.names.clone(),
                now: change.now,
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

    /// The file with every expectation of these targets changed that can be: where each alone may not be reached, one of all
    /// must be.
    pub(super) fn with_all_expectations_changed(
        &self,
        dice: &mut fastrand::Rng,
        targets: &[usize],
    ) -> FalsifiedText {
        let mut edits: Vec<TextEdit> = Vec::new();
        let mut tests = Vec::new();
        for &target in targets {
            let test = &self.targets[target];
            let all = expectation::changes(&self.source, test.site, dice);
            // Never the worse ones, see above.
            let best = all.iter().map(|change| change.rank).min();
            let mut last = None;
            for change in all.into_iter().filter(|change| Some(change.rank) == best) {
                let is_free =
                    |new: &TextEdit| edits.iter().all(|old| !overlaps(&old.range, &new.range));
                if change.edits.iter().all(is_free) {
                    edits.extend(change.edits.iter().cloned());
                    last = Some(change);
                }
            }
            tests.extend(last.map(|change| FalsifiedTest {
                target,
                names: test.names.clone(),
                now: change.now,
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

    /// The file with an assertion that never holds at the end of each of these targets.
    pub(super) fn with_failing_assertions(
        &self,
        dice: &mut fastrand::Rng,
        targets: &[usize],
    ) -> FalsifiedText {
        let mut edits = Vec::new();
        let mut tests = Vec::new();
        for &target in targets {
            let test = &self.targets[target];
            let Some(added) = failure::append(&self.source, test.site, dice) else {
                continue;
            };
            let now = added.statement;
            edits.extend(added.edits);
            tests.push(FalsifiedTest {
                target,
                names: test.names.clone(),
                now,
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
    /// Makes everything wrong that can be, and checks what must hold of any text.
    pub(super) fn try_all(&self, original: &str) {
        let all: Vec<usize> = (0..self.targets.len()).collect();
        let dice = || fastrand::Rng::with_seed(1);
        assert!(
            self.placebo(&mut dice()).starts_with(original),
            "a comment changes the file"
        );
        let changes = [
            self.with_changed_expectations(&mut dice(), &all, &[]),
            self.with_all_expectations_changed(&mut dice(), &all),
            self.with_failing_assertions(&mut dice(), &all),
        ];
        for change in changes {
            assert!(change.tests.len() <= all.len());
            // Something is told to be wrong exactly if something was written.
            assert_eq!(
                change.tests.is_empty(),
                change.text == original,
                "{:?}",
                change.tests
            );
        }
        let again = self.with_changed_expectations(&mut dice(), &all, &[]).text;
        assert_eq!(
            again,
            self.with_changed_expectations(&mut dice(), &all, &[]).text,
            "the dice decide alone"
        );
        drop((self.expectations(), self.expecting_what_is_given(original)));
    }
}

fn read(path: &Path, source: &str) -> Option<TestSource> {
    let language = Language::of_path(path)?;
    Some(TestSource::read(
        &language.parse(path, source)?,
        language.line_comment,
    ))
}

fn overlaps(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

/// The text with all edits made; of two that overlap the later one is left out.
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
