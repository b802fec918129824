//! Unusual projects: scripts that chain, workspaces, environments, tests without a manifest, unknown runners that write
//! a report. Each is run.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use supervisor_verify::{DetectRequest, Outcome, Suite, TestRun, detect};
use tokio_util::sync::CancellationToken;

use supervisor_test_support::programs::{require, require_ruby_library};
use supervisor_test_support::suites::{PLENTY, file, run, run_environment, run_within};

/// A program of the project, as an installed package would bring it.
fn program(root: &Path, name: &str, text: &str) {
    file(root, name, &format!("#!/bin/sh\n{text}\n"));
    fs::set_permissions(root.join(name), fs::Permissions::from_mode(0o755)).unwrap();
}

fn passed(run: &TestRun) -> Vec<&str> {
    run.passed().map(|name| name.0.as_str()).collect()
}

const NODE_TEST: &str = "const test = require('node:test');\nconst assert = require('node:assert');\ntest('adds', () => assert.equal(1 + 1, 2));\n";

#[test]
#[ignore = "needs node"]
fn failing_linter_is_named_and_hides_nothing() {
    require(&["node"]);
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let manifest = r#"{"scripts": {"test": "pnpm lint && node --test && tsc -p .", "lint": "eslint . && prettier --check ."}}"#;
    file(&root, "package.json", manifest);
    file(&root, "pnpm-lock.yaml", "");
    file(&root, "test/a.test.js", NODE_TEST);
    program(&root, "node_modules/.bin/eslint", "exit 0");
    program(
        &root,
        "node_modules/.bin/prettier",
        "echo 'src/a.js has bad style' >&2; exit 1",
    );
    program(&root, "node_modules/.bin/tsc", "exit 0");
    let suite = detect(&root, None, None).unwrap();
    assert_eq!(
        (suite.command().as_str(), suite.runner()),
        ("pnpm test", "node_test")
    );
    assert_eq!(
        suite.commands(),
        ["eslint .", "prettier --check .", "node --test", "tsc -p ."]
    );
    let seen = run(&root);
    assert_eq!(seen.outcome(), &Outcome::Failed, "{seen:#?}");
    assert_eq!(passed(&seen), ["test/a.test.js > adds"]);
    assert_eq!(
        seen.sentence(),
        "`pnpm test` failed: 1 passed, 0 failed, 0 skipped; `prettier --check .` failed"
    );
    assert!(seen.output().contains("bad style"), "{}", seen.output());
    // What makes what the tests run is another thing: without it they would speak of something older.
    program(
        &root,
        "node_modules/.bin/tsc",
        "echo \"src/a.ts(1,5): error TS2304: Cannot find name 'add'.\"; exit 2",
    );
    file(
        &root,
        "package.json",
        r#"{"scripts": {"test": "tsc -b && node --test"}}"#,
    );
    let seen = run(&root);
    let Outcome::DidNotBuild { errors } = seen.outcome() else {
        panic!("{seen:#?}")
    };
    assert_eq!(
        (errors[0].file.as_deref(), errors[0].missing.as_slice()),
        (Some("src/a.ts"), &["add".to_owned()][..])
    );
}

#[test]
#[ignore = "needs node"]
fn workspace_packages_run_in_their_directories() {
    require(&["node"]);
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    file(
        &root,
        "package.json",
        r#"{"workspaces": ["packages/*"], "scripts": {"test": "npm test --workspaces --if-present"}}"#,
    );
    for name in ["a", "b"] {
        file(
            &root,
            &format!("packages/{name}/package.json"),
            r#"{"scripts": {"test": "node --test"}}"#,
        );
        file(&root, &format!("packages/{name}/test/x.test.js"), NODE_TEST);
    }
    file(&root, "packages/c/package.json", "{}");
    let seen = run(&root);
    assert_eq!(seen.outcome(), &Outcome::Passed, "{seen:#?}");
    assert_eq!(
        passed(&seen),
        [
            "packages/a/test/x.test.js > adds",
            "packages/b/test/x.test.js > adds"
        ]
    );
    let alone = detect(&root, None, None)
        .unwrap()
        .only(seen.passed().nth(1).unwrap())
        .unwrap();
    assert!(
        alone.command().contains("--test-name-pattern"),
        "{}",
        alone.command()
    );
    let near = |file: &str| detect(&root, Some(Path::new(file)), None).unwrap();
    assert!(near("packages/b/src/x.js").root().ends_with("packages/b"));
    assert_eq!(
        near("packages/c/src/x.js").found_by(),
        "package.json",
        "one that says nothing of tests gives way"
    );
}

