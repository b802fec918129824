//! Detects the project's tests and runs them once before any model is asked. Later runs are
//! compared with this result. If no model could help (for example because the tests cannot run),
//! the call ends here with an error that says what to do.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use parking_lot::Mutex;

use super::answer_reader::AnswerReader;
use super::memory::{TddMemory, TestDigests, outcome_key, select_test_digests};
use super::params::AllowedDependencies;
use crate::common::inside;
use supervisor_engine::Status;
use supervisor_engine::project_access::{Site, SiteError};
use supervisor_engine::skill::{Preparation, RefusedCall};
use supervisor_languages::Language;
use supervisor_settings::{FlagRule, MutantRuns};
use supervisor_text::words;
use supervisor_verify as verify;
use supervisor_verify::protected::{FileRole, role, role_among};
use supervisor_verify::{
    BaselineOrigin, CachedOutcome, DetectRequest, KnownNetwork, Outcome, OutcomeKey, Recheck,
    ResultCheck, RunEnvironment, Suite, TestName, TestRun, dependency_file,
};

/// Maximum bytes of test output in a result.
pub(super) const MAX_OUTPUT_BYTES: usize = 3_000;

/// The project and its tests as they were before the worker changed anything.
#[derive(Debug)]
pub(super) struct TestBaseline {
    /// Canonical path of the project.
    pub(super) root: PathBuf,
    /// Where this process reads the project's current files; differs from `root` when the call
    /// works in an overlay.
    pub(super) files: PathBuf,
    pub(super) suite: Suite,
    bench: RunEnvironment,
    /// The test run before any change.
    pub(super) run: TestRun,
    /// Whether `run` was executed for this call or reused from a run of identical files.
    pub(super) origin: BaselineOrigin,
    pub(super) by_products: Vec<PathBuf>,
    /// Protected files that the tests write themselves, such as lock files, with the digest after
    /// the first run.
    pub(super) lock_files: BTreeMap<PathBuf, [u8; 32]>,
    /// Directories outside the snapshot that existed after the first run.
    pub(super) unprotected: BTreeSet<PathBuf>,
    /// End of the first run.
    pub(super) ended_at: SystemTime,
    pub(super) test_digests: TestDigests,
    pub(super) protected_count: usize,
    /// The files in which the first run found tests, as far as its names tell.
    test_places: BTreeSet<PathBuf>,
    /// Digest of every file before the call.
    pub(super) digests_before: BTreeMap<PathBuf, [u8; 32]>,
    /// New dependencies that the caller allows.
    pub(super) dependencies: AllowedDependencies,
    /// What must pass in the place of a test.
    pub(super) check: Option<ResultCheck>,
    /// Scripts started by the test command, relative to the root.
    scripts: BTreeSet<PathBuf>,
    /// How often red and green tests are run before the result is trusted.
    pub(super) repeat: u32,
    pub(super) other_build: bool,
    pub(super) flags: FlagRule,
    pub(super) mutants: MutantRuns,
    /// Tests that failed in the first run and passed in a later run of the same files.
    pub(super) flaky: BTreeSet<TestName>,
    /// Tests that fail in the same way without the change of the tests.
    pub(super) old_failures: BTreeSet<TestName>,
    pub(super) answer_reader: AnswerReader,
    /// The user's own checks, such as `ruff check .`.
    pub(super) checks: Vec<String>,
    /// Runs without any work, by command.
    pub(super) without_work: Mutex<BTreeMap<String, TestRun>>,
}

/// The caller's arguments about the tests.
pub(super) struct TestOptions<'a> {
    pub(super) test_cmd: Option<&'a str>,
    pub(super) test_report: Option<&'a str>,
    pub(super) dependencies: AllowedDependencies,
    pub(super) check: Option<&'a ResultCheck>,
}

