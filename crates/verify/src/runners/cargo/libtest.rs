//! Parses the output of Rust's test harness: its test list, its log file, its lines on standard output, and doctests.

use std::collections::BTreeMap;

use super::super::super::outcome::{TestName, TestState};
use super::super::super::session::MAX_MESSAGE_BYTES;
use super::super::super::test_wrapper::ObservedProgram;
use supervisor_text::words;

/// Used instead of a test program's name in the names of doctests.
pub(super) const DOCTEST: &str = "doctest";

/// The results of one test program.
#[derive(Debug, Default)]
pub(super) struct LibtestResults {
    pub(super) tests: BTreeMap<String, TestState>,
    /// Tests that were listed but have no result.
    pub(super) without_result: Vec<String>,
    /// A reason not to trust the program.
    pub(super) doubt: Option<String>,
}

pub(super) fn read(seen: &ObservedProgram) -> LibtestResults {
    let mut results = LibtestResults::default();
    let Some(names) = seen.list.as_deref().and_then(parse_list) else {
        results.doubt = Some(String::from("did not list its tests"));
        return results;
    };
    let output = seen.output.as_deref().unwrap_or_default();
    let printed = parse_output(output);
    let log = seen.log.as_deref().map(|log| parse_log(log, &names));
    let result = |name: &String| match &log {
        // A crashed program leaves an incomplete log. Using its output is safe: it cannot turn a failed run into a pass.
        Some(log) if seen.code != Some(0) => log.get(name).or_else(|| printed.get(name)),
        Some(log) => log.get(name),
        None => printed.get(name),
    };
    let mut messages = failure_messages(output);
    for name in names {
        let state = match result(&name).map(Vec::as_slice) {
            Some([LibtestStatus::Ok]) => TestState::Passed,
            Some([LibtestStatus::Ignored]) => TestState::Skipped,
            Some([LibtestStatus::Failed]) => {
                TestState::Failed(messages.remove(&name).unwrap_or_default())
            }
            Some([_, _, ..]) => {
                results.doubt = Some(format!("gave more than one result for `{name}`"));
                TestState::Failed(String::from("more than one result"))
            }
            Some([]) | None => {
                results.without_result.push(name.clone());
                let code = seen.code.map_or_else(
                    || String::from("no exit code"),
                    |c| format!("exit code {c}"),
                );
                TestState::Failed(format!(
                    "the test program ended ({code}) before this test had a result"
                ))
            }
        };
        results.tests.insert(name, state);
    }
    // A test without a result counts as failed only if the program failed; otherwise it is a doubt.
    if seen.code == Some(0) {
        for name in &results.without_result {
            results.tests.remove(name);
        }
    }
    results
}

/// Parses lines `name: test`; `None` unless the count at the end is correct.
fn parse_list(list: &str) -> Option<Vec<String>> {
    let names: Vec<String> = list
        .lines()
        .filter_map(|l| l.strip_suffix(": test"))
        .map(str::to_owned)
        .collect();
    let count = list.lines().rev().find_map(|l| {
        l.split_once(" test")
            .filter(|(_, rest)| rest.contains("benchmark"))
    });
    (count?.0.trim().parse::<usize>().ok()? == names.len()).then_some(names)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LibtestStatus {
    Ok,
    Failed,
    Ignored,
}

/// Parses log lines: `ok name`, `failed name`, `ignored name`, `ignored: some reason name`.
fn parse_log(log: &str, names: &[String]) -> BTreeMap<String, Vec<LibtestStatus>> {
    let mut results: BTreeMap<String, Vec<LibtestStatus>> = BTreeMap::new();
    for line in log.lines() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (result, name) = match word {
            "ok" => (LibtestStatus::Ok, rest),
            "ignored" => (LibtestStatus::Ignored, rest),
            "ignored:" => (LibtestStatus::Ignored, name_after_reason(rest, names)),
            w if w.starts_with("failed") => (LibtestStatus::Failed, name_after_reason(rest, names)),
            _ => continue,
        };
        results.entry(name.to_owned()).or_default().push(result);
    }
    results
}

/// The name at the end of a line that begins with a reason.
fn name_after_reason<'a>(rest: &'a str, names: &[String]) -> &'a str {
    let longest = names
        .iter()
        .filter(|n| rest == *n || rest.ends_with(&format!(" {n}")))
        .map(String::len)
        .max();
    longest.map_or(rest, |len| &rest[rest.len() - len..])
}

