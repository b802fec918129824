//! What Rust's test harness says: its list, its log, its lines on standard output, and the doctests'.

use std::collections::BTreeMap;

use super::super::super::outcome::{TestName, TestState};
use super::super::super::session::MESSAGE;
use super::super::super::witness::SeenProgram;
use supervisor_text::words;

/// Stands where the name of a test program would.
pub(super) const DOCTEST: &str = "doctest";

/// The results of one test program.
#[derive(Debug, Default)]
pub(super) struct LibtestResults {
    pub(super) tests: BTreeMap<String, TestState>,
    /// Listed, but without a result of their own.
    pub(super) lost: Vec<String>,
    /// Why the program cannot be believed.
    pub(super) doubtful: Option<String>,
}

pub(super) fn read(seen: &SeenProgram) -> LibtestResults {
    let mut read = LibtestResults::default();
    let Some(names) = seen.list.as_deref().and_then(listed) else {
        read.doubtful = Some(String::from("did not list its tests"));
        return read;
    };
    let output = seen.output.as_deref().unwrap_or_default();
    let lines = from_lines(output);
    let log = seen.log.as_deref().map(|log| from_log(log, &names));
    let result = |name: &String| match &log {
        // The log of a program that crashed is incomplete; what it printed cannot make a failed run green.
        Some(log) if seen.code != Some(0) => log.get(name).or_else(|| lines.get(name)),
        Some(log) => log.get(name),
        None => lines.get(name),
    };
    let mut messages = messages(output);
    for name in names {
        let state = match result(&name).map(Vec::as_slice) {
            Some([Line::Ok]) => TestState::Passed,
            Some([Line::Ignored]) => TestState::Skipped,
            Some([Line::Failed]) => TestState::Failed(messages.remove(&name).unwrap_or_default()),
            Some([_, _, ..]) => {
                read.doubtful = Some(format!("gave more than one result for `{name}`"));
                TestState::Failed(String::from("more than one result"))
            }
            Some([]) | None => {
                read.lost.push(name.clone());
                let code = seen.code.map_or_else(
                    || String::from("no exit code"),
                    |c| format!("exit code {c}"),
                );
                TestState::Failed(format!(
                    "the test program ended ({code}) before this test had a result"
                ))
            }
        };
        read.tests.insert(name, state);
    }
    // A test without a result is a failure only if the program failed; otherwise it is a doubt.
    if seen.code == Some(0) {
        for name in &read.lost {
            read.tests.remove(name);
        }
    }
    read
}

/// Lines `name: test`, closed by a count that must be right.
fn listed(list: &str) -> Option<Vec<String>> {
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
enum Line {
    Ok,
    Failed,
    Ignored,
}

/// `ok name`, `failed name`, `ignored name`, `ignored: because of this name`.
fn from_log(log: &str, names: &[String]) -> BTreeMap<String, Vec<Line>> {
    let mut results: BTreeMap<String, Vec<Line>> = BTreeMap::new();
    for line in log.lines() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (result, name) = match word {
            "ok" => (Line::Ok, rest),
            "ignored" => (Line::Ignored, rest),
            "ignored:" => (Line::Ignored, reasoned(rest, names)),
            w if w.starts_with("failed") => (Line::Failed, reasoned(rest, names)),
            _ => continue,
        };
        results.entry(name.to_owned()).or_default().push(result);
    }
    results
}

/// The name at the end of a line that begins with a reason.
fn reasoned<'a>(rest: &'a str, names: &[String]) -> &'a str {
    let longest = names
        .iter()
        .filter(|n| rest == *n || rest.ends_with(&format!(" {n}")))
        .map(String::len)
        .max();
    longest.map_or(rest, |len| &rest[rest.len() - len..])
}

/// `test name ... ok`, also with `- should panic` behind the name.
fn from_lines(output: &str) -> BTreeMap<String, Vec<Line>> {
    let mut results: BTreeMap<String, Vec<Line>> = BTreeMap::new();
    for (name, result) in output.lines().filter_map(result_line) {
        results
            .entry(without_kind(name).to_owned())
            .or_default()
            .push(result);
    }
    results
}

fn result_line(line: &str) -> Option<(&str, Line)> {
    let (name, result) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    let result = match result {
        "ok" => Line::Ok,
        "FAILED" => Line::Failed,
        r if r.starts_with("FAILED") => Line::Failed,
        r if r == "ignored" || r.starts_with("ignored,") => Line::Ignored,
        _ => return None,
    };
    Some((name, result))
}

