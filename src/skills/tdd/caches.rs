//! What an agent could change without a snapshot noticing: caches and installed packages are too large to keep, and yet
//! they decide what runs. Bytecode is thrown away before tests are believed; installed packages are looked at by the one
//! time that nobody can set.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Packages live in these, wherever they are in a project.
const INSTALLED: &[&str] = &["node_modules", ".venv", "venv", "site-packages", "vendor", "deps"];
/// Tools write into these while they work.
const WORKING: &[&str] = &[".cache", ".vite", ".vitest", "__pycache__", ".package-lock.json"];
/// Names told; the rest is as bad.
const TOLD: usize = 5;

/// Removes the project's own bytecode: it is believed for the time and size of a source file alone.
pub(super) fn forget_bytecode(root: &Path) {
    walk(root, &mut |path, name, meta| {
        if name == "__pycache__" && meta.is_dir() {
            let _ = fs::remove_dir_all(path);
            return Into::Skip;
        }
        if INSTALLED.contains(&name) || name == ".git" { Into::Skip } else { Into::Enter }
    });
}

/// Files of installed packages that were written after this moment, relative to the root.
pub(super) fn installed_since(root: &Path, since: SystemTime) -> Vec<PathBuf> {
    let since = since.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let mut found = Vec::new();
    walk(root, &mut |path, name, meta| {
        if found.len() >= TOLD || name == ".git" || WORKING.contains(&name) {
            return Into::Skip;
        }
        let below = path.strip_prefix(root).unwrap_or(path);
        let installed = below.components().any(|c| INSTALLED.iter().any(|i| c.as_os_str() == *i));
        let changed = (meta.ctime(), meta.ctime_nsec()) > (whole(since), i64::from(since.subsec_nanos()));
        if installed && changed && !meta.is_dir() {
            found.push(below.to_owned());
        }
        Into::Enter
    });
    found
}

fn whole(time: Duration) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}

enum Into {
    Enter,
    Skip,
}

/// Every name below, links not followed; what cannot be read is left out.
fn walk(dir: &Path, visit: &mut dyn FnMut(&Path, &str, &fs::Metadata) -> Into) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let Ok(meta) = path.symlink_metadata() else { continue };
        if matches!(visit(&path, &name.to_string_lossy(), &meta), Into::Enter) && meta.is_dir() {
            walk(&path, visit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_installed_and_newer_is_told_and_only_own_bytecode_goes() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path();
        for path in ["node_modules/a/index.js", "src/a.js", "src/__pycache__/a.pyc", ".venv/lib/__pycache__/b.pyc"] {
            fs::create_dir_all(root.join(path).parent().expect("below")).expect("made");
            fs::write(root.join(path), "").expect("written");
        }
        assert_eq!(installed_since(root, UNIX_EPOCH), [PathBuf::from("node_modules/a/index.js")]);
        assert!(installed_since(root, SystemTime::now() + Duration::from_secs(60)).is_empty());
        forget_bytecode(root);
        assert!(!root.join("src/__pycache__").exists() && root.join(".venv/lib/__pycache__/b.pyc").exists());
    }
}
