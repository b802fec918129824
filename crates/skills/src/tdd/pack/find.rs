//! Resolves the names a test uses to their definitions, following re-exports and package entry
//! files.

use std::collections::HashSet;
use std::ops::Range;

use super::source::{SourceFile, is_word, words};
use super::tree::{FileId, SourceTree};
use supervisor_languages as languages;
use supervisor_languages::{
    Definition as Item, DefinitionKind as Kind, ELIXIR, GO, ImportedNames as What, Language,
    ProjectFiles as _, RUBY, RUST, join,
};

/// Maximum chain of re-exports; a longer one is a cycle.
const MAX_DEPTH: usize = 12;
/// Maximum number of names looked up for a glob import.
const MAX_WORDS: usize = 600;

/// A name and where it is defined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WantedName {
    Defined {
        name: String,
        file: FileId,
        lines: Range<usize>,
        /// The line with the name.
        at: usize,
    },
    /// Not defined yet; expected in one of these files.
    Missing { candidates: Vec<FileId> },
}

enum Resolution {
    Nothing,
    Items(Vec<(FileId, Item)>),
    Module(Vec<FileId>),
}

pub(super) struct Finder<'t> {
    tree: &'t SourceTree,
}

impl<'t> Finder<'t> {
    pub(super) fn new(tree: &'t SourceTree) -> Self {
        Self { tree }
    }

    /// The names that the test uses from the project, in the order of its imports.
    pub(super) fn wanted(
        &self,
        lang: &'static Language,
        path: &str,
        test: &SourceFile,
    ) -> Vec<WantedName> {
        let mut wants = Vec::new();
        for import in test
            .imports()
            .iter()
            .cloned()
            .chain(lang.implicit_imports(test.masked()))
        {
            let files = self.locate_module(lang, path, &import.module, MAX_DEPTH);
            if files.is_empty() {
                continue;
            }
            match &import.names {
                What::Named { name, bound } => match self.resolve(&files, name, None, MAX_DEPTH) {
                    Resolution::Items(items) => add_definitions(&mut wants, items),
                    Resolution::Module(module) => {
                        self.resolve_members(lang, &module, bound, test, &mut wants);
                    }
                    // `Kind::Circle`: a variant or member of a defined item.
                    Resolution::Nothing => {
                        match self.enclosing_item(lang, &files, &import.module) {
                            Some(items) => add_definitions(&mut wants, items),
                            None if name == "default" => {}
                            None => wants.push(WantedName::Missing { candidates: files }),
                        }
                    }
                },
                What::Whole { bound } => {
                    self.resolve_members(lang, &files, bound, test, &mut wants);
                }
                What::All => self.resolve_glob(lang, &files, test, &mut wants),
            }
        }
        if *lang == RUBY {
            self.resolve_ruby_constants(test, &mut wants);
        }
        wants.dedup();
        wants
    }

    /// Every definition of a name, including members; empty if there are more than `max`.
    pub(super) fn defined_anywhere(&self, name: &str, max: usize) -> Vec<WantedName> {
        let mut wants = Vec::new();
        for id in self.tree.ids() {
            let Some(source) = self.tree.source(id).filter(|s| s.mentions(name)) else {
                continue;
            };
            let definitions = source
                .items()
                .iter()
                .filter(|i| i.name == name && i.kind != Kind::Extension);
            add_definitions(&mut wants, definitions.map(|i| (id, i.clone())).collect());
            if wants.len() > max {
                return Vec::new();
            }
        }
        wants
    }

    /// Every definition of a name in one file, including members.
    pub(super) fn defined_in(&self, file: FileId, name: &str) -> Vec<WantedName> {
        let items = self
            .tree
            .source(file)
            .map(SourceFile::items)
            .unwrap_or_default();
        let definitions = items
            .iter()
            .filter(|i| i.name == name && i.kind != Kind::Extension);
        let mut wants = Vec::new();
        add_definitions(&mut wants, definitions.map(|i| (file, i.clone())).collect());
        wants
    }

    /// Importable definitions of a name, anywhere in the project; empty if there are more than
    /// `max`.
    pub(super) fn importable_anywhere(&self, name: &str, max: usize) -> Vec<WantedName> {
        let mut wants = Vec::new();
        for id in self.tree.ids() {
            let Some(source) = self.tree.source(id).filter(|s| s.mentions(name)) else {
                continue;
            };
            add_definitions(
                &mut wants,
                source
                    .importable(name)
                    .into_iter()
                    .map(|i| (id, i.clone()))
                    .collect(),
            );
            if wants.len() > max {
                return Vec::new();
            }
        }
        wants
    }