#[test]
fn tap_results_are_named_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    file(
        &root,
        "package.json",
        r#"{"scripts": {"test": "npm run own", "own": "nyc tape 'test/**/*.js'"}}"#,
    );
    file(
        &root,
        "test/sum.js",
        "test('adds', t => t.end());\ntest('halves', t => t.end());\n",
    );
    program(&root, "node_modules/.bin/nyc", "exec \"$@\"");
    let tape = |lines: &str, end: &str| {
        let said = format!("cat <<'END'\nTAP version 13\n{lines}END\n{end}");
        program(&root, "node_modules/.bin/tape", &said);
    };
    let lines = "# adds\nok 1 small\nok 2 large\nok 3 none\n# halves\nok 4 even\n# SKIP later\n\n1..4\n# tests 4\n";
    tape(lines, "exit 0");
    let suite = detect(&root, None, None).unwrap();
    assert_eq!(
        (suite.command().as_str(), suite.runner()),
        ("npm test", "tap")
    );
    let seen = runs_again(&suite);
    assert_eq!(
        seen.sentence(),
        "`npm test` passed: 2 passed, 0 failed, 1 skipped",
        "{seen:#?}"
    );
    assert_eq!(
        passed(&seen),
        ["test/sum.js > adds", "test/sum.js > halves"]
    );
    assert_eq!(
        suite.only(seen.passed().next().unwrap()).unwrap().command(),
        "nyc tape test/sum.js"
    );
    assert!(
        seen.notes()
            .iter()
            .any(|note| note == "4 test points of TAP in 3 tests"),
        "{:?}",
        seen.notes()
    );
    tape(&lines.replace("ok 4", "not ok 4"), "exit 1");
    assert_eq!(
        runs_again(&suite)
            .failed()
            .map(|(name, _)| name.0.as_str())
            .collect::<Vec<_>>(),
        ["test/sum.js > halves"]
    );
    for (lines, why) in [
        (
            lines.replace("ok 4", "ok 4 forged\nok 4"),
            "a point that the runner did not count",
        ),
        (lines.replace("ok 4 even\n", ""), "a point is gone"),
        (lines.replace("1..4\n", ""), "it did not come to its end"),
        (
            lines.replace("ok 4", "not ok 4"),
            "the exit code says otherwise",
        ),
    ] {
        tape(&lines, "exit 0");
        let seen = runs_again(&suite);
        assert!(
            matches!(seen.outcome(), Outcome::Unclear { .. }),
            "{why}: {seen:#?}"
        );
    }
    tape(lines, "exit 0");
    program(
        &root,
        "node_modules/.bin/nyc",
        "echo \"Error: EROFS: mkdir '/home/u/.node-spawn-wrap-7'\" >&2; exit 1",
    );
    let seen = runs_again(&suite);
    assert_eq!(
        (seen.outcome(), passed(&seen).len()),
        (&Outcome::Passed, 2),
        "without what cannot start: {seen:#?}"
    );
    assert!(
        seen.notes()
            .iter()
            .any(|note| note.starts_with("run without `nyc`")),
        "{:?}",
        seen.notes()
    );
    program(&root, "node_modules/.bin/nyc", "exec \"$@\"");
    tape(
        "# adds\n",
        "echo \"Error: Cannot find module './sum'\" >&2; exit 1",
    );
    assert!(matches!(
        runs_again(&suite).outcome(),
        Outcome::DidNotBuild { .. }
    ));
}

