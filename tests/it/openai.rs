//! What comes of asking an OpenAI-compatible server, for every way it was seen to answer.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use supervisor::backend::{Answered, Ask, AskError, Backends, Blame, Cause, Env, Shared, Step, Usage};
use supervisor::process::Launcher;
use supervisor::routing::{self, BackendKind, Model, ModelName, Tier, TierKind};
use tokio_util::sync::CancellationToken;

use crate::upstream::{Says, Upstream, completion};

const CANARY: &str = "sk-canary-0123456789abcdef";

/// One way a server answers, named after the row it was seen in, and what must come of it.
struct Row {
    name: &'static str,
    key: Key,
    says: Says,
    cause: Cause,
    blame: Blame,
    /// What the message must name.
    names: &'static str,
}

#[derive(Clone, Copy, PartialEq)]
enum Key {
    Sent,
    Unset,
}

fn litellm(status: u16, kind: &str, message: &str) -> Says {
    litellm_with(status, kind, message, &[])
}

fn litellm_with(status: u16, kind: &str, message: &str, more: &[(&str, &str)]) -> Says {
    let mut headers = vec![("x-litellm-call-id", "c1"), ("x-litellm-response-cost", "0")];
    headers.extend(more);
    error(status, &headers, kind, message)
}

fn error(status: u16, headers: &[(&str, &str)], kind: &str, message: &str) -> Says {
    let body = json!({"error": {"message": message, "type": kind, "param": null, "code": status.to_string()}});
    Says::json(status, headers, &body)
}

