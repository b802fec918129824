//! Checks shared by all phases, cheapest first: reads the answer, applies or collects its changes,
//! and makes sure that test runs do not change the project. Each check is recorded as a gate in
//! the result.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::baseline::{MAX_OUTPUT_BYTES, TestBaseline};
use super::scope;
use super::without_work::run_without_work;
pub(super) use crate::common::{Gates, named, path_texts};
use supervisor_engine::Cause;
use supervisor_engine::project_access::{Site, SiteError};
use supervisor_engine::work::{RefusedWork, SeenEdits, SubmittedWork};
use supervisor_models::Edits;
use supervisor_text::words;
use supervisor_verify::caches;
use supervisor_verify::protected::FileRole;
use supervisor_verify::{
    Baseline, DependencyFile, Outcome, RetryOutcome, Suite, TestName, TestRun, VaryingNames,
    dependency_file, repeat_if_unexpected,
};
use supervisor_workspace::{Change, ChangeKind, ChangeSet, Edit, EditError, EntryType};

/// Maximum number of flaky tests named in the log.
const MAX_FLAKY_NAMED: usize = 20;

/// The first of these paths, and how many more there are: a coverage report has hundreds of files.
pub(super) fn first_paths<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Vec<String> {
    const MAX_PATHS: usize = 20;
    let mut texts = path_texts(paths);
    if texts.len() > MAX_PATHS {
        let more = texts.split_off(MAX_PATHS).len();
        texts.push(format!("and {more} more"));
    }
    texts
}

/// Start and end of the run's output.
pub(super) fn output_excerpt(run: &TestRun) -> String {
    words::cut_middle(run.output(), MAX_OUTPUT_BYTES).into_owned()
}

/// Changes made by the worker, with content hashes taken before any test ran.
#[derive(Debug)]
pub(super) struct ObservedChanges {
    pub(super) changes: Vec<Change>,
    contents: BTreeMap<PathBuf, Option<blake3::Hash>>,
    /// Paths that other processes changed during the call.
    pub(super) concurrent_changes: BTreeSet<PathBuf>,
    /// New test files in the answer, which were dropped.
    pub(super) left_out: Vec<PathBuf>,
}

impl ObservedChanges {
    /// Equal for the same files with the same contents.
    fn fingerprint(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (path, contents) in &self.contents {
            bytes.extend(path.as_os_str().as_encoded_bytes());
            bytes.push(0);
            if let Some(hash) = contents {
                bytes.extend_from_slice(hash.as_bytes());
            }
        }
        bytes
    }

    /// The changed regular files, with their text before and now.
    pub(super) fn read_texts(&self, site: &mut Site) -> Result<Vec<ChangedText>, SiteError> {
        let root = site.files_root();
        let armed = site.armed()?;
        let read_text = |change: &Change| ChangedText {
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
            .filter(|c| c.entry_type == EntryType::File)
            .map(read_text)
            .collect())
    }
}

/// One changed file. `None` means that it does not exist.
#[derive(Debug)]
pub(super) struct ChangedText {
    pub(super) path: PathBuf,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
}

impl ChangedText {
    pub(super) fn old_text(&self) -> &str {
        self.before.as_deref().unwrap_or_default()
    }

    pub(super) fn new_text(&self) -> &str {
        self.after.as_deref().unwrap_or_default()
    }
}

