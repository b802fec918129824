//! Before any model is asked: the project is locked and armed, its tests are found and run once. What is true then is
//! what every later run is compared with. A project that no model could help with ends here, with the remedy.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tokio_util::sync::CancellationToken;

use super::memory::{Digests, digests};
use crate::engine::Status;
use crate::engine::event::{Event, Teller};
use crate::engine::run::Early;
use crate::engine::site::{Site, SiteError};
use crate::process::environment;
use crate::routing::{Route, Routing};
use crate::server::App;
use crate::skills::common::{caps, inside};
use crate::verify::sealed::role;
use crate::verify::{self, Bench, Ecosystem, Origin, Outcome, OutcomeKey, Suite, TestRun};
use crate::words;
use crate::workspace::{Mode, Workspace};

/// Bytes of test output in a result.
pub(super) const SHOWN: usize = 3_000;

/// A project that is armed, and what was seen of it.
#[derive(Debug)]
pub(super) struct Ground {
    /// Canonical.
    pub(super) root: PathBuf,
    pub(super) suite: Suite,
    bench: Bench,
    /// The tests as they were before anybody touched anything.
    pub(super) run: TestRun,
    /// Whether they were run just now, or known from a run of the very same files.
    pub(super) origin: Origin,
    pub(super) by_products: Vec<PathBuf>,
    /// By-products that are sealed, such as a lock file, with what the tests wrote into them.
    pub(super) lock_files: BTreeMap<PathBuf, blake3::Hash>,
    /// Not protected and there after the first run.
    pub(super) unprotected: BTreeSet<PathBuf>,
    /// When the first run was over.
    pub(super) since: SystemTime,
    pub(super) tests: Digests,
    pub(super) sealed: usize,
    /// What the command itself starts, relative to the root.
    scripts: BTreeSet<PathBuf>,
}

impl Ground {
    pub(super) fn ecosystem(&self) -> Option<Ecosystem> {
        self.suite.ecosystem()
    }

    pub(super) fn bench(&self, site: &mut Site) -> Result<Bench, SiteError> {
        Ok(Bench { guard: site.guard()?, ..self.bench.clone() })
    }

    /// Is this what the tests are started by?
    pub(super) fn starts(&self, path: &Path) -> bool {
        self.scripts.contains(path)
    }

    /// A path of the project, as names in runs refer to it.
    pub(super) fn as_run(&self, path: &Path) -> PathBuf {
        let whole = self.root.join(path);
        whole.strip_prefix(self.suite.root()).map_or_else(|_| path.to_owned(), Path::to_owned)
    }
}

/// What a call brings to the preparation.
pub(super) struct Plan<'a> {
    pub(super) app: &'a App,
    pub(super) routing: &'a Routing,
    pub(super) route: &'a Route,
    pub(super) root: &'a str,
    /// A file near the tests that are meant.
    pub(super) near: Option<&'a str>,
    pub(super) test_cmd: Option<&'a str>,
    pub(super) teller: &'a Teller<'a>,
    pub(super) stop: &'a CancellationToken,
}

