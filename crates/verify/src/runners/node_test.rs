//! Runs `node --test` with our own reporter, which also records tests that started and never ended.

use std::collections::BTreeMap;
use std::path::Path;

use futures_util::future::FutureExt as _;
use serde::Deserialize;

use super::super::build::BuildError;
use super::super::command::program;
use super::super::outcome::{Outcome, TestState};
use super::super::report::{ReportAdapter, TerminalOutput, TestRunReport, failed};
use super::super::session::Session;
use super::npm::{Tool, run_tool};
use super::{Runner, escape_regex, never_detected};
use supervisor_languages::JAVASCRIPT;
use supervisor_process::FinishedProcess;

pub(super) static RUNNER: Runner = Runner {
    name: "node_test",
    ecosystem: Some(&JAVASCRIPT),
    manifests: &[],
    command: &["node", "--test"],
    find: never_detected,
    recognises,
    run: |step, session| async move { run_tool(&TOOL, step, session).await }.boxed(),
    select: |step, names| {
        let mut narrowed = step.argv.clone();
        let at = narrowed.iter().position(|a| a == "--test")? + 1;
        for name in names {
            // Match only the last title: older versions apply the pattern to each title separately.
            let title = name.rsplit(" > ").next()?;
            narrowed.insert(at, format!("--test-name-pattern=^{}$", escape_regex(title)));
        }
        // Load only the files of these tests, unless the command names files itself.
        if step.argv[at..].iter().all(|word| word.starts_with('-')) {
            let mut files: Vec<&str> = names
                .iter()
                .filter_map(|name| Some(name.split_once(" > ")?.0))
                .collect();
            files.sort_unstable();
            files.dedup();
            narrowed.extend(files.into_iter().map(str::to_owned));
        }
        Some(narrowed)
    },
    names_are_paths: true,
};

pub(super) static TOOL: Tool = Tool {
    adapter: ReportAdapter {
        program: "node --test",
        file: "node.jsonl",
        parse: |t, s| parse(t, s.root()),
        explain,
        terminal: TerminalOutput::ShowsFailures,
    },
    flags,
    options_first: true,
};

const REPORTER: &str = include_str!("node_test/reporter.mjs");

fn recognises(argv: &[String]) -> bool {
    matches!(program(argv), "node" | "tsx")
        && argv.iter().any(|a| a == "--test")
        && !argv.iter().any(|a| a.starts_with("--test-reporter"))
}

fn flags(session: &Session<'_>) -> std::io::Result<Vec<String>> {
    let reporter = session.file("reporter.mjs");
    std::fs::write(&reporter, REPORTER)?;
    let report = session.file(TOOL.adapter.file);
    Ok(vec![
        format!("--test-reporter={}", reporter.display()),
        format!("--test-reporter-destination={}", report.display()),
        String::from("--test-reporter=spec"),
        String::from("--test-reporter-destination=stdout"),
    ])
}

fn explain(finished: &FinishedProcess, _code: i32) -> Option<Outcome> {
    let err = finished.stderr.text();
    let line = err
        .lines()
        .find(|l| l.contains("bad option") || l.contains("Could not find '"))?;
    Some(if line.contains("bad option") {
        Outcome::CouldNotRun {
            why: line.trim().to_owned(),
            remedy: String::from("use Node 20 or newer, or name a `test_cmd`"),
        }
    } else {
        Outcome::NoTests
    })
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    name: Option<String>,
    nesting: Option<usize>,
    file: Option<String>,
    line: Option<u32>,
    #[serde(default)]
    skipped: bool,
    #[serde(default)]
    todo: bool,
    #[serde(default)]
    suite: bool,
    error: Option<String>,
    message: Option<String>,
}

