//! Several answers to one question: the tests select, the best refused one is repaired, and nothing of the others stays.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::json;
use supervisor_engine::event::{Listener, ProgressLine};
use supervisor_engine::{Cause, Status};
use supervisor_test_support::chain::{Bench, Ran};
use tokio_util::sync::CancellationToken;

use super::agent::{assert_unlocked, assert_unlocked_in, until};

fn bench(samples: u32) -> Bench {
    let mut bench = Bench::chain(&["small"]).without_verifier();
    bench.call.samples = Some(samples);
    bench
}

fn judgements(ran: &Ran) -> usize {
    let runs = ran
        .story
        .iter()
        .filter(|line| line.contains("running tests"));
    runs.count()
}

/// Number, cause and first words of each answer of an attempt.
fn asks(ran: &Ran, attempt: usize) -> Vec<(Option<u32>, Option<Cause>, String)> {
    let asks = ran.entry.attempts[attempt].asks.iter();
    let words = |said: &str| said.split(&[':', ';'][..]).next().unwrap().to_owned();
    let mut asks: Vec<_> = asks
        .map(|ask| (ask.sample, ask.cause, words(&ask.said)))
        .collect();
    asks.sort_by_key(|ask| ask.0);
    asks
}

#[tokio::test]
async fn tests_select_among_several_answers() {
    let ran = bench(4)
        .writes("small", "17")
        .writes("small", "42")
        .writes("small", "18")
        .writes("small", "17")
        .run()
        .await;
    assert_eq!(ran.trail(), "small accepted", "one attempt for all of them");
    assert_eq!((ran.result.verified, ran.answer.as_str()), (true, "42"));
    let prompts: Vec<_> = ran.asked.iter().map(|asked| &asked["prompt"]).collect();
    assert_eq!(prompts.len(), 4);
    assert!(
        prompts.iter().all(|prompt| *prompt == prompts[0]),
        "no answer is shown to another"
    );
    let attempt = &ran.entry.attempts[0];
    assert_eq!(
        (attempt.tokens_in, attempt.tokens_out),
        (Some(400), Some(80))
    );
    assert_eq!((attempt.cost_usd, attempt.samples()), (Some(0.04), 4));
    // What two agree on is judged first, then the smallest change in their order.
    let ends: Vec<_> = asks(&ran, 0)
        .into_iter()
        .map(|(n, cause, _)| (n, cause))
        .collect();
    assert_eq!(
        ends,
        [
            (Some(1), Some(Cause::Rejected)),
            (Some(2), Some(Cause::Accepted)),
            (Some(3), None),
            (Some(4), None)
        ]
    );
    assert_eq!(asks(&ran, 0)[3].2, "makes the same edits as answer 1");
    // The accepted answer is the last one.
    assert_eq!(attempt.asks[3].sample, Some(2));
    assert_eq!(judgements(&ran), 2);
}

#[tokio::test]
async fn same_answer_many_times_is_judged_once() {
    let mut bench = bench(4);
    for _ in 0..3 {
        bench = bench.writes("small", "17");
    }
    // The same edit in other words.
    let edits = json!([{"path": "answer.txt", "action": "replace", "content": "17"}]);
    let bench = bench.line(json!({"model": "small", "answer": {"edits": edits, "notes": "now!"}}));
    let ran = bench.run().await;
    assert_eq!(ran.trail(), "small rejected");
    assert_eq!(judgements(&ran), 1);
    assert_eq!(ran.answer, "41");
}

#[tokio::test]
async fn best_refused_answer_is_repaired_once() {
    let bench = Bench::chain(&["small", "large"])
        .without_verifier()
        .with_default_attempts()
        .settings("[models.small]\nsamples = 3\n")
        .writes("small", "1777777")
        .writes("small", "18")
        .fails("small", "infra")
        .writes("small", "19")
        .writes("large", "42");
    let ran = bench.run().await;
    assert_eq!(
        ran.trail(),
        "small rejected | small rejected | large accepted"
    );
    let asked = ran.asked_of("small");
    assert_eq!(asked.len(), 4, "three answers, and one repair");
    let repair = asked[3]["prompt"].as_str().unwrap();
    assert!(
        repair.contains("+18") && !repair.contains("1777777"),
        "{repair}"
    );
    let last = ran.asked_of("large")[0]["prompt"].as_str().unwrap();
    assert!(!last.contains("1777777"), "{last}");
    let infra = asks(&ran, 0).pop().unwrap();
    assert_eq!((infra.0, infra.1), (Some(3), Some(Cause::Infra)));
    assert!(ran.entry.attempts[1].asks.is_empty());
}

#[tokio::test]
async fn unreadable_answers_do_not_hide_a_good_one() {
    let garbled = json!({"model": "small", "answer": {"garbled": "hm"}});
    let ran = bench(3)
        .line(garbled.clone())
        .writes("small", "42")
        .line(json!({"model": "small", "answer": {"contradiction": "no"}}))
        .run()
        .await;
    assert_eq!(ran.trail(), "small accepted");
    // If all are, one is asked to repair its answer.
    let ran = bench(2)
        .line(garbled.clone())
        .line(garbled)
        .writes("small", "42")
        .run()
        .await;
    assert_eq!(ran.trail(), "small accepted");
    assert_eq!(ran.asked.len(), 3);
}

