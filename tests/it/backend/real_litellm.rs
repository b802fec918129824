//! A real LiteLLM gateway in front of scripted servers: what the recorded answers of `openai` were taken from.
//! Needs `litellm` (or `SUPERVISOR_TEST_LITELLM`, a path); `pip install 'litellm[proxy]' prisma` brings it.

use std::fmt::Write as _;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use supervisor_models::{
    Ask, AskError, AskResult, Backends, Env, FailureCause, SharedResources, Usage,
};
use supervisor_process::Launcher;
use supervisor_settings::BackendKind;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_util::sync::CancellationToken;

use supervisor_test_support::loopback::ClosedPort;
use supervisor_test_support::tiers::tier;
use supervisor_test_support::upstream::{Request, Says, Upstream, completion};

pub(crate) const KEY: &str = "sk-canary-0123456789abcdef";

/// The gateway starts slowly, so one test asks it everything.
#[tokio::test]
#[ignore = "needs litellm"]
async fn every_answer_of_a_real_gateway_is_understood() {
    let upstream = Upstream::answering(says).await;
    let gateway = Gateway::start(&upstream.url).await;

    let reply = gateway.ask("local/good").await.unwrap();
    assert_eq!(
        (reply.body, reply.model_answered.as_str()),
        (json!({"n": 1}), "local/good")
    );
    assert_eq!(
        reply.usage,
        Usage {
            tokens_in: Some(50),
            tokens_out: Some(7),
            cost_usd: Some(0.0)
        }
    );
    assert!(reply.notes.is_empty(), "{:?}", reply.notes);
    let sent = of_model(&upstream, "good").remove(0);
    assert_eq!(
        sent.body["response_format"]["json_schema"]["schema"]["required"],
        json!(["n"])
    );
    assert!(
        !format!("{sent:?}").contains("canary"),
        "our key is for the gateway alone"
    );

    let priced = gateway.ask("priced").await.unwrap();
    assert!(priced.usage.cost_usd.unwrap() > 0.0, "{:?}", priced.usage);
    assert_eq!(
        gateway.ask("local/thinks").await.unwrap().body,
        json!({"n": 1})
    );
    assert_eq!(
        gateway.ask("local/fenced").await.unwrap().body,
        json!({"n": 1})
    );

    for (model, cause, names) in [
        ("unknown", FailureCause::Setup, "models.\"unknown\".id"),
        ("local/s400", FailureCause::Incapable, "local/s400"),
        ("local/long", FailureCause::Incapable, "context"),
        (
            "local/tools",
            FailureCause::Incapable,
            "does not support tools",
        ),
        ("local/s401", FailureCause::Setup, "litellm_params.api_key"),
        (
            "local/s404",
            FailureCause::Setup,
            "models.\"local/s404\".id",
        ),
        ("local/s422", FailureCause::Incapable, "local/s422"),
        ("local/s429", FailureCause::Quota, "rate"),
        ("local/s500", FailureCause::Infra, "500"),
        ("local/s502", FailureCause::Infra, "502"),
        ("local/s503", FailureCause::Infra, "loaded"),
        ("refused", FailureCause::Infra, "Connection error"),
        ("local/closed", FailureCause::Infra, "Connection error"),
        ("local/truncated", FailureCause::Infra, "gate"),
        ("local/malformed", FailureCause::Infra, "gate"),
        ("local/empty", FailureCause::Infra, "gate"),
        ("local/html", FailureCause::Infra, "gate"),
        ("local/none", FailureCause::Infra, "no choice"),
        ("local/null", FailureCause::Infra, "empty"),
        ("local/cut", FailureCause::Incapable, "length"),
    ] {
        let failure = gateway.ask(model).await.expect_err(model);
        let message = failure.why.message();
        assert_eq!(failure.why.cause(), cause, "{model}: {failure:?}");
        assert!(
            message.to_lowercase().contains(&names.to_lowercase()),
            "{model}: {message}"
        );
        assert!(!message.contains("canary"), "{model}: {message}");
        if let Some(id) = model.strip_prefix("local/") {
            assert_eq!(
                of_model(&upstream, id).len(),
                1,
                "{model}: retried behind our back"
            );
        }
        if model == "local/s429" {
            assert_eq!(failure.why.retry_after(), Some(Duration::from_secs(7)));
        }
    }

    // It would answer from `local/good` if we let it.
    let failure = gateway
        .ask("falls-back")
        .await
        .expect_err("the gateway's fallback");
    assert_eq!(failure.why.cause(), FailureCause::Infra, "{failure:?}");

    // It gives up a little before we do, and stops the model.
    let mut slow = gateway.question("local/silent");
    slow.1.limit = Duration::from_secs(4);
    let failure = gateway.put(&slow.0, &slow.1).await.expect_err("silence");
    assert!(
        matches!(failure.why, AskError::TimedOut { .. }),
        "{failure:?}"
    );
    upstream.abandoned().await;

    for (key, cause, names) in [
        (
            Some("sk-wrong-0123456789"),
            FailureCause::Setup,
            "correct $GATE_KEY",
        ),
        (None, FailureCause::Setup, "set $GATE_KEY"),
    ] {
        let failure = gateway
            .with_key(key)
            .ask("local/good")
            .await
            .expect_err("the key");
        assert_eq!(failure.why.cause(), cause, "{failure:?}");
        assert!(
            failure.why.message().contains(names),
            "{}",
            failure.why.message()
        );
        assert!(!format!("{failure:?}").contains("sk-wrong"), "{failure:?}");
    }
}

