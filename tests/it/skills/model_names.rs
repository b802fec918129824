//! `model` in a call: names of Claude with their provider, names and patterns that only a gateway
//! knows, and names that nobody knows.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use supervisor_test_support::loopback::{Do, Server};

use crate::support::scenario::Scenario;

/// A project with gateways at these addresses, which are known to serve no model at all.
fn with_gateways(urls: &[&str]) -> Scenario {
    let settings: String = urls
        .iter()
        .enumerate()
        .map(|(n, url)| {
            format!(
                "[backends.gate{n}]\nkind = \"openai\"\ntier = \"local\"\nbase_url = \"{url}\"\nmodels = [\"unused{n}/*\"]\n"
            )
        })
        .collect();
    Scenario::chain(&["small"], &[("shop.py", "price = 1\n")]).settings(&settings)
}

fn offering(names: &[&str]) -> Server {
    let names: Vec<Value> = names.iter().map(|name| json!({"id": name})).collect();
    let list = json!({"data": names}).to_string();
    Server::start(move |path| match path {
        "/v1/models" => Do::Json(200, list.clone()),
        _ => Do::Json(404, String::from("{}")),
    })
}

/// What a call with this model would do.
fn plan(scenario: &mut Scenario, model: &str) -> Value {
    let arguments = json!({"files": ["shop.py"], "model": model, "dry_run": true});
    scenario.call("review", arguments)
}

#[test]
fn offered_names_and_patterns_are_served() {
    let gateways = [offering(&["phi4"]), offering(&["openai/*"])];
    let mut scenario = with_gateways(&[&gateways[0].url, &gateways[1].url]);
    for (model, tier) in [
        ("phi4", "local"),
        ("openai/gpt-oss-20b", "local"),
        ("anthropic/claude-sonnet-4-6", "subagent"),
        ("claude-haiku-4-5", "subagent"),
    ] {
        let chain = plan(&mut scenario, model)["details"]["chain"].clone();
        assert_eq!(
            (&chain[0]["model"], &chain[0]["tier"], &chain[1]),
            (&json!(model), &json!(tier), &Value::Null),
            "{chain:#}"
        );
    }
}

#[test]
fn unknown_name_gets_the_nearest_known_one() {
    let gateway = offering(&["devstral-small-2"]);
    let mut scenario = with_gateways(&[&gateway.url]);
    for (model, hint) in [
        ("devstral-smal-2", "did you mean `devstral-small-2`?"),
        ("smal", "did you mean `small`?"),
        ("zzz", "add it to `models` of one of [backends.*]"),
    ] {
        let result = plan(&mut scenario, model);
        let message = result["message"].as_str().unwrap();
        assert_eq!(result["status"], "error", "{message}");
        assert!(message.contains(hint), "{message}");
    }
}

#[test]
fn silent_gateways_are_asked_at_the_same_time() {
    let silent: Vec<Server> = (0..4).map(|_| Server::always(Do::Stall(vec![]))).collect();
    let talking = offering(&["phi4"]);
    let mut urls: Vec<&str> = silent.iter().map(|server| server.url.as_str()).collect();
    urls.push(&talking.url);
    let mut scenario = with_gateways(&urls);
    let began = Instant::now();
    let result = plan(&mut scenario, "phi4");
    assert_eq!(result["status"], "pass", "{result:#}");
    // Each of the four may be silent for 2 s.
    assert!(
        began.elapsed() < Duration::from_secs(7),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn local_call_asks_no_gateway_elsewhere() {
    let gateway = offering(&["phi4"]);
    let url = gateway.url.replace("127.0.0.1", "0.0.0.0");
    let mut scenario = with_gateways(&[&url]);
    let arguments =
        json!({"files": ["shop.py"], "model": "phi4", "dry_run": true, "stay_local": true});
    let result = scenario.call("review", arguments);
    assert_eq!(result["status"], "error", "{result:#}");
    assert_eq!(gateway.paths(), Vec::<String>::new());
    assert_eq!(plan(&mut scenario, "phi4")["status"], "pass");
    assert_eq!(gateway.paths(), ["/v1/models"]);
}
