//! Parses JUnit XML, which nearly every runner can write. [`parse`] returns the cases; each runner builds the test names
//! itself, because runners fill the attributes differently.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::outcome::TestState;
use std::path::Path;

use super::report::{TestRunReport, failed};

/// One `testcase` element.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct JunitCase {
    /// The names of the enclosing suites, outermost first.
    pub(super) suites: Vec<String>,
    pub(super) classname: String,
    pub(super) name: String,
    /// The `file` of the case, or else of the nearest suite that has one.
    pub(super) file: String,
    /// The `failure`, `error` or `skipped` element, if any.
    pub(super) verdict: Option<JunitVerdict>,
    /// The `status` attribute. Some reports mark skipped tests only here, as `disabled` or `notrun`.
    pub(super) status: String,
    /// Its standard output, if the report contains it.
    pub(super) output: String,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct JunitVerdict {
    pub(super) kind: VerdictKind,
    pub(super) message: String,
    pub(super) body: String,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum VerdictKind {
    #[default]
    Failure,
    Error,
    Skipped,
}

/// How test names are built from the attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Naming {
    /// File, suite titles and case title: `a.test.ts > sums > adds`.
    Titles,
    /// File, class and name, as far as the report has them.
    General,
}

/// Every case of a document; `None` if the document is truncated or not JUnit XML.
pub(super) fn parse(xml: &str) -> Option<Vec<JunitCase>> {
    let mut reader = Reader::from_str(xml);
    let mut cases: Vec<JunitCase> = Vec::new();
    let mut suites: Vec<(String, String)> = Vec::new();
    let mut case: Option<JunitCase> = None;
    let mut inside = None;
    let (mut depth, mut has_root) = (0_usize, false);
    loop {
        let event = reader.read_event().ok()?;
        match &event {
            Event::Start(e) | Event::Empty(e) => {
                let is_empty = matches!(event, Event::Empty(_));
                depth += usize::from(!is_empty);
                match e.local_name().as_ref() {
                    "testsuites" => has_root = true,
                    "testsuite" => {
                        has_root = true;
                        if !is_empty {
                            suites.push((attribute(e, "name"), attribute(e, "file")));
                        }
                    }
                    "testcase" => {
                        let own_file = attribute(e, "file");
                        let suite_file = suites
                            .iter()
                            .rev()
                            .map(|(_, file)| file)
                            .find(|file| !file.is_empty());
                        let new = JunitCase {
                            suites: suites.iter().map(|(name, _)| name.clone()).collect(),
                            classname: attribute(e, "classname"),
                            name: attribute(e, "name"),
                            file: if own_file.is_empty() {
                                suite_file.cloned().unwrap_or_default()
                            } else {
                                own_file
                            },
                            verdict: None,
                            status: attribute(e, "status"),
                            output: String::new(),
                        };
                        if is_empty {
                            cases.push(new);
                        } else {
                            case = Some(new);
                        }
                    }
                    name => {
                        if let (Some(kind), Some(case)) =
                            (VerdictKind::from_element(name), &mut case)
                        {
                            case.verdict = Some(JunitVerdict {
                                kind,
                                message: attribute(e, "message"),
                                body: String::new(),
                            });
                            inside = (!is_empty).then_some(TextTarget::Verdict);
                        } else if name == "system-out" {
                            inside = (!is_empty).then_some(TextTarget::Output);
                        }
                    }
                }
            }
            Event::Text(text) => add_text(&mut case, inside, text),
            Event::CData(text) => add_text(&mut case, inside, text),
            Event::GeneralRef(reference) => {
                let known =
                    quick_xml::escape::resolve_predefined_entity(reference).map(str::to_owned);
                let char_ref = reference
                    .resolve_char_ref()
                    .ok()
                    .flatten()
                    .map(String::from);
                add_text(&mut case, inside, &known.or(char_ref).unwrap_or_default());
            }
            Event::End(e) => {
                depth = depth.checked_sub(1)?;
                match e.local_name().as_ref() {
                    "system-out" => inside = None,
                    name if VerdictKind::from_element(name).is_some() => inside = None,
                    "testcase" => cases.push(case.take()?),
                    "testsuite" => drop(suites.pop()),
                    _ => {}
                }
            }
            Event::Eof => break,
            _ => {}
        }
    }
    (has_root && depth == 0).then_some(cases)
}

/// Converts the cases into a report, with names built by `naming`.
pub(super) fn into_report(cases: &[JunitCase], naming: Naming) -> TestRunReport {
    let mut report = TestRunReport::default();
    for case in cases {
        report.add(&case.test_name(naming), case.state());
    }
    report
}

impl JunitCase {
    /// The case with its file relative to the project; PHPUnit and others write absolute paths.
    pub(super) fn relative_to(&self, root: &Path) -> Self {
        let file = Path::new(&self.file).strip_prefix(root);
        Self {
            file: file.map_or_else(|_| self.file.clone(), |path| path.display().to_string()),
            ..self.clone()
        }
    }