    fn locate_module(
        &self,
        lang: &'static Language,
        from: &str,
        module: &str,
        depth_left: usize,
    ) -> Vec<FileId> {
        if *lang != RUST {
            return lang.locate(self.tree, from, module);
        }
        let mut segments = module.trim_start_matches("::").split("::");
        let mut files = segments
            .next()
            .map(|s| lang.locate(self.tree, from, s))
            .unwrap_or_default();
        for segment in segments {
            if files.is_empty() || depth_left == 0 {
                break;
            }
            if segment == "super" {
                let parent_of =
                    |id: &FileId| languages::parent_module(self.tree, self.tree.path(*id));
                files = files.iter().filter_map(parent_of).collect();
                continue;
            }
            match self.resolve(&files, segment, None, depth_left - 1) {
                Resolution::Module(next) => files = next,
                // An inline module or a type.
                Resolution::Items(items) => files = unique(items.into_iter().map(|(id, _)| id)),
                Resolution::Nothing => {
                    return self.inline_module_files(&files, module).unwrap_or(files);
                }
            }
        }
        files
    }

    /// Modules that are declared inline but also have a directory.
    fn inline_module_files(&self, from: &[FileId], module: &str) -> Option<Vec<FileId>> {
        let (_, rest) = module.split_once("::")?;
        let rest = rest.replace("::", "/");
        let file = |id: &FileId, name: &str| {
            self.tree.at(&join(
                &languages::child_module_dir(self.tree.path(*id)),
                name,
            )?)
        };
        let found = from.iter().filter_map(|id| {
            file(id, &format!("{rest}.rs")).or_else(|| file(id, &format!("{rest}/mod.rs")))
        });
        Some(unique(found)).filter(|f| !f.is_empty())
    }

    /// Resolves `name` in these files: defined there, or re-exported from elsewhere.
    fn resolve(
        &self,
        files: &[FileId],
        name: &str,
        owner: Option<&str>,
        depth_left: usize,
    ) -> Resolution {
        let mut seen = HashSet::new();
        self.resolve_once(files, name, owner, depth_left, &mut seen)
    }

    fn resolve_once(
        &self,
        files: &[FileId],
        name: &str,
        owner: Option<&str>,
        depth_left: usize,
        seen: &mut HashSet<(FileId, String)>,
    ) -> Resolution {
        let files: Vec<FileId> = files
            .iter()
            .copied()
            .filter(|id| seen.insert((*id, name.to_owned())))
            .collect();
        let mut items: Vec<(FileId, Item)> = Vec::new();
        for &id in &files {
            let Some(source) = self.tree.source(id) else {
                continue;
            };
            items.extend(
                source
                    .importable(name)
                    .into_iter()
                    .map(|item| (id, item.clone())),
            );
        }
        if owner.is_some() && items.iter().any(|(_, i)| i.owner.as_deref() == owner) {
            items.retain(|(_, i)| i.owner.as_deref() == owner);
        }
        if !items.is_empty() {
            return Resolution::Items(items);
        }
        if depth_left == 0 {
            return Resolution::Nothing;
        }
        let child = |id: &FileId| self.tree.lang_of(*id).child_module(self.tree, *id, name);
        let children = unique(files.iter().filter_map(child));
        if !children.is_empty() {
            return Resolution::Module(children);
        }
        for &id in &files {
            match self.resolve_reexport(id, name, owner, depth_left - 1, seen) {
                Resolution::Nothing => {}
                found => return found,
            }
        }
        Resolution::Nothing
    }

