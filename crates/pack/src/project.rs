//! The project's source files, read and parsed on demand. Only files beneath the root are read:
//! links are not followed, and ignored and hidden files are skipped.

use std::cell::{Cell, OnceCell};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::similarity::is_word;
use ignore::{DirEntry, WalkBuilder};
use parking_lot::Mutex;
use supervisor_languages::{
    Definition, DefinitionKind, Import, Language, ProjectFiles, is_built_dir, is_installed_dir,
    parent,
};
use supervisor_verify::protected;
use supervisor_workspace::ConfinedFolder;

/// A larger source file is data or generated.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Total bytes read for one prompt.
const MAX_TOTAL_BYTES: u64 = 32 << 20;
/// Paths of a tree; what comes after them by name is not known.
const MAX_PATHS: usize = 200_000;
/// Files in which a name is looked up that is not imported, the nearest to the test first.
const MAX_SEARCHED: usize = 3_000;
/// Parsed files kept for later calls.
const MAX_PARSED: usize = 20_000;
/// Maximum files that one mentioned path can refer to.
const MAX_FILES_PER_PATH: usize = 3;

pub(super) type FileId = usize;

/// A definition and the file it is in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Found<'p> {
    pub file: FileId,
    pub item: &'p Definition,
}

/// The paths of a project, listed once for all prompts of a call, and its parsed files.
#[derive(Debug)]
pub struct ProjectIndex {
    root: PathBuf,
    /// Sorted.
    paths: Vec<String>,
    parsed: Arc<ParsedFiles>,
}

impl ProjectIndex {
    pub fn of(root: &Path) -> Self {
        Self::with_parsed(root, Arc::default())
    }

    /// `parsed` has the files that earlier calls parsed.
    pub fn with_parsed(root: &Path, parsed: Arc<ParsedFiles>) -> Self {
        let mut paths: Vec<String> = walk(root).take(MAX_PATHS).collect();
        paths.sort();
        Self {
            root: root.to_owned(),
            paths,
            parsed,
        }
    }

    /// The number of files.
    pub fn len(&self) -> usize {
        self.paths.len()
    }

    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }
}

/// What files contain, by language and content, so that no file is parsed twice.
#[derive(Debug, Default)]
pub struct ParsedFiles(Mutex<HashMap<blake3::Hash, Arc<ParsedSource>>>);

impl ParsedFiles {
    fn get_or_parse(
        &self,
        language: &'static Language,
        path: &Path,
        text: &str,
    ) -> Arc<ParsedSource> {
        let mut hasher = blake3::Hasher::new();
        hasher.update(language.name.as_bytes()).update(&[0]);
        // Grammars can depend on the ending: `.ts` and `.tsx`.
        hasher.update(path.extension().unwrap_or_default().as_encoded_bytes());
        hasher.update(&[0]).update(text.as_bytes());
        let key = hasher.finalize();
        if let Some(known) = self.0.lock().get(&key) {
            return Arc::clone(known);
        }
        let parsed = Arc::new(ParsedSource::of(language, path, text));
        let mut all = self.0.lock();
        if all.len() >= MAX_PARSED {
            all.clear();
        }
        all.insert(key, Arc::clone(&parsed));
        parsed
    }
}

pub(super) struct Project {
    folder: Option<ConfinedFolder>,
    pub language: Option<&'static Language>,
    /// Sorted by path.
    files: Vec<(String, OnceCell<SourceFile>)>,
    /// Those in which any name is looked up, sorted.
    searched: Vec<FileId>,
    /// The outermost first.
    manifests: Vec<String>,
    packages: OnceCell<Vec<(String, String)>>,
    bytes_left: Cell<u64>,
    parsed: Arc<ParsedFiles>,
}

impl Project {
    /// The source files of the language, and `given` files of any kind. Without a grammar, files that end as `test_path`
    /// does are source files.
    pub(super) fn open(
        index: &ProjectIndex,
        language: Option<&'static Language>,
        test_path: &Path,
        given: &[PathBuf],
    ) -> Self {
        let given: Vec<String> = given.iter().filter_map(|path| relative(path)).collect();
        let mut paths = Vec::new();
        let mut manifests = Vec::new();
        for path in &index.paths {
            let name = path.rsplit('/').next().unwrap_or(path);
            if language.is_some_and(|l| l.manifests.contains(&name)) {
                manifests.push(path.clone());
            }
            if is_source(language, test_path, Path::new(path)) || given.contains(path) {
                paths.push(path.clone());
            }
        }
        manifests.sort_by_key(|path| path.matches('/').count());
        // `more.pyi` only declares what `more.py` defines.
        let declares_other_file = |path: &&String| {
            [(".pyi", ".py"), (".d.ts", ".js")]
                .iter()
                .any(|(end, source)| {
                    let stem = path.strip_suffix(end);
                    stem.is_some_and(|stem| paths.binary_search(&format!("{stem}{source}")).is_ok())
                })
        };
        let kept = paths.iter().filter(|path| !declares_other_file(path));
        let files: Vec<_> = kept.map(|path| (path.clone(), OnceCell::new())).collect();
        let mut project = Self {
            folder: ConfinedFolder::open(&index.root).ok(),
            language,
            files,
            searched: Vec::new(),
            manifests,
            packages: OnceCell::new(),
            bytes_left: Cell::new(MAX_TOTAL_BYTES),
            parsed: Arc::clone(&index.parsed),
        };
        project.searched = project.nearest(&relative(test_path).unwrap_or_default(), MAX_SEARCHED);
        project.searched.sort_unstable();
        project
    }

