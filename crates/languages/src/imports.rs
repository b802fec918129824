//! What a file takes from other files, in the words of its language. Re-exports are imports too: a name is followed from
//! file to file by reading each of them with this.
//! Knows statements. Does not know where a module lies.

use super::SyntaxTree;

/// More in one file is generated.
pub(super) const MOST: usize = 2_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// As it is written: `crate::a`, `..pkg.mod`, `../src/x`, `example.com/m/pkg`, `My.Mod`; empty for the file itself.
    pub module: String,
    pub what: ImportedNames,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportedNames {
    /// One name, and what it is called here.
    Named { name: String, bound: String },
    /// The module itself; its members are reached through `bound`.
    Whole { bound: String },
    /// Whatever the module has.
    All,
}

impl Import {
    pub(super) fn named(module: &str, name: &str, bound: &str) -> Self {
        Self {
            module: module.to_owned(),
            what: ImportedNames::Named {
                name: name.to_owned(),
                bound: bound.to_owned(),
            },
        }
    }

    pub(super) fn whole(module: &str, bound: &str) -> Self {
        Self {
            module: module.to_owned(),
            what: ImportedNames::Whole {
                bound: bound.to_owned(),
            },
        }
    }

    pub(super) fn all(module: &str) -> Self {
        Self {
            module: module.to_owned(),
            what: ImportedNames::All,
        }
    }

    /// What is imported, by its full name: `std::process::exit`.
    pub fn full_name(&self, separator: &str) -> String {
        match &self.what {
            ImportedNames::Named { name, .. } => format!("{}{separator}{name}", self.module),
            ImportedNames::Whole { .. } | ImportedNames::All => self.module.clone(),
        }
    }
}

/// Reads what `imports.scm` captures. Each match is one import:
/// - `@module` or the setting `module`; `@prefix` goes before it, the setting `prefix` too;
/// - `@name` or the setting `name`: one name of it, else all of it as a whole;
/// - `@bound` or the setting `bound`: what it is called here;
/// - `(#set! what "all")`: everything, without a name of its own;
/// - `(#set! join ".")`: the name is a module inside of the module.
///
/// `bound_by` says what a module is called where nothing else is said.
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
