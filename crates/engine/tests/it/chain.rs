//! A chain is walked: what each tier does, what the result says, what the log keeps, what the next tier is told.

use std::fs;

use serde_json::json;
use supervisor_engine::event::{Event, Listener, ProgressLine};
use supervisor_engine::{Cause, Status, Verdict};
use supervisor_test_support::chain::{Bench, SESSION};
use tokio_util::sync::CancellationToken;

/// What a tier does in the table below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    Accepted,
    Rejected,
    Fails,
}

#[tokio::test]
async fn first_good_tier_decides_every_chain() {
    use Does::{Accepted, Fails, Rejected};
    const TIERS: [&str; 3] = ["small", "medium", "large"];
    let mut chains = 0;
    for length in 1..=3_usize {
        for number in 0..3_usize.pow(u32::try_from(length).unwrap()) {
            let does: Vec<Does> = (0..length)
                .map(|n| {
                    [Accepted, Rejected, Fails][number / 3_usize.pow(u32::try_from(n).unwrap()) % 3]
                })
                .collect();
            let mut bench = Bench::chain(&TIERS[..length]);
            for (n, (model, does)) in TIERS.iter().zip(&does).enumerate() {
                bench = match does {
                    Accepted if n < 2 => bench.writes(model, "42").judges(true, ""),
                    Accepted => bench.writes(model, "42"),
                    // A number of its own: the same answer twice is another story.
                    Rejected => bench.writes(model, &format!("{n}")),
                    Fails => bench.fails(model, "infra"),
                };
            }
            let ran = bench.run().await;
            let good = does.iter().position(|d| *d == Accepted);
            let expected: Vec<String> = does[..good.map_or(length, |n| n + 1)]
                .iter()
                .zip(TIERS)
                .map(|(does, model)| match does {
                    Accepted => format!("{model} accepted"),
                    Rejected => format!("{model} rejected"),
                    Fails => format!("{model} infra"),
                })
                .collect();
            assert_eq!(ran.trail(), expected.join(" | "), "{does:?}");
            assert_eq!(
                ran.entry.attempts, ran.result.more.attempts,
                "log and result tell the same story"
            );
            match good {
                Some(n) => {
                    assert_eq!(
                        (ran.result.status, ran.result.verified),
                        (Status::Pass, true),
                        "{does:?}"
                    );
                    assert_eq!(ran.result.model_used, TIERS[n]);
                    assert_eq!(ran.answer, "42", "accepted work stays");
                    assert!(
                        ran.result.more.diff.contains("+42"),
                        "{}",
                        ran.result.more.diff
                    );
                    assert_eq!(ran.result.more.files_changed, ["answer.txt"]);
                }
                None => {
                    assert_eq!(
                        (ran.result.status, ran.result.verified),
                        (Status::Error, false),
                        "{does:?}"
                    );
                    assert_eq!(ran.answer, "41", "refused work is taken back");
                    let message = &ran.result.message;
                    let first = if does.contains(&Rejected) {
                        "No answer passed the checks, so nothing was changed. "
                    } else {
                        "No model gave an answer, so nothing was changed. "
                    };
                    assert!(message.starts_with(first), "{message}");
                    for (model, _) in TIERS
                        .iter()
                        .zip(&does)
                        .filter(|(_, does)| **does == Rejected)
                    {
                        assert!(
                            message.contains(&format!("`{model}` (rejected): ")),
                            "{message}"
                        );
                    }
                    assert!(
                        message.contains("`supervisor init`") && !message.contains('…'),
                        "{message}"
                    );
                }
            }
            assert_eq!(ran.entry.final_status, ran.result.status);
            chains += 1;
        }
    }
    assert_eq!(chains, 3 + 9 + 27);
}

#[tokio::test]
async fn next_tier_gets_attempts_and_test_output() {
    let ran = Bench::chain(&["small", "large"])
        .writes("small", "17")
        .writes("large", "42")
        .run()
        .await;
    let prompt = ran.asked_of("large")[0]["prompt"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        prompt.contains("Prior attempt feedback: [1 · small · rejected]"),
        "{prompt}"
    );
    assert!(prompt.contains("+17"), "the change it tried: {prompt}");
    assert!(
        prompt.contains("answer_is_42 failed: left 17, right 42"),
        "the failing test and its words: {prompt}"
    );
    assert_eq!(ran.trail(), "small rejected | large accepted");
    let told = ran.story.join("\n");
    assert!(
        told.contains("review · tier 1/2 small rejected: ")
            && told.contains("tier 2/2 large accepted"),
        "{told}"
    );
}

