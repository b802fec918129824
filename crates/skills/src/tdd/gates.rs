//! The checks that every phase makes, cheapest first: what the answer is, what it touched, what the tests did to the
//! project while they ran. Each leaves a gate behind, so that a reader sees what was looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::baseline::{Ground, SHOWN};
use super::{caches, scope};
pub(super) use crate::common::{Gates, named, path_texts};
use supervisor_engine::Cause;
use supervisor_engine::site::{Site, SiteError};
use supervisor_engine::work::{RefusedWork, SubmittedWork};
use supervisor_models::Edits;
use supervisor_text::words;
use supervisor_verify::sealed::{FileRole, role};
use supervisor_verify::{
    Baseline, DependencyFile, Outcome, SettledRun, TestName, TestRun, dependency_file, run_settled,
};
use supervisor_workspace::{Change, ChangeKind, ChangeSet, Edit, EditError, Thing};

/// Flaky tests of one run that are named in the log.
const FLAKY_NAMED: usize = 20;

/// What a run printed, head and tail.
pub(super) fn output_excerpt(run: &TestRun) -> String {
    words::cut_middle(run.output(), SHOWN).into_owned()
}

/// What the worker changed, with the content it left, taken before any test ran.
#[derive(Debug)]
pub(super) struct SeenChanges {
    pub(super) changes: Vec<Change>,
    contents: BTreeMap<PathBuf, Option<blake3::Hash>>,
    /// Who else was at work meanwhile.
    pub(super) others: BTreeSet<PathBuf>,
    /// New test files that came with the code, and were left out.
    pub(super) left_out: Vec<PathBuf>,
}

