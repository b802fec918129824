//! Mutants of the change: code of the changed lines with one operator, constant, condition, statement or call changed.
//! A mutant that no test notices shows what the tests do not check.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use similar::{ChangeTag, TextDiff};
use supervisor_edits::Edit;
use supervisor_languages::{Definition, Language, Mutation, mutations};
use supervisor_text::words;
use supervisor_verify::{
    Outcome, RunEnvironment, Suite, TestName, TestRun, TestState, run_first, rust_regions,
};
use tokio_util::sync::CancellationToken;

use crate::changed_tests::is_rust;
use crate::flags::ChangedCode;
use crate::impact::{mentions, passed_tests, test_that_names};
use crate::project_copy::ProjectCopy;
use crate::prove::ProofRun;
use crate::request::{ProveError, ProveRequest};

/// At least this much time, whatever the tests take.
const MIN_BUDGET: Duration = Duration::from_secs(30);
/// The budget as a multiple of the tests' own time.
const BUDGET_FACTOR: u32 = 3;
/// A mutant may loop for ever.
const MIN_MUTANT_LIMIT: Duration = Duration::from_secs(10);
const MUTANT_LIMIT_FACTOR: u32 = 5;
/// A search for one noticed mutant may always take this long.
const MIN_SEARCH: Duration = Duration::from_secs(15);

/// What the tests said about the mutants.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Mutants {
    /// A test failed or crashed.
    pub killed: usize,
    pub timed_out: usize,
    /// No test noticed.
    pub survived: Vec<SurvivingMutant>,
    /// Mutants that do not compile say nothing.
    pub did_not_build: usize,
    /// Not tried for want of time.
    pub not_run: usize,
    /// How many tests ran on each mutant.
    pub tests: usize,
    #[serde(skip)]
    pub(crate) noticed_lines: Vec<(PathBuf, usize)>,
    /// Tests that failed on a mutant.
    #[serde(skip)]
    pub(crate) noticed_by: BTreeSet<TestName>,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct SurvivingMutant {
    pub file: PathBuf,
    /// From 1.
    pub line: usize,
    pub before: String,
    pub after: String,
    /// The test that should have noticed: it names what was changed.
    pub test: Option<TestName>,
    /// The definitions that enclose the line, the innermost last.
    #[serde(skip)]
    pub(crate) definitions: Vec<String>,
}

impl fmt::Display for SurvivingMutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (file, before, after) = (self.file.display(), &self.before, &self.after);
        write!(
            f,
            "{file}:{}: `{before}` became `{after}`, and no test failed",
            self.line
        )?;
        match &self.test {
            Some(test) => write!(f, "; `{test}` should have"),
            None => Ok(()),
        }
    }
}

impl Mutants {
    pub(crate) fn noticed(&self) -> usize {
        self.killed + self.timed_out
    }

    pub(crate) fn tried(&self) -> usize {
        self.noticed() + self.survived.len()
    }

    /// How many lines have a mutant that a test noticed, and how many have one that was tried.
    pub fn noticed_share(&self) -> (usize, usize) {
        let noticed: BTreeSet<(&Path, usize)> = self
            .noticed_lines
            .iter()
            .map(|(path, line)| (path.as_path(), *line))
            .collect();
        let survived = self.survived.iter();
        let mut all: BTreeSet<(&Path, usize)> = survived
            .map(|mutant| (mutant.file.as_path(), mutant.line))
            .collect();
        all.extend(&noticed);
        (noticed.len(), all.len())
    }

    /// `1 mutant of the changed lines noticed, of 3 tried`
    fn search_sentence(&self) -> String {
        format!(
            "{} of the changed lines noticed, of {} tried",
            words::count(self.noticed(), "mutant"),
            self.tried()
        )
    }

    /// `5 of 7 mutants noticed by 3 tests`
    pub fn sentence(&self) -> String {
        let mut text = format!(
            "{} of {} mutants of the changed lines noticed",
            self.noticed(),
            self.tried()
        );
        if self.did_not_build > 0 {
            text += &format!("; {} did not build", self.did_not_build);
        }
        if self.not_run > 0 {
            text += &format!("; {} not run, time ran out", self.not_run);
        }
        text
    }
}