/// Applies the edits of the answer, or collects what an agent changed in place. `check_editable`
/// returns an error with the reason for paths that are off limits.
pub(super) fn apply_or_collect_changes(
    baseline: &TestBaseline,
    work: &mut SubmittedWork<'_>,
    gates: &mut Gates,
    check_editable: &dyn Fn(&Path) -> Result<(), String>,
) -> Result<ObservedChanges, RefusedWork> {
    let mut concurrent_changes = BTreeSet::new();
    let mut left_out = Vec::new();
    let edits = baseline.answer_reader.read(work, gates, check_editable)?;
    if work.edits == Edits::AsData {
        let changes_before = gates.site(work.site.changes())?;
        concurrent_changes = changes_before
            .changes
            .iter()
            .map(|c| c.path.clone())
            .collect();
        let root = work.site.files_root();
        let edits: Vec<Edit> = edits
            .into_iter()
            .filter(|edit| !is_no_op(&root, edit))
            .collect();
        let is_extra_test = |edit: &Edit| {
            let path = Path::new(edit.path().trim_start_matches("./"));
            scope::is_new_test(baseline, path) && check_editable(path).is_err()
        };
        let (extra_tests, code): (Vec<Edit>, Vec<Edit>) =
            edits.into_iter().partition(is_extra_test);
        left_out.extend(
            extra_tests
                .iter()
                .map(|edit| PathBuf::from(edit.path().trim_start_matches("./"))),
        );
        if code.is_empty() && !left_out.is_empty() {
            return Err(refuse_only_tests(gates, &left_out));
        }
        apply_edits(work.site, gates, &code, check_editable)?;
    }
    let mut now = gates.site(work.site.changes())?;
    if work.edits == Edits::InPlace {
        left_out = remove_new_tests(baseline, work, gates, &now, check_editable)?;
        if !left_out.is_empty() {
            now = gates.site(work.site.changes())?;
        }
    }
    if !left_out.is_empty() {
        let names: Vec<String> = left_out.iter().map(|path| named(path)).collect();
        gates.pass(
            "left_out",
            format!("{}: new tests are written by `tdd_red`", names.join(", ")),
        );
    }
    let changed_by_others: Vec<String> = now
        .changes
        .iter()
        .filter(|c| {
            concurrent_changes.contains(&c.path)
                && (c.kind == ChangeKind::Git || check_editable(&c.path).is_err())
        })
        .map(|c| named(&c.path))
        .collect();
    if !changed_by_others.is_empty() {
        let why = format!(
            "another process changed {} during the call; call again when it is done",
            changed_by_others.join(", ")
        );
        return Err(gates.refuse("scope", Cause::CannotVerify, why));
    }
    if work.edits == Edits::InPlace {
        let removed = remove_output_of_own_runs(baseline, work, gates, &now)?;
        now.changes.retain(|change| !removed.contains(&change.path));
    }
    let mut forbidden = forbidden_changes(baseline, &work.site.files_root(), &now, work.edits);
    if !forbidden.is_empty() {
        // Also report protected files, which would otherwise be hidden by the first problem.
        let is_protected = |c: &&Change| {
            c.entry_type == EntryType::File
                && c.kind != ChangeKind::Git
                && check_editable(&c.path).is_err()
        };
        forbidden.extend(
            now.changes
                .iter()
                .filter(is_protected)
                .map(|c| format!("{} (sealed)", named(&c.path))),
        );
        let why = format!("this may not be touched here: {}", forbidden.join(", "));
        return Err(gates.refuse("scope", Cause::Tampered, why));
    }
    let changes: Vec<Change> = now
        .changes
        .into_iter()
        .filter(|c| !concurrent_changes.contains(&c.path))
        .collect();
    if work.edits == Edits::InPlace {
        refuse_markers(work, gates, &changes)?;
    }
    let root = work.site.files_root();
    let contents = changes
        .iter()
        .map(|c| (c.path.clone(), file_hash(&root, &c.path)))
        .collect();
    Ok(ObservedChanges {
        changes,
        contents,
        concurrent_changes,
        left_out,
    })
}

