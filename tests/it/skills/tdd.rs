//! Red, green, refactor over stdio, with recorded models and the real tests of a Rust project.

use crate::support::scenario::{Scenario, creates, gate, replaces, trail};
use serde_json::{Value, json};

use crate::support::mcp_session::until;
use supervisor_test_support::programs::require;

pub(crate) const MANIFEST: (&str, &str) = (
    "Cargo.toml",
    "[package]\nname = \"demo\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n",
);
pub(crate) const ONE: &str = "pub fn one() -> i32 {\n    1\n}\n";
pub(crate) const OLD_TEST: (&str, &str) = (
    "tests/old.rs",
    "#[test]\nfn one_is_one() {\n    assert_eq!(demo::one(), 1);\n}\n",
);
pub(crate) const ADD_TEST: &str =
    "#[test]\nfn adds_two_numbers() {\n    assert_eq!(demo::add(1, 2), 3);\n}\n";
pub(crate) const ADD: &str =
    "pub fn one() -> i32 {\n    1\n}\n\npub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n";
pub(crate) const WRONG: &str =
    "pub fn one() -> i32 {\n    1\n}\n\npub fn add(a: i32, b: i32) -> i32 {\n    a - b\n}\n";

fn demo(tiers: &[&str]) -> Scenario {
    Scenario::chain(tiers, &[MANIFEST, ("src/lib.rs", ONE), OLD_TEST])
}

/// With a test that names what is not written.
fn red_demo(tiers: &[&str]) -> Scenario {
    Scenario::chain(
        tiers,
        &[
            MANIFEST,
            ("src/lib.rs", ONE),
            OLD_TEST,
            ("tests/add.rs", ADD_TEST),
        ],
    )
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key]
        .as_str()
        .unwrap_or_else(|| panic!("no `{key}` in {value}"))
}

