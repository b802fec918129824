//! mix compares whole seconds: a source that was written in the second of the last compilation counts as compiled, if
//! only its size is the same. There its note of that compilation is made a second older, so that it compares contents.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const BUILD: &str = "_build";
/// These are not edited by hand, and they are large.
const FOREIGN: &[&str] = &[BUILD, "deps", "node_modules", ".git", ".elixir_ls"];

/// Makes the next compilation look at contents wherever times cannot tell. What cannot be read or set is left as it is.
pub(super) fn look_twice(root: &Path) {
    let mut notes = Vec::new();
    for stage in names(&root.join(BUILD)) {
        for app in names(&stage.join("lib")) {
            let compilers = names(&app.join(".mix")).into_iter().filter(|p| p.is_file());
            notes.extend(compilers.filter_map(|path| Some((second(&path)?, path))));
        }
    }
    if notes.is_empty() {
        return;
    }
    let mut written = BTreeSet::new();
    seconds(root, &mut written);
    for (compiled, path) in notes {
        if written.contains(&compiled) {
            let before = UNIX_EPOCH + Duration::from_secs(compiled.saturating_sub(1));
            let _ = File::open(path).and_then(|file| file.set_modified(before));
        }
    }
}

/// The seconds in which any file below was written.
fn seconds(dir: &Path, found: &mut BTreeSet<u64>) {
    for path in names(dir) {
        let foreign = path
            .file_name()
            .is_some_and(|name| FOREIGN.iter().any(|f| name == *f));
        match path.symlink_metadata() {
            Ok(meta) if meta.is_dir() && !foreign => seconds(&path, found),
            Ok(meta) if meta.is_file() => found.extend(meta.modified().ok().map(whole)),
            _ => {}
        }
    }
}

fn second(path: &Path) -> Option<u64> {
    path.metadata().and_then(|m| m.modified()).ok().map(whole)
}

fn whole(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

fn names(dir: &Path) -> Vec<std::path::PathBuf> {
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
    fn only_a_note_of_a_second_in_which_something_was_written_is_made_older() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |path: &str, second: u64| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().expect("below")).expect("made");
            let file = File::create(&path).expect("written");
            file.set_modified(UNIX_EPOCH + Duration::from_secs(second))
                .expect("set");
            path
        };
        let same = at("_build/test/lib/a/.mix/compile.elixir", 1_000);
        let later = at("_build/test/lib/b/.mix/compile.elixir", 2_000);
        at("lib/a.ex", 1_000);
        at("deps/b/lib/b.ex", 2_000);
        for _ in 0..2 {
            look_twice(dir.path());
            assert_eq!((second(&same), second(&later)), (Some(999), Some(2_000)));
        }
    }
}