#[test]
fn most_frequent_kind_of_test_wins() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    file(
        root,
        "package.json",
        r#"{"scripts": {"test": "grunt test"}}"#,
    );
    file(root, "pyproject.toml", "[tool.pytest.ini_options]\n");
    file(root, "js_tests/a.test.js", "");
    for name in ["a", "b", "c"] {
        file(root, &format!("tests/test_{name}.py"), "");
    }
    let suite = detect(root, None, None).unwrap();
    assert_eq!(
        (suite.runner(), suite.found_by()),
        ("pytest", "pyproject.toml")
    );
    assert_eq!(suite.alternatives()[0].command, "npm test");
}

#[test]
fn tests_without_manifest_are_found_by_name() {
    let found = |files: &[(&str, &str)]| {
        let dir = tempfile::tempdir().unwrap();
        files
            .iter()
            .for_each(|(path, text)| file(dir.path(), path, text));
        let suite = DetectRequest {
            root: dir.path(),
            near: None,
            test_cmd: None,
            test_report: None,
            path: Some("".as_ref()),
        };
        suite.detect().map_or_else(
            |e| e.to_string(),
            |s| format!("{} because of {}", s.command(), s.found_by()),
        )
    };
    assert_eq!(
        found(&[("leap_test.py", "import unittest"), ("leap.py", "")]),
        "python3 -m unittest discover -p '*_test.py' because of leap_test.py"
    );
    let ruby = found(&[("leap_test.rb", ""), ("leap.rb", "")]);
    assert!(
        ruby.starts_with("ruby -Ilib -Itest -e ") && ruby.ends_with(" because of leap_test.rb"),
        "{ruby}"
    );
    assert_eq!(
        found(&[("spec/a_spec.rb", ""), ("lib/a.rb", "")]),
        "rspec because of spec/a_spec.rb"
    );
    assert_eq!(
        found(&[
            ("Gemfile", ""),
            ("test/a_test.rb", ""),
            ("Rakefile", "Rake::TestTask.new")
        ]),
        "bundle exec rake test because of Gemfile"
    );
    assert_eq!(
        found(&[("only/Cargo.toml", "[package]\nname = \"x\"\n")]),
        "cargo test because of only/Cargo.toml",
        "nothing else is there"
    );
    assert!(found(&[("README.md", "")]).contains("no tests were found"));
}

#[test]
#[ignore = "needs node"]
fn node_test_may_throw_anything() {
    require(&["node"]);
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let throws = "test('none', () => { throw Object.assign(Object.create(null), { code: 7 }); });\ntest('text', () => { throw 'plain'; });\n";
    file(
        &root,
        "package.json",
        r#"{"scripts": {"test": "node --test"}}"#,
    );
    file(&root, "test/a.test.js", &format!("{NODE_TEST}{throws}"));
    let seen = run(&root);
    assert_eq!(
        (seen.outcome(), passed(&seen).len()),
        (&Outcome::Failed, 1),
        "{seen:#?}"
    );
    let said: Vec<&str> = seen.failed().map(|(_, said)| said).collect();
    assert!(
        said.len() == 2 && said[0].contains("code: 7") && said[1].contains("plain"),
        "{said:?}"
    );
}

fn runs_again(suite: &Suite) -> TestRun {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(suite.run(&run_environment(PLENTY), &CancellationToken::new()))
}

/// A test file that is written after the suite was detected is run by the same suite.
fn check_later_test_file(
    manifest: Option<(&str, &str)>,
    first: (&str, &str),
    second: (&str, &str),
) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    for (path, text) in manifest.into_iter().chain([first]) {
        file(&root, path, text);
    }
    let suite = detect(&root, None, None).unwrap();
    assert_eq!(passed(&runs_again(&suite)).len(), 1);
    file(&root, second.0, second.1);
    let seen = runs_again(&suite);
    assert_eq!(passed(&seen).len(), 2, "{seen:#?}");
}

#[test]
#[ignore = "needs ruby and minitest"]
fn later_ruby_test_file_is_run() {
    require_ruby_library("minitest");
    let minitest = "require \"minitest/autorun\"\n\nclass @Test < Minitest::Test\n  def test_one\n    assert_equal 1, 1\n  end\nend\n";
    check_later_test_file(
        None,
        ("test/a_test.rb", &minitest.replace('@', "A")),
        ("test/b_test.rb", &minitest.replace('@', "B")),
    );
}

