//! The proof that a checkpoint only looked: what it read has the same contents afterwards.

use std::collections::BTreeMap;

use super::document::SessionDocuments;
use super::place::TeamPlace;
use supervisor_workspace::FolderError;

const LARGEST: u64 = 64 << 20;

/// Contents by path, as they were when they were read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArtifactHashes {
    pub by_path: BTreeMap<String, String>,
}

impl ArtifactHashes {
    /// What the checks look at. Wisdom is left out: it grows, also by us.
    pub fn of(documents: &SessionDocuments) -> Self {
        let all = documents.by_source.values().flatten();
        Self {
            by_path: all.map(|d| (d.path.clone(), d.hash.clone())).collect(),
        }
    }

    /// The paths whose contents are no longer what they were.
    pub fn changed(&self, place: &TeamPlace) -> Result<Vec<String>, FolderError> {
        let mut changed = Vec::new();
        for (path, hash) in &self.by_path {
            let now = place.folder().read(path, LARGEST)?;
            if now.is_none_or(|bytes| blake3::hash(&bytes).to_hex().as_str() != hash) {
                changed.push(path.clone());
            }
        }
        Ok(changed)
    }
}
