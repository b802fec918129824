//! What comes of asking a server with `/v1/messages`, for every way one was seen or documented to
//! answer.

use std::time::Duration;

use serde_json::{Value, json};
use supervisor_models::{
    Ask, AskError, AskResult, Backends, Env, FailureBlame, FailureCause, SharedResources, Shell,
    ToolAccess, Usage,
};
use supervisor_process::Launcher;
use supervisor_settings::{BackendKind, Tier};
use supervisor_test_support::tiers::tier;
use supervisor_test_support::upstream::{Says, Upstream};
use tokio_util::sync::CancellationToken;

const CANARY: &str = "sk-ant-canary-0123456789abcdef";

#[tokio::test]
async fn streamed_answer_is_read_and_priced() {
    let upstream = Upstream::start([stream(&events(r#"{"n":1}"#, "end_turn"))]).await;
    let bench = Bench::new(&upstream.url);
    let reply = bench.ask().await.unwrap();
    assert_eq!(reply.body, json!({"n": 1}));
    assert_eq!(reply.model_answered, "claude-m-20260101");
    assert_eq!(reply.usage.tokens_in, Some(1000 + 400 + 2000));
    assert_eq!(reply.usage.tokens_out, Some(7));
    // 1000 + 1.25 × 400 + 0.1 × 2000 tokens in at $10, 7 out at $100, for a million each.
    let usd = reply.usage.cost_usd.unwrap();
    assert!((usd - 0.0177).abs() < 1e-9, "{usd}");
    assert_eq!(reply.notes, ["prompt cache: 2000 tokens read, 400 written"]);
}

#[tokio::test]
async fn request_has_key_version_and_cached_rules() {
    let upstream = Upstream::start([stream(&events(r#"{"n":1}"#, "end_turn"))]).await;
    let mut bench = Bench::new(&upstream.url);
    bench.ask.attempt = 3;
    bench.ask().await.unwrap();
    let [request] = <[_; 1]>::try_from(upstream.requests()).unwrap();
    let head = request.head.to_lowercase();
    assert!(head.starts_with("post /v1/messages http/1.1"), "{head}");
    assert!(head.contains(&format!("x-api-key: {CANARY}")), "{head}");
    assert!(head.contains("anthropic-version: 2023-06-01"), "{head}");
    let body = &request.body;
    assert_eq!(body["system"][0]["cache_control"]["type"], "ephemeral");
    let rules = body["system"][0]["text"].as_str().unwrap();
    assert!(rules.starts_with("rules") && rules.contains(r#""required":["n"]"#));
    assert_eq!(body["messages"][0]["content"][0]["text"], bench.ask.prompt);
    assert_eq!(
        (&body["stream"], &body["max_tokens"]),
        (&json!(true), &json!(2048))
    );
    for parameter in ["temperature", "top_p", "top_k", "thinking"] {
        assert!(body.get(parameter).is_none(), "{parameter}: {body}");
    }
    assert!(!body.to_string().contains("canary"));
}

#[tokio::test]
async fn alias_becomes_the_newest_model_of_its_family() {
    let upstream = Upstream::answering(|request| {
        if request.head.starts_with("GET /v1/models") {
            let model = |id: &str, at: &str| json!({"id": id, "created_at": at});
            let models = [
                model("claude-sonnet-4-6", "2026-02-01T00:00:00Z"),
                model("claude-sonnet-5", "2026-06-01T00:00:00Z"),
                model("claude-opus-5", "2026-09-01T00:00:00Z"),
            ];
            Says::json(200, &[], &json!({"data": models}))
        } else {
            stream(&events(r#"{"n":1}"#, "end_turn"))
        }
    })
    .await;
    let mut bench = Bench::new(&upstream.url);
    bench.tier.model.id = "sonnet".into();
    bench.ask().await.unwrap();
    bench.ask().await.unwrap();
    let requests = upstream.requests();
    assert_eq!(requests.len(), 3, "the list is asked for once");
    assert_eq!(requests[2].body["model"], "claude-sonnet-5");
}

#[tokio::test]
async fn alias_is_sent_as_it_is_without_a_list() {
    let upstream = Upstream::answering(|request| {
        if request.head.starts_with("GET ") {
            Says::text(404, &[], "404 page not found")
        } else {
            stream(&events(r#"{"n":1}"#, "end_turn"))
        }
    })
    .await;
    let mut bench = Bench::new(&upstream.url);
    bench.tier.model.id = "haiku".into();
    bench.ask().await.unwrap();
    assert_eq!(upstream.requests()[1].body["model"], "haiku");
}

#[tokio::test]
async fn other_forms_of_an_answer_are_read() {
    let whole = json!({
        "type": "message", "model": "m", "stop_reason": "end_turn",
        "content": [{"type": "thinking", "thinking": "…"}, {"type": "text", "text": r#"{"n":"#}, {"type": "text", "text": "1}"}],
        "usage": {"input_tokens": 2000, "output_tokens": 7},
    });
    let mut noisy = events(r#"{"n":1}"#, "end_turn");
    noisy.insert(1, json!({"type": "ping"}));
    noisy.insert(2, json!({"type": "content_block_start", "index": 0, "content_block": {"type": "next_year", "text": 7}}));
    noisy.insert(3, json!({"type": "vibes", "delta": {"text": "no"}}));
    let garbage = sse(&noisy).replace(
        "event: vibes",
        ": comment\ndata: {not json\ndata:\nevent: vibes",
    );
    let crlf = sse(&events(r#"{"n":1}"#, "end_turn")).replace('\n', "\r\n");
    // LiteLLM counts only at the end; llama.cpp counts only the output there.
    let mut late = events(r#"{"n":1}"#, "end_turn");
    late[0]["message"]["usage"] = json!({"input_tokens": 0, "output_tokens": 0});
    late[3]["usage"] = json!({"input_tokens": 3400, "output_tokens": 7});
    for (name, says) in [
        ("JSON instead of a stream", Says::json(200, &[], &whole)),
        ("unknown events, garbage", stream_text(&garbage)),
        ("CRLF", stream_text(&crlf)),
        ("late counts", stream(&late)),
        (
            "no message_stop",
            stream(&events(r#"{"n":1}"#, "end_turn")[..4]),
        ),
        (
            "no content type",
            Says::text(200, &[], &sse(&events(r#"{"n":1}"#, "end_turn"))),
        ),
    ] {
        let upstream = Upstream::start([says]).await;
        let reply = Bench::new(&upstream.url).ask().await;
        let reply = reply.unwrap_or_else(|failure| panic!("{name}: {failure:?}"));
        assert_eq!(reply.body, json!({"n": 1}), "{name}");
        assert!(
            reply.usage.tokens_in.is_some_and(|n| n >= 2000),
            "{name}: {:?}",
            reply.usage
        );
    }
}

#[tokio::test]
async fn text_is_returned_unread() {
    let upstream = Upstream::start([stream(&events("no { json", "end_turn"))]).await;
    let mut bench = Bench::new(&upstream.url);
    bench.ask.schema = Value::Null;
    bench.ask.tool_access = ToolAccess::Edit {
        shell: Shell::Never,
    };
    assert_eq!(bench.ask().await.unwrap().body, json!("no { json"));
}

#[tokio::test]
async fn every_failure_has_cause_blame_and_message() {
    use FailureBlame::{Endpoint, Model, Neither};
    use FailureCause::{Incapable, Infra, Quota, Refused, Setup};
    let error = |status: u16, kind: &str, message: &str| {
        Says::json(status, &[], &anthropic_error(kind, message))
    };
    let in_stream = |kind: &str, message: &str| {
        let mut events = events("half an ans", "end_turn");
        events.truncate(2);
        events.push(anthropic_error(kind, message));
        stream(&events)
    };
    let ends = |reason: &str| stream(&events(r#"{"n":1}"#, reason));
    let llama = |status: u16, kind: &str, message: &str| {
        Says::json(
            status,
            &[],
            &json!({"error": {"code": status, "message": message, "type": kind}}),
        )
    };
    let mut cut = events(r#"{"n":1}"#, "end_turn");
    cut.truncate(2);
    let rows = [
        (
            "bad request",
            error(400, "invalid_request_error", "messages: field required"),
            Incapable,
            Neither,
            "field required",
        ),
        (
            "no version",
            error(
                400,
                "invalid_request_error",
                "anthropic-version: header is required",
            ),
            Incapable,
            Neither,
            "anthropic-version",
        ),
        (
            "own spend limit",
            error(
                400,
                "invalid_request_error",
                "You have reached your specified API usage limits.",
            ),
            Quota,
            Endpoint,
            "no credit",
        ),
        (
            "low credit",
            error(
                400,
                "invalid_request_error",
                "Your credit balance is too low",
            ),
            Quota,
            Endpoint,
            "no credit",
        ),
        (
            "too long",
            error(
                400,
                "invalid_request_error",
                "prompt is too long: 300000 tokens > 200000 maximum",
            ),
            Incapable,
            Neither,
            "too long",
        ),
        (
            "wrong key",
            error(
                401,
                "authentication_error",
                "invalid x-api-key sk-ant-canary-0123456789abcdef",
            ),
            Setup,
            Neither,
            "$CLAUDE_KEY",
        ),
        (
            "billing",
            error(402, "billing_error", "pay"),
            Quota,
            Endpoint,
            "no credit",
        ),
        (
            "permission",
            error(403, "permission_error", "not yours"),
            Setup,
            Neither,
            "$CLAUDE_KEY",
        ),
        (
            "unknown model",
            error(404, "not_found_error", "model: m"),
            Setup,
            Neither,
            "models.\"m\".id",
        ),
        (
            "no such path",
            Says::text(404, &[], "404 page not found"),
            Setup,
            Neither,
            "/v1/messages",
        ),
        (
            "too large",
            error(413, "request_too_large", "32 MB"),
            Incapable,
            Neither,
            "too long",
        ),
        (
            "spend cap",
            error(429, "rate_limit_error", "limit of your tier"),
            Quota,
            Endpoint,
            "no credit",
        ),
        (
            "internal",
            error(500, "api_error", "oops"),
            Infra,
            Model,
            "status 500",
        ),
        (
            "timeout",
            error(504, "timeout_error", "slow"),
            Infra,
            Model,
            "status 504",
        ),
        (
            "overloaded",
            error(529, "overloaded_error", "Overloaded"),
            Infra,
            Model,
            "status 529",
        ),
        (
            "Ollama is busy",
            error(503, "overloaded_error", "server busy"),
            Infra,
            Model,
            "status 503",
        ),
        (
            "overloaded after 200",
            in_stream("overloaded_error", "Overloaded"),
            Infra,
            Model,
            "status 529",
        ),
        (
            "limited after 200",
            in_stream("rate_limit_error", "slow down"),
            Quota,
            Endpoint,
            "slow down",
        ),
        (
            "llama.cpp: no messages",
            llama(500, "server_error", "'messages' is required"),
            Infra,
            Model,
            "'messages'",
        ),
        (
            "llama.cpp: too long",
            llama(
                400,
                "exceed_context_size_error",
                "the request exceeds the available context size",
            ),
            Incapable,
            Neither,
            "too long",
        ),
        (
            "llama.cpp: loading",
            llama(503, "unavailable_error", "Loading model"),
            Infra,
            Model,
            "loaded",
        ),
        (
            "vLLM: unknown model",
            Says::json(
                404,
                &[],
                &json!({"type": "error", "error": {"type": "NotFoundError", "message": "The model `m` does not exist."}}),
            ),
            Setup,
            Neither,
            "models.\"m\".id",
        ),
        (
            "LiteLLM: wrong key",
            Says::json(
                400,
                &[],
                &json!({"error": {"message": "No connected db.", "type": "no_db_connection", "code": "400"}}),
            ),
            Setup,
            Neither,
            "$CLAUDE_KEY",
        ),
        (
            "error with 200",
            Says::json(200, &[], &anthropic_error("overloaded_error", "Overloaded")),
            Infra,
            Model,
            "status 529",
        ),
        ("refusal", ends("refusal"), Refused, Neither, "declined"),
        (
            "max_tokens",
            ends("max_tokens"),
            Incapable,
            Neither,
            "cut off",
        ),
        (
            "window",
            ends("model_context_window_exceeded"),
            Incapable,
            Neither,
            "window",
        ),
        (
            "pause_turn",
            ends("pause_turn"),
            Infra,
            Model,
            "`pause_turn`",
        ),
        ("tool_use", ends("tool_use"), Infra, Model, "tool"),
        ("unknown reason", ends("bored"), Infra, Model, "`bored`"),
        ("cut stream", stream(&cut), Infra, Model, "no end"),
        (
            "garbage stream",
            stream_text("data: {]\nevent: x\n\n\u{0}\u{1}"),
            Infra,
            Model,
            "no end",
        ),
        ("empty", Says::text(200, &[], ""), Infra, Model, "empty"),
        (
            "web page",
            Says::text(200, &[("content-type", "text/html")], "<!doctype html>"),
            Setup,
            Neither,
            "web page",
        ),
        (
            "redirect",
            Says::text(302, &[("location", "http://elsewhere/")], ""),
            Setup,
            Neither,
            "elsewhere",
        ),
        (
            "closed",
            Says::Raw(b"HTTP/1.1 200 OK\r\ncontent-length: 90\r\n\r\ndata: {}".to_vec()),
            Infra,
            Endpoint,
            "cannot be reached",
        ),
        ("flood", Says::Flood, Infra, Model, "no usable answer"),
    ];
    for (name, says, cause, blame, names) in rows {
        let upstream = Upstream::start([says]).await;
        let failure = Bench::new(&upstream.url).ask().await.expect_err(name);
        let why = &failure.why;
        assert_eq!(
            (why.cause(), why.blame()),
            (cause, blame),
            "{name}: {why:?}"
        );
        let message = why.message();
        assert!(message.contains(names), "{name}: {message}");
        assert!(
            !format!("{failure:?} {message}").contains("canary"),
            "{name}"
        );
    }
}

#[tokio::test]
async fn retry_after_means_busy_not_spent() {
    let body = anthropic_error("rate_limit_error", "slow down");
    let upstream = Upstream::start([Says::json(429, &[("retry-after", "7")], &body)]).await;
    let failure = Bench::new(&upstream.url).ask().await.unwrap_err();
    assert!(matches!(failure.why, AskError::RateLimited { .. }));
    assert_eq!(failure.why.retry_after(), Some(Duration::from_secs(7)));
    assert_eq!(failure.usage, Usage::ZERO);
}

#[tokio::test]
async fn answer_ends_although_the_connection_stays_open() {
    let open = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 100000\r\n\r\n{}",
        sse(&events(r#"{"n":1}"#, "end_turn"))
    );
    let upstream = Upstream::start([Says::Raw(open.into_bytes())]).await;
    assert_eq!(
        Bench::new(&upstream.url).ask().await.unwrap().body,
        json!({"n": 1})
    );
}

#[tokio::test]
async fn cancel_closes_the_connection() {
    let upstream = Upstream::start([Says::Silence]).await;
    let bench = Bench::new(&upstream.url);
    let (answer, ()) = tokio::join!(bench.ask(), async {
        upstream.asked().await;
        bench.stop.cancel();
    });
    assert_eq!(answer.unwrap_err().why, AskError::Cancelled);
}

#[tokio::test]
async fn anthropic_itself_is_not_asked_without_a_key() {
    let mut bench = Bench::new("http://unused");
    bench.tier.backend.base_url = None;
    bench.tier.backend.api_key_env = Some("UNSET".into());
    let why = bench.backends.of(&bench.tier).err().unwrap();
    assert_eq!(why.cause(), FailureCause::Setup);
    assert!(why.message().contains("$UNSET"), "{}", why.message());
}

struct Bench {
    backends: Backends,
    tier: Tier,
    ask: Ask,
    stop: CancellationToken,
}

impl Bench {
    fn new(base_url: &str) -> Self {
        let mut tier = tier("claude", BackendKind::Anthropic, "m");
        tier.backend.base_url = Some(base_url.into());
        tier.backend.api_key_env = Some("CLAUDE_KEY".into());
        (tier.model.price_in, tier.model.price_out) = (Some(10.0), Some(100.0));
        let schema = json!({"type": "object", "required": ["n"]});
        let mut ask = Ask::new("rules", "x ".repeat(3000), schema, "/");
        ask.limit = Duration::from_secs(60);
        let env: Env = [("CLAUDE_KEY", CANARY)].into_iter().collect();
        Self {
            backends: Backends::new(SharedResources::new(Launcher::this_program(), env, 1)),
            tier,
            ask,
            stop: CancellationToken::new(),
        }
    }

    async fn ask(&self) -> AskResult {
        let backend = self.backends.of(&self.tier).unwrap();
        backend
            .ask(&self.ask, &self.tier, &self.stop, &|_| {})
            .await
    }
}

fn anthropic_error(kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "r1"})
}

/// The events of one message, with its text in one piece.
fn events(text: &str, stop_reason: &str) -> Vec<Value> {
    let usage = json!({"input_tokens": 1000, "cache_creation_input_tokens": 400, "cache_read_input_tokens": 2000, "output_tokens": 1});
    vec![
        json!({"type": "message_start", "message": {"model": "claude-m-20260101", "content": [], "stop_reason": null, "usage": usage}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
        json!({"type": "message_delta", "delta": {"stop_reason": stop_reason}, "usage": {"output_tokens": 7}}),
        json!({"type": "message_stop"}),
    ]
}

fn sse(events: &[Value]) -> String {
    let line = |event: &Value| {
        let kind = event["type"].as_str().unwrap_or_default();
        format!("event: {kind}\ndata: {event}\n\n")
    };
    events.iter().map(line).collect()
}

fn stream(events: &[Value]) -> Says {
    stream_text(&sse(events))
}

fn stream_text(text: &str) -> Says {
    Says::text(200, &[("content-type", "text/event-stream")], text)
}
