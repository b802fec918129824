//! The supported programming languages. Each language is one [`Language`] value in its own file. To add one, add a file
//! here, a folder in `queries/` and a line in [`LANGUAGES`].

mod cheats;
mod cpp;
mod definitions;
mod elixir;
mod files;
mod go;
mod imports;
mod java;
mod javascript;
mod mutations;
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
    CompiledDir, NamePatterns, ProjectFiles, RunnerModules, TestSourceFile, join, parent,
    to_snake_case,
};
pub use go::GO;
pub use imports::{Import, ImportedNames};
pub use java::JAVA;
pub use javascript::JAVASCRIPT;
pub use mutations::{Mutation, MutationKind, mutations};
pub use python::PYTHON;
pub use ruby::RUBY;
pub use rust::{RUST, child_module_dir, parent_module};
pub use syntax::{QueryMatch, SyntaxQuery, SyntaxTree};

/// All supported languages.
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

/// Everything the server knows about one programming language.
pub struct Language {
    /// Used in messages and as the name of its folder in `queries/`.
    pub name: &'static str,
    dialects: &'static [&'static Dialect],
    pub is_compiled: bool,
    /// The marker that starts a line comment.
    pub line_comment: &'static str,
    /// Whether unit tests may be in the same file as the code.
    pub has_inline_tests: bool,
    /// Names of test files.
    pub test_files: NamePatterns,
    /// Names of files that declare a project, in their original letter case.
    pub manifests: &'static [&'static str],
    /// Lower-case names of files that decide how a project is built.
    pub build_files: NamePatterns,
    /// Lower-case names of files that a test runner or its plug-ins load.
    pub runner_files: NamePatterns,
    /// Modules that the runner loads by name.
    pub runner_modules: RunnerModules,
    /// Directories with installed packages, whose names mean nothing else.
    pub installed_dirs: &'static [&'static str],
    /// Directories with installed packages in projects of this language; elsewhere the names can mean anything.
    pub vendored_dirs: &'static [&'static str],
    /// Directories with build output.
    pub built_dirs: &'static [&'static str],
    /// Directories with compiled project code that tools reuse.
    pub compiled_dirs: &'static [CompiledDir],
    /// Environment variables that run the tests against the production build.
    pub production_env: &'static [(&'static str, &'static str)],
    /// How compilers and interpreters report an unknown name: the text before and after the name.
    pub missing_names: &'static [(&'static str, &'static str)],
    /// How the runtime reports a name that is not defined in the test itself.
    pub unbound_name: Option<(&'static str, &'static str)>,
    /// Whether this file contains the test with this name in a runner's report.
    contains_test: fn(&TestSourceFile<'_>, &str) -> bool,
    /// Whether code outside the file can use this definition. The text is its first line.
    is_public: fn(&Definition, &str) -> bool,
    imports: fn(&SyntaxTree<'_>) -> Vec<Import>,
    /// Imports without a statement: full paths in the code, and the file's own package.
    implicit_imports: fn(&str) -> Vec<Import>,
    /// The package names that a manifest declares for its directory.
    package_names: fn(&str) -> Vec<String>,
    /// The files that a manifest declares as programs. May list several candidates for one program, of which one exists.
    programs: fn(&str) -> Vec<String>,
    /// The files that a module name in another file could refer to.
    locate: fn(&dyn ProjectFiles, &str, &str) -> Vec<usize>,
    /// The file of a submodule, by its place in the tree.
    child_module: fn(&dyn ProjectFiles, usize, &str) -> Option<usize>,
    cheats: cheats::CheatRules,
}

/// One grammar of a language and its files. TypeScript and JavaScript have different grammars.
struct Dialect {
    /// File extensions without the dot.
    extensions: &'static [&'static str],
    grammar: fn() -> tree_sitter::Language,
    /// Nodes whose text is not code: comments and string literals.
    opaque: &'static [&'static str],
    /// Nodes that belong to the definition below them: comments, attributes, decorators.
    leading: &'static [&'static str],
    queries: QuerySet,
}

/// The syntax queries that every language provides.
#[derive(Debug)]
pub struct QuerySet {
    /// `@definition.function`, `.type`, `.module`, `.constant` or `.extension`, its `@name`, and the `@owner` it names.
    pub definitions: SyntaxQuery,
    /// The expectations of tests; see `supervisor_verify::falsify` for the captures.
    pub expectations: SyntaxQuery,
    /// Code that detects how it is run: `@aware`, with the reason in the setting `why`.
    pub awareness: SyntaxQuery,
    /// `@module`, the imported `@name` and its local name `@bound`; see `imports.rs`.
    pub imports: SyntaxQuery,
    /// `@test` with its `@name`, `@skip` for code that keeps a test from running, `@debugging` for debugging leftovers.
    pub tests: SyntaxQuery,
    /// Code that could cheat a test run, captured under the name of a [`CheatRule`]; `@assigned` for assignment targets.
    pub cheats: SyntaxQuery,
}

