//! The project's source files, read on demand. Access is confined to the root: links are not
//! followed, ignored and hidden files are skipped, and only files in a supported language are
//! opened.

use std::cell::{Cell, OnceCell};
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;
use rustix::fs::{CWD, FileType, Mode, OFlags};

use super::source::SourceFile;
use supervisor_languages as languages;
use supervisor_languages::{Language, ProjectFiles, parent};

/// A larger source file is data or generated.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Total bytes read for one prompt.
const MAX_TOTAL_BYTES: u64 = 32 << 20;
const MAX_FILES: usize = 20_000;
/// Further manifests are test fixtures.
const MAX_MANIFESTS: usize = 200;

pub(super) type FileId = usize;

pub(super) struct SourceTree {
    root: Option<OwnedFd>,
    lang: Option<&'static Language>,
    files: Vec<SourceEntry>,
    by_path: HashMap<String, FileId>,
    by_name: HashMap<String, Vec<FileId>>,
    manifests: Vec<String>,
    /// Package names from manifests, with their directories: crates, workspace packages, the Go
    /// module.
    packages: OnceCell<Vec<(String, String)>>,
    bytes_left: Cell<u64>,
}

struct SourceEntry {
    path: String,
    lang: &'static Language,
    /// Only declares what a file beside it defines, like `more.pyi` for `more.py`. It resolves by
    /// name but is never chosen.
    is_declaration: bool,
    source: OnceCell<Option<SourceFile>>,
}

