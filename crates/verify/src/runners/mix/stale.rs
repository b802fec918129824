//! mix compares modification times in whole seconds. It treats a source file as compiled if it was written in the same
//! second as the last compilation and has the same size. In that case this module makes mix's compile manifest one second
//! older, so that mix compares contents.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const BUILD_DIR: &str = "_build";
/// Large directories whose files are not edited by hand.
const SKIPPED_DIRS: &[&str] = &[BUILD_DIR, "deps", "node_modules", ".git", ".elixir_ls"];

/// Makes the next compilation compare contents where modification times are ambiguous. Ignores files that cannot be read
/// or changed.
pub(super) fn force_content_check(root: &Path) {
    let mut manifests = Vec::new();
    for stage in list_dir(&root.join(BUILD_DIR)) {
        for app in list_dir(&stage.join("lib")) {
            let files = list_dir(&app.join(".mix"))
                .into_iter()
                .filter(|p| p.is_file());
            manifests.extend(files.filter_map(|path| Some((mtime_seconds(&path)?, path))));
        }
    }
    if manifests.is_empty() {
        return;
    }
    let mut mtimes = BTreeSet::new();
    collect_mtimes(root, &mut mtimes);
    for (compiled, path) in manifests {
        if mtimes.contains(&compiled) {
            let before = UNIX_EPOCH + Duration::from_secs(compiled.saturating_sub(1));
            let _ = File::open(path).and_then(|file| file.set_modified(before));
        }
    }
}

/// Collects the modification times of all files below `dir`, in seconds.
fn collect_mtimes(dir: &Path, found: &mut BTreeSet<u64>) {
    for path in list_dir(dir) {
        let is_skipped = path
            .file_name()
            .is_some_and(|name| SKIPPED_DIRS.iter().any(|f| name == *f));
        match path.symlink_metadata() {
            Ok(meta) if meta.is_dir() && !is_skipped => collect_mtimes(&path, found),
            Ok(meta) if meta.is_file() => found.extend(meta.modified().ok().map(to_unix_seconds)),
            _ => {}
        }
    }
}

fn mtime_seconds(path: &Path) -> Option<u64> {
    path.metadata()
        .and_then(|m| m.modified())
        .ok()
        .map(to_unix_seconds)
}

fn to_unix_seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

fn list_dir(dir: &Path) -> Vec<std::path::PathBuf> {
    fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ambiguous_manifests_are_made_older() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let at = |path: &str, second: u64| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().expect("inside the root"))
                .expect("the directory is created");
            let file = File::create(&path).expect("the file is written");
            file.set_modified(UNIX_EPOCH + Duration::from_secs(second))
                .expect("the mtime is set");
            path
        };
        let same = at("_build/test/lib/a/.mix/compile.elixir", 1_000);
        let later = at("_build/test/lib/b/.mix/compile.elixir", 2_000);
        at("lib/a.ex", 1_000);
        at("deps/b/lib/b.ex", 2_000);
        for _ in 0..2 {
            force_content_check(dir.path());
            assert_eq!(
                (mtime_seconds(&same), mtime_seconds(&later)),
                (Some(999), Some(2_000))
            );
        }
    }
}
