//! Handles changes an agent could make outside the snapshot. Caches and installed packages are too
//! large to snapshot, yet they decide what code runs. Bytecode and compiled output are deleted
//! before a test run is trusted. Changes to installed packages are detected by ctime, which a
//! process cannot set.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use supervisor_languages::{CompiledDir, LANGUAGES, is_built_dir, is_installed_dir};

/// Names that tools write to during normal operation.
const TOOL_SCRATCH_NAMES: &[&str] = &[
    ".cache",
    ".vite",
    ".vitest",
    "__pycache__",
    ".package-lock.json",
];
/// Maximum number of paths reported.
const MAX_REPORTED: usize = 5;

/// Removes the project's own bytecode. Python trusts it if only time and size of the source file
/// match.
pub fn remove_bytecode(root: &Path) {
    walk(root, &mut |path, name, meta| {
        if name == "__pycache__" && meta.is_dir() {
            let _ = fs::remove_dir_all(path);
            return VisitAction::Skip;
        }
        if is_installed(path, name) || name == ".git" {
            VisitAction::Skip
        } else {
            VisitAction::Enter
        }
    });
}

/// Whether this is a directory into which a tool compiles the project. The name alone is not
/// enough: other tools use the same names.
pub fn is_compiled(root: &Path, dir: &Path) -> bool {
    compiled_dir(root, dir).is_some()
}

fn compiled_dir(root: &Path, dir: &Path) -> Option<&'static CompiledDir> {
    let all = LANGUAGES.iter().flat_map(|language| language.compiled_dirs);
    let matches = |known: &&CompiledDir| {
        dir.file_name().is_some_and(|name| name == known.name)
            && root.join(dir).with_file_name(known.manifest).is_file()
    };
    all.into_iter().find(matches)
}

/// Removes compiled output of the project itself, which tools trust as long as timestamps match.
/// In a `known` directory, only output that the tools can rebuild is removed.
pub fn remove_compiled<'a>(
    root: &Path,
    unprotected: impl IntoIterator<Item = &'a Path>,
    known: &BTreeSet<PathBuf>,
) {
    for (dir, kind) in unprotected
        .into_iter()
        .filter_map(|dir| Some((dir, compiled_dir(root, dir)?)))
    {
        if known.contains(dir) {
            remove_own_output(&root.join(dir), kind);
        } else {
            let _ = fs::remove_dir_all(root.join(dir));
        }
    }
}

fn remove_own_output(build: &Path, kind: &CompiledDir) {
    let entries = |dir: &Path| {
        fs::read_dir(dir)
            .into_iter()
            .flatten()
            .flatten()
            .collect::<Vec<_>>()
    };
    let fetched = kind
        .dependency_dir
        .map(|dir| entries(&build.with_file_name(dir)))
        .unwrap_or_default();
    let fetched: Vec<_> = fetched.iter().map(fs::DirEntry::file_name).collect();
    for pattern in kind.own_outputs {
        let mut found = vec![build.to_owned()];
        for part in pattern.split('/') {
            let matching_entries = |dir: &PathBuf| {
                entries(dir)
                    .into_iter()
                    .filter(|e| part == "*" || e.file_name() == part)
            };
            found = found
                .iter()
                .flat_map(matching_entries)
                .map(|entry| entry.path())
                .collect();
        }
        let is_kept = |name: &OsStr| {
            fetched.iter().any(|f| f == name) || kind.keep.iter().any(|k| name == *k)
        };
        for path in found
            .iter()
            .filter(|path| !path.file_name().is_some_and(is_kept))
        {
            let is_dir = path.symlink_metadata().is_ok_and(|m| m.is_dir());
            let _ = if is_dir {
                fs::remove_dir_all(path)
            } else {
                fs::remove_file(path)
            };
        }
    }
}

/// Sets the mtime of backdated files to now: files written after `since` whose mtime is older.
/// Otherwise build tools would reuse output built from the previous content.
pub fn touch_backdated_files(root: &Path, since: SystemTime) {
    let after = since.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let now = SystemTime::now();
    walk(root, &mut |path, name, meta| {
        if is_installed(path, name) || is_built_dir(name) || name == ".git" {
            return VisitAction::Skip;
        }
        let written = (meta.ctime(), meta.ctime_nsec())
            > (whole_seconds(after), i64::from(after.subsec_nanos()));
        if meta.is_file() && written && meta.modified().is_ok_and(|time| time < since) {
            let _ = fs::File::open(path).and_then(|file| file.set_modified(now));
        }
        VisitAction::Enter
    });
}