#[test]
fn accepted_call_replies_briefly_with_full_file() {
    let mut scenario =
        red_demo(&["small", "large"]).answers("small", &replaces("src/lib.rs", WRONG));
    scenario.say("large", &replaces("src/lib.rs", ADD));
    let reply = scenario.reply("tdd_green", json!({"test_path": "tests/add.rs"}));
    let text = reply["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.len() < 1536, "{} bytes: {text}", text.len());
    let small: Value = serde_json::from_str(text).unwrap();
    assert_eq!(trail(&small), "small rejected | large accepted");
    assert_eq!(
        small["attempts"][1]["runner_output"],
        Value::Null,
        "what the runner printed is there once"
    );
    assert!(
        small["runner_output"]
            .as_str()
            .unwrap()
            .contains("test result: ok"),
        "{text}"
    );
    let whole: Value =
        serde_json::from_slice(&std::fs::read(small["full_result"].as_str().unwrap()).unwrap())
            .unwrap();
    for field in ["gates", "diff", "runner_output", "attempts"] {
        assert!(
            whole[field].to_string().len() >= small[field].to_string().len(),
            "{field}"
        );
    }
    assert!(
        whole["attempts"][0]["runner_output"]
            .as_str()
            .unwrap()
            .contains("adds_two_numbers"),
        "{whole:#}"
    );
    assert!(gate(&whole, "sealed")["pass"].as_bool().unwrap());
}

#[test]
fn whole_cycle_starts_from_a_missing_symbol() {
    let mut scenario = demo(&["small"]).answers("small", &creates("tests/add.rs", ADD_TEST));
    let red = scenario.call(
        "tdd_red",
        json!({"spec": "add(a, b) gives the sum of two numbers", "session_id": "cycle"}),
    );
    assert_eq!(
        (&red["status"], &red["verified"]),
        (&json!("pass"), &json!(true)),
        "{red:#}"
    );
    assert_eq!(
        red["details"]["test_names_added"],
        json!(["adds_two_numbers"])
    );
    assert_eq!(
        text(&red, "file_path"),
        scenario.root().join("tests/add.rs").display().to_string()
    );
    assert!(text(&red, "runner_output").contains("add"), "{red:#}");
    assert_eq!(
        red["files_changed"],
        json!(["tests/add.rs"]),
        "Cargo.lock is the tests' doing"
    );
    assert_eq!(
        (&red["next"]["tool"], &red["model_used"]),
        (&json!("tdd_green"), &json!("small"))
    );
    assert_eq!(red["next"]["arguments"]["session_id"], "cycle");

    scenario.say("small", &replaces("src/lib.rs", ADD));
    let green = scenario.call("tdd_green", red["next"]["arguments"].clone());
    assert_eq!(
        (&green["status"], &green["verified"]),
        (&json!("pass"), &json!(true)),
        "{green:#}"
    );
    assert_eq!(
        text(gate(&green, "inventory"), "detail"),
        "no test is gone or newly skipped",
        "known from the red"
    );
    assert_eq!(green["details"]["new_public_items"], json!(["add"]));
    assert_eq!(
        (
            &green["details"]["lines_added"],
            &green["details"]["new_dependencies"]
        ),
        (&json!(4), &json!([]))
    );
    assert_eq!(scenario.read("src/lib.rs"), ADD);
    assert_eq!(scenario.read("tests/add.rs"), ADD_TEST);

    let neat = ADD
        .replace("a: i32, b: i32", "left: i32, right: i32")
        .replace("a + b", "left + right");
    scenario.say("small", &replaces("src/lib.rs", &neat));
    let refactor = scenario.call("tdd_refactor", green["next"]["arguments"].clone());
    assert_eq!(
        (&refactor["status"], &refactor["verified"]),
        (&json!("pass"), &json!(true)),
        "{refactor:#}"
    );
    assert_eq!(scenario.read("src/lib.rs"), neat);
}

#[test]
fn wrong_answer_escalates_with_the_test_output() {
    let mut scenario = red_demo(&["small", "large"])
        .answers("small", &replaces("src/lib.rs", WRONG))
        .answers("large", &replaces("src/lib.rs", ADD));
    let green = scenario.call("tdd_green", json!({"test_path": "tests/add.rs"}));
    assert_eq!(green["status"], "pass", "{green:#}");
    assert_eq!(trail(&green), "small rejected | large accepted");
    assert!(
        text(gate(&green, "inventory"), "detail").starts_with("unknown: "),
        "{green:#}"
    );
    let prompt = &scenario.asked_of("large")[0];
    assert!(
        prompt.contains("Prior attempt feedback: [1 · small · rejected]")
            && prompt.contains("left: -1"),
        "{prompt}"
    );
    let first = &scenario.asked_of("small")[0];
    assert!(
        first.contains("adds_two_numbers")
            && first.contains("pub fn one()")
            && first.contains("cannot find function")
    );
}

#[test]
fn failed_chain_leaves_the_project_unchanged() {
    let mut scenario = red_demo(&["small", "medium"])
        .answers("small", &replaces("src/lib.rs", WRONG))
        .answers(
            "medium",
            &replaces("tests/add.rs", "#[test]\nfn adds_two_numbers() {}\n"),
        );
    let before = scenario.tree();
    let green = scenario.call("tdd_green", json!({"test_path": "tests/add.rs"}));
    assert_eq!(
        (&green["status"], &green["verified"]),
        (&json!("error"), &json!(false)),
        "{green:#}"
    );
    assert_eq!(trail(&green), "small rejected | medium tampered");
    let message = text(&green, "message");
    assert!(
        message.contains("adds_two_numbers") && message.contains("`tests/add.rs`"),
        "{message}"
    );
    assert_eq!(scenario.tree(), before);
}

#[test]
fn pinned_model_is_asked_alone() {
    let mut scenario =
        red_demo(&["small", "large"]).answers("medium", &replaces("src/lib.rs", ADD));
    let green = scenario.call(
        "tdd_green",
        json!({"test_path": "tests/add.rs::adds_two_numbers", "model": "medium"}),
    );
    assert_eq!(
        (green["status"].as_str(), trail(&green).as_str()),
        (Some("pass"), "medium accepted"),
        "{green:#}"
    );
    assert!(scenario.asked_of("small").is_empty() && scenario.asked_of("large").is_empty());
}

#[test]
fn test_that_passes_at_once_is_removed() {
    let passes = "#[test]\nfn one_is_still_one() {\n    assert_eq!(demo::one(), 1);\n}\n";
    let mut scenario =
        demo(&["small", "large"]).answers("small", &creates("tests/again.rs", passes));
    let before = scenario.tree();
    let red = scenario.call("tdd_red", json!({"spec": "one() is 1"}));
    assert_eq!(
        (red["status"].as_str(), red["verified"].as_bool()),
        (Some("fail"), Some(false)),
        "{red:#}"
    );
    assert!(text(&red, "message").contains("passes at once"), "{red:#}");
    assert!(
        scenario.asked_of("large").is_empty(),
        "a stronger model would say the same"
    );
    assert_eq!(scenario.tree(), before);
}

/// Slips, each with its own sentence; the next tier is asked.
#[test]
fn skipped_or_unreadable_test_escalates_with_reason() {
    let ignored = "#[test]\n#[ignore]\nfn adds() {\n    assert_eq!(demo::one(), 2);\n}\n";
    let broken = format!(
        "{ONE}\n#[cfg(test)]\nmod tests {{\n    #[test]\n    fn adds() {{\n        let x = ;\n    }}\n}}\n"
    );
    for (reply, said) in [
        (
            creates("tests/new.rs", ignored),
            "is skipped: a test that does not run is not red",
        ),
        (
            replaces("src/lib.rs", &broken),
            "`src/lib.rs` can no longer be read as Rust",
        ),
    ] {
        let mut scenario = demo(&["small", "large"])
            .answers("small", &reply)
            .answers("large", &creates("tests/add.rs", ADD_TEST));
        let red = scenario.call(
            "tdd_red",
            json!({"spec": "add(a, b) gives the sum of two numbers"}),
        );
        assert_eq!(trail(&red), "small rejected | large accepted", "{red:#}");
        assert!(
            text(&red["attempts"][0], "feedback").contains(said),
            "{red:#}"
        );
        assert!(
            scenario.asked_of("small")[0].contains("## tests/old.rs\n1| #[test]"),
            "how tests are written here"
        );
    }
}

#[test]
#[ignore = "needs node and npm"]
fn missing_name_only_in_test_is_not_red() {
    require(&["node", "npm"]);
    let manifest = (
        "package.json",
        "{\"name\": \"cart\", \"scripts\": {\"test\": \"node --test\"}}\n",
    );
    let code = ("cart.js", "exports.total = (items) => items.length;\n");
    let test = |body: &str| {
        format!(
            "const test = require('node:test');\nconst assert = require('node:assert');\nconst cart = require('../cart.js');\n\ntest('halves', () => {{\n  {body}\n}});\n"
        )
    };
    let mut scenario = Scenario::chain(
        &["small", "large"],
        &[
            manifest,
            code,
            (
                "test/old.test.js",
                &test("assert.equal(cart.total([]), 0);"),
            ),
        ],
    )
    .answers(
        "small",
        &creates("test/half.test.js", &test("assert.equal(crt.half(4), 2);")),
    )
    .answers(
        "large",
        &creates("test/half.test.js", &test("assert.equal(cart.half(4), 2);")),
    );
    let red = scenario.call("tdd_red", json!({"spec": "half(4) is 2"}));
    assert_eq!(trail(&red), "small rejected | large accepted", "{red:#}");
    assert!(
        text(&red["attempts"][0], "feedback")
            .contains("the test says `crt`, which it neither defines"),
        "{red:#}"
    );
}

#[test]
fn test_beside_the_code_works_like_others() {
    let with_test = format!(
        "{ONE}\n#[cfg(test)]\nmod tests {{\n    use super::*;\n\n    #[test]\n    fn one_doubled() {{\n        assert_eq!(one() * 2, 3);\n    }}\n}}\n"
    );
    let mut scenario = demo(&["small"]).answers("small", &replaces("src/lib.rs", &with_test));
    let red = scenario.call(
        "tdd_red",
        json!({"spec": "one doubled is 3", "test_path": "src/lib.rs"}),
    );
    assert_eq!(red["status"], "pass", "{red:#}");
    assert_eq!(
        red["details"]["test_names_added"],
        json!(["demo tests::one_doubled"])
    );
    // The test wants what another test forbids: no honest code can do it, and saying so is an answer.
    scenario.say(
        "small",
        &json!({"contradiction": "one() must be 1 and one doubled 3"}),
    );
    let green = scenario.call("tdd_green", json!({"test_path": "src/lib.rs"}));
    assert_eq!(
        (green["status"].as_str(), trail(&green).as_str()),
        (Some("fail"), "small contradiction"),
        "{green:#}"
    );
    let weakened = with_test.replace("2, 3", "2, 2");
    scenario.say("small", &replaces("src/lib.rs", &weakened));
    let green = scenario.call("tdd_green", json!({"test_path": "src/lib.rs"}));
    assert_eq!(trail(&green), "small tampered", "{green:#}");
    assert_eq!(scenario.read("src/lib.rs"), with_test);
}

#[test]
fn breaking_or_empty_refactoring_is_undone() {
    let mut scenario =
        demo(&["small"]).answers("small", &replaces("src/lib.rs", &ONE.replace('1', "2")));
    let before = scenario.tree();
    let arguments = json!({"test_path": "tests/old.rs", "impl_path": "src/lib.rs"});
    let broken = scenario.call("tdd_refactor", arguments.clone());
    assert_eq!(broken["status"], "fail", "{broken:#}");
    assert!(
        text(&broken, "message").contains("one_is_one"),
        "{broken:#}"
    );
    scenario.say("small", &replaces("src/lib.rs", ONE));
    let nothing = scenario.call("tdd_refactor", arguments);
    assert_eq!(nothing["status"], "fail", "{nothing:#}");
    assert!(text(&nothing, "message").contains("no-op"), "{nothing:#}");
    assert_eq!(scenario.tree(), before);
}

#[test]
fn unfixable_input_fails_before_any_question() {
    let mut scenario = red_demo(&["small"]);
    let failing = OLD_TEST.1.replace("(), 1", "(), 7");
    std::fs::write(scenario.project.path().join("tests/old.rs"), &failing).unwrap();
    std::fs::write(scenario.project.path().join("src/lib.rs"), WRONG).unwrap();
    let before = scenario.tree();
    for (tool, arguments, words) in [
        (
            "tdd_green",
            json!({"test_path": "tests/none.rs"}),
            vec!["test_path: there is no file `tests/none.rs`"],
        ),
        (
            "tdd_green",
            json!({"test_path": "../x.rs"}),
            vec!["lies outside the project"],
        ),
        (
            "tdd_green",
            json!({"test_path": "tests/add.rs", "test_cmd": "no-such-runner"}),
            vec!["could not run", "no-such-runner"],
        ),
        (
            "tdd_green",
            json!({"test_path": "tests/add.rs", "project_root": " "}),
            vec!["project_root is required"],
        ),
        ("tdd_red", json!({"spec": "  "}), vec!["spec is required"]),
        (
            "tdd_refactor",
            json!({"test_path": "tests/old.rs", "impl_path": "src/lib.rs"}),
            vec!["not green before", "tdd_green"],
        ),
        (
            "tdd_green",
            json!({"test_path": "src/lib.rs"}),
            vec!["nothing is red in `src/lib.rs`"],
        ),
    ] {
        let result = scenario.call(tool, arguments.clone());
        assert_eq!(result["status"], "error", "{tool} {arguments}: {result:#}");
        for part in words {
            assert!(
                text(&result, "message").contains(part),
                "{tool} {arguments}: {result:#}"
            );
        }
    }
    assert!(scenario.asked_of("small").is_empty());
    assert_eq!(scenario.tree(), before);
}

#[test]
fn long_prompt_is_written_to_a_file() {
    let module = |n: usize| -> String {
        let sum = |f| {
            format!(
                "/// Two numbers and {f}, module {n}.\npub fn sum{f}(a: i32, b: i32) -> i32 {{\n    a + b + {f}\n}}\n\n"
            )
        };
        (0..40).map(sum).collect()
    };
    let names: Vec<String> = (0..16).map(|n| format!("src/m{n}.rs")).collect();
    let modules: Vec<String> = (0..16).map(module).collect();
    let lib: String = (0..16).map(|n| format!("pub mod m{n};\n")).collect();
    let calls: String = (0..16)
        .map(|n| format!("    assert_eq!(demo::m{n}::sum0(1, 2), 4);\n"))
        .collect();
    let test = format!("#[test]\nfn adds() {{\n{calls}}}\n");
    let mut files = vec![
        MANIFEST,
        ("src/lib.rs", lib.as_str()),
        ("tests/add.rs", test.as_str()),
    ];
    files.extend(
        names
            .iter()
            .map(String::as_str)
            .zip(modules.iter().map(String::as_str)),
    );
    let mut scenario =
        Scenario::chain(&["small"], &files).settings("[models.small]\ncontext = 32768\n");
    let asked = json!({"test_path": "tests/add.rs", "dry_run": true, "show_prompt": true});
    let plan = scenario.call("tdd_green", asked);
    let details = &plan["details"];
    let whole =
        std::fs::read_to_string(details["prompt_path"].as_str().unwrap_or_default()).unwrap();
    let told = details["chain"][0]["prompt_bytes"].as_u64().unwrap();
    assert_eq!(
        whole.len() as u64,
        told + 2,
        "an empty line stands between the rules and the question"
    );
    assert!(
        whole.len() > 45_000 && whole.contains("module 9"),
        "{} bytes",
        whole.len()
    );
    assert!(details["prompt"].as_str().unwrap().len() < whole.len());
}

#[test]
fn dry_run_shows_the_plan_and_asks_nobody() {
    let mut scenario = red_demo(&["small", "large"]);
    let before = scenario.tree();
    let plan = scenario.call(
        "tdd_green",
        json!({"test_path": "tests/add.rs", "dry_run": true}),
    );
    assert_eq!(
        (plan["status"].as_str(), plan["verified"].as_bool()),
        (Some("pass"), Some(false)),
        "{plan:#}"
    );
    let details = &plan["details"];
    assert_eq!(
        (&details["chain"][0]["model"], &details["chain"][1]["model"]),
        (&json!("small"), &json!("large"))
    );
    assert!(
        details["chain"][0]["prompt_bytes"].as_u64().unwrap()
            < details["chain"][0]["window_bytes"].as_u64().unwrap()
    );
    assert_eq!(
        (&details["runner"], &details["sealed_files"]),
        (&json!("cargo"), &json!(3))
    );
    assert_eq!(details["by_products"], json!(["Cargo.lock"]));
    assert!(scenario.asked_of("small").is_empty());
    assert_eq!(scenario.tree(), before);
}

#[test]
fn cancelled_call_leaves_the_project_unchanged() {
    for in_place in [true, false] {
        let strategy = if in_place {
            "[workspace]\nstrategy = \"in-place\"\n"
        } else {
            ""
        };
        let mut scenario = red_demo(&["small"]).settings(strategy);
        scenario.line(&json!({"model": "small", "failure": "hang"}));
        let before = scenario.tree();
        let arguments = json!({"project_root": scenario.root(), "test_path": "tests/add.rs", "session_id": "stopped"});
        scenario.session().call(7, "tdd_green", arguments);
        until("the question", || !scenario.asked_of("small").is_empty());
        assert!(
            !in_place || scenario.tree() != before,
            "the lock file of the first run is there"
        );
        scenario.session().cancel(7);
        let log = scenario.state.path().join("state/sessions/stopped.jsonl");
        until("the entry", || {
            std::fs::read_to_string(&log).is_ok_and(|text| text.contains("Cancelled"))
        });
        assert_eq!(scenario.tree(), before);
    }
}

#[test]
fn green_that_records_a_snapshot_is_refused() {
    let records = "#[test]\nfn adds_two_numbers() {\n    let sum = demo::add(1, 2);\n    \
                   std::fs::create_dir_all(\"tests/snapshots\").unwrap();\n    \
                   std::fs::write(\"tests/snapshots/add.snap\", sum.to_string()).unwrap();\n    assert_eq!(sum, 3);\n}\n";
    let mut scenario = Scenario::chain(
        &["small"],
        &[
            MANIFEST,
            ("src/lib.rs", ONE),
            OLD_TEST,
            ("tests/add.rs", records),
        ],
    );
    scenario.say("small", &replaces("src/lib.rs", ADD));
    let green = scenario.call("tdd_green", json!({"test_path": "tests/add.rs"}));
    assert_eq!(green["status"], "error", "{green:#}");
    assert_eq!(trail(&green), "small rejected");
    let why = text(&green["attempts"][0], "feedback");
    assert!(why.contains("recorded `tests/snapshots/add.snap`"), "{why}");
    assert!(!scenario.root().join("tests/snapshots/add.snap").exists());
}

#[test]
#[ignore = "needs python3 and pytest"]
fn python_cycle_starts_from_import_in_test() {
    require(&["python3", "pytest"]);
    let old = "from calc import one\n\n\ndef test_one():\n    assert one() == 1\n";
    let new = format!(
        "{old}\n\ndef test_adds():\n    from calc import add\n\n    assert add(1, 2) == 3\n"
    );
    let code = "def one():\n    return 1\n";
    let mut scenario = Scenario::chain(
        &["small"],
        &[
            ("pyproject.toml", ""),
            ("calc.py", code),
            ("test_calc.py", old),
        ],
    );
    scenario.say("small", &replaces("test_calc.py", &new));
    let red = scenario.call(
        "tdd_red",
        json!({"spec": "add(a, b) is the sum", "test_path": "test_calc.py"}),
    );
    assert_eq!(red["status"], "pass", "{red:#}");
    assert_eq!(
        red["details"]["test_names_added"],
        json!(["test_calc.py::test_adds"])
    );
    scenario.say(
        "small",
        &replaces(
            "calc.py",
            &format!("{code}\n\ndef add(a, b):\n    return a + b\n"),
        ),
    );
    let green = scenario.call("tdd_green", red["next"]["arguments"].clone());
    assert_eq!(
        (green["status"].as_str(), &green["details"]["tests_after"]),
        (Some("pass"), &json!(2)),
        "{green:#}"
    );
    scenario.say(
        "small",
        &replaces(
            "calc.py",
            &format!("{code}\n\ndef add(left, right):\n    return left + right\n"),
        ),
    );
    let refactor = scenario.call("tdd_refactor", green["next"]["arguments"].clone());
    assert_eq!(refactor["status"], "pass", "{refactor:#}");
}

#[test]
fn printed_test_name_is_a_test_path() {
    let mut scenario = red_demo(&["small"]);
    std::fs::write(scenario.project.path().join("src/lib.rs"), WRONG).unwrap();
    let mut call =
        |name: &str| scenario.call("tdd_green", json!({"test_path": name, "dry_run": true}));
    let named = call("demo::add adds_two_numbers");
    assert_eq!(named["status"], "pass", "{named:#}");
    let unknown = call("demo::add subtracts");
    assert!(
        text(&unknown, "message").contains("neither a file nor the name of a test"),
        "{unknown:#}"
    );
}
