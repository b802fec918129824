//! Before any model is asked: the tests of the armed project are found and run once. What is true then is
//! what every later run is compared with. A project that no model could help with ends here, with the remedy.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::door::AnswerDoor;
use super::memory::{Digests, Memory, digests, files_key};
use super::params::AllowedDependencies;
use crate::common::inside;
use supervisor_engine::Status;
use supervisor_engine::site::{Site, SiteError};
use supervisor_engine::skill::{Preparation, RefusedCall};
use supervisor_languages::Language;
use supervisor_text::words;
use supervisor_verify as verify;
use supervisor_verify::sealed::role;
use supervisor_verify::{
    BaselineOrigin, Bench, DetectRequest, KnownOutcome, Outcome, OutcomeKey, Recheck, Suite,
    TestName, TestRun, dependency_file,
};

/// Bytes of test output in a result.
pub(super) const SHOWN: usize = 3_000;

/// A project that is armed, and what was seen of it.
#[derive(Debug)]
pub(super) struct Ground {
    /// Canonical.
    pub(super) root: PathBuf,
    /// Where this process finds its files as they are in the work so far.
    pub(super) files: PathBuf,
    pub(super) suite: Suite,
    bench: Bench,
    /// The tests as they were before anybody touched anything.
    pub(super) run: TestRun,
    /// Whether they were run just now, or known from a run of the very same files.
    pub(super) origin: BaselineOrigin,
    pub(super) by_products: Vec<PathBuf>,
    /// By-products that are sealed, such as a lock file, with what the tests wrote into them.
    pub(super) lock_files: BTreeMap<PathBuf, [u8; 32]>,
    /// Not protected and there after the first run.
    pub(super) unprotected: BTreeSet<PathBuf>,
    /// When the first run was over.
    pub(super) since: SystemTime,
    pub(super) tests: Digests,
    pub(super) sealed: usize,
    /// Every file as it was, by the digest of its bytes.
    digests_before: BTreeMap<PathBuf, [u8; 32]>,
    /// Which new dependencies the caller allows.
    pub(super) dependencies: AllowedDependencies,
    /// What the command itself starts, relative to the root.
    scripts: BTreeSet<PathBuf>,
    /// How often a red and a green are run before they are believed.
    pub(super) repeat: u32,
    pub(super) other_build: bool,
    /// What failed in the first run and passed in another one of the same files.
    pub(super) flaky: BTreeSet<TestName>,
    /// Where answers come in.
    pub(super) door: AnswerDoor,
}

/// What the caller says about the tests.
pub(super) struct TestsAsked<'a> {
    pub(super) test_cmd: Option<&'a str>,
    pub(super) test_report: Option<&'a str>,
    pub(super) dependencies: AllowedDependencies,
}