/// `None` if the `end` line is missing, which the reporter writes last.
pub(super) fn parse(text: &str, root: &Path) -> Option<TestRunReport> {
    let mut report = TestRunReport::default();
    // Per file: the current path of titles, the tests without a result, and the text written to stderr.
    let mut titles: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut unfinished: BTreeMap<(String, usize, String, Option<u32>), i64> = BTreeMap::new();
    let mut stderr: BTreeMap<String, String> = BTreeMap::new();
    let mut has_end = false;
    for line in text.lines() {
        let event: Event = serde_json::from_str(line).ok()?;
        let file = event
            .file
            .as_deref()
            .map(|f| relative(f, root))
            .unwrap_or_default();
        let name = event.name.unwrap_or_default();
        let is_whole_file =
            event.nesting == Some(0) && !file.is_empty() && relative(&name, root) == file;
        let nesting = event.nesting.unwrap_or_default();
        match event.kind.as_str() {
            "end" => has_end = true,
            "test:stderr" => stderr
                .entry(file)
                .or_default()
                .push_str(&event.message.unwrap_or_default()),
            "test:start" if !is_whole_file => {
                let titles = titles.entry(file).or_default();
                titles.truncate(nesting);
                titles.push(name);
            }
            "test:enqueue" if !is_whole_file => {
                *unfinished
                    .entry((file, nesting, name, event.line))
                    .or_default() += 1
            }
            "test:pass" | "test:fail" if is_whole_file => {
                let file_stderr = stderr.get(&file).map(String::as_str).unwrap_or_default();
                add_file_result(
                    &mut report,
                    &file,
                    event.kind == "test:pass",
                    file_stderr,
                    root,
                );
            }
            "test:pass" | "test:fail" => {
                *unfinished
                    .entry((file.clone(), nesting, name.clone(), event.line))
                    .or_default() -= 1;
                let above = titles
                    .get(&file)
                    .map(|t| &t[..nesting.min(t.len())])
                    .unwrap_or_default();
                let titles: Vec<&str> = above
                    .iter()
                    .map(String::as_str)
                    .chain([name.as_str()])
                    .collect();
                let state = match event.kind.as_str() {
                    _ if event.suite && event.kind == "test:pass" => continue,
                    // A suite that failed only because of its subtests is not a failure of its own; a failed hook is.
                    _ if event.suite
                        && event
                            .error
                            .as_deref()
                            .is_some_and(|e| e.contains("subtest")) =>
                    {
                        continue;
                    }
                    _ if event.skipped || event.todo => TestState::Skipped,
                    "test:pass" => TestState::Passed,
                    _ => failed(event.error.unwrap_or_default()),
                };
                report.add(&format!("{file} > {}", titles.join(" > ")), state);
            }
            _ => {}
        }
    }
    for ((file, _, name, _), count) in unfinished {
        if count > 0 {
            report
                .doubts
                .push(format!("`{name}` in `{file}` was begun and has no result"));
        }
    }
    has_end.then_some(report)
}

/// Adds the result of a file without tests: a plain script, one that could not be loaded, or one that exited before its
/// tests ran.
fn add_file_result(
    report: &mut TestRunReport,
    file: &str,
    passed: bool,
    stderr: &str,
    root: &Path,
) {
    const LOAD_ERRORS: &[&str] = &[
        "SyntaxError",
        "Cannot find module",
        "ERR_MODULE_NOT_FOUND",
        "does not provide an export",
    ];
    if !passed && LOAD_ERRORS.iter().any(|what| stderr.contains(what)) {
        let message = stderr
            .lines()
            .find(|l| l.contains("Error: ") || l.contains("Error ["))
            .unwrap_or(stderr);
        let (path, line) = project_location(stderr, root)
            .map_or_else(|| (file.to_owned(), None), |(p, l)| (p, Some(l)));
        report.errors.push(BuildError::new(message).at(path, line));
        return;
    }
    let declares_tests =
        std::fs::read_to_string(root.join(file)).is_ok_and(|text| text.contains("node:test"));
    if passed && declares_tests {
        report.doubts.push(format!(
            "`{file}` ended before any of its tests had a result"
        ));
        return;
    }
    report.add(
        file,
        if passed {
            TestState::Passed
        } else {
            failed(stderr)
        },
    );
}

/// The first location inside the project in a stack trace: on a line of its own before the error, or in a frame after it.
fn project_location(stderr: &str, root: &Path) -> Option<(String, u32)> {
    stderr.lines().find_map(|line| {
        let line = line.trim().trim_start_matches("at ");
        let line = line
            .rsplit_once('(')
            .map_or(line, |(_, rest)| rest)
            .trim_end_matches([')', '{', ' ']);
        let line = line.strip_prefix("file://").unwrap_or(line);
        let inside = line.strip_prefix(root.to_str()?)?.strip_prefix('/')?;
        let mut parts = inside.split(':');
        Some((parts.next()?.to_owned(), parts.next()?.parse().ok()?))
    })
}

