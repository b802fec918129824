//! The JUnit report of pytest (family `xunit1`), read into names that pytest itself accepts.

use std::collections::BTreeMap;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::super::super::build::BuildError;
use super::super::super::outcome::{State, TestName};
use super::super::super::report::{Report, failed};

/// One `testcase` element.
#[derive(Debug, Default)]
struct Case {
    classname: String,
    name: String,
    file: String,
    /// The element inside that is not `properties` or captured output: kind, message, text.
    verdict: Option<(Kind, String, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Failure,
    Error,
    Skipped,
}

/// `None` if the document is not whole.
pub(super) fn parse(xml: &str) -> Option<Report> {
    let mut reader = Reader::from_str(xml);
    let mut tests: BTreeMap<TestName, State> = BTreeMap::new();
    let mut report = Report::default();
    let mut case: Option<Case> = None;
    let mut inside_verdict = false;
    let (mut depth, mut seen_root) = (0_usize, false);
    loop {
        let event = reader.read_event().ok()?;
        match &event {
            Event::Start(e) | Event::Empty(e) => {
                let is_empty = matches!(event, Event::Empty(_));
                depth += usize::from(!is_empty);
                match e.local_name().as_ref() {
                    "testsuites" | "testsuite" => seen_root = true,
                    "testcase" => {
                        let new = Case {
                            classname: attribute(e, "classname"),
                            name: attribute(e, "name"),
                            file: attribute(e, "file"),
                            verdict: None,
                        };
                        if is_empty { finish(new, &mut tests, &mut report) } else { case = Some(new) }
                    }
                    name => {
                        if let (Some(kind), Some(case)) = (Kind::of(name), &mut case) {
                            case.verdict = Some((kind, attribute(e, "message"), String::new()));
                            inside_verdict = !is_empty;
                        }
                    }
                }
            }
            Event::Text(text) => {
                if let Some((_, _, body)) = case.as_mut().and_then(|c| c.verdict.as_mut()).filter(|_| inside_verdict) {
                    body.push_str(text);
                }
            }
            Event::GeneralRef(reference) => {
                if let Some((_, _, body)) = case.as_mut().and_then(|c| c.verdict.as_mut()).filter(|_| inside_verdict) {
                    let known = quick_xml::escape::resolve_predefined_entity(reference).map(str::to_owned);
                    let char_ref = reference.resolve_char_ref().ok().flatten().map(String::from);
                    body.push_str(&known.or(char_ref).unwrap_or_default());
                }
            }
            Event::End(e) => {
                depth = depth.checked_sub(1)?;
                inside_verdict &= Kind::of(e.local_name().as_ref()).is_none();
                if e.local_name().as_ref() == "testcase" {
                    finish(case.take()?, &mut tests, &mut report);
                }
            }
            Event::Eof => break,
            _ => {}
        }
    }
    report.tests = tests;
    (seen_root && depth == 0).then_some(report)
}

impl Kind {
    fn of(element: &str) -> Option<Self> {
        match element {
            "failure" => Some(Self::Failure),
            "error" => Some(Self::Error),
            "skipped" => Some(Self::Skipped),
            _ => None,
        }
    }
}

fn attribute(element: &BytesStart<'_>, name: &str) -> String {
    let found = element.attributes().flatten().find(|a| a.key.as_ref() == name);
    let raw = found.map(|a| a.value.into_owned()).unwrap_or_default();
    quick_xml::escape::unescape(&raw).map_or_else(|_| raw.clone(), std::borrow::Cow::into_owned)
}

fn finish(case: Case, tests: &mut BTreeMap<TestName, State>, report: &mut Report) {
    if let Some((Kind::Error, message, body)) = &case.verdict
        && message == "collection failure"
    {
        report.errors.push(collection_error(&case, body));
        return;
    }
    let name = TestName(case.id());
    let state = match case.verdict {
        None => State::Passed,
        Some((Kind::Skipped, _, _)) => State::Skipped,
        Some((Kind::Failure | Kind::Error, message, body)) => {
            failed(if body.contains(&message) { body } else { format!("{message}\n{body}") })
        }
    };
    // A test that fails and whose clean-up fails too is there twice; a repeated one may have both results.
    let worse = matches!(state, State::Failed(_)) || !tests.contains_key(&name);
    if worse {
        tests.insert(name, state);
    }
}

impl Case {
    /// `tests.test_a.TestK` in `tests/test_a.py` is `tests/test_a.py::TestK::test_p`.
    fn id(&self) -> String {
        let module = self.file.trim_end_matches(".py").replace(['/', '\\'], ".");
        let classes = match self.classname.strip_prefix(&module) {
            Some(rest) if !self.file.is_empty() => rest.trim_start_matches('.'),
            _ if self.file.is_empty() => return format!("{}::{}", self.classname, self.name),
            // A root directory below the one that was asked: what is left behind the file's own name counts.
            _ => {
                let stem = module.rsplit('.').next().unwrap_or(&module);
                self.classname.split_once(&format!("{stem}.")).map_or("", |(_, rest)| rest)
            }
        };
        let classes: String = classes.split('.').filter(|c| !c.is_empty()).map(|c| format!("{c}::")).collect();
        format!("{}::{classes}{}", self.file, self.name)
    }
}

/// The error and its place, from the traceback of a file that could not be imported.
fn collection_error(case: &Case, traceback: &str) -> BuildError {
    let said: Vec<&str> = traceback.lines().filter_map(|l| l.strip_prefix("E ")).map(str::trim).collect();
    let said = if said.is_empty() { traceback.trim().to_owned() } else { said.join("\n") };
    let last = said.lines().rev().find(|l| l.contains("Error")).unwrap_or(&said).to_owned();
    let file = if case.file.is_empty() { format!("{}.py", case.name.replace('.', "/")) } else { case.file.clone() };
    let in_file = traceback.lines().rev().find_map(|l| {
        let (place, _) = l.split_once(": in <module>")?;
        let (path, line) = place.rsplit_once(':')?;
        (file.ends_with(path) || path.ends_with(&file)).then(|| line.parse().ok())?
    });
    let in_syntax = || {
        let (_, rest) = traceback.split_once("\", line ")?;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    let mut error = BuildError::new(&last).at(file, in_file.or_else(in_syntax));
    if said != last {
        error.message = format!("{last}\n{}", crate::words::cut_middle(&said, 1_500));
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = r#"<?xml version="1.0" encoding="utf-8"?><testsuites name="pytest tests"><testsuite name="pytest" errors="1" failures="1" skipped="2" tests="4"><testcase classname="tests.test_a" name="test_ok" file="tests/test_a.py" line="1" time="0.000" /><testcase classname="tests.test_a.TestK" name="test_p[a b]" file="tests/test_a.py" line="3"><failure message="AssertionError: why not&#10;assert 'a b' == 1">self = &lt;test_a.TestK object&gt;
E   AssertionError: why not

tests/test_a.py:5: AssertionError</failure><system-out>noise</system-out></testcase><testcase classname="tests.test_a" name="test_s" file="tests/test_a.py" line="5"><skipped type="pytest.skip" message="later">x</skipped></testcase><testcase classname="tests.test_a" name="test_ok" file="tests/test_a.py" line="1"><error message="failed on teardown">boom</error></testcase></testsuite></testsuites>"#;

    const BROKEN: &str = r#"<testsuites><testsuite name="pytest" errors="1"><testcase classname="" name="tests.test_b" file="tests/test_b.py" time="0.000"><error message="collection failure">ImportError while importing test module '/p/tests/test_b.py'.
tests/test_b.py:3: in &lt;module&gt;
    from x import nothing_here
E   ImportError: cannot import name 'nothing_here' from 'x' (/p/x.py)</error></testcase></testsuite></testsuites>"#;

    #[test]
    fn names_are_those_pytest_accepts_and_the_worst_result_counts() {
        let report = parse(RUN).expect("whole");
        let name = |n: &str| &report.tests[&TestName(n.to_owned())];
        let State::Failed(message) = name("tests/test_a.py::TestK::test_p[a b]") else { panic!("{report:?}") };
        assert!(message.contains("<test_a.TestK object>") && message.contains("why not"), "{message}");
        assert_eq!(name("tests/test_a.py::test_s"), &State::Skipped);
        assert!(matches!(name("tests/test_a.py::test_ok"), State::Failed(m) if m.contains("teardown")));
        assert_eq!(report.tests.len(), 3);
    }

    #[test]
    fn a_file_that_cannot_be_imported_is_a_build_error_with_its_line_and_the_missing_name() {
        let report = parse(BROKEN).expect("whole");
        let error = &report.errors[0];
        assert_eq!((error.file.as_deref(), error.line), (Some("tests/test_b.py"), Some(3)));
        assert_eq!(error.missing, ["nothing_here"]);
        assert!(report.tests.is_empty());
    }

    #[test]
    fn half_a_report_is_none() {
        for cut in (0..RUN.len() - 1).filter(|i| RUN.is_char_boundary(*i)) {
            assert_eq!(parse(&RUN[..cut]), None, "cut at {cut}");
        }
        assert_eq!(parse("<html></html>"), None);
    }

    proptest::proptest! {
        #[test]
        fn no_report_is_too_odd(text in super::super::super::super::garbage::garbage(RUN), other in super::super::super::super::garbage::garbage(BROKEN)) {
            let _ = (parse(&text), parse(&other));
        }
    }
}
