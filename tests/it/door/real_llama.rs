//! A real, very small model behind llama.cpp, asked for code as text. What it writes is rarely right; what is shown is
//! that it is heard, asked again where it cannot be read, judged by the tests, and passed by. Needs what `real_llama` needs.

use std::io::Write as _;

use serde_json::json;

use super::projects::PYTHON;
use crate::ecosystems::skips;
use crate::real_llama::Server;
use crate::tdd::bench::{Bench, replaces, trail};

#[test]
fn a_real_small_model_is_heard_repaired_judged_and_passed_by() {
    let Some(server) = Server::start() else { return };
    if skips(PYTHON.needs) {
        return;
    }
    let settings = format!(
        "[backends.llama]\nkind = \"openai\"\ntier = \"local\"\nbase_url = \"{}\"\nmodels = [\"smol\"]\n\
         [models.smol]\ncontext = 2048\n",
        server.url
    );
    let mut bench = Bench::chain(&["smol", "large"], PYTHON.files).settings(&settings);
    bench.say("large", &replaces(PYTHON.code_path, &PYTHON.with(PYTHON.right_line)));
    let result = bench.call("tdd_green", json!({"test_path": PYTHON.test_path}));
    let mut err = std::io::stderr();
    for attempt in result["attempts"].as_array().unwrap() {
        let _ = writeln!(err, "{} {}: {}", attempt["model"], attempt["cause"], attempt["feedback"]);
        for ask in attempt["asks"].as_array().into_iter().flatten() {
            let _ = writeln!(err, "    {} {} tokens: {}", ask["follow_up"], ask["tokens_out"], ask["said"]);
        }
    }
    assert_eq!(result["status"], "pass", "{result:#}");
    assert!(trail(&result).starts_with("smol "), "{}", trail(&result));
    let first = &result["attempts"][0];
    assert!(first["tokens_in"].as_u64().is_some_and(|tokens| tokens > 200), "{first:#}");
    let about_the_answer = ["unreadable", "rejected", "tampered", "contradiction", "incapable", "accepted"];
    assert!(
        about_the_answer.contains(&first["cause"].as_str().unwrap()),
        "heard, and not taken for a fault of the server: {first:#}"
    );
    if first["cause"] == "unreadable" {
        assert_eq!(first["asks"][1]["follow_up"], "repair", "{first:#}");
    }
}