/// What the server behind the gateway does, by the model's name.
fn says(request: &Request) -> Says {
    let error = |status, message: &str| {
        Says::json(
            status,
            &[],
            &json!({"error": {"message": message, "type": "x", "code": status}}),
        )
    };
    let ok = |change: &dyn Fn(&mut Value)| {
        let mut body = completion(r#"{"n":1}"#);
        body["usage"] = json!({"prompt_tokens": 50, "completion_tokens": 7, "total_tokens": 57});
        change(&mut body);
        Says::json(200, &[], &body)
    };
    let Some(model) = request.body["model"].as_str() else {
        return Says::json(200, &[], &json!({"object": "list", "data": []}));
    };
    match model {
        "thinks" => ok(&|b| b["choices"][0]["message"]["content"] = json!("<think>maybe {\"n\":0}</think>{\"n\":1}")),
        "fenced" => ok(&|b| b["choices"][0]["message"]["content"] = json!("Here:\n```json\n{\"n\":1}\n```")),
        "s400" => error(400, "no thanks"),
        "long" => error(400, "This model's maximum context length is 4096 tokens. However, you requested 9000 tokens"),
        "tools" => error(400, "registry/x does not support tools"),
        "s401" => error(401, "bad upstream key"),
        "s404" => error(404, "no such thing"),
        "s422" => error(422, "unprocessable"),
        "s429" => Says::json(429, &[("retry-after", "7")], &json!({"error": {"message": "slow down"}})),
        "s500" | "falls-back" => error(500, "boom"),
        "s502" => error(502, "bad gateway"),
        "s503" => error(503, "Loading model"),
        "closed" => Says::Raw(vec![]),
        "truncated" => Says::Raw(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n{\"choices\"".to_vec(),
        ),
        "malformed" => Says::text(200, &[("content-type", "application/json")], "{\"choices\": ["),
        "empty" => Says::text(200, &[("content-type", "application/json")], ""),
        "html" => Says::text(200, &[("content-type", "text/html")], "<html></html>"),
        "none" => ok(&|b| b["choices"] = json!([])),
        "null" => ok(&|b| b["choices"][0]["message"]["content"] = Value::Null),
        "cut" => ok(&|b| b["choices"][0]["finish_reason"] = json!("length")),
        "silent" => Says::Silence,
        _ => ok(&|_| ()),
    }
}

const MODELS: &[&str] = &[
    "small",
    "large",
    "good",
    "thinks",
    "fenced",
    "s400",
    "long",
    "tools",
    "s401",
    "s404",
    "s422",
    "s429",
    "s500",
    "s502",
    "s503",
    "closed",
    "truncated",
    "malformed",
    "empty",
    "html",
    "none",
    "null",
    "cut",
    "silent",
];

pub(crate) fn of_model(upstream: &Upstream, id: &str) -> Vec<Request> {
    upstream
        .requests()
        .into_iter()
        .filter(|request| request.body["model"] == id)
        .collect()
}

pub(crate) struct Gateway {
    program: Option<Child>,
    _dir: Option<tempfile::TempDir>,
    /// Where its model `refused` is said to be.
    _closed: Option<ClosedPort>,
    url: String,
    key: Option<String>,
}

impl Gateway {
    pub(crate) async fn start(upstream: &str) -> Self {
        let litellm = std::env::var("SUPERVISOR_TEST_LITELLM").unwrap_or_else(|_| "litellm".into());
        let dir = tempfile::tempdir().unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let closed = ClosedPort::hold();
        fs::write(
            dir.path().join("config.yaml"),
            config(upstream, &closed.url),
        )
        .unwrap();
        let log = fs::File::create(dir.path().join("log")).unwrap();
        let program = Command::new(&litellm)
            .args([
                "--host",
                "127.0.0.1",
                "--port",
                &port.to_string(),
                "--config",
                "config.yaml",
            ])
            .current_dir(dir.path())
            .env_clear()
            .envs([
                ("PATH", std::env::var("PATH").unwrap()),
                ("HOME", dir.path().display().to_string()),
            ])
            .envs([
                ("LITELLM_LOCAL_MODEL_COST_MAP", "True"),
                ("LITELLM_MODE", "PRODUCTION"),
                ("NO_PROXY", "127.0.0.1"),
            ])
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|e| panic!("`{litellm}` cannot be started: {e}"));
        let (url, key) = (format!("http://127.0.0.1:{port}"), Some(KEY.into()));
        let mut gateway = Self {
            program: Some(program),
            url,
            key,
            _dir: None,
            _closed: Some(closed),
        };
        let deadline = Instant::now() + Duration::from_secs(240);
        while !is_ready(port).await {
            let ended = gateway.program.as_mut().unwrap().try_wait().unwrap();
            let log = fs::read_to_string(dir.path().join("log")).unwrap_or_default();
            assert!(
                ended.is_none() && Instant::now() < deadline,
                "the gateway does not start: {log}"
            );
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        gateway._dir = Some(dir);
        gateway
    }

    pub(crate) fn with_key(&self, key: Option<&str>) -> Self {
        Self {
            program: None,
            _dir: None,
            _closed: None,
            url: self.url.clone(),
            key: key.map(Into::into),
        }
    }

    pub(crate) fn question(&self, model: &str) -> (supervisor_settings::Tier, Ask) {
        let mut tier = tier("gate", BackendKind::Openai, model);
        tier.backend.base_url = Some(self.url.clone());
        tier.backend.api_key_env = Some("GATE_KEY".into());
        let schema =
            json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let mut ask = Ask::new("rules", "one, please", schema, "/");
        ask.limit = Duration::from_secs(120);
        (tier, ask)
    }

    async fn ask(&self, model: &str) -> AskResult {
        let (tier, ask) = self.question(model);
        self.put(&tier, &ask).await
    }

    pub(crate) async fn put(&self, tier: &supervisor_settings::Tier, ask: &Ask) -> AskResult {
        let env: Env = self.key.iter().map(|key| ("GATE_KEY", key)).collect();
        let backends = Backends::new(SharedResources::new(Launcher::this_program(), env, 1));
        backends
            .of(tier)
            .unwrap()
            .ask(ask, tier, &CancellationToken::new(), &|_| ())
            .await
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        if let Some(program) = &mut self.program {
            let _ = program.kill();
            let _ = program.wait();
        }
    }
}

/// Its own retries are left at their default, which is two; a fallback is configured. Both must not happen.
fn config(upstream: &str, closed: &str) -> String {
    let mut out = String::from("model_list:\n");
    let mut model = |name: &str, id: &str, base: &str, more: &str| {
        let _ = write!(
            out,
            "  - model_name: \"{name}\"\n    litellm_params:\n      model: \"openai/{id}\"\n      api_base: \"{base}/v1\"\n      api_key: none\n{more}"
        );
    };
    for id in MODELS {
        model(&format!("local/{id}"), id, upstream, "");
    }
    model("refused", "refused", closed, "");
    model("falls-back", "falls-back", upstream, "");
    model(
        "priced",
        "priced",
        upstream,
        "      input_cost_per_token: 0.000001\n      output_cost_per_token: 0.000002\n",
    );
    let _ = write!(
        out,
        "litellm_settings:\n  telemetry: false\n  fallbacks: [{{\"falls-back\": [\"local/good\"]}}]\n\
         general_settings:\n  master_key: {KEY}\n"
    );
    out
}

async fn is_ready(port: u16) -> bool {
    let Ok(mut stream) = tokio::net::TcpStream::connect(("127.0.0.1", port)).await else {
        return false;
    };
    let _ = stream
        .write_all(b"GET /health/readiness HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        .await;
    let mut answer = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut answer)).await;
    read.is_ok() && answer.starts_with(b"HTTP/1.1 200")
}