impl TestBaseline {
    /// Detects the tests and runs them once. `near` is a file close to the tests in question.
    pub(super) async fn run(
        call: &mut Preparation<'_>,
        memory: &TddMemory,
        near: Option<&str>,
        options: &TestOptions<'_>,
    ) -> Result<Self, RefusedCall> {
        let root = call.root().to_owned();
        let near = near
            .filter(|near| !is_test_name(&root, near))
            .map(|near| inside(&root, split_test_path(&root, near).0))
            .transpose()
            .map_err(RefusedCall::error)?;
        let mut bench = call.bench();
        let request = DetectRequest {
            root: &root,
            near: near.as_deref(),
            test_cmd: options.test_cmd,
            test_report: options.test_report,
            path: bench.env.get(OsStr::new("PATH")).map(OsString::as_os_str),
        };
        let mut suite = match options.check {
            // The project's own tests run beside the check where the caller or the settings name them.
            Some(check) if options.test_cmd.is_some() => request.detect()?.with_check(check),
            Some(check) => Suite::of_check(&root, check),
            None => request.detect()?,
        };
        memory.share_varying_names(&root, &mut suite);
        let armed = call.site.armed()?;
        let protected_count = armed
            .files()
            .filter(|(path, _)| role(suite.ecosystem(), path).is_protected())
            .count();
        let test_digests = select_test_digests(suite.ecosystem(), armed.files());
        let digests_before: BTreeMap<PathBuf, [u8; 32]> = armed
            .files()
            .map(|(path, hash)| (path.to_owned(), hash))
            .collect();
        let start_key = OutcomeKey::new(&armed.digest(), &suite, &bench.env);
        // An accepted call stores the outcome of its last run under the files it left behind.
        let left_key = outcome_key(&digests_before, &suite, &bench.env);
        let known = memory
            .outcomes
            .get(&start_key)
            .or_else(|| memory.outcomes.get(&left_key));
        let files = call.site.files_root();
        let (run, origin, written) = if let Some(CachedOutcome {
            run,
            by_products,
            network,
        }) = known
        {
            bench.sandbox.network = network;
            call.doing(format!(
                "no files changed since: using the last run of `{}`",
                suite.command()
            ));
            call.site.armed()?.expect_by_products(by_products.keys());
            let run = suite.with_stable_names(run);
            (run, BaselineOrigin::Known, by_products)
        } else {
            call.doing(format!(
                "running `{}` before anything is changed",
                suite.command()
            ));
            let mut guarded = RunEnvironment {
                guard: call.site.guard()?,
                ..bench.clone()
            };
            let state = &call.environment.state;
            let network = state.sub("test-network").ok();
            let network = network.map(|folder| KnownNetwork::in_folder(&folder, &suite));
            // Boxed, because the future of a whole cycle must fit on the stack.
            let first = verify::run_first(&suite, &mut guarded, network.as_ref(), call.stop);
            let run = Box::pin(first).await;
            bench.sandbox.network = guarded.sandbox.network;
            drop(guarded);
            let marked = call.site.armed().and_then(|a| Ok(a.mark_by_products()?))?;
            let by_products = with_digests(&files, marked);
            // In place, by-products remain in the project, so the next call sees different files.
            let is_reproducible = by_products.is_empty() || !call.site.is_in_place();
            if is_reproducible {
                let by_products = by_products.clone();
                memory.outcomes.insert(
                    start_key,
                    CachedOutcome {
                        run: run.clone(),
                        by_products,
                        network: bench.sandbox.network,
                    },
                );
            }
            (run, BaselineOrigin::Ran, by_products)
        };
        call.noted(format!(
            "before: {} ({:.1} s)",
            run.sentence(),
            run.took().as_secs_f64()
        ));
        ensure_conclusive(&run)?;
        let ecosystem = suite.ecosystem();
        let lock_files = written
            .iter()
            .filter(|(path, _)| role(ecosystem, path).is_protected())
            .map(|(p, h)| (p.clone(), *h))
            .collect();
        let by_products = written.into_keys().collect();
        let prefix = suite.root().strip_prefix(&root).unwrap_or(Path::new(""));
        let test_places = run
            .named()
            .filter_map(|(name, _)| name.file())
            .map(|file| prefix.join(file))
            .filter(|file| digests_before.contains_key(file))
            .collect();
        let ended_at = SystemTime::now();
        let changes = call.site.changes()?;
        let unprotected = changes.unprotected.into_iter().map(|u| u.path).collect();
        let relative = |path: PathBuf| {
            Some(
                path.canonicalize()
                    .ok()?
                    .strip_prefix(&root)
                    .ok()?
                    .to_owned(),
            )
        };
        let checks = call.routing().checks(&root).to_vec();
        let scripts = suite.scripts().into_iter().filter_map(relative).collect();
        Ok(Self {
            root,
            files,
            suite,
            bench,
            run,
            origin,
            by_products,
            lock_files,
            unprotected,
            ended_at,
            test_digests,
            protected_count,
            test_places,
            digests_before,
            dependencies: options.dependencies.clone(),
            check: options.check.cloned(),
            scripts,
            repeat: call.routing().verify.repeat,
            other_build: call.routing().verify.other_build,
            flags: call.routing().verify.flags,
            mutants: call.routing().verify.mutants,
            flaky: BTreeSet::new(),
            old_failures: BTreeSet::new(),
            answer_reader: AnswerReader::default(),
            checks,
            without_work: Mutex::default(),
        })
    }

