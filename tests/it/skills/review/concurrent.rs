//! Reviews share a project with each other, and with nobody who edits it.

use std::fs;
use std::sync::{Arc, Barrier};

use serde_json::{Value, json};

use super::text;
use crate::skills::tdd::{MANIFEST, OLD_TEST, ONE};
use crate::support::mcp_session::{result_of, until};
use crate::support::review_project::{both, good, shop};
use crate::support::scenario::{Scenario, gate, trail};
use supervisor_test_support::upstream::{Request, Says, Upstream};

/// The model `gate` behind a server of our own.
fn gated(upstream: &Upstream) -> Scenario {
    let more = format!(
        "[backends.gate]\nkind = \"openai\"\ntier = \"local\"\nbase_url = \"{}\"\nmodels = [\"gate\"]\n",
        upstream.url
    );
    shop(&["gate"]).settings(&more)
}

/// Gateways are asked about their models as well.
fn is_question(request: &Request) -> bool {
    request.head.starts_with("POST ")
}

fn arguments(scenario: &Scenario) -> Value {
    let mut arguments = both();
    arguments["project_root"] = json!(scenario.root());
    arguments
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_reviews_run_in_parallel() {
    // Neither is answered before both have asked.
    let both_asked = Arc::new(Barrier::new(2));
    let upstream = Upstream::answering(move |request| {
        if !is_question(request) {
            return Says::text(404, &[], "");
        }
        tokio::task::block_in_place(|| both_asked.wait());
        Says::content(&good().to_string())
    })
    .await;
    let mut scenario = gated(&upstream);
    let arguments = arguments(&scenario);
    let session = scenario.session();
    session.call(1, "review", arguments.clone());
    session.call(2, "review", arguments);
    for id in [1, 2] {
        let review = result_of(&session.reply(id));
        assert_eq!(
            (&review["status"], trail(&review).as_str()),
            (&json!("pass"), "gate accepted"),
            "{review:#}"
        );
    }
    assert_eq!(
        upstream
            .requests()
            .iter()
            .filter(|request| is_question(request))
            .count(),
        2
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_user_edits_are_reported_without_blame() {
    let project = Arc::new(std::sync::Mutex::new(std::path::PathBuf::new()));
    let edits = Arc::clone(&project);
    let upstream = Upstream::answering(move |request| {
        if !is_question(request) {
            return Says::text(404, &[], "");
        }
        fs::write(
            edits.lock().unwrap().join("src/util.py"),
            "def twice(n):\n    return 2 * n\n",
        )
        .unwrap();
        Says::content(&good().to_string())
    })
    .await;
    let mut scenario = gated(&upstream);
    *project.lock().unwrap() = scenario.root();
    let review = scenario.call("review", both());
    assert_eq!(
        (&review["status"], trail(&review).as_str()),
        (&json!("pass"), "gate accepted"),
        "{review:#}"
    );
    assert_eq!(
        review["details"]["changed_meanwhile"],
        json!(["src/util.py"])
    );
    assert!(
        text(gate(&review, "meanwhile"), "detail")
            .contains("another process during the review: `src/util.py`")
    );
}

/// A project with tests, a review of it and an edit of it, each of which waits for ever.
fn busy(lock_wait: &str) -> Scenario {
    let mut scenario = Scenario::chain(&["small"], &[MANIFEST, ("src/lib.rs", ONE), OLD_TEST])
        .settings("[skills.review]\nchain = [\"medium\"]\n")
        .env("SUPERVISOR_LIMITS__LOCK_WAIT_S", lock_wait);
    for model in ["small", "medium"] {
        scenario.line(&json!({"model": model, "failure": "hang"}));
    }
    scenario
}

fn review_of(scenario: &Scenario) -> Value {
    json!({"project_root": scenario.root(), "files": ["src/lib.rs"]})
}

fn red_of(scenario: &Scenario) -> Value {
    json!({"project_root": scenario.root(), "spec": "two() is 2"})
}

#[test]
fn review_during_an_edit_is_busy() {
    let mut scenario = busy("0.2");
    let (review, red) = (review_of(&scenario), red_of(&scenario));
    scenario.session().call(1, "tdd_red", red);
    until("the edit's question", || {
        !scenario.asked_of("small").is_empty()
    });
    scenario.session().call(2, "review", review);
    let refused = result_of(&scenario.session().reply(2));
    assert_eq!(refused["status"], "error", "{refused:#}");
    let message = text(&refused, "message");
    assert!(
        message.starts_with("busy: process ") && message.contains("(tdd_red)"),
        "{message}"
    );
    assert!(scenario.asked_of("medium").is_empty());
    scenario.session().cancel(1);
}

#[test]
fn edit_during_a_review_is_busy() {
    let mut scenario = busy("0.2");
    let (review, red) = (review_of(&scenario), red_of(&scenario));
    scenario.session().call(1, "review", review);
    until("the review's question", || {
        !scenario.asked_of("medium").is_empty()
    });
    scenario.session().call(2, "tdd_red", red);
    let refused = result_of(&scenario.session().reply(2));
    assert_eq!(refused["status"], "error", "{refused:#}");
    let message = text(&refused, "message");
    assert!(
        message.starts_with("busy: process ") && message.contains("(review)"),
        "{message}"
    );
    scenario.session().cancel(1);
}

#[test]
fn review_waits_for_an_edit_to_end() {
    let mut scenario = busy("120");
    let (review, red) = (review_of(&scenario), red_of(&scenario));
    scenario.session().call(1, "tdd_red", red);
    until("the edit's question", || {
        !scenario.asked_of("small").is_empty()
    });
    scenario.session().call(2, "review", review);
    scenario.session().cancel(1);
    until("the review's question", || {
        !scenario.asked_of("medium").is_empty()
    });
    scenario.session().cancel(2);
}