impl Plan<'_> {
    /// Locks, arms, finds the tests and runs them once.
    pub(super) async fn prepare(&self) -> Result<(Site, Ground), Early> {
        let doing = |what: String| self.teller.tell(Event::Doing { what });
        let state = self.app.state().map_err(Early::error)?;
        let workspace = Workspace::open(Path::new(self.root), caps(self.routing), &state).map_err(Early::error)?;
        let root = workspace.root().to_owned();
        let near = self.near.map(|near| inside(&root, split(&root, near).0)).transpose().map_err(Early::error)?;
        let suite = verify::detect(&root, near.as_deref(), self.test_cmd).map_err(Early::error)?;
        let skill = &self.route.skill;
        let lease = workspace
            .lock(Mode::Exclusive, skill, self.route.limits.lock_wait, self.stop)
            .await
            .map_err(Early::error)?;
        let mut site = Site::arm(lease, self.app.launcher()).await.map_err(Early::error)?;
        let (sealed, tests, files) = {
            let armed = site.armed().map_err(Early::error)?;
            let sealed = armed.files().filter(|(path, _)| role(suite.ecosystem(), path).is_sealed()).count();
            (sealed, digests(suite.ecosystem(), armed.files()), armed.files().count())
        };
        let unprotected = site.armed().map_err(Early::error)?.unprotected().len();
        self.teller.tell(Event::Armed { files, unprotected });
        let keys: Vec<String> = self.routing.backends.values().filter_map(|b| b.api_key_env.clone()).collect();
        let bench = Bench {
            launcher: self.app.launcher().clone(),
            env: environment::tests(self.app.env().vars().clone(), &keys, &self.routing.env_pass),
            limit: self.route.limits.tests,
            guard: None,
        };
        let outcomes = &self.app.memory().outcomes;
        let key = OutcomeKey::new(&site.armed().map_err(Early::error)?.digest(), &suite, &bench.env);
        let (run, origin, by_products) = if let Some(known) = outcomes.baseline(&key) {
            doing(format!("`{}` was run on the very same files before", suite.command()));
            (known.run().clone(), known.origin(), Vec::new())
        } else {
            doing(format!("running `{}` before anything is changed", suite.command()));
            let guarded = Bench { guard: site.guard().map_err(Early::error)?, ..bench.clone() };
            let run = suite.run(&guarded, self.stop).await;
            drop(guarded);
            let by_products = site.armed().and_then(|a| Ok(a.mark_by_products()?)).map_err(Early::error)?;
            // What a run writes is known only from running it.
            if by_products.is_empty() {
                outcomes.keep(key, &run);
            }
            (run, Origin::Ran, by_products)
        };
        doing(format!("before: {}", run.sentence()));
        says_something(&run)?;
        let ecosystem = suite.ecosystem();
        let lock_files = by_products
            .iter()
            .filter(|path| role(ecosystem, path).is_sealed())
            .filter_map(|path| Some((path.clone(), blake3::hash(&fs::read(root.join(path)).ok()?))))
            .collect();
        let since = SystemTime::now();
        let changes = site.changes().map_err(Early::error)?;
        let unprotected = changes.unprotected.into_iter().map(|u| u.path).collect();
        let below = |path: PathBuf| Some(path.canonicalize().ok()?.strip_prefix(&root).ok()?.to_owned());
        let scripts = suite.scripts().into_iter().filter_map(below).collect();
        let ground = Ground {
            root,
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
            scripts,
        };
        Ok((site, ground))
    }
}

/// Runs that say nothing about the code end the call: no model can mend them.
fn says_something(run: &TestRun) -> Result<(), Early> {
    let remedy = match run.outcome() {
        Outcome::Passed | Outcome::Failed | Outcome::NoTests | Outcome::DidNotBuild { .. } => return Ok(()),
        // Its sentence ends with the remedy.
        Outcome::CouldNotRun { .. } => "",
        Outcome::TimedOut { .. } => "; raise `limits.tests_s` or name a narrower `test_cmd`",
        Outcome::Unclear { .. } | Outcome::Killed { .. } => "; run it by hand, or name another `test_cmd`",
        Outcome::Cancelled => "",
    };
    Err(refused(run, format!("{}{remedy}; no model was asked", run.sentence())))
}

/// An error before any model was asked, with what the tests printed.
pub(super) fn refused(run: &TestRun, message: String) -> Early {
    Early {
        status: Status::Error,
        message,
        runner_output: words::cut_middle(run.output(), SHOWN).into_owned(),
        details: serde_json::Value::Null,
    }
}

/// `tests/api.rs::adds` is a file and a test in it.
pub(super) fn split<'a>(root: &Path, given: &'a str) -> (&'a str, Option<&'a str>) {
    match given.split_once("::") {
        Some((path, name)) if !root.join(given).exists() => (path, Some(name).filter(|n| !n.is_empty())),
        _ => (given, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_in_a_file_is_named_after_two_colons() {
        let dir = tempfile::tempdir().expect("a directory");
        assert_eq!(split(dir.path(), "tests/a.rs::adds"), ("tests/a.rs", Some("adds")));
        assert_eq!(split(dir.path(), "tests/a.rs"), ("tests/a.rs", None));
    }
}
