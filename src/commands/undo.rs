//! `supervisor undo`: reverts an accepted call if the project still allows it, or reports what
//! prevents it. The undo store has the replaced content; the session log describes the call.

use crate::built_in;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;
use tokio_util::sync::CancellationToken;

use supervisor_engine::Status;
use supervisor_engine::call::caps_of;
use supervisor_engine::session::SessionLog;
use supervisor_process::Launcher;
use supervisor_settings::load;
use supervisor_skills::Repository;
use supervisor_text::words;
use supervisor_workspace::state::StateDir;
use supervisor_workspace::{
    ActiveSnapshot, Mode, StoredUndo, UndoReport, UndoStep, UndoStore, Workspace,
};

/// Undo an accepted call
///
/// Restores the files that it changed; of a `tdd` call all phases, unless you name one by its id. If you edited one of
/// them since, nothing is changed and the file is named. What `tdd` committed is taken back by a further commit. Exits with 0 if the call was undone, with 1 if not.
#[derive(Debug, Args)]
pub(super) struct Undo {
    /// The id of the call in the session log, or the beginning of it; without it, the latest accepted call of the project
    call: Option<String>,
    /// The project
    #[arg(long, value_name = "DIR", default_value = ".")]
    project: PathBuf,
    /// Say what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
}

impl Undo {
    pub(super) fn run(
        self,
        config: Option<PathBuf>,
        out: &mut dyn Write,
    ) -> anyhow::Result<ExitCode> {
        let state = StateDir::locate()?;
        let project = self.project.canonicalize().with_context(|| {
            format!(
                "`{}` is not a directory that exists",
                words::plain(&self.project.to_string_lossy())
            )
        })?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (text, code) = runtime.block_on(self.undo_call(config, &state, &project))?;
        super::print(out, &text)?;
        Ok(code)
    }

    async fn undo_call(
        &self,
        config: Option<PathBuf>,
        state: &StateDir,
        project: &Path,
    ) -> anyhow::Result<(String, ExitCode)> {
        let routing = load(&built_in::sources(config))?.routing;
        let store = UndoStore::of(state);
        let stored = store.list();
        let candidates: Vec<WholeCall> = match &self.call {
            Some(prefix) => vec![find_call(&stored, prefix, state)?],
            // Latest first. A directory inside a project stands for the project.
            None => whole_calls(stored.iter().filter(|undo| project.starts_with(&undo.root))),
        };
        for WholeCall {
            undo,
            calls,
            commits,
        } in &candidates
        {
            let workspace = Workspace::open(&undo.root, caps_of(&routing.workspace), state)?;
            let wait = routing.limits.lock_wait;
            let lease = workspace
                .lock(Mode::Exclusive, "undo", wait, &CancellationToken::new())
                .await?;
            let mut snapshot = lease.take_snapshot()?;
            let history = History::of(&undo.root, commits).await;
            let report = self.apply(&mut snapshot, undo)?;
            snapshot.accept()?;
            if report.left.is_empty() && !self.dry_run {
                calls.iter().try_for_each(|call| store.remove(call))?;
            }
            // This call was already reverted, by hand or by its own cycle. Continue with the one
            // before it.
            if report == UndoReport::default() && self.call.is_none() {
                continue;
            }
            let code = if report.left.is_empty() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            };
            let mut text = self.describe(undo, &report, &stored, state);
            if !self.dry_run {
                text += &history.revert(&undo.root, commits, &report.undone).await;
            }
            return Ok((text, code));
        }
        bail!(
            "No accepted call of `{}` is on record, so there is nothing to undo.",
            project.display()
        )
    }

    fn apply(
        &self,
        snapshot: &mut ActiveSnapshot,
        undo: &StoredUndo,
    ) -> anyhow::Result<UndoReport> {
        Ok(if self.dry_run {
            snapshot.preview_undo(&undo.record)?
        } else {
            snapshot.undo_all_or_nothing(&undo.record)?
        })
    }

    fn describe(
        &self,
        undo: &StoredUndo,
        report: &UndoReport,
        stored: &[StoredUndo],
        state: &StateDir,
    ) -> String {
        let when = undo
            .accepted
            .get(..16)
            .unwrap_or(&undo.accepted)
            .replace('T', " ");
        let mut text = format!(
            "{} {} of {when} in {}\n",
            undo.skill,
            undo.call,
            undo.root.display()
        );
        if !report.left.is_empty() {
            let verb = if self.dry_run {
                "Would not be undone"
            } else {
                "Not undone"
            };
            for path in &report.left {
                let name = words::plain(&path.to_string_lossy()).into_owned();
                let later = stored.iter().find(|other| {
                    other.accepted > undo.accepted
                        && other.root == undo.root
                        && other.record.steps().any(|(touched, _)| touched == *path)
                });
                let _ = match later {
                    Some(later) => writeln!(
                        text,
                        "{verb}: call {} changed `{name}` later; undo that first.",
                        later.call
                    ),
                    None => writeln!(text, "{verb}: you edited `{name}` after the call."),
                };
            }
            text += "Nothing was changed.\n";
            if let Some(diff) = diff_of(&undo.call, state) {
                let diff = words::plain(&diff.to_string_lossy()).into_owned();
                let _ = writeln!(
                    text,
                    "The call's diff is in {diff}; `git apply -R {diff}` reverts what still applies."
                );
            }
            return text;
        }
        for (path, step) in undo
            .record
            .steps()
            .filter(|(path, _)| report.undone.contains(path))
        {
            let word = match step {
                UndoStep::Restore => "restore   ",
                UndoStep::Recreate => "recreate  ",
                UndoStep::Remove => "remove    ",
            };
            let _ = writeln!(text, "  {word} {}", words::plain(&path.to_string_lossy()));
        }
        let files = words::count(report.undone.len(), "file");
        text += &match (report.undone.is_empty(), self.dry_run) {
            (true, _) => String::from("Nothing to do: every file is as it was before this call.\n"),
            (false, true) => format!("Would undo the changes to {files}.\n"),
            (false, false) => format!("Undone: {files} restored.\n"),
        };
        text
    }
}

