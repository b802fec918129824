//! The real `claude` program as a tier of a chain: it edits in the project, and the project's own tests decide.
//! Needs what `real_claude` needs; `tests/interop/backends claude` runs this too.

use serde_json::{Value, json};
use supervisor_engine::Status;

use crate::backend::real_claude::{self, KEY, call};
use crate::backend::real_llama_chain::show;
use supervisor_test_support::chain::{Bench, Ran};

#[tokio::test]
#[ignore = "needs claude"]
async fn real_agents_edit_passes_the_tests() {
    let (ran, api) = edits_to("42").await;
    assert_eq!(ran.trail(), "agent accepted");
    assert_eq!(
        (ran.result.status, ran.result.verified, ran.answer.as_str()),
        (Status::Pass, true, "42")
    );
    assert_eq!(ran.result.more.files_changed, ["answer.txt"]);
    assert!(ran.entry.attempts[0].cost_usd.unwrap() > 0.0);
    let said = serde_json::to_string(&ran.result).unwrap();
    assert!(!said.contains(KEY) && !api.contains(KEY), "{said}");
}

#[tokio::test]
#[ignore = "needs claude"]
async fn real_agents_rejected_edit_is_undone_and_reported() {
    let (ran, _) = edits_to("17").await;
    assert_eq!(ran.trail(), "agent rejected | large rejected");
    let told = ran.asked_of("large")[0]["prompt"].as_str().unwrap();
    assert!(
        told.contains("+17") && told.contains("answer_is_42 failed: left 17, right 42"),
        "{told}"
    );
    assert_eq!(ran.answer, "41");
}

/// Runs a chain of the agent and a model that is wrong. Second: what the scripted API was asked.
async fn edits_to(number: &str) -> (Ran, String) {
    let script = json!([
        call("Read", &json!({"file_path": "${cwd}/answer.txt"})),
        call(
            "Edit",
            &json!({"file_path": "${cwd}/answer.txt", "old_string": "41", "new_string": number})
        ),
        call(
            "StructuredOutput",
            &Value::Object(serde_json::Map::default())
        ),
    ]);
    let real = real_claude::ClaudeSetup::new(&script);
    let settings = format!(
        "[backends.agent]\nkind = \"claude-cli\"\ntier = \"subagent\"\nprogram = \"{}\"\nmodels = [\"agent\"]\n\
         env_pass = [\"ANTHROPIC_API_KEY\", \"ANTHROPIC_BASE_URL\"]\n[models.agent]\nid = \"claude-sonnet-4-6\"\n",
        real.tier.backend.program.as_deref().unwrap(),
    );
    let bench = Bench::chain(&["agent", "large"])
        .settings(&settings)
        .env("ANTHROPIC_API_KEY", KEY)
        .env(
            "ANTHROPIC_BASE_URL",
            real.tier.backend.base_url.as_deref().unwrap(),
        )
        .env("HOME", real.dir.path().join("home").to_str().unwrap())
        .writes("large", "40");
    let ran = bench.run().await;
    show(&ran.story);
    (ran, real.log())
}
