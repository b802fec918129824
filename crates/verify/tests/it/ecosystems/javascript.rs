//! The runners that are installed in `node_modules`: jest, vitest and mocha, behind `npm test`.
//! Installed by `tests/ecosystems/install`; `SUPERVISOR_TEST_NODE_MODULES` says where.

use std::path::Path;

use supervisor_test_support::programs::{node_modules, require};
use supervisor_test_support::suites::{file, run};
use supervisor_verify::{Outcome, TestRun};

struct Tool {
    script: &'static str,
    head: &'static str,
    it: &'static str,
    file: &'static str,
}

const TOOLS: &[Tool] = &[
    Tool {
        script: "jest",
        head: "",
        it: "test",
        file: "a.test.js",
    },
    Tool {
        script: "vitest run",
        head: "import { test, describe } from 'vitest';\n",
        it: "test",
        file: "a.test.mjs",
    },
    Tool {
        script: "mocha",
        head: "",
        it: "it",
        file: "test/a.js",
    },
];

fn seen(tool: &Tool, modules: &Path, tests: &str) -> TestRun {
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(modules, dir.path().join("node_modules")).unwrap();
    let manifest = format!(
        r#"{{"name": "x", "version": "1.0.0", "scripts": {{"test": "{}"}}}}"#,
        tool.script
    );
    file(dir.path(), "package.json", &manifest);
    if !tests.is_empty() {
        file(
            dir.path(),
            tool.file,
            &format!(
                "{}{}",
                tool.head,
                tests.replace("it(", &format!("{}(", tool.it))
            ),
        );
    }
    run(dir.path())
}

fn check_runs(script: &str) {
    require(&["node", "npm"]);
    let modules = node_modules();
    let tool = TOOLS.iter().find(|tool| tool.script == script).unwrap();
    let seen = |tests: &str| seen(tool, Path::new(&modules), tests);
    let name = |title: &str| match tool.script {
        "mocha" => format!("{} > sums {title}", tool.file),
        _ => format!("{} > sums > {title}", tool.file),
    };
    let green = seen("describe('sums', () => { it('adds', () => {}); });\n");
    assert_eq!(
        green.outcome(),
        &Outcome::Passed,
        "{}: {green:#?}",
        tool.script
    );
    assert_eq!(
        green.passed().map(|n| n.0.clone()).collect::<Vec<_>>(),
        [name("adds")]
    );
    let red = seen(
        "describe('sums', () => { it('adds', () => {}); it('is wrong', () => { throw new Error('boo'); }); });\n",
    );
    assert_eq!(red.outcome(), &Outcome::Failed, "{}: {red:#?}", tool.script);
    let failed: Vec<_> = red
        .failed()
        .map(|(n, m)| (n.0.clone(), m.contains("boo")))
        .collect();
    assert_eq!(failed, [(name("is wrong"), true)]);
    let broken = seen(
        "await import('./not-there.js'); describe('sums', () => { it('adds', () => {}); });\n",
    );
    assert!(
        matches!(broken.outcome(), Outcome::DidNotBuild { .. }),
        "{}: {broken:#?}",
        tool.script
    );
    let empty = seen("");
    assert_eq!(
        empty.outcome(),
        &Outcome::NoTests,
        "{}: {empty:#?}",
        tool.script
    );
    let early = seen(
        "describe('sums', () => { it('adds', () => {}); it('is wrong', () => { process.exit(0); }); });\n",
    );
    assert!(!early.outcome().is_passed(), "{}: {early:#?}", tool.script);
}

#[test]
#[ignore = "needs node, npm and jest"]
fn jest_runs_are_distinguished() {
    check_runs("jest");
}

#[test]
#[ignore = "needs node, npm and vitest"]
fn vitest_runs_are_distinguished() {
    check_runs("vitest run");
}

#[test]
#[ignore = "needs node, npm and mocha"]
fn mocha_runs_are_distinguished() {
    check_runs("mocha");
}
