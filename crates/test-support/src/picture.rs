//! What a project looks like, in everything that a restore promises.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

/// What a restore has to bring back.
#[derive(Debug, PartialEq, Eq)]
pub struct Picture {
    pub files: BTreeMap<PathBuf, (char, u32, Vec<u8>)>,
    /// Where the repository stands: refs, `HEAD`, stash, index.
    pub git: Vec<String>,
    /// What steers later commands: configuration and hooks.
    pub steering: Vec<String>,
}

pub fn picture(root: &Path) -> Picture {
    let mut files = BTreeMap::new();
    let has_git = root.join(".git/HEAD").exists();
    let mut dirs = vec![root.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_owned();
            if has_git && name == Path::new(".git") {
                continue;
            }
            let meta = fs::symlink_metadata(&path).unwrap();
            let mode = meta.permissions().mode() & 0o7777;
            let seen = if meta.is_dir() {
                dirs.push(path);
                ('d', mode, Vec::new())
            } else if meta.is_symlink() {
                (
                    'l',
                    0,
                    fs::read_link(&path)
                        .unwrap()
                        .as_os_str()
                        .as_bytes()
                        .to_vec(),
                )
            } else if meta.is_file() {
                ('f', mode, beginning(&path))
            } else {
                ('p', mode, Vec::new())
            };
            files.insert(name, seen);
        }
    }
    let (mut seen, mut steering) = (Vec::new(), Vec::new());
    if has_git {
        // Without a commit or a stash some of these are missing; that is a picture too.
        for file in ["HEAD", "packed-refs", "logs/refs/stash"] {
            seen.push(format!(
                "{file}: {:?}",
                fs::read_to_string(root.join(".git").join(file)).ok()
            ));
        }
        steering.push(format!(
            "{:?}",
            fs::read_to_string(root.join(".git/config")).ok()
        ));
        let below = |dir: &str, into: &mut Vec<String>| {
            let mut dirs = vec![root.join(dir)];
            while let Some(dir) = dirs.pop() {
                for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
                    if entry.path().is_dir() {
                        dirs.push(entry.path());
                    }
                    into.push(format!(
                        "{}: {:?}",
                        entry.path().display(),
                        fs::read_to_string(entry.path()).ok()
                    ));
                }
            }
            into.sort();
        };
        below(".git/refs", &mut seen);
        below(".git/hooks", &mut steering);
        let output = std::process::Command::new("git")
            .args(["-c", "core.fsmonitor=false", "ls-files", "--stage", "-v"])
            .current_dir(root)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output();
        seen.push(String::from_utf8_lossy(&output.unwrap().stdout).into_owned());
    }
    Picture {
        files,
        git: seen,
        steering,
    }
}

/// Its first 16 MB: what a test leaves by mistake may be larger than memory.
fn beginning(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    fs::File::open(path)
        .unwrap()
        .take(16 << 20)
        .read_to_end(&mut bytes)
        .unwrap();
    bytes
}

pub fn same(before: &Picture, after: &Picture) -> Result<(), TestCaseError> {
    for (path, was) in &before.files {
        prop_assert_eq!(Some(was), after.files.get(path), "{}", path.display());
    }
    for path in after.files.keys() {
        prop_assert!(
            before.files.contains_key(path),
            "left behind: {}",
            path.display()
        );
    }
    prop_assert_eq!(&before.steering, &after.steering);
    Ok(())
}