/// A call with all its phases.
struct WholeCall {
    /// One record for all of them.
    undo: StoredUndo,
    /// The ids of the phases.
    calls: Vec<String>,
    /// The commits with its changes, latest first.
    commits: Vec<String>,
}

impl WholeCall {
    fn of(one: &StoredUndo) -> Self {
        Self {
            undo: one.clone(),
            calls: vec![one.call.clone()],
            commits: Some(one.commit.clone())
                .filter(|commit| !commit.is_empty())
                .into_iter()
                .collect(),
        }
    }
}

/// What was uncommitted before the undo; `None` if no commit has to be taken back.
struct History(Option<Result<BTreeSet<PathBuf>, String>>);

impl History {
    async fn of(root: &Path, commits: &[String]) -> Self {
        if commits.is_empty() {
            return Self(None);
        }
        let (launcher, stop) = (Launcher::this_program(), CancellationToken::new());
        let uncommitted = async {
            let repository = Repository::open(&launcher, root, &stop).await?;
            repository.uncommitted().await
        };
        Self(Some(uncommitted.await.map_err(|why| why.to_string())))
    }

    /// Commits the restored files of these commits, and returns a line about it.
    async fn revert(self, root: &Path, commits: &[String], undone: &[PathBuf]) -> String {
        let Some(own) = self.0.filter(|_| !undone.is_empty()) else {
            return String::new();
        };
        let (launcher, stop) = (Launcher::this_program(), CancellationToken::new());
        let reverted = async {
            let own = own?;
            let repository = Repository::open(&launcher, root, &stop)
                .await
                .map_err(|why| why.to_string())?;
            let (mut message, mut files) = (String::new(), BTreeSet::new());
            for commit in commits {
                if !repository.has(commit).await {
                    continue;
                }
                if message.is_empty() {
                    let subject = repository.subject(commit).await;
                    message = format!("Revert \"{subject}\"\n");
                }
                message += &format!("\nThis reverts commit {commit}.");
                files.extend(repository.files_of(commit).await);
            }
            let files: Vec<PathBuf> = undone
                .iter()
                .filter(|f| files.contains(*f))
                .cloned()
                .collect();
            if files.is_empty() {
                return Ok(None);
            }
            let commit = repository.commit(&files, &own, &message).await;
            commit.map(Some).map_err(|why| why.to_string())
        };
        match reverted.await {
            Ok(Some(commit)) => {
                let id = commit.id.get(..10).unwrap_or(&commit.id);
                let note = match commit.note.as_str() {
                    "" => String::new(),
                    note => format!("Note: {note}.\n"),
                };
                format!("Commit {id} reverts what was committed.\n{note}")
            }
            Ok(None) => String::new(),
            Err(why) => format!("The restored files are not committed: {why}.\n"),
        }
    }
}

