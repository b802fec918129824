//! A walk that was recorded once can be walked again without its models.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use supervisor_engine::Attempt;

use supervisor_test_support::chain::Bench;
use supervisor_test_support::upstream::{Says, Upstream};

const CANARY: &str = "canary of the gateway 77";

#[tokio::test]
async fn recorded_call_is_replayed_without_models() {
    let upstream = Upstream::answering(|request| match request.body["model"].as_str().unwrap() {
        "gate/broken" => Says::content("I would rather talk."),
        "gate/small" => says("17"),
        _ => says("42"),
    })
    .await;
    let chain = ["gate/broken", "gate/small", "gate/large"];
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("recorded.jsonl");
    let gate =
        |more: &str| format!("[backends.gate]\ntier = \"local\"\nmodels = [\"gate/*\"]\n{more}\n");

    let live = format!(
        "kind = \"openai\"\nbase_url = \"{}\"\napi_key_env = \"GATE_KEY\"\nrecord = \"{}\"",
        upstream.url,
        file.display()
    );
    let bench = Bench::chain(&chain)
        .without_verifier()
        .env("GATE_KEY", CANARY)
        .settings(&gate(&live));
    let first = bench.run().await;
    assert_eq!(
        first.trail(),
        "gate/broken unreadable | gate/small rejected | gate/large accepted"
    );
    let recorded = fs::read_to_string(&file).unwrap();
    assert_eq!(recorded.lines().count(), 3, "{recorded}");
    assert!(
        !recorded.contains(CANARY) && recorded.contains("[redacted]"),
        "{recorded}"
    );
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let asked = upstream.requests().len();

    let replayed = format!("kind = \"replay\"\nfile = \"{}\"", file.display());
    let again = Bench::chain(&chain)
        .without_verifier()
        .settings(&gate(&replayed))
        .run()
        .await;
    assert_eq!(again.trail(), first.trail());
    assert_eq!(
        (again.answer.as_str(), again.result.more.diff),
        ("42", first.result.more.diff)
    );
    let told = |attempts: &[Attempt]| -> Vec<Value> {
        attempts
            .iter()
            .map(|a| {
                json!([
                    a.verdict,
                    a.runner_output,
                    a.tokens_in,
                    a.tokens_out,
                    a.cost_usd
                ])
            })
            .collect()
    };
    assert_eq!(told(&again.entry.attempts), told(&first.entry.attempts));
    assert_eq!(upstream.requests().len(), asked, "no model was asked");
}

fn says(number: &str) -> Says {
    let edits = json!([{"path": "answer.txt", "action": "replace", "content": number}]);
    Says::content(
        &json!({"edits": edits, "note": format!("I was called with {CANARY}")}).to_string(),
    )
}
