//! Which files a worker is shown, the plain way: the test, the manifest, then what lies near, until the room is used.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::verify::Ecosystem;
use crate::verify::sealed::{Role, role};
use crate::words;

pub(super) struct PackRequest<'a> {
    pub(super) root: &'a Path,
    pub(super) ecosystem: Option<Ecosystem>,
    /// Relative to the root.
    pub(super) test_path: &'a Path,
    pub(super) test_source: &'a str,
    pub(super) failing_output: &'a str,
    /// Files the caller named. Relative to the root.
    pub(super) also: &'a [PathBuf],
    /// Room for the files, in bytes.
    pub(super) window_bytes: usize,
}

pub(super) struct Packed {
    pub(super) text: String,
}

/// Directories that are looked through.
const DEEPEST: usize = 6;
const MOST: usize = 2_000;
const LARGEST: u64 = 64 * 1024;

pub(super) fn files(request: &PackRequest<'_>) -> Packed {
    let mut packed = Packed { text: String::new() };
    let mut found = BTreeSet::new();
    walk(request.root, Path::new(""), 0, &mut found);
    let mut found: Vec<PathBuf> = found.into_iter().collect();
    let stem = |path: &Path| path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    let rank = |path: &PathBuf| {
        let named = !stem(path).is_empty()
            && (request.test_source.contains(&stem(path)) || request.failing_output.contains(&stem(path)));
        match role(request.ecosystem, path) {
            _ if request.also.contains(path) => 0,
            Role::Source if named => 1,
            Role::Source => 3,
            Role::BuildConfig if path.components().count() == 1 => 2,
            _ => 4,
        }
    };
    found.sort_by_key(|path| (rank(path), path.components().count(), path.clone()));
    for path in found.into_iter().filter(|path| path != request.test_path) {
        let Ok(source) = fs::read_to_string(request.root.join(&path)) else { continue };
        let mut shown = format!("== {} ==\n", words::plain(&path.to_string_lossy()));
        for (n, line) in source.lines().enumerate() {
            let _ = writeln!(shown, "{:>4} {line}", n + 1);
        }
        if packed.text.len() + shown.len() <= request.window_bytes {
            packed.text += &shown;
        }
    }
    packed
}

fn walk(root: &Path, dir: &Path, depth: usize, found: &mut BTreeSet<PathBuf>) {
    let skipped = ["target", "node_modules", "vendor", "__pycache__", "_build", "deps"];
    for entry in fs::read_dir(root.join(dir)).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if found.len() >= MOST || name.starts_with('.') || skipped.contains(&name.as_str()) || name.ends_with(".lock") {
            continue;
        }
        let Ok(meta) = entry.path().symlink_metadata() else { continue };
        if meta.is_dir() && depth < DEEPEST {
            walk(root, &dir.join(&name), depth + 1, found);
        } else if meta.is_file() && meta.len() <= LARGEST {
            found.insert(dir.join(&name));
        }
    }
}
