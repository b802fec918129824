//! What varies by itself is not held against an answer: names of tests, files that runs write, errors of a build and old
//! failures are compared with what the project does without the answer.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use supervisor_test_support::programs::require;
use supervisor_test_support::project::git;

use crate::support::scenario::{Scenario, creates, gate, replaces, trail};

const WRONG: &str = "def add(a, b):\n    return a - b\n";
pub(super) const RIGHT: &str = "def add(a, b):\n    return a + b\n";
pub(super) const TEST: &str = "import calc\n\n\ndef test_adds():\n    assert calc.add(1, 2) == 3\n";

/// A runner that is called like `pytest` and writes its report: `test_adds` passes with the right code and expectation,
/// `test_subs` is wherever its file is, and a row of `test_now` has another name in each run.
const RUNNER: &str = r#"#!/bin/sh
for word in "$@"; do case "$word" in --junitxml=*) out=${word#--junitxml=};; esac; done
id=$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')
code=0
failed() { code=1; echo "<failure message=\"$1\">$1</failure>"; }
row() { echo "<testcase classname=\"$1\" name=\"$2\" file=\"tests/$1.py\" line=\"3\">$3</testcase>" >> "$out.rows"; }
: > "$out.rows"
adds=""
if ! grep -q 'a + b' calc.py || grep assert tests/test_calc.py | grep -v gem | grep -qv 'add(1, 2) == 3'; then adds=$(failed 'assert -1 == 3'); code=1; fi
if grep -q test_adds tests/test_calc.py; then row test_calc test_adds "$adds"; fi
if grep -q test_old tests/test_calc.py; then row test_calc test_old "$(failed 'gem is missing')"; code=1; fi
if [ -e tests/test_sub.py ]; then
  subs=""
  if ! grep -q 'def sub' calc.py || ! grep -q '== 2' tests/test_sub.py; then subs=$(failed 'module has no attribute sub'); code=1; fi
  row test_sub test_subs "$subs"
fi
if [ -e tests/test_now.py ]; then row test_now "test_now[08:$id]" ""; fi
if [ -e writes ]; then
  mkdir -p tests/out
  echo "$id" > "tests/out/TEST-$id.json"
  echo "$id" > "tests/test_log_$id.py"
fi
echo "<?xml version=\"1.0\"?><testsuites><testsuite name=\"pytest\">$(cat "$out.rows")</testsuite></testsuites>" > "$out"
exit $code
"#;

fn project(more: &[(&str, &str)]) -> Scenario {
    let files = [("calc.py", WRONG), ("tests/test_calc.py", TEST)];
    project_with(&[&files[..], more].concat())
}

/// A project with these files and the runner.
pub(super) fn project_with(files: &[(&str, &str)]) -> Scenario {
    let scenario = Scenario::chain(&["small"], &[files, &[("pytest", RUNNER)]].concat());
    let runner = scenario.project.path().join("pytest");
    fs::set_permissions(runner, fs::Permissions::from_mode(0o755)).unwrap();
    scenario
}

fn green(scenario: &mut Scenario, answer: &str) -> Value {
    scenario.say("small", &replaces("calc.py", answer));
    scenario.call(
        "tdd_green",
        json!({"test_path": "tests/test_calc.py", "test_cmd": "./pytest"}),
    )
}

const NOW: (&str, &str) = ("tests/test_now.py", "def test_now(now):\n    assert now\n");

#[test]
fn names_that_vary_do_not_blame_an_answer() {
    let mut scenario = project(&[NOW]);
    let result = green(&mut scenario, RIGHT);
    assert_eq!(trail(&result), "small accepted", "{result:#}");
    let names = gate(&result, "names")["detail"].as_str().unwrap();
    assert!(names.contains("`tests/test_now.py::test_now`"), "{names}");
    let refactored = RIGHT.replace("return", "return  ");
    scenario.say("small", &replaces("calc.py", &refactored));
    let result = scenario.call(
        "tdd_refactor",
        json!({"test_path": "tests/test_calc.py", "impl_path": "calc.py", "test_cmd": "./pytest"}),
    );
    assert_eq!(trail(&result), "small accepted", "{result:#}");
    let gates = result["gates"].as_array().unwrap();
    assert!(
        !gates.iter().any(|gate| gate["id"] == "names"),
        "it is said once: {result:#}"
    );
}

#[test]
fn wrong_answer_is_refused_though_names_vary() {
    let mut scenario = project(&[NOW]);
    let result = green(&mut scenario, "def add(a, b):\n    return a * b\n");
    assert_eq!(trail(&result), "small rejected", "{result:#}");
    assert_eq!(scenario.read("calc.py"), WRONG);
}

#[test]
fn new_test_is_counted_alone_though_names_vary() {
    let mut scenario = project(&[NOW]);
    let test = "import calc\n\n\ndef test_subs():\n    assert calc.sub(3, 1) == 2\n";
    scenario.say("small", &creates("tests/test_sub.py", test));
    let result = scenario.call(
        "tdd_red",
        json!({"spec": "sub(3, 1) is 2", "test_cmd": "./pytest"}),
    );
    assert_eq!(trail(&result), "small accepted", "{result:#}");
    assert_eq!(
        result["details"]["test_names_added"],
        json!(["tests/test_sub.py::test_subs"])
    );
}

#[test]
fn files_that_any_run_writes_are_not_tampering() {
    let mut scenario = project(&[("writes", ""), (".gitignore", "tests/test_log_*\n")]);
    git(&scenario.root(), &["init", "-q"]);
    let result = green(&mut scenario, RIGHT);
    assert_eq!(trail(&result), "small accepted", "{result:#}");
    assert_eq!(result["files_changed"], json!(["calc.py"]), "{result:#}");
}

#[test]
fn failures_from_before_the_test_are_no_targets() {
    let old = "def test_old():\n    assert gem\n";
    let mut scenario = project(&[]);
    let root = scenario.root();
    fs::write(root.join("tests/test_calc.py"), old).unwrap();
    git(&root, &["init", "-q"]);
    git(&root, &["add", "-A"]);
    git(&root, &["commit", "-q", "-m", "base"]);
    fs::write(root.join("tests/test_calc.py"), format!("{TEST}\n\n{old}")).unwrap();
    let result = green(&mut scenario, RIGHT);
    assert_eq!(trail(&result), "small accepted", "{result:#}");
    assert_eq!(
        result["details"]["target"],
        json!(["tests/test_calc.py::test_adds"])
    );
    assert_eq!(
        result["details"]["failing_before"],
        json!(["tests/test_calc.py::test_old"])
    );
    assert_eq!(
        scenario.read("tests/test_calc.py"),
        format!("{TEST}\n\n{old}")
    );
}

#[test]
fn single_failure_from_before_is_no_target() {
    let old = "def test_old():\n    assert gem\n";
    let mut scenario = project(&[("calc.py", RIGHT)]);
    let root = scenario.root();
    fs::write(root.join("tests/test_calc.py"), old).unwrap();
    git(&root, &["init", "-q"]);
    git(&root, &["add", "-A"]);
    git(&root, &["commit", "-q", "-m", "base"]);
    fs::write(root.join("tests/test_calc.py"), format!("{TEST}\n\n{old}")).unwrap();
    let call = |scenario: &mut Scenario, test: &str| {
        scenario.call(
            "tdd_green",
            json!({"test_path": test, "test_cmd": "./pytest", "dry_run": true}),
        )
    };
    let result = call(&mut scenario, "tests/test_calc.py");
    assert_eq!(result["status"], "error", "{result:#}");
    let message = result["message"].as_str().unwrap();
    assert!(
        message.contains("`tests/test_calc.py::test_old`"),
        "{message}"
    );
    let named = call(&mut scenario, "tests/test_calc.py::test_old");
    assert_eq!(named["status"], "pass", "{named:#}");
    // Without a change of the tests, what fails is what is asked for.
    git(&root, &["commit", "-q", "-a", "-m", "more"]);
    let committed = call(&mut scenario, "tests/test_calc.py");
    assert_eq!(committed["status"], "pass", "{committed:#}");
}

#[test]
fn path_beside_the_failing_file_is_refused_with_the_right_one() {
    let check = "#!/bin/sh\nif grep -q 'a + b' calc.py; then exit 0; fi\necho 'tests/test_calc.py:5: assert -1 == 3'\nexit 1\n";
    let files = [
        ("calc.py", WRONG),
        ("tests/test_calc.py", TEST),
        ("tests/test_other.py", "def test_other():\n    pass\n"),
        ("check.sh", check),
    ];
    let mut scenario = Scenario::chain(&["small"], &files);
    let result = scenario.call(
        "tdd_green",
        json!({"test_path": "tests/test_other.py", "test_cmd": "sh check.sh"}),
    );
    assert_eq!(result["status"], "error", "{result:#}");
    let message = result["message"].as_str().unwrap();
    assert!(message.contains("`tests/test_calc.py`"), "{message}");
    assert!(scenario.asked_of("small").is_empty());
}

/// A compiler that always finds an old error, and another one in code that says `broken`.
const COMPILER: &str = "#!/bin/sh\necho \"calc.ts(1,20): error TS7006: Parameter 'a' implicitly has an 'any' type.\"\n\
                        if grep -q broken calc.ts; then echo \"calc.ts(2,1): error TS2304: Cannot find name 'broken'.\"; fi\nexit 2\n";

fn typescript(answer: &str) -> Value {
    let test = "const test = require('node:test');\nconst assert = require('node:assert');\nconst fs = require('node:fs');\n\
                const text = fs.readFileSync('calc.ts', 'utf8');\nconst add = eval(text.slice(text.indexOf('(')).split('\\n')[0]);\n\n\
                test('adds', () => {\n  assert.equal(add(1, 2), 3);\n});\n";
    let files = [
        (
            "package.json",
            "{\"scripts\": {\"test\": \"node --test\"}}\n",
        ),
        ("tsconfig.json", "{}\n"),
        ("calc.ts", "export const add = (a, b) => a - b;\n"),
        ("test/add.test.js", test),
        ("node_modules/.bin/tsc", COMPILER),
    ];
    let mut scenario =
        Scenario::chain(&["small"], &files).answers("small", &replaces("calc.ts", answer));
    let compiler = scenario.project.path().join("node_modules/.bin/tsc");
    fs::set_permissions(compiler, fs::Permissions::from_mode(0o755)).unwrap();
    scenario.call("tdd_green", json!({"test_path": "test/add.test.js"}))
}

#[test]
#[ignore = "needs node and npm"]
fn old_errors_of_the_compiler_do_not_refuse_an_answer() {
    require(&["node", "npm"]);
    let result = typescript("export const add = (a, b) => a + b;\n");
    assert_eq!(trail(&result), "small accepted", "{result:#}");
    let detail = gate(&result, "product")["detail"].as_str().unwrap();
    assert!(detail.contains("before the change"), "{detail}");
    let result = typescript("export const add = (a, b) => a + b;\nexport const more = broken;\n");
    assert_eq!(trail(&result), "small rejected", "{result:#}");
}
