//! Is a note still true? What it cites is compared with what is there now.

use std::path::Path;

use super::note::Note;
use supervisor_workspace::ConfinedFolder;

const LARGEST: u64 = 64 << 20;

/// Why a note may no longer hold; `None` if all that it cites is as it was.
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

/// The contents of the cited files, as they are now; the error names the one that cannot be read.
pub fn hash_files(project_root: &Path, files: &[String]) -> Result<Vec<(String, String)>, String> {
    let folder = ConfinedFolder::open(project_root).map_err(|e| e.to_string())?;
    let one = |path: &String| {
        let relative = Path::new(path)
            .strip_prefix(project_root)
            .map_or(path.clone(), |p| p.display().to_string());
        hash_of(&folder, &relative)
            .map(|hash| (relative.clone(), hash))
            .ok_or_else(|| {
                format!("`evidence.files` names `{path}`, which is not a file of the project")
            })
    };
    files.iter().map(one).collect()
}

fn hash_of(folder: &ConfinedFolder, path: &str) -> Option<String> {
    let bytes = folder.read(path, LARGEST).ok().flatten()?;
    Some(blake3::hash(&bytes).to_hex()[..32].to_owned())
}