fn without_kind(name: &str) -> &str {
    const KINDS: &[&str] = &[" - should panic", " - compile fail", " - compile"];
    KINDS
        .iter()
        .find_map(|kind| name.strip_suffix(kind))
        .unwrap_or(name)
}

/// Doctests from rustdoc's output. Line numbers move with every edit above them, so they are not part of the name.
pub(super) fn doctests(output: &str) -> BTreeMap<TestName, TestState> {
    let mut messages = messages(output);
    let mut tests = BTreeMap::new();
    for (name, result) in output.lines().filter_map(result_line) {
        let whole = without_kind(name);
        let stable = without_line(whole);
        let name = (1..)
            .map(|n| {
                if n == 1 {
                    format!("{DOCTEST} {stable}")
                } else {
                    format!("{DOCTEST} {stable} #{n}")
                }
            })
            .map(TestName)
            .find(|name| !tests.contains_key(name))
            .expect("numbers do not end");
        let state = match result {
            Line::Ok => TestState::Passed,
            Line::Ignored => TestState::Skipped,
            Line::Failed => TestState::Failed(messages.remove(whole).unwrap_or_default()),
        };
        tests.insert(name, state);
    }
    tests
}

fn without_line(name: &str) -> String {
    match name
        .rfind("(line ")
        .and_then(|at| Some((at, name[at..].find(')')?)))
    {
        Some((at, len)) => format!("{}{}", name[..at].trim_end(), &name[at + len + 1..]),
        None => name.to_owned(),
    }
}

/// What each failing test said, from the sections `---- name stdout ----`.
fn messages(output: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut current: Option<(String, Vec<&str>)> = None;
    let close = |current: Option<(String, Vec<&str>)>, found: &mut BTreeMap<String, String>| {
        if let Some((name, lines)) = current {
            found.insert(name, cut_message(&without_backtrace(&lines)));
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

/// Where the panic was is on the first line; the frames below it are of no help in a summary.
fn without_backtrace(lines: &[&str]) -> String {
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
    words::cut_middle(text.trim(), MESSAGE).into_owned()
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

    fn seen(log: Option<&str>, output: &str, code: i32) -> SeenProgram {
        SeenProgram {
            program: "demo".into(),
            cwd: "/".into(),
            list: Some(LIST.into()),
            output: Some(output.into()),
            log: log.map(str::to_owned),
            code: Some(code),
        }
    }

    #[test]
    fn log_and_lines_tell_the_same_story() {
        for read in [
            read(&seen(Some(LOG), OUTPUT, 101)),
            read(&seen(None, OUTPUT, 101)),
        ] {
            assert!(read.lost.is_empty() && read.doubtful.is_none(), "{read:?}");
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
    fn a_listed_test_without_exactly_one_result_is_never_a_pass() {
        let forged = "test tests::bad ... ok\ntest tests::ok ... ok\ntest tests::ig ... ok\ntest tests::sp ... ok\n";
        let early = read(&seen(Some("ok tests::ok\n"), forged, 0));
        assert_eq!(early.lost, ["tests::bad", "tests::ig", "tests::sp"]);
        let twice = read(&seen(None, &format!("test tests::bad ... ok\n{OUTPUT}"), 0));
        assert!(twice.doubtful.is_some());
        let crashed = read(&seen(Some(""), "", 134));
        assert!(
            crashed
                .tests
                .values()
                .all(|s| matches!(s, TestState::Failed(m) if m.contains("134")))
        );
    }

    #[test]
    fn a_list_whose_count_is_wrong_is_no_list() {
        assert_eq!(listed("a: test\n\n2 tests, 0 benchmarks\n"), None);
        assert_eq!(listed("whatever"), None);
        assert_eq!(listed("0 tests, 0 benchmarks\n"), Some(vec![]));
        assert_eq!(
            listed("a: test\n\n1 test, 0 benchmarks\n"),
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
        fn no_output_is_too_odd(list in super::super::super::super::garbage::garbage(LIST), log in super::super::super::super::garbage::garbage(LOG), output in super::super::super::super::garbage::garbage(OUTPUT), code in 0..3) {
            let mut seen = seen(Some(&log), &output, code);
            seen.list = Some(list);
            let read = read(&seen);
            // Whatever is said, a listed test has one fate: a result, or a place among the lost.
            proptest::prop_assert!(read.lost.iter().all(|n| code != 0 || !read.tests.contains_key(n)));
            let _ = doctests(&output);
        }
    }
}