fn gateway_ok(change: impl Fn(&mut Value)) -> Says {
    let mut body = completion(r#"{"n":1}"#);
    body["model"] = json!("local/m");
    change(&mut body);
    Says::json(200, &[("x-litellm-call-id", "c1"), ("x-litellm-model-group", "local/m")], &body)
}

/// The tables of LiteLLM's answers: three about keys, sixteen about errors; a row with several cases has a line for each.
fn gateway_rows() -> Vec<Row> {
    use Blame::{Endpoint, Model, Nobody};
    use Cause::{Incapable, Infra, Quota, Setup};
    let row = |name, key, says, cause, blame, names| Row { name, key, says, cause, blame, names };
    let sent = |name, says, cause, blame, names| row(name, Key::Sent, says, cause, blame, names);
    let internal = "internal_server_error";
    let invalid = "invalid_request_error";
    vec![
        row(
            "auth: no key",
            Key::Unset,
            error(401, &[], "auth_error", "Authentication Error, No api key passed in."),
            Setup,
            Nobody,
            "$GATE_KEY",
        ),
        row(
            "auth: no key, prisma absent",
            Key::Unset,
            Says::text(500, &[("content-type", "text/plain")], "Internal Server Error"),
            Setup,
            Nobody,
            "$GATE_KEY",
        ),
        sent(
            "auth: wrong key, no database",
            error(400, &[], "no_db_connection", "No connected db."),
            Setup,
            Nobody,
            "$GATE_KEY",
        ),
        sent(
            "unknown model name",
            litellm(
                400,
                invalid,
                "litellm.BadRequestError: There are no healthy deployments for this model. Fallbacks=[]",
            ),
            Setup,
            Nobody,
            "models.\"local/m\".id",
        ),
        sent(
            "bad request JSON / no messages",
            litellm(400, invalid, "messages: field required"),
            Incapable,
            Nobody,
            "local/m",
        ),
        sent(
            "upstream 400",
            litellm(400, invalid, "litellm.BadRequestError: OpenAIException - no"),
            Incapable,
            Nobody,
            "local/m",
        ),
        sent(
            "upstream 400, context too long: openai/",
            litellm(400, invalid, "litellm.ContextWindowExceededError: litellm.BadRequestError: 9000 > 4096"),
            Incapable,
            Nobody,
            "models.\"local/m\".context",
        ),
        sent(
            "upstream 400, context too long: ollama_chat/",
            litellm(
                400,
                invalid,
                "litellm.BadRequestError: Ollama_chatException - input exceeds the available context size",
            ),
            Incapable,
            Nobody,
            "models.\"local/m\".context",
        ),
        sent(
            "\"does not support tools\"",
            litellm(400, "api_error", "litellm.APIError: registry/deepseek-r1 does not support tools"),
            Incapable,
            Nobody,
            "does not support tools",
        ),
        sent(
            "upstream 401",
            litellm(
                401,
                "authentication_error",
                "litellm.AuthenticationError: AuthenticationError: OpenAIException - bad",
            ),
            Setup,
            Nobody,
            "litellm_params.api_key",
        ),
        sent(
            "upstream 404",
            litellm(404, invalid, "litellm.NotFoundError: NotFoundError: OpenAIException - nope"),
            Setup,
            Nobody,
            "models.\"local/m\".id",
        ),
        sent("upstream 422", litellm(422, invalid, "litellm.UnprocessableEntityError"), Incapable, Nobody, "local/m"),
        sent(
            "upstream 429",
            litellm_with(429, "throttling_error", "litellm.RateLimitError", &[("llm_provider-retry-after", "7")]),
            Quota,
            Endpoint,
            "another backend than `gate`",
        ),
        sent(
            "all deployments cooling down",
            litellm_with(429, "all_deployments_in_cooldown", "No deployments available", &[("retry-after", "5")]),
            Quota,
            Model,
            "cooldown_time",
        ),
        sent(
            "upstream 500",
            litellm(500, internal, "litellm.InternalServerError: boom"),
            Infra,
            Model,
            "backends.gate.base_url",
        ),
        sent("upstream 502", litellm(502, internal, "litellm.BadGatewayError"), Infra, Model, "502"),
        sent("upstream 503", litellm(503, internal, "litellm.ServiceUnavailableError: busy"), Infra, Model, "503"),
        sent(
            "upstream 503: llama.cpp",
            litellm(503, internal, "litellm.ServiceUnavailableError: Loading model"),
            Infra,
            Model,
            "limits.local_s",
        ),
        sent(
            "refused, closed, truncated body",
            litellm(
                500,
                internal,
                "litellm.InternalServerError: InternalServerError: OpenAIException - Connection error.",
            ),
            Infra,
            Model,
            "Connection error",
        ),
        sent(
            "malformed / empty / HTML 200 body",
            litellm(500, internal, "litellm.InternalServerError: Expecting value: line 1 column 1 (char 0)"),
            Infra,
            Model,
            "Expecting value",
        ),
        sent(
            "timeout",
            litellm(408, invalid, "litellm.Timeout: APITimeoutError - Request timed out."),
            Infra,
            Model,
            "limit_s",
        ),
        sent(
            "`choices: []` from upstream",
            gateway_ok(|b| {
                b["choices"] = json!([]);
                b["usage"] = json!({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0});
            }),
            Infra,
            Model,
            "no choice",
        ),
        sent(
            "content null",
            gateway_ok(|b| b["choices"][0]["message"]["content"] = Value::Null),
            Infra,
            Model,
            "empty",
        ),
        sent("content \"\"", gateway_ok(|b| b["choices"][0]["message"]["content"] = json!("")), Infra, Model, "empty"),
    ]
}

/// What servers without a gateway say, and what else was seen.
fn other_rows() -> Vec<Row> {
    use Blame::{Endpoint, Model, Nobody};
    use Cause::{Incapable, Infra, Quota, Refused, Setup};
    let sent = |name, says, cause, blame, names| Row { name, key: Key::Sent, says, cause, blame, names };
    let swap = |status, code: &str, message: &str, headers: &[(&str, &str)]| {
        let error = json!({"message": message, "type": "error", "param": null, "code": code});
        Says::json(status, headers, &json!({"src": "llama-swap", "error": error}))
    };
    vec![
        sent(
            "llama.cpp: prompt too long",
            Says::json(
                400,
                &[],
                &json!({"error": {"code": 400, "type": "exceed_context_size_error",
            "message": "the request exceeds the available context size", "n_prompt_tokens": 9000, "n_ctx": 4096}}),
            ),
            Incapable,
            Nobody,
            "context",
        ),
        sent(
            "llama.cpp: loading",
            Says::json(
                503,
                &[],
                &json!({"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}),
            ),
            Infra,
            Model,
            "loaded",
        ),
        sent("llama-swap: wrong key", swap(401, "401", "unauthorized", &[]), Setup, Nobody, "$GATE_KEY"),
        sent(
            "llama-swap: unknown model",
            swap(404, "404", "no router for requested model", &[]),
            Setup,
            Nobody,
            "models.\"local/m\".id",
        ),
        sent(
            "llama-swap: too many at once",
            swap(429, "concurrency_limit", "too many requests", &[("retry-after", "1")]),
            Quota,
            Model,
            "concurrencyLimit",
        ),
        sent(
            "Ollama: unknown model",
            Says::json(404, &[], &json!({"error": "model 'm' not found"})),
            Setup,
            Nobody,
            "models.\"local/m\".id",
        ),
        sent(
            "Ollama: queue full",
            Says::json(
                503,
                &[],
                &json!({"error": "server busy, please try again.  maximum pending requests exceeded"}),
            ),
            Infra,
            Endpoint,
            "maximum pending",
        ),
        sent(
            "not an API: 404 page",
            Says::text(404, &[], "404 page not found"),
            Setup,
            Nobody,
            "backends.gate.base_url",
        ),
        sent(
            "not an API: FastAPI 404",
            Says::json(404, &[], &json!({"detail": "Not Found"})),
            Setup,
            Nobody,
            "backends.gate.base_url",
        ),
        sent("not an API: web page", Says::text(200, &[], "<!DOCTYPE html><html></html>"), Setup, Nobody, "web page"),
        sent(
            "redirect",
            Says::text(302, &[("location", "http://me:pw@elsewhere/login?k=1")], ""),
            Setup,
            Nobody,
            "http://elsewhere/login",
        ),
        sent(
            "payment",
            Says::json(402, &[], &json!({"error": {"message": "Insufficient credits"}})),
            Quota,
            Endpoint,
            "credit",
        ),
        sent(
            "gateway's own budget",
            litellm(400, "budget_exceeded", "Budget has been exceeded! Current cost: 2"),
            Quota,
            Endpoint,
            "credit",
        ),
        sent(
            "forbidden",
            Says::json(403, &[], &json!({"error": {"message": "no access"}})),
            Setup,
            Nobody,
            "$GATE_KEY",
        ),
        sent("plain 500", Says::text(500, &[], "boom"), Infra, Endpoint, "boom"),
        sent(
            "error in a 200",
            Says::json(200, &[], &json!({"error": {"message": "upstream exploded"}})),
            Infra,
            Endpoint,
            "exploded",
        ),
        sent("body not JSON", Says::text(200, &[], "{\"choices\": ["), Infra, Model, "not JSON"),
        sent("body empty", Says::text(200, &[], ""), Infra, Model, "empty"),
        sent("closed at once", Says::Raw(vec![]), Infra, Endpoint, "base_url"),
        sent(
            "body shorter than said",
            Says::Raw(b"HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n{\"choices\"".to_vec()),
            Infra,
            Endpoint,
            "closed",
        ),
        sent("not HTTP", Says::Raw(b"SSH-2.0-OpenSSH_9\r\n".to_vec()), Infra, Endpoint, "HTTP"),
        sent(
            "cut at its length",
            gateway_ok(|b| b["choices"][0]["finish_reason"] = json!("length")),
            Incapable,
            Nobody,
            "max_tokens",
        ),
        sent(
            "refusal field",
            gateway_ok(|b| b["choices"][0]["message"]["refusal"] = json!("I will not")),
            Refused,
            Nobody,
            "I will not",
        ),
        sent(
            "content filter",
            gateway_ok(|b| b["choices"][0]["finish_reason"] = json!("content_filter")),
            Refused,
            Nobody,
            "declined",
        ),
        sent(
            "thoughts only",
            gateway_ok(|b| b["choices"][0]["message"] = json!({"content": null, "reasoning_content": "hm {\"n\":1}"})),
            Infra,
            Model,
            "thoughts",
        ),
        sent(
            "a tool call instead",
            gateway_ok(|b| b["choices"][0]["message"] = json!({"content": null, "tool_calls": [{}]})),
            Infra,
            Model,
            "tool",
        ),
        sent("prose", Says::content("I would change line 3."), Infra, Model, "no JSON object"),
        sent("half an object", Says::content("{\"n\": [1, 2"), Infra, Model, "middle"),
        sent(
            "prompt cut to the window",
            gateway_ok(|b| b["usage"]["prompt_tokens"] = json!(20)),
            Incapable,
            Nobody,
            "OLLAMA_CONTEXT_LENGTH",
        ),
        sent(
            "gateway fell back",
            {
                let mut body = completion(r#"{"n":1}"#);
                body["model"] = json!("other");
                Says::json(200, &[("x-litellm-attempted-fallbacks", "1"), ("x-litellm-model-group", "other")], &body)
            },
            Setup,
            Nobody,
            "`other` answered",
        ),
    ]
}

#[tokio::test]
async fn every_way_a_server_fails_has_its_cause_its_blame_and_a_message_that_helps() {
    for row in gateway_rows().into_iter().chain(other_rows()) {
        let upstream = Upstream::start([row.says.clone()]).await;
        let bench = Bench::new(&upstream.url, row.key);
        let failure = bench.ask().await.expect_err(row.name);
        let why = &failure.why;
        assert_eq!(why.cause(), row.cause, "{}: {why:?}", row.name);
        assert_eq!(why.blame(), row.blame, "{}: {why:?}", row.name);
        let message = why.message();
        assert!(message.contains(row.names), "{}: `{message}` does not name `{}`", row.name, row.names);
        assert!(!format!("{failure:?} {message}").contains("canary"), "{}: {message}", row.name);
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
    assert_eq!(names.iter().filter(|name| name.starts_with("auth: ")).count(), 3, "{names:#?}");
    assert_eq!(names.iter().filter(|name| !name.starts_with("auth: ")).count(), 16, "{names:#?}");
}

#[tokio::test]
async fn waits_that_servers_ask_for_are_passed_on() {
    for (name, wait) in [("upstream 429", 7), ("all deployments cooling down", 5)] {
        let row = gateway_rows().into_iter().find(|row| row.name == name).unwrap();
        let upstream = Upstream::start([row.says]).await;
        let failure = Bench::new(&upstream.url, row.key).ask().await.expect_err(name);
        assert_eq!(failure.why.retry_after(), Some(Duration::from_secs(wait)), "{name}");
    }
}

#[tokio::test]
async fn an_answer_is_one_object_with_what_it_cost() {
    let text = "<think>hm {\"n\":0}</think>\n```json\n{\"n\":1}\n```";
    let mut body = completion(text);
    body["model"] = json!("local/m");
    let headers =
        [("x-litellm-call-id", "c1"), ("x-litellm-model-group", "local/m"), ("x-litellm-response-cost", "9e-06")];
    let upstream = Upstream::start([Says::json(200, &headers, &body)]).await;
    let reply = Bench::new(&upstream.url, Key::Sent).ask().await.unwrap();
    assert_eq!(reply.body, json!({"n": 1}));
    assert_eq!(reply.raw, text);
    assert_eq!(reply.model_answered, "local/m");
    assert_eq!(reply.usage, Usage { tokens_in: Some(2000), tokens_out: Some(7), cost_usd: Some(9e-6) });
    assert!(!reply.edited_in_place && reply.notes.is_empty());
}

#[tokio::test]
async fn the_request_carries_the_schema_the_deadline_and_the_key_in_one_place() {
    let upstream = Upstream::start([Says::content(r#"{"n":1}"#)]).await;
    let bench = Bench::new(&format!("{}/v1/", upstream.url), Key::Sent);
    bench.ask().await.unwrap();
    let [request] = <[_; 1]>::try_from(upstream.requests()).unwrap();
    let head = request.head.to_lowercase();
    assert!(head.starts_with("post /v1/chat/completions http/1.1"), "{head}");
    assert!(head.contains("content-type: application/json") && head.contains("x-litellm-timeout: 58.0"), "{head}");
    assert_eq!(request.head.matches(CANARY).count(), 1);
    assert!(head.contains(&format!("authorization: bearer {CANARY}")));
    assert!(!request.body.to_string().contains("canary"));
    assert_eq!(request.body["model"], "local/m");
    assert_eq!((&request.body["num_retries"], &request.body["disable_fallbacks"]), (&json!(0), &json!(true)));
    assert_eq!(request.body["response_format"]["json_schema"]["schema"], bench.ask.schema);
    assert!(request.body["messages"][0]["content"].as_str().unwrap().contains(&bench.ask.schema.to_string()));
    assert_eq!(request.body["messages"][1]["content"], bench.ask.prompt);
}

#[tokio::test]
async fn without_a_key_no_authorization_is_sent() {
    let upstream = Upstream::start([Says::content(r#"{"n":1}"#)]).await;
    Bench::new(&upstream.url, Key::Unset).ask().await.unwrap();
    assert!(!upstream.requests()[0].head.to_lowercase().contains("authorization"));
}

#[tokio::test]
async fn a_server_that_refuses_the_response_format_is_asked_once_more_without_and_remembered() {
    let refusal = litellm(400, "invalid_request_error", "JSON schema error at #/properties/a: unrecognized type");
    let upstream = Upstream::start([refusal, Says::content(r#"{"n":1}"#)]).await;
    let bench = Bench::new(&upstream.url, Key::Sent);
    bench.ask().await.unwrap();
    bench.ask().await.unwrap();
    let formats: Vec<_> = upstream.requests().iter().map(|r| r.body.get("response_format").is_some()).collect();
    assert_eq!(formats, [true, false, false]);
    assert_eq!(bench.steps(), [Step::Asked, Step::AskedPlainly, Step::Asked]);
}

#[tokio::test]
async fn a_server_that_refuses_every_form_is_asked_twice_and_no_more() {
    let upstream = Upstream::start([litellm(400, "x", "response_format is not supported")]).await;
    let failure = Bench::new(&upstream.url, Key::Sent).ask().await.expect_err("refused");
    assert_eq!(failure.why.cause(), Cause::Incapable);
    assert_eq!(upstream.requests().len(), 2);
}

#[tokio::test]
async fn a_single_model_server_that_ignores_the_name_is_believed_with_a_note() {
    let mut body = completion(r#"{"n":1}"#);
    body["model"] = json!("smollm2.gguf");
    let upstream = Upstream::start([Says::json(200, &[], &body)]).await;
    let reply = Bench::new(&upstream.url, Key::Unset).ask().await.unwrap();
    assert_eq!(reply.model_answered, "smollm2.gguf");
    assert!(reply.notes[0].contains("smollm2.gguf"));
}

#[tokio::test]
async fn a_key_echoed_by_the_server_is_hidden() {
    let upstream =
        Upstream::start([error(401, &[], "auth_error", &format!("bad key {CANARY}, got Bearer {CANARY}"))]).await;
    let failure = Bench::new(&upstream.url, Key::Sent).ask().await.expect_err("refused");
    assert!(!format!("{failure:?}{}", failure.why.message()).contains("canary"), "{failure:?}");
    let upstream = Upstream::start([Says::content(&format!("your key is {CANARY} {{\"n\":1}}"))]).await;
    let reply = Bench::new(&upstream.url, Key::Sent).ask().await.unwrap();
    assert!(!format!("{reply:?}").contains("canary"), "{reply:?}");
}

#[tokio::test]
async fn nobody_listening_is_told_with_the_address_and_costs_nothing() {
    // Bound and dropped: nothing listens there now.
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let failure = Bench::new(&format!("http://me:pw@{address}"), Key::Sent).ask().await.expect_err("nobody there");
    assert!(matches!(failure.why, AskError::Unreachable { .. }), "{failure:?}");
    assert_eq!((failure.why.cause(), failure.why.blame()), (Cause::Infra, Blame::Endpoint));
    assert_eq!(failure.usage, Usage::NOTHING);
    let message = failure.why.message();
    assert!(
        message.contains("http://127.0.0.1") && message.contains("refused") && !message.contains("pw"),
        "{message}"
    );
}

#[tokio::test]
async fn a_silent_server_is_left_after_the_limit() {
    let upstream = Upstream::start([Says::Silence]).await;
    let mut bench = Bench::new(&upstream.url, Key::Sent);
    bench.ask.limit = Duration::from_millis(300);
    let failure = bench.ask().await.expect_err("silence");
    assert!(matches!(failure.why, AskError::TimedOut { .. }), "{failure:?}");
    assert_eq!(failure.usage, Usage::default(), "what a silent server did is unknown");
    upstream.abandoned().await;
}

#[tokio::test]
async fn a_body_without_end_is_left_at_the_cap() {
    let upstream = Upstream::start([Says::Flood]).await;
    let failure = Bench::new(&upstream.url, Key::Sent).ask().await.expect_err("flood");
    assert!(failure.why.message().contains("longer than 8 MiB"), "{}", failure.why.message());
    upstream.abandoned().await;
}

#[tokio::test]
async fn cancelling_drops_the_request() {
    let upstream = Upstream::start([Says::Silence]).await;
    let bench = Bench::new(&upstream.url, Key::Sent);
    let (answered, ()) = tokio::join!(bench.ask(), async {
        upstream.asked().await;
        bench.stop.cancel();
    });
    assert_eq!(answered.expect_err("cancelled").why, AskError::Cancelled);
    upstream.abandoned().await;
    // A call that is already cancelled sends nothing.
    assert_eq!(bench.ask().await.expect_err("cancelled").usage, Usage::NOTHING);
    assert_eq!(upstream.requests().len(), 1);
}

struct Bench {
    backends: Backends,
    tier: Tier,
    ask: Ask,
    stop: CancellationToken,
    steps: Arc<Mutex<Vec<Step>>>,
}

impl Bench {
    fn new(base_url: &str, key: Key) -> Self {
        let env: Env = match key {
            Key::Sent => [("GATE_KEY", CANARY)].into_iter().collect(),
            Key::Unset => [("GATE_KEY", "")].into_iter().collect(),
        };
        let backend = routing::Backend {
            name: "gate".into(),
            kind: BackendKind::Openai,
            tier: TierKind::Local,
            base_url: Some(base_url.into()),
            api_key_env: Some("GATE_KEY".into()),
            program: None,
            permission_mode: None,
            env_pass: vec![],
            max_turns: None,
            shares_quota_with: vec![],
            models: vec!["local/*".into()],
        };
        let model = Model {
            id: "local/m".into(),
            context: 8192,
            price_in: None,
            price_out: None,
            limit: None,
            edit_format: None,
            backend: None,
        };
        let limit = Duration::from_secs(60);
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let mut ask = Ask::new("rules", "x ".repeat(3000), schema, "/");
        ask.limit = limit;
        Self {
            backends: Backends::new(Shared::new(Launcher::this_program(), env, 1)),
            tier: Tier { name: ModelName("local/m".into()), backend, model, limit },
            ask,
            stop: CancellationToken::new(),
            steps: Arc::default(),
        }
    }

    async fn ask(&self) -> Answered {
        let backend = self.backends.of(&self.tier).unwrap();
        let steps = Arc::clone(&self.steps);
        backend.ask(&self.ask, &self.tier, &self.stop, &move |step| steps.lock().unwrap().push(step)).await
    }

    fn steps(&self) -> Vec<Step> {
        self.steps.lock().unwrap().clone()
    }
}
