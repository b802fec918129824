//! The project's sources, read when they are asked for. Beneath the root only: links are not followed, what git ignores
//! and what is hidden is not seen, and only files that are written in one of the six languages are opened.
//! Knows files. Does not know which of them matter.

use std::cell::{Cell, OnceCell};
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;
use rustix::fs::{CWD, FileType, Mode, OFlags};

use super::items::Source;
use super::lang::Lang;

/// A source file larger than this is data or generated.
const LARGEST: u64 = 1 << 20;
/// All that is read for one brief.
const MOST_BYTES: u64 = 32 << 20;
const MOST_FILES: usize = 20_000;
/// Made by tools, also where no ignore file says so.
const BUILT: &[&str] = &["node_modules", "target", "__pycache__", "venv", "site-packages", "_build", "deps", "vendor"];

pub(super) type Id = usize;

pub(super) struct Tree {
    root: Option<OwnedFd>,
    lang: Option<Lang>,
    files: Vec<Entry>,
    by_path: HashMap<String, Id>,
    by_name: HashMap<String, Vec<Id>>,
    manifests: Vec<String>,
    left: Cell<u64>,
}

struct Entry {
    path: String,
    lang: Lang,
    source: OnceCell<Option<Source>>,
}

impl Tree {
    pub(super) fn open(root: &Path, lang: Option<Lang>) -> Self {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::openat(CWD, root, flags, Mode::empty()).ok();
        let (mut paths, manifests) = walk(root, lang);
        paths.sort();
        let mut tree = Self {
            root: handle,
            lang,
            files: Vec::with_capacity(paths.len()),
            by_path: HashMap::new(),
            by_name: HashMap::new(),
            manifests,
            left: Cell::new(MOST_BYTES),
        };
        for path in paths {
            let Some(lang) = Lang::of(&path) else { continue };
            let id = tree.files.len();
            let name = path.rsplit('/').next().unwrap_or(&path).to_owned();
            tree.by_name.entry(name).or_default().push(id);
            tree.by_path.insert(path.clone(), id);
            tree.files.push(Entry { path, lang, source: OnceCell::new() });
        }
        tree
    }

    /// The project's own language, where one is known.
    pub(super) fn lang(&self) -> Option<Lang> {
        self.lang
    }

    pub(super) fn ids(&self) -> std::ops::Range<Id> {
        0..self.files.len()
    }

    pub(super) fn path(&self, id: Id) -> &str {
        &self.files[id].path
    }

    pub(super) fn lang_of(&self, id: Id) -> Lang {
        self.files[id].lang
    }

    pub(super) fn at(&self, path: &str) -> Option<Id> {
        self.by_path.get(path).copied()
    }

    /// Files whose path ends so, at a directory's border.
    pub(super) fn ending(&self, suffix: &str) -> Vec<Id> {
        let name = suffix.rsplit('/').next().unwrap_or(suffix);
        let ids = self.by_name.get(name).map(Vec::as_slice).unwrap_or_default();
        let fits = |id: &&Id| {
            let before = self.path(**id).strip_suffix(suffix);
            before.is_some_and(|b| b.is_empty() || b.ends_with('/'))
        };
        ids.iter().filter(fits).copied().collect()
    }

    /// Files directly in a directory (`""` is the root).
    pub(super) fn inside(&self, dir: &str) -> impl Iterator<Item = Id> {
        self.ids().filter(move |id| parent(self.path(*id)) == dir)
    }

    pub(super) fn manifests(&self) -> &[String] {
        &self.manifests
    }

    /// `None` if the file is gone, too large, binary, or was replaced by a link.
    pub(super) fn source(&self, id: Id) -> Option<&Source> {
        let entry = &self.files[id];
        entry.source.get_or_init(|| Some(Source::new(entry.lang, self.read(&entry.path)?))).as_ref()
    }

    pub(super) fn read(&self, path: &str) -> Option<String> {
        let file = self.open_beneath(path)?;
        let most = LARGEST.min(self.left.get());
        let mut bytes = Vec::new();
        (&file).take(most + 1).read_to_end(&mut bytes).ok()?;
        if bytes.len() as u64 > most || bytes.contains(&0) {
            return None;
        }
        self.left.set(self.left.get() - bytes.len() as u64);
        String::from_utf8(bytes).ok()
    }

    /// Component by component, so that a link put anywhere on the way leads nowhere.
    fn open_beneath(&self, path: &str) -> Option<File> {
        let root = self.root.as_ref()?;
        let (dirs, name) = path.rsplit_once('/').unwrap_or(("", path));
        let through = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut dir: Option<OwnedFd> = None;
        for part in dirs.split('/').filter(|p| !p.is_empty()) {
            let next = rustix::fs::openat(dir.as_ref().unwrap_or(root), part, through, Mode::empty()).ok()?;
            dir = Some(next);
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(dir.as_ref().unwrap_or(root), name, flags, Mode::empty()).ok()?;
        let stat = rustix::fs::fstat(&file).ok()?;
        (FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile).then(|| File::from(file))
    }
}

/// A path relative to the root in the form used here: `None` if it leaves the root or is no plain text.
pub(super) fn relative(path: &Path) -> Option<String> {
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            std::path::Component::Normal(name) => parts.push(name.to_str().filter(|n| is_plain(n))?),
            std::path::Component::CurDir => {}
            _ => return None,
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

pub(super) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(dir, _)| dir)
}

/// `dir/part`, with `.` and `..` resolved by name. `None` above the root.
pub(super) fn join(dir: &str, part: &str) -> Option<String> {
    let mut parts: Vec<&str> = dir.split('/').filter(|p| !p.is_empty()).collect();
    for piece in part.split('/') {
        match piece {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            piece => parts.push(piece),
        }
    }
    Some(parts.join("/"))
}

fn is_plain(name: &str) -> bool {
    !name.chars().any(char::is_control)
}

/// Sources and manifests, as paths relative to the root.
fn walk(root: &Path, lang: Option<Lang>) -> (Vec<String>, Vec<String>) {
    let (mut sources, mut manifests) = (Vec::new(), Vec::new());
    let built = |name: &std::ffi::OsStr| name.to_str().is_some_and(|n| BUILT.contains(&n));
    let walk = WalkBuilder::new(root)
        .require_git(false)
        .filter_entry(move |e| e.depth() == 0 || !(e.file_type().is_some_and(|t| t.is_dir()) && built(e.file_name())))
        .build();
    for entry in walk.flatten().filter(|e| e.file_type().is_some_and(|t| t.is_file())) {
        let Some(path) = entry.path().strip_prefix(root).ok().map(PathBuf::from).as_deref().and_then(relative) else {
            continue;
        };
        let name = path.rsplit('/').next().unwrap_or(&path);
        if lang.is_some_and(|l| l.manifests().contains(&name)) {
            manifests.push(path.clone());
        }
        if Lang::of(&path).is_some_and(|own| lang.is_none_or(|l| l == own)) {
            sources.push(path);
        }
        if sources.len() == MOST_FILES {
            break;
        }
    }
    manifests.sort_by_key(|m| m.matches('/').count());
    (sources, manifests)
}