#[test]
#[ignore = "needs node"]
fn later_node_test_file_is_run() {
    require(&["node"]);
    let manifest = (
        "package.json",
        r#"{"scripts": {"test": "node --test t/*.test.js"}}"#,
    );
    check_later_test_file(
        Some(manifest),
        ("t/a.test.js", NODE_TEST),
        ("t/b.test.js", NODE_TEST),
    );
}

#[test]
#[ignore = "needs bundle, minitest and rake"]
fn unneeded_missing_gem_does_not_prevent_tests() {
    require(&["bundle"]);
    require_ruby_library("minitest");
    require_ruby_library("rake");
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    file(
        &root,
        "Gemfile",
        "source \"https://rubygems.org\"\ngem \"there-is-no-such-gem-anywhere\"\n",
    );
    file(
        &root,
        "test/a_test.rb",
        "require \"minitest/autorun\"\n\nclass ATest < Minitest::Test\n  def test_one\n    assert_equal 1, 1\n  end\nend\n",
    );
    let seen = run(&root);
    assert_eq!(
        passed(&seen),
        ["test/a_test.rb ATest#test_one"],
        "{seen:#?}"
    );
    let is_said = |note: &String| {
        note.contains("without Bundler") && note.contains("there-is-no-such-gem-anywhere")
    };
    assert!(seen.notes().iter().any(is_said), "{:?}", seen.notes());
}

#[test]
fn broken_virtual_environment_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    file(root, "tests/test_a.py", "def test_a():\n    pass\n");
    fs::create_dir_all(root.join(".venv/bin")).unwrap();
    symlink("/gone/python3.9", root.join(".venv/bin/python")).unwrap();
    let request = DetectRequest {
        root,
        near: None,
        test_cmd: None,
        test_report: None,
        path: Some("".as_ref()),
    };
    let suite = request.detect().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let seen = runtime.block_on(suite.run(&run_environment(PLENTY), &CancellationToken::new()));
    assert!(
        matches!(
            seen.outcome(),
            Outcome::CouldNotRun { .. } | Outcome::Unclear { .. }
        ),
        "{seen:#?}"
    );
    assert!(
        seen.notes()
            .iter()
            .any(|note| note.contains("the interpreter of `.venv` is gone")),
        "{:?}",
        seen.notes()
    );
}

#[test]
#[ignore = "needs python3"]
fn unittest_results_and_broken_modules_are_named() {
    require(&["python3"]);
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let base = "import unittest\n\nclass Base(unittest.TestCase):\n    def test_adds(self):\n        self.assertEqual(1 + 1, 2)\n\n";
    file(
        &root,
        "test_a.py",
        &format!(
            "{base}class More(Base):\n    def test_bad(self):\n        self.assertEqual(1 + 1, 3)\n"
        ),
    );
    let words = Some("python3 -m unittest");
    let seen = run_within(&root, words, PLENTY);
    assert_eq!(seen.outcome(), &Outcome::Failed, "{seen:#?}");
    assert_eq!(
        passed(&seen),
        ["test_a.py::Base::test_adds", "test_a.py::More::test_adds"],
        "an inherited test counts once each"
    );
    let (name, said) = seen.failed().next().unwrap();
    assert_eq!(
        (name.0.as_str(), said.lines().next()),
        ("test_a.py::More::test_bad", Some("AssertionError: 2 != 3"))
    );
    let alone = run_within(
        &root,
        Some(
            &detect(&root, None, words)
                .unwrap()
                .only(name)
                .unwrap()
                .command(),
        ),
        PLENTY,
    );
    assert_eq!(
        (alone.failed().count(), alone.passed().count()),
        (1, 0),
        "{alone:#?}"
    );
    file(&root, "test_b.py", "from calc import add\n");
    let seen = run_within(&root, words, PLENTY);
    let Outcome::DidNotBuild { errors } = seen.outcome() else {
        panic!("{seen:#?}")
    };
    assert_eq!(
        (errors[0].file.as_deref(), errors[0].missing.as_slice()),
        (Some("test_b.py"), &["calc".to_owned()][..])
    );
    assert_eq!(seen.passed().count(), 2, "the others are run all the same");
    file(&root, "test_b.py", "import os\nos._exit(0)\n");
    assert!(!run_within(&root, words, PLENTY).outcome().is_passed());
}

