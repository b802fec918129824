//! Accepted work on its way into the project. Judging takes time, and the project may have been changed meanwhile: then the
//! work is put onto what is there now and its tests run once more, and only what still holds is written.

use std::collections::BTreeSet;
use std::path::PathBuf;

use tokio_util::sync::CancellationToken;

use super::call::CallHeader;
use super::event::{Event, Teller};
use super::site::{Site, SiteError, blocking};
use supervisor_workspace::state::StateDir;
use supervisor_workspace::{UndoRecord, UndoStore};

/// How often a change is followed before what is left of it is decided by its names alone.
const ROUNDS: usize = 3;
/// Bytes of the change as the result shows it.
const DIFF: usize = 32 * 1024;

/// Work that was kept.
#[derive(Debug, Default)]
pub(super) struct KeptWork {
    /// What others changed meanwhile.
    pub(super) meanwhile: Vec<PathBuf>,
    /// The change as it was written, where it is not the one that was judged first.
    pub(super) moved: Option<(String, Vec<String>)>,
    /// How it can be taken back.
    pub(super) undo: Option<UndoRecord>,
}

/// Where it is written down how an accepted change can be taken back, and under which name.
#[derive(Clone, Copy)]
pub(super) struct UndoNote<'a> {
    pub(super) state: &'a StateDir,
    pub(super) header: &'a CallHeader,
}

/// Writes accepted work, or says why it was not written; then nothing was.
pub(super) async fn keep(
    mut site: Site,
    note: UndoNote<'_>,
    teller: &Teller<'_>,
    stop: &CancellationToken,
) -> Result<KeptWork, SiteError> {
    let (mut met, mut kept) = (BTreeSet::new(), KeptWork::default());
    for _ in 0..ROUNDS {
        let drift = site.drift().await?;
        met.extend(drift.paths().map(std::path::Path::to_owned));
        if drift.files.is_empty() {
            break;
        }
        let files: Vec<PathBuf> = drift
            .files
            .iter()
            .map(|change| change.path.clone())
            .collect();
        teller.tell(Event::Doing {
            what: String::from("the project was changed meanwhile; checking on top of that"),
        });
        site.follow().await?;
        site.confirm(&files, stop).await?;
        let (changes, diff) = site.review(DIFF).await?;
        kept.moved = Some((
            diff,
            changes
                .files()
                .map(|change| change.path.display().to_string())
                .collect(),
        ));
    }
    // On disk before the project is written, so that a server that dies in between leaves no change without its record.
    kept.undo = note.write(&mut site).await;
    if let Err(error) = site.accept(&note.header.call).await {
        note.withdraw().await;
        return Err(error);
    }
    kept.meanwhile = met.into_iter().collect();
    Ok(kept)
}

impl UndoNote<'_> {
    /// A change that cannot be written down is accepted all the same: only `supervisor undo` will not know it.
    async fn write(self, site: &mut Site) -> Option<UndoRecord> {
        let root = site.root().to_owned();
        let record = match site.undo_record().await {
            Ok(record) => record?,
            Err(why) => {
                tracing::warn!("what a change replaced could not be written down: {why}");
                return None;
            }
        };
        let (store, call, skill) = (
            UndoStore::of(self.state),
            self.header.call.clone(),
            self.header.skill.clone(),
        );
        blocking(move || {
            if let Err(why) = store.keep(&call, &skill, &root, &record) {
                tracing::warn!(
                    "what a change replaced could not be kept for `supervisor undo`: {why}"
                );
            }
            Some(record)
        })
        .await
    }

    async fn withdraw(self) {
        let (store, call) = (UndoStore::of(self.state), self.header.call.clone());
        blocking(move || drop(store.remove(&call))).await;
    }
}
