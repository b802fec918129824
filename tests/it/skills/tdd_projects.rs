//! Reds and greens as their users mean them: what failed before is no news, what does not build yet is red, tests are not
//! run more often than they must be, and honest answers are not taken for cheating.

use std::fs;

use serde_json::{Value, json};

use crate::skills::tdd::{ADD, ADD_TEST, MANIFEST, OLD_TEST, ONE, WRONG};
use crate::support::scenario::{Scenario, creates, gate, replaces, trail};
use supervisor_test_support::programs::require;

fn passes(result: &Value) {
    assert_eq!(
        (&result["status"], &result["verified"]),
        (&json!("pass"), &json!(true)),
        "{result:#}"
    );
}

fn feedback(result: &Value) -> &str {
    result["attempts"][0]["feedback"]
        .as_str()
        .unwrap_or_default()
}

#[test]
fn failures_from_before_are_in_the_baseline() {
    let failing = OLD_TEST.1.replace("(), 1", "(), 7");
    let files = [
        MANIFEST,
        ("src/lib.rs", WRONG),
        ("tests/old.rs", failing.as_str()),
        ("tests/add.rs", ADD_TEST),
    ];
    let mut scenario =
        Scenario::chain(&["small"], &files).answers("small", &replaces("src/lib.rs", ADD));
    let green = scenario.call("tdd_green", json!({"test_path": "tests/add.rs"}));
    passes(&green);
    assert_eq!(
        green["details"]["failing_before"],
        json!(["demo::old one_is_one"]),
        "{green:#}"
    );
    assert_eq!(
        green["details"]["other_failures"],
        json!(["demo::old one_is_one"])
    );
    let neat = ADD
        .replace("a: i32, b: i32", "left: i32, right: i32")
        .replace("a + b", "left + right");
    scenario.say("small", &replaces("src/lib.rs", &neat));
    let refactor = scenario.call("tdd_refactor", green["next"]["arguments"].clone());
    passes(&refactor);
    assert_eq!(
        refactor["details"]["failing_before"],
        json!(["demo::old one_is_one"]),
        "{refactor:#}"
    );
    // What passed before is another matter.
    scenario.say(
        "small",
        &replaces("src/lib.rs", &neat.replace("left + right", "left")),
    );
    let broken = scenario.call("tdd_refactor", green["next"]["arguments"].clone());
    assert_eq!(broken["status"], "fail", "{broken:#}");
}

#[test]
fn suite_runs_once_after_each_answer() {
    let scenario = Scenario::chain(&["small"], &[MANIFEST, ("src/lib.rs", WRONG)]);
    let outside = scenario.state.path().display().to_string();
    let mut scenario = scenario.settings(&format!("[sandbox]\nwrite = [\"{outside}\"]\n"));
    let count = scenario.state.path().join("runs").display().to_string();
    let counting = format!(
        "#[test]\nfn one_is_one() {{\n    use std::io::Write as _;\n    let mut file = std::fs::File::options().create(true)\
         .append(true).open({count:?}).unwrap();\n    file.write_all(b\"x\").unwrap();\n    assert_eq!(demo::one(), 1);\n}}\n"
    );
    fs::create_dir_all(scenario.project.path().join("tests")).unwrap();
    fs::write(scenario.project.path().join("tests/old.rs"), counting).unwrap();
    let runs = || fs::read_to_string(&count).map_or(0, |text| text.len());
    scenario.say("small", &creates("tests/add.rs", ADD_TEST));
    let red = scenario.call(
        "tdd_red",
        json!({"spec": "add(a, b) gives the sum of two numbers"}),
    );
    passes(&red);
    assert_eq!(
        runs(),
        2,
        "before and after; the new test alone leaves this one out"
    );
    assert_eq!(red["details"]["runs"]["whole"], 2, "{red:#}");
    scenario.say("small", &replaces("src/lib.rs", ADD));
    let green = scenario.call("tdd_green", red["next"]["arguments"].clone());
    passes(&green);
    assert_eq!(green["details"]["runs"]["whole"], 1, "{green:#}");
    assert_eq!(
        (runs(), &green["details"]["baseline"]),
        (3, &json!("known")),
        "what the red ended with is known"
    );
    let neat = ADD
        .replace("a: i32, b: i32", "left: i32, right: i32")
        .replace("a + b", "left + right");
    scenario.say("small", &replaces("src/lib.rs", &neat));
    let refactor = scenario.call("tdd_refactor", green["next"]["arguments"].clone());
    passes(&refactor);
    assert_eq!(runs(), 4);
}

