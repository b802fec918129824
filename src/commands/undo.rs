//! `supervisor undo`: reverts an accepted call if the project still allows it, or reports what
//! prevents it. The undo store has the replaced content; the session log describes the call.

use crate::built_in;
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
use supervisor_settings::load;
use supervisor_text::words;
use supervisor_workspace::state::StateDir;
use supervisor_workspace::{
    ActiveSnapshot, Mode, StoredUndo, UndoReport, UndoStep, UndoStore, Workspace,
};

/// Take an accepted call back
///
/// All phases of a `tdd` call are taken back together; name one by its id to take back only that. The files it changed are as before the call again. If one of them was changed since, it is named and nothing is done.
/// Exits with 0 if the call was taken back, with 1 if something prevents it.
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
        for WholeCall { undo, calls } in &candidates {
            let workspace = Workspace::open(&undo.root, caps_of(&routing.workspace), state)?;
            let wait = routing.limits.lock_wait;
            let lease = workspace
                .lock(Mode::Exclusive, "undo", wait, &CancellationToken::new())
                .await?;
            let mut snapshot = lease.take_snapshot()?;
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
            return Ok((self.describe(undo, &report, &stored), code));
        }
        bail!(
            "no accepted call of `{}` can be taken back: none is on record",
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

    fn describe(&self, undo: &StoredUndo, report: &UndoReport, stored: &[StoredUndo]) -> String {
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
            for path in &report.left {
                let name = words::plain(&path.to_string_lossy()).into_owned();
                let later = stored.iter().find(|other| {
                    other.accepted > undo.accepted
                        && other.root == undo.root
                        && other.record.steps().any(|(touched, _)| touched == *path)
                });
                let why = later.map_or_else(
                    || String::from("changed since"),
                    |later| {
                        format!(
                            "changed since, also by call {}; take that back first",
                            later.call
                        )
                    },
                );
                let _ = writeln!(text, "  {name}: {why}");
            }
            let not = if self.dry_run {
                "would not be taken back"
            } else {
                "not taken back"
            };
            let _ = writeln!(text, "{not}: nothing was changed");
            return text;
        }
        for (path, step) in undo
            .record
            .steps()
            .filter(|(path, _)| report.undone.contains(path))
        {
            let word = match step {
                UndoStep::Restore => "restore   ",
                UndoStep::Recreate => "bring back",
                UndoStep::Remove => "remove    ",
            };
            let _ = writeln!(text, "  {word} {}", words::plain(&path.to_string_lossy()));
        }
        let files = words::count(report.undone.len(), "file");
        text += &match (report.undone.is_empty(), self.dry_run) {
            (true, _) => String::from("nothing to do: every file is as it was before this call\n"),
            (false, true) => format!("would take back {files}\n"),
            (false, false) => format!("taken back: {files}\n"),
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
}

impl WholeCall {
    fn of(one: &StoredUndo) -> Self {
        Self {
            undo: one.clone(),
            calls: vec![one.call.clone()],
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
            }
            None => whole.push(WholeCall::of(one)),
        }
    }
    whole
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
            "call {} cannot be taken back: it changed no file, was taken back already, or what it replaced is not kept any more",
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