/// An agent reads the files itself, but its prompt has placeholders for secrets, which it must not
/// copy.
fn refuse_markers(
    work: &mut SubmittedWork<'_>,
    gates: &mut Gates,
    changes: &[Change],
) -> Result<(), RefusedWork> {
    let root = work.site.files_root();
    let armed = gates.site(work.site.armed())?;
    let written = changes
        .iter()
        .filter(|change| change.entry_type == EntryType::File);
    for change in written {
        let Ok(new) = fs::read_to_string(root.join(&change.path)) else {
            continue;
        };
        let old = armed.original(&change.path).unwrap_or_default();
        let old = String::from_utf8_lossy(&old);
        let file = work.redactor.hide_file(&old);
        if let Some(marker) = file.added_marker(&new) {
            let why = format!(
                "{} would contain `{marker}`, which stands for a secret that you were not shown",
                named(&change.path)
            );
            return Err(gates.refuse("secrets", Cause::Rejected, why));
        }
    }
    Ok(())
}

/// Applies one of several candidates. `Err(first)` inside: an earlier candidate makes the same edits.
pub(super) fn apply_candidate(
    baseline: &TestBaseline,
    work: &mut SubmittedWork<'_>,
    gates: &mut Gates,
    seen: &mut SeenEdits,
    check_editable: &dyn Fn(&Path) -> Result<(), String>,
) -> Result<Result<ObservedChanges, usize>, RefusedWork> {
    let observed = apply_or_collect_changes(baseline, work, gates, check_editable)?;
    let number = work.candidate.unwrap_or_default();
    Ok(match seen.note(number, &observed.fingerprint()) {
        Some(first) => Err(first),
        None => Ok(observed),
    })
}

/// Deletes new test files that an agent wrote in addition to its code.
fn remove_new_tests(
    baseline: &TestBaseline,
    work: &mut SubmittedWork<'_>,
    gates: &mut Gates,
    now: &ChangeSet,
    check_editable: &dyn Fn(&Path) -> Result<(), String>,
) -> Result<Vec<PathBuf>, RefusedWork> {
    let files = || {
        now.changes
            .iter()
            .filter(|c| c.entry_type == EntryType::File && c.kind != ChangeKind::Git)
    };
    let is_extra_test = |c: &&Change| {
        c.kind == ChangeKind::Added
            && scope::is_new_test(baseline, &c.path)
            && check_editable(&c.path).is_err()
    };
    let extra_tests: Vec<PathBuf> = files()
        .filter(is_extra_test)
        .map(|c| c.path.clone())
        .collect();
    if extra_tests.is_empty() {
        return Ok(extra_tests);
    }
    if files().count() == extra_tests.len() {
        return Err(refuse_only_tests(gates, &extra_tests));
    }
    let delete = |path: &PathBuf| {
        Some(Edit::Delete {
            path: path.to_str()?.to_owned(),
        })
    };
    let edits: Vec<Edit> = extra_tests.iter().filter_map(delete).collect();
    gates.site(work.site.apply(&edits, &|_| Ok(())))?;
    Ok(extra_tests)
}

/// Whether only runs write such a file: git ignores the place, or the run without the work wrote there as well.
fn is_by_product(baseline: &TestBaseline, site: &Site, change: &Change) -> bool {
    // In place, an ignored file may be the user's, and it stays for the next run.
    change.kind == ChangeKind::Added
        && change.entry_type == EntryType::File
        && ((change.is_ignored && !site.is_in_place()) || baseline.wrote_beside(&change.path))
}

/// Deletes protected files that an agent did not write itself, but got by running the tests. Nothing that decides the
/// outcome is kept.
fn remove_output_of_own_runs(
    baseline: &TestBaseline,
    work: &mut SubmittedWork<'_>,
    gates: &mut Gates,
    now: &ChangeSet,
) -> Result<Vec<PathBuf>, RefusedWork> {
    let is_new_lock = |change: &Change| {
        change.kind == ChangeKind::Added
            && dependency_file(&change.path) == Some(DependencyFile::Lock)
            && !baseline.existed(&change.path)
            && !baseline.may_gain_dependencies(&change.path)
    };
    let removed: Vec<PathBuf> = now
        .changes
        .iter()
        .filter(|change| {
            is_new_lock(change)
                || (baseline.role(&change.path).is_protected()
                    && is_by_product(baseline, work.site, change))
        })
        .map(|change| change.path.clone())
        .collect();
    let edits: Vec<Edit> = removed
        .iter()
        .filter_map(|path| {
            Some(Edit::Delete {
                path: path.to_str()?.to_owned(),
            })
        })
        .collect();
    if !edits.is_empty() {
        gates.site(work.site.apply(&edits, &|_| Ok(())))?;
    }
    Ok(removed)
}

