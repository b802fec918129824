//! Reviews share a project with each other, and with nobody who edits it.

use std::fs;
use std::sync::{Arc, Barrier};

use serde_json::{Value, json};

use super::text;
use crate::skills::tdd::{MANIFEST, OLD_TEST, ONE};
use crate::support::mcp_bench::{result_of, until};
use crate::support::review_bench::{both, good, shop};
use crate::support::tdd_bench::{Bench, gate, trail};
use supervisor_test_support::upstream::{Request, Says, Upstream};

/// The model `gate` behind a server of our own.
fn gated(upstream: &Upstream) -> Bench {
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

fn arguments(bench: &Bench) -> Value {
    let mut arguments = both();
    arguments["project_root"] = json!(bench.root());
    arguments
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_reviews_of_one_project_run_side_by_side() {
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
    let mut bench = gated(&upstream);
    let arguments = arguments(&bench);
    let session = bench.session();
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
async fn what_somebody_else_edits_meanwhile_is_said_and_held_against_nobody() {
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
    let mut bench = gated(&upstream);
    *project.lock().unwrap() = bench.root();
    let review = bench.call("review", both());
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
fn busy(lock_wait: &str) -> Bench {
    let mut bench = Bench::chain(&["small"], &[MANIFEST, ("src/lib.rs", ONE), OLD_TEST])
        .settings("[skills.review]\nchain = [\"medium\"]\n")
        .env("SUPERVISOR_LIMITS__LOCK_WAIT_S", lock_wait);
    for model in ["small", "medium"] {
        bench.line(&json!({"model": model, "failure": "hang"}));
    }
    bench
}

fn review_of(bench: &Bench) -> Value {
    json!({"project_root": bench.root(), "files": ["src/lib.rs"]})
}

fn red_of(bench: &Bench) -> Value {
    json!({"project_root": bench.root(), "spec": "two() is 2"})
}

#[test]
fn beside_an_edit_a_review_is_busy_and_names_who_works_there() {
    let mut bench = busy("0.2");
    let (review, red) = (review_of(&bench), red_of(&bench));
    bench.session().call(1, "tdd_red", red);
    until("the edit's question", || {
        !bench.asked_of("small").is_empty()
    });
    bench.session().call(2, "review", review);
    let refused = result_of(&bench.session().reply(2));
    assert_eq!(refused["status"], "error", "{refused:#}");
    let message = text(&refused, "message");
    assert!(
        message.starts_with("busy: process ") && message.contains("(tdd_red)"),
        "{message}"
    );
    assert!(bench.asked_of("medium").is_empty());
    bench.session().cancel(1);
}

#[test]
fn beside_a_review_an_edit_is_busy_and_names_it() {
    let mut bench = busy("0.2");
    let (review, red) = (review_of(&bench), red_of(&bench));
    bench.session().call(1, "review", review);
    until("the review's question", || {
        !bench.asked_of("medium").is_empty()
    });
    bench.session().call(2, "tdd_red", red);
    let refused = result_of(&bench.session().reply(2));
    assert_eq!(refused["status"], "error", "{refused:#}");
    let message = text(&refused, "message");
    assert!(
        message.starts_with("busy: process ") && message.contains("(review)"),
        "{message}"
    );
    bench.session().cancel(1);
}

#[test]
fn a_review_waits_for_an_edit_to_end() {
    let mut bench = busy("120");
    let (review, red) = (review_of(&bench), red_of(&bench));
    bench.session().call(1, "tdd_red", red);
    until("the edit's question", || {
        !bench.asked_of("small").is_empty()
    });
    bench.session().call(2, "review", review);
    bench.session().cancel(1);
    until("the review's question", || {
        !bench.asked_of("medium").is_empty()
    });
    bench.session().cancel(2);
}
