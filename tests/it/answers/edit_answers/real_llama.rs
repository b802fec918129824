//! A real, very small model behind llama.cpp, asked for code as text. What it writes is rarely right; what is shown is
//! that its answer is read, asked for again if unreadable, judged by the tests, and followed by the next tier. Needs what
//! `real_llama` needs.

use std::collections::BTreeSet;
use std::io::Write as _;

use serde_json::{Value, json};

use super::projects::PYTHON;
use crate::backend::real_llama::Server;
use crate::support::scenario::{Scenario, replaces, trail};
use supervisor_test_support::programs::require;

#[test]
#[ignore = "needs llama.cpp and pytest"]
fn real_small_model_is_judged_and_escalated() {
    let server = Server::start();
    require(PYTHON.needs);
    let settings = format!(
        "[backends.llama]\nkind = \"openai\"\ntier = \"local\"\nbase_url = \"{}\"\nmodels = [\"smol\"]\n\
         [models.smol]\ncontext = 2048\n",
        server.url
    );
    let mut scenario = Scenario::chain(&["smol", "large"], PYTHON.files).settings(&settings);
    scenario.say(
        "large",
        &replaces(PYTHON.code_path, &PYTHON.with(PYTHON.right_line)),
    );
    let result = scenario.call("tdd_green", json!({"test_path": PYTHON.test_path}));
    show(&result);
    assert_eq!(result["status"], "pass", "{result:#}");
    assert!(trail(&result).starts_with("smol "), "{}", trail(&result));
    let first = &result["attempts"][0];
    assert!(
        first["tokens_in"]
            .as_u64()
            .is_some_and(|tokens| tokens > 200),
        "{first:#}"
    );
    let about_the_answer = [
        "unreadable",
        "rejected",
        "tampered",
        "contradiction",
        "incapable",
        "accepted",
    ];
    assert!(
        about_the_answer.contains(&first["cause"].as_str().unwrap()),
        "heard, and not taken for a fault of the server: {first:#}"
    );
    if first["cause"] == "unreadable" {
        assert_eq!(first["asks"][1]["follow_up"], "repair", "{first:#}");
    }
}

/// What each of three servers lets the same weights choose from. A model of this size asks for nothing by itself; held to
/// these shapes, it goes through every step.
const GRAMMARS: [(&str, &str); 3] = [
    ("asker", "root ::= need | file\n"),
    ("talker", "root ::= \"Yes \" [a-z ]{20,60} \".\\n\"\n"),
    ("writer", "root ::= \"```python\\n\" code \"```\\n\"\n"),
];

const SHAPES: &str = "need ::= \"NEED: \" (\"rates.py\" | \"RATE\") \"\\n\"\n\
                      file ::= \"calc.py\\n```python\\n\" code \"```\\n\"\n\
                      code ::= \"from rates import RATE\\n\\n\\ndef add(a, b):\\n    return \" term \" \" [-*/] \" \" term \"\\n\"\n\
                      term ::= \"a\" | \"b\" | \"RATE\"\n";

#[test]
#[ignore = "needs llama.cpp and pytest"]
fn real_small_model_requests_files_and_repairs() {
    require(&["pytest"]);
    let files = [
        (
            "calc.py",
            "from rates import RATE\n\n\ndef add(a, b):\n    return RATE\n",
        ),
        ("rates.py", "RATE = 3\n"),
        (
            "test_calc.py",
            "from calc import add\n\n\ndef test_adds():\n    assert add(2, 3) == 5\n",
        ),
    ];
    let folder = tempfile::tempdir().unwrap();
    let mut settings = String::new();
    let mut servers = Vec::new();
    for (name, root) in GRAMMARS {
        let grammar = folder.path().join(name);
        std::fs::write(&grammar, format!("{root}{SHAPES}")).unwrap();
        let server = Server::with(4096, Some(&grammar));
        settings += &format!(
            "[backends.{name}]\nkind = \"openai\"\ntier = \"local\"\nbase_url = \"{}\"\nmodels = [\"{name}\"]\n\
             [models.{name}]\ncontext = 4096\nattempts_per_tier = 2\nlimit_s = 300\nseed = 7\n",
            server.url
        );
        servers.push(server);
    }
    let mut scenario =
        Scenario::chain(&["asker", "talker", "writer", "large"], &files).settings(&settings);
    scenario.say(
        "large",
        &replaces(
            "calc.py",
            "from rates import RATE\n\n\ndef add(a, b):\n    return a + b\n",
        ),
    );
    let result = scenario.call(
        "tdd_green",
        json!({"test_path": "test_calc.py", "max_attempts": 10}),
    );
    show(&result);
    assert_eq!(result["status"], "pass", "{result:#}");
    let attempts = result["attempts"].as_array().unwrap();
    let asks = attempts
        .iter()
        .flat_map(|attempt| attempt["asks"].as_array().into_iter().flatten());
    let follow_ups: BTreeSet<&str> = asks.filter_map(|ask| ask["follow_up"].as_str()).collect();
    assert!(
        follow_ups.is_superset(&BTreeSet::from(["need", "repair"])),
        "{follow_ups:?} in {attempts:#?}"
    );
    assert!(
        trail(&result).contains("writer rejected | writer rejected | large accepted"),
        "{}",
        trail(&result)
    );
    assert_eq!(result["model_used"], "large");
}

fn show(result: &Value) {
    let mut err = std::io::stderr();
    for attempt in result["attempts"].as_array().unwrap() {
        let _ = writeln!(
            err,
            "{} {}: {}",
            attempt["model"], attempt["cause"], attempt["feedback"]
        );
        for ask in attempt["asks"].as_array().into_iter().flatten() {
            let _ = writeln!(
                err,
                "    {} {} tokens: {}",
                ask["follow_up"], ask["tokens_out"], ask["said"]
            );
        }
    }
}
