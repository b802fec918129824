//! More than one ask of one tier: second tries, repair questions and needs, and what bounds each of them.

use serde_json::json;
use supervisor_engine::evidence::FollowUpKind;
use supervisor_engine::{Cause, Status};

use supervisor_test_support::chain::Bench;
use supervisor_test_support::upstream::{Says, Upstream};

fn garbled(text: &str) -> serde_json::Value {
    json!({"model": "small", "answer": {"garbled": text}, "tokens_in": 10, "tokens_out": 2, "cost_usd": 0.001})
}

fn needs(file: &str) -> serde_json::Value {
    json!({"model": "small", "answer": {"need": file}, "tokens_in": 10, "tokens_out": 2, "cost_usd": 0.001})
}

#[tokio::test]
async fn local_tier_retries_and_agent_does_not() {
    let bench = Bench::chain(&["small", "large"]).with_default_attempts();
    let ran = bench
        .writes("small", "17")
        .writes("small", "42")
        .judges(true, "")
        .run()
        .await;
    assert_eq!(ran.trail(), "small rejected | small accepted");
    let second = ran.asked_of("small")[1]["prompt"].as_str().unwrap();
    assert!(
        second.contains("[1 · small · rejected]") && second.contains("+17"),
        "{second}"
    );
    assert!(
        second.contains("answer_is_42 failed: left 17, right 42"),
        "{second}"
    );

    let bench = Bench::chain(&["large", "small"]).with_default_attempts();
    let ran = bench
        .writes("large", "17")
        .writes("small", "42")
        .judges(true, "")
        .run()
        .await;
    assert_eq!(ran.trail(), "large rejected | small accepted");
}

#[tokio::test]
async fn retry_never_costs_a_later_tier() {
    let answers = |bench: Bench| {
        ["1", "2"].iter().fold(bench, |bench, n| {
            bench
                .writes("small", n)
                .writes("medium", &format!("{n}{n}"))
        })
    };
    for (most, trail) in [
        (
            2,
            "small rejected | small rejected | medium rejected | medium rejected",
        ),
        (
            3,
            "small rejected | small rejected | medium rejected | medium rejected | large accepted",
        ),
    ] {
        let mut bench =
            answers(Bench::chain(&["small", "medium", "large"]).with_default_attempts())
                .writes("large", "42");
        bench.call.max_attempts = Some(most);
        assert_eq!(bench.run().await.trail(), trail, "max_attempts = {most}");
    }
}

#[tokio::test]
async fn identical_failure_ends_the_retries() {
    let more = "[models.small]\nattempts_per_tier = 3\n";
    let bench = Bench::chain(&["small", "large"])
        .with_default_attempts()
        .settings(more);
    // Other words, the same edit: the same failure.
    let edits = json!([{"path": "answer.txt", "action": "replace", "content": "17"}]);
    let again = json!({"model": "small", "answer": {"edits": edits, "notes": "now it must work"}});
    let ran = bench
        .writes("small", "17")
        .line(again)
        .writes("small", "42")
        .writes("large", "42")
        .run()
        .await;
    assert_eq!(
        ran.trail(),
        "small rejected | small rejected | large accepted"
    );
}

#[tokio::test]
async fn unreadable_answer_gets_one_repair_question() {
    let ran = Bench::chain(&["small", "large"])
        .line(garbled("Sure! It is 42."))
        .writes("small", "42")
        .judges(true, "")
        .run()
        .await;
    assert_eq!(
        ran.trail(),
        "small accepted",
        "a repair is no attempt of its own"
    );
    let attempt = &ran.entry.attempts[0];
    assert_eq!(
        (attempt.tokens_in, attempt.cost_usd),
        (None, Some(0.013)),
        "the verifier tells no tokens"
    );
    let said = |said: &'_ str| said.split(';').next().unwrap().to_owned();
    let asks: Vec<_> = attempt
        .asks
        .iter()
        .map(|ask| (ask.follow_up, said(&ask.said), ask.tokens_in))
        .collect();
    let (first, second) = ("there are no edits in it".to_owned(), String::new());
    assert_eq!(
        asks,
        [
            (None, first, Some(10)),
            (Some(FollowUpKind::Repair), second, Some(100))
        ]
    );
    assert!(
        attempt.asks[0].said.contains("its answer is in "),
        "{:?}",
        attempt.asks
    );
    let repair = ran.asked_of("small")[1]["prompt"].as_str().unwrap();
    assert!(
        repair.contains("could not be used: there are no edits"),
        "{repair}"
    );
    assert!(repair.contains("    Sure! It is 42."), "{repair}");
    assert!(
        ran.story
            .iter()
            .any(|line| line.contains("asked to repair its answer")),
        "{:?}",
        ran.story
    );

    let ran = Bench::chain(&["small", "large"])
        .line(garbled("one"))
        .line(garbled("two"))
        .writes("large", "42")
        .run()
        .await;
    assert_eq!(ran.trail(), "small unreadable | large accepted");
    assert_eq!(ran.asked_of("small").len(), 2, "one repair and no more");
    assert_eq!(ran.entry.attempts[0].cause, Some(Cause::Unreadable));
}

