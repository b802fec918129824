//! Any text as a report of tests, and as a file of tests that is to be made wrong.

use std::path::Path;

use super::falsify::FalsifiableTests;

/// One ending for each language.
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

/// The report of a test runner; the first byte says of which.
pub fn test_report(data: &[u8]) {
    super::runners::test_report(data);
}

/// The first byte says in which language the tests are written. What is not meant to change stays, to the byte, and the
/// same dice make the same text.
pub fn falsifier(data: &[u8]) {
    let Some((language, rest)) = data.split_first() else {
        return;
    };
    let source = String::from_utf8_lossy(rest);
    let path = Path::new(FILES[usize::from(*language) % FILES.len()]);
    let Some(tests) = FalsifiableTests::whole_file(path, &source) else {
        return;
    };
    tests.try_all(&source);
}
