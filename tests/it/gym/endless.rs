//! A model that writes without an end, and an endpoint that is gone: the first is measured, the second is asked again later.

use std::process::{Output, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::scenario::Scenario;
use supervisor_test_support::loopback::{ClosedPort, Do, Server};
use supervisor_test_support::programs::require;

/// A user whose chain begins with `slow`, a model behind this address that gets a second for each ask. At this price of a
/// minute a model of which nothing is known is still asked.
fn user(url: &str) -> Scenario {
    Scenario::chain(&["slow", "large"], &[]).settings(&format!(
        "[policy]\nmode = \"learned\"\nminute_usd = 1.05\n[backends.server]\nkind = \"openai\"\ntier = \"local\"\n\
         base_url = \"{url}\"\nmodels = [\"slow\"]\n[models.slow]\ncontext = 8192\nlimit_s = 1\n\
         [models.large]\nprice_in = 3.0\nprice_out = 15.0\n"
    ))
}

fn run(scenario: &Scenario, arguments: &[&str]) -> Output {
    scenario
        .command()
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    format!(
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn gym(scenario: &Scenario) -> (Value, String) {
    let output = run(
        scenario,
        &["gym", "--model", "slow", "--tracks", "ruby", "--json"],
    );
    assert!(output.status.success(), "{}", said(&output));
    (
        serde_json::from_slice(&output.stdout).unwrap(),
        said(&output),
    )
}

fn questions(server: &Server) -> usize {
    server
        .paths()
        .iter()
        .filter(|path| path.ends_with("/chat/completions"))
        .count()
}

#[test]
#[ignore = "needs ruby"]
fn endless_model_is_measured_once_and_skipped() {
    require(&["ruby"]);
    // The beginning of an answer, and never its end.
    let begun = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 999999\r\n\r\n{\"choices\": [";
    let server = Server::start(move |path| match path {
        path if path.ends_with("/chat/completions") => Do::Stall(begun.into()),
        _ => Do::Json(404, "{}".into()),
    });
    let scenario = user(&server.url);
    let (told, story) = gym(&scenario);
    let slow = &told["models"][0];
    assert_eq!(
        (told["ended"].as_str(), slow["judged"].as_u64()),
        (Some("done"), Some(8)),
        "{story}"
    );
    assert_eq!(
        (slow["accepted"].as_u64(), slow["unable"].as_u64()),
        (Some(0), Some(8)),
        "{slow:#}"
    );
    assert_eq!(slow["refused"], json!({"unfinished": 8}), "{slow:#}");
    assert!(
        slow["median_s"].as_f64() >= Some(1.0),
        "the time it took counts: {slow:#}"
    );
    let asked = questions(&server);
    assert!(asked >= 8, "every task was given to it: {asked}");

    let (_, story) = gym(&scenario);
    assert!(
        story.contains("8 of them already measured") && questions(&server) == asked,
        "{story}"
    );

    let explained = said(&run(&scenario, &["explain", "tdd_green"]));
    assert!(
        explained.contains("8 answers not finished in time"),
        "{explained}"
    );
    // One of the eight is a refactoring.
    let why = "`slow` is skipped: accepted in 0 of 7 turns here, 7 of them not finished within its limits";
    assert!(explained.contains(why), "{explained}");
}

#[test]
#[ignore = "needs ruby"]
fn dead_endpoint_ends_run_without_judging_model() {
    require(&["ruby"]);
    let closed = ClosedPort::hold();
    let failing = Server::always(Do::Json(503, r#"{"error": {"message": "no"}}"#.into()));
    for url in [&closed.url, &failing.url] {
        let scenario = user(url);
        for _ in 0..2 {
            let before = questions(&failing);
            let (told, story) = gym(&scenario);
            assert_eq!(told["ended"], "unreachable", "{story}");
            assert!(
                !story.contains(": skipped") && story.contains("3/8"),
                "no pause between tasks: {story}"
            );
            assert!(
                story.matches("slow: infra").count() == 3 && !story.contains("4/8"),
                "{story}"
            );
            // It is not measured, so the next run begins there again.
            assert!(!story.contains("already measured"), "{story}");
            assert!(*url == closed.url || questions(&failing) >= before + 3);
        }
        let explained = said(&run(&scenario, &["explain", "tdd_green"]));
        assert!(
            !explained.contains("`slow` is skipped") && !explained.contains("not finished"),
            "{explained}"
        );
    }
}

#[test]
#[ignore = "needs ruby"]
fn changed_weights_get_their_own_passport() {
    require(&["ruby"]);
    let digest = Arc::new(Mutex::new("sha-old"));
    let told = Arc::clone(&digest);
    let server = Server::start(move |path| match path {
        "/api/tags" => {
            let model = json!({"name": "slow:latest", "digest": *told.lock().unwrap()});
            Do::Json(200, json!({"models": [model]}).to_string())
        }
        path if path.ends_with("/chat/completions") => {
            let answer = json!({"message": {"role": "assistant", "content": "I do not know."}, "finish_reason": "stop"});
            Do::Json(
                200,
                json!({"model": "slow", "choices": [answer]}).to_string(),
            )
        }
        _ => Do::Json(404, "{}".into()),
    });
    let scenario = user(&server.url);
    let (told, story) = gym(&scenario);
    assert_eq!(
        (told["ended"].as_str(), told["models"][0]["judged"].as_u64()),
        (Some("done"), Some(8)),
        "{story}"
    );
    let (_, story) = gym(&scenario);
    assert!(story.contains("8 of them already measured"), "{story}");

    *digest.lock().unwrap() = "sha-new";
    let (told, story) = gym(&scenario);
    assert!(!story.contains("already measured"), "{story}");
    assert_eq!(
        told["models"][0]["judged"].as_u64(),
        Some(8),
        "the other weights are not in the table: {story}"
    );
    let explained = said(&run(&scenario, &["explain", "tdd_green"]));
    assert!(
        explained.contains("accepted 0 of 8") && explained.contains("digest sha-new"),
        "{explained}"
    );
}