impl SeenChanges {
    /// Files that are there and were changed, with their text before and now.
    pub(super) fn texts(&self, site: &mut Site) -> Result<Vec<Text>, SiteError> {
        let root = site.files_root();
        let armed = site.armed()?;
        let read = |change: &Change| Text {
            path: change.path.clone(),
            before: armed
                .original(&change.path)
                .map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
            after: fs::read(root.join(&change.path))
                .ok()
                .map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        };
        Ok(self
            .changes
            .iter()
            .filter(|c| c.thing == Thing::File)
            .map(read)
            .collect())
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
    work: &mut SubmittedWork<'_>,
    gates: &mut Gates,
    sealed: &dyn Fn(&Path) -> Result<(), String>,
) -> Result<SeenChanges, RefusedWork> {
    let mut others = BTreeSet::new();
    let mut left_out = Vec::new();
    let edits = ground.door.read(work, gates, sealed)?;
    if work.edits == Edits::AsData {
        let already = work.site.changes().map_err(|e| gates.refuse_for_site(&e))?;
        others = already.changes.iter().map(|c| c.path.clone()).collect();
        let root = work.site.files_root();
        let edits: Vec<Edit> = edits
            .into_iter()
            .filter(|edit| !changes_nothing(&root, edit))
            .collect();
        let is_aside = |edit: &Edit| {
            let path = Path::new(edit.path().trim_start_matches("./"));
            scope::is_new_test(ground, path) && sealed(path).is_err()
        };
        let (aside, code): (Vec<Edit>, Vec<Edit>) = edits.into_iter().partition(is_aside);
        left_out.extend(
            aside
                .iter()
                .map(|edit| PathBuf::from(edit.path().trim_start_matches("./"))),
        );
        if code.is_empty() && !left_out.is_empty() {
            return Err(only_new_tests(gates, &left_out));
        }
        apply_edits(work.site, gates, &code, sealed)?;
    }
    let mut now = work.site.changes().map_err(|e| gates.refuse_for_site(&e))?;
    if work.edits == Edits::InPlace {
        left_out = take_out_new_tests(ground, work, gates, &now, sealed)?;
        if !left_out.is_empty() {
            now = work.site.changes().map_err(|e| gates.refuse_for_site(&e))?;
        }
    }
    if !left_out.is_empty() {
        let names: Vec<String> = left_out.iter().map(|path| named(path)).collect();
        gates.pass(
            "left_out",
            format!("{}: new tests are written by `tdd_red`", names.join(", ")),
        );
    }
    let meddled: Vec<String> = now
        .changes
        .iter()
        .filter(|c| {
            others.contains(&c.path) && (c.kind == ChangeKind::Git || sealed(&c.path).is_err())
        })
        .map(|c| named(&c.path))
        .collect();
    if !meddled.is_empty() {
        let why = format!(
            "another process changed {} during the call; call again when it is done",
            meddled.join(", ")
        );
        return Err(gates.refuse("scope", Cause::CannotVerify, why));
    }
    let mut foul = foul(ground, &work.site.files_root(), &now, work.edits);
    if !foul.is_empty() {
        // A change hidden behind another is reported with it.
        let sealed = |c: &&Change| {
            c.thing == Thing::File && c.kind != ChangeKind::Git && sealed(&c.path).is_err()
        };
        foul.extend(
            now.changes
                .iter()
                .filter(sealed)
                .map(|c| format!("{} (sealed)", named(&c.path))),
        );
        let why = format!("this may not be touched here: {}", foul.join(", "));
        return Err(gates.refuse("scope", Cause::Tampered, why));
    }
    let changes: Vec<Change> = now
        .changes
        .into_iter()
        .filter(|c| !others.contains(&c.path))
        .collect();
    let root = work.site.files_root();
    let contents = changes
        .iter()
        .map(|c| (c.path.clone(), content(&root, &c.path)))
        .collect();
    Ok(SeenChanges {
        changes,
        contents,
        others,
        left_out,
    })
}

/// Takes new test files that an agent wrote beside its code out of the project again.
fn take_out_new_tests(
    ground: &Ground,
    work: &mut SubmittedWork<'_>,
    gates: &mut Gates,
    now: &ChangeSet,
    sealed: &dyn Fn(&Path) -> Result<(), String>,
) -> Result<Vec<PathBuf>, RefusedWork> {
    let files = || {
        now.changes
            .iter()
            .filter(|c| c.thing == Thing::File && c.kind != ChangeKind::Git)
    };
    let is_aside = |c: &&Change| {
        c.kind == ChangeKind::Added
            && scope::is_new_test(ground, &c.path)
            && sealed(&c.path).is_err()
    };
    let aside: Vec<PathBuf> = files().filter(is_aside).map(|c| c.path.clone()).collect();
    if aside.is_empty() {
        return Ok(aside);
    }
    if files().count() == aside.len() {
        return Err(only_new_tests(gates, &aside));
    }
    let delete = |path: &PathBuf| {
        Some(Edit::Delete {
            path: path.to_str()?.to_owned(),
        })
    };
    let edits: Vec<Edit> = aside.iter().filter_map(delete).collect();
    work.site
        .apply(&edits, &|_| Ok(()))
        .map_err(|e| gates.refuse_for_site(&e))?;
    Ok(aside)
}

/// New tests that came without code: nothing was done about what is asked, and nothing was tampered with either.
fn only_new_tests(gates: &mut Gates, tests: &[PathBuf]) -> RefusedWork {
    let names: Vec<String> = tests.iter().map(|path| named(path)).collect();
    let why = format!(
        "no code was changed, only new tests came: {}; change the code instead",
        names.join(", ")
    );
    gates.refuse("scope", Cause::Rejected, why)
}

/// A file sent back as it is.
fn changes_nothing(root: &Path, edit: &Edit) -> bool {
    let (Edit::Create { path, contents } | Edit::Replace { path, contents }) = edit else {
        return false;
    };
    let whole = root.join(path.trim_start_matches("./"));
    whole
        .symlink_metadata()
        .is_ok_and(|m| m.is_file() && m.len() == contents.len() as u64)
        && fs::read(whole).is_ok_and(|bytes| bytes == *contents)
}

/// What a file would say after an edit; of several in one file, each is looked at by itself.
fn result_of(was: &str, edit: &Edit) -> String {
    match edit {
        Edit::Create { contents, .. } | Edit::Replace { contents, .. } => {
            String::from_utf8_lossy(contents).into_owned()
        }
        Edit::Change {
            search, replace, ..
        } => was.replacen(search.as_str(), replace, 1),
        Edit::Delete { .. } => String::new(),
    }
}

fn apply_edits(
    site: &mut Site,
    gates: &mut Gates,
    edits: &[Edit],
    sealed: &dyn Fn(&Path) -> Result<(), String>,
) -> Result<(), RefusedWork> {
    // Said first, also of paths that could not be written anyway.
    let touched: Vec<&str> = edits
        .iter()
        .map(Edit::path)
        .filter(|path| sealed(Path::new(path.trim_start_matches("./"))).is_err())
        .collect();
    if let Some(first) = touched.first() {
        let why = sealed(Path::new(first.trim_start_matches("./")))
            .err()
            .unwrap_or_default();
        let names: BTreeSet<String> = touched.iter().map(|p| named(Path::new(p))).collect();
        let names: Vec<String> = names.into_iter().collect();
        let feedback = format!("{} may not be changed here: {why}", names.join(", "));
        let root = site.files_root();
        let would_be = edits
            .iter()
            .filter(|edit| touched.contains(&edit.path()))
            .map(|edit| {
                let was = fs::read_to_string(root.join(edit.path())).unwrap_or_default();
                let is = result_of(&was, edit);
                (Path::new(edit.path()), was, is)
            });
        let cause = scope::cause_of(would_be);
        return Err(gates.refuse("scope", cause, feedback));
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
        Err(error) => Err(gates.refuse_for_site(&error)),
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
    for (path, was) in ground
        .lock_files
        .iter()
        .filter(|(path, _)| !ground.may_grow(path))
    {
        // Gone is what a restore between two tiers leaves; the tests write it again.
        if content(root, path).is_some_and(|now| now.as_bytes() != was) {
            foul.push(format!(
                "{} (changed since the tests wrote it)",
                named(path)
            ));
        }
    }
    if edits == Edits::InPlace {
        for new in now
            .unprotected
            .iter()
            .filter(|u| !ground.unprotected.contains(&u.path))
        {
            // Removed below: the first test run makes it.
            if !caches::is_compiled(root, &new.path)
                && role(ground.ecosystem(), &new.path.join("x")) == FileRole::BuildConfig
            {
                foul.push(format!(
                    "{} (new, and it decides what is run)",
                    named(&new.path)
                ));
            }
        }
        let installed = caches::installed_since(root, ground.since);
        let installed = if ground.dependencies.any() {
            Vec::new()
        } else {
            installed
        };
        foul.extend(
            installed
                .iter()
                .map(|path| format!("{} (an installed package)", named(path))),
        );
        caches::forget_bytecode(root);
        caches::forget_compiled(
            root,
            now.unprotected.iter().map(|u| u.path.as_path()),
            &ground.unprotected,
        );
        caches::renew(root, ground.since);
    }
    foul
}

/// Runs the whole suite; a failure that is not among `expects` and that the baseline does not have is run again.
pub(super) async fn run(
    ground: &Ground,
    work: &mut SubmittedWork<'_>,
    gates: &mut Gates,
    seen: &SeenChanges,
    before: Option<&Baseline>,
    expects: &(dyn Fn(&TestName) -> bool + Sync),
) -> Result<TestRun, RefusedWork> {
    work.checking(format!("running `{}`", ground.suite.command()));
    let bench = ground
        .bench(work.site)
        .map_err(|e| gates.refuse_for_site(&e))?;
    let settled = run_settled(&ground.suite, &bench, before, expects, work.stop).await;
    drop(bench);
    report_run(work, settled.run());
    untouched_by_run(ground, work, gates, seen, settled.run())?;
    match settled {
        SettledRun::Sure(run) => Ok(*run),
        SettledRun::Flaky { names, runs } => {
            let flaky: Vec<String> = names
                .iter()
                .take(FLAKY_NAMED)
                .map(ToString::to_string)
                .collect();
            let names: Vec<String> = names.iter().take(5).map(|n| format!("`{n}`")).collect();
            let why = format!(
                "two runs of the same files differ in {}: these tests are flaky",
                names.join(", ")
            );
            Err(RefusedWork {
                flaky,
                ..gates.refuse_with("tests", Cause::CannotVerify, why, output_excerpt(&runs.0))
            })
        }
    }
}

/// Says what a run showed, and how long it took.
pub(super) fn report_run(work: &SubmittedWork<'_>, run: &TestRun) {
    work.checking(format!(
        "{} ({:.1} s)",
        run.sentence(),
        run.took().as_secs_f64()
    ));
}

/// Sealed files and the worker's own are as they were before the tests ran.
pub(super) fn untouched_by_run(
    ground: &Ground,
    work: &mut SubmittedWork<'_>,
    gates: &mut Gates,
    seen: &SeenChanges,
    run: &TestRun,
) -> Result<(), RefusedWork> {
    let root = work.site.files_root();
    let now = work.site.changes().map_err(|e| gates.refuse_for_site(&e))?;
    let mut foul: Vec<String> = Vec::new();
    let mut adopted = Vec::new();
    for change in &now.changes {
        let known = seen.contents.contains_key(&change.path) || seen.others.contains(&change.path);
        let role = role(ground.ecosystem(), &change.path);
        // A runner writes snapshots that were not there; that is what it is for.
        let recorded = role == FileRole::Snapshot && change.kind == ChangeKind::Added;
        let follows = ground.may_grow(&change.path)
            && dependency_file(&change.path) == Some(DependencyFile::Lock);
        if !known && (recorded || follows) {
            adopted.push(change.path.clone());
        }
        let sealed = (role.is_sealed() || ground.starts(&change.path))
            && change.thing != Thing::Directory
            && !recorded
            && !follows;
        if !known && (change.kind == ChangeKind::Git || sealed) {
            foul.push(named(&change.path));
        }
    }
    let is_lock =
        |path: &Path| ground.may_grow(path) && dependency_file(path) == Some(DependencyFile::Lock);
    let changed = seen
        .contents
        .iter()
        .filter(|(path, was)| content(&root, path) != **was && !is_lock(path));
    foul.extend(changed.map(|(path, _)| named(path)));
    if !foul.is_empty() {
        let why = format!(
            "these were changed while the tests ran: {}",
            foul.join(", ")
        );
        return Err(gates.refuse_with("sealed_after", Cause::Tampered, why, output_excerpt(run)));
    }
    for path in &adopted {
        work.site
            .armed()
            .and_then(|armed| Ok(armed.adopt(path)?))
            .map_err(|e| gates.refuse_for_site(&e))?;
    }
    if work.edits == Edits::AsData {
        // Whatever else differs now, the tests wrote.
        let marked = work
            .site
            .armed()
            .and_then(|armed| Ok(armed.mark_by_products()?));
        marked.map_err(|e| gates.refuse_for_site(&e))?;
    }
    Ok(())
}

/// A run that says nothing about the code, in words of its own.
pub(super) fn says_nothing(run: &TestRun) -> Option<String> {
    Some(match run.outcome() {
        Outcome::Passed | Outcome::Failed => return None,
        Outcome::DidNotBuild { .. } => run.sentence(),
        Outcome::NoTests => format!("{}: the runner no longer finds any", run.sentence()),
        Outcome::CouldNotRun { .. } | Outcome::Unclear { .. } | Outcome::Killed { .. } => {
            run.sentence()
        }
        Outcome::TimedOut { .. } => format!("{}: something does not end", run.sentence()),
        Outcome::Cancelled => run.sentence(),
    })
}

fn content(root: &Path, path: &Path) -> Option<blake3::Hash> {
    let whole = root.join(path);
    let meta = whole.symlink_metadata().ok()?;
    meta.is_file()
        .then(|| fs::read(whole).ok())
        .flatten()
        .map(|bytes| blake3::hash(&bytes))
}