#[test]
fn project_that_does_not_build_is_red() {
    let other = "#[test]\nfn subtracts() {\n    assert_eq!(demo::sub(3, 2), 1);\n}\n";
    let files = [
        MANIFEST,
        ("src/lib.rs", ONE),
        ("tests/add.rs", ADD_TEST),
        ("tests/sub.rs", other),
    ];
    let both = format!("{ADD}\npub fn sub(a: i32, b: i32) -> i32 {{\n    a * b\n}}\n");
    let mut scenario =
        Scenario::chain(&["small"], &files).answers("small", &replaces("src/lib.rs", &both));
    let green = scenario.call("tdd_green", json!({"test_path": "tests/add.rs"}));
    passes(&green);
    assert_eq!(green["details"]["inventory"], "unknown", "{green:#}");
    assert_eq!(
        green["details"]["other_failures"],
        json!(["demo::sub subtracts"]),
        "red from the same stub, and said"
    );
}

#[test]
fn unchanged_and_accompanying_tests_are_not_tampering() {
    let files = [
        MANIFEST,
        ("src/lib.rs", ONE),
        OLD_TEST,
        ("tests/add.rs", ADD_TEST),
    ];
    let with_tests = format!(
        "{ADD}\n#[cfg(test)]\nmod tests {{\n    #[test]\n    fn adds() {{\n        assert_eq!(super::add(1, 1), 2);\n    }}\n}}\n"
    );
    let answer = json!({"edits": [
        {"path": "src/lib.rs", "action": "replace", "content": with_tests},
        {"path": "tests/add.rs", "action": "replace", "content": ADD_TEST},
    ]});
    let mut scenario = Scenario::chain(&["small"], &files).answers("small", &answer);
    let green = scenario.call("tdd_green", json!({"test_path": "tests/add.rs"}));
    passes(&green);
    assert_eq!(green["files_changed"], json!(["src/lib.rs"]), "{green:#}");
}

#[test]
#[ignore = "needs node"]
fn new_dependency_needs_the_callers_permission() {
    require(&["node"]);
    let manifest =
        "{\"name\": \"demo\", \"scripts\": {\"test\": \"node --test\"}, \"dependencies\": {}}\n";
    let test = "const test = require('node:test');\nconst assert = require('node:assert');\ntest('adds', () => assert.equal(require('../calc').add(1, 2), 3));\n";
    let code = "exports.add = (a, b) => a + b;\n";
    let files = [
        ("package.json", manifest),
        ("calc.js", "exports.add = () => 0;\n"),
        ("test/add.test.js", test),
    ];
    let answer = |manifest: &str| {
        json!({"edits": [
            {"path": "calc.js", "action": "replace", "content": code},
            {"path": "package.json", "action": "replace", "content": manifest},
        ]})
    };
    let grown = manifest.replace(
        "\"dependencies\": {}",
        "\"dependencies\": {\"left-pad\": \"1\"}",
    );
    let other = grown.replace("node --test", "node --test --test-only");
    let call = |answer: Value, allowed: Value| {
        let mut scenario = Scenario::chain(&["small"], &files).answers("small", &answer);
        let mut arguments = json!({"test_path": "test/add.test.js"});
        if !allowed.is_null() {
            arguments["allow_dependencies"] = allowed;
        }
        scenario.call("tdd_green", arguments)
    };
    let refused = call(answer(&grown), Value::Null);
    assert_eq!(trail(&refused), "small rejected", "{refused:#}");
    assert!(
        feedback(&refused).contains("`allow_dependencies`"),
        "{refused:#}"
    );
    for allowed in [json!(true), json!(["left-pad"])] {
        let green = call(answer(&grown), allowed);
        passes(&green);
        assert_eq!(
            green["details"]["new_dependencies"],
            json!(["left-pad"]),
            "{green:#}"
        );
    }
    let unnamed = call(answer(&grown), json!(["right-pad"]));
    assert_eq!(trail(&unnamed), "small rejected", "{unnamed:#}");
    assert!(feedback(&unnamed).contains("`left-pad`"), "{unnamed:#}");
    for allowed in [Value::Null, json!(true)] {
        let cheat = call(answer(&other), allowed);
        assert_eq!(trail(&cheat), "small tampered", "{cheat:#}");
    }
}