#[tokio::test]
async fn two_file_requests_are_answered_at_most() {
    let ran = Bench::chain(&["small", "large"])
        .line(needs("check.sh"))
        .line(needs("nowhere.txt"))
        .writes("small", "42")
        .judges(true, "")
        .run()
        .await;
    assert_eq!(ran.trail(), "small accepted");
    let last = ran.asked_of("small")[2]["prompt"].as_str().unwrap();
    assert!(
        last.contains("`check.sh`, which says: answer=") && last.contains("`nowhere.txt`"),
        "{last}"
    );
    assert_eq!(ran.entry.attempts[0].asks.len(), 3);

    let bench = (0..3).fold(Bench::chain(&["small", "large"]), |bench, n| {
        bench.line(needs(&format!("{n}.txt")))
    });
    let ran = bench.writes("large", "42").run().await;
    assert_eq!(ran.trail(), "small rejected | large accepted");
    assert_eq!(
        (ran.asked_of("small").len(), ran.result.status),
        (3, Status::Pass)
    );
}

#[tokio::test]
async fn rounds_count_against_the_budget() {
    let mut bench = Bench::chain(&["small", "large"])
        .line(garbled("one"))
        .writes("small", "42");
    bench.call.budget_usd = Some(0.0005);
    let ran = bench.run().await;
    assert!(
        ran.trail().ends_with("large budget"),
        "the first round crossed the cap: {}",
        ran.trail()
    );
    assert!(ran.asked_of("large").is_empty());
}

#[tokio::test]
async fn any_failure_moves_on_and_is_logged() {
    let limits = "[limits]\nlocal_s = 0.3\nverifier_s = 0.3\n";
    for (failure, word) in [("infra", "status 500"), ("hang", "no answer within")] {
        let bench = Bench::chain(&["small", "large"])
            .settings(limits)
            .fails("small", failure)
            .writes("large", "42");
        let ran = bench.run().await;
        assert_eq!(ran.trail(), "small infra | large accepted", "{failure}");
        assert!(
            ran.entry.attempts[0].feedback.contains(word),
            "{:?}",
            ran.entry.attempts[0]
        );
    }
    // The verifier is one of them: a good answer that was not judged moves up.
    let bench = Bench::chain(&["small", "large"]).settings(limits);
    let ran = bench
        .writes("small", "42")
        .fails("judge", "hang")
        .writes("large", "42")
        .run()
        .await;
    assert_eq!(ran.trail(), "small cannot_verify | large accepted");
    let why = &ran.entry.attempts[0].feedback;
    assert!(
        why.starts_with("verifier error: ") && why.contains("limits.verifier_s"),
        "{why}"
    );
}

#[tokio::test]
async fn overloaded_gateway_is_asked_for_next_model() {
    let upstream = Upstream::answering(|request| match request.body["model"].as_str().unwrap() {
        "gate/busy" => Says::json(529, &[], &json!({"error": {"message": "Overloaded"}})),
        _ => {
            let edits = json!([{"path": "answer.txt", "action": "replace", "content": "42"}]);
            Says::content(&json!({"edits": edits}).to_string())
        }
    })
    .await;
    let gate = format!(
        "[backends.gate]\nkind = \"openai\"\ntier = \"local\"\nbase_url = \"{}\"\nmodels = [\"gate/*\"]\n",
        upstream.url
    );
    let ran = Bench::chain(&["gate/busy", "gate/free"])
        .without_verifier()
        .settings(&gate)
        .run()
        .await;
    assert!(
        ran.trail().ends_with("gate/free accepted"),
        "{}",
        ran.trail()
    );
    assert_eq!(ran.entry.attempts.len(), 2);
    assert!(
        ran.entry.attempts[0].feedback.contains("529"),
        "{:?}",
        ran.entry.attempts[0]
    );
}