/// Parses lines `test name ... ok`, also with `- should panic` after the name.
fn parse_output(output: &str) -> BTreeMap<String, Vec<LibtestStatus>> {
    let mut results: BTreeMap<String, Vec<LibtestStatus>> = BTreeMap::new();
    for (name, result) in output.lines().filter_map(result_line) {
        results
            .entry(strip_kind(name).to_owned())
            .or_default()
            .push(result);
    }
    results
}

fn result_line(line: &str) -> Option<(&str, LibtestStatus)> {
    let (name, result) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    let result = match result {
        "ok" => LibtestStatus::Ok,
        "FAILED" => LibtestStatus::Failed,
        r if r.starts_with("FAILED") => LibtestStatus::Failed,
        r if r == "ignored" || r.starts_with("ignored,") => LibtestStatus::Ignored,
        _ => return None,
    };
    Some((name, result))
}

fn strip_kind(name: &str) -> &str {
    const KINDS: &[&str] = &[" - should panic", " - compile fail", " - compile"];
    KINDS
        .iter()
        .find_map(|kind| name.strip_suffix(kind))
        .unwrap_or(name)
}

/// Parses doctests from rustdoc's output. Line numbers change with every edit above them, so names do not include them.
pub(super) fn doctests(output: &str) -> BTreeMap<TestName, TestState> {
    let mut messages = failure_messages(output);
    let mut tests = BTreeMap::new();
    for (name, result) in output.lines().filter_map(result_line) {
        let full_name = strip_kind(name);
        let stable_name = strip_line_number(full_name);
        let name = (1..)
            .map(|n| {
                if n == 1 {
                    format!("{DOCTEST} {stable_name}")
                } else {
                    format!("{DOCTEST} {stable_name} #{n}")
                }
            })
            .map(TestName)
            .find(|name| !tests.contains_key(name))
            .expect("the range is unbounded");
        let state = match result {
            LibtestStatus::Ok => TestState::Passed,
            LibtestStatus::Ignored => TestState::Skipped,
            LibtestStatus::Failed => {
                TestState::Failed(messages.remove(full_name).unwrap_or_default())
            }
        };
        tests.insert(name, state);
    }
    tests
}

fn strip_line_number(name: &str) -> String {
    match name
        .rfind("(line ")
        .and_then(|at| Some((at, name[at..].find(')')?)))
    {
        Some((at, len)) => format!("{}{}", name[..at].trim_end(), &name[at + len + 1..]),
        None => name.to_owned(),
    }
}

/// The message of each failing test, from the sections `---- name stdout ----`.
fn failure_messages(output: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut current: Option<(String, Vec<&str>)> = None;
    let close = |current: Option<(String, Vec<&str>)>, found: &mut BTreeMap<String, String>| {
        if let Some((name, lines)) = current {
            found.insert(name, cut_message(&strip_backtrace(&lines)));
        }
    };
    for line in output.lines() {
        let header = line
            .strip_prefix("---- ")
            .and_then(|l| l.strip_suffix(" stdout ----"));
        if let Some(name) = header {
            close(current.take(), &mut found);
            current = Some((name.to_owned(), Vec::new()));
        } else if line == "failures:" || line.starts_with("test result: ") {
            close(current.take(), &mut found);
        } else if let Some((_, lines)) = &mut current {
            lines.push(line);
        }
    }
    close(current, &mut found);
    found
}

/// Drops the backtrace: the first line already has the location of the panic.
fn strip_backtrace(lines: &[&str]) -> String {
    let end = lines
        .iter()
        .position(|l| *l == "stack backtrace:")
        .unwrap_or(lines.len());
    let note = "note: run with `RUST_BACKTRACE=1`";
    lines[..end]
        .iter()
        .filter(|l| !l.starts_with(note))
        .copied()
        .collect::<Vec<_>>()
        .join("\n")
        .trim()
        .to_owned()
}

