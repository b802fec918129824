//! The report format of our own reporters, for runners without a usable one. Each line is a JSON object with a `state`:
//!
//! - `passed`, `skipped`, `failed`: the result of a `test` in a `file`, with a `message`
//! - `unloaded`: a `file` that could not be loaded, and why
//! - `doubt`: a reason not to trust a passing run
//! - `end`: the last line of a process; a report without it is incomplete
//! - `begin`: the first line of a process, if there can be several. Their results count even if one of them never ends.

use std::path::Path;

use serde::Deserialize;

use super::build::BuildError;
use super::outcome::TestState;
use super::report::{TestRunReport, failed};
use supervisor_text::words;

/// The name of the report, which is in the same private directory as the reporter.
pub(super) const FILE: &str = "report.jsonl";

#[derive(Deserialize)]
struct Line {
    state: State,
    #[serde(default)]
    test: String,
    #[serde(default)]
    file: String,
    #[serde(default)]
    message: String,
    /// Orders tests of the same name that do not run in the order of the source.
    #[serde(default)]
    order: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Begin,
    Passed,
    Skipped,
    Failed,
    Unloaded,
    Doubt,
    End,
}

/// `None` if the report is incomplete. A test is named by its file, relative to `root`, the separator and its own name.
/// `load_error` gets a file that could not be loaded and the message.
pub(super) fn parse(
    text: &str,
    root: &Path,
    separator: &str,
    load_error: impl Fn(&str, &str) -> BuildError,
) -> Option<TestRunReport> {
    let mut report = TestRunReport::default();
    let (mut begun, mut ended) = (0_usize, 0_usize);
    let mut results = Vec::new();
    for line in text.lines() {
        let line: Line = serde_json::from_str(line).ok()?;
        let path = line.file.strip_prefix("file://").unwrap_or(&line.file);
        let path = Path::new(path);
        let file = path.strip_prefix(root).unwrap_or(path).to_string_lossy();
        let state = match line.state {
            State::Passed => TestState::Passed,
            State::Skipped => TestState::Skipped,
            State::Failed => failed(line.message),
            other => {
                match other {
                    State::Begin => begun += 1,
                    State::End => ended += 1,
                    State::Doubt => report.doubts.push(line.message),
                    _ => report.errors.push(load_error(&file, &line.message)),
                }
                continue;
            }
        };
        let is_joined = !file.is_empty() && !line.test.is_empty();
        let separator = if is_joined { separator } else { "" };
        results.push((format!("{file}{separator}{}", line.test), line.order, state));
    }
    results.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
    for (name, _, state) in results {
        report.add(&name, state);
    }
    if begun > ended {
        let open = words::count(begun - ended, "test process");
        report.doubts.push(format!("{open} never came to its end"));
    }
    (begun + ended > 0).then_some(report)
}

/// A load error for reporters that write the message as it is to be shown.
pub(super) fn load_error(file: &str, message: &str) -> BuildError {
    let error = BuildError::new(message);
    if file.is_empty() {
        error
    } else {
        error.at(file, None)
    }
}

#[cfg(test)]
mod tests {
    use super::super::outcome::TestName;
    use super::*;

    const RUN: &str = r#"{"state":"passed","test":"A adds","file":"/p/t/a.js"}
{"state":"failed","test":"A is wrong","file":"file:///p/t/a.js","message":"boo"}
{"state":"failed","test":"A adds","file":"t/a.js","message":"no"}
{"state":"skipped","test":"no file"}
{"state":"passed","file":"/p/t/no_test.js"}
{"state":"doubt","message":"`x` was begun and has no result"}
{"state":"unloaded","file":"t/b.py","message":"ModuleNotFoundError: No module named 'calc'"}
"#;

    fn parse_run(text: &str) -> Option<TestRunReport> {
        parse(text, Path::new("/p"), " > ", load_error)
    }

    #[test]
    fn results_are_named_by_file_and_test() {
        let report =
            parse_run(&format!("{RUN}{{\"state\":\"end\"}}\n")).expect("a complete report");
        let expected = [
            ("no file", TestState::Skipped),
            ("t/a.js > A adds", TestState::Passed),
            ("t/a.js > A adds #2", failed("no")),
            ("t/a.js > A is wrong", failed("boo")),
            ("t/no_test.js", TestState::Passed),
        ];
        let expected = expected.map(|(name, state)| (TestName::from(name), state));
        assert_eq!(report.tests, expected.into());
        assert_eq!(report.doubts, ["`x` was begun and has no result"]);
        let error = &report.errors[0];
        assert_eq!(
            (error.file.as_deref(), error.missing.as_slice()),
            (Some("t/b.py"), &["calc".to_owned()][..])
        );
    }

    #[test]
    fn report_without_end_is_incomplete() {
        assert_eq!(parse_run(RUN), None);
        assert_eq!(parse_run(""), None);
        assert_eq!(parse_run("{\"state\":\"passed\",\"te"), None);
    }

    #[test]
    fn process_without_end_is_a_doubt() {
        let (begin, end) = ("{\"state\":\"begin\"}\n", "{\"state\":\"end\"}\n");
        let passed = "{\"state\":\"passed\",\"test\":\"A#test_adds\",\"file\":\"a_test.rb\"}\n";
        let doubts = |text: &str| parse_run(text).expect("readable").doubts;
        assert!(doubts(&[begin, begin, passed, end, end].concat()).is_empty());
        assert_eq!(doubts(&[begin, begin, passed, end].concat()).len(), 1);
        assert_eq!(doubts(&[begin, passed].concat()).len(), 1);
    }

    #[test]
    fn repeated_names_are_numbered_by_order() {
        let line = |order: u32, state: &str| {
            format!("{{\"state\":\"{state}\",\"test\":\"is empty\",\"order\":{order}}}\n")
        };
        let text = line(3, "passed") + &line(1, "skipped") + "{\"state\":\"end\"}\n";
        let report = parse_run(&text).expect("a complete report");
        assert_eq!(
            report.tests[&TestName::from("is empty")],
            TestState::Skipped
        );
        assert_eq!(
            report.tests[&TestName::from("is empty #2")],
            TestState::Passed
        );
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_reports_do_not_panic(text in super::super::garbage::garbage(RUN)) {
            let _ = parse_run(&text);
        }
    }
}