/// One mutation of one changed file.
struct Mutant {
    path: PathBuf,
    source: Arc<str>,
    mutation: Mutation,
    /// Those that enclose the line, the innermost last.
    definitions: Vec<String>,
}

/// How far mutants are run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MutantLimits<'a> {
    /// By default three times the suite's own time, at least 30 s.
    pub(crate) budget: Option<Duration>,
    /// A run of the change itself, if there is one.
    pub(crate) plain: Option<&'a TestRun>,
    pub(crate) until_noticed: bool,
}

/// Mutations of changed code that tests are run on.
pub struct ChangeMutants(Vec<Mutant>);

/// Runs tests on the change with further edits, which the next run does not see.
pub trait MutantRunner {
    type Error;

    fn run(
        &mut self,
        suite: &Suite,
        edits: &[Edit],
        limit: Option<Duration>,
    ) -> impl Future<Output = Result<TestRun, Self::Error>> + Send;
}

impl ChangeMutants {
    /// Mutants of the changed lines of code, in an order in which each line has its turn. Where none of them can be mutated
    /// (a decorator, an annotation), the definitions that they belong to are.
    pub fn of(code: &[ChangedCode<'_>]) -> Self {
        let mut found: Vec<(usize, Mutant)> = Vec::new();
        for file in code {
            let lines = changed_lines(file.old, file.new);
            let tests = is_rust(file.path).then(|| rust_regions(file.new)).flatten();
            let is_test = |at: usize| {
                tests
                    .as_ref()
                    .is_some_and(|regions| regions.tests.iter().any(|range| range.contains(&at)))
            };
            let mut all = mutations(file.path, file.new);
            all.retain(|mutation| !is_test(mutation.range.start));
            if all.iter().any(|mutation| lines.contains(&mutation.line)) {
                all.retain(|mutation| lines.contains(&mutation.line));
            } else {
                let around = definition_lines(file.path, file.new, &lines);
                all.retain(|mutation| around.iter().any(|range| range.contains(&mutation.line)));
            }
            let definitions = definitions(file.path, file.new);
            let source: Arc<str> = Arc::from(file.new);
            let mut turns: BTreeMap<usize, usize> = BTreeMap::new();
            for mutation in all {
                let turn = turns.entry(mutation.line).or_default();
                *turn += 1;
                let mutant = Mutant {
                    path: file.path.to_owned(),
                    source: Arc::clone(&source),
                    definitions: definitions
                        .iter()
                        .filter(|definition| definition.lines.contains(&(mutation.line - 1)))
                        .map(|definition| definition.name.clone())
                        .collect(),
                    mutation,
                };
                found.push((*turn, mutant));
            }
        }
        found.sort_by_key(|(turn, _)| *turn);
        Self(found.into_iter().map(|(_, mutant)| mutant).collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names of the definitions that the mutants are in.
    pub(crate) fn definition_names(&self) -> BTreeSet<String> {
        let names = self.0.iter().flat_map(|mutant| &mutant.definitions);
        names.cloned().collect()
    }

    /// Mutants in definitions that this text names come first.
    pub(crate) fn prefer_named_in(&mut self, text: &str) {
        self.0
            .sort_by_key(|mutant| !mutant.definitions.iter().any(|name| mentions(text, name)));
    }

    /// Runs this suite on each mutant, as far as the budget goes; by default three times the suite's own time, at least
    /// 30 s. `None` if the suite says nothing about the change itself.
    pub async fn run<R: MutantRunner>(
        self,
        suite: &Suite,
        runner: &mut R,
        budget: Option<Duration>,
    ) -> Result<Option<Mutants>, R::Error> {
        let limits = MutantLimits {
            budget,
            ..MutantLimits::default()
        };
        self.run_within(suite, runner, limits).await
    }

    pub(crate) async fn run_within<R: MutantRunner>(
        self,
        suite: &Suite,
        runner: &mut R,
        limits: MutantLimits<'_>,
    ) -> Result<Option<Mutants>, R::Error> {
        let began = Instant::now();
        let plain = match limits.plain {
            Some(plain) => plain.clone(),
            None => runner.run(suite, &[], None).await?,
        };
        if !plain.outcome().is_conclusive() {
            return Ok(None);
        }
        let own_time = plain.took();
        let budget = limits
            .budget
            .unwrap_or_else(|| MIN_BUDGET.max(own_time * BUDGET_FACTOR));
        let limit = MIN_MUTANT_LIMIT.max(own_time * MUTANT_LIMIT_FACTOR);
        let mut found = Mutants {
            tests: plain.passed().count(),
            ..Mutants::default()
        };
        for mutant in self.0 {
            if began.elapsed() > budget || (limits.until_noticed && found.noticed() > 0) {
                found.not_run += 1;
                continue;
            }
            let edit = Edit::Replace {
                path: mutant.path.to_string_lossy().into_owned(),
                contents: mutant.mutation.apply(&mutant.source).into_bytes(),
            };
            let run = runner.run(suite, &[edit], Some(limit)).await?;
            let is_compiled = Language::of_path(&mutant.path).is_some_and(|l| l.is_compiled);
            match run.outcome() {
                Outcome::DidNotBuild { .. } if is_compiled => found.did_not_build += 1,
                Outcome::TimedOut { .. } => {
                    found.timed_out += 1;
                    found.noticed_lines.push(mutant.place());
                }
                Outcome::Passed => found.survived.push(mutant.survived()),
                Outcome::Failed if !has_new_failure(&plain, &run) => {
                    found.survived.push(mutant.survived());
                }
                Outcome::CouldNotRun { .. } | Outcome::Unclear { .. } | Outcome::Cancelled => {
                    found.did_not_build += 1;
                    continue;
                }
                _ => {
                    found.killed += 1;
                    found.noticed_lines.push(mutant.place());
                    found.noticed_by.extend(new_failures(&plain, &run).cloned());
                }
            }
        }
        Ok(Some(found))
    }
}

/// Runs the mutants of a change that is in the project already. `before` holds the changed files as they were, and `tests`
/// those that the change made pass; if they cannot be selected, all run.
pub async fn mutants_since(
    request: &ProveRequest<'_>,
    before: &[(PathBuf, String)],
    tests: &[TestName],
    stop: &CancellationToken,
) -> Result<Option<Mutants>, ProveError> {
    let now: Vec<String> = before
        .iter()
        .map(|(path, _)| std::fs::read_to_string(request.root.join(path)).unwrap_or_default())
        .collect();
    let code: Vec<ChangedCode<'_>> = before
        .iter()
        .zip(&now)
        .map(|((path, old), new)| ChangedCode { path, old, new })
        .collect();
    let mutants = ChangeMutants::of(&code);
    if mutants.is_empty() {
        return Ok(None);
    }
    let suite = request.detect()?;
    let suite = suite.select(tests).unwrap_or(suite);
    let launcher = &request.environment.launcher;
    let mut runs = CopyRuns {
        copy: ProjectCopy::open(request.root, request.state, launcher, stop).await?,
        environment: request.environment.clone(),
        is_first: true,
        stop,
    };
    let found = mutants.run(&suite, &mut runs, None).await;
    runs.copy.close()?;
    found
}

/// Runs in a copy of the project as it is.
struct CopyRuns<'a> {
    copy: ProjectCopy,
    environment: RunEnvironment,
    is_first: bool,
    stop: &'a CancellationToken,
}

impl MutantRunner for CopyRuns<'_> {
    type Error = ProveError;

    async fn run(
        &mut self,
        suite: &Suite,
        edits: &[Edit],
        limit: Option<Duration>,
    ) -> Result<TestRun, ProveError> {
        self.copy.apply(edits)?;
        self.environment.guard = Some(self.copy.guard()?);
        let run = if std::mem::take(&mut self.is_first) {
            run_first(suite, &mut self.environment, None, self.stop).await
        } else {
            let usual_limit = self.environment.limit;
            let environment = RunEnvironment {
                limit: limit.unwrap_or(usual_limit).min(usual_limit),
                ..self.environment.clone()
            };
            suite.run(&environment, self.stop).await
        };
        self.environment.guard = None;
        if self.stop.is_cancelled() {
            return Err(ProveError::Cancelled);
        }
        self.copy.reset()?;
        Ok(run)
    }
}

impl MutantRunner for ProofRun<'_> {
    type Error = ProveError;