    /// The files whose paths begin most like this one, the most similar first.
    pub(super) fn nearest(&self, path: &str, most: usize) -> Vec<FileId> {
        let mut ids: Vec<FileId> = self.ids().collect();
        ids.sort_by_cached_key(|id| {
            let pairs = path.bytes().zip(self.path(*id).bytes());
            Reverse(pairs.take_while(|(a, b)| a == b).count())
        });
        ids.truncate(most);
        ids
    }

    pub(super) fn ids(&self) -> std::ops::Range<FileId> {
        0..self.files.len()
    }

    /// Empty if the file is missing, too large, binary, or was replaced by a link.
    pub(super) fn source(&self, id: FileId) -> &SourceFile {
        let (path, source) = &self.files[id];
        source.get_or_init(|| SourceFile {
            known: Some(Arc::clone(&self.parsed)),
            ..SourceFile::new(path, self.read(path).unwrap_or_default())
        })
    }

    fn read(&self, path: &str) -> Option<String> {
        let max = MAX_FILE_BYTES.min(self.bytes_left.get());
        let bytes = self.folder.as_ref()?.read_from(path, 0, max + 1).ok()?;
        let size = bytes.len() as u64;
        if size > max || bytes.contains(&0) {
            return None;
        }
        self.bytes_left.set(self.bytes_left.get() - size);
        String::from_utf8(bytes).ok()
    }

    pub(super) fn is_test(&self, id: FileId) -> bool {
        protected::role(self.language, Path::new(self.path(id))).belongs_to_tests()
    }

    /// The definitions of a name in one file, including members of types.
    pub(super) fn definitions_in<'p>(&'p self, file: FileId, name: &str) -> Vec<Found<'p>> {
        let named = self.source(file).named(name).into_iter();
        named.map(|item| Found { file, item }).collect()
    }

    /// The definitions of a name in the files near the test.
    pub(super) fn definitions_of<'p>(&'p self, name: &str) -> impl Iterator<Item = Found<'p>> {
        self.searched
            .iter()
            .flat_map(move |file| self.definitions_in(*file, name))
    }

    /// The files that a path in a text may refer to.
    pub(super) fn files_matching(&self, path: &str) -> Vec<FileId> {
        let is_same = |id: &FileId| {
            let (own, path) = (Path::new(self.path(*id)), Path::new(path));
            own.ends_with(path) || path.ends_with(own)
        };
        match self.at(path) {
            Some(id) => vec![id],
            None => self
                .ids()
                .filter(is_same)
                .take(MAX_FILES_PER_PATH)
                .collect(),
        }
    }

    /// The nearest manifest in a directory above a file, with its text.
    pub(super) fn manifest_above(&self, path: &str) -> Option<(String, String)> {
        let is_above = |manifest: &&String| Path::new(path).starts_with(parent(manifest));
        let manifest = self.manifests.iter().rfind(is_above)?;
        Some((manifest.clone(), self.read(manifest)?))
    }

    /// Package names from manifests, with their directories, the longest name first.
    fn read_packages(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for path in &self.manifests {
            let text = self.read(path).unwrap_or_default();
            let names = self.language.map(|language| language.package_names(&text));
            let names = names.into_iter().flatten();
            found.extend(names.map(|name| (name, parent(path).to_owned())));
        }
        found.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        found
    }
}

impl ProjectFiles for Project {
    fn count(&self) -> usize {
        self.files.len()
    }

    fn path(&self, id: FileId) -> &str {
        &self.files[id].0
    }

    fn at(&self, path: &str) -> Option<FileId> {
        self.files
            .binary_search_by(|(own, _)| own.as_str().cmp(path))
            .ok()
    }

    fn ending(&self, suffix: &str) -> Vec<FileId> {
        let ends = |id: &FileId| Path::new(self.path(*id)).ends_with(suffix);
        self.ids().filter(ends).collect()
    }

    fn inside(&self, dir: &str) -> Vec<FileId> {
        self.ids()
            .filter(|id| parent(self.path(*id)) == dir)
            .collect()
    }

