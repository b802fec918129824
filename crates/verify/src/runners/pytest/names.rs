//! Parses pytest's JUnit report (family `xunit1`). Converts test names back into the node ids that pytest accepts, and puts
//! the error first in each failure message.

use super::super::super::build::BuildError;
use super::super::super::junit::{self, JunitCase, JunitVerdict, VerdictKind};
use super::super::super::outcome::{TestName, TestState};
use super::super::super::report::{TestRunReport, failed};

/// `None` if the document is truncated. `is_file` tells whether a path, relative to where the tests ran, is a file.
pub(super) fn parse(xml: &str, is_file: &dyn Fn(&str) -> bool) -> Option<TestRunReport> {
    let mut report = TestRunReport::default();
    for case in junit::parse(xml)? {
        if let Some(JunitVerdict {
            kind: VerdictKind::Error,
            message,
            body,
        }) = &case.verdict
            && message == "collection failure"
        {
            report.errors.push(collection_error(&case, body));
            continue;
        }
        let name = TestName(node_id(&case, is_file));
        let state = match &case.verdict {
            Some(verdict) if verdict.kind != VerdictKind::Skipped => failed(error_first(verdict)),
            _ => case.state(),
        };
        // A test whose clean-up fails too is listed twice, and a repeated test may have both results. Keep the failure.
        let is_worse = matches!(state, TestState::Failed(_)) || !report.tests.contains_key(&name);
        if is_worse {
            report.tests.insert(name, state);
        }
    }
    Some(report)
}

/// The node id of a case: `tests/test_a.py::TestK::test_p` for the class `tests.test_a.TestK`. Derived from the class
/// rather than from `file`, because `file` of an inherited test is the file that defines it.
fn node_id(case: &JunitCase, is_file: &dyn Fn(&str) -> bool) -> String {
    let parts: Vec<&str> = case
        .classname
        .split('.')
        .filter(|p| !p.is_empty())
        .collect();
    // pytest's root directory may be above the directory the tests ran in, so try shorter paths too.
    for from in 0..parts.len() {
        for to in (from + 1..=parts.len()).rev() {
            let file = format!("{}.py", parts[from..to].join("/"));
            if is_file(&file) {
                let classes: String = parts[to..].iter().map(|c| format!("{c}::")).collect();
                return format!("{file}::{classes}{}", case.name);
            }
        }
    }
    let module = case.file.trim_end_matches(".py").replace(['/', '\\'], ".");
    if case.file.is_empty() {
        return format!("{}::{}", case.classname, case.name);
    }
    let classes = case.classname.strip_prefix(&module).unwrap_or_default();
    let classes: String = classes
        .split('.')
        .filter(|c| !c.is_empty())
        .map(|c| format!("{c}::"))
        .collect();
    format!("{}::{classes}{}", case.file, case.name)
}

/// The error lines, then the whole traceback, because the beginning of a traceback is of little use.
fn error_first(verdict: &JunitVerdict) -> String {
    let error_lines: Vec<&str> = verdict
        .body
        .lines()
        .filter_map(|l| l.strip_prefix("E  "))
        .map(str::trim)
        .collect();
    if error_lines.is_empty() {
        return match verdict.body.contains(&verdict.message) {
            true => verdict.body.clone(),
            false => format!("{}\n{}", verdict.message, verdict.body),
        };
    }
    format!("{}\n\n{}", error_lines.join("\n"), verdict.body)
}

