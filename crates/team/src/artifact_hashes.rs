//! Verifies that a checkpoint changed nothing: the files it read have the same contents afterwards.

use std::collections::BTreeMap;

use super::document::SessionDocuments;
use super::team_dirs::TeamDirs;
use supervisor_workspace::FolderError;

const MAX_FILE_BYTES: u64 = 64 << 20;

/// Content hashes by path, taken when the files were read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArtifactHashes {
    pub by_path: BTreeMap<String, String>,
}

impl ArtifactHashes {
    /// The files the checks read. Wisdom is excluded, because we append to it ourselves.
    pub fn of(documents: &SessionDocuments) -> Self {
        Self {
            by_path: documents
                .artifacts()
                .map(|d| (d.path.clone(), d.hash.clone()))
                .collect(),
        }
    }

    /// The paths whose contents have changed.
    pub fn changed(&self, place: &TeamDirs) -> Result<Vec<String>, FolderError> {
        let mut changed = Vec::new();
        for (path, hash) in &self.by_path {
            let now = place.folder().read(path, MAX_FILE_BYTES)?;
            if now.is_none_or(|bytes| blake3::hash(&bytes).to_hex().as_str() != hash) {
                changed.push(path.clone());
            }
        }
        Ok(changed)
    }
}