#[test]
#[ignore = "needs pytest"]
fn inherited_pytest_tests_count_once_each() {
    require(&["pytest"]);
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    file(&root, "pytest.ini", "[pytest]\n");
    file(&root, "tests/__init__.py", "");
    file(
        &root,
        "tests/test_base.py",
        "class TestBase:\n    n = 1\n\n    def test_n(self):\n        assert self.n == 1\n",
    );
    file(
        &root,
        "tests/test_more.py",
        "from .test_base import TestBase\n\n\nclass TestMore(TestBase):\n    n = 2\n",
    );
    let seen = run(&root);
    let names: Vec<&str> = seen.named().map(|(name, _)| name.0.as_str()).collect();
    assert_eq!(
        names,
        [
            "tests/test_base.py::TestBase::test_n",
            "tests/test_more.py::TestBase::test_n",
            "tests/test_more.py::TestMore::test_n"
        ]
    );
    let (name, said) = seen.failed().next().unwrap();
    assert_eq!(
        (name.0.as_str(), said.lines().next()),
        (
            "tests/test_more.py::TestMore::test_n",
            Some("assert 2 == 1")
        )
    );
    let alone = run_within(
        &root,
        Some(
            &detect(&root, None, None)
                .unwrap()
                .only(name)
                .unwrap()
                .command(),
        ),
        PLENTY,
    );
    assert_eq!(
        (alone.failed().count(), alone.passed().count()),
        (1, 0),
        "{alone:#?}"
    );
    file(&root, "tests/test_new.py", "from calc import add\n");
    let seen = run(&root);
    assert!(
        matches!(seen.outcome(), Outcome::DidNotBuild { errors } if errors[0].missing == ["calc"]),
        "{seen:#?}"
    );
    assert_eq!(
        seen.passed().count(),
        2,
        "one file that cannot be imported keeps no other from being run"
    );
}

fn check_ruby_framework(framework: &str) {
    require_ruby_library(framework);
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let (head, class) = match framework {
        "minitest" => ("require \"minitest/autorun\"\n", "Minitest::Test"),
        // The class of the tests before the framework that runs them.
        "test/unit/testcase" => (
            "require \"test/unit/testcase\"\nrequire \"test/unit\"\n",
            "Test::Unit::TestCase",
        ),
        _ => ("require \"test/unit\"\n", "Test::Unit::TestCase"),
    };
    let tests = "  def test_adds\n    assert_equal 2, 1 + 1\n  end\n\n  def test_bad\n    assert_equal 3, 1 + 1\n  end\n";
    file(
        &root,
        "test/sum_test.rb",
        &format!("{head}class SumTest < {class}\n{tests}end\n"),
    );
    file(
        &root,
        "test/other_test.rb",
        &format!("{head}class OtherTest < {class}\n  def test_one\n    assert true\n  end\nend\n"),
    );
    let seen = run(&root);
    assert_eq!(seen.outcome(), &Outcome::Failed, "{framework}: {seen:#?}");
    assert_eq!(
        passed(&seen),
        [
            "test/other_test.rb OtherTest#test_one",
            "test/sum_test.rb SumTest#test_adds"
        ],
        "{framework}"
    );
    let (name, said) = seen.failed().next().unwrap();
    assert!(
        name.0 == "test/sum_test.rb SumTest#test_bad" && said.contains('3'),
        "{framework}: {name} {said}"
    );
    let alone = run_within(
        &root,
        Some(
            &detect(&root, None, None)
                .unwrap()
                .only(name)
                .unwrap()
                .command(),
        ),
        PLENTY,
    );
    assert_eq!(
        (alone.failed().count(), alone.passed().count()),
        (1, 0),
        "{framework}: {alone:#?}"
    );
    file(
        &root,
        "test/new_test.rb",
        &format!("{head}require_relative \"../lib/calc\"\n"),
    );
    assert!(
        matches!(run(&root).outcome(), Outcome::DidNotBuild { .. }),
        "{framework}"
    );
    file(&root, "test/new_test.rb", "exit!(0)\n");
    assert!(!run(&root).outcome().is_passed(), "{framework}");
}

