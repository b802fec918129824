//! Entry points for fuzzing: test reports, and test files to falsify.

use std::path::Path;

use super::falsify::FalsifiableTests;

/// One file name per language.
const FILES: &[&str] = &[
    "a.rs",
    "test_a.py",
    "a.test.js",
    "a.test.ts",
    "a.test.tsx",
    "a_test.go",
    "a_spec.rb",
    "a_test.exs",
    "ATest.java",
    "a.cpp",
];

/// Parses a test report. The first byte selects the runner.
pub fn test_report(data: &[u8]) {
    super::runners::test_report(data);
}

/// Falsifies a test file; the first byte selects the language. Text outside the edits stays identical, and the same
/// random seed produces the same text.
pub fn falsifier(data: &[u8]) {
    let Some((language, rest)) = data.split_first() else {
        return;
    };
    let source = String::from_utf8_lossy(rest);
    let path = Path::new(FILES[usize::from(*language) % FILES.len()]);
    let Some(tests) = FalsifiableTests::whole_file(path, &source) else {
        return;
    };
    tests.check_invariants(&source);
}