#[test]
fn command_without_test_names_uses_exit_code() {
    let run = "for t in tests/*.sh; do sh \"$t\" || exit 1; done\n";
    let files = [
        ("run.sh", run),
        ("tests/one_test.sh", "grep -q one words.txt\n"),
        ("words.txt", "one\n"),
    ];
    let mut scenario = Scenario::chain(&["small"], &files).answers(
        "small",
        &creates("tests/two_test.sh", "grep -q two words.txt\n"),
    );
    let arguments = json!({"spec": "words.txt has two", "test_cmd": "sh run.sh"});
    let red = scenario.call("tdd_red", arguments.clone());
    passes(&red);
    assert_eq!(
        gate(&red, "one_test")["detail"],
        "not counted: the command names no tests"
    );
    scenario.say("small", &replaces("words.txt", "one\ntwo\n"));
    let green = scenario.call("tdd_green", red["next"]["arguments"].clone());
    // Nothing can make a shell script wrong for us, so that what it says is not worth the word.
    assert_eq!(
        (&green["status"], &green["verified"]),
        (&json!("pass"), &json!(false)),
        "{green:#}"
    );
    scenario.say(
        "small",
        &creates("tests/three_test.sh", "grep -q one words.txt\n"),
    );
    let passing = scenario.call("tdd_red", arguments);
    assert_eq!(
        (passing["status"].as_str(), trail(&passing).as_str()),
        (Some("fail"), "small rejected"),
        "{passing:#}"
    );
}

#[test]
#[ignore = "needs python3 and pytest"]
fn python_red_allows_missing_imports_and_tables() {
    require(&["python3", "pytest"]);
    let old = (
        "tests/test_old.py",
        "import calc\n\n\ndef test_one():\n    assert calc.one() == 1\n",
    );
    let files = [
        ("pytest.ini", "[pytest]\npythonpath = .\n"),
        ("calc.py", "def one():\n    return 1\n"),
        old,
    ];
    let imports = "from calc import add\n\n\ndef test_adds():\n    assert add(1, 2) == 3\n";
    let mut scenario = Scenario::chain(&["small"], &files)
        .answers("small", &creates("tests/test_add.py", imports));
    let red = scenario.call("tdd_red", json!({"spec": "add(a, b) is the sum"}));
    passes(&red);
    let code = "def one():\n    return 1\n\n\ndef add(a, b):\n    return a + b\n";
    scenario.say("small", &replaces("calc.py", code));
    let green = scenario.call("tdd_green", red["next"]["arguments"].clone());
    passes(&green);
    assert_eq!(green["details"]["tests_after"], 2, "{green:#}");
    let cases = "import pytest\n\nimport calc\n\n\n@pytest.mark.parametrize('n', [0, 1, 2])\ndef test_halves(n):\n    assert calc.half(2 * n) == n\n";
    scenario.say("small", &creates("tests/test_half.py", cases));
    let red = scenario.call("tdd_red", json!({"spec": "half(n) is the half"}));
    passes(&red);
    let inherited = "import calc\n\n\nclass Shared:\n    def test_doubles(self):\n        assert calc.double(self.n) == 2 * self.n\n\n\n\
                     class TestOne(Shared):\n    n = 1\n\n\nclass TestTwo(Shared):\n    n = 2\n";
    scenario.say("small", &creates("tests/test_double.py", inherited));
    let red = scenario.call("tdd_red", json!({"spec": "double(n) is n and n"}));
    passes(&red);
    assert_eq!(
        red["details"]["new_failures"].as_array().unwrap().len(),
        2,
        "written once, run by each class: {red:#}"
    );
}

