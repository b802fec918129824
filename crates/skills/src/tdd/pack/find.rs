//! Follows the names a test uses to where they are defined, through re-exports and packages' front doors.
//! Knows which definitions are meant. Does not know how much room there is to show them.

use std::collections::HashSet;
use std::ops::Range;

use super::source::{Source, is_word, words};
use super::tree::{Id, Tree};
use supervisor_languages as languages;
use supervisor_languages::{
    Definition as Item, DefinitionKind as Kind, ELIXIR, GO, ImportedNames as What, Language,
    ProjectFiles as _, RUBY, RUST, join,
};

/// From front door to front door; more is a circle.
const FARTHEST: usize = 12;
/// Names looked up where a test may mean any of them.
const MOST_WORDS: usize = 600;

/// One name, and where it leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WantedName {
    Defined {
        name: String,
        file: Id,
        lines: Range<usize>,
        /// The line that names it.
        at: usize,
    },
    /// Not defined yet; it is expected in one of these.
    Missing { home: Vec<Id> },
}

enum FoundItems {
    Nothing,
    Items(Vec<(Id, Item)>),
    Module(Vec<Id>),
}

pub(super) struct Finder<'t> {
    tree: &'t Tree,
}

impl<'t> Finder<'t> {
    pub(super) fn new(tree: &'t Tree) -> Self {
        Self { tree }
    }

    /// What the test takes from the project, in the order in which it says so.
    pub(super) fn wanted(
        &self,
        lang: &'static Language,
        path: &str,
        test: &Source,
    ) -> Vec<WantedName> {
        let mut wants = Vec::new();
        for import in test
            .imports()
            .iter()
            .cloned()
            .chain(lang.unspoken_imports(test.masked()))
        {
            let files = self.locate(lang, path, &import.module, FARTHEST);
            if files.is_empty() {
                continue;
            }
            match &import.what {
                What::Named { name, bound } => match self.resolve(&files, name, None, FARTHEST) {
                    FoundItems::Items(items) => add(&mut wants, items),
                    FoundItems::Module(module) => {
                        self.members(lang, &module, bound, test, &mut wants)
                    }
                    // `Kind::Circle`: a part of something that is defined.
                    FoundItems::Nothing => match self.last_item(lang, &files, &import.module) {
                        Some(items) => add(&mut wants, items),
                        None if name == "default" => {}
                        None => wants.push(WantedName::Missing { home: files }),
                    },
                },
                What::Whole { bound } => self.members(lang, &files, bound, test, &mut wants),
                What::All => self.any_of(lang, &files, test, &mut wants),
            }
        }
        if *lang == RUBY {
            self.constants(test, &mut wants);
        }
        wants.dedup();
        wants
    }

    /// Every definition of a name, members too; none if there are more than `most`.
    pub(super) fn defined_anywhere(&self, name: &str, most: usize) -> Vec<WantedName> {
        let mut wants = Vec::new();
        for id in self.tree.ids() {
            let Some(source) = self.tree.source(id).filter(|s| s.mentions(name)) else {
                continue;
            };
            let named = source
                .items()
                .iter()
                .filter(|i| i.name == name && i.kind != Kind::Extension);
            add(&mut wants, named.map(|i| (id, i.clone())).collect());
            if wants.len() > most {
                return Vec::new();
            }
        }
        wants
    }

    /// Every definition of a name in one file, members too.
    pub(super) fn defined_in(&self, file: Id, name: &str) -> Vec<WantedName> {
        let items = self
            .tree
            .source(file)
            .map(Source::items)
            .unwrap_or_default();
        let named = items
            .iter()
            .filter(|i| i.name == name && i.kind != Kind::Extension);
        let mut wants = Vec::new();
        add(&mut wants, named.map(|i| (file, i.clone())).collect());
        wants
    }

    /// Where a name is defined that only the runner's words mention.
    pub(super) fn anywhere(&self, name: &str, most: usize) -> Vec<WantedName> {
        let mut wants = Vec::new();
        for id in self.tree.ids() {
            let Some(source) = self.tree.source(id).filter(|s| s.mentions(name)) else {
                continue;
            };
            add(
                &mut wants,
                source
                    .named(name)
                    .into_iter()
                    .map(|i| (id, i.clone()))
                    .collect(),
            );
            if wants.len() > most {
                return Vec::new();
            }
        }
        wants
    }

    fn locate(&self, lang: &'static Language, from: &str, module: &str, left: usize) -> Vec<Id> {
        if *lang != RUST {
            return lang.locate(self.tree, from, module);
        }
        let mut segments = module.trim_start_matches("::").split("::");
        let mut files = segments
            .next()
            .map(|s| lang.locate(self.tree, from, s))
            .unwrap_or_default();
        for segment in segments {
            if files.is_empty() || left == 0 {
                break;
            }
            if segment == "super" {
                let up = |id: &Id| languages::parent_module(self.tree, self.tree.path(*id));
                files = files.iter().filter_map(up).collect();
                continue;
            }
            match self.resolve(&files, segment, None, left - 1) {
                FoundItems::Module(next) => files = next,
                // A module or a type inside the file.
                FoundItems::Items(items) => files = unique(items.into_iter().map(|(id, _)| id)),
                FoundItems::Nothing => return self.by_folder(&files, module).unwrap_or(files),
            }
        }
        files
    }

