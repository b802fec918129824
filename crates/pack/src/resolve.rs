//! Resolves the names that a test uses to their definitions, following imports and re-exports.

use std::collections::HashSet;

use super::project::{FileId, Found, Project, SourceFile};
use super::similarity::{is_word, words};
use supervisor_languages::{
    DefinitionKind, ImportedNames, Language, ProjectFiles as _, RUST, parent_module,
};

/// Maximum chain of re-exports.
const MAX_DEPTH: usize = 12;
/// Maximum number of names looked up for a glob import.
const MAX_NAMES: usize = 600;

/// What a test uses from the project.
#[derive(Debug, Default)]
pub(super) struct UsedNames<'p> {
    pub definitions: Vec<Found<'p>>,
    /// For each name that is not defined yet, the files in which it is expected.
    pub missing: Vec<Vec<FileId>>,
}

impl<'p> UsedNames<'p> {
    pub(super) fn add(&mut self, found: impl IntoIterator<Item = Found<'p>>) {
        for one in found {
            if !self.definitions.contains(&one) {
                self.definitions.push(one);
            }
        }
    }
}

enum Resolution<'p> {
    Definitions(Vec<Found<'p>>),
    Module(Vec<FileId>),
}

/// The names that the test uses from the project, in the order of its imports.
pub(super) fn names_used_by<'p>(
    test: &SourceFile,
    project: &'p Project,
    language: &'static Language,
) -> UsedNames<'p> {
    let mut resolver = Resolver {
        project,
        language,
        test,
        used: UsedNames::default(),
    };
    let implicit = language.implicit_imports(test.masked());
    for import in test.imports().iter().chain(&implicit) {
        let files = resolver.locate(&test.path, &import.module, MAX_DEPTH);
        match &import.names {
            _ if files.is_empty() => {}
            ImportedNames::Named { name, bound } => {
                if !resolver.add_name(&files, name, bound) && name != "default" {
                    resolver.used.missing.push(files);
                }
            }
            ImportedNames::Whole { bound } => resolver.add_members(&files, bound),
            ImportedNames::All => resolver.add_mentioned(&files),
        }
    }
    resolver.add_methods();
    resolver.used
}

struct Resolver<'p, 't> {
    project: &'p Project,
    language: &'static Language,
    test: &'t SourceFile,
    used: UsedNames<'p>,
}

