//! Fuzz target that feeds arbitrary text to the report parsers of all runners.

use std::path::Path;

use super::super::junit;
use super::super::report::TestRunReport;
use super::{ava, cargo, ctest, go, jest, maven, nextest, node_test, pytest, rspec};

type ReportParser = fn(&str) -> Option<TestRunReport>;

const PARSERS: &[ReportParser] = &[
    |text| {
        Some(junit::into_report(
            &junit::parse(text)?,
            junit::Naming::Titles,
        ))
    },
    |text| Some(maven::report_from_cases(&junit::parse(text)?)),
    |text| pytest::parse(text, &|file| file.len() % 2 == 0),
    |text| jest::parse(text, Path::new("/project")),
    |text| node_test::parse(text, Path::new("/project")),
    |text| ava::parse(text, &[]),
    ctest::parse,
    nextest::parse,
    |text| rspec::parse(text, Path::new("/project")),
];

/// The first byte selects the parser for the rest. Checks that a report has no more entries than bytes.
pub(crate) fn test_report(data: &[u8]) {
    let Some((runner, rest)) = data.split_first() else {
        return;
    };
    let text = String::from_utf8_lossy(rest);
    if let Some(parse) = PARSERS.get(usize::from(*runner) % (PARSERS.len() + 1)) {
        let Some(report) = parse(&text) else { return };
        assert!(
            report.tests.len() <= text.len(),
            "{} tests in {} bytes",
            report.tests.len(),
            text.len()
        );
        assert!(report.errors.len() <= text.len() && report.doubts.len() <= text.len());
    } else {
        assert!(go::count_packages(&text) <= text.len());
        let (programs, doctests) = cargo::count_programs(&text);
        assert!(programs + doctests <= text.len());
    }
}