    /// Modules that are declared inside a file, and yet have a folder.
    fn by_folder(&self, from: &[Id], module: &str) -> Option<Vec<Id>> {
        let (_, rest) = module.split_once("::")?;
        let rest = rest.replace("::", "/");
        let file = |id: &Id, name: &str| {
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

    /// What `name` is in one of these files: defined there, or taken from further on.
    fn resolve(&self, files: &[Id], name: &str, owner: Option<&str>, left: usize) -> FoundItems {
        let mut seen = HashSet::new();
        self.resolve_once(files, name, owner, left, &mut seen)
    }

    fn resolve_once(
        &self,
        files: &[Id],
        name: &str,
        owner: Option<&str>,
        left: usize,
        seen: &mut HashSet<(Id, String)>,
    ) -> FoundItems {
        let files: Vec<Id> = files
            .iter()
            .copied()
            .filter(|id| seen.insert((*id, name.to_owned())))
            .collect();
        let mut items: Vec<(Id, Item)> = Vec::new();
        for &id in &files {
            let Some(source) = self.tree.source(id) else {
                continue;
            };
            items.extend(
                source
                    .named(name)
                    .into_iter()
                    .map(|item| (id, item.clone())),
            );
        }
        if owner.is_some() && items.iter().any(|(_, i)| i.owner.as_deref() == owner) {
            items.retain(|(_, i)| i.owner.as_deref() == owner);
        }
        if !items.is_empty() {
            return FoundItems::Items(items);
        }
        if left == 0 {
            return FoundItems::Nothing;
        }
        let child = |id: &Id| self.tree.lang_of(*id).child_module(self.tree, *id, name);
        let children = unique(files.iter().filter_map(child));
        if !children.is_empty() {
            return FoundItems::Module(children);
        }
        for &id in &files {
            match self.passed_on(id, name, owner, left - 1, seen) {
                FoundItems::Nothing => {}
                found => return found,
            }
        }
        FoundItems::Nothing
    }

    /// Names that a file has from others: its re-exports.
    fn passed_on(
        &self,
        id: Id,
        name: &str,
        owner: Option<&str>,
        left: usize,
        seen: &mut HashSet<(Id, String)>,
    ) -> FoundItems {
        let Some(source) = self.tree.source(id) else {
            return FoundItems::Nothing;
        };
        let lang = self.tree.lang_of(id);
        let path = self.tree.path(id);
        let imports = source.imports();
        // What is named goes before what may come from anywhere.
        for import in imports.iter() {
            let next = match &import.what {
                What::Named { name: own, bound } if bound == name => own,
                What::Whole { bound } if bound == name => {
                    let files = self.locate(lang, path, &import.module, left);
                    if files.is_empty() {
                        continue;
                    }
                    return FoundItems::Module(files);
                }
                _ => continue,
            };
            let files = self.locate(lang, path, &import.module, left);
            match self.resolve_once(&files, next, owner, left, seen) {
                FoundItems::Nothing => {}
                found => return found,
            }
        }
        let mut items = Vec::new();
        for import in imports.iter().filter(|i| i.what == What::All) {
            let files = self.locate(lang, path, &import.module, left);
            match self.resolve_once(&files, name, owner, left, seen) {
                FoundItems::Nothing => {}
                FoundItems::Module(files) => return FoundItems::Module(files),
                FoundItems::Items(more) => items.extend(more),
            }
        }
        if owner.is_some()
            && items
                .iter()
                .any(|(_, i): &(Id, Item)| i.owner.as_deref() == owner)
        {
            items.retain(|(_, i)| i.owner.as_deref() == owner);
        }
        if items.is_empty() {
            FoundItems::Nothing
        } else {
            FoundItems::Items(items)
        }
    }

    /// `module.name`, `module::name`: the members of a module that the test mentions.
    fn members(
        &self,
        lang: &'static Language,
        files: &[Id],
        bound: &str,
        test: &Source,
        wants: &mut Vec<WantedName>,
    ) {
        let owner = (*lang == ELIXIR)
            .then(|| self.module_name(files, bound))
            .flatten();
        let (mut missing, before) = (false, wants.len());
        let mut bounds = vec![bound.to_owned()];
        if *lang == GO {
            bounds.extend(
                files
                    .iter()
                    .filter_map(|id| package_clause(self.tree.source(*id)?))
                    .take(1),
            );
        }
        let mut names: Vec<&str> = bounds
            .iter()
            .flat_map(|b| members_of(test.masked(), b))
            .collect();
        if *lang == ELIXIR {
            names.retain(|n| !n.starts_with(|c: char| c.is_ascii_uppercase()));
        }
        if *lang == ELIXIR && test.masked().contains(&format!("%{bound}{{")) {
            names.push("__struct__");
        }
        for name in unique(names.into_iter()) {
            match self.resolve(files, name, owner.as_deref(), FARTHEST) {
                FoundItems::Items(items) => add(wants, items),
                FoundItems::Module(module) => {
                    self.members(lang, &module, &format!("{bound}.{name}"), test, wants)
                }
                FoundItems::Nothing => missing = true,
            }
        }
        if missing || wants.len() == before {
            wants.push(WantedName::Missing {
                home: files.to_vec(),
            });
        }
    }

    fn module_name(&self, files: &[Id], bound: &str) -> Option<String> {
        let last = bound.rsplit('.').next()?;
        let fits = |i: &&Item| i.name.rsplit('.').next() == Some(last);
        files
            .iter()
            .filter_map(|id| {
                self.tree
                    .source(*id)?
                    .items()
                    .iter()
                    .find(fits)
                    .map(|i| i.name.clone())
            })
            .next()
    }

    /// Everything in these files may be meant, and what the test mentions is.
    fn any_of(
        &self,
        lang: &'static Language,
        files: &[Id],
        test: &Source,
        wants: &mut Vec<WantedName>,
    ) {
        let own: HashSet<&str> = test.items().iter().map(|i| i.name.as_str()).collect();
        let names = unique(words(test.masked()).filter(|w| !own.contains(w)));
        for name in names.into_iter().take(MOST_WORDS) {
            let constant = name.starts_with(|c: char| c.is_ascii_uppercase());
            if *lang == RUBY && !constant {
                continue;
            }
            let owner = (*lang == RUBY)
                .then(|| qualifier(test.masked(), name))
                .flatten();
            if let FoundItems::Items(items) = self.resolve(files, name, owner, FARTHEST) {
                let (modules, items): (Vec<_>, Vec<_>) = items
                    .into_iter()
                    .partition(|(_, i)| *lang == RUBY && i.kind == Kind::Module);
                add(wants, items);
                self.functions_of(&modules, name, test, wants);
            }
        }
    }

    /// A Ruby module is a namespace in many files; what is meant is what is called on it.
    fn functions_of(
        &self,
        modules: &[(Id, Item)],
        name: &str,
        test: &Source,
        wants: &mut Vec<WantedName>,
    ) {
        let called: HashSet<&str> = members_of(test.masked(), name).into_iter().collect();
        for (id, _) in modules {
            let Some(source) = self.tree.source(*id) else {
                continue;
            };
            let meant = |i: &&Item| {
                i.kind.is_plain()
                    && i.owner.as_deref() == Some(name)
                    && called.contains(i.name.as_str())
            };
            add(
                wants,
                source
                    .items()
                    .iter()
                    .filter(meant)
                    .map(|i| (*id, i.clone()))
                    .collect(),
            );
        }
    }

    /// Ruby loads by convention too: `Billing::Invoice` lies in `billing/invoice.rb`.
    fn constants(&self, test: &Source, wants: &mut Vec<WantedName>) {
        let is_constant = |w: &&str| w.starts_with(|c: char| c.is_ascii_uppercase());
        for name in unique(words(test.masked()).filter(is_constant))
            .into_iter()
            .take(MOST_WORDS)
        {
            if wants
                .iter()
                .any(|w| matches!(w, WantedName::Defined { name: known, .. } if known == name))
            {
                continue;
            }
            let files = RUBY.locate(self.tree, "", &languages::underscored(name));
            let items = files
                .iter()
                .filter_map(|id| Some((*id, self.tree.source(*id)?)));
            let items =
                items.flat_map(|(id, s)| s.named(name).into_iter().map(move |i| (id, i.clone())));
            add(
                wants,
                items.filter(|(_, i)| i.kind != Kind::Module).collect(),
            );
        }
    }

    fn last_item(
        &self,
        lang: &'static Language,
        files: &[Id],
        module: &str,
    ) -> Option<Vec<(Id, Item)>> {
        let last = module.rsplit("::").next().filter(|_| *lang == RUST)?;
        match self.resolve(files, last, None, FARTHEST) {
            FoundItems::Items(items) => Some(items),
            _ => None,
        }
    }
}

fn add(wants: &mut Vec<WantedName>, items: Vec<(Id, Item)>) {
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

/// The words that follow `bound.` or `bound::`.
fn members_of<'m>(masked: &'m str, bound: &str) -> Vec<&'m str> {
    let b = masked.as_bytes();
    let mut found = Vec::new();
    if bound.is_empty() {
        return found;
    }
    for (at, _) in masked.match_indices(bound) {
        let whole = at
            .checked_sub(1)
            .is_none_or(|i| !is_word(b[i]) && b[i] != b'.');
        let rest = &masked[at + bound.len()..];
        let Some(rest) = rest
            .strip_prefix("::")
            .or_else(|| rest.strip_prefix('.'))
            .filter(|_| whole)
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

/// `Billing` of `Billing::Invoice`.
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

fn package_clause(source: &Source) -> Option<String> {
    let line = source
        .masked()
        .lines()
        .find_map(|l| l.strip_prefix("package "))?;
    Some(line.trim().to_owned())
}