impl SourceTree {
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
            bytes_left: Cell::new(MAX_TOTAL_BYTES),
        };
        for path in paths {
            let Some(lang) = Language::of_path(Path::new(&path)) else {
                continue;
            };
            let id = tree.files.len();
            let name = path.rsplit('/').next().unwrap_or(&path).to_owned();
            tree.by_name.entry(name).or_default().push(id);
            tree.by_path.insert(path.clone(), id);
            tree.files.push(SourceEntry {
                path,
                lang,
                is_declaration: false,
                source: OnceCell::new(),
            });
        }
        for id in 0..tree.files.len() {
            tree.files[id].is_declaration = tree.is_declaration_of_source(&tree.files[id].path);
        }
        tree
    }

    /// The project's language, if known.
    pub(super) fn lang(&self) -> Option<&'static Language> {
        self.lang
    }

    /// All files that can be chosen.
    pub(super) fn ids(&self) -> impl Iterator<Item = FileId> + '_ {
        (0..self.files.len()).filter(|id| !self.files[*id].is_declaration)
    }

    /// Whether this is a declaration file (`a.pyi`, `a.d.ts`) of an existing source file.
    fn is_declaration_of_source(&self, path: &str) -> bool {
        let declared = path
            .strip_suffix(".pyi")
            .map(|stem| (stem, [".py", ".pyx"]));
        let declared = declared.or_else(|| Some((path.strip_suffix(".d.ts")?, [".js", ".mjs"])));
        declared.is_some_and(|(stem, ends)| {
            ends.iter()
                .any(|end| self.by_path.contains_key(&format!("{stem}{end}")))
        })
    }

    pub(super) fn lang_of(&self, id: FileId) -> &'static Language {
        self.files[id].lang
    }

    pub(super) fn manifests(&self) -> &[String] {
        &self.manifests
    }

    /// `None` if the file is missing, too large, binary, or was replaced by a link.
    pub(super) fn source(&self, id: FileId) -> Option<&SourceFile> {
        let entry = &self.files[id];
        entry
            .source
            .get_or_init(|| {
                Some(SourceFile::new(
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
        for path in self.manifests.iter().take(MAX_MANIFESTS) {
            let Some(text) = self.read(path) else {
                continue;
            };
            for name in language.package_names(&text) {
                if !found.iter().any(|(known, _)| *known == name) {
                    found.push((name, parent(path).to_owned()));
                }
            }
        }
        // Prefer the longest matching name.
        found.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        found
    }

    /// The program files: those that manifests name, and those that define `main`.
    pub(super) fn programs(&self) -> Vec<FileId> {
        let Some(language) = self.lang else {
            return Vec::new();
        };
        let mut found: Vec<FileId> = Vec::new();
        for path in self.manifests.iter().take(MAX_MANIFESTS) {
            let Some(text) = self.read(path) else {
                continue;
            };
            for file in language.programs(&text) {
                let relative_to_manifest =
                    languages::join(parent(path), &file).and_then(|whole| self.at(&whole));
                found
                    .extend(relative_to_manifest.map_or_else(|| self.ending(&file), |id| vec![id]));
            }
        }
        found.extend(self.defining("main"));
        found.sort_unstable();
        found.dedup();
        found
    }

    pub(super) fn read(&self, path: &str) -> Option<String> {
        let file = self.open_beneath(path)?;
        let max = MAX_FILE_BYTES.min(self.bytes_left.get());
        let mut bytes = Vec::new();
        (&file).take(max + 1).read_to_end(&mut bytes).ok()?;
        if bytes.len() as u64 > max || bytes.contains(&0) {
            return None;
        }
        self.bytes_left
            .set(self.bytes_left.get() - bytes.len() as u64);
        String::from_utf8(bytes).ok()
    }

    /// Opens each path component without following links, so that a link anywhere in the path
    /// fails.
    fn open_beneath(&self, path: &str) -> Option<File> {
        let root = self.root.as_ref()?;
        let (dirs, name) = path.rsplit_once('/').unwrap_or(("", path));
        let dir_flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut dir: Option<OwnedFd> = None;
        for part in dirs.split('/').filter(|p| !p.is_empty()) {
            let next =
                rustix::fs::openat(dir.as_ref().unwrap_or(root), part, dir_flags, Mode::empty())
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

impl ProjectFiles for SourceTree {
    fn count(&self) -> usize {
        self.files.len()
    }

    fn path(&self, id: FileId) -> &str {
        &self.files[id].path
    }

    fn at(&self, path: &str) -> Option<FileId> {
        self.by_path.get(path).copied()
    }

    fn ending(&self, suffix: &str) -> Vec<FileId> {
        let name = suffix.rsplit('/').next().unwrap_or(suffix);
        let ids = self
            .by_name
            .get(name)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let matches = |id: &&FileId| {
            let before = self.path(**id).strip_suffix(suffix);
            before.is_some_and(|b| b.is_empty() || b.ends_with('/'))
        };
        ids.iter().filter(matches).copied().collect()
    }

    fn inside(&self, dir: &str) -> Vec<FileId> {
        self.ids()
            .filter(|id| parent(self.path(*id)) == dir)
            .collect()
    }

    fn defining(&self, name: &str) -> Vec<FileId> {
        let defines = |id: &FileId| {
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

/// The path relative to the root with `/` separators; `None` if it leaves the root or contains
/// control characters.
pub(super) fn relative(path: &Path) -> Option<String> {
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            std::path::Component::Normal(name) => {
                parts.push(name.to_str().filter(|n| has_no_control_chars(n))?);
            }
            std::path::Component::CurDir => {}
            _ => return None,
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

fn has_no_control_chars(name: &str) -> bool {
    !name.chars().any(char::is_control)
}

/// The source files and manifests, as paths relative to the root.
fn walk(root: &Path, lang: Option<&'static Language>) -> (Vec<String>, Vec<String>) {
    let (mut sources, mut manifests) = (Vec::new(), Vec::new());
    let skip = |n: &str| languages::is_installed_dir(n) || languages::is_built_dir(n);
    let is_build_dir = move |name: &std::ffi::OsStr| name.to_str().is_some_and(skip);
    let walk = WalkBuilder::new(root)
        .require_git(false)
        .filter_entry(move |e| {
            e.depth() == 0
                || !(e.file_type().is_some_and(|t| t.is_dir()) && is_build_dir(e.file_name()))
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
        if sources.len() == MAX_FILES {
            break;
        }
    }
    manifests.sort_by_key(|m| m.matches('/').count());
    (sources, manifests)
}