    /// The role of a file; what the first run found tests in belongs to the tests.
    pub(super) fn role(&self, path: &Path) -> FileRole {
        role_among(self.ecosystem(), path, |dir| {
            self.test_places.iter().any(|place| place.starts_with(dir))
        })
    }

    pub(super) fn ecosystem(&self) -> Option<&'static Language> {
        self.suite.ecosystem()
    }

    /// The bench without a guard on the project.
    pub(super) fn bench_without_guard(&self) -> RunEnvironment {
        self.bench.clone()
    }

    pub(super) fn bench(&self, site: &mut Site) -> Result<RunEnvironment, SiteError> {
        Ok(RunEnvironment {
            guard: site.guard()?,
            ..self.bench.clone()
        })
    }

    /// For one run of the answer: what it writes decides no later run. See [`Site::run_guard`].
    pub(super) fn bench_for_run(&self, site: &mut Site) -> Result<RunEnvironment, SiteError> {
        Ok(RunEnvironment {
            guard: site.run_guard()?,
            ..self.bench.clone()
        })
    }

    /// How to repeat this run if the project changes before the work is written.
    pub(super) fn recheck(&self, accepted: &TestRun, failing: Vec<TestName>) -> Recheck {
        let (suite, bench) = (self.suite.clone(), self.bench.clone());
        Recheck {
            suite,
            environment: bench,
            accepted: accepted.clone(),
            must_fail: failing,
        }
    }

    /// Key and outcome to remember for the current files. By-products written in place remain in
    /// the project and count as its files. By-products in an overlay are discarded, so they are
    /// stored with the outcome.
    pub(super) fn outcome_to_remember(
        &self,
        site: &mut Site,
        run: &TestRun,
    ) -> Result<(OutcomeKey, CachedOutcome), SiteError> {
        let now = site.changes()?;
        let mut files = self.digests_before.clone();
        let mut by_products = with_digests(
            &self.files,
            now.by_products.into_iter().map(|b| b.path).collect(),
        );
        let kept_in_place = if site.is_in_place() {
            std::mem::take(&mut by_products)
        } else {
            BTreeMap::new()
        };
        for path in now
            .changes
            .into_iter()
            .map(|c| c.path)
            .chain(kept_in_place.into_keys())
        {
            match digest_of(&self.files.join(&path)) {
                Some(digest) => drop(files.insert(path, digest)),
                None => drop(files.remove(&path)),
            }
        }
        Ok((
            outcome_key(&files, &self.suite, &self.bench.env),
            CachedOutcome {
                run: run.clone(),
                by_products,
                network: self.bench.sandbox.network,
            },
        ))
    }

    /// The test files that the output of the first run names.
    pub(super) fn test_files_in_output(&self) -> Vec<PathBuf> {
        let output = self.run.output();
        let is_named = |path: &&PathBuf| {
            let relative = self.suite_relative(path).to_string_lossy().into_owned();
            let module = relative
                .rsplit_once('.')
                .map(|(stem, _)| stem.replace('/', "."));
            output.contains(&relative) || module.is_some_and(|module| output.contains(&module))
        };
        self.digests_before
            .keys()
            .filter(|path| self.role(path) == FileRole::Test)
            .filter(is_named)
            .cloned()
            .collect()
    }

    /// Files that belong to the tests, as they were when the call began.
    pub(super) fn belongs_to_tests(&self, path: &Path) -> bool {
        self.role(path).belongs_to_tests() && self.digests_before.contains_key(path)
    }

    /// Whether this is a manifest or lock file to which the caller allows new dependencies.
    pub(super) fn may_gain_dependencies(&self, path: &Path) -> bool {
        self.dependencies.any() && dependency_file(path).is_some()
    }

    /// Whether this file existed before the call.
    pub(super) fn existed(&self, path: &Path) -> bool {
        self.digests_before.contains_key(path) || self.by_products.iter().any(|known| known == path)
    }

    /// Whether the run without the work wrote such a file: in a directory that it created, or beside a new file whose name
    /// differs in numbers only.
    pub(super) fn wrote_beside(&self, path: &Path) -> bool {
        let pattern = |path: &Path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let name = name.split(|c: char| c.is_ascii_digit());
            name.filter(|part| !part.is_empty())
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        self.by_products
            .iter()
            .filter(|known| !self.digests_before.contains_key(*known))
            .any(|known| {
                path.starts_with(known)
                    || (path.parent() == known.parent() && pattern(path) == pattern(known))
            })
    }

    /// Whether the test command runs this file.
    pub(super) fn is_test_script(&self, path: &Path) -> bool {
        self.scripts.contains(path)
    }

    /// The path as test names in a run refer to it: relative to the suite's root where possible.
    /// Every file before the call.
    pub(super) fn files_before(&self) -> impl Iterator<Item = &Path> {
        self.digests_before.keys().map(PathBuf::as_path)
    }

    pub(super) fn suite_relative(&self, path: &Path) -> PathBuf {
        let whole = self.root.join(path);
        whole
            .strip_prefix(self.suite.root())
            .map_or_else(|_| path.to_owned(), Path::to_owned)
    }
}

