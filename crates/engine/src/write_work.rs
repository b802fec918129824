//! Writes accepted work into the project. If the project changed while the work was judged, the
//! work is moved onto the current state and its tests are re-run; it is written only if they still
//! pass.

use std::collections::BTreeSet;
use std::path::PathBuf;

use tokio_util::sync::CancellationToken;

use super::call::CallHeader;
use super::event::{Event, EventReporter};
use super::project_access::{Site, SiteError, blocking};
use supervisor_workspace::state::StateDir;
use supervisor_workspace::{UndoRecord, UndoStore};

/// Maximum number of rebases. After that, `accept` decides about the remaining changes by path
/// alone.
const MAX_REBASES: usize = 3;
/// Maximum bytes of the diff in the result.
const MAX_DIFF_BYTES: usize = 32 * 1024;

/// Work that was written.
#[derive(Debug, Default)]
pub(super) struct WrittenWork {
    /// Files that others changed meanwhile.
    pub(super) external_changes: Vec<PathBuf>,
    /// Diff and files as written, if they differ from what was judged first.
    pub(super) rebased: Option<(String, Vec<String>)>,
    /// How to undo it.
    pub(super) undo: Option<UndoRecord>,
}

/// Where the undo record is stored, and for which call.
#[derive(Clone, Copy)]
pub(super) struct UndoTarget<'a> {
    pub(super) state: &'a StateDir,
    pub(super) header: &'a CallHeader,
}

/// Writes accepted work. On an error nothing was written.
pub(super) async fn write_work(
    mut site: Site,
    target: UndoTarget<'_>,
    reporter: &EventReporter<'_>,
    stop: &CancellationToken,
) -> Result<WrittenWork, SiteError> {
    let (mut external_changes, mut kept) = (BTreeSet::new(), WrittenWork::default());
    for _ in 0..MAX_REBASES {
        let drift = site.drift().await?;
        external_changes.extend(drift.paths().map(std::path::Path::to_owned));
        if drift.files.is_empty() {
            break;
        }
        let files: Vec<PathBuf> = drift
            .files
            .iter()
            .map(|change| change.path.clone())
            .collect();
        reporter.report(Event::Doing {
            what: String::from("the project was changed meanwhile; checking on top of that"),
        });
        site.rebase().await?;
        site.rerun_tests(&files, stop).await?;
        let (changes, diff) = site.review(MAX_DIFF_BYTES).await?;
        kept.rebased = Some((
            diff,
            changes
                .files()
                .map(|change| change.path.display().to_string())
                .collect(),
        ));
    }
    // Stored before the project is written: if the server dies in between, there is no change
    // without an undo record.
    kept.undo = target.write(&mut site).await;
    if let Err(error) = site.accept(&target.header.call).await {
        target.remove().await;
        return Err(error);
    }
    kept.external_changes = external_changes.into_iter().collect();
    Ok(kept)
}

impl UndoTarget<'_> {
    /// If the record cannot be stored, the change is accepted anyway; only `supervisor undo` will
    /// not know it.
    async fn write(self, site: &mut Site) -> Option<UndoRecord> {
        let root = site.root().to_owned();
        let record = match site.undo_record().await {
            Ok(record) => record?,
            Err(why) => {
                tracing::warn!("what a change replaced could not be written down: {why}");
                return None;
            }
        };
        let (store, header) = (UndoStore::of(self.state), self.header.clone());
        blocking(move || {
            if let Err(why) = store.keep(
                &header.call,
                &header.cycle_id,
                &header.skill,
                &root,
                &record,
            ) {
                tracing::warn!(
                    "what a change replaced could not be kept for `supervisor undo`: {why}"
                );
            }
            Some(record)
        })
        .await
    }

    async fn remove(self) {
        let (store, call) = (UndoStore::of(self.state), self.header.call.clone());
        blocking(move || drop(store.remove(&call))).await;
    }
}