#[tokio::test]
async fn budget_holds_for_all_answers() {
    let prices = "[models.small]\nprice_in = 1000.0\nprice_out = 1000.0\nmax_tokens = 1000\n";
    let mut bench = bench(16).settings(prices);
    bench.call.budget_usd = Some(4.0);
    for n in 0..16 {
        bench = bench.writes("small", &n.to_string());
    }
    let ran = bench.run().await;
    let asked = ran.asked.len();
    assert!((1..=4).contains(&asked), "asked for {asked} answers");
    assert_eq!(ran.entry.attempts[0].cause, Some(Cause::Rejected));
}

/// Cancels when a line of progress contains these words.
struct CancelAt<'a>(&'a str, &'a CancellationToken);

impl Listener for CancelAt<'_> {
    fn on_event(&self, told: &ProgressLine) {
        if told.line.contains(self.0) {
            self.1.cancel();
        }
    }
}

#[tokio::test]
async fn cancel_among_candidates_leaves_nothing() {
    for strategy in ["in-place", "auto"] {
        for at in ["checking answer 2", "judging answer 2", "running tests"] {
            let bench = bench(3)
                .settings(&format!("[workspace]\nstrategy = \"{strategy}\"\n"))
                .writes("small", "17")
                .writes("small", "18")
                .writes("small", "42");
            let stop = CancellationToken::new();
            let ran = bench.run_until(&stop, &CancelAt(at, &stop)).await;
            assert_eq!(ran.trail(), "small cancelled", "{strategy}, {at}");
            assert_eq!(ran.answer, "41", "{strategy}, {at}");
            assert_unlocked(&bench).await;
        }
    }
}

/// Names the directory to work in.
const DIR: &str = "SUPERVISOR_TEST_SAMPLES_DIR";
const STRATEGY: &str = "SUPERVISOR_TEST_SAMPLES_STRATEGY";

/// A server whose second candidate hangs in its tests; the next test kills it there.
pub(crate) fn act_as_server() {
    let Some(dir) = std::env::var_os(DIR).map(PathBuf::from) else {
        return;
    };
    let strategy = std::env::var(STRATEGY).unwrap();
    let mut bench = Bench::below(&dir, &["small"])
        .without_verifier()
        .settings(&strategy)
        .settings(&format!("[sandbox]\nwrite = [\"{}\"]\n", dir.display()))
        .writes("small", "17")
        .writes("small", "18")
        .writes("small", "42");
    bench.call.samples = Some(3);
    let hangs = format!(
        "if [ $(cat answer.txt) = 18 ]; then echo $$ > {0}/new; mv {0}/new {0}/pid; sleep 1000; fi; exit 1\n",
        dir.display()
    );
    fs::write(bench.project.path().join("check.sh"), hangs).unwrap();
    fs::write(dir.join("begun"), "").unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _: Ran = runtime.block_on(bench.run());
    panic!("the server was not killed");
}

#[tokio::test]
async fn kill_among_candidates_leaves_nothing() {
    for strategy in ["in-place", "auto"] {
        let dir = tempfile::tempdir().unwrap();
        let mut server = Command::new(std::env::current_exe().unwrap())
            .env(DIR, dir.path())
            .env(
                STRATEGY,
                format!("[workspace]\nstrategy = \"{strategy}\"\n"),
            )
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        until("the second candidate", || dir.path().join("pid").exists()).await;
        server.kill().unwrap();
        server.wait().unwrap();
        let answer = dir.path().join("project/answer.txt");
        until("the project to be as it was", || {
            fs::read(&answer).is_ok_and(|text| text == b"41")
        })
        .await;
        let (project, state) = (dir.path().join("project"), dir.path().join("state/state"));
        assert_unlocked_in(&project, &state).await;
    }
}

/// Answers that are right with this chance, independently; the wrong ones all differ.
#[tokio::test]
async fn acceptance_follows_the_number_of_samples() {
    const CALLS: u32 = 25;
    for (rate, samples) in [(0.3, 1), (0.3, 2), (0.3, 4), (0.1, 4)] {
        let mut rng = fastrand::Rng::with_seed(u64::from(samples));
        let mut accepted = 0;
        for call in 0..CALLS {
            let (mut bench, mut is_any_right) = (bench(samples), false);
            for n in 0..samples {
                let is_right = rng.f64() < rate;
                is_any_right |= is_right;
                let number = if is_right { 42 } else { 100 + n };
                let edits = json!([{"path": "answer.txt", "action": "replace", "content": number.to_string()}]);
                bench = bench.line(json!({
                    "model": "small", "answer": {"edits": edits}, "wait_ms": 2,
                    "tokens_in": 100, "tokens_out": 20, "cost_usd": 0.01,
                }));
            }
            let ran = bench.run().await;
            let is_accepted = ran.result.status == Status::Pass;
            assert_eq!(is_accepted, is_any_right, "call {call} with {samples}");
            assert_eq!(ran.answer, if is_accepted { "42" } else { "41" });
            let attempt = &ran.entry.attempts[0];
            let cost = f64::from(samples) * 0.01;
            assert!((attempt.cost_usd.unwrap() - cost).abs() < 1e-9);
            assert!(attempt.generate_ms >= u64::from(samples) * 2);
            accepted += u32::from(is_accepted);
        }
        let expected = 1.0 - (1.0_f64 - rate).powi(i32::try_from(samples).unwrap());
        let share = f64::from(accepted) / f64::from(CALLS);
        let bound = 2.6 * (expected * (1.0 - expected) / f64::from(CALLS)).sqrt();
        assert!(
            (share - expected).abs() <= bound,
            "{samples} samples at {rate}: {share} instead of {expected} ± {bound}"
        );
    }
}