/// Deletes what runs of the work wrote and the run without it did not, so that no run decides another.
fn remove_by_products(
    baseline: &TestBaseline,
    work: &mut SubmittedWork<'_>,
    gates: &mut Gates,
    observed: &ObservedChanges,
) -> Result<(), RefusedWork> {
    let now = gates.site(work.site.changes())?;
    let root = work.site.files_root();
    let is_in_place = work.site.is_in_place();
    let written = now
        .changes
        .iter()
        .filter(|change| is_by_product(baseline, work.site, change))
        .map(|change| &change.path);
    let marked = now
        .by_products
        .iter()
        .map(|by_product| &by_product.path)
        .filter(|path| !is_in_place || baseline.wrote_beside(path));
    for path in written.chain(marked).filter(|path| {
        !baseline.existed(path)
            && !observed.contents.contains_key(*path)
            && !observed.concurrent_changes.contains(*path)
    }) {
        let path = root.join(path);
        if path.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
            let _ = fs::remove_file(path);
        }
    }
    Ok(())
}

/// The answer contains only new tests. That does not solve the task, but it is not tampering
/// either.
fn refuse_only_tests(gates: &mut Gates, tests: &[PathBuf]) -> RefusedWork {
    let names: Vec<String> = tests.iter().map(|path| named(path)).collect();
    let why = format!(
        "no code was changed, only new tests came: {}; change the code instead",
        names.join(", ")
    );
    gates.refuse("scope", Cause::Rejected, why)
}

/// Whether the edit leaves the file as it is.
fn is_no_op(root: &Path, edit: &Edit) -> bool {
    let (Edit::Create { path, contents } | Edit::Replace { path, contents }) = edit else {
        return false;
    };
    let full_path = root.join(path.trim_start_matches("./"));
    full_path
        .symlink_metadata()
        .is_ok_and(|m| m.is_file() && m.len() == contents.len() as u64)
        && fs::read(full_path).is_ok_and(|bytes| bytes == *contents)
}

/// The file's text after one edit. Several edits of one file are treated separately.
fn text_after_edit(old: &str, edit: &Edit) -> String {
    match edit {
        Edit::Create { contents, .. } | Edit::Replace { contents, .. } => {
            String::from_utf8_lossy(contents).into_owned()
        }
        Edit::Change {
            search, replace, ..
        } => old.replacen(search.as_str(), replace, 1),
        Edit::Delete { .. } => String::new(),
    }
}

fn apply_edits(
    site: &mut Site,
    gates: &mut Gates,
    edits: &[Edit],
    check_editable: &dyn Fn(&Path) -> Result<(), String>,
) -> Result<(), RefusedWork> {
    // Check this before applying, so that the reason is reported even for paths that cannot be
    // written.
    let touched: Vec<&str> = edits
        .iter()
        .map(Edit::path)
        .filter(|path| check_editable(Path::new(path.trim_start_matches("./"))).is_err())
        .collect();
    if let Some(first) = touched.first() {
        let why = check_editable(Path::new(first.trim_start_matches("./")))
            .err()
            .unwrap_or_default();
        let names: BTreeSet<String> = touched.iter().map(|p| named(Path::new(p))).collect();
        let names: Vec<String> = names.into_iter().collect();
        let message = format!("{} may not be changed here: {why}", names.join(", "));
        let root = site.files_root();
        let touched_texts = edits
            .iter()
            .filter(|edit| touched.contains(&edit.path()))
            .map(|edit| {
                let old = fs::read_to_string(root.join(edit.path())).unwrap_or_default();
                let new = text_after_edit(&old, edit);
                (Path::new(edit.path()), old, new)
            });
        let cause = scope::refusal_cause(touched_texts);
        return Err(gates.refuse("scope", cause, message));
    }
    match site.apply(edits, check_editable) {
        Ok(_) => Ok(()),
        Err(SiteError::Edit(error)) => {
            let is_forbidden = matches!(
                error,
                EditError::OffLimits { .. }
                    | EditError::Protected { .. }
                    | EditError::BadPath { .. }
                    | EditError::NotAFile { .. }
            );
            let cause = if is_forbidden {
                Cause::Tampered
            } else {
                Cause::Rejected
            };
            Err(gates.refuse("scope", cause, error.to_string()))
        }
        Err(error) => gates.site(Err(error)),
    }
}

