//! Several answers to one question: in one request where the server can, else one after another, and at once only where
//! a provider answers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use supervisor_models::{
    Ask, AskError, AskResult, Backends, Env, SharedResources, Shell, ToolAccess, Usage,
};
use supervisor_process::Launcher;
use supervisor_settings::{BackendKind, Tier, TierKind, Worker};
use supervisor_test_support::agent::{result, run, write_program};
use supervisor_test_support::tiers::tier;
use supervisor_test_support::upstream::{Says, Upstream, completion};
use tokio_util::sync::CancellationToken;

fn answers(texts: &[&str]) -> Value {
    let choice = |(n, text): (usize, &&str)| json!({"index": n, "finish_reason": "stop", "message": {"role": "assistant", "content": text}});
    let mut body = completion("");
    body["choices"] = texts.iter().enumerate().map(choice).collect();
    body
}

fn number(n: usize) -> String {
    json!({"n": n}).to_string()
}

/// As many answers as are asked for, counted on.
fn counting() -> impl Fn(&Value) -> Says + Send + Sync {
    let given = AtomicUsize::new(0);
    move |body| {
        let wanted = body["n"].as_u64().unwrap_or(1);
        let texts: Vec<String> = (0..wanted)
            .map(|_| number(given.fetch_add(1, Ordering::Relaxed)))
            .collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        Says::json(200, &[], &answers(&texts))
    }
}

struct Bench {
    backends: Backends,
    tier: Tier,
    ask: Ask,
    stop: CancellationToken,
}

impl Bench {
    fn new(kind: BackendKind, url: &str, samples: u32) -> Self {
        let mut tier = tier("gate", kind, "local/m");
        tier.backend.base_url = Some(url.into());
        let schema =
            json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let mut ask = Ask::new("rules", "task", schema, "/");
        (ask.limit, ask.samples, ask.samples_limit) =
            (Duration::from_secs(60), samples, Duration::from_secs(240));
        let shared = SharedResources::new(Launcher::this_program(), Env::default(), 1);
        Self {
            backends: Backends::new(shared),
            tier,
            ask,
            stop: CancellationToken::new(),
        }
    }

    async fn ask(&self) -> Vec<AskResult> {
        let backend = self.backends.of(&self.tier).unwrap();
        backend
            .ask_samples(&self.ask, &self.tier, &self.stop, &|_| {})
            .await
    }
}

fn numbers(answers: &[AskResult]) -> Vec<u64> {
    let number = |answer: &AskResult| answer.as_ref().unwrap().body["n"].as_u64().unwrap();
    answers.iter().map(number).collect()
}

#[tokio::test]
async fn one_request_brings_all_answers() {
    let script = counting();
    let upstream = Upstream::answering(move |request| script(&request.body)).await;
    let bench = Bench::new(BackendKind::Openai, &upstream.url, 4);
    let answers = bench.ask().await;
    assert_eq!(numbers(&answers), [0, 1, 2, 3]);
    let requests = upstream.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].body["n"], 4);
    // The tokens of the request are counted once.
    let usage: Vec<Usage> = answers.iter().map(|a| a.as_ref().unwrap().usage).collect();
    assert_eq!(usage[0].tokens_in, Some(2000));
    assert!(usage[1..].iter().all(|usage| *usage == Usage::ZERO));
}

#[tokio::test]
async fn rejected_number_is_asked_for_one_after_another() {
    let script = counting();
    let upstream = Upstream::answering(move |request| match request.body["n"].as_u64() {
        // As llama.cpp says it.
        Some(_) => Says::json(400, &[], &json!({"error": {"code": 400, "message": "Value must be between 1 <= value <= 1", "type": "invalid_request_error"}})),
        None => script(&request.body),
    })
    .await;
    let bench = Bench::new(BackendKind::Openai, &upstream.url, 3);
    assert_eq!(numbers(&bench.ask().await), [0, 1, 2]);
    assert_eq!(upstream.requests().len(), 1 + 3);
    // And it is remembered.
    assert_eq!(numbers(&bench.ask().await), [3, 4, 5]);
    assert_eq!(upstream.requests().len(), 1 + 3 + 3);
}

#[tokio::test]
async fn ignored_number_is_made_up_for() {
    let given = AtomicUsize::new(0);
    let upstream =
        Upstream::answering(move |_| Says::content(&number(given.fetch_add(1, Ordering::Relaxed))))
            .await;
    let bench = Bench::new(BackendKind::Openai, &upstream.url, 3);
    assert_eq!(numbers(&bench.ask().await), [0, 1, 2]);
    let with_number = || {
        let requests = upstream.requests();
        requests.iter().filter(|r| !r.body["n"].is_null()).count()
    };
    assert_eq!((upstream.requests().len(), with_number()), (3, 1));
    bench.ask().await;
    assert_eq!((upstream.requests().len(), with_number()), (6, 1));
}

