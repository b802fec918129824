//! A chain whose first tier is a real, very small model behind a real gateway: it is asked, judged and followed by the next tier.
//! Needs what `real_llama` needs; `tests/interop/backends llama` runs this too.

use serde_json::json;
use supervisor_engine::Verdict;

use crate::backend::real_litellm::{Gateway, KEY};
use crate::backend::real_llama::Server;
use supervisor_test_support::chain::Bench;

#[tokio::test]
#[ignore = "needs llama.cpp and litellm"]
async fn tests_reject_real_small_model_and_escalate() {
    let server = Server::start();
    let gateway = Gateway::start(&server.url).await;
    let url = gateway.question("local/good").0.backend.base_url.unwrap();
    let settings = format!(
        "[backends.gate]\nkind = \"openai\"\ntier = \"local\"\nbase_url = \"{url}\"\napi_key_env = \"GATE_KEY\"\n\
         models = [\"local/*\"]\n[models.\"local/good\"]\ncontext = 2048\n"
    );
    let bench = Bench::chain(&["local/good", "large"])
        .settings(&settings)
        .env("GATE_KEY", KEY)
        // It may choose, and every choice is wrong: what a model of this size knows is not what is shown here.
        .schema(json!({
            "type": "object",
            "properties": {"edits": {"type": "array", "minItems": 1, "maxItems": 1, "items": {
                "type": "object",
                "properties": {
                    "path": {"enum": ["answer.txt"]}, "action": {"enum": ["replace"]}, "content": {"enum": ["17", "23"]},
                },
                "required": ["path", "action", "content"],
                "additionalProperties": false,
            }}},
            "required": ["edits"],
            "additionalProperties": false,
        }))
        .writes("large", "42");
    let ran = bench.run().await;
    show(&ran.story);
    assert_eq!(ran.trail(), "local/good rejected | large accepted");
    let [small, large] = &ran.entry.attempts[..] else {
        panic!("{:?}", ran.entry.attempts)
    };
    assert_eq!(
        (small.verdict, large.verdict),
        (Some(Verdict::Escalate), Some(Verdict::Accept))
    );
    assert!(
        small.tokens_in.unwrap() > 20
            && small.tokens_out.unwrap() > 5
            && small.cost_usd == Some(0.0),
        "{small:?}"
    );
    assert!(
        small.runner_output.contains("answer_is_42 failed: left "),
        "{}",
        small.runner_output
    );
    let told = ran.asked_of("large")[0]["prompt"].as_str().unwrap();
    assert!(
        told.contains("[1 · local/good · rejected]") && told.contains("right 42"),
        "{told}"
    );
    assert_eq!(
        (ran.answer.as_str(), ran.result.model_used.as_str()),
        ("42", "large")
    );
    assert!(!serde_json::to_string(&ran.result).unwrap().contains(KEY));
}

#[expect(clippy::print_stderr, reason = "a real run is worth reading")]
pub(crate) fn show(lines: &[String]) {
    for line in lines {
        eprintln!("{line}");
    }
}
