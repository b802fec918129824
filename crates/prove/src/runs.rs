//! The test runs of a proof, on the change and on the base.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use supervisor_edits::Edit;
use supervisor_text::words;
use supervisor_verify::{
    KnownNetwork, Outcome, Suite, TestName, TestRun, TestState, VaryingNames, compare, run_first,
};

use crate::baseline_cache::BaselineCache;
use crate::change::Versions;
use crate::prove::ProofRun;
use crate::report::Step;
use crate::request::ProveError;
use crate::test_changes::first_lost_line;

/// Of a command and of a result in a report.
const MAX_STEP_BYTES: usize = 400;

impl ProofRun<'_> {
    /// Runs these tests on the project with `pick` of each changed file.
    pub(crate) async fn test_state(
        &mut self,
        name: &'static str,
        suite: &Suite,
        pick: impl Fn(&Path, &Versions) -> Option<Vec<u8>>,
    ) -> Result<TestRun, ProveError> {
        (self.request.on_step)(name);
        let began = Instant::now();
        let edits = self.change.edits_to(pick);
        let run = self.run_edited(suite, &[&edits], None).await?;
        let written = self.written(&edits)?;
        self.copy.reset()?;
        if name.starts_with("base") {
            self.written_on_base.get_or_insert_default().extend(written);
        } else {
            self.written_with_change.extend(written);
        }
        self.note(name, run.command(), &run.sentence(), began.elapsed());
        Ok(run)
    }

    /// Runs these tests on the change with further edits.
    pub(crate) async fn run_in_change(
        &mut self,
        suite: &Suite,
        edits: &[Edit],
        limit: Option<Duration>,
    ) -> Result<TestRun, ProveError> {
        let change = self.change.edits_to(|_, versions| versions.change.clone());
        let run = self.run_edited(suite, &[&change, edits], limit).await?;
        self.copy.reset()?;
        Ok(run)
    }

    pub(crate) async fn run_edited(
        &mut self,
        suite: &Suite,
        edits: &[&[Edit]],
        limit: Option<Duration>,
    ) -> Result<TestRun, ProveError> {
        for edits in edits {
            self.copy.apply(edits)?;
        }
        let is_first = self.report.steps.is_empty();
        // What the first run builds is kept; later runs start from it and leave nothing behind.
        self.environment.guard = Some(if is_first {
            self.copy.guard()?
        } else {
            self.copy.run_guard()?
        });
        let usual_limit = self.environment.limit;
        self.environment.limit = limit.unwrap_or(usual_limit).min(usual_limit);
        let run = if is_first {
            let network = self.request.state.sub("test-network").ok();
            let network = network.map(|folder| KnownNetwork::in_folder(&folder, suite));
            run_first(suite, &mut self.environment, network.as_ref(), self.stop).await
        } else {
            suite.run(&self.environment, self.stop).await
        };
        self.environment.limit = usual_limit;
        self.environment.guard = None;
        self.copy.take_run_changes()?;
        self.report.sandbox = self.copy.sandbox();
        if matches!(run.outcome(), Outcome::Cancelled) || self.stop.is_cancelled() {
            return Err(ProveError::Cancelled);
        }
        Ok(run)
    }

    /// Tests, their data and configuration that the last run wrote, though only these edits were made.
    fn written(&mut self, edits: &[Edit]) -> Result<Vec<PathBuf>, ProveError> {
        let mut found = Vec::new();
        for path in self.copy.differing()? {
            let is_known = self.change.files.contains_key(&path)
                || self
                    .tracked
                    .iter()
                    .any(|tracked| Path::new(tracked) == path);
            if !is_known || !self.finder().role(&path).is_protected() {
                continue;
            }
            let edit = edits.iter().rfind(|edit| Path::new(edit.path()) == path);
            let expected = match edit {
                Some(Edit::Create { contents, .. } | Edit::Replace { contents, .. }) => {
                    Some(contents.clone())
                }
                Some(_) => None,
                None => self.copy.original(&path),
            };
            if self.copy.read(&path) != expected {
                found.push(path);
            }
        }
        Ok(found)
    }

    /// Tests that rewrite what they are judged by say nothing, unless the project's tests did that before.
    pub(crate) async fn judge_written(&mut self) -> Result<(), ProveError> {
        if self.written_with_change.is_empty() {
            return Ok(());
        }
        if self.written_on_base.is_none() {
            let suite = self.suite.clone();
            self.test_state("base again", &suite, |_, versions| versions.base.clone())
                .await?;
        }
        let on_base = self.written_on_base.take().unwrap_or_default();
        let written: Vec<String> = self
            .written_with_change
            .difference(&on_base)
            .map(|path| path.display().to_string())
            .collect();
        if !written.is_empty() {
            self.gap(
                format!(
                    "Running the tests changed {}, and on the base it does not.",
                    words::plain(&written.join(", "))
                ),
                "tests must not change tests, their data or configuration",
            );
        }
        Ok(())
    }

    pub(crate) fn note(&mut self, name: &'static str, command: &str, result: &str, took: Duration) {
        // A command that selects tests can name hundreds of them.
        let cut = |text: &str| words::cut_middle(text, MAX_STEP_BYTES).into_owned();
        self.report.steps.push(Step {
            name,
            command: cut(command),
            result: cut(result),
            took,
        });
    }

    /// The suite on the base: kept from an earlier proof, skipped if that is asked for and safe, or run now.
    pub(crate) async fn baseline(&mut self, after: &TestRun) -> Result<TestRun, ProveError> {
        let kept = self.cache.as_ref().and_then(BaselineCache::load);
        if let Some(run) = kept {
            // A run that is kept can be out of date, so a failure is always compared with a fresh one.
            if compare(&run, after).newly_failing.is_empty() {
                let result = format!("{}, from an earlier proof", run.sentence());
                self.note("base", run.command(), &result, Duration::ZERO);
                return Ok(run);
            }
        }
        if self.request.fast && after.outcome().is_passed() && !self.edits_existing_tests() {
            self.report.notes.push(String::from(
                "the base was not tested (--fast): nothing fails with the change, and no existing test was edited",
            ));
            return Ok(after.without_tests(|name| self.is_new_test(after, name)));
        }
        let suite = self.suite.clone();
        let before = self
            .test_state("base", &suite, |_, versions| versions.base.clone())
            .await?;
        if let Some(cache) = &self.cache {
            cache.save(&before);
        }
        Ok(before)
    }

    /// If tests are missing that may have another name now, runs the base once more: only two runs of the same files show
    /// names that vary by themselves.
    pub(crate) async fn with_stable_names(
        &mut self,
        before: TestRun,
        after: TestRun,
    ) -> Result<(TestRun, TestRun), ProveError> {
        let edited: BTreeSet<TestName> = self
            .finder()
            .changed_test_files(&self.change, &before, |versions| versions.base.as_deref())
            .into_iter()
            .flat_map(|file| file.tests)
            .collect();
        if VaryingNames::are_possible(&before, &after, |name| edited.contains(name)) {
            let suite = self.suite.clone();
            let again = self
                .test_state("base again", &suite, |_, versions| versions.base.clone())
                .await?;
            if let Some(varying) = VaryingNames::between(&before, &again) {
                self.report.notes.push(varying.sentence());
                self.suite.set_varying_names(varying);
            }
        }
        Ok((
            self.suite.with_stable_names(before),
            self.suite.with_stable_names(after),
        ))
    }

    /// Whether the change removes or edits lines of tests or of their configuration.
    fn edits_existing_tests(&self) -> bool {
        let finder = self.finder();
        self.change.changed().any(|(path, versions)| {
            if finder.role(path).is_protected() && finder.tests_in(path, Some(b"")).is_none() {
                return true;
            }
            let tests = |contents| finder.tests_in(path, contents);
            match (
                tests(versions.base.as_deref()),
                tests(versions.change.as_deref()),
            ) {
                (None, _) => false,
                (Some(_), None) => true,
                (Some(old), Some(new)) => first_lost_line(&old, &new).is_some(),
            }
        })
    }

    /// Whether the test is in a file of the change and not in the base's version of that file.
    fn is_new_test(&self, after: &TestRun, name: &TestName) -> bool {
        let finder = self.finder();
        let mut files =
            finder.changed_test_files(&self.change, after, |versions| versions.change.as_deref());
        files.retain(|file| file.tests.contains(name));
        files.iter().any(|file| {
            let base = self.change.files[&file.path].base.as_deref();
            let base = base.and_then(|bytes| std::str::from_utf8(bytes).ok());
            base.is_none_or(|base| {
                let title = name.base().rsplit([' ', ':', '>', '#', '/']).next();
                title.is_none_or(|title| !base.contains(title))
            })
        })
    }

    /// Splits newly failing tests into those that fail again and those that pass in two more runs: alone, and with the whole
    /// suite, because some fail only after another test.
    pub(crate) async fn repeated_failures(
        &mut self,
        mut failing: Vec<TestName>,
    ) -> Result<(Vec<TestName>, Vec<TestName>), ProveError> {
        let mut flaky = Vec::new();
        if failing.is_empty() {
            return Ok((failing, flaky));
        }
        let whole = self.suite.clone();
        let alone = whole.select(&failing);
        for suite in alone.iter().chain([&whole]) {
            let again = self
                .test_state("change again", suite, |_, versions| versions.change.clone())
                .await?;
            (failing, flaky) = failing
                .into_iter()
                .chain(flaky)
                .partition(|name| !matches!(again.state(name), Some(TestState::Passed)));
            // Failing again is enough for `broken`.
            if !failing.is_empty() {
                break;
            }
        }
        Ok((failing, flaky))
    }

    /// Runs these tests alone if the runner can select them. If that says nothing, runs the whole suite.
    pub(crate) async fn selected_state(
        &mut self,
        name: &'static str,
        tests: &[TestName],
        pick: impl Fn(&Path, &Versions) -> Option<Vec<u8>>,
    ) -> Result<TestRun, ProveError> {
        if let Some(suite) = self.suite.select(tests) {
            let run = self.test_state(name, &suite, &pick).await?;
            if run.outcome().is_conclusive() || matches!(run.outcome(), Outcome::DidNotBuild { .. })
            {
                return Ok(run);
            }
        }
        let suite = self.suite.clone();
        self.test_state(name, &suite, &pick).await
    }
}
