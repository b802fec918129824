//! The imports of a file, as written. Re-exports count as imports, so that a name can be followed from file to file.
//! `Language::locate` resolves a module to files.

use super::SyntaxTree;

/// A file with more imports is probably generated.
pub(super) const MAX_IMPORTS: usize = 2_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// As written in the source: `crate::a`, `..pkg.mod`, `../src/x`, `example.com/m/pkg`, `My.Mod`; empty for the file itself.
    pub module: String,
    pub names: ImportedNames,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportedNames {
    /// One name and its local name.
    Named { name: String, bound: String },
    /// The module itself; its members are accessed through `bound`.
    Whole { bound: String },
    /// All names of the module.
    All,
}

impl Import {
    pub(super) fn named(module: &str, name: &str, bound: &str) -> Self {
        Self {
            module: module.to_owned(),
            names: ImportedNames::Named {
                name: name.to_owned(),
                bound: bound.to_owned(),
            },
        }
    }

    pub(super) fn whole(module: &str, bound: &str) -> Self {
        Self {
            module: module.to_owned(),
            names: ImportedNames::Whole {
                bound: bound.to_owned(),
            },
        }
    }

    pub(super) fn all(module: &str) -> Self {
        Self {
            module: module.to_owned(),
            names: ImportedNames::All,
        }
    }

    /// The full name of the import: `std::process::exit`.
    pub fn full_name(&self, separator: &str) -> String {
        match &self.names {
            ImportedNames::Named { name, .. } => format!("{}{separator}{name}", self.module),
            ImportedNames::Whole { .. } | ImportedNames::All => self.module.clone(),
        }
    }
}

/// Runs `imports.scm`. Each match is one import:
/// - `@module` or the setting `module`, preceded by the setting `prefix`;
/// - `@name` or the setting `name`: one name of the module; without it, the module as a whole;
/// - `@bound` or the setting `bound`: the local name;
/// - `(#set! what "all")`: all names of the module;
/// - `(#set! join ".")`: the name is a submodule of the module.
///
/// `bound_by` gives the default local name of a module.
pub(super) fn by_query(tree: &SyntaxTree<'_>, bound_by: fn(&str) -> &str) -> Vec<Import> {
    let mut found = Vec::new();
    for one in tree.matches(|q| &q.imports) {
        let value = |key: &str| {
            one.get(key)
                .map(|c| c.text)
                .or_else(|| one.setting(key))
                .map(unquoted)
        };
        let module: String = value("module")
            .unwrap_or_default()
            .split_whitespace()
            .collect();
        let module = format!("{}{module}", one.setting("prefix").unwrap_or_default());
        let import = match (value("name"), one.setting("join"), one.setting("what")) {
            (_, _, Some("all")) => Import::all(&module),
            (Some(name), Some(join), _) => Import::whole(
                &format!("{module}{join}{name}"),
                value("bound").unwrap_or_else(|| bound_by(name)),
            ),
            (Some(name), None, _) => Import::named(&module, name, value("bound").unwrap_or(name)),
            (None, ..) => {
                Import::whole(&module, value("bound").unwrap_or_else(|| bound_by(&module)))
            }
        };
        if !found.contains(&import) {
            found.push(import);
        }
    }
    found
}

fn unquoted(text: &str) -> &str {
    text.trim_matches(['"', '\'', '`'])
}

#[cfg(test)]
pub(super) fn read(file: &str, text: &str) -> Vec<Import> {
    let path = std::path::Path::new(file);
    let language = super::Language::of_path(path).expect("a language");
    language.imports(&language.parse(path, text).expect("reads"))
}
