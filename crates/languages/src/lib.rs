//! The programming languages we know: one value for each, with all that is known about it. Adding one is a file here, a
//! folder in `queries/` and a line in [`LANGUAGES`].
//! Knows text, syntax and the names of files. Does not know runners, models or phases.

mod cheats;
mod cpp;
mod definitions;
mod elixir;
mod files;
mod go;
mod imports;
mod java;
mod javascript;
mod python;
mod ruby;
mod rust;
mod syntax;

use std::fmt;
use std::path::Path;

use serde::{Serialize, Serializer};

pub use cheats::CheatRule;
pub use cpp::CPP;
pub use definitions::{Definition, DefinitionKind};
pub use elixir::ELIXIR;
pub use files::{
    CompiledDir, NamePatterns, ProjectFiles, RunnerModules, TestPlace, join, parent, underscored,
};
pub use go::GO;
pub use imports::{Import, ImportedNames};
pub use java::JAVA;
pub use javascript::JAVASCRIPT;
pub use python::PYTHON;
pub use ruby::RUBY;
pub use rust::{RUST, child_module_dir, parent_module};
pub use syntax::{QueryMatch, SyntaxQuery, SyntaxTree};

/// Every language, each in a file of its own.
pub static LANGUAGES: &[&Language] = &[
    &RUST,
    &PYTHON,
    &JAVASCRIPT,
    &GO,
    &RUBY,
    &ELIXIR,
    &JAVA,
    &CPP,
];

/// One programming language and all that is known about it.
pub struct Language {
    /// As its folder in `queries/` is called, and as it is named in messages.
    pub name: &'static str,
    dialects: &'static [&'static Dialect],
    pub compiled: bool,
    /// Begins a comment to the end of the line.
    pub line_comment: &'static str,
    /// Unit tests may stand in the same file as the code.
    pub tests_beside_code: bool,
    /// Which files are tests, by their names.
    pub test_files: NamePatterns,
    /// Files of which one says what the project is made of, in small letters and large.
    pub manifests: &'static [&'static str],
    /// What decides how a project is built, by file name in small letters.
    pub build_files: NamePatterns,
    /// What a test runner or its plug-ins load, by file name in small letters.
    pub runner_files: NamePatterns,
    /// What the runner loads by name.
    pub runner_modules: RunnerModules,
    /// Directories of packages that tools fetched.
    pub installed_dirs: &'static [&'static str],
    /// Directories of what tools made.
    pub built_dirs: &'static [&'static str],
    /// Where tools keep what they compiled of the project.
    pub compiled_dirs: &'static [CompiledDir],
    /// What makes a run of the tests one of the program as users get it, by variables.
    pub production: &'static [(&'static str, &'static str)],
    /// How compilers and interpreters say that a name does not exist: the words before it and after it.
    pub missing_names: &'static [(&'static str, &'static str)],
    /// What is said at run time about a name that the test itself does not know.
    pub unbound_name: Option<(&'static str, &'static str)>,
    /// Does a test that a runner calls so stand in this file?
    holds_test: fn(&TestPlace<'_>, &str) -> bool,
    /// Can code outside name this definition? The text is its first line.
    is_public: fn(&Definition, &str) -> bool,
    imports: fn(&SyntaxTree<'_>) -> Vec<Import>,
    /// What a file takes without a statement: full paths in its text, the package it lies in.
    unspoken_imports: fn(&str) -> Vec<Import>,
    /// The names under which a manifest makes its directory known.
    package_names: fn(&str) -> Vec<String>,
    /// The files that a manifest says are started as programs; of several ways to write one file, the one that is there.
    programs: fn(&str) -> Vec<String>,
    /// The files that a module, as it is written in another file, could mean.
    locate: fn(&dyn ProjectFiles, &str, &str) -> Vec<usize>,
    /// A module that lies below a file by its place in the tree.
    child_module: fn(&dyn ProjectFiles, usize, &str) -> Option<usize>,
    cheats: cheats::CheatRules,
}

/// A grammar of a language and the files it is for: TypeScript has another than JavaScript.
struct Dialect {
    /// What the names of its files end in, after the last dot.
    endings: &'static [&'static str],
    grammar: fn() -> tree_sitter::Language,
    /// Nodes in which words are no code: comments and literals of text.
    opaque: &'static [&'static str],
    /// Nodes that belong to the definition directly below them: comments, attributes, decorators.
    leading: &'static [&'static str],
    queries: QuerySet,
}

/// The questions that every language can answer about a syntax tree.
#[derive(Debug)]
pub struct QuerySet {
    /// `@definition.function`, `.type`, `.module`, `.constant` or `.extension`, its `@name`, and the `@owner` it names.
    pub definitions: SyntaxQuery,
    /// What tests expect, and where; see [`supervisor_verify::falsify`] for the captures.
    pub expectations: SyntaxQuery,
    /// Where code looks at who runs it: `@aware`, and why that matters as the setting `why`.
    pub awareness: SyntaxQuery,
    /// `@module`, the `@name` taken from it and what it is `@bound` to here; see [`imports`].
    pub imports: SyntaxQuery,
    /// `@test` with its `@name`, `@skip` for what keeps a test from running, `@debugging` for leftovers.
    pub tests: SyntaxQuery,
    /// Shapes that could deceive a test run, named as a [`CheatRule`]; `@assigned` for what is given a new value.
    pub cheats: SyntaxQuery,
}

