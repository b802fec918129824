//! A whole cycle behind a real LiteLLM gateway: the first tier is wrong, the second is told why and is right.
//! Needs what `real_litellm` needs; `tests/interop/backends litellm` runs this too.

use serde_json::{Value, json};

use crate::backend::real_litellm::{Gateway, KEY, of_model};
use crate::skills::tdd::{ADD, ADD_TEST, MANIFEST, OLD_TEST, ONE, WRONG};
use crate::support::scenario::{Scenario, creates, replaces, trail};
use supervisor_test_support::upstream::{Request, Says, Upstream};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs litellm"]
async fn rejected_tier_escalates_in_a_whole_cycle() {
    let upstream = Upstream::answering(says).await;
    let gateway = Gateway::start(&upstream.url).await;
    let settings = format!(
        "[backends.gate]\nkind = \"openai\"\ntier = \"local\"\nbase_url = \"{}\"\napi_key_env = \"GATE_KEY\"\n\
         models = [\"local/*\"]\n",
        gateway.question("local/small").0.backend.base_url.unwrap(),
    );
    let mut scenario = Scenario::chain(
        &["local/small", "local/large"],
        &[MANIFEST, ("src/lib.rs", ONE), OLD_TEST],
    )
    .settings(&settings)
    .env("GATE_KEY", KEY);

    let red = scenario.call(
        "tdd_red",
        json!({"spec": "add(a, b) gives the sum of two numbers", "session_id": "cycle"}),
    );
    accepted(&red, "local/small accepted");
    assert_eq!(
        (
            scenario.read("tests/add.rs").as_str(),
            scenario.read("src/lib.rs").as_str()
        ),
        (ADD_TEST, ONE)
    );

    let green = scenario.call("tdd_green", red["next"]["arguments"].clone());
    accepted(&green, "local/small rejected | local/large accepted");
    assert_eq!(green["files_changed"], json!(["src/lib.rs"]));
    assert_eq!(
        (
            scenario.read("tests/add.rs").as_str(),
            scenario.read("src/lib.rs").as_str()
        ),
        (ADD_TEST, ADD)
    );
    let [told] = &of_model(&upstream, "large")[..] else {
        panic!("asked more than once")
    };
    for part in [
        "[1 · local/small · rejected]",
        "adds_two_numbers",
        "left: -1",
        "a - b",
    ] {
        assert!(
            asked(told).contains(part),
            "`{part}` is not in {}",
            asked(told)
        );
    }

    let refactor = scenario.call("tdd_refactor", green["next"]["arguments"].clone());
    accepted(&refactor, "local/small accepted");
    assert_eq!(scenario.read("src/lib.rs"), neat());
    for text in [
        red.to_string(),
        green.to_string(),
        refactor.to_string(),
        format!("{:?}", upstream.requests()),
    ] {
        assert!(!text.contains(KEY), "our key is for the gateway alone");
    }
}

fn accepted(result: &Value, by: &str) {
    assert_eq!(
        (&result["status"], &result["verified"]),
        (&json!("pass"), &json!(true)),
        "{result:#}"
    );
    assert_eq!(trail(result), by, "{result:#}");
}

/// What the servers behind the gateway say, by the model's name and what it is asked.
fn says(request: &Request) -> Says {
    let asked = asked(request);
    let answer = if asked.contains("Write one test that fails") {
        creates("tests/add.rs", ADD_TEST)
    } else if asked.contains("Improve the structure") {
        replaces("src/lib.rs", &neat())
    } else {
        replaces(
            "src/lib.rs",
            if request.body["model"] == "small" {
                WRONG
            } else {
                ADD
            },
        )
    };
    Says::content(&answer.to_string())
}

fn neat() -> String {
    ADD.replace("a: i32, b: i32", "left: i32, right: i32")
        .replace("a + b", "left + right")
}

/// The words of the user's message.
fn asked(request: &Request) -> String {
    let messages = request.body["messages"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let last = messages
        .last()
        .map(|message| message["content"].clone())
        .unwrap_or_default();
    last.as_str().map_or_else(|| last.to_string(), Into::into)
}