    async fn run(
        &mut self,
        suite: &Suite,
        edits: &[Edit],
        limit: Option<Duration>,
    ) -> Result<TestRun, ProveError> {
        self.run_in_change(suite, edits, limit).await
    }
}

impl ProofRun<'_> {
    /// The mutants of the changed lines.
    fn mutants(&self) -> ChangeMutants {
        let code = self.changed_code();
        let code: Vec<ChangedCode<'_>> = code
            .iter()
            .map(|(path, old, new)| ChangedCode { path, old, new })
            .collect();
        ChangeMutants::of(&code)
    }

    /// Runs the mutants of the changed lines with the tests that can notice them. `None` if nothing can be mutated.
    pub(crate) async fn run_mutants(
        &mut self,
        after: &TestRun,
        budget: Option<Duration>,
    ) -> Result<Option<Mutants>, ProveError> {
        let mutants = self.mutants();
        if mutants.is_empty() {
            return Ok(None);
        }
        let files = self.impacted_test_files(after, &mutants.definition_names());
        let suite = self.suite_of(&passed_tests(&files, after));
        let limits = MutantLimits {
            budget,
            ..MutantLimits::default()
        };
        let mut found = self
            .run_and_note("mutants", mutants, &suite, limits)
            .await?;
        for survivor in found.iter_mut().flat_map(|found| &mut found.survived) {
            survivor.test = test_that_names(&survivor.definitions, &files, &self.finder());
        }
        Ok(found)
    }

    /// Runs mutants with these tests until one is noticed, in the time that a run of the suite takes.
    pub(crate) async fn find_noticed_mutant(
        &mut self,
        after: &TestRun,
        tests: &[TestName],
    ) -> Result<Option<Mutants>, ProveError> {
        let mut mutants = self.mutants();
        if mutants.is_empty() {
            return Ok(None);
        }
        for file in self.files_with(after, tests) {
            mutants.prefer_named_in(&file.source);
        }
        let limits = MutantLimits {
            budget: Some(after.took().max(MIN_SEARCH)),
            plain: Some(after),
            until_noticed: true,
        };
        let suite = self.suite_of(tests);
        self.run_and_note("mutant", mutants, &suite, limits).await
    }

    async fn run_and_note(
        &mut self,
        name: &'static str,
        mutants: ChangeMutants,
        suite: &Suite,
        limits: MutantLimits<'_>,
    ) -> Result<Option<Mutants>, ProveError> {
        (self.request.on_step)(name);
        let began = Instant::now();
        let found = mutants.run_within(suite, self, limits).await?;
        if let Some(found) = &found {
            let sentence = match limits.until_noticed {
                true => found.search_sentence(),
                false => found.sentence(),
            };
            self.note(name, &suite.command(), &sentence, began.elapsed());
        }
        Ok(found)
    }

    /// The suite restricted to these tests, if there are any and the runner can select them.
    fn suite_of(&self, tests: &[TestName]) -> Suite {
        let selected = (!tests.is_empty()).then(|| self.suite.select(tests));
        selected.flatten().unwrap_or_else(|| self.suite.clone())
    }
}

