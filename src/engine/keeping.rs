//! Accepted work on its way into the project. Judging takes time, and the project may have been changed meanwhile: then the
//! work is put onto what is there now and its tests run once more, and only what still holds is written.

use std::collections::BTreeSet;
use std::path::PathBuf;

use tokio_util::sync::CancellationToken;

use super::event::{Event, Teller};
use super::site::{Site, SiteError};

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
}

/// Writes accepted work, or says why it was not written; then nothing was.
pub(super) async fn keep(mut site: Site, teller: &Teller<'_>, stop: &CancellationToken) -> Result<KeptWork, SiteError> {
    let (mut met, mut kept) = (BTreeSet::new(), KeptWork::default());
    for _ in 0..ROUNDS {
        let drift = site.drift().await?;
        met.extend(drift.paths().map(std::path::Path::to_owned));
        if drift.files.is_empty() {
            break;
        }
        let files: Vec<PathBuf> = drift.files.iter().map(|change| change.path.clone()).collect();
        teller.tell(Event::Doing { what: String::from("the project was changed meanwhile; checking on top of that") });
        site.follow().await?;
        site.confirm(&files, stop).await?;
        let (changes, diff) = site.review(DIFF).await?;
        kept.moved = Some((diff, changes.files().map(|change| change.path.display().to_string()).collect()));
    }
    site.accept().await?;
    kept.meanwhile = met.into_iter().collect();
    Ok(kept)
}
