//! What an agent could change without a snapshot noticing: caches and installed packages are too large to keep, and yet
//! they decide what runs. Bytecode is thrown away before tests are believed; installed packages are looked at by the one
//! time that cannot be set.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use supervisor_languages::{CompiledDir, LANGUAGES, is_built_dir, is_installed_dir};

/// Tools write into these while they work.
const WORKING: &[&str] = &[
    ".cache",
    ".vite",
    ".vitest",
    "__pycache__",
    ".package-lock.json",
];
/// Names told; the rest is as bad.
const TOLD: usize = 5;

/// Removes the project's own bytecode: it is believed for the time and size of a source file alone.
pub(super) fn forget_bytecode(root: &Path) {
    walk(root, &mut |path, name, meta| {
        if name == "__pycache__" && meta.is_dir() {
            let _ = fs::remove_dir_all(path);
            return Into::Skip;
        }
        if is_installed_dir(name) || name == ".git" {
            Into::Skip
        } else {
            Into::Enter
        }
    });
}

/// Is this where a tool puts what it compiles of the project? Directories of that name may be something else.
pub(super) fn is_compiled(root: &Path, dir: &Path) -> bool {
    compiled_dir(root, dir).is_some()
}

fn compiled_dir(root: &Path, dir: &Path) -> Option<&'static CompiledDir> {
    let all = LANGUAGES.iter().flat_map(|language| language.compiled_dirs);
    let is_meant = |known: &&CompiledDir| {
        dir.file_name().is_some_and(|name| name == known.name)
            && root.join(dir).with_file_name(known.beside).is_file()
    };
    all.into_iter().find(is_meant)
}

/// Removes what was compiled of the project itself: tools believe it as long as the times of files fit. Of a directory
/// that was `known` before, what tools cannot make again stays.
pub(super) fn forget_compiled<'a>(
    root: &Path,
    unprotected: impl IntoIterator<Item = &'a Path>,
    known: &BTreeSet<PathBuf>,
) {
    for (dir, kind) in unprotected
        .into_iter()
        .filter_map(|dir| Some((dir, compiled_dir(root, dir)?)))
    {
        if known.contains(dir) {
            forget_own(&root.join(dir), kind);
        } else {
            let _ = fs::remove_dir_all(root.join(dir));
        }
    }
}

fn forget_own(build: &Path, kind: &CompiledDir) {
    let names = |dir: &Path| {
        fs::read_dir(dir)
            .into_iter()
            .flatten()
            .flatten()
            .collect::<Vec<_>>()
    };
    let fetched = kind
        .fetched
        .map(|dir| names(&build.with_file_name(dir)))
        .unwrap_or_default();
    let fetched: Vec<_> = fetched.iter().map(fs::DirEntry::file_name).collect();
    for pattern in kind.own {
        let mut found = vec![build.to_owned()];
        for part in pattern.split('/') {
            let inside = |dir: &PathBuf| {
                names(dir)
                    .into_iter()
                    .filter(|e| part == "*" || e.file_name() == part)
            };
            found = found
                .iter()
                .flat_map(inside)
                .map(|entry| entry.path())
                .collect();
        }
        let stays = |name: &OsStr| {
            fetched.iter().any(|f| f == name) || kind.kept.iter().any(|k| name == *k)
        };
        for path in found
            .iter()
            .filter(|path| !path.file_name().is_some_and(stays))
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

/// Gives a file the present time if it was written after this moment and pretends to be older: build tools would
/// believe that what they built of another content is still good.
pub(super) fn renew(root: &Path, since: SystemTime) {
    let after = since.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let now = SystemTime::now();
    walk(root, &mut |path, name, meta| {
        if is_installed_dir(name) || is_built_dir(name) || name == ".git" {
            return Into::Skip;
        }
        let written =
            (meta.ctime(), meta.ctime_nsec()) > (whole(after), i64::from(after.subsec_nanos()));
        if meta.is_file() && written && meta.modified().is_ok_and(|time| time < since) {
            let _ = fs::File::open(path).and_then(|file| file.set_modified(now));
        }
        Into::Enter
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
        let installed = below
            .components()
            .any(|c| c.as_os_str().to_str().is_some_and(is_installed_dir));
        let changed =
            (meta.ctime(), meta.ctime_nsec()) > (whole(since), i64::from(since.subsec_nanos()));
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
        let Ok(meta) = path.symlink_metadata() else {
            continue;
        };
        if matches!(visit(&path, &name.to_string_lossy(), &meta), Into::Enter) && meta.is_dir() {
            walk(&path, visit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_and_pretends_to_be_old_is_made_new_and_own_compiled_code_goes() {
        let dir = tempfile::tempdir().expect("a directory");
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
        renew(root, SystemTime::now() + Duration::from_secs(60));
        assert_eq!(
            file.metadata().and_then(|m| m.modified()).expect("a time"),
            old,
            "not written since"
        );
        renew(root, old + Duration::from_secs(1));
        assert!(file.metadata().and_then(|m| m.modified()).expect("a time") > old);
        let build = Path::new("_build");
        forget_compiled(root, [build], &BTreeSet::new());
        assert!(
            root.join(build).exists(),
            "without a mix.exs it belongs to another tool"
        );
        fs::write(root.join("mix.exs"), "").expect("written");
        forget_compiled(root, [build], &BTreeSet::from([build.to_owned()]));
        assert!(
            !root.join("_build/test/lib/a").exists()
                && root.join("_build/test/lib/b/ebin/B.beam").exists()
        );
        forget_compiled(root, [build], &BTreeSet::new());
        assert!(!root.join(build).exists(), "its content is unknown");
    }

    #[test]
    fn only_what_is_installed_and_newer_is_told_and_only_own_bytecode_goes() {
        let dir = tempfile::tempdir().expect("a directory");
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
        forget_bytecode(root);
        assert!(
            !root.join("src/__pycache__").exists()
                && root.join(".venv/lib/__pycache__/b.pyc").exists()
        );
    }
}
