//! The checks that every phase makes, cheapest first: what the answer is, what it touched, what the tests did to the
//! project while they ran. Each leaves a gate behind, so that a reader sees what was looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::baseline::{Ground, SHOWN};
use super::caches;
use crate::backend::Edits;
use crate::engine::job::{Failed, Work};
use crate::engine::site::{Site, SiteError};
use crate::engine::{Cause, proposal};
pub(super) use crate::skills::common::{Gates, named};
use crate::verify::sealed::{Role, role};
use crate::verify::{Baseline, Outcome};
use crate::verify::{Settled, TestRun, run_settled};
use crate::words;
use crate::workspace::{Change, ChangeKind, ChangeSet, Edit, EditError, Thing};

/// What a run printed, head and tail.
pub(super) fn shown(run: &TestRun) -> String {
    words::cut_middle(run.output(), SHOWN).into_owned()
}

/// What the worker changed, with the content it left, taken before any test ran.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) changes: Vec<Change>,
    contents: BTreeMap<PathBuf, Option<blake3::Hash>>,
    /// Who else was at work meanwhile.
    pub(super) others: BTreeSet<PathBuf>,
}

impl Seen {
    /// Files that are there and were changed, with their text before and now.
    pub(super) fn texts(&self, site: &mut Site) -> Result<Vec<Text>, SiteError> {
        let root = site.root().to_owned();
        let armed = site.armed()?;
        let read = |change: &Change| Text {
            path: change.path.clone(),
            before: armed.original(&change.path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
            after: fs::read(root.join(&change.path)).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        };
        Ok(self.changes.iter().filter(|c| c.thing == Thing::File).map(read).collect())
    }
}

/// One changed file. `None`: not there.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) path: PathBuf,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
}

impl Text {
    pub(super) fn was(&self) -> &str {
        self.before.as_deref().unwrap_or_default()
    }

    pub(super) fn is(&self) -> &str {
        self.after.as_deref().unwrap_or_default()
    }
}

/// Puts the answer's edits in place, or takes what an agent did. `sealed` says which paths are off limits here, and why.
pub(super) fn take(
    ground: &Ground,
    work: &mut Work<'_>,
    gates: &mut Gates,
    sealed: &dyn Fn(&Path) -> Result<(), String>,
) -> Result<Seen, Failed> {
    let reason = work.reply.body["contradiction"].as_str().map(str::trim).filter(|r| !r.is_empty());
    if let Some(reason) = reason {
        return Err(gates.refuse("contradiction", Cause::Contradiction, reason));
    }
    let mut others = BTreeSet::new();
    if work.edits == Edits::AsData {
        let already = work.site.changes().map_err(|e| gates.broken(&e))?;
        others = already.changes.iter().map(|c| c.path.clone()).collect();
        let edits =
            proposal::edits(&work.reply.body).map_err(|e| gates.refuse("shape", Cause::Rejected, e.to_string()))?;
        gates.pass("shape", words::count(edits.len(), "edit"));
        put(work.site, gates, &edits, sealed)?;
    }
    let now = work.site.changes().map_err(|e| gates.broken(&e))?;
    let meddled: Vec<String> = now
        .changes
        .iter()
        .filter(|c| others.contains(&c.path) && (c.kind == ChangeKind::Git || sealed(&c.path).is_err()))
        .map(|c| named(&c.path))
        .collect();
    if !meddled.is_empty() {
        let why =
            format!("somebody else changed {} during the call; call again when they are done", meddled.join(", "));
        return Err(gates.refuse("scope", Cause::CannotVerify, why));
    }
    let mut foul = foul(ground, work.site.root(), &now, work.edits);
    if !foul.is_empty() {
        // Whoever hides a change behind another is told of both.
        let sealed = |c: &&Change| c.thing == Thing::File && c.kind != ChangeKind::Git && sealed(&c.path).is_err();
        foul.extend(now.changes.iter().filter(sealed).map(|c| format!("{} (sealed)", named(&c.path))));
        let why = format!("this may not be touched here: {}", foul.join(", "));
        return Err(gates.refuse("scope", Cause::Tampered, why));
    }
    let changes: Vec<Change> = now.changes.into_iter().filter(|c| !others.contains(&c.path)).collect();
    let root = work.site.root().to_owned();
    let contents = changes.iter().map(|c| (c.path.clone(), content(&root, &c.path))).collect();
    Ok(Seen { changes, contents, others })
}

fn put(
    site: &mut Site,
    gates: &mut Gates,
    edits: &[Edit],
    sealed: &dyn Fn(&Path) -> Result<(), String>,
) -> Result<(), Failed> {
    // Said first, also of paths that could not be written anyway.
    let touched: Vec<&str> =
        edits.iter().map(Edit::path).filter(|path| sealed(Path::new(path.trim_start_matches("./"))).is_err()).collect();
    if let Some(first) = touched.first() {
        let why = sealed(Path::new(first.trim_start_matches("./"))).err().unwrap_or_default();
        let names: BTreeSet<String> = touched.iter().map(|p| named(Path::new(p))).collect();
        let names: Vec<String> = names.into_iter().collect();
        let feedback = format!("{} may not be changed here: {why}", names.join(", "));
        return Err(gates.refuse("scope", Cause::Tampered, feedback));
    }
    match site.apply(edits, sealed) {
        Ok(_) => Ok(()),
        Err(SiteError::Edit(error)) => {
            let cause = match &error {
                EditError::Sealed { .. }
                | EditError::Protected { .. }
                | EditError::BadPath { .. }
                | EditError::NotAFile { .. } => Cause::Tampered,
                EditError::Ignored { .. }
                | EditError::Exists { .. }
                | EditError::Missing { .. }
                | EditError::EmptySearch { .. }
                | EditError::NoMatch { .. }
                | EditError::Ambiguous { .. }
                | EditError::Changed { .. }
                | EditError::TooLarge { .. }
                | EditError::Io { .. } => Cause::Rejected,
            };
            Err(gates.refuse("scope", cause, error.to_string()))
        }
        Err(error) => Err(gates.broken(&error)),
    }
}