    /// Resolves a name that a file re-exports.
    fn resolve_reexport(
        &self,
        id: FileId,
        name: &str,
        owner: Option<&str>,
        depth_left: usize,
        seen: &mut HashSet<(FileId, String)>,
    ) -> Resolution {
        let Some(source) = self.tree.source(id) else {
            return Resolution::Nothing;
        };
        let lang = self.tree.lang_of(id);
        let path = self.tree.path(id);
        let imports = source.imports();
        // Explicit imports take precedence over glob imports.
        for import in imports.iter() {
            let next = match &import.names {
                What::Named {
                    name: own_name,
                    bound,
                } if bound == name => own_name,
                What::Whole { bound } if bound == name => {
                    let files = self.locate_module(lang, path, &import.module, depth_left);
                    if files.is_empty() {
                        continue;
                    }
                    return Resolution::Module(files);
                }
                _ => continue,
            };
            let files = self.locate_module(lang, path, &import.module, depth_left);
            match self.resolve_once(&files, next, owner, depth_left, seen) {
                Resolution::Nothing => {}
                found => return found,
            }
        }
        let mut items = Vec::new();
        for import in imports.iter().filter(|i| i.names == What::All) {
            let files = self.locate_module(lang, path, &import.module, depth_left);
            match self.resolve_once(&files, name, owner, depth_left, seen) {
                Resolution::Nothing => {}
                Resolution::Module(files) => return Resolution::Module(files),
                Resolution::Items(more) => items.extend(more),
            }
        }
        if owner.is_some()
            && items
                .iter()
                .any(|(_, i): &(FileId, Item)| i.owner.as_deref() == owner)
        {
            items.retain(|(_, i)| i.owner.as_deref() == owner);
        }
        if items.is_empty() {
            Resolution::Nothing
        } else {
            Resolution::Items(items)
        }
    }

    /// Resolves the members of a module that the test mentions as `module.name` or `module::name`.
    fn resolve_members(
        &self,
        lang: &'static Language,
        files: &[FileId],
        bound: &str,
        test: &SourceFile,
        wants: &mut Vec<WantedName>,
    ) {
        let owner = (*lang == ELIXIR)
            .then(|| self.module_name(files, bound))
            .flatten();
        let (mut missing, before) = (false, wants.len());
        let mut prefixes = vec![bound.to_owned()];
        if *lang == GO {
            prefixes.extend(
                files
                    .iter()
                    .filter_map(|id| package_clause(self.tree.source(*id)?))
                    .take(1),
            );
        }
        let mut names: Vec<&str> = prefixes
            .iter()
            .flat_map(|prefix| members_of(test.masked(), prefix))
            .collect();
        if *lang == ELIXIR {
            names.retain(|n| !n.starts_with(|c: char| c.is_ascii_uppercase()));
        }
        if *lang == ELIXIR && test.masked().contains(&format!("%{bound}{{")) {
            names.push("__struct__");
        }
        for name in unique(names.into_iter()) {
            match self.resolve(files, name, owner.as_deref(), MAX_DEPTH) {
                Resolution::Items(items) => add_definitions(wants, items),
                Resolution::Module(module) => {
                    self.resolve_members(lang, &module, &format!("{bound}.{name}"), test, wants);
                }
                Resolution::Nothing => missing = true,
            }
        }
        if missing || wants.len() == before {
            wants.push(WantedName::Missing {
                candidates: files.to_vec(),
            });
        }
    }

    fn module_name(&self, files: &[FileId], bound: &str) -> Option<String> {
        let last = bound.rsplit('.').next()?;
        let matches = |i: &&Item| i.name.rsplit('.').next() == Some(last);
        files
            .iter()
            .filter_map(|id| {
                self.tree
                    .source(*id)?
                    .items()
                    .iter()
                    .find(matches)
                    .map(|i| i.name.clone())
            })
            .next()
    }

    /// Resolves the names a test mentions against a glob import.
    fn resolve_glob(
        &self,
        lang: &'static Language,
        files: &[FileId],
        test: &SourceFile,
        wants: &mut Vec<WantedName>,
    ) {
        let own_names: HashSet<&str> = test.items().iter().map(|i| i.name.as_str()).collect();
        let names = unique(words(test.masked()).filter(|w| !own_names.contains(w)));
        for name in names.into_iter().take(MAX_WORDS) {
            let is_constant = name.starts_with(|c: char| c.is_ascii_uppercase());
            if *lang == RUBY && !is_constant {
                continue;
            }
            let owner = (*lang == RUBY)
                .then(|| qualifier(test.masked(), name))
                .flatten();
            if let Resolution::Items(items) = self.resolve(files, name, owner, MAX_DEPTH) {
                let (modules, items): (Vec<_>, Vec<_>) = items
                    .into_iter()
                    .partition(|(_, i)| *lang == RUBY && i.kind == Kind::Module);
                add_definitions(wants, items);
                self.resolve_module_functions(&modules, name, test, wants);
            }
        }
    }

