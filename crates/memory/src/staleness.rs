//! Checks whether a note is still valid, by comparing the files it cites with their current
//! contents.

use std::path::Path;

use super::note::Note;
use supervisor_workspace::ConfinedFolder;

const MAX_FILE_BYTES: u64 = 64 << 20;

/// Why a note may be outdated; `None` if all cited files are unchanged.
pub fn staleness_of(note: &Note, project_root: &Path) -> Option<String> {
    if note.files.is_empty() {
        return None;
    }
    let folder = ConfinedFolder::open(project_root).ok()?;
    note.files
        .iter()
        .find_map(|(path, hash)| match hash_of(&folder, path) {
            None => Some(format!("`{path}` is gone")),
            Some(now) if now != *hash => Some(format!("`{path}` has changed")),
            Some(_) => None,
        })
}

/// Hashes the cited files. The error names the file that cannot be read.
pub fn hash_files(project_root: &Path, files: &[String]) -> Result<Vec<(String, String)>, String> {
    let folder = ConfinedFolder::open(project_root).map_err(|e| e.to_string())?;
    let hash_one = |path: &String| {
        let relative = Path::new(path)
            .strip_prefix(project_root)
            .map_or(path.clone(), |p| p.display().to_string());
        hash_of(&folder, &relative)
            .map(|hash| (relative.clone(), hash))
            .ok_or_else(|| {
                format!("`evidence.files` names `{path}`, which is not a file of the project")
            })
    };
    files.iter().map(hash_one).collect()
}

fn hash_of(folder: &ConfinedFolder, path: &str) -> Option<String> {
    let bytes = folder.read(path, MAX_FILE_BYTES).ok().flatten()?;
    Some(blake3::hash(&bytes).to_hex()[..32].to_owned())
}