#[tokio::test]
async fn broken_server_is_asked_once() {
    let upstream = Upstream::start([Says::json(500, &[], &json!({"error": "no"}))]).await;
    for kind in [BackendKind::Openai, BackendKind::Anthropic] {
        let mut bench = Bench::new(kind, &upstream.url, 4);
        bench.tier.backend.tier = TierKind::Subagent;
        let before = upstream.requests().len();
        let answers = bench.ask().await;
        assert_eq!((answers.len(), answers[0].is_err()), (1, true), "{kind:?}");
        let asked = upstream.requests().len() - before;
        assert!(asked <= 2, "{kind:?}: {asked}");
    }
}

#[tokio::test]
async fn each_choice_is_judged_by_itself() {
    let mut body = answers(&[&number(7), "no object", &number(8)]);
    body["choices"][2]["finish_reason"] = json!("length");
    let upstream = Upstream::start([Says::json(200, &[], &body)]).await;
    let answers = Bench::new(BackendKind::Openai, &upstream.url, 3)
        .ask()
        .await;
    assert_eq!(upstream.requests().len(), 1);
    assert_eq!(answers[0].as_ref().unwrap().body["n"], 7);
    let why = |n: usize| &answers[n].as_ref().unwrap_err().why;
    assert!(matches!(why(1), AskError::Malformed { .. }), "{:?}", why(1));
    assert!(matches!(why(2), AskError::AnswerCut { .. }), "{:?}", why(2));
}

#[tokio::test]
async fn llama_cpp_tokens_of_one_choice_are_scaled_to_all() {
    let mut body = answers(&[&number(1), &number(2)]);
    body["timings"] = json!({"predicted_n": 7});
    let upstream = Upstream::start([Says::json(200, &[], &body)]).await;
    let answers = Bench::new(BackendKind::Openai, &upstream.url, 2)
        .ask()
        .await;
    assert_eq!(answers[0].as_ref().unwrap().usage.tokens_out, Some(14));
}

#[tokio::test]
async fn cancel_leaves_no_sample_behind() {
    for kind in [BackendKind::Openai, BackendKind::Anthropic] {
        let upstream = Upstream::start([Says::Silence]).await;
        let bench = Bench::new(kind, &upstream.url, 4);
        let (answers, ()) = tokio::join!(bench.ask(), async {
            upstream.asked().await;
            bench.stop.cancel();
        });
        assert_eq!(answers.len(), 1);
        let why = &answers[0].as_ref().unwrap_err().why;
        assert_eq!(*why, AskError::Cancelled, "{kind:?}");
        upstream.abandoned().await;
        assert_eq!(upstream.requests().len(), 1, "{kind:?}");
    }
}

#[tokio::test]
async fn provider_is_asked_for_the_rest_at_once() {
    let waiting = std::sync::Arc::new(AtomicUsize::new(0));
    let upstream = Upstream::answering(move |_| {
        let n = waiting.fetch_add(1, Ordering::Relaxed);
        let body = json!({"type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": number(n)}], "usage": {"input_tokens": 10, "output_tokens": 2}});
        Says::json(200, &[], &body)
    })
    .await;
    let mut bench = Bench::new(BackendKind::Anthropic, &upstream.url, 4);
    bench.tier.backend.tier = TierKind::Subagent;
    let mut found = numbers(&bench.ask().await);
    found.sort_unstable();
    assert_eq!(found, [0, 1, 2, 3]);
    assert!(upstream.requests().iter().all(|r| r.body["n"].is_null()));
}

#[tokio::test]
async fn own_server_is_asked_one_after_another() {
    let dir = tempfile::tempdir().unwrap();
    // Fails where another one is at work.
    let program = write_program(
        dir.path(),
        "cat > /dev/null; mkdir \"$here/busy\" || exit 9; sleep 0.1; rmdir \"$here/busy\"; cat \"$here/out\"",
    );
    std::fs::write(dir.path().join("out"), run(&result(|_| ()))).unwrap();
    let mut bench = Bench::new(BackendKind::ClaudeCli, "http://localhost:9", 3);
    let path = std::env::var("PATH").unwrap();
    let env = Env::from_iter([("PATH", path.as_str())]);
    bench.backends = Backends::new(SharedResources::new(Launcher::this_program(), env, 3));
    bench.tier.backend.program = Some(program.to_str().unwrap().into());
    bench.tier.model.id = "claude-x".into();
    bench.ask.tool_access = ToolAccess::Edit {
        shell: Shell::Never,
    };
    (bench.ask.root, bench.tier.model.worker) = (dir.path().into(), Some(Worker::Agent));
    let answers = bench.ask().await;
    assert_eq!(answers.len(), 3);
    for answer in answers {
        answer.unwrap();
    }
}
