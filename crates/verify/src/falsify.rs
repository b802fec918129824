//! Falsifies passing tests: changes them so that they must fail, and runs them again. A test that still passes proves
//! nothing, whatever the reason: an equality that always holds, a patched assertion, a forged report, an answer read from
//! the test file. This check works without knowing how a run could be faked.
//!
//! `queries/<language>/expectations.scm` finds the parts of a test file:
//!
//! Each expectation is changed in a run of its own ([`challenge`]), as many as a time budget allows. A change that must be
//! noticed and is not refutes the test, whatever other changes show.
//!
//! - tests: `@test` and `@group` with their `@title`, and a `@suite` named by the test; the `@body` to append to, the
//!   `@expression` that is a whole body, the `@tail` that a body evaluates to
//! - literals: `@number`, `@text`, `@char`, `@flag`, `@nothing`, `@pattern`
//! - calls that may be assertions: a `@check` with its `@callee` and `@arguments`; a `@helper` with its `@name` and `@params`
//! - assertions: two sides are `@equal` (`@left` and `@right`, or `@sides` as tokens between brackets); a `@condition`
//!   holds (or `@conditions` as tokens; `@flip` is the word to replace by its opposite); an `@error` is raised; the
//!   `@left` of `@contains` is in its `@right`
//! - `@binding`s of a `@name` to a `@value`
//! - `@table`s of `@rows` whose columns are `@params`
//! - constructs that can keep a statement from running: `@return`, `@scope`, `@maybe`
//!
//! Settings of a query are templates: `fails` is an assertion that two unequal numbers are equal; `negated`, `flips` and
//! `other` are replacement texts; `wrapped` adds a statement after an expression; `instead` is a value that equals nothing
//! else, for languages where types do not matter; `expected` is the side that holds the expected value; `opposite` replaces
//! the `@operator` or the `@callee` of an equality by its opposite.

mod actual_value;
mod added_failure;
mod challenge;
mod data;
mod expectation;
mod lists;
mod literal;
mod run;
mod tables;
mod test_source;

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::outcome::{TestName, TestRun};
use supervisor_languages::Language;
use test_source::TestSource;

pub use run::{Expectations, Falsification, FalsificationVerdict, FalsifiedFileRunner, falsify};

