//! The project's sources, read when they are asked for. Beneath the root only: links are not followed, what git ignores
//! and what is hidden is not seen, and only files that are written in a language we know are opened.
//! Knows files. Does not know which of them matter.

use std::cell::{Cell, OnceCell};
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;
use rustix::fs::{CWD, FileType, Mode, OFlags};

use super::source::Source;
use supervisor_languages as languages;
use supervisor_languages::{Language, ProjectFiles, parent};

/// A source file larger than this is data or generated.
const LARGEST: u64 = 1 << 20;
/// All that is read for one brief.
const MOST_BYTES: u64 = 32 << 20;
const MOST_FILES: usize = 20_000;
/// More manifests than this are fixtures.
const MOST_MANIFESTS: usize = 200;

pub(super) type Id = usize;

pub(super) struct Tree {
    root: Option<OwnedFd>,
    lang: Option<&'static Language>,
    files: Vec<Entry>,
    by_path: HashMap<String, Id>,
    by_name: HashMap<String, Vec<Id>>,
    manifests: Vec<String>,
    /// Names that manifests give to their directories: crates, packages of a workspace, the Go module.
    packages: OnceCell<Vec<(String, String)>>,
    left: Cell<u64>,
}

struct Entry {
    path: String,
    lang: &'static Language,
    /// Declares what a file beside it defines: `more.pyi` of `more.py`. Found where it is named, and never chosen.
    declares: bool,
    source: OnceCell<Option<Source>>,
}

impl Tree {
    pub(super) fn open(root: &Path, lang: Option<&'static Language>) -> Self {
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
            packages: OnceCell::new(),
            left: Cell::new(MOST_BYTES),
        };
        for path in paths {
            let Some(lang) = Language::of_path(Path::new(&path)) else {
                continue;
            };
            let id = tree.files.len();
            let name = path.rsplit('/').next().unwrap_or(&path).to_owned();
            tree.by_name.entry(name).or_default().push(id);
            tree.by_path.insert(path.clone(), id);
            tree.files.push(Entry {
                path,
                lang,
                declares: false,
                source: OnceCell::new(),
            });
        }
        for id in 0..tree.files.len() {
            tree.files[id].declares = tree.declares(&tree.files[id].path);
        }
        tree
    }

    /// The project's own language, where one is known.
    pub(super) fn lang(&self) -> Option<&'static Language> {
        self.lang
    }

    /// All files that could be meant.
    pub(super) fn ids(&self) -> impl Iterator<Item = Id> + '_ {
        (0..self.files.len()).filter(|id| !self.files[*id].declares)
    }

    /// A file of declarations has the name of the file that it is about, which is there too: `a.pyi`, `a.d.ts`.
    fn declares(&self, path: &str) -> bool {
        let about = path
            .strip_suffix(".pyi")
            .map(|stem| (stem, [".py", ".pyx"]));
        let about = about.or_else(|| Some((path.strip_suffix(".d.ts")?, [".js", ".mjs"])));
        about.is_some_and(|(stem, ends)| {
            ends.iter()
                .any(|end| self.by_path.contains_key(&format!("{stem}{end}")))
        })
    }

    pub(super) fn lang_of(&self, id: Id) -> &'static Language {
        self.files[id].lang
    }

    pub(super) fn manifests(&self) -> &[String] {
        &self.manifests
    }

    /// `None` if the file is gone, too large, binary, or was replaced by a link.
    pub(super) fn source(&self, id: Id) -> Option<&Source> {
        let entry = &self.files[id];
        entry
            .source
            .get_or_init(|| {
                Some(Source::new(
                    entry.lang,
                    &entry.path,
                    self.read(&entry.path)?,
                ))
            })
            .as_ref()
    }

    fn read_packages(&self) -> Vec<(String, String)> {
        let Some(language) = self.lang else {
            return Vec::new();
        };
        let mut found: Vec<(String, String)> = Vec::new();
        for path in self.manifests.iter().take(MOST_MANIFESTS) {
            let Some(text) = self.read(path) else {
                continue;
            };
            for name in language.package_names(&text) {
                if !found.iter().any(|(known, _)| *known == name) {
                    found.push((name, parent(path).to_owned()));
                }
            }
        }
        // The longest name is the one that is meant.
        found.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        found
    }

    /// The files that are started as programs: those that manifests name, and those that define what is started.
    pub(super) fn programs(&self) -> Vec<Id> {
        let Some(language) = self.lang else {
            return Vec::new();
        };
        let mut found: Vec<Id> = Vec::new();
        for path in self.manifests.iter().take(MOST_MANIFESTS) {
            let Some(text) = self.read(path) else {
                continue;
            };
            for file in language.programs(&text) {
                let beside = languages::join(parent(path), &file).and_then(|whole| self.at(&whole));
                found.extend(beside.map_or_else(|| self.ending(&file), |id| vec![id]));
            }
        }
        found.extend(self.defining("main"));
        found.sort_unstable();
        found.dedup();
        found
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
            let next =
                rustix::fs::openat(dir.as_ref().unwrap_or(root), part, through, Mode::empty())
                    .ok()?;
            dir = Some(next);
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file =
            rustix::fs::openat(dir.as_ref().unwrap_or(root), name, flags, Mode::empty()).ok()?;
        let stat = rustix::fs::fstat(&file).ok()?;
        (FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile).then(|| File::from(file))
    }
}

