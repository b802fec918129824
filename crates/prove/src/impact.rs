//! The tests that a change can affect: those of changed test files, and of test files that name or import what changed.

use std::collections::BTreeSet;
use std::path::Path;

use supervisor_languages::{ImportedNames, Language};
use supervisor_verify::falsify::FalsifiableTests;
use supervisor_verify::{TestName, TestRun, TestState};

use crate::changed_tests::{TestFile, TestFinder};
use crate::prove::ProofRun;

/// More test files are not searched.
const MAX_SEARCHED_BYTES: usize = 64 * 1024 * 1024;
/// File names that stand for the directory they are in.
const DIRECTORY_FILES: [&str; 5] = ["__init__", "index", "lib", "main", "mod"];

impl ProofRun<'_> {
    /// Test files that the change touches, or that name one of these definitions or import a changed file; with their tests
    /// in `run`. Empty: any test can be affected.
    pub(crate) fn impacted_test_files(
        &self,
        run: &TestRun,
        definitions: &BTreeSet<String>,
    ) -> Vec<TestFile> {
        let finder = self.finder();
        let modules: BTreeSet<String> = self
            .change
            .changed()
            .filter(|(path, _)| !finder.role(path).is_protected())
            .filter_map(|(path, _)| module_name(path))
            .collect();
        let mut files =
            finder.changed_test_files(&self.change, run, |versions| versions.change.as_deref());
        let mut searched = 0;
        for path in self.unchanged_test_files() {
            let Some(source) = self.read_unchanged(&path) else {
                continue;
            };
            searched += source.len();
            if searched > MAX_SEARCHED_BYTES {
                return Vec::new();
            }
            if definitions.iter().any(|name| mentions(&source, name))
                || imports_one_of(&path, &source, &modules)
            {
                files.push(finder.test_file(&path, &source, run));
            }
        }
        files
    }
}

/// The tests of these files that pass in `run`.
pub(crate) fn passed_tests(files: &[TestFile], run: &TestRun) -> Vec<TestName> {
    let all: BTreeSet<&TestName> = files.iter().flat_map(|file| &file.tests).collect();
    all.into_iter()
        .filter(|name| run.state(name) == Some(&TestState::Passed))
        .cloned()
        .collect()
}

/// The first test that names one of these definitions, the innermost first.
pub(crate) fn test_that_names(
    definitions: &[String],
    files: &[TestFile],
    finder: TestFinder<'_>,
) -> Option<TestName> {
    definitions.iter().rev().find_map(|definition| {
        files.iter().find_map(|file| {
            let relative = finder.suite_relative(&file.path);
            let tests = FalsifiableTests::find(&relative, &file.source, &file.tests)?;
            let names_it = |test: &&TestName| {
                let range = tests.range_of(test);
                range.is_some_and(|range| mentions(&file.source[range], definition))
            };
            file.tests.iter().find(names_it).cloned()
        })
    })
}

/// The name by which other files import this one.
fn module_name(path: &Path) -> Option<String> {
    let stem = path.file_stem()?.to_str()?;
    if DIRECTORY_FILES.contains(&stem) {
        return Some(path.parent()?.file_name()?.to_str()?.to_owned());
    }
    Some(stem.to_owned())
}

/// Whether the file imports a module of one of these names.
fn imports_one_of(path: &Path, source: &str, modules: &BTreeSet<String>) -> bool {
    let Some(language) = Language::of_path(path) else {
        return false;
    };
    let Some(tree) = language.parse(path, source) else {
        return false;
    };
    language.imports(&tree).iter().any(|import| {
        let last = import.module.rsplit(['/', '.', ':']).next();
        // `./cart.js` ends with the extension of the file.
        let stem = Path::new(&import.module)
            .file_stem()
            .and_then(|stem| stem.to_str());
        let name = match &import.names {
            ImportedNames::Named { name, .. } => Some(name.as_str()),
            ImportedNames::Whole { .. } | ImportedNames::All => None,
        };
        [last, stem, name]
            .into_iter()
            .flatten()
            .any(|word| modules.contains(word))
    })
}

/// Whether the text contains the name as a whole word.
pub(crate) fn mentions(source: &str, name: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    source.match_indices(name).any(|(at, _)| {
        !source[..at].ends_with(is_word) && !source[at + name.len()..].starts_with(is_word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_whole_words_only() {
        assert!(mentions("a.double(1)", "double"));
        assert!(!mentions("doubles(1)", "double"));
    }

    #[test]
    fn import_of_a_changed_file_is_found() {
        for (changed, test, source, found) in [
            (
                "shop/cart.py",
                "test_a.py",
                "from shop.cart import Cart\n",
                true,
            ),
            ("shop/cart.py", "test_a.py", "from shop import cart\n", true),
            (
                "shop/cart.py",
                "test_a.py",
                "from shop import till\n",
                false,
            ),
            (
                "src/cart.js",
                "a.test.js",
                "import { add } from './cart.js'\n",
                true,
            ),
            (
                "src/cart/index.ts",
                "a.test.ts",
                "import { add } from '../cart'\n",
                true,
            ),
            ("src/cart.rs", "tests/a.rs", "use shop::cart::Cart;\n", true),
            (
                "lib/shop/cart.rb",
                "spec/a_spec.rb",
                "require 'shop/cart'\n",
                true,
            ),
        ] {
            let modules = module_name(Path::new(changed)).into_iter().collect();
            let is_found = imports_one_of(Path::new(test), source, &modules);
            assert_eq!(is_found, found, "{changed}: {source}");
        }
    }
}
