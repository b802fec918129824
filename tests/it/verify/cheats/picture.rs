//! Everything that could be different about a project: type, mode and content of every name, and of its repository what
//! a person would miss. Caches and installed packages are not looked at: a result names them as not protected.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is at each path.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Picture(BTreeMap<PathBuf, String>);

/// Too large to keep a copy of, so that no promise is made about it.
const CACHES: &[&str] = &[
    "__pycache__",
    ".pytest_cache",
    "target",
    "node_modules",
    "_build",
    "build",
];
/// Of the repository. Its objects, logs and messages may grow; what they are named by may not.
const REPOSITORY: &[&str] = &[
    "HEAD",
    "config",
    "packed-refs",
    "refs",
    "hooks",
    "info",
    "modules",
    "MERGE_HEAD",
];

pub(super) fn picture(root: &Path) -> Picture {
    let mut seen = BTreeMap::new();
    look(root, root, &mut seen);
    for name in REPOSITORY {
        look(root, &root.join(".git").join(name), &mut seen);
    }
    for flags in [["ls-files", "--stage"], ["ls-files", "-v"]] {
        seen.insert(
            PathBuf::from(format!("git {}", flags.join(" "))),
            git(root, &flags),
        );
    }
    Picture(seen)
}

impl Picture {
    /// Where two differ, for a person; empty if they do not.
    pub(super) fn differences(&self, later: &Self) -> String {
        let names = self
            .0
            .keys()
            .chain(later.0.keys())
            .collect::<std::collections::BTreeSet<_>>();
        names
            .into_iter()
            .filter(|name| self.0.get(*name) != later.0.get(*name))
            .map(|name| {
                format!(
                    "{}: was {:?}, is {:?}\n",
                    name.display(),
                    self.0.get(name),
                    later.0.get(name)
                )
            })
            .collect()
    }
}

fn look(root: &Path, at: &Path, seen: &mut BTreeMap<PathBuf, String>) {
    let Ok(meta) = at.symlink_metadata() else {
        return;
    };
    let name = at.strip_prefix(root).unwrap().to_owned();
    let mode = meta.permissions().mode() & 0o7777;
    if meta.is_symlink() {
        seen.insert(
            name,
            format!("link to {}", fs::read_link(at).unwrap().display()),
        );
    } else if meta.is_dir() {
        seen.insert(name, format!("directory {mode:o}"));
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let leaf = path.file_name().unwrap().to_str().unwrap_or_default();
            let repository = at == root && leaf == ".git";
            if !repository && !CACHES.contains(&leaf) {
                look(root, &path, seen);
            }
        }
    } else if meta.is_file() {
        seen.insert(
            name,
            format!(
                "file {mode:o} {:?}",
                String::from_utf8_lossy(&fs::read(at).unwrap())
            ),
        );
    } else {
        seen.insert(name, format!("something else {mode:o}"));
    }
}

/// Git with nobody's settings but the repository's.
pub(super) fn git(root: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args([
            "-c",
            "user.name=A Person",
            "-c",
            "user.email=person@example.org",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(args)
        .current_dir(root)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "git {args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}