impl ProjectFiles for Tree {
    fn count(&self) -> usize {
        self.files.len()
    }

    fn path(&self, id: Id) -> &str {
        &self.files[id].path
    }

    fn at(&self, path: &str) -> Option<Id> {
        self.by_path.get(path).copied()
    }

    fn ending(&self, suffix: &str) -> Vec<Id> {
        let name = suffix.rsplit('/').next().unwrap_or(suffix);
        let ids = self
            .by_name
            .get(name)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let fits = |id: &&Id| {
            let before = self.path(**id).strip_suffix(suffix);
            before.is_some_and(|b| b.is_empty() || b.ends_with('/'))
        };
        ids.iter().filter(fits).copied().collect()
    }

    fn inside(&self, dir: &str) -> Vec<Id> {
        self.ids()
            .filter(|id| parent(self.path(*id)) == dir)
            .collect()
    }

    fn defining(&self, name: &str) -> Vec<Id> {
        let defines = |id: &Id| {
            self.source(*id)
                .is_some_and(|s| s.mentions(name) && s.items().iter().any(|i| i.name == name))
        };
        self.ids().filter(defines).collect()
    }

    fn packages(&self, module: &str, separator: char) -> Vec<(&str, String)> {
        let packages = self.packages.get_or_init(|| self.read_packages());
        let inside = packages.iter().filter_map(|(name, dir)| {
            let rest = module.strip_prefix(name.as_str())?;
            (rest.is_empty() || rest.starts_with(separator))
                .then(|| (dir.as_str(), rest.trim_start_matches(separator).to_owned()))
        });
        inside.collect()
    }
}

/// A path relative to the root in the form used here: `None` if it leaves the root or is no plain text.
pub(super) fn relative(path: &Path) -> Option<String> {
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            std::path::Component::Normal(name) => {
                parts.push(name.to_str().filter(|n| is_plain(n))?)
            }
            std::path::Component::CurDir => {}
            _ => return None,
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

fn is_plain(name: &str) -> bool {
    !name.chars().any(char::is_control)
}

/// Sources and manifests, as paths relative to the root.
fn walk(root: &Path, lang: Option<&'static Language>) -> (Vec<String>, Vec<String>) {
    let (mut sources, mut manifests) = (Vec::new(), Vec::new());
    let skip = |n: &str| languages::is_installed_dir(n) || languages::is_built_dir(n);
    let built = move |name: &std::ffi::OsStr| name.to_str().is_some_and(skip);
    let walk = WalkBuilder::new(root)
        .require_git(false)
        .filter_entry(move |e| {
            e.depth() == 0 || !(e.file_type().is_some_and(|t| t.is_dir()) && built(e.file_name()))
        })
        .build();
    for entry in walk
        .flatten()
        .filter(|e| e.file_type().is_some_and(|t| t.is_file()))
    {
        let Some(path) = entry
            .path()
            .strip_prefix(root)
            .ok()
            .map(PathBuf::from)
            .as_deref()
            .and_then(relative)
        else {
            continue;
        };
        let name = path.rsplit('/').next().unwrap_or(&path);
        if lang.is_some_and(|l| l.manifests.contains(&name)) {
            manifests.push(path.clone());
        }
        if Language::of_path(Path::new(&path)).is_some_and(|own| lang.is_none_or(|l| l == own)) {
            sources.push(path);
        }
        if sources.len() == MOST_FILES {
            break;
        }
    }
    manifests.sort_by_key(|m| m.matches('/').count());
    (sources, manifests)
}