/// Changes that no phase may make: to the git repository, links and special files, lock files,
/// installed packages, and new directories that decide what is run.
fn forbidden_changes(
    baseline: &TestBaseline,
    root: &Path,
    now: &ChangeSet,
    edits: Edits,
) -> Vec<String> {
    let mut forbidden = Vec::new();
    for change in &now.changes {
        let reason = match (change.kind, change.entry_type) {
            (ChangeKind::Git, _) => "the repository itself",
            (_, EntryType::Link) => "a link",
            (_, EntryType::Special) => "a special file",
            (ChangeKind::TypeChanged, _) => "changed into something else",
            (ChangeKind::Unreadable, _) => "can no longer be read",
            _ => continue,
        };
        forbidden.push(format!("{} ({reason})", named(&change.path)));
    }
    for (path, old) in baseline
        .lock_files
        .iter()
        .filter(|(path, _)| !baseline.may_gain_dependencies(path))
    {
        // The tests write it again where it was restored, or where their outcome was known.
        let is_known =
            |now: &[u8; 32]| now == old || baseline.digests_before.get(path) == Some(now);
        if file_hash(root, path).is_some_and(|now| !is_known(now.as_bytes())) {
            forbidden.push(format!(
                "{} (changed since the tests wrote it)",
                named(path)
            ));
        }
    }
    if edits == Edits::InPlace {
        for new in now
            .unprotected
            .iter()
            .filter(|u| !baseline.unprotected.contains(&u.path))
        {
            // Deleted below; the first test run creates it again.
            if !caches::is_compiled(root, &new.path)
                && baseline.role(&new.path.join("x")) == FileRole::BuildConfig
            {
                forbidden.push(format!(
                    "{} (new, and it decides what is run)",
                    named(&new.path)
                ));
            }
        }
        let installed = caches::installed_since(root, baseline.ended_at);
        let installed = if baseline.dependencies.any() {
            Vec::new()
        } else {
            installed
        };
        forbidden.extend(
            installed
                .iter()
                .map(|path| format!("{} (an installed package)", named(path))),
        );
        caches::remove_bytecode(root);
        caches::remove_compiled(
            root,
            now.unprotected.iter().map(|u| u.path.as_path()),
            &baseline.unprotected,
        );
        caches::touch_backdated_files(root, baseline.ended_at);
    }
    forbidden
}

