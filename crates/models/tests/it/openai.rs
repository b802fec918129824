//! What comes of asking an OpenAI-compatible server, for every way it was seen to answer.

mod rows;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use supervisor_models::{
    Ask, AskError, AskResult, AskStep, Backends, Env, FailureBlame, FailureCause, SharedResources,
    Usage,
};
use supervisor_process::Launcher;
use supervisor_settings::{BackendKind, Tier};
use tokio_util::sync::CancellationToken;

use supervisor_test_support::tiers::tier;
use supervisor_test_support::upstream::{Says, Upstream, completion};

use rows::{Key, error, gateway_rows, litellm, other_rows};

const CANARY: &str = "sk-canary-0123456789abcdef";

#[tokio::test]
async fn every_failure_has_cause_blame_and_message() {
    for row in gateway_rows().into_iter().chain(other_rows()) {
        let upstream = Upstream::start([row.says.clone()]).await;
        let bench = Bench::new(&upstream.url, row.key);
        let failure = bench.ask().await.expect_err(row.name);
        let why = &failure.why;
        assert_eq!(why.cause(), row.cause, "{}: {why:?}", row.name);
        assert_eq!(why.blame(), row.blame, "{}: {why:?}", row.name);
        let message = why.message();
        assert!(
            message.contains(row.names),
            "{}: `{message}` does not name `{}`",
            row.name,
            row.names
        );
        assert!(
            !format!("{failure:?} {message}").contains("canary"),
            "{}: {message}",
            row.name
        );
        assert!(!message.contains("pw@"), "{}: {message}", row.name);
    }
}

#[test]
fn no_row_of_the_tables_is_missing() {
    let rows = gateway_rows();
    let base = |name: &str| match name {
        "upstream 500" | "upstream 502" | "upstream 503" | "upstream 503: llama.cpp" => {
            "upstream 500 / 502 / 503".to_owned()
        }
        "content null" | "content \"\"" => "content null or \"\"".to_owned(),
        name => name.replace(": openai/", "").replace(": ollama_chat/", ""),
    };
    let names: std::collections::BTreeSet<_> = rows.iter().map(|row| base(row.name)).collect();
    assert_eq!(
        names
            .iter()
            .filter(|name| name.starts_with("auth: "))
            .count(),
        3,
        "{names:#?}"
    );
    assert_eq!(
        names
            .iter()
            .filter(|name| !name.starts_with("auth: "))
            .count(),
        16,
        "{names:#?}"
    );
}

#[tokio::test]
async fn retry_after_is_passed_on() {
    for (name, wait) in [("upstream 429", 7), ("all deployments cooling down", 5)] {
        let row = gateway_rows()
            .into_iter()
            .find(|row| row.name == name)
            .unwrap();
        let upstream = Upstream::start([row.says]).await;
        let failure = Bench::new(&upstream.url, row.key)
            .ask()
            .await
            .expect_err(name);
        assert_eq!(
            failure.why.retry_after(),
            Some(Duration::from_secs(wait)),
            "{name}"
        );
    }
}

#[tokio::test]
async fn answer_has_its_cost() {
    let text = "<think>hm {\"n\":0}</think>\n```json\n{\"n\":1}\n```";
    let mut body = completion(text);
    body["model"] = json!("local/m");
    let headers = [
        ("x-litellm-call-id", "c1"),
        ("x-litellm-model-group", "local/m"),
        ("x-litellm-response-cost", "9e-06"),
    ];
    let upstream = Upstream::start([Says::json(200, &headers, &body)]).await;
    let reply = Bench::new(&upstream.url, Key::Sent).ask().await.unwrap();
    assert_eq!(reply.body, json!({"n": 1}));
    assert_eq!(reply.raw, text);
    assert_eq!(reply.model_answered, "local/m");
    assert_eq!(
        reply.usage,
        Usage {
            tokens_in: Some(2000),
            tokens_out: Some(7),
            cost_usd: Some(9e-6)
        }
    );
    assert!(reply.notes.is_empty());
}