/// Digest of a file's bytes; `None` if it is not a readable regular file.
fn digest_of(path: &Path) -> Option<[u8; 32]> {
    /// Snapshots hold no larger file by default, so there is no digest to compare with. Tests may
    /// leave files of many gigabytes; those are identified by their metadata.
    const MAX_HASHED_BYTES: u64 = 64 << 20;
    // Check the type before opening: opening a FIFO blocks, and a link may point at an endless
    // device.
    let meta = path.symlink_metadata().ok().filter(fs::Metadata::is_file)?;
    let mut hasher = blake3::Hasher::new();
    if meta.len() > MAX_HASHED_BYTES {
        let stamp = format!(
            "{} {} {} {}",
            meta.len(),
            meta.ino(),
            meta.ctime(),
            meta.ctime_nsec()
        );
        hasher.update(stamp.as_bytes());
    } else {
        hasher
            .update_reader(fs::File::open(path).ok()?.take(MAX_HASHED_BYTES))
            .ok()?;
    }
    Some(*hasher.finalize().as_bytes())
}

/// Pairs each path with its digest. Directories get a digest of zeros.
fn with_digests(root: &Path, paths: Vec<PathBuf>) -> BTreeMap<PathBuf, [u8; 32]> {
    paths
        .into_iter()
        .map(|path| {
            (
                path.clone(),
                digest_of(&root.join(path)).unwrap_or_default(),
            )
        })
        .collect()
}