impl Ground {
    /// Finds the tests of an armed project and runs them once. `near` is a file near those that are meant.
    pub(super) async fn survey(
        call: &mut Preparation<'_>,
        memory: &Memory,
        near: Option<&str>,
        asked: &TestsAsked<'_>,
    ) -> Result<Self, RefusedCall> {
        let root = call.root().to_owned();
        let near = near
            .map(|near| inside(&root, split(&root, near).0))
            .transpose()
            .map_err(RefusedCall::error)?;
        let mut bench = call.bench();
        let request = DetectRequest {
            root: &root,
            near: near.as_deref(),
            test_cmd: asked.test_cmd,
            test_report: asked.test_report,
            path: bench.env.get(OsStr::new("PATH")).map(OsString::as_os_str),
        };
        let suite = request.detect().map_err(RefusedCall::error)?;
        let armed = call.site.armed().map_err(RefusedCall::error)?;
        let sealed = armed
            .files()
            .filter(|(path, _)| role(suite.ecosystem(), path).is_sealed())
            .count();
        let tests = digests(suite.ecosystem(), armed.files());
        let digests_before: BTreeMap<PathBuf, [u8; 32]> = armed
            .files()
            .map(|(path, hash)| (path.to_owned(), hash))
            .collect();
        let key = OutcomeKey::new(&armed.digest(), &suite, &bench.env);
        // An accepted call knows what its own last run showed, of the files as it left them.
        let left = files_key(&digests_before, &suite, &bench.env);
        let known = memory
            .outcomes
            .known(&key)
            .or_else(|| memory.outcomes.known(&left));
        let files = call.site.files_root();
        let (run, origin, written) = if let Some(KnownOutcome { run, by_products }) = known {
            call.doing(format!(
                "`{}` was run on the very same files before",
                suite.command()
            ));
            call.site
                .armed()
                .map_err(RefusedCall::error)?
                .expect_by_products(by_products.keys());
            (run, BaselineOrigin::Known, by_products)
        } else {
            call.doing(format!(
                "running `{}` before anything is changed",
                suite.command()
            ));
            let mut guarded = Bench {
                guard: call.site.guard().map_err(RefusedCall::error)?,
                ..bench.clone()
            };
            let run = verify::run_first(&suite, &mut guarded, call.stop).await;
            bench.walls.network = guarded.walls.network;
            drop(guarded);
            let marked = call
                .site
                .armed()
                .and_then(|a| Ok(a.mark_by_products()?))
                .map_err(RefusedCall::error)?;
            let by_products = with_digests(&files, marked);
            // In place they stay, and the files of the next call are others.
            let is_the_same_again = by_products.is_empty() || !call.site.is_in_place();
            if is_the_same_again && bench.walls.network.is_none() {
                let by_products = by_products.clone();
                memory.outcomes.keep(
                    key,
                    KnownOutcome {
                        run: run.clone(),
                        by_products,
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
        says_something(&run)?;
        let ecosystem = suite.ecosystem();
        let lock_files = written
            .iter()
            .filter(|(path, _)| role(ecosystem, path).is_sealed())
            .map(|(p, h)| (p.clone(), *h))
            .collect();
        let by_products = written.into_keys().collect();
        let since = SystemTime::now();
        let changes = call.site.changes().map_err(RefusedCall::error)?;
        let unprotected = changes.unprotected.into_iter().map(|u| u.path).collect();
        let below = |path: PathBuf| {
            Some(
                path.canonicalize()
                    .ok()?
                    .strip_prefix(&root)
                    .ok()?
                    .to_owned(),
            )
        };
        let scripts = suite.scripts().into_iter().filter_map(below).collect();
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
            since,
            tests,
            sealed,
            digests_before,
            dependencies: asked.dependencies.clone(),
            scripts,
            repeat: call.routing().verify.repeat,
            other_build: call.routing().verify.other_build,
            flaky: BTreeSet::new(),
            door: AnswerDoor::default(),
        })
    }

    pub(super) fn ecosystem(&self) -> Option<&'static Language> {
        self.suite.ecosystem()
    }

    /// As it is before anybody guards what is run.
    pub(super) fn bench_alone(&self) -> Bench {
        self.bench.clone()
    }

    pub(super) fn bench(&self, site: &mut Site) -> Result<Bench, SiteError> {
        Ok(Bench {
            guard: site.guard()?,
            ..self.bench.clone()
        })
    }

    /// How this run is made again, should the project change before the work is written.
    pub(super) fn recheck(&self, accepted: &TestRun, failing: Vec<TestName>) -> Recheck {
        let (suite, bench) = (self.suite.clone(), self.bench.clone());
        Recheck {
            suite,
            bench,
            accepted: accepted.clone(),
            failing,
        }
    }

    /// What this outcome of the files as they are now is remembered by, and as. What the tests wrote in place stays with
    /// the change, and is there when the project is looked at again; in a private view it does not, so it is remembered.
    pub(super) fn to_remember(
        &self,
        site: &mut Site,
        run: &TestRun,
    ) -> Result<(OutcomeKey, KnownOutcome), SiteError> {
        let now = site.changes()?;
        let mut files = self.digests_before.clone();
        let mut by_products = with_digests(
            &self.files,
            now.by_products.into_iter().map(|b| b.path).collect(),
        );
        let stays = if site.is_in_place() {
            std::mem::take(&mut by_products)
        } else {
            BTreeMap::new()
        };
        for path in now
            .changes
            .into_iter()
            .map(|c| c.path)
            .chain(stays.into_keys())
        {
            match digest_of(&self.files.join(&path)) {
                Some(digest) => drop(files.insert(path, digest)),
                None => drop(files.remove(&path)),
            }
        }
        Ok((
            files_key(&files, &self.suite, &self.bench.env),
            KnownOutcome {
                run: run.clone(),
                by_products,
            },
        ))
    }

    /// Is this a manifest or lock file that the caller lets grow?
    pub(super) fn may_grow(&self, path: &Path) -> bool {
        self.dependencies.any() && dependency_file(path).is_some()
    }

    /// Was this file there before the call?
    pub(super) fn had(&self, path: &Path) -> bool {
        self.digests_before.contains_key(path) || self.by_products.iter().any(|known| known == path)
    }

    /// Is this what the tests are started by?
    pub(super) fn starts(&self, path: &Path) -> bool {
        self.scripts.contains(path)
    }

    /// A path of the project, as names in runs refer to it.
    pub(super) fn as_run(&self, path: &Path) -> PathBuf {
        let whole = self.root.join(path);
        whole
            .strip_prefix(self.suite.root())
            .map_or_else(|_| path.to_owned(), Path::to_owned)
    }
}

/// The digest of a file's bytes; `None` if it is no file that can be read.
fn digest_of(path: &Path) -> Option<[u8; 32]> {
    /// No snapshot holds a longer file by default, so nothing is known by its bytes; tests may leave one of many gigabytes.
    const LONGEST: u64 = 64 << 20;
    // Looked at first: a fifo would be waited for, and a link may lead to what does not end.
    let meta = path.symlink_metadata().ok().filter(fs::Metadata::is_file)?;
    let mut hasher = blake3::Hasher::new();
    if meta.len() > LONGEST {
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
            .update_reader(fs::File::open(path).ok()?.take(LONGEST))
            .ok()?;
    }
    Some(*hasher.finalize().as_bytes())
}

/// By-products are remembered with their digests; directories have none.
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

/// Runs that say nothing about the code end the call: no model can fix them.
fn says_something(run: &TestRun) -> Result<(), RefusedCall> {
    let remedy = match run.outcome() {
        Outcome::Passed | Outcome::Failed | Outcome::NoTests | Outcome::DidNotBuild { .. } => {
            return Ok(());
        }
        // Its sentence ends with the remedy.
        Outcome::CouldNotRun { .. } => "",
        Outcome::TimedOut { .. } => {
            "; raise `limits.tests_s`, or name a `test_cmd` that is narrower, or that ends at all if this one waits or serves"
        }
        Outcome::Unclear { .. } | Outcome::Killed { .. } => {
            "; run it by hand, or name another `test_cmd`"
        }
        Outcome::Cancelled => "",
    };
    Err(refused(
        run,
        format!("{}{remedy}; no model was asked", run.sentence()),
    ))
}

/// An error before any model was asked, with what the tests printed.
pub(super) fn refused(run: &TestRun, message: String) -> RefusedCall {
    RefusedCall {
        status: Status::Error,
        message,
        runner_output: words::cut_middle(run.output(), SHOWN).into_owned(),
        details: serde_json::Value::Null,
    }
}

/// `tests/api.rs::adds` is a file and a test in it.
pub(super) fn split<'a>(root: &Path, given: &'a str) -> (&'a str, Option<&'a str>) {
    match given.split_once("::") {
        Some((path, name)) if !root.join(given).exists() => {
            (path, Some(name).filter(|n| !n.is_empty()))
        }
        _ => (given, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_in_a_file_is_named_after_two_colons() {
        let dir = tempfile::tempdir().expect("a directory");
        assert_eq!(
            split(dir.path(), "tests/a.rs::adds"),
            ("tests/a.rs", Some("adds"))
        );
        assert_eq!(split(dir.path(), "tests/a.rs"), ("tests/a.rs", None));
    }
}