/// Concatenates the queries of these folders: TypeScript extends the queries of JavaScript.
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
    /// The language of a file, by its extension.
    pub fn of_path(path: &Path) -> Option<&'static Self> {
        LANGUAGES
            .iter()
            .copied()
            .find(|language| language.dialect(path).is_some())
    }

    /// Whether the file is written in this language.
    pub fn owns(&self, path: &Path) -> bool {
        self.dialect(path).is_some()
    }

    /// Parses a file of this language. `None` if the extension does not match, the file is too large or parsing takes too
    /// long. Files with syntax errors are parsed as far as possible.
    pub fn parse<'s>(&self, path: &Path, source: &'s str) -> Option<SyntaxTree<'s>> {
        SyntaxTree::parse(self.dialect(path)?, source)
    }

    fn dialect(&self, path: &Path) -> Option<&'static Dialect> {
        let extension = path.extension()?.to_str()?;
        self.dialects
            .iter()
            .copied()
            .find(|dialect| dialect.extensions.contains(&extension))
    }

    /// The extensions of its files, the usual one first.
    pub fn extensions(&self) -> impl Iterator<Item = &'static str> {
        self.dialects
            .iter()
            .flat_map(|dialect| dialect.extensions)
            .copied()
    }

    /// Whether the file contains the test with this name in a runner's report.
    pub fn contains_test(&self, place: &TestSourceFile<'_>, name: &str) -> bool {
        (self.contains_test)(place, name)
    }

    /// The imports and re-exports of a file.
    pub fn imports(&self, tree: &SyntaxTree<'_>) -> Vec<Import> {
        let mut found = (self.imports)(tree);
        found.truncate(imports::MAX_IMPORTS);
        found
    }

    /// The imports of a file without a statement. `masked` is its text without strings and comments.
    pub fn implicit_imports(&self, masked: &str) -> Vec<Import> {
        let mut found = (self.implicit_imports)(masked);
        found.truncate(imports::MAX_IMPORTS);
        found
    }

    /// Whether code outside the file can use this definition. `head` is its first line.
    pub fn is_public(&self, definition: &Definition, head: &str) -> bool {
        (self.is_public)(definition, head)
    }

    pub fn package_names(&self, manifest: &str) -> Vec<String> {
        (self.package_names)(manifest)
    }

    /// The files that a manifest declares as programs, relative to the manifest.
    pub fn programs(&self, manifest: &str) -> Vec<String> {
        (self.programs)(manifest)
    }

    /// The files that `module` could refer to in the file `from`.
    pub fn locate(&self, files: &dyn ProjectFiles, from: &str, module: &str) -> Vec<usize> {
        (self.locate)(files, from, module)
    }

    pub fn child_module(&self, files: &dyn ProjectFiles, file: usize, name: &str) -> Option<usize> {
        (self.child_module)(files, file, name)
    }
}

/// Whether this is a directory with installed packages, in any language. `is_beside` tells whether a file is in the
/// directory that it is in.
pub fn is_installed_dir(name: &str, is_beside: impl Fn(&str) -> bool) -> bool {
    LANGUAGES.iter().any(|language| {
        language.installed_dirs.contains(&name)
            || (language.vendored_dirs.contains(&name)
                && language.manifests.iter().any(|file| is_beside(file)))
    })
}

/// Whether this is a directory with build output, in any language.
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

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_language_has_file_and_queries() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let names = |dir: &str| -> BTreeSet<String> {
            let entries = std::fs::read_dir(root.join(dir)).expect("the folder exists");
            let stem = |e: std::fs::DirEntry| {
                e.path()
                    .file_stem()
                    .map(|n| n.to_string_lossy().into_owned())
            };
            entries.filter_map(|e| stem(e.expect("readable"))).collect()
        };
        let table: BTreeSet<String> = LANGUAGES.iter().map(|l| l.name.to_owned()).collect();
        assert!(table.is_subset(&names("src")), "one file per language");
        assert_eq!(
            &names("queries") - &BTreeSet::from([String::from("typescript")]),
            table
        );
    }

    #[test]
    fn every_query_of_every_dialect_compiles() {
        for language in LANGUAGES {
            for dialect in language.dialects {
                let file = format!("a.{}", dialect.extensions[0]);
                let tree = language
                    .parse(Path::new(&file), "")
                    .expect("an empty file parses");
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
    fn extensions_are_unique() {
        let all: Vec<&str> = LANGUAGES.iter().flat_map(|l| l.extensions()).collect();
        assert_eq!(
            all.iter().collect::<BTreeSet<_>>().len(),
            all.len(),
            "{all:?}"
        );
        assert_eq!(Language::of_path(Path::new("src/a.tsx")), Some(&JAVASCRIPT));
        assert_eq!(Language::of_path(Path::new("README.md")), None);
    }
}