    pub(super) fn state(&self) -> TestState {
        match &self.verdict {
            None if matches!(self.status.as_str(), "disabled" | "notrun") => TestState::Skipped,
            None => TestState::Passed,
            Some(JunitVerdict {
                kind: VerdictKind::Skipped,
                ..
            }) => TestState::Skipped,
            Some(JunitVerdict { message, body, .. }) if body.contains(message.as_str()) => {
                failed(body)
            }
            Some(JunitVerdict { message, body, .. }) => failed(format!("{message}\n{body}")),
        }
    }

    fn test_name(&self, naming: Naming) -> String {
        let mut parts: Vec<&str> = Vec::new();
        match naming {
            Naming::Titles => {
                parts.push(&self.file);
                parts.extend(
                    self.suites
                        .iter()
                        .map(String::as_str)
                        .filter(|s| *s != self.file),
                );
            }
            Naming::General => {
                parts.push(&self.file);
                parts.push(&self.classname);
            }
        }
        parts.push(&self.name);
        parts.retain(|part| !part.is_empty());
        parts.dedup();
        parts.join(" > ")
    }
}

impl VerdictKind {
    fn from_element(element: &str) -> Option<Self> {
        match element {
            "failure" => Some(Self::Failure),
            "error" => Some(Self::Error),
            "skipped" => Some(Self::Skipped),
            _ => None,
        }
    }
}

/// The element of a case that text is added to.
#[derive(Debug, Clone, Copy)]
enum TextTarget {
    Verdict,
    Output,
}

fn add_text(case: &mut Option<JunitCase>, inside: Option<TextTarget>, text: &str) {
    let (Some(case), Some(inside)) = (case, inside) else {
        return;
    };
    match (inside, &mut case.verdict) {
        (TextTarget::Output, _) => case.output.push_str(text),
        (TextTarget::Verdict, Some(verdict)) => verdict.body.push_str(text),
        (TextTarget::Verdict, None) => {}
    }
}

fn attribute(element: &BytesStart<'_>, name: &str) -> String {
    let found = element
        .attributes()
        .flatten()
        .find(|a| a.key.as_ref() == name);
    let raw = found.map(|a| a.value.into_owned()).unwrap_or_default();
    quick_xml::escape::unescape(&raw).map_or_else(|_| raw.clone(), std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::super::outcome::TestName;
    use super::*;

    const RUN: &str = r#"<?xml version="1.0"?><testsuites name="bun test"><testsuite name="a.test.ts" file="a.test.ts">
        <testsuite name="sums" file="a.test.ts"><testcase name="adds" classname="sums" file="a.test.ts" />
        <testcase name="bad" classname="sums"><failure message="no"><![CDATA[expected <3>]]></failure></testcase>
        <testcase name="later" classname="sums"><skipped /></testcase></testsuite></testsuite></testsuites>"#;

    #[test]
    fn names_are_built_from_attributes() {
        let cases = parse(RUN).expect("a complete report");
        let titles = into_report(&cases, Naming::Titles).tests;
        assert_eq!(
            titles[&TestName::from("a.test.ts > sums > adds")],
            TestState::Passed
        );
        assert!(
            matches!(&titles[&TestName::from("a.test.ts > sums > bad")], TestState::Failed(m) if m == "no\nexpected <3>")
        );
        assert_eq!(
            titles[&TestName::from("a.test.ts > sums > later")],
            TestState::Skipped
        );
        let general = into_report(
            &parse(r#"<testsuite><testcase classname="x.YTest" name="adds()"/></testsuite>"#)
                .expect("a complete report"),
            Naming::General,
        );
        assert_eq!(
            general.tests.keys().collect::<Vec<_>>(),
            [&TestName::from("x.YTest > adds()")]
        );
    }

    #[test]
    fn truncated_report_is_rejected() {
        for cut in (0..RUN.len() - 1).filter(|i| RUN.is_char_boundary(*i)) {
            assert_eq!(parse(&RUN[..cut]), None, "cut at {cut}");
        }
        assert_eq!(parse("<html></html>"), None);
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_reports_do_not_panic(text in super::super::garbage::garbage(RUN)) {
            let _ = parse(&text).map(|cases| into_report(&cases, Naming::General));
        }
    }

    #[test]
    fn absolute_files_become_relative_to_the_project() {
        let case = |file: &str| JunitCase {
            file: file.to_owned(),
            ..JunitCase::default()
        };
        for (file, expected) in [
            ("/work/shop/test/CartTest.php", "test/CartTest.php"),
            ("/elsewhere/CartTest.php", "/elsewhere/CartTest.php"),
            ("test/CartTest.php", "test/CartTest.php"),
            ("", ""),
        ] {
            assert_eq!(
                case(file).relative_to(Path::new("/work/shop")).file,
                expected
            );
        }
    }
}