fn relative(path: &str, root: &Path) -> String {
    let path = Path::new(path.strip_prefix("file://").unwrap_or(path));
    path.strip_prefix(root)
        .unwrap_or(path)
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::super::super::command::argv;
    use super::super::super::outcome::TestName;
    use super::*;

    const RUN: &str = r#"{"type":"test:enqueue","name":"/p/test/c.js","nesting":0,"file":"/p/test/c.js","line":1}
{"type":"test:enqueue","name":"suite","nesting":0,"file":"/p/test/c.js","line":2}
{"type":"test:enqueue","name":"in ok","nesting":1,"file":"/p/test/c.js","line":2}
{"type":"test:enqueue","name":"in bad","nesting":1,"file":"/p/test/c.js","line":2}
{"type":"test:start","name":"suite","nesting":0,"file":"/p/test/c.js","line":2}
{"type":"test:start","name":"in ok","nesting":1,"file":"/p/test/c.js","line":2}
{"type":"test:pass","name":"in ok","nesting":1,"file":"/p/test/c.js","line":2}
{"type":"test:start","name":"in bad","nesting":1,"file":"/p/test/c.js","line":2}
{"type":"test:fail","name":"in bad","nesting":1,"file":"/p/test/c.js","line":2,"error":"boo"}
{"type":"test:fail","name":"suite","nesting":0,"file":"/p/test/c.js","line":2,"error":"1 subtest failed","suite":true}
"#;

    #[test]
    fn results_are_named_by_file_and_titles() {
        let report = parse(&format!("{RUN}{{\"type\":\"end\"}}\n"), Path::new("/p"))
            .expect("a complete report");
        assert_eq!(report.tests.len(), 2);
        assert_eq!(
            report.tests[&TestName::from("test/c.js > suite > in ok")],
            TestState::Passed
        );
        assert_eq!(
            report.tests[&TestName::from("test/c.js > suite > in bad")],
            failed("boo")
        );
        assert!(report.doubts.is_empty(), "{report:?}");
        assert_eq!(parse(RUN, Path::new("/p")), None, "without its end");
    }

    #[test]
    fn test_without_an_end_is_a_doubt() {
        let started =
            r#"{"type":"test:enqueue","name":"left","nesting":0,"file":"/p/a.js","line":9}"#;
        let report = parse(
            &format!("{RUN}{started}\n{{\"type\":\"end\"}}\n"),
            Path::new("/p"),
        )
        .expect("a complete report");
        assert_eq!(report.doubts.len(), 1);
    }

    #[test]
    fn error_location_is_inside_the_project() {
        let syntax = "/p/test/d.js:7\nsyntax error(\n\nSyntaxError: Unexpected identifier\n";
        assert_eq!(
            project_location(syntax, Path::new("/p")),
            Some(("test/d.js".into(), 7))
        );
        let missing = "node:internal/modules/cjs/loader:1210\n  throw err;\n\nError: Cannot find module './nope'\n\
            Require stack:\n- /p/e.js\n    at Module._load (node:internal/x:1:2)\n    at Object.<anonymous> (/p/e.js:3:1)\n";
        assert_eq!(
            project_location(missing, Path::new("/p")),
            Some(("e.js".into(), 3))
        );
        let module = "file:///p/m.mjs:2\nimport { x } from './y.mjs';\n";
        assert_eq!(
            project_location(module, Path::new("/p")),
            Some(("m.mjs".into(), 2))
        );
    }

    #[test]
    fn test_commands_are_recognised() {
        assert!(recognises(&argv("node --test")) && recognises(&argv("tsx --test a.ts")));
        assert!(
            !recognises(&argv("node a.js"))
                && !recognises(&argv("node --test --test-reporter=tap"))
        );
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_reports_do_not_panic(text in super::super::super::garbage::garbage(RUN)) {
            let _ = parse(&text, Path::new("/p"));
        }
    }
}