impl Mutant {
    fn place(&self) -> (PathBuf, usize) {
        (self.path.clone(), self.mutation.line)
    }

    fn survived(&self) -> SurvivingMutant {
        let (before, after) = self.mutation.line_diff(&self.source);
        SurvivingMutant {
            file: self.path.clone(),
            line: self.mutation.line,
            before,
            after,
            test: None,
            definitions: self.definitions.clone(),
        }
    }
}

fn has_new_failure(plain: &TestRun, run: &TestRun) -> bool {
    new_failures(plain, run).next().is_some() || plain.outcome().is_passed()
}

/// Tests that fail on a mutant and pass without it.
fn new_failures<'a>(plain: &'a TestRun, run: &'a TestRun) -> impl Iterator<Item = &'a TestName> {
    run.failed()
        .map(|(name, _)| name)
        .filter(|name| plain.state(name) == Some(&TestState::Passed))
}

/// The lines of `new`, from 1, that `old` does not have.
pub(crate) fn changed_lines(old: &str, new: &str) -> Vec<usize> {
    TextDiff::from_lines(old, new)
        .iter_all_changes()
        .filter(|change| change.tag() == ChangeTag::Insert)
        .filter_map(|change| change.new_index())
        .map(|index| index + 1)
        .collect()
}

fn definitions(path: &Path, source: &str) -> Vec<Definition> {
    let tree = Language::of_path(path).and_then(|language| language.parse(path, source));
    tree.map(|tree| tree.definitions()).unwrap_or_default()
}