#[tokio::test]
async fn verifier_may_refuse_and_garbage_never_accepts() {
    let ran = Bench::chain(&["small", "large"])
        .writes("small", "42")
        .judges(false, "the number is written in")
        // By another road: the same answer to the letter would not be judged again.
        .line(json!({"model": "large", "answer": {"edits": [
            {"path": "answer.txt", "action": "change", "search": "41", "replace": "42"},
        ]}}))
        .run()
        .await;
    assert_eq!(ran.trail(), "small rejected | large accepted");
    let first = &ran.entry.attempts[0];
    assert_eq!(
        (first.gates_passed, first.verified, first.feedback.as_str()),
        (true, false, "the number is written in")
    );
    assert_eq!(
        first.cost_usd,
        Some(0.012),
        "the verifier's cost is the attempt's"
    );
    assert_eq!(
        ran.asked_of("judge").len(),
        1,
        "tiers that are no local ones certify themselves"
    );
    let seen = ran.asked_of("judge")[0]["prompt"].as_str().unwrap();
    assert!(
        seen.contains("+42")
            && seen.contains("1 passed")
            && seen.contains("Change answer.txt and nothing else.")
    );

    for garbage in [
        json!({"model": "judge", "text": "LGTM!"}),
        json!({"model": "judge", "failure": "infra"}),
    ] {
        let ran = Bench::chain(&["small"])
            .writes("small", "42")
            .line(garbage)
            .run()
            .await;
        assert_eq!(ran.trail(), "small cannot_verify");
        assert!(
            ran.entry.attempts[0]
                .feedback
                .starts_with("verifier error: "),
            "{}",
            ran.entry.attempts[0].feedback
        );
        assert_eq!(ran.answer, "41");
        assert!(
            ran.result.more.diff.contains("+42"),
            "the best candidate is in the result"
        );
    }
}

#[tokio::test]
async fn pinned_model_runs_without_verifier() {
    let ran = Bench::chain(&["small", "large"])
        .writes("medium", "42")
        .pinned("medium")
        .run()
        .await;
    assert_eq!(ran.trail(), "medium accepted");
    assert!(ran.asked_of("judge").is_empty());
    let ran = Bench::chain(&["small", "large"])
        .writes("medium", "1")
        .pinned("medium")
        .run()
        .await;
    assert_eq!(
        (ran.trail().as_str(), ran.answer.as_str()),
        ("medium rejected", "41")
    );
}

#[tokio::test]
async fn gates_decide_without_a_verifier() {
    let ran = Bench::chain(&["small"])
        .writes("small", "42")
        .without_verifier()
        .run()
        .await;
    assert_eq!(ran.trail(), "small accepted");
    assert!(ran.asked_of("judge").is_empty());
}

#[tokio::test]
async fn repeated_answer_is_not_judged_again() {
    let ran = Bench::chain(&["small", "medium", "large"])
        .writes("small", "7")
        .writes("medium", "7")
        .writes("large", "42")
        .run()
        .await;
    assert_eq!(
        ran.trail(),
        "small rejected | medium rejected | large accepted"
    );
    let second = &ran.entry.attempts[1];
    assert!(
        second.feedback.contains("same answer"),
        "{}",
        second.feedback
    );
    assert_eq!(second.runner_output, "", "no test was run for it");

    let ran = Bench::chain(&["small", "medium"])
        .writes("small", "7")
        .writes("medium", "7")
        .run()
        .await;
    assert!(
        ran.result.message.contains("same answer"),
        "{}",
        ran.result.message
    );
}

#[tokio::test]
async fn spent_quota_skips_tiers_that_share_it() {
    let ran = Bench::chain(&["small", "medium", "large"])
        .fails("small", "quota")
        .writes("large", "42")
        .run()
        .await;
    assert_eq!(ran.trail(), "small quota | medium skipped | large accepted");
    assert!(ran.asked_of("medium").is_empty());
    assert_eq!(ran.entry.attempts[1].verdict, Some(Verdict::Error));
}