#[test]
#[ignore = "needs ruby and minitest"]
fn minitest_results_are_named() {
    check_ruby_framework("minitest");
}

#[test]
#[ignore = "needs ruby and test-unit"]
fn test_unit_results_are_named() {
    check_ruby_framework("test/unit");
}

#[test]
#[ignore = "needs ruby and test-unit"]
fn test_unit_testcase_results_are_named() {
    check_ruby_framework("test/unit/testcase");
}

#[test]
#[ignore = "needs python3"]
fn results_of_a_script_with_unittest_are_named() {
    require(&["python3"]);
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let cases = "import unittest\n\n\nclass Sums(unittest.TestCase):\n    def test_adds(self):\n        self.assertEqual(1 + 1, 2)\n\n    \
                 def test_bad(self):\n        self.assertEqual(1 + 1, 3)\n";
    file(&root, "tests/__init__.py", "");
    file(&root, "tests/test_sums.py", cases);
    // A result class of its own, as of a reporter.
    let script = "import sys, unittest\n\n\nclass Quiet(unittest.TextTestResult):\n    def addSuccess(self, test):\n        pass\n\n\n\
                  suite = unittest.defaultTestLoader.discover('tests', top_level_dir='.')\n\
                  sys.exit(not unittest.TextTestRunner(resultclass=Quiet).run(suite).wasSuccessful())\n";
    file(&root, "runtests.py", script);
    let seen = run_within(&root, Some("python3 runtests.py"), PLENTY);
    assert_eq!(seen.outcome(), &Outcome::Failed, "{seen:#?}");
    assert_eq!(passed(&seen), ["tests/test_sums.py::Sums::test_adds"]);
    let (name, said) = seen.failed().next().unwrap();
    assert_eq!(
        (name.0.as_str(), said.lines().next()),
        (
            "tests/test_sums.py::Sums::test_bad",
            Some("AssertionError: 2 != 3")
        )
    );
    file(&root, "runtests.py", "raise SystemExit(3)\n");
    let seen = run_within(&root, Some("python3 runtests.py"), PLENTY);
    assert_eq!(seen.outcome(), &Outcome::Failed, "{seen:#?}");
    assert_eq!(seen.named().count(), 0, "judged by its exit code");
}

#[test]
fn test_report_keeps_the_environment() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let report = "<testsuite><testcase classname=\"Sum\" name=\"adds\"/></testsuite>";
    let probe = format!("#!/bin/sh\nmkdir -p out\necho '{report}' > out/r.xml\n");
    for (program, text) in [("python", "#!/bin/sh\n"), ("probe", probe.as_str())] {
        let path = format!(".venv/bin/{program}");
        file(&root, &path, text);
        fs::set_permissions(root.join(path), fs::Permissions::from_mode(0o755)).unwrap();
    }
    file(&root, "tests/test_a.py", "def test_a():\n    pass\n");
    let request = DetectRequest {
        root: &root,
        near: None,
        test_cmd: Some("probe --all"),
        test_report: Some("out/*.xml"),
        path: Some("/usr/bin:/bin".as_ref()),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let suite = request.detect().unwrap();
    let seen = runtime.block_on(suite.run(&run_environment(PLENTY), &CancellationToken::new()));
    assert_eq!(passed(&seen), ["Sum > adds"], "{seen:#?}");
}