/// Merges the phases of each `tdd` call. Both lists are latest first.
fn whole_calls<'a>(stored: impl Iterator<Item = &'a StoredUndo>) -> Vec<WholeCall> {
    let mut whole: Vec<WholeCall> = Vec::new();
    for one in stored {
        let same = |known: &&mut WholeCall| {
            !one.cycle.is_empty() && known.undo.cycle == one.cycle && known.undo.root == one.root
        };
        match whole.iter_mut().find(same) {
            Some(known) => {
                let later = std::mem::take(&mut known.undo.record);
                known.undo.record = one.record.clone().followed_by(later);
                known.undo.skill = String::from("tdd");
                known.undo.call.clone_from(&one.cycle);
                known.calls.push(one.call.clone());
                if !one.commit.is_empty() && !known.commits.contains(&one.commit) {
                    known.commits.push(one.commit.clone());
                }
            }
            None => whole.push(WholeCall::of(one)),
        }
    }
    whole
}

/// Larger diffs are stored cut, and `git apply` cannot use those.
const MAX_DIFF_BYTES: u64 = 32_000;

/// The stored diff of a call, if it is complete.
fn diff_of(call: &str, state: &StateDir) -> Option<PathBuf> {
    let log = SessionLog::to_read(state);
    let sessions = log.sessions().ok()?;
    let entry = sessions
        .iter()
        .filter_map(|id| log.reader(id).ok())
        .flatten()
        .map(|record| record.entry)
        .find(|entry| entry.call == call)?;
    let path = log.exchange().path(entry.attempts.last()?.diff.as_ref()?)?;
    let bytes = path.metadata().ok()?.len();
    (bytes < MAX_DIFF_BYTES).then_some(path)
}

/// Finds a call by its id or a unique prefix. If it has no undo record, the log is searched to
/// explain why.
fn find_call(stored: &[StoredUndo], prefix: &str, state: &StateDir) -> anyhow::Result<WholeCall> {
    if let Some(cycle) = stored
        .iter()
        .find(|undo| !prefix.is_empty() && undo.cycle == prefix)
    {
        let phases = stored.iter().filter(|undo| undo.cycle == cycle.cycle);
        return Ok(whole_calls(phases).remove(0));
    }
    let matches: Vec<&StoredUndo> = stored
        .iter()
        .filter(|undo| !prefix.is_empty() && undo.call.starts_with(prefix))
        .collect();
    match matches.as_slice() {
        [undo] => Ok(WholeCall::of(undo)),
        [] => bail!(reason_for_no_record(stored, prefix, state)),
        many => bail!(
            "{} calls begin with `{}`; write more of the id",
            many.len(),
            words::plain(prefix)
        ),
    }
}

fn reason_for_no_record(stored: &[StoredUndo], prefix: &str, state: &StateDir) -> String {
    let log = SessionLog::to_read(state);
    let sessions = log.sessions().unwrap_or_default();
    let mut entries = sessions
        .iter()
        .filter_map(|id| log.reader(id).ok())
        .flatten()
        .map(|record| record.entry);
    let shown = words::plain(prefix);
    match entries.find(|entry| !prefix.is_empty() && entry.call.starts_with(prefix)) {
        Some(entry) if entry.final_status == Status::Pass => format!(
            "call {} cannot be undone: it changed no file, was undone already, or its old files are no longer kept",
            entry.call
        ),
        Some(entry) => format!(
            "call {} was not accepted, so it changed nothing",
            entry.call
        ),
        None => match words::did_you_mean(prefix, stored.iter().map(|undo| undo.call.as_str())) {
            Some(near) => format!("there is no call `{shown}`; did you mean `{near}`?"),
            None => format!(
                "there is no call `{shown}` in the session log; `supervisor log show last` shows calls"
            ),
        },
    }
}