#[tokio::test]
async fn contradiction_escalates_and_ends_at_last_tier() {
    let reason = "the test wants 42 and the spec wants 41";
    let ran = Bench::chain(&["small", "large"])
        .line(json!({"model": "small", "answer": {"contradiction": reason}}))
        .line(json!({"model": "large", "answer": {"contradiction": format!("{reason}, indeed")}}))
        .run()
        .await;
    assert_eq!(ran.trail(), "small contradiction | large contradiction");
    assert_eq!(
        (ran.result.status, ran.result.message.as_str()),
        (
            Status::Fail,
            "the test wants 42 and the spec wants 41, indeed"
        )
    );
}

#[tokio::test]
async fn attempts_and_budget_are_limited() {
    let mut bench = Bench::chain(&["small", "medium", "large"])
        .writes("small", "1")
        .writes("medium", "2");
    bench.call.max_attempts = Some(2);
    let ran = bench.run().await;
    assert_eq!(ran.trail(), "small rejected | medium rejected");
    assert!(ran.asked_of("large").is_empty());

    let mut bench = Bench::chain(&["small", "large"])
        .writes("small", "1")
        .writes("large", "42");
    bench.call.budget_usd = Some(0.005);
    let ran = bench.run().await;
    assert_eq!(
        ran.trail(),
        "small rejected | large budget",
        "the first ask alone crossed the cap"
    );
    assert_eq!(ran.result.status, Status::Error);
}

#[tokio::test]
async fn edit_outside_scope_is_refused() {
    let edits = json!([{"path": "../outside.txt", "action": "create", "content": "x"}]);
    let sealed = json!([{"path": "check.sh", "action": "replace", "content": "exit 0"}]);
    let ran = Bench::chain(&["small", "medium", "large"])
        .line(json!({"model": "small", "answer": {"edits": edits}}))
        .line(json!({"model": "medium", "answer": {"edits": sealed}}))
        .writes("large", "42")
        .run()
        .await;
    assert_eq!(
        ran.trail(),
        "small rejected | medium rejected | large accepted"
    );
    assert!(
        ran.entry.attempts[1]
            .feedback
            .contains("only answer.txt may change"),
        "{}",
        ran.entry.attempts[1].feedback
    );
}

#[tokio::test]
async fn cancelled_call_is_restored_and_logged() {
    struct CancelWhenAsked(CancellationToken);
    impl Listener for CancelWhenAsked {
        fn on_event(&self, told: &ProgressLine) {
            if matches!(&told.event, Event::Working { at, .. } if at.model == "large") {
                self.0.cancel();
            }
        }
    }
    let bench = Bench::chain(&["small", "large"])
        .writes("small", "9")
        .fails("large", "hang");
    let stop = CancellationToken::new();
    let ran = bench.run_until(&stop, &CancelWhenAsked(stop.clone())).await;
    assert_eq!(ran.trail(), "small rejected | large cancelled");
    assert_eq!(
        (ran.entry.final_status, ran.answer.as_str()),
        (Status::Error, "41")
    );
    assert_eq!(ran.entry.attempts[1].cause, Some(Cause::Cancelled));
}

#[tokio::test]
async fn secret_in_answer_reaches_neither_result_nor_log() {
    let canary = "canary-4f9a8b7c6d5e";
    let bench = Bench::chain(&["small"])
        .writes("small", canary)
        .secret(canary);
    let ran = bench.run().await;
    let shown = serde_json::to_string(&ran.result).unwrap();
    assert!(!shown.contains(canary), "{shown}");
    let log = fs::read_to_string(
        bench
            .state
            .path()
            .join("state/sessions")
            .join(format!("{SESSION}.jsonl")),
    )
    .unwrap();
    assert!(!log.contains(canary), "{log}");
}

#[tokio::test]
async fn call_that_cannot_start_is_logged() {
    let bench = Bench::chain(&["small"]);
    // Larger than the caps allow: it cannot be protected, so nothing may begin.
    fs::File::create(bench.project.path().join("answer.txt"))
        .unwrap()
        .set_len(300 << 20)
        .unwrap();
    let ran = bench.run().await;
    assert_eq!(ran.result.status, Status::Error);
    assert!(
        ran.result.message.contains("answer.txt"),
        "{}",
        ran.result.message
    );
    assert_eq!(ran.entry.message, ran.result.message);
    assert!(ran.asked.is_empty());
}