#[test]
fn junit_report_is_read_unless_it_is_old() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let report = |state: &str| {
        format!(
            "<testsuite><testcase classname=\"Sum\" name=\"adds\"/><testcase classname=\"Sum\" name=\"bad\">{state}</testcase></testsuite>"
        )
    };
    let go = |words: &str| {
        let request = DetectRequest {
            root: &root,
            near: None,
            test_cmd: Some(words),
            test_report: Some("out/**/*.xml"),
            path: None,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(
            request
                .detect()
                .unwrap()
                .run(&run_environment(PLENTY), &CancellationToken::new()),
        )
    };
    file(&root, "new.xml", &report("<failure message=\"no\"/>"));
    file(&root, "out/yesterday.xml", &report(""));
    let seen = go("sh -c 'mkdir -p out/a; cp new.xml out/a/r.xml; exit 1'");
    assert_eq!(seen.outcome(), &Outcome::Failed, "{seen:#?}");
    assert_eq!(
        (passed(&seen), seen.failed().count()),
        (vec!["Sum > adds"], 1),
        "yesterday's is not read"
    );
    assert!(
        seen.notes()
            .iter()
            .any(|n| n.contains("1 report left from an earlier run")),
        "{:?}",
        seen.notes()
    );
    for (words, why) in [
        ("true", "earlier run, none from this one"),
        ("sh -c 'echo x > out/b.xml'", "not a whole JUnit report"),
    ] {
        let seen = go(words);
        assert!(
            matches!(seen.outcome(), Outcome::Unclear { why: said } if said.contains(why)),
            "{words}: {seen:#?}"
        );
    }
    fs::remove_file(root.join("out/b.xml")).unwrap();
    let seen = go("sh -c 'cp new.xml out/c.xml'");
    assert!(
        matches!(seen.outcome(), Outcome::Unclear { .. }),
        "an exit code of 0 with a failed test: {seen:#?}"
    );
}

#[test]
#[ignore = "needs go"]
fn every_module_of_a_go_workspace_runs() {
    require(&["go"]);
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    file(&root, "go.work", "go 1.19\n\nuse (\n\t./a\n\t./b\n)\n");
    for name in ["a", "b"] {
        file(
            &root,
            &format!("{name}/go.mod"),
            &format!("module example.com/{name}\n\ngo 1.19\n"),
        );
        // Two packages of one name in each.
        for package in ["", "util/"] {
            let test = "package util\n\nimport \"testing\"\n\nfunc TestOne(t *testing.T) {}\n";
            file(&root, &format!("{name}/{package}util_test.go"), test);
        }
    }
    let seen = run(&root);
    assert_eq!(seen.outcome(), &Outcome::Passed, "{seen:#?}");
    assert_eq!(
        passed(&seen),
        [
            "example.com/a TestOne",
            "example.com/a/util TestOne",
            "example.com/b TestOne",
            "example.com/b/util TestOne"
        ]
    );
}

#[test]
#[ignore = "needs go"]
fn panicking_go_test_does_not_hide_others() {
    require(&["go"]);
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    file(&root, "go.mod", "module example.com/a\n\ngo 1.19\n");
    let test = |name: &str, body: &str| format!("func {name}(t *testing.T) {{ {body} }}\n\n");
    let panics = "var p *int; _ = *p";
    let tests = [
        ("TestA", ""),
        ("TestB", panics),
        ("TestC", "t.Run(\"one\", func(t *testing.T) {})"),
        ("TestD", panics),
        ("TestE", ""),
        ("TestF", "t.Error(\"no\")"),
    ];
    let tests: String = tests.iter().map(|(name, body)| test(name, body)).collect();
    file(
        &root,
        "a_test.go",
        &format!("package a\n\nimport \"testing\"\n\n{tests}"),
    );
    file(
        &root,
        "b/b_test.go",
        "package b\n\nimport \"testing\"\n\nfunc TestC(t *testing.T) {}\n",
    );
    let seen = run(&root);
    assert_eq!(seen.outcome(), &Outcome::Failed, "{seen:#?}");
    let own = ["TestA", "TestC", "TestC/one", "TestE"].map(|name| format!("example.com/a {name}"));
    assert_eq!(passed(&seen)[..4], own);
    let failed: Vec<&str> = seen.failed().map(|(name, _)| name.0.as_str()).collect();
    assert_eq!(
        failed,
        ["TestB", "TestD", "TestF"].map(|name| format!("example.com/a {name}"))
    );
    assert!(
        seen.notes()
            .iter()
            .any(|note| note.contains("after a panic")),
        "{:?}",
        seen.notes()
    );
}

