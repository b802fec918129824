//! Details of new code that no test run can judge: code that asks whether it is being tested, that knows the test's files
//! or values, or that compares without looking. They are shown; a verifier and the user's settings decide about them.

use std::collections::BTreeSet;
use std::path::Path;

use supervisor_languages::Language;
use supervisor_verify::Flags;
use supervisor_verify::falsify::FalsifiableTests;
use supervisor_verify::protected::role;
use supervisor_verify::test_awareness::{
    find_hard_coded_answers, find_named_files, find_test_awareness, find_test_inputs,
};

use crate::companions::{files_below, is_used};
use crate::mutants::changed_lines;

/// Larger files are not searched for a literal.
const MAX_BYTES: u64 = 512 << 10;

/// A changed file of code in both versions.
pub struct ChangedCode<'a> {
    pub path: &'a Path,
    pub old: &'a str,
    pub new: &'a str,
}

/// The flags of changed code, given the tests that it makes pass, as paths and sources. `root` is where the project's files
/// can be read.
pub fn flags_of(code: &[ChangedCode<'_>], tests: &[(&Path, &str)], root: &Path) -> Flags {
    let expectations: Vec<_> = tests
        .iter()
        .filter_map(|(path, source)| FalsifiableTests::whole_file(path, source))
        .flat_map(|tests| tests.expectations())
        .collect();
    let files = if code.is_empty() {
        Vec::new()
    } else {
        files_below(root)
    };
    let names = names_of_test_files(&files, tests);
    let is_changed = |path: &Path| code.iter().any(|file| file.path == path);
    let is_test = |path: &Path| tests.iter().any(|(test, _)| *test == path);
    let is_elsewhere = |literal: &str| {
        code.iter().any(|file| file.old.contains(literal))
            || files
                .iter()
                .filter(|path| !is_changed(path) && !is_test(path))
                .map(|path| root.join(path))
                .filter(|path| path.symlink_metadata().is_ok_and(|m| m.len() <= MAX_BYTES))
                .any(|path| std::fs::read_to_string(path).is_ok_and(|text| text.contains(literal)))
    };
    let mut flags = Flags::default();
    for file in code {
        let lines: BTreeSet<usize> = changed_lines(file.old, file.new).into_iter().collect();
        let inputs = find_test_inputs(file.path, file.new, &lines, &expectations);
        let found = find_test_awareness(file.path, file.new, &lines)
            .into_iter()
            .chain(find_named_files(file.path, file.new, &lines, &names))
            .chain(find_hard_coded_answers(
                file.path,
                file.new,
                &lines,
                &expectations,
            ))
            .chain(
                inputs
                    .into_iter()
                    .filter_map(|(flag, literal)| (!is_elsewhere(&literal)).then_some(flag)),
            );
        for flag in found {
            flags.raise(flag.id, flag.place, flag.detail);
        }
    }
    flags
}

/// The names of the tests and of the files that they use.
fn names_of_test_files(files: &[std::path::PathBuf], tests: &[(&Path, &str)]) -> BTreeSet<String> {
    let name_of = |path: &Path| Some(path.file_name()?.to_string_lossy().into_owned());
    let mut names = BTreeSet::new();
    for (test, source) in tests {
        let language = Language::of_path(test);
        names.extend(name_of(test));
        let used = files.iter().filter(|path| {
            role(language, path).belongs_to_tests() && is_used(source, language, test, path)
        });
        names.extend(used.filter_map(|path| name_of(path)));
    }
    names
}