/// What no phase may touch: the repository itself, links and devices, what the lock file says, directories that decide
/// what is run.
fn foul(ground: &Ground, root: &Path, now: &ChangeSet, edits: Edits) -> Vec<String> {
    let mut foul = Vec::new();
    for change in &now.changes {
        let what = match (change.kind, change.thing) {
            (ChangeKind::Git, _) => "the repository itself",
            (_, Thing::Link) => "a link",
            (_, Thing::Special) => "a special file",
            (ChangeKind::TypeChanged, _) => "changed into something else",
            (ChangeKind::Unreadable, _) => "can no longer be read",
            _ => continue,
        };
        foul.push(format!("{} ({what})", named(&change.path)));
    }
    for (path, was) in &ground.lock_files {
        // Gone is what a restore between two tiers leaves; the tests write it again.
        if content(root, path).is_some_and(|now| now != *was) {
            foul.push(format!("{} (changed since the tests wrote it)", named(path)));
        }
    }
    if edits == Edits::InPlace {
        for new in now.unprotected.iter().filter(|u| !ground.unprotected.contains(&u.path)) {
            // Removed below: whoever runs the tests first makes it.
            if !caches::is_compiled(root, &new.path)
                && role(ground.ecosystem(), &new.path.join("x")) == Role::BuildConfig
            {
                foul.push(format!("{} (new, and it decides what is run)", named(&new.path)));
            }
        }
        let installed = caches::installed_since(root, ground.since);
        foul.extend(installed.iter().map(|path| format!("{} (an installed package)", named(path))));
        caches::forget_bytecode(root);
        caches::forget_compiled(root, now.unprotected.iter().map(|u| u.path.as_path()), &ground.unprotected);
        caches::renew(root, ground.since);
    }
    foul
}

/// Runs the whole suite; a failure that nobody expected is run again.
pub(super) async fn run(
    ground: &Ground,
    work: &mut Work<'_>,
    gates: &mut Gates,
    seen: &Seen,
    before: Option<&Baseline>,
) -> Result<TestRun, Failed> {
    work.checking(format!("running `{}`", ground.suite.command()));
    let bench = ground.bench(work.site).map_err(|e| gates.broken(&e))?;
    let settled = run_settled(&ground.suite, &bench, before, work.stop).await;
    drop(bench);
    untouched_by_run(ground, work, gates, seen, settled.run())?;
    match settled {
        Settled::Sure(run) => Ok(*run),
        Settled::Flaky { names, runs } => {
            let names: Vec<String> = names.iter().take(5).map(|n| format!("`{n}`")).collect();
            let why = format!("two runs of the same files differ in {}: these tests are flaky", names.join(", "));
            Err(gates.refuse_with("tests", Cause::CannotVerify, why, shown(&runs.0)))
        }
    }
}

/// Sealed files and the worker's own are as they were before the tests ran.
pub(super) fn untouched_by_run(
    ground: &Ground,
    work: &mut Work<'_>,
    gates: &mut Gates,
    seen: &Seen,
    run: &TestRun,
) -> Result<(), Failed> {
    let root = work.site.root().to_owned();
    let now = work.site.changes().map_err(|e| gates.broken(&e))?;
    let mut foul: Vec<String> = Vec::new();
    for change in &now.changes {
        let known = seen.contents.contains_key(&change.path) || seen.others.contains(&change.path);
        let role = role(ground.ecosystem(), &change.path);
        // A runner writes snapshots that were not there; that is what it is for.
        let recorded = role == Role::Snapshot && change.kind == ChangeKind::Added;
        let sealed = (role.is_sealed() || ground.starts(&change.path)) && change.thing != Thing::Directory && !recorded;
        if !known && (change.kind == ChangeKind::Git || sealed) {
            foul.push(named(&change.path));
        }
    }
    let changed = seen.contents.iter().filter(|(path, was)| content(&root, path) != **was);
    foul.extend(changed.map(|(path, _)| named(path)));
    if !foul.is_empty() {
        let why = format!("these were changed while the tests ran: {}", foul.join(", "));
        return Err(gates.refuse_with("sealed_after", Cause::Tampered, why, shown(run)));
    }
    if work.edits == Edits::AsData {
        // Whatever else differs now, the tests wrote.
        let marked = work.site.armed().and_then(|armed| Ok(armed.mark_by_products()?));
        marked.map_err(|e| gates.broken(&e))?;
    }
    Ok(())
}

/// A run that says nothing about the code, in words of its own.
pub(super) fn says_nothing(run: &TestRun) -> Option<String> {
    Some(match run.outcome() {
        Outcome::Passed | Outcome::Failed => return None,
        Outcome::DidNotBuild { .. } => run.sentence(),
        Outcome::NoTests => format!("{}: the runner no longer finds any", run.sentence()),
        Outcome::CouldNotRun { .. } | Outcome::Unclear { .. } | Outcome::Killed { .. } => run.sentence(),
        Outcome::TimedOut { .. } => format!("{}: something does not end", run.sentence()),
        Outcome::Cancelled => run.sentence(),
    })
}

fn content(root: &Path, path: &Path) -> Option<blake3::Hash> {
    let whole = root.join(path);
    let meta = whole.symlink_metadata().ok()?;
    meta.is_file().then(|| fs::read(whole).ok()).flatten().map(|bytes| blake3::hash(&bytes))
}