/// The smallest definitions that contain one of these lines or begin directly below one, as lines from 1.
fn definition_lines(path: &Path, source: &str, lines: &[usize]) -> Vec<RangeInclusive<usize>> {
    const BELOW: usize = 3;
    let all: Vec<Range<usize>> = definitions(path, source)
        .into_iter()
        .map(|definition| definition.lines)
        .collect();
    let mut found: Vec<RangeInclusive<usize>> = lines
        .iter()
        .filter_map(|line| {
            let is_near = |range: &&Range<usize>| range.start < line + BELOW && *line <= range.end;
            let nearest = all.iter().filter(is_near).min_by_key(|range| range.len())?;
            Some(nearest.start + 1..=nearest.end)
        })
        .collect();
    found.dedup();
    found
}

/// Groups of adjacent changed lines that have a mutant, and whether a test noticed one of each.
pub(crate) fn every_group_is_noticed(found: &Mutants) -> bool {
    let mut lines: Vec<(&Path, usize)> = found
        .survived
        .iter()
        .map(|mutant| (mutant.file.as_path(), mutant.line))
        .collect();
    let noticed: Vec<(&Path, usize)> = found
        .noticed_lines
        .iter()
        .map(|(path, line)| (path.as_path(), *line))
        .collect();
    lines.extend(&noticed);
    lines.sort_unstable();
    lines.dedup();
    let is_adjacent = |a: &(&Path, usize), b: &(&Path, usize)| a.0 == b.0 && b.1 - a.1 <= 3;
    lines
        .chunk_by(is_adjacent)
        .all(|group| group.iter().any(|line| noticed.contains(line)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_and_changed_lines_are_found() {
        assert_eq!(changed_lines("a\nb\nc\n", "a\nB\nc\nd\n"), [2, 4]);
        assert_eq!(changed_lines("", "a\n"), [1]);
    }

    #[test]
    fn lines_are_counted_once() {
        let line = |line| (PathBuf::from("a.py"), line);
        let survivor = |line| SurvivingMutant {
            file: PathBuf::from("a.py"),
            line,
            ..SurvivingMutant::default()
        };
        let found = Mutants {
            survived: vec![survivor(1), survivor(2), survivor(2)],
            noticed_lines: vec![line(1), line(1), line(3)],
            ..Mutants::default()
        };
        assert_eq!(found.noticed_share(), (2, 3));
    }

    #[test]
    fn a_group_without_a_noticed_mutant_counts() {
        let survivor = |line| SurvivingMutant {
            file: PathBuf::from("a.py"),
            line,
            ..SurvivingMutant::default()
        };
        let mut found = Mutants {
            survived: vec![survivor(1)],
            noticed_lines: vec![(PathBuf::from("a.py"), 2)],
            ..Mutants::default()
        };
        assert!(every_group_is_noticed(&found));
        found.survived.push(survivor(20));
        assert!(!every_group_is_noticed(&found));
    }
}