impl<'p> Resolver<'p, '_> {
    /// Adds what `name` is in these files. Of a module, adds what the test uses through `bound`.
    /// Returns false if the name is not defined.
    fn add_name(&mut self, files: &[FileId], name: &str, bound: &str) -> bool {
        match self.resolve(files, name) {
            Some(Resolution::Definitions(found)) => self.used.add(found),
            Some(Resolution::Module(files)) => self.add_members(&files, bound),
            None => return false,
        }
        true
    }

    /// Adds the members of a module that the test mentions as `module.name` or `module::name`.
    fn add_members(&mut self, files: &[FileId], bound: &str) {
        let (before, mut is_missing) = (self.used.definitions.len(), false);
        for name in unique(members_of(self.test.masked(), bound)) {
            is_missing |= !self.add_name(files, name, &format!("{bound}.{name}"));
        }
        if is_missing || self.used.definitions.len() == before {
            self.used.missing.push(files.to_vec());
        }
    }

    /// Adds the names of a glob import that the test mentions.
    fn add_mentioned(&mut self, files: &[FileId]) {
        let own: HashSet<&str> = self
            .test
            .definitions()
            .iter()
            .map(|i| i.name.as_str())
            .collect();
        let names = unique(words(self.test.masked()).filter(|word| !own.contains(word)));
        for name in names.into_iter().take(MAX_NAMES) {
            if let Some(Resolution::Definitions(mut found)) = self.resolve(files, name) {
                // A module is a namespace; what is used of it is mentioned too.
                found.retain(|one| one.item.kind != DefinitionKind::Module);
                self.used.add(found);
            }
        }
    }

    /// Adds methods that the test mentions and that are outside their type, as in Rust and Go.
    fn add_methods(&mut self) {
        let mentioned: HashSet<&str> = words(self.test.masked()).collect();
        for Found { file, item: owner } in self.used.definitions.clone() {
            let methods = self.project.source(file).definitions().iter().filter(|i| {
                i.member
                    && i.owner.as_ref() == Some(&owner.name)
                    && !owner.lines.contains(&i.at)
                    && mentioned.contains(i.name.as_str())
            });
            self.used.add(methods.map(|item| Found { file, item }));
        }
    }

    /// The files of a module as written in the file `from`.
    fn locate(&self, from: &str, module: &str, depth: usize) -> Vec<FileId> {
        if *self.language != RUST {
            return self.language.locate(self.project, from, module);
        }
        let mut segments = module.trim_start_matches("::").split("::");
        let first = segments.next().unwrap_or_default();
        let mut files = self.language.locate(self.project, from, first);
        for segment in segments.filter(|_| depth > 0) {
            if segment == "super" {
                let parent = |id: &FileId| parent_module(self.project, self.project.path(*id));
                files = files.iter().filter_map(parent).collect();
                continue;
            }
            match self.resolve_within(&files, segment, depth - 1, &mut HashSet::new()) {
                Some(Resolution::Module(next)) => files = next,
                // A type, or a module inside a file.
                Some(Resolution::Definitions(found)) => {
                    files = unique(found.into_iter().map(|one| one.file));
                }
                None => break,
            }
        }
        files
    }

    /// What `name` is in these files: defined there, a submodule, or re-exported from elsewhere.
    fn resolve(&self, files: &[FileId], name: &str) -> Option<Resolution<'p>> {
        self.resolve_within(files, name, MAX_DEPTH, &mut HashSet::new())
    }

    fn resolve_within(
        &self,
        files: &[FileId],
        name: &str,
        depth: usize,
        seen: &mut HashSet<(FileId, String)>,
    ) -> Option<Resolution<'p>> {
        let is_new = |id: &FileId| seen.insert((*id, name.to_owned()));
        let files: Vec<FileId> = files.iter().copied().filter(is_new).collect();
        let mut found = Vec::new();
        for &file in &files {
            let items = self.project.source(file).importable(name).into_iter();
            found.extend(items.map(|item| Found { file, item }));
        }
        if !found.is_empty() {
            return Some(Resolution::Definitions(found));
        }
        let depth = depth.checked_sub(1)?;
        let child = |id: &FileId| self.language.child_module(self.project, *id, name);
        let children = unique(files.iter().filter_map(child));
        if !children.is_empty() {
            return Some(Resolution::Module(children));
        }
        files
            .into_iter()
            .find_map(|id| self.resolve_reexport(id, name, depth, seen))
    }

    fn resolve_reexport(
        &self,
        file: FileId,
        name: &str,
        depth: usize,
        seen: &mut HashSet<(FileId, String)>,
    ) -> Option<Resolution<'p>> {
        let source = self.project.source(file);
        // Explicit imports take precedence over glob imports.
        for import in source.imports() {
            let files = || self.locate(&source.path, &import.module, depth);
            let found = match &import.names {
                ImportedNames::Named {
                    name: original,
                    bound,
                } if bound == name => self.resolve_within(&files(), original, depth, seen),
                ImportedNames::Whole { bound } if bound == name => Some(files())
                    .filter(|f| !f.is_empty())
                    .map(Resolution::Module),
                _ => None,
            };
            if found.is_some() {
                return found;
            }
        }
        let mut all = Vec::new();
        for import in source
            .imports()
            .iter()
            .filter(|i| i.names == ImportedNames::All)
        {
            let files = self.locate(&source.path, &import.module, depth);
            match self.resolve_within(&files, name, depth, seen) {
                Some(Resolution::Definitions(found)) => all.extend(found),
                Some(module) => return Some(module),
                None => {}
            }
        }
        (!all.is_empty()).then_some(Resolution::Definitions(all))
    }
}

pub(super) fn unique<T: std::hash::Hash + Eq + Clone>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut seen = HashSet::new();
    all.into_iter()
        .filter(|one| seen.insert(one.clone()))
        .collect()
}

/// The words after `bound.` or `bound::`.
fn members_of<'m>(masked: &'m str, bound: &str) -> Vec<&'m str> {
    let member = |(at, _): (usize, &str)| {
        let is_start = !masked[..at].ends_with(|c: char| c == '.' || is_word(c));
        let rest = &masked[at + bound.len()..];
        let rest = rest.strip_prefix("::").or_else(|| rest.strip_prefix('.'))?;
        let name = &rest[..rest.find(|c: char| !is_word(c)).unwrap_or(rest.len())];
        (is_start && !bound.is_empty() && !name.is_empty()).then_some(name)
    };
    masked.match_indices(bound).filter_map(member).collect()
}
