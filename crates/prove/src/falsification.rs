//! Changes the expectations of the change's tests, which must fail then.

use std::time::{Duration, Instant};

use supervisor_text::words;
use supervisor_verify::falsify::{FalsifiableTests, Falsification, FalsificationVerdict};
use supervisor_verify::{TestName, TestRun, Tests};

use crate::changed_tests::TestFile;
use crate::falsified_runs::{FalsifiedRuns, with_forced_rebuild};
use crate::project_copy::ChangedCopy;
use crate::prove::ProofRun;
use crate::report::names;
use crate::request::ProveError;

/// Falsification may always take this long, whatever the suite takes.
const MIN_BUDGET: Duration = Duration::from_secs(30);

impl ProofRun<'_> {
    /// Falsifies the tests in `wanted`, file by file, within a budget.
    pub(crate) async fn falsify(
        &mut self,
        after: &TestRun,
        wanted: &[TestName],
    ) -> Result<(), ProveError> {
        let by_exit_code = *after.tests() == Tests::Unknown;
        let files = self.files_with(after, wanted);
        let is_missing = |name: &&TestName| !files.iter().any(|file| file.tests.contains(name));
        let not_found: Vec<TestName> = match by_exit_code && !files.is_empty() {
            true => Vec::new(),
            false => wanted.iter().filter(is_missing).cloned().collect(),
        };
        self.report.falsified.1 += not_found.len();
        if !not_found.is_empty() {
            self.gap(
                format!(
                    "It was not shown that {} can fail: not found in a test file.",
                    names(&not_found)
                ),
                "give them fixed titles, so that they can be found",
            );
        }
        let budget = MIN_BUDGET.max(after.took());
        let began = Instant::now();
        for file in files {
            let count = file.tests.len().max(1);
            self.report.falsified.1 += count;
            if began.elapsed() > budget {
                self.report.not_falsified += count;
                continue;
            }
            (self.request.on_step)("falsification");
            let step_began = Instant::now();
            let name = file.path.display();
            let outcome = self.falsify_file(&file, after).await?;
            let sentence = match outcome.verdict {
                FalsificationVerdict::Falsified => {
                    self.report.falsified.0 += count;
                    format!(
                        "{} {} with a changed expectation; {}",
                        words::count(count, "test"),
                        if count == 1 { "fails" } else { "fail" },
                        outcome.expectations.sentence()
                    )
                }
                FalsificationVerdict::Survived { sentence, .. } => {
                    self.gap(
                        format!("A test cannot fail: {sentence}."),
                        "make the test compare what the code returns with a fixed value",
                    );
                    sentence
                }
                FalsificationVerdict::Unproven { why } => {
                    self.gap(
                        format!("It was not shown that the tests in {name} can fail: {why}."),
                        "compare with literal values, so that they can be changed",
                    );
                    why
                }
            };
            let sentence = format!("{name}: {sentence}");
            let command = self.suite.command();
            self.note("falsification", &command, &sentence, step_began.elapsed());
        }
        Ok(())
    }

    /// The files that hold these tests: of the change first, then of the project. Each test counts once.
    pub(crate) fn files_with(&self, after: &TestRun, wanted: &[TestName]) -> Vec<TestFile> {
        let by_exit_code = *after.tests() == Tests::Unknown;
        let finder = self.finder();
        let mut files =
            finder.changed_test_files(&self.change, after, |versions| versions.change.as_deref());
        let mut left: Vec<TestName> = wanted.to_vec();
        let take = |file: &mut TestFile, left: &mut Vec<TestName>| {
            file.tests.retain(|name| left.contains(name));
            // A file may seem to have a test that is in another one.
            let relative = finder.suite_relative(&file.path);
            if let Some(tests) = FalsifiableTests::find(&relative, &file.source, &file.tests)
                && file.tests.iter().any(|name| tests.range_of(name).is_some())
            {
                file.tests.retain(|name| tests.range_of(name).is_some());
            }
            left.retain(|name| !file.tests.contains(name));
        };
        for file in &mut files {
            take(file, &mut left);
        }
        let is_needed = if by_exit_code {
            files.is_empty() && !wanted.is_empty()
        } else {
            !left.is_empty()
        };
        if is_needed {
            for path in self.unchanged_test_files() {
                let Some(source) = self.read_unchanged(&path) else {
                    continue;
                };
                let mut file = finder.test_file(&path, &source, after);
                take(&mut file, &mut left);
                files.push(file);
                if left.is_empty() {
                    break;
                }
            }
        }
        files.retain(|file| by_exit_code || !file.tests.is_empty());
        files
    }

    async fn falsify_file(
        &mut self,
        file: &TestFile,
        after: &TestRun,
    ) -> Result<Falsification, ProveError> {
        let relative = self.finder().suite_relative(&file.path);
        let found = if file.tests.is_empty() {
            FalsifiableTests::whole_file(&relative, &file.source)
        } else {
            FalsifiableTests::find(&relative, &file.source, &file.tests)
        };
        let Some(mut tests) = found else {
            let why = String::from("tests in this language cannot be falsified yet");
            return Ok(Falsification::not_tried(why));
        };
        tests.include_rows(after);
        let edits = self.change.edits_to(|_, versions| versions.change.clone());
        self.copy.apply(&edits)?;
        self.environment.guard = Some(self.copy.guard()?);
        let suite = self
            .suite
            .select(&tests.whole_names())
            .unwrap_or_else(|| self.suite.clone());
        let mut project = ChangedCopy {
            copy: &mut self.copy,
        };
        let mut runs = FalsifiedRuns::new(
            &mut project,
            self.request.root,
            &file.path,
            with_forced_rebuild(&suite),
            self.environment.clone(),
            self.stop,
        );
        let (mut outcome, _) = runs.falsify(&mut tests, after).await;
        if let Some(path) = runs.rewritten.first() {
            outcome.verdict = FalsificationVerdict::Survived {
                test: None,
                sentence: format!("{} was written while its tests ran", path.display()),
            };
        }
        self.environment.guard = None;
        self.copy.reset()?;
        if self.stop.is_cancelled() {
            return Err(ProveError::Cancelled);
        }
        Ok(outcome)
    }
}
