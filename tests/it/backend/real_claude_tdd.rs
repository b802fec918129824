//! The real `claude` program writes a failing test, makes it pass and tidies up, called through our tools over stdio.
//! Needs what `real_claude` needs; `tests/interop/backends claude` runs this too.

use serde_json::{Value, json};

use crate::backend::real_claude::{self, KEY, call};
use crate::skills::tdd::{ADD, ADD_TEST, MANIFEST, OLD_TEST, ONE};
use crate::support::scenario::{Scenario, gate, trail};

#[test]
#[ignore = "needs claude"]
fn real_agent_does_a_whole_cycle() {
    let neat = ADD
        .replace("a: i32, b: i32", "left: i32, right: i32")
        .replace("a + b", "left + right");
    let script = json!([
        scene(
            "Write one test that fails",
            &[call(
                "Write",
                &file("tests/add.rs", &json!({"content": ADD_TEST}))
            )]
        ),
        scene("Improve the structure", &edits("src/lib.rs", ADD, &neat)),
        scene(
            "Make the tests in `tests/add.rs` pass",
            &edits("src/lib.rs", ONE, ADD)
        ),
    ]);
    let (real, mut scenario) = agent(&script, &[]);

    let red = scenario.call(
        "tdd_red",
        json!({"spec": "add(a, b) gives the sum of two numbers", "session_id": "cycle"}),
    );
    accepted(&red, &["tests/add.rs"]);
    assert_eq!(
        red["details"]["test_names_added"],
        json!(["adds_two_numbers"])
    );
    assert_eq!(
        (
            scenario.read("tests/add.rs").as_str(),
            scenario.read("src/lib.rs").as_str()
        ),
        (ADD_TEST, ONE)
    );

    let green = scenario.call("tdd_green", red["next"]["arguments"].clone());
    accepted(&green, &["src/lib.rs"]);
    // Wherever the tests are sandboxed the agent is too, except for the network, and both work on an overlay.
    let walls = green["sandbox"].as_str().unwrap();
    let has_view = walls.contains("files: private view");
    assert!(
        !walls.contains("tests: namespaces") || walls.contains("agent: namespaces") && has_view,
        "{walls}"
    );
    assert_eq!(
        gate(&green, "inventory")["detail"],
        "no test is gone or newly skipped",
        "{green:#}"
    );
    assert_eq!(
        (
            scenario.read("tests/add.rs").as_str(),
            scenario.read("src/lib.rs").as_str()
        ),
        (ADD_TEST, ADD)
    );

    let refactor = scenario.call("tdd_refactor", green["next"]["arguments"].clone());
    accepted(&refactor, &["src/lib.rs"]);
    assert_eq!(scenario.read("src/lib.rs"), neat);

    let mut files: Vec<_> = scenario.tree().into_keys().collect();
    // Written by the tests where they work in place, and only there.
    files.retain(|path| path != std::path::Path::new("Cargo.lock"));
    let expected = ["Cargo.toml", "src/lib.rs", "tests/add.rs", "tests/old.rs"];
    assert_eq!(
        files,
        expected.map(std::path::PathBuf::from),
        "it leaves nothing of its own"
    );
    let log = real.log();
    assert!(
        log.contains("cannot find function") && !log.contains("no scene fits"),
        "it was told what the test said"
    );
    for text in [
        log,
        red.to_string(),
        green.to_string(),
        refactor.to_string(),
    ] {
        assert!(!text.contains(KEY));
    }
}

#[test]
#[ignore = "needs claude"]
fn real_agents_edit_of_the_test_is_undone() {
    let mut steps = edits("src/lib.rs", ONE, ADD);
    steps.extend(edits("tests/add.rs", "demo::add(1, 2), 3", "1, 1"));
    let script = json!([scene("Make the tests in `tests/add.rs` pass", &steps)]);
    let (real, mut scenario) = agent(&script, &[("tests/add.rs", ADD_TEST)]);
    let before = scenario.tree();
    let green = scenario.call("tdd_green", json!({"test_path": "tests/add.rs"}));
    assert_eq!(
        (&green["status"], &green["verified"]),
        (&json!("error"), &json!(false)),
        "{green:#}"
    );
    assert_eq!(trail(&green), "agent tampered");
    assert!(
        green["message"]
            .as_str()
            .unwrap()
            .contains("`tests/add.rs`"),
        "{green:#}"
    );
    assert!(
        real.log().contains("tests/add.rs has been updated"),
        "the edit was made: {}",
        real.log()
    );
    assert_eq!(scenario.tree(), before);
}

fn accepted(result: &Value, files: &[&str]) {
    assert_eq!(
        (&result["status"], &result["verified"]),
        (&json!("pass"), &json!(true)),
        "{result:#}"
    );
    assert_eq!(
        (trail(result).as_str(), &result["files_changed"]),
        ("agent accepted", &json!(files)),
        "{result:#}"
    );
}

/// What the agent does when it is asked this, up to its answer.
fn scene(when: &str, steps: &[Value]) -> Value {
    let steps = [
        steps,
        &[call("StructuredOutput", &json!({"notes": "done"}))],
    ]
    .concat();
    json!({"when": when, "steps": steps})
}

/// It edits no file that it has not read.
fn edits(path: &str, old: &str, new: &str) -> Vec<Value> {
    let change = json!({"old_string": old, "new_string": new});
    vec![
        call("Read", &file(path, &json!({}))),
        call("Edit", &file(path, &change)),
    ]
}

fn file(path: &str, more: &Value) -> Value {
    let mut input = more.clone();
    input["file_path"] = json!(format!("${{cwd}}/{path}"));
    input
}

/// A small project, and a chain of the agent alone.
fn agent(script: &Value, more: &[(&str, &str)]) -> (real_claude::ClaudeSetup, Scenario) {
    let real = real_claude::ClaudeSetup::new(script);
    let settings = format!(
        "[backends.agent]\nkind = \"claude-cli\"\ntier = \"subagent\"\nprogram = \"{}\"\nmodels = [\"agent\"]\n\
         env_pass = [\"ANTHROPIC_API_KEY\", \"ANTHROPIC_BASE_URL\"]\n[models.agent]\nid = \"claude-sonnet-4-6\"\n",
        real.tier.backend.program.as_deref().unwrap(),
    );
    let files = [&[MANIFEST, ("src/lib.rs", ONE), OLD_TEST], more].concat();
    let scenario = Scenario::chain(&["agent"], &files)
        .settings(&settings)
        .env("ANTHROPIC_API_KEY", KEY)
        .env(
            "ANTHROPIC_BASE_URL",
            real.tier.backend.base_url.as_deref().unwrap(),
        )
        // Not HOME, where the project's tests find their toolchain.
        .env(
            "CLAUDE_CONFIG_DIR",
            real.dir.path().join("home").to_str().unwrap(),
        );
    (real, scenario)
}