/// The queries of these folders, one after the other: TypeScript answers all that JavaScript does, and more.
macro_rules! queries {
    (@ $name:literal, $($folder:literal),+) => {
        crate::SyntaxQuery::new(concat!($(
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/queries/", $folder, "/", $name, ".scm"))
        ),+))
    };
    ($($folder:literal),+) => {
        crate::QuerySet {
            definitions: queries!(@ "definitions", $($folder),+),
            expectations: queries!(@ "expectations", $($folder),+),
            awareness: queries!(@ "awareness", $($folder),+),
            imports: queries!(@ "imports", $($folder),+),
            tests: queries!(@ "tests", $($folder),+),
            cheats: queries!(@ "cheats", $($folder),+),
        }
    };
}
use queries;

impl Language {
    /// The language of a file, by the ending of its name.
    pub fn of_path(path: &Path) -> Option<&'static Self> {
        LANGUAGES
            .iter()
            .copied()
            .find(|language| language.dialect(path).is_some())
    }

    /// Is the file written in this language?
    pub fn owns(&self, path: &Path) -> bool {
        self.dialect(path).is_some()
    }

    /// Reads a file of this language. `None` if the file has another ending, is too large or takes too long; text that
    /// does not compile is read as far as it can be.
    pub fn parse<'s>(&self, path: &Path, source: &'s str) -> Option<SyntaxTree<'s>> {
        SyntaxTree::parse(self.dialect(path)?, source)
    }

    fn dialect(&self, path: &Path) -> Option<&'static Dialect> {
        let ending = path.extension()?.to_str()?;
        self.dialects
            .iter()
            .copied()
            .find(|dialect| dialect.endings.contains(&ending))
    }

    /// The endings of its files, the usual one first.
    pub fn endings(&self) -> impl Iterator<Item = &'static str> {
        self.dialects
            .iter()
            .flat_map(|dialect| dialect.endings)
            .copied()
    }

    /// Does a test that a runner calls so stand in this file?
    pub fn holds_test(&self, place: &TestPlace<'_>, name: &str) -> bool {
        (self.holds_test)(place, name)
    }

    /// What the statements of a file import, re-exports included.
    pub fn imports(&self, tree: &SyntaxTree<'_>) -> Vec<Import> {
        let mut found = (self.imports)(tree);
        found.truncate(imports::MOST);
        found
    }

    /// What a file takes without a statement, by its text without strings and comments.
    pub fn unspoken_imports(&self, masked: &str) -> Vec<Import> {
        let mut found = (self.unspoken_imports)(masked);
        found.truncate(imports::MOST);
        found
    }

    /// Can code outside name this definition? `head` is its first line.
    pub fn is_public(&self, definition: &Definition, head: &str) -> bool {
        (self.is_public)(definition, head)
    }

    pub fn package_names(&self, manifest: &str) -> Vec<String> {
        (self.package_names)(manifest)
    }

    /// The files that a manifest says are started as programs, relative to it.
    pub fn programs(&self, manifest: &str) -> Vec<String> {
        (self.programs)(manifest)
    }

    /// The files that `module`, as written in the file `from`, could mean.
    pub fn locate(&self, files: &dyn ProjectFiles, from: &str, module: &str) -> Vec<usize> {
        (self.locate)(files, from, module)
    }

    pub fn child_module(&self, files: &dyn ProjectFiles, file: usize, name: &str) -> Option<usize> {
        (self.child_module)(files, file, name)
    }
}

/// A directory of packages that tools fetched, in any language.
pub fn is_installed_dir(name: &str) -> bool {
    name == "vendor"
        || LANGUAGES
            .iter()
            .any(|language| language.installed_dirs.contains(&name))
}

/// A directory of what tools made, in any language.
pub fn is_built_dir(name: &str) -> bool {
    LANGUAGES
        .iter()
        .any(|language| language.built_dirs.contains(&name))
}

impl PartialEq for Language {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Language {}

impl std::hash::Hash for Language {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl fmt::Debug for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Serialize for Language {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_file_of_the_folder_and_every_folder_of_queries_is_in_the_table() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let names = |dir: &str| -> BTreeSet<String> {
            let entries = std::fs::read_dir(root.join(dir)).expect("the folder is there");
            let stem = |e: std::fs::DirEntry| {
                e.path()
                    .file_stem()
                    .map(|n| n.to_string_lossy().into_owned())
            };
            entries.filter_map(|e| stem(e.expect("readable"))).collect()
        };
        let table: BTreeSet<String> = LANGUAGES.iter().map(|l| l.name.to_owned()).collect();
        assert!(
            table.is_subset(&names("src/languages")),
            "one file per language"
        );
        assert_eq!(
            &names("queries") - &BTreeSet::from([String::from("typescript")]),
            table
        );
    }

    #[test]
    fn every_query_of_every_dialect_compiles() {
        for language in LANGUAGES {
            for dialect in language.dialects {
                let file = format!("a.{}", dialect.endings[0]);
                let tree = language
                    .parse(Path::new(&file), "")
                    .expect("nothing can be read");
                assert!(tree.matches(|q| &q.definitions).is_empty());
                assert!(tree.matches(|q| &q.expectations).is_empty());
                assert!(tree.matches(|q| &q.awareness).is_empty());
                assert!(tree.matches(|q| &q.imports).is_empty());
                assert!(tree.matches(|q| &q.tests).is_empty());
                assert!(tree.matches(|q| &q.cheats).is_empty());
                assert!(language.cheat_signs(&tree, &|_| true).is_empty());
            }
        }
    }

    #[test]
    fn no_ending_belongs_to_two_languages() {
        let all: Vec<&str> = LANGUAGES.iter().flat_map(|l| l.endings()).collect();
        assert_eq!(
            all.iter().collect::<BTreeSet<_>>().len(),
            all.len(),
            "{all:?}"
        );
        assert_eq!(Language::of_path(Path::new("src/a.tsx")), Some(&JAVASCRIPT));
        assert_eq!(Language::of_path(Path::new("README.md")), None);
    }
}