#[tokio::test]
async fn request_has_schema_deadline_and_key() {
    let upstream = Upstream::start([Says::content(r#"{"n":1}"#)]).await;
    let bench = Bench::new(&format!("{}/v1/", upstream.url), Key::Sent);
    bench.ask().await.unwrap();
    let [request] = <[_; 1]>::try_from(upstream.requests()).unwrap();
    let head = request.head.to_lowercase();
    assert!(
        head.starts_with("post /v1/chat/completions http/1.1"),
        "{head}"
    );
    assert!(
        head.contains("content-type: application/json") && head.contains("x-litellm-timeout: 58.0"),
        "{head}"
    );
    assert_eq!(request.head.matches(CANARY).count(), 1);
    assert!(head.contains(&format!("authorization: bearer {CANARY}")));
    assert!(!request.body.to_string().contains("canary"));
    assert_eq!(request.body["model"], "local/m");
    assert_eq!(
        (
            &request.body["num_retries"],
            &request.body["disable_fallbacks"]
        ),
        (&json!(0), &json!(true))
    );
    assert_eq!(
        request.body["response_format"]["json_schema"]["schema"],
        bench.ask.schema
    );
    assert!(
        request.body["messages"][0]["content"]
            .as_str()
            .unwrap()
            .contains(&bench.ask.schema.to_string())
    );
    assert_eq!(request.body["messages"][1]["content"], bench.ask.prompt);
}

#[tokio::test]
async fn no_key_sends_no_authorization() {
    let upstream = Upstream::start([Says::content(r#"{"n":1}"#)]).await;
    Bench::new(&upstream.url, Key::Unset).ask().await.unwrap();
    assert!(
        !upstream.requests()[0]
            .head
            .to_lowercase()
            .contains("authorization")
    );
}

#[tokio::test]
async fn refused_response_format_is_remembered() {
    let refusal = litellm(
        400,
        "invalid_request_error",
        "JSON schema error at #/properties/a: unrecognized type",
    );
    let upstream = Upstream::start([refusal, Says::content(r#"{"n":1}"#)]).await;
    let bench = Bench::new(&upstream.url, Key::Sent);
    bench.ask().await.unwrap();
    bench.ask().await.unwrap();
    let formats: Vec<_> = upstream
        .requests()
        .iter()
        .map(|r| r.body.get("response_format").is_some())
        .collect();
    assert_eq!(formats, [true, false, false]);
    assert_eq!(
        bench.steps(),
        [AskStep::Asked, AskStep::AskedWithoutFormat, AskStep::Asked]
    );
}

#[tokio::test]
async fn refusal_of_every_format_is_final() {
    let upstream = Upstream::start([litellm(400, "x", "response_format is not supported")]).await;
    let failure = Bench::new(&upstream.url, Key::Sent)
        .ask()
        .await
        .expect_err("refused");
    assert_eq!(failure.why.cause(), FailureCause::Incapable);
    assert_eq!(upstream.requests().len(), 2);
}

#[tokio::test]
async fn ignored_model_name_is_noted() {
    let mut body = completion(r#"{"n":1}"#);
    body["model"] = json!("smollm2.gguf");
    let upstream = Upstream::start([Says::json(200, &[], &body)]).await;
    let reply = Bench::new(&upstream.url, Key::Unset).ask().await.unwrap();
    assert_eq!(reply.model_answered, "smollm2.gguf");
    assert!(reply.notes[0].contains("smollm2.gguf"));
}

#[tokio::test]
async fn echoed_key_is_redacted() {
    let upstream = Upstream::start([error(
        401,
        &[],
        "auth_error",
        &format!("bad key {CANARY}, got Bearer {CANARY}"),
    )])
    .await;
    let failure = Bench::new(&upstream.url, Key::Sent)
        .ask()
        .await
        .expect_err("refused");
    assert!(
        !format!("{failure:?}{}", failure.why.message()).contains("canary"),
        "{failure:?}"
    );
    let upstream =
        Upstream::start([Says::content(&format!("your key is {CANARY} {{\"n\":1}}"))]).await;
    let reply = Bench::new(&upstream.url, Key::Sent).ask().await.unwrap();
    assert!(!format!("{reply:?}").contains("canary"), "{reply:?}");
}

#[tokio::test]
async fn refused_connection_names_the_address() {
    // Bound and dropped: nothing listens there now.
    let address = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let failure = Bench::new(&format!("http://me:pw@{address}"), Key::Sent)
        .ask()
        .await
        .expect_err("nobody there");
    assert!(
        matches!(failure.why, AskError::Unreachable { .. }),
        "{failure:?}"
    );
    assert_eq!(
        (failure.why.cause(), failure.why.blame()),
        (FailureCause::Infra, FailureBlame::Endpoint)
    );
    assert_eq!(failure.usage, Usage::ZERO);
    let message = failure.why.message();
    assert!(
        message.contains("http://127.0.0.1")
            && message.contains("refused")
            && !message.contains("pw"),
        "{message}"
    );
}

#[tokio::test]
async fn silent_server_times_out() {
    let upstream = Upstream::start([Says::Silence]).await;
    let mut bench = Bench::new(&upstream.url, Key::Sent);
    bench.ask.limit = Duration::from_millis(300);
    let failure = bench.ask().await.expect_err("silence");
    assert!(
        matches!(failure.why, AskError::TimedOut { .. }),
        "{failure:?}"
    );
    assert_eq!(
        failure.usage,
        Usage::default(),
        "what a silent server did is unknown"
    );
    upstream.abandoned().await;
}

#[tokio::test]
async fn endless_body_is_cut_off() {
    let upstream = Upstream::start([Says::Flood]).await;
    let failure = Bench::new(&upstream.url, Key::Sent)
        .ask()
        .await
        .expect_err("flood");
    assert!(
        failure.why.message().contains("longer than 8 MiB"),
        "{}",
        failure.why.message()
    );
    upstream.abandoned().await;
}

#[tokio::test]
async fn cancel_drops_the_request() {
    let upstream = Upstream::start([Says::Silence]).await;
    let bench = Bench::new(&upstream.url, Key::Sent);
    let (answered, ()) = tokio::join!(bench.ask(), async {
        upstream.asked().await;
        bench.stop.cancel();
    });
    assert_eq!(answered.expect_err("cancelled").why, AskError::Cancelled);
    upstream.abandoned().await;
    // A call that is already cancelled sends nothing.
    assert_eq!(bench.ask().await.expect_err("cancelled").usage, Usage::ZERO);
    assert_eq!(upstream.requests().len(), 1);
}

struct Bench {
    backends: Backends,
    tier: Tier,
    ask: Ask,
    stop: CancellationToken,
    steps: Arc<Mutex<Vec<AskStep>>>,
}

impl Bench {
    fn new(base_url: &str, key: Key) -> Self {
        let env: Env = match key {
            Key::Sent => [("GATE_KEY", CANARY)].into_iter().collect(),
            Key::Unset => [("GATE_KEY", "")].into_iter().collect(),
        };
        let mut tier = tier("gate", BackendKind::Openai, "local/m");
        tier.backend.base_url = Some(base_url.into());
        tier.backend.api_key_env = Some("GATE_KEY".into());
        let schema =
            json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let mut ask = Ask::new("rules", "x ".repeat(3000), schema, "/");
        ask.limit = Duration::from_secs(60);
        let shared = SharedResources::new(Launcher::this_program(), env, 1);
        Self {
            backends: Backends::new(shared),
            tier,
            ask,
            stop: CancellationToken::new(),
            steps: Arc::default(),
        }
    }

    async fn ask(&self) -> AskResult {
        let backend = self.backends.of(&self.tier).unwrap();
        let steps = Arc::clone(&self.steps);
        backend
            .ask(&self.ask, &self.tier, &self.stop, &move |step| {
                steps.lock().unwrap().push(step);
            })
            .await
    }

    fn steps(&self) -> Vec<AskStep> {
        self.steps.lock().unwrap().clone()
    }
}