/// The error and its location, from the traceback of a file that could not be imported.
fn collection_error(case: &JunitCase, traceback: &str) -> BuildError {
    let message: Vec<&str> = traceback
        .lines()
        .filter_map(|l| l.strip_prefix("E "))
        .map(str::trim)
        .collect();
    let message = if message.is_empty() {
        traceback.trim().to_owned()
    } else {
        message.join("\n")
    };
    let last_error = message
        .lines()
        .rev()
        .find(|l| l.contains("Error"))
        .unwrap_or(&message)
        .to_owned();
    let file = if case.file.is_empty() {
        format!("{}.py", case.name.replace('.', "/"))
    } else {
        case.file.clone()
    };
    let in_file = traceback.lines().rev().find_map(|l| {
        let (location, _) = l.split_once(": in <module>")?;
        let (path, line) = location.rsplit_once(':')?;
        (file.ends_with(path) || path.ends_with(&file)).then(|| line.parse().ok())?
    });
    let in_syntax = || {
        let (_, rest) = traceback.split_once("\", line ")?;
        rest.split(|c: char| !c.is_ascii_digit())
            .next()?
            .parse()
            .ok()
    };
    let mut error = BuildError::new(&last_error).at(file, in_file.or_else(in_syntax));
    if message != last_error {
        error.message = format!(
            "{last_error}\n{}",
            supervisor_text::words::cut_middle(&message, 1_500)
        );
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_file(file: &str) -> bool {
        ["tests/test_a.py", "tests/test_c.py"].contains(&file)
    }

    const RUN: &str = r#"<?xml version="1.0" encoding="utf-8"?><testsuites name="pytest tests"><testsuite name="pytest" errors="1" failures="1" skipped="2" tests="4"><testcase classname="tests.test_a" name="test_ok" file="tests/test_a.py" line="1" time="0.000" /><testcase classname="tests.test_a.TestK" name="test_p[a b]" file="tests/test_a.py" line="3"><failure message="AssertionError: why not&#10;assert 'a b' == 1">self = &lt;test_a.TestK object&gt;
E   AssertionError: why not

tests/test_a.py:5: AssertionError</failure><system-out>noise</system-out></testcase><testcase classname="tests.test_a" name="test_s" file="tests/test_a.py" line="5"><skipped type="pytest.skip" message="later">x</skipped></testcase><testcase classname="tests.test_a" name="test_ok" file="tests/test_a.py" line="1"><error message="failed on teardown">boom</error></testcase></testsuite></testsuites>"#;

    const BROKEN: &str = r#"<testsuites><testsuite name="pytest" errors="1"><testcase classname="" name="tests.test_b" file="tests/test_b.py" time="0.000"><error message="collection failure">ImportError while importing test module '/p/tests/test_b.py'.
tests/test_b.py:3: in &lt;module&gt;
    from x import nothing_here
E   ImportError: cannot import name 'nothing_here' from 'x' (/p/x.py)</error></testcase></testsuite></testsuites>"#;

    #[test]
    fn names_are_node_ids_and_worst_result_counts() {
        let report = parse(RUN, &is_file).expect("a complete report");
        let name = |n: &str| &report.tests[&TestName(n.to_owned())];
        let TestState::Failed(message) = name("tests/test_a.py::TestK::test_p[a b]") else {
            panic!("{report:?}")
        };
        assert!(
            message.contains("<test_a.TestK object>") && message.contains("why not"),
            "{message}"
        );
        assert_eq!(name("tests/test_a.py::test_s"), &TestState::Skipped);
        assert!(
            matches!(name("tests/test_a.py::test_ok"), TestState::Failed(m) if m.contains("teardown"))
        );
        assert_eq!(report.tests.len(), 3);
    }

    #[test]
    fn unimportable_file_is_a_build_error() {
        let report = parse(BROKEN, &is_file).expect("a complete report");
        let error = &report.errors[0];
        assert_eq!(
            (error.file.as_deref(), error.line),
            (Some("tests/test_b.py"), Some(3))
        );
        assert_eq!(error.missing, ["nothing_here"]);
        assert!(report.tests.is_empty());
    }

    #[test]
    fn inherited_test_belongs_to_running_class() {
        let case = |class: &str| {
            format!(r#"<testcase classname="{class}" name="test_x" file="tests/test_a.py"/>"#)
        };
        let both = format!(
            "<testsuite>{}{}</testsuite>",
            case("tests.test_a.TestA"),
            case("tests.test_c.TestC")
        );
        let names: Vec<String> = parse(&both, &is_file)
            .expect("a complete report")
            .tests
            .into_keys()
            .map(|n| n.0)
            .collect();
        assert_eq!(
            names,
            [
                "tests/test_a.py::TestA::test_x",
                "tests/test_c.py::TestC::test_x"
            ]
        );
        let above = format!("<testsuite>{}</testsuite>", case("sub.tests.test_c.TestC"));
        let names: Vec<String> = parse(&above, &is_file)
            .expect("a complete report")
            .tests
            .into_keys()
            .map(|n| n.0)
            .collect();
        assert_eq!(
            names,
            ["tests/test_c.py::TestC::test_x"],
            "relative to the directory it ran in"
        );
        let report = parse(RUN, &is_file).expect("a complete report");
        let TestState::Failed(message) =
            &report.tests[&TestName::from("tests/test_a.py::TestK::test_p[a b]")]
        else {
            panic!("{report:?}")
        };
        assert!(
            message.starts_with("AssertionError: why not\n"),
            "{message}"
        );
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_reports_do_not_panic(text in super::super::super::super::garbage::garbage(RUN), other in super::super::super::super::garbage::garbage(BROKEN)) {
            let _ = (parse(&text, &is_file), parse(&other, &is_file));
        }
    }
}