/// The target tests of one file, ready to be falsified.
#[derive(Debug)]
pub struct FalsifiableTests {
    /// As given; it tells the language.
    path: PathBuf,
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

/// A version of the test file, and of other files that its tests use.
#[derive(Debug, Clone, Default)]
pub struct TestFiles {
    pub text: String,
    /// Paths as in [`FalsifiableTests::add_companion`]. Whoever runs the tests puts these files back.
    pub others: Vec<(PathBuf, String)>,
}

impl From<String> for TestFiles {
    fn from(text: String) -> Self {
        Self {
            text,
            others: Vec::new(),
        }
    }
}

/// The files with falsified targets.
#[derive(Debug, Clone)]
pub(super) struct FalsifiedText {
    pub(super) files: TestFiles,
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
    /// The index of the challenge.
    challenge: usize,
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
            path: path.to_owned(),
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
            path: path.to_owned(),
            source,
            targets,
            missing: Vec::new(),
        })
    }

    /// A version of the test file with spaces at the end of some lines, which mean nothing. Every run has such an edit, so
    /// that code cannot react to any change of the test file.
    pub(super) fn with_neutral_edit(&self, text: &str, rng: &mut fastrand::Rng) -> String {
        let language = Language::of_path(&self.path);
        let tree = language.and_then(|language| language.parse(&self.path, text));
        let mut ends = tree.map(|tree| tree.ends_of_lines()).unwrap_or_default();
        if ends.is_empty() {
            return format!("{text}\n");
        }
        rng.shuffle(&mut ends);
        ends.truncate(rng.usize(1..=3));
        let edits = ends.into_iter().map(|at| TextEdit {
            range: at..at,
            text: " ".repeat(rng.usize(1..=9)),
        });
        apply(text, edits.collect())
    }

    /// Adds a file that the tests use: code of tests, such as a table or a helper, or data. Its expectations are changed, too.
    pub fn add_companion(&mut self, path: &Path, text: &str) {
        match Language::of_path(path) {
            Some(_) => {
                if let Some(source) = parse_source(path, text) {
                    self.source.append_code(path, source);
                }
            }
            None => self
                .source
                .append_data(path, text, data::values(path, text)),
        }
    }

    /// The test file as it is.
    pub fn text(&self) -> &str {
        &self.source.text[..self.source.own_len]
    }

    /// The targets without their rows, as names that a runner can select.
    pub fn whole_names(&self) -> Vec<TestName> {
        let mut names: Vec<TestName> = Vec::new();
        for test in &self.targets {
            for name in &test.names {
                let whole = match name.0.split_once("::") {
                    Some(_) if name.0.ends_with(']') => TestName(
                        name.0
                            .split_once('[')
                            .map_or(name.0.as_str(), |(test, _)| test)
                            .to_owned(),
                    ),
                    _ => self.source.sites[test.site].whole_name(name),
                };
                if !names.contains(&whole) {
                    names.push(whole);
                }
            }
        }
        names
    }

    /// The files with these challenges changed, each in one of its ways.
    fn with_changes(
        &self,
        challenges: &[challenge::Challenge],
        picks: &[(usize, usize)],
    ) -> FalsifiedText {
        let mut edits: Vec<TextEdit> = Vec::new();
        let mut tests = Vec::new();
        for &(index, way) in picks {
            let challenge = &challenges[index];
            let change = &challenge.changes[way];
            edits.extend(
                change
                    .edits
                    .iter()
                    .filter(|new| !edits.contains(new))
                    .cloned()
                    .collect::<Vec<_>>(),
            );
            tests.push(FalsifiedTest {
                target: challenge.target,
                names: self.targets[challenge.target].names.clone(),
                new_value: change.new_value.clone(),
                is_sure: change.is_sure,
                in_every_row: challenge.in_every_row,
                may_rename: change.may_rename,
                challenge: index,
            });
        }
        FalsifiedText {
            files: self.files_with(&edits),
            tests,
        }
    }

    /// Applies edits of the joined text to the files.
    fn files_with(&self, edits: &[TextEdit]) -> TestFiles {
        let part = |range: &Range<usize>| {
            let inside: Vec<TextEdit> = edits
                .iter()
                .filter(|edit| test_source::contains(range, &edit.range))
                .map(|edit| TextEdit {
                    range: edit.range.start - range.start..edit.range.end - range.start,
                    text: edit.text.clone(),
                })
                .collect();
            (!inside.is_empty()).then(|| apply(self.source.slice(range), inside))
        };
        TestFiles {
            text: part(&(0..self.source.own_len)).unwrap_or_else(|| self.text().to_owned()),
            others: self
                .source
                .companions
                .iter()
                .filter_map(|file| Some((file.path.clone(), part(&file.range)?)))
                .collect(),
        }
    }

    /// The file with an assertion that always fails right before `range`, to see whether the tests get there. `None` if the
    /// range does not begin a line.
    pub(super) fn with_failure_at(
        &self,
        target: usize,
        range: &Range<usize>,
        rng: &mut fastrand::Rng,
    ) -> Option<TestFiles> {
        let edit =
            added_failure::failure_before(&self.source, self.targets[target].site, range, rng)?;
        Some(self.files_with(&[edit]))
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
                challenge: 0,
            });
        }
        FalsifiedText {
            files: self.files_with(&edits),
            tests,
        }
    }
}

impl FalsifiableTests {
    /// Applies every kind of falsification and checks the invariants that hold for any text. For fuzzing.
    pub(super) fn check_invariants(&self, original: &str) {
        let all: Vec<usize> = (0..self.targets.len()).collect();
        let rng = || fastrand::Rng::with_seed(1);
        let neutral = self.with_neutral_edit(original, &mut rng());
        assert_ne!(neutral, original);
        assert!(
            neutral
                .lines()
                .map(str::trim_end)
                .eq(original.lines().map(str::trim_end))
                || neutral.trim_end() == original.trim_end(),
            "the neutral edit only adds white space"
        );
        let changed = |seed: u64| {
            let challenges = self.challenges(&mut fastrand::Rng::with_seed(seed));
            let ways = challenges
                .iter()
                .enumerate()
                .flat_map(|(at, challenge)| (0..challenge.changes.len()).map(move |way| (at, way)));
            ways.take(200)
                .map(|pick| self.with_changes(&challenges, &[pick]).files.text)
                .collect::<Vec<String>>()
        };
        let texts = changed(1);
        assert!(
            texts.iter().all(|text| text != original),
            "every change shows"
        );
        assert_eq!(texts, changed(1), "the same seed gives the same texts");
        let added = self.with_failing_assertions(&mut rng(), &all);
        assert!(added.tests.len() <= all.len());
        assert_eq!(added.tests.is_empty(), added.files.text == original);
        drop((self.expectations(), self.with_actual_value(original)));
    }
}

fn parse_source(path: &Path, source: &str) -> Option<TestSource> {
    let language = Language::of_path(path)?;
    Some(TestSource::read(&language.parse(path, source)?))
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
