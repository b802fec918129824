//! Runs `node --test` with our own reporter, which also notices tests that started and never ended.

use std::path::Path;

use futures_util::future::FutureExt as _;

use super::super::build::BuildError;
use super::super::command::program;
use super::super::outcome::Outcome;
use super::super::report::{ReportAdapter, TerminalOutput, TestRunReport};
use super::super::report_lines;
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
        file: report_lines::FILE,
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
    let reporter = session.write_program("reporter.mjs", REPORTER)?;
    let report = session.file(TOOL.adapter.file);
    Ok(vec![
        format!("--test-reporter={reporter}"),
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

pub(super) fn parse(text: &str, root: &Path) -> Option<TestRunReport> {
    report_lines::parse(text, root, " > ", |file, stderr| {
        let message = stderr
            .lines()
            .find(|l| l.contains("Error: ") || l.contains("Error ["))
            .unwrap_or(stderr);
        let (path, line) = project_location(stderr, root)
            .map_or_else(|| (file.to_owned(), None), |(p, l)| (p, Some(l)));
        BuildError::new(message).at(path, line)
    })
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

#[cfg(test)]
mod tests {
    use super::super::super::command::argv;
    use super::*;

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
}