    /// A Ruby module is a namespace spread over many files, so only the functions called on it are
    /// wanted.
    fn resolve_module_functions(
        &self,
        modules: &[(FileId, Item)],
        name: &str,
        test: &SourceFile,
        wants: &mut Vec<WantedName>,
    ) {
        let called: HashSet<&str> = members_of(test.masked(), name).into_iter().collect();
        for (id, _) in modules {
            let Some(source) = self.tree.source(*id) else {
                continue;
            };
            let is_called = |i: &&Item| {
                i.kind.is_leaf()
                    && i.owner.as_deref() == Some(name)
                    && called.contains(i.name.as_str())
            };
            add_definitions(
                wants,
                source
                    .items()
                    .iter()
                    .filter(is_called)
                    .map(|i| (*id, i.clone()))
                    .collect(),
            );
        }
    }

    /// Ruby autoloads by convention: `Billing::Invoice` is in `billing/invoice.rb`.
    fn resolve_ruby_constants(&self, test: &SourceFile, wants: &mut Vec<WantedName>) {
        let is_constant = |w: &&str| w.starts_with(|c: char| c.is_ascii_uppercase());
        for name in unique(words(test.masked()).filter(is_constant))
            .into_iter()
            .take(MAX_WORDS)
        {
            if wants
                .iter()
                .any(|w| matches!(w, WantedName::Defined { name: known, .. } if known == name))
            {
                continue;
            }
            let files = RUBY.locate(self.tree, "", &languages::to_snake_case(name));
            let items = files
                .iter()
                .filter_map(|id| Some((*id, self.tree.source(*id)?)));
            let items = items
                .flat_map(|(id, s)| s.importable(name).into_iter().map(move |i| (id, i.clone())));
            add_definitions(
                wants,
                items.filter(|(_, i)| i.kind != Kind::Module).collect(),
            );
        }
    }

    fn enclosing_item(
        &self,
        lang: &'static Language,
        files: &[FileId],
        module: &str,
    ) -> Option<Vec<(FileId, Item)>> {
        let last = module.rsplit("::").next().filter(|_| *lang == RUST)?;
        match self.resolve(files, last, None, MAX_DEPTH) {
            Resolution::Items(items) => Some(items),
            _ => None,
        }
    }
}

fn add_definitions(wants: &mut Vec<WantedName>, items: Vec<(FileId, Item)>) {
    for (file, item) in items {
        let want = WantedName::Defined {
            name: item.name,
            file,
            lines: item.lines,
            at: item.at,
        };
        if !wants.contains(&want) {
            wants.push(want);
        }
    }
}

fn unique<T: std::hash::Hash + Eq + Clone>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = HashSet::new();
    all.filter(|one| seen.insert(one.clone())).collect()
}

/// The words after `bound.` or `bound::`.
fn members_of<'m>(masked: &'m str, bound: &str) -> Vec<&'m str> {
    let bytes = masked.as_bytes();
    let mut found = Vec::new();
    if bound.is_empty() {
        return found;
    }
    for (at, _) in masked.match_indices(bound) {
        let is_start = at
            .checked_sub(1)
            .is_none_or(|i| !is_word(bytes[i]) && bytes[i] != b'.');
        let rest = &masked[at + bound.len()..];
        let Some(rest) = rest
            .strip_prefix("::")
            .or_else(|| rest.strip_prefix('.'))
            .filter(|_| is_start)
        else {
            continue;
        };
        let end = rest.bytes().position(|c| !is_word(c)).unwrap_or(rest.len());
        if end > 0 {
            found.push(&rest[..end]);
        }
    }
    found
}

/// `Billing` in `Billing::Invoice`.
fn qualifier<'m>(masked: &'m str, name: &str) -> Option<&'m str> {
    let at = masked
        .match_indices(name)
        .map(|(at, _)| at)
        .find(|at| masked[..*at].ends_with("::"))?;
    let before = &masked[..at - 2];
    let start = before
        .bytes()
        .rposition(|b| !is_word(b))
        .map_or(0, |i| i + 1);
    Some(&before[start..])
}

fn package_clause(source: &SourceFile) -> Option<String> {
    let line = source
        .masked()
        .lines()
        .find_map(|l| l.strip_prefix("package "))?;
    Some(line.trim().to_owned())
}