/// Files of installed packages written after `since`, relative to the root.
pub fn installed_since(root: &Path, since: SystemTime) -> Vec<PathBuf> {
    let since = since.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let mut found = Vec::new();
    walk(root, &mut |path, name, meta| {
        if found.len() >= MAX_REPORTED || name == ".git" || TOOL_SCRATCH_NAMES.contains(&name) {
            return VisitAction::Skip;
        }
        let relative = path.strip_prefix(root).unwrap_or(path);
        let installed = relative.ancestors().any(|part| {
            let name = part.file_name().and_then(OsStr::to_str);
            name.is_some_and(|name| is_installed(&root.join(part), name))
        });
        let changed = (meta.ctime(), meta.ctime_nsec())
            > (whole_seconds(since), i64::from(since.subsec_nanos()));
        if installed && changed && !meta.is_dir() {
            found.push(relative.to_owned());
        }
        VisitAction::Enter
    });
    found
}

fn is_installed(path: &Path, name: &str) -> bool {
    is_installed_dir(name, |file| path.with_file_name(file).is_file())
}

fn whole_seconds(time: Duration) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}

enum VisitAction {
    Enter,
    Skip,
}

/// Visits every entry below `dir`. Does not follow links and skips unreadable entries.
fn walk(dir: &Path, visit: &mut dyn FnMut(&Path, &str, &fs::Metadata) -> VisitAction) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let Ok(meta) = path.symlink_metadata() else {
            continue;
        };
        if matches!(
            visit(&path, &name.to_string_lossy(), &meta),
            VisitAction::Enter
        ) && meta.is_dir()
        {
            walk(&path, visit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backdated_files_are_touched_and_compiled_output_removed() {
        let dir = tempfile::tempdir().expect("temp dir");
        let root = dir.path();
        for path in [
            "lib/a.ex",
            "deps/b/mix.exs",
            "_build/test/lib/a/ebin/A.beam",
            "_build/test/lib/b/ebin/B.beam",
        ] {
            fs::create_dir_all(root.join(path).parent().expect("below")).expect("made");
            fs::write(root.join(path), "").expect("written");
        }
        let (file, old) = (
            root.join("lib/a.ex"),
            UNIX_EPOCH + Duration::from_secs(1_000_000),
        );
        fs::File::open(&file)
            .and_then(|f| f.set_modified(old))
            .expect("made old");
        touch_backdated_files(root, SystemTime::now() + Duration::from_secs(60));
        assert_eq!(
            file.metadata().and_then(|m| m.modified()).expect("mtime"),
            old,
            "not written since"
        );
        touch_backdated_files(root, old + Duration::from_secs(1));
        assert!(file.metadata().and_then(|m| m.modified()).expect("mtime") > old);
        let build = Path::new("_build");
        remove_compiled(root, [build], &BTreeSet::new());
        assert!(
            root.join(build).exists(),
            "without a mix.exs it belongs to another tool"
        );
        fs::write(root.join("mix.exs"), "").expect("written");
        remove_compiled(root, [build], &BTreeSet::from([build.to_owned()]));
        assert!(
            !root.join("_build/test/lib/a").exists()
                && root.join("_build/test/lib/b/ebin/B.beam").exists()
        );
        remove_compiled(root, [build], &BTreeSet::new());
        assert!(!root.join(build).exists(), "its content is unknown");
    }

    #[test]
    fn build_output_of_cargo_is_not_installed() {
        let dir = tempfile::tempdir().expect("temp dir");
        let root = dir.path();
        for path in [
            "Cargo.toml",
            "target/debug/deps/demo.d",
            "crates/vendor/src/lib.rs",
            "elixir/mix.exs",
            "elixir/deps/a/mix.exs",
        ] {
            fs::create_dir_all(root.join(path).parent().expect("below")).expect("made");
            fs::write(root.join(path), "").expect("written");
        }
        assert_eq!(
            installed_since(root, UNIX_EPOCH),
            [PathBuf::from("elixir/deps/a/mix.exs")]
        );
    }

    #[test]
    fn new_installed_files_are_reported_own_bytecode_removed() {
        let dir = tempfile::tempdir().expect("temp dir");
        let root = dir.path();
        for path in [
            "node_modules/a/index.js",
            "src/a.js",
            "src/__pycache__/a.pyc",
            ".venv/lib/__pycache__/b.pyc",
        ] {
            fs::create_dir_all(root.join(path).parent().expect("below")).expect("made");
            fs::write(root.join(path), "").expect("written");
        }
        assert_eq!(
            installed_since(root, UNIX_EPOCH),
            [PathBuf::from("node_modules/a/index.js")]
        );
        assert!(installed_since(root, SystemTime::now() + Duration::from_secs(60)).is_empty());
        remove_bytecode(root);
        assert!(
            !root.join("src/__pycache__").exists()
                && root.join(".venv/lib/__pycache__/b.pyc").exists()
        );
    }
}