    fn defining(&self, name: &str) -> Vec<FileId> {
        let mut files: Vec<FileId> = self.definitions_of(name).map(|found| found.file).collect();
        files.dedup();
        files
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

/// A source file, parsed when first needed, because most files are only searched for words.
#[derive(Debug)]
pub(super) struct SourceFile {
    pub path: String,
    pub text: String,
    parsed: OnceCell<Arc<ParsedSource>>,
    known: Option<Arc<ParsedFiles>>,
}

#[derive(Debug, Default)]
struct ParsedSource {
    masked: String,
    definitions: Vec<Definition>,
    imports: Vec<Import>,
}

impl ParsedSource {
    /// A file that cannot be parsed has no definitions.
    fn of(language: &'static Language, path: &Path, text: &str) -> Self {
        match language.parse(path, text) {
            Some(tree) => Self {
                masked: tree.masked(),
                definitions: tree.definitions(),
                imports: language.imports(&tree),
            },
            None => Self::unparsed(text),
        }
    }

    fn unparsed(text: &str) -> Self {
        Self {
            masked: text.to_owned(),
            ..Self::default()
        }
    }
}

impl SourceFile {
    pub(super) fn new(path: &str, text: String) -> Self {
        Self {
            path: path.to_owned(),
            text,
            parsed: OnceCell::new(),
            known: None,
        }
    }

    fn parsed(&self) -> &ParsedSource {
        self.parsed.get_or_init(|| {
            let path = Path::new(&self.path);
            match (Language::of_path(path), &self.known) {
                (Some(language), Some(known)) => known.get_or_parse(language, path, &self.text),
                (Some(language), None) => Arc::new(ParsedSource::of(language, path, &self.text)),
                (None, _) => Arc::new(ParsedSource::unparsed(&self.text)),
            }
        })
    }

    /// The text without comments and strings.
    pub(super) fn masked(&self) -> &str {
        &self.parsed().masked
    }

    pub(super) fn definitions(&self) -> &[Definition] {
        &self.parsed().definitions
    }

    pub(super) fn imports(&self) -> &[Import] {
        &self.parsed().imports
    }

    /// The definitions of a name, including members of types.
    fn named(&self, name: &str) -> Vec<&Definition> {
        if !contains_word(&self.text, name) {
            return Vec::new();
        }
        let is_match = |i: &&Definition| i.name == name && i.kind != DefinitionKind::Extension;
        self.definitions().iter().filter(is_match).collect()
    }

    /// The outermost definitions of a name that other files can import.
    pub(super) fn importable(&self, name: &str) -> Vec<&Definition> {
        let mut found = self.named(name);
        found.retain(|i| !i.member);
        let outermost = found.iter().map(|i| i.depth).min();
        found.retain(|i| Some(i.depth) == outermost);
        found
    }

    /// The innermost definition that contains a line.
    pub(super) fn innermost_at(&self, line: usize) -> Option<&Definition> {
        let around = self
            .definitions()
            .iter()
            .filter(|i| i.lines.contains(&line));
        around.min_by_key(|i| i.lines.len())
    }
}

fn contains_word(text: &str, name: &str) -> bool {
    let is_border = |c: Option<char>| c.is_none_or(|c| !is_word(c));
    text.match_indices(name).any(|(at, _)| {
        is_border(text[..at].chars().next_back())
            && is_border(text[at + name.len()..].chars().next())
    })
}

/// Whether this is a source file in the language, or in any language if it is not known. A file without a grammar is one
/// if the test has none either and ends alike.
pub(super) fn is_source(language: Option<&Language>, test_path: &Path, path: &Path) -> bool {
    match Language::of_path(path) {
        Some(own) => language.is_none_or(|language| language == own),
        None => {
            test_path.extension().is_some()
                && path.extension() == test_path.extension()
                && Language::of_path(test_path).is_none()
        }
    }
}

/// The path relative to the root with `/` separators; `None` if it leaves the root or contains
/// control characters.
pub(super) fn relative(path: &Path) -> Option<String> {
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => {
                parts.push(name.to_str().filter(|n| !n.contains(char::is_control))?);
            }
            Component::CurDir => {}
            _ => return None,
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

/// The paths of all files, relative to the root.
fn walk(root: &Path) -> impl Iterator<Item = String> {
    let is_dir = |entry: &DirEntry| entry.file_type().is_some_and(|t| t.is_dir());
    let is_output = |entry: &DirEntry| {
        let name = entry.file_name().to_str();
        let is_beside = |file: &str| entry.path().with_file_name(file).is_file();
        name.is_some_and(|name| is_installed_dir(name, is_beside) || is_built_dir(name))
    };
    let entries = WalkBuilder::new(root)
        .require_git(false)
        .filter_entry(move |entry| entry.depth() == 0 || !is_dir(entry) || !is_output(entry))
        .build();
    let files = entries
        .flatten()
        .filter(|e| e.file_type().is_some_and(|t| t.is_file()));
    files.filter_map(move |entry| relative(entry.path().strip_prefix(root).ok()?))
}