/// Runs the whole suite. Failures that neither `expects_failure` nor the baseline accounts for are
/// run a second time.
pub(super) async fn run_suite(
    baseline: &TestBaseline,
    work: &mut SubmittedWork<'_>,
    gates: &mut Gates,
    observed: &ObservedChanges,
    before: Option<&Baseline>,
    expects_failure: &(dyn Fn(&TestName) -> bool + Sync),
) -> Result<TestRun, RefusedWork> {
    work.checking(format!("running `{}`", baseline.suite.command()));
    remove_by_products(baseline, work, gates, observed)?;
    let bench = gates.site(baseline.bench_for_run(work.site))?;
    let first = baseline.suite.run(&bench, work.stop).await;
    drop(bench);
    report_run(work, &first);
    ensure_unchanged_by_run(baseline, work, gates, observed, &first)?;
    let first = with_stable_names(baseline, work, gates, observed, before, first).await?;
    let before = before.map(|before| before.with_stable_names(&baseline.suite));
    let bench = gates.site(baseline.bench_for_run(work.site))?;
    let settled = repeat_if_unexpected(
        first,
        &baseline.suite,
        &bench,
        before.as_ref(),
        expects_failure,
        work.stop,
    )
    .await;
    drop(bench);
    ensure_unchanged_by_run(baseline, work, gates, observed, settled.run())?;
    match settled {
        RetryOutcome::Stable(run) => Ok(*run),
        RetryOutcome::Flaky { names, runs } => {
            let flaky: Vec<String> = names
                .iter()
                .take(MAX_FLAKY_NAMED)
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

/// If tests are missing that may have another name now, runs the suite without the work once more: only that shows names
/// that vary by themselves.
async fn with_stable_names(
    baseline: &TestBaseline,
    work: &mut SubmittedWork<'_>,
    gates: &mut Gates,
    observed: &ObservedChanges,
    before: Option<&Baseline>,
    run: TestRun,
) -> Result<TestRun, RefusedWork> {
    let suite = &baseline.suite;
    let Some(before) = before.filter(|_| suite.varying_names().is_none()) else {
        return Ok(run);
    };
    if !VaryingNames::are_possible(before.run(), &run, |_| false) {
        return Ok(run);
    }
    work.checking(format!(
        "running `{}` without the work, because names of tests differ",
        suite.command()
    ));
    let again = run_without_work(baseline, work, gates, observed, suite, None).await?;
    report_run(work, &again);
    if let Some(varying) = VaryingNames::between(before.run(), &again) {
        gates.pass("names", varying.sentence());
        suite.set_varying_names(varying);
    }
    Ok(suite.with_stable_names(run))
}

/// Runs a suite on the answer, whose files the run must not change.
pub(super) async fn run_once(
    baseline: &TestBaseline,
    work: &mut SubmittedWork<'_>,
    gates: &mut Gates,
    observed: &ObservedChanges,
    suite: &Suite,
    variables: &[(&str, &str)],
) -> Result<TestRun, RefusedWork> {
    let mut bench = gates
        .site(baseline.bench_for_run(work.site))?
        .for_repetition();
    bench.env.extend(
        variables
            .iter()
            .map(|(name, value)| (name.into(), value.into())),
    );
    let run = suite.run(&bench, work.stop).await;
    drop(bench);
    report_run(work, &run);
    ensure_unchanged_by_run(baseline, work, gates, observed, &run)?;
    Ok(run)
}

/// Reports the run's result and duration as progress.
fn report_run(work: &SubmittedWork<'_>, run: &TestRun) {
    work.checking(format!(
        "{} ({:.1} s)",
        run.sentence(),
        run.took().as_secs_f64()
    ));
}

/// Refuses the work if protected files or the worker's own files changed while the tests ran.
pub(super) fn ensure_unchanged_by_run(
    baseline: &TestBaseline,
    work: &mut SubmittedWork<'_>,
    gates: &mut Gates,
    observed: &ObservedChanges,
    run: &TestRun,
) -> Result<(), RefusedWork> {
    let root = work.site.files_root();
    let written = work.site.files_written_by_run();
    let now = gates.site(work.site.changes())?;
    let mut forbidden: BTreeSet<PathBuf> = BTreeSet::new();
    let mut adopted = Vec::new();
    let is_lock = |path: &Path| {
        baseline.may_gain_dependencies(path) && dependency_file(path) == Some(DependencyFile::Lock)
    };
    for change in &now.changes {
        let is_known = observed.contents.contains_key(&change.path)
            || observed.concurrent_changes.contains(&change.path);
        let role = baseline.role(&change.path);
        // Runners create missing snapshots as part of their normal operation.
        let is_new_snapshot = role == FileRole::Snapshot && change.kind == ChangeKind::Added;
        let is_allowed_lock = is_lock(&change.path);
        if !is_known && (is_new_snapshot || is_allowed_lock) {
            adopted.push(change.path.clone());
        }
        let is_protected = (role.is_protected() || baseline.is_test_script(&change.path))
            && change.entry_type != EntryType::Directory
            && !is_new_snapshot
            && !is_allowed_lock
            && !is_by_product(baseline, work.site, change);
        if !is_known && (change.kind == ChangeKind::Git || is_protected) {
            forbidden.insert(change.path.clone());
        }
    }
    // Also what was put back: other tests may have run in between. Of the worker's own code only
    // the bytes count, because build tools set the times of sources.
    forbidden.extend(written.into_iter().filter(|path| {
        baseline.role(path).is_protected() && dependency_file(path) != Some(DependencyFile::Lock)
    }));
    let changed = observed
        .contents
        .iter()
        .filter(|(path, old)| file_hash(&root, path) != **old && !is_lock(path));
    forbidden.extend(changed.map(|(path, _)| path.clone()));
    if !forbidden.is_empty() {
        return Err(refuse_changed_files(gates, &forbidden, run));
    }
    for path in &adopted {
        gates.site(work.site.armed().and_then(|armed| Ok(armed.adopt(path)?)))?;
    }
    if work.edits == Edits::AsData {
        // All remaining differences were written by the tests.
        let marked = work
            .site
            .armed()
            .and_then(|armed| Ok(armed.mark_by_products()?));
        gates.site(marked)?;
    }
    Ok(())
}

/// Refuses a green whose run recorded a snapshot: what it compares with comes from the code that is to be judged.
pub(super) fn refuse_new_snapshots(
    baseline: &TestBaseline,
    work: &mut SubmittedWork<'_>,
    gates: &mut Gates,
    observed: &ObservedChanges,
) -> Result<(), RefusedWork> {
    let now = gates.site(work.site.changes())?;
    let recorded = now.changes.iter().find(|change| {
        change.kind == ChangeKind::Added
            && baseline.role(&change.path) == FileRole::Snapshot
            && !baseline.existed(&change.path)
            && !observed.contents.contains_key(&change.path)
            && !observed.concurrent_changes.contains(&change.path)
    });
    match recorded.map(|change| named(&change.path)) {
        None => Ok(()),
        Some(name) => Err(gates.refuse(
            "snapshot",
            Cause::Rejected,
            format!(
                "the tests recorded {name} from this answer, so they compare it with itself; write the expected value \
                 into the test or into {name}, and call again"
            ),
        )),
    }
}

/// Refuses work whose runs wrote files that decide them.
pub(super) fn refuse_changed_files(
    gates: &mut Gates,
    paths: &BTreeSet<PathBuf>,
    run: &TestRun,
) -> RefusedWork {
    let names: Vec<String> = paths.iter().map(|path| named(path)).collect();
    let why = format!(
        "these were changed while the tests ran: {}",
        names.join(", ")
    );
    gates.refuse_with("sealed_after", Cause::Tampered, why, output_excerpt(run))
}

/// Why the run says nothing about the code; `None` if it does.
pub(super) fn inconclusive_reason(run: &TestRun) -> Option<String> {
    let more = match run.outcome() {
        Outcome::Passed | Outcome::Failed => return None,
        Outcome::NoTests => ": the runner no longer finds any",
        Outcome::TimedOut { .. } => ": something does not end",
        _ => "",
    };
    Some(format!("{}{more}", run.sentence()))
}

fn file_hash(root: &Path, path: &Path) -> Option<blake3::Hash> {
    let full_path = root.join(path);
    let meta = full_path.symlink_metadata().ok()?;
    meta.is_file()
        .then(|| fs::read(full_path).ok())
        .flatten()
        .map(|bytes| blake3::hash(&bytes))
}