#[test]
#[ignore = "needs pytest"]
fn broken_file_does_not_block_others_in_python() {
    require(&["pytest"]);
    let files = [
        (
            "pyproject.toml",
            "[tool.pytest.ini_options]\ntestpaths = [\"tests\"]\npythonpath = [\".\"]\n",
        ),
        // What does not load fails in code that the green moves: its trace is another text afterwards.
        (
            "calc.py",
            "def one():\n    return 1\n\n\ndef add(a, b):\n    return a\n\n\ndef words():\n    return open(\"no-such-submodule/words.txt\").read()\n",
        ),
        (
            "tests/test_data.py",
            "from calc import words\n\nWORDS = words()\n\n\ndef test_words():\n    assert WORDS\n",
        ),
        (
            "tests/test_calc.py",
            "from calc import add, one\n\n\ndef test_one():\n    assert one() == 1\n",
        ),
    ];
    let more = format!(
        "{}\n\ndef test_adds():\n    assert add(1, 2) == 3\n",
        files[3].1
    );
    let mut scenario = Scenario::chain(&["small"], &files)
        .answers("small", &replaces("tests/test_calc.py", &more));
    let red = scenario.call(
        "tdd_red",
        json!({"spec": "add(a, b) gives the sum of two numbers"}),
    );
    passes(&red);
    assert!(
        red["message"]
            .as_str()
            .unwrap()
            .ends_with("fails as it should"),
        "{red:#}"
    );
    scenario.say(
        "small",
        &replaces(
            "calc.py",
            &files[1]
                .1
                .replace("return a\n", "total = a + b\n    return total\n"),
        ),
    );
    passes(&scenario.call("tdd_green", red["next"]["arguments"].clone()));
    // Nor is it one for a test of what is not written yet.
    let unwritten = "from calc import sub\n\n\ndef test_subtracts():\n    assert sub(3, 2) == 1\n";
    scenario.say("small", &creates("tests/test_sub.py", unwritten));
    let red = scenario.call(
        "tdd_red",
        json!({"spec": "sub(a, b) gives the difference of two numbers"}),
    );
    passes(&red);
    assert!(
        red["message"]
            .as_str()
            .unwrap()
            .contains("does not build yet"),
        "{red:#}"
    );
    // A file that loaded before is another matter.
    scenario.say(
        "small",
        &replaces("calc.py", "def sub(a, b):\n    return a - b\n"),
    );
    let broken = scenario.call("tdd_green", json!({"test_path": "tests/test_sub.py"}));
    assert_eq!(broken["status"], "error", "{broken:#}");
}

/// One file does not load; the test of another turns green all the same.
fn assert_green_beside_broken_file(
    files: &[(&str, &str)],
    test: &str,
    (path, right): (&str, &str),
) {
    let mut scenario = Scenario::chain(&["small"], files).answers("small", &replaces(path, right));
    passes(&scenario.call("tdd_green", json!({"test_path": test})));
}

fn reply_to_red(files: &[(&str, &str)], test: (&str, &str)) -> Value {
    let mut scenario =
        Scenario::chain(&["small"], files).answers("small", &creates(test.0, test.1));
    let reply = scenario.reply("tdd_red", json!({"spec": "add(1, 2) is 3"}));
    let shown = reply["result"]["structuredContent"].clone();
    passes(&shown);
    assert!(
        shown["details"]["failure"].is_null(),
        "once is enough: {shown:#}"
    );
    shown
}

#[test]
fn red_shows_the_failing_assertion() {
    let files = [MANIFEST, ("src/lib.rs", WRONG), OLD_TEST];
    let shown = reply_to_red(&files, ("tests/add.rs", ADD_TEST));
    let output = shown["runner_output"].as_str().unwrap();
    assert!(
        output.contains("left: ") && output.contains("right: "),
        "{output}"
    );
    assert_eq!(
        (&shown["skill"], &shown["tool"]),
        (&json!("tdd"), &json!("tdd_red"))
    );
}