pub(super) fn cut_message(text: &str) -> String {
    words::cut_middle(text.trim(), MAX_MESSAGE_BYTES).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "tests::bad: test\ntests::ig: test\ntests::ok: test\ntests::sp: test\n\n4 tests, 0 benchmarks\n";
    const LOG: &str = "ignored: slow tests::ig\nok tests::ok\nfailed tests::bad\nok tests::sp\n";
    const OUTPUT: &str = "\nrunning 4 tests\ntest tests::ig ... ignored, slow\ntest tests::ok ... ok\n\
        test tests::bad ... FAILED\ntest tests::sp - should panic ... ok\n\nfailures:\n\n\
        ---- tests::bad stdout ----\n\nthread 'tests::bad' (12859) panicked at src/lib.rs:8:79:\n\
        assertion `left == right` failed: no\nway\n  left: 1\n right: 2\nstack backtrace:\n   0: rust_begin_unwind\n\n\n\
        failures:\n    tests::bad\n\ntest result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out\n";

    fn seen(log: Option<&str>, output: &str, code: i32) -> ObservedProgram {
        ObservedProgram {
            program: "demo".into(),
            cwd: "/".into(),
            list: Some(LIST.into()),
            output: Some(output.into()),
            log: log.map(str::to_owned),
            code: Some(code),
        }
    }

    #[test]
    fn log_and_output_give_the_same_results() {
        for read in [
            read(&seen(Some(LOG), OUTPUT, 101)),
            read(&seen(None, OUTPUT, 101)),
        ] {
            assert!(
                read.without_result.is_empty() && read.doubt.is_none(),
                "{read:?}"
            );
            assert_eq!(read.tests["tests::ok"], TestState::Passed);
            assert_eq!(read.tests["tests::sp"], TestState::Passed);
            assert_eq!(read.tests["tests::ig"], TestState::Skipped);
            let TestState::Failed(message) = &read.tests["tests::bad"] else {
                panic!("{read:?}")
            };
            assert!(
                message.contains("failed: no\nway") && !message.contains("backtrace"),
                "{message}"
            );
        }
    }

    #[test]
    fn listed_test_needs_exactly_one_result_to_pass() {
        let forged = "test tests::bad ... ok\ntest tests::ok ... ok\ntest tests::ig ... ok\ntest tests::sp ... ok\n";
        let early = read(&seen(Some("ok tests::ok\n"), forged, 0));
        assert_eq!(
            early.without_result,
            ["tests::bad", "tests::ig", "tests::sp"]
        );
        let twice = read(&seen(None, &format!("test tests::bad ... ok\n{OUTPUT}"), 0));
        assert!(twice.doubt.is_some());
        let crashed = read(&seen(Some(""), "", 134));
        assert!(
            crashed
                .tests
                .values()
                .all(|s| matches!(s, TestState::Failed(m) if m.contains("134")))
        );
    }

    #[test]
    fn list_with_wrong_count_is_rejected() {
        assert_eq!(parse_list("a: test\n\n2 tests, 0 benchmarks\n"), None);
        assert_eq!(parse_list("whatever"), None);
        assert_eq!(parse_list("0 tests, 0 benchmarks\n"), Some(vec![]));
        assert_eq!(
            parse_list("a: test\n\n1 test, 0 benchmarks\n"),
            Some(vec!["a".into()])
        );
    }

    #[test]
    fn doctests_keep_their_name_when_lines_move() {
        let output = "test src/lib.rs - add (line 4) ... ok\ntest src/lib.rs - add (line 9) ... ok\n\
            test src/lib.rs - (line 1) ... ok\ntest src/lib.rs - x (line 3) - compile fail ... ok\n";
        let names: Vec<_> = doctests(output).into_keys().map(|n| n.0).collect();
        assert_eq!(
            names,
            [
                "doctest src/lib.rs -",
                "doctest src/lib.rs - add",
                "doctest src/lib.rs - add #2",
                "doctest src/lib.rs - x"
            ]
        );
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_output_does_not_panic(list in super::super::super::super::garbage::garbage(LIST), log in super::super::super::super::garbage::garbage(LOG), output in super::super::super::super::garbage::garbage(OUTPUT), code in 0..3) {
            let mut seen = seen(Some(&log), &output, code);
            seen.list = Some(list);
            let read = read(&seen);
            // If the program exited with 0, a listed test either has a result or is in `without_result`, never both.
            proptest::prop_assert!(read.without_result.iter().all(|n| code != 0 || !read.tests.contains_key(n)));
            let _ = doctests(&output);
        }
    }
}
