//! Details of new code that no test run can judge: code that asks whether it is being tested, or that contains both the
//! input and the result of a test. They are shown and decide nothing.

use std::collections::BTreeSet;
use std::path::Path;

use supervisor_verify::Flags;
use supervisor_verify::falsify::FalsifiableTests;
use supervisor_verify::test_awareness::{find_hard_coded_answers, find_test_awareness};

use crate::mutants::changed_lines;

/// A changed file of code in both versions.
pub struct ChangedCode<'a> {
    pub path: &'a Path,
    pub old: &'a str,
    pub new: &'a str,
}

/// The flags of changed code, given the tests that it makes pass, as paths and sources.
pub fn flags_of(code: &[ChangedCode<'_>], tests: &[(&Path, &str)]) -> Flags {
    let expectations: Vec<_> = tests
        .iter()
        .filter_map(|(path, source)| FalsifiableTests::whole_file(path, source))
        .flat_map(|tests| tests.expectations())
        .collect();
    let mut flags = Flags::default();
    for file in code {
        let lines: BTreeSet<usize> = changed_lines(file.old, file.new).into_iter().collect();
        let found = find_test_awareness(file.path, file.new, &lines)
            .into_iter()
            .chain(find_hard_coded_answers(
                file.path,
                file.new,
                &lines,
                &expectations,
            ));
        for flag in found {
            flags.raise(flag.id, flag.place, flag.detail);
        }
    }
    flags
}