#[test]
#[ignore = "needs node and npm"]
fn red_shows_the_failing_assertion_in_node() {
    require(&["node", "npm"]);
    let test = "const test = require('node:test');\nconst assert = require('node:assert');\n\
                test('adds', () => assert.equal(require('../calc').add(1, 2), 3));\n";
    let files = [
        ("package.json", r#"{"scripts": {"test": "node --test"}}"#),
        ("calc.js", "exports.add = (a, b) => a;\n"),
    ];
    let shown = reply_to_red(&files, ("test/add.test.js", test));
    let output = shown["runner_output"].as_str().unwrap();
    assert!(
        output.contains("1 !== 3") || output.contains("1 == 3"),
        "{output}"
    );
}

#[test]
#[ignore = "needs node and npm"]
fn broken_file_does_not_block_others_in_node() {
    require(&["node", "npm"]);
    let head = "const test = require('node:test');\nconst assert = require('node:assert');\n";
    let bad = format!("{head}require('no-such-package');\ntest('never', () => {{}});\n");
    let add = format!("{head}test('adds', () => assert.equal(require('../calc').add(1, 2), 3));\n");
    let files = [
        ("package.json", r#"{"scripts": {"test": "node --test"}}"#),
        ("calc.js", "exports.add = (a, b) => a;\n"),
        ("test/bad.test.js", bad.as_str()),
        ("test/add.test.js", add.as_str()),
    ];
    let right = ("calc.js", "exports.add = (a, b) => a + b;\n");
    assert_green_beside_broken_file(&files, "test/add.test.js", right);
}

#[test]
#[ignore = "needs go"]
fn broken_package_does_not_block_others_in_go() {
    require(&["go"]);
    let test = "package calc\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tif Add(1, 2) != 3 {\n\t\tt.Fatal(\"wrong\")\n\t}\n}\n";
    let other = test.replace("package calc", "package other");
    let files = [
        ("go.mod", "module example.com/demo\n\ngo 1.19\n"),
        (
            "calc/calc.go",
            "package calc\n\nfunc Add(a, b int) int { return a }\n",
        ),
        ("calc/calc_test.go", test),
        (
            "other/other.go",
            "package other\n\nfunc Other() int { return missing }\n",
        ),
        ("other/other_test.go", other.as_str()),
    ];
    let right = (
        "calc/calc.go",
        "package calc\n\nfunc Add(a, b int) int { return a + b }\n",
    );
    assert_green_beside_broken_file(&files, "calc/calc_test.go", right);
}

#[test]
fn endless_test_command_is_ended_without_a_question() {
    let scenario = Scenario::chain(
        &["small"],
        &[(
            "serve.sh",
            "sleep 4000 &\necho $$ $! > \"$1\"\necho listening\nwait\n",
        )],
    );
    let outside = scenario.state.path().display().to_string();
    let mut scenario = scenario.settings(&format!(
        "[limits]\ntests_s = 2\n[sandbox]\nwrite = [\"{outside}\"]\n"
    ));
    let pids = scenario.state.path().join("pids");
    let asked = json!({"spec": "it adds", "test_cmd": format!("sh serve.sh {}", pids.display())});
    let red = scenario.call("tdd_red", asked);
    assert_eq!(red["status"], "error", "{red:#}");
    let message = red["message"].as_str().unwrap();
    assert!(
        message.contains("was ended after its limit of 2 s") && message.contains("ends by itself"),
        "{message}"
    );
    assert!(scenario.asked_of("small").is_empty());
    // By command line: process ids of the sandbox mean other processes here.
    let named = |id: &str| fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default();
    let noted = fs::read_to_string(&pids).unwrap();
    assert_eq!(noted.split_whitespace().count(), 2, "{noted}");
    assert!(
        noted
            .split_whitespace()
            .all(|id| !named(id).contains("4000") && !named(id).contains("serve.sh")),
        "{noted}"
    );
}

#[test]
fn too_small_context_window_escalates() {
    let lines: String = (0..400)
        .map(|n| format!("    assert_eq!(demo::add({n}, 2), {n} + 2, \"{n}\");\n"))
        .collect();
    let test = format!("#[test]\nfn adds() {{\n{lines}}}\n");
    let files = [
        MANIFEST,
        ("src/lib.rs", WRONG),
        OLD_TEST,
        ("tests/add.rs", test.as_str()),
    ];
    let mut scenario = Scenario::chain(&["small", "large"], &files)
        .settings("[models.small]\ncontext = 2048\n")
        .answers("small", &replaces("src/lib.rs", ADD))
        .answers("large", &replaces("src/lib.rs", ADD));
    let green = scenario.call("tdd_green", json!({"test_path": "tests/add.rs"}));
    passes(&green);
    assert!(
        trail(&green).starts_with("small incapable"),
        "{}",
        trail(&green)
    );
    assert!(scenario.asked_of("small").is_empty(), "it was not asked");
}