/// Ends the call if the run says nothing about the code, because no model can fix that.
fn ensure_conclusive(run: &TestRun) -> Result<(), RefusedCall> {
    let remedy = match run.outcome() {
        Outcome::Passed | Outcome::Failed | Outcome::NoTests | Outcome::DidNotBuild { .. } => {
            return Ok(());
        }
        // The sentence already ends with a remedy.
        Outcome::CouldNotRun { .. } | Outcome::Cancelled => "",
        Outcome::TimedOut { .. } => {
            " Raise `limits.tests_s`, or set `test_cmd` to a command that runs fewer tests and ends by itself."
        }
        Outcome::Unclear { .. } | Outcome::Killed { .. } => {
            " Run it by hand to see why, or set `test_cmd` to another command."
        }
    };
    Err(refusal_with_output(
        run,
        format!(
            "{}. No model was asked, and nothing was changed.{remedy}",
            run.sentence()
        ),
    ))
}

/// An error before any model was asked, with the test output.
pub(super) fn refusal_with_output(run: &TestRun, message: String) -> RefusedCall {
    RefusedCall {
        status: Status::Error,
        message,
        runner_output: words::cut_middle(run.output(), MAX_OUTPUT_BYTES).into_owned(),
        details: serde_json::Value::Null,
    }
}

/// Splits a test as messages name it into a file and a test in it: `tests/api.rs::adds`, `a.test.js > sum > adds`,
/// `spec/a_spec.rb A adds`.
pub(super) fn split_test_path<'a>(root: &Path, test_path: &'a str) -> (&'a str, Option<&'a str>) {
    if root.join(test_path).exists() {
        return (test_path, None);
    }
    let separators = ["::", " > ", "#", " "];
    let splits = separators.iter().flat_map(|separator| {
        test_path
            .match_indices(separator)
            .map(|(at, _)| (&test_path[..at], &test_path[at + separator.len()..]))
    });
    let existing = splits
        .clone()
        .filter(|(path, _)| root.join(path).is_file())
        .min_by_key(|(path, _)| path.len());
    // A file that does not exist is named by the refusal.
    let (path, name) = existing
        .or_else(|| test_path.split_once("::"))
        .unwrap_or((test_path, ""));
    (path, Some(name).filter(|name| !name.is_empty()))
}

/// Whether this can only be the name of a test that does not begin with its file, as in Go, Rust, Java and CTest:
/// `example.com/calc TestAdds`, `demo::api adds`.
pub(super) fn is_test_name(root: &Path, test_path: &str) -> bool {
    let (path, _) = split_test_path(root, test_path);
    let has_separator = ["::", " > ", "#", " "]
        .iter()
        .any(|separator| test_path.contains(separator));
    !root.join(path).exists()
        && Language::of_path(Path::new(path)).is_none()
        && (has_separator || !path.contains('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_path_is_split_at_double_colon() {
        let dir = tempfile::tempdir().expect("temp dir");
        assert_eq!(
            split_test_path(dir.path(), "tests/a.rs::adds"),
            ("tests/a.rs", Some("adds"))
        );
        assert_eq!(
            split_test_path(dir.path(), "tests/a.rs"),
            ("tests/a.rs", None)
        );
        for file in ["a.test.js", "with space.rb"] {
            fs::write(dir.path().join(file), "").expect("written");
        }
        for (given, path, only) in [
            (
                "a.test.js > sum > adds 2",
                "a.test.js",
                Some("sum > adds 2"),
            ),
            ("a.test.js::T#test_x", "a.test.js", Some("T#test_x")),
            ("with space.rb A adds", "with space.rb", Some("A adds")),
            ("with space.rb", "with space.rb", None),
        ] {
            assert_eq!(split_test_path(dir.path(), given), (path, only), "{given}");
        }
    }

    #[test]
    fn test_names_are_told_from_paths() {
        let dir = tempfile::tempdir().expect("temp dir");
        fs::write(dir.path().join("a.test.js"), "").expect("written");
        for (given, is_name) in [
            ("a.test.js", false),
            ("a.test.js > sum > adds", false),
            ("gone.test.js", false),
            ("tests/gone.py::test_x", false),
            ("tests/gone", false),
            ("example.com/x/calc TestA/one", true),
            ("demo::api adds", true),
            ("com.example.FooTest#adds", true),
            ("parser_test", true),
        ] {
            assert_eq!(is_test_name(dir.path(), given), is_name, "{given}");
        }
    }
}