#[test]
#[ignore = "needs ruby and minitest"]
fn minitest_specs_have_names_and_locations() {
    require_ruby_library("minitest/spec");
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    file(
        &root,
        "lib/cart.rb",
        "module Shop\n  class Cart\n    def size = 0\n  end\nend\n",
    );
    let spec = |first: &str| {
        format!(
            "require \"minitest/autorun\"\nrequire_relative \"../lib/cart\"\n\ndescribe Shop::Cart do\n{first}  it \"is empty\" do\n    _(Shop::Cart.new.size).must_equal 0\n  end\n\n  describe \"when full\" do\n    it \"is empty\" do\n      _(1).must_equal 2\n    end\n  end\nend\n"
        )
    };
    file(&root, "test/spec_cart.rb", &spec(""));
    let before = run(&root);
    assert_eq!(
        passed(&before),
        ["test/spec_cart.rb Shop::Cart#is empty"],
        "not in the file of the class it is about"
    );
    let (name, _) = before.failed().next().unwrap();
    assert_eq!(name.0, "test/spec_cart.rb Shop::Cart::when full#is empty");
    let alone = run_within(
        &root,
        Some(
            &detect(&root, None, None)
                .unwrap()
                .only(name)
                .unwrap()
                .command(),
        ),
        PLENTY,
    );
    assert!(alone.failed().any(|(one, _)| one == name), "{alone:#?}");
    file(
        &root,
        "test/spec_cart.rb",
        &spec("  it \"comes first\" do\n    _(1).must_equal 1\n  end\n\n"),
    );
    let names =
        ["comes first", "is empty"].map(|said| format!("test/spec_cart.rb Shop::Cart#{said}"));
    assert_eq!(
        passed(&run(&root)),
        names,
        "a test before them leaves the others their names"
    );
}

#[test]
#[ignore = "needs mix"]
fn error_of_the_runner_is_quoted() {
    require(&["mix"]);
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let project = "[app: :demo, version: \"0.1.0\", elixir: \"~> 99.0\"]";
    file(
        &root,
        "mix.exs",
        &format!(
            "defmodule Demo.MixProject do\n  use Mix.Project\n  def project, do: {project}\nend\n"
        ),
    );
    file(&root, "test/test_helper.exs", "ExUnit.start()\n");
    file(
        &root,
        "test/a_test.exs",
        "defmodule ATest do\n  use ExUnit.Case\n  test \"a\", do: assert true\nend\n",
    );
    let seen = run(&root);
    let Outcome::Unclear { why } = seen.outcome() else {
        panic!("{seen:#?}")
    };
    assert!(why.contains("~> 99.0"), "{why}");
}

#[test]
#[ignore = "needs npm"]
fn missing_packages_suggest_npm_install() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    file(
        &root,
        "package.json",
        r#"{"scripts": {"test": "no-such-runner-here"}}"#,
    );
    let Outcome::CouldNotRun { remedy, .. } = run(&root).outcome().clone() else {
        panic!("it ran")
    };
    assert!(remedy.contains("npm install"), "{remedy}");
}

#[test]
fn nearest_of_many_packages_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    file(
        &root,
        "package.json",
        r#"{"private": true, "workspaces": ["packages/*"], "scripts": {"test": "npm test --workspaces"}}"#,
    );
    for n in 0..10_000 {
        let script = format!(r#"{{"name": "p{n}", "scripts": {{"test": "node --test"}}}}"#);
        file(&root, &format!("packages/p{n}/package.json"), &script);
    }
    let near = detect(&root, Some(Path::new("packages/p77/a.test.js")), None).unwrap();
    assert_eq!(
        (near.command().as_str(), near.found_by()),
        ("npm test", "packages/p77/package.json")
    );
    // All of them at once are what the root says, and no list of ten thousand commands is made of it.
    let whole = detect(&root, None, None).unwrap();
    assert!(
        whole.commands().len() <= 1_000,
        "{}",
        whole.commands().len()
    );
}
