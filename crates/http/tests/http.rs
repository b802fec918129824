//! What callers over HTTP get, with real requests on loopback: the protocol, who is refused, and what one caller sees of
//! another.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use reqwest::{Client, Method, Response, StatusCode};
use serde_json::{Value, json};
use supervisor_http::{HttpConfig, serve};
use supervisor_mcp::Server;
use supervisor_settings::{HttpSettings, Sources};
use supervisor_skills::App;
use supervisor_workspace::state::StateDir;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio_util::sync::CancellationToken;

const DEFAULTS: &str = include_str!("../../../models.toml");
const ISSUER: &str = "https://login.example.com";
const AUDIENCE: &str = "https://supervisor.example.com/mcp";

/// Made for these tests; PKCS #8, as base64.
const KEY: &str = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg5raUmEsS74L0nhdaXckscmYYWTXsCNdOf6NGr7i6f4WhRANCAARZOcA2L2FltX+OpPCfrHJv6OcZkNThN9JtLJupi2pUsKcSE3cYKiEfXbGU7AHNyDszcfmUdVILwHfpWU6CvVkl";
const OTHER_KEY: &str = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgGC3K+sd7Y8tIe5Air0FXBHANDvC/QSuZj2h3T6yxbHShRANCAARaUiyF6g/gTmSvFf2f253qh7AtJuCkgkDUCoAc+6a57NaHlHrzEbEF8w08+HHIpoRR4vBDTuq2/INc2h9x+YqQ";
const KEY_X: &str = "WTnANi9hZbV_jqTwn6xyb-jnGZDU4TfSbSybqYtqVLA";
const KEY_Y: &str = "pxITdxgqIR9dsZTsAc3IOzNx-ZR1UgvAd-lZToK9WSU";

/// A server on a port of its own, until it is dropped.
struct Running {
    url: String,
    dir: TempDir,
    stop: CancellationToken,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn app(dir: &TempDir) -> App {
    let state = StateDir::at(dir.path().join("state")).expect("absolute");
    App::of_process(Sources::built_in(DEFAULTS), &[]).with_state_dir(state)
}

impl Running {
    async fn start(change: impl FnOnce(&TempDir, &mut HttpSettings)) -> Self {
        let dir = TempDir::new().expect("a directory");
        let loaded = supervisor_settings::load(&Sources::built_in(DEFAULTS));
        let mut settings = loaded.expect("valid").routing.http;
        change(&dir, &mut settings);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a port");
        let address = listener.local_addr().expect("bound");
        let config = HttpConfig::new(&settings, address).expect("a valid configuration");
        let state = dir.path().join("state");
        let make = move |caller: &str| {
            let app = App::of_process(Sources::built_in(DEFAULTS), &[])
                .with_state_dir(StateDir::at(state.clone()).expect("absolute"));
            Server::new(match caller {
                "" => app,
                caller => app.for_caller(caller.to_owned()),
            })
        };
        let stop = CancellationToken::new();
        tokio::spawn(serve(listener, config, Box::new(make), stop.clone()));
        let url = format!("http://{address}");
        Self { url, dir, stop }
    }

    /// One that wants tokens.
    async fn with_tokens() -> Self {
        Self::start(|dir, settings| {
            let key = json!({"kty": "EC", "crv": "P-256", "kid": "k1", "use": "sig", "alg": "ES256", "x": KEY_X, "y": KEY_Y});
            let path = dir.path().join("jwks.json");
            std::fs::write(&path, json!({"keys": [key]}).to_string()).expect("written");
            let work = dir.path().join("work");
            std::fs::create_dir(&work).expect("made");
            settings.roots = vec![work.display().to_string()];
            settings.jwks = Some(path.display().to_string());
            settings.issuer = Some(ISSUER.to_owned());
            settings.resource = Some(AUDIENCE.to_owned());
        })
        .await
    }

    fn request(&self, method: Method) -> reqwest::RequestBuilder {
        client()
            .request(method, format!("{}/mcp", self.url))
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .timeout(Duration::from_secs(60))
    }

    async fn post(&self, token: Option<&str>, session: Option<&str>, message: &Value) -> Response {
        let mut request = self.request(Method::POST).body(message.to_string());
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        request.send().await.expect("an answer")
    }

    /// The id of a new session.
    async fn initialize(&self, token: Option<&str>) -> String {
        let response = self.post(token, None, &initialize()).await;
        assert_eq!(response.status(), StatusCode::OK);
        let session = response.headers()["mcp-session-id"].to_str();
        let session = session.expect("a text").to_owned();
        let reply = reply_of(response, 0).await;
        assert_eq!(reply["result"]["serverInfo"]["name"], "supervisor");
        let begun = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let response = self.post(token, Some(&session), &begun).await;
        assert_eq!(response.status(), StatusCode::ACCEPTED);
        session
    }

    async fn call(
        &self,
        token: Option<&str>,
        session: &str,
        tool: &str,
        arguments: Value,
    ) -> Value {
        let request = call(7, tool, &arguments);
        let response = self.post(token, Some(session), &request).await;
        assert_eq!(response.status(), StatusCode::OK);
        reply_of(response, 7).await["result"]["structuredContent"].clone()
    }
}

fn client() -> &'static Client {
    supervisor_models::client_for_address("http://127.0.0.1").expect("a client")
}

fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}})
}

fn call(id: u64, tool: &str, arguments: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

/// The reply with this id, from a JSON body or a stream of events.
async fn reply_of(response: Response, id: u64) -> Value {
    let text = response.text().await.expect("a body");
    let mut messages = text
        .lines()
        .map(|line| line.strip_prefix("data:").unwrap_or(line).trim())
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let reply = messages.find(|message| message["id"] == id);
    reply.unwrap_or_else(|| panic!("no reply {id} in {text}"))
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.expect("after 1970").as_secs()
}

/// What an accepted token says.
fn claims(subject: &str) -> Value {
    json!({"sub": subject, "iss": ISSUER, "aud": AUDIENCE, "exp": now() + 600, "nbf": now() - 5})
}

fn header(kid: Option<&str>) -> Header {
    Header {
        kid: kid.map(str::to_owned),
        ..Header::new(Algorithm::ES256)
    }
}

fn sign(header: &Header, claims: &Value, key: &str) -> String {
    let key = STANDARD.decode(key).expect("base64");
    encode(header, claims, &EncodingKey::from_ec_der(&key)).expect("signed")
}

fn token(subject: &str) -> String {
    sign(&header(Some("k1")), &claims(subject), KEY)
}

fn changed(change: impl FnOnce(&mut Value)) -> String {
    let mut claims = claims("ada");
    change(&mut claims);
    sign(&header(Some("k1")), &claims, KEY)
}

#[tokio::test(flavor = "multi_thread")]
async fn http_answers_as_stdio_does() {
    let running = Running::start(|_, _| {}).await;
    let dir = TempDir::new().expect("a directory");
    let session = running.initialize(None).await;
    let requests = [
        ("tools/list", json!({})),
        ("resources/templates/list", json!({})),
        ("prompts/list", json!({})),
        (
            "tools/call",
            json!({"name": "session_log", "arguments": {"read": true, "nonsense": 1}}),
        ),
        (
            "tools/call",
            json!({"name": "review", "arguments": {"project_root": "/x", "max_attempts": "many"}}),
        ),
        ("tools/call", json!({"name": "reviwe"})),
        (
            "tools/call",
            json!({"name": "brain_query", "arguments": {"question": "what?", "project_root": 7}}),
        ),
        ("resources/read", json!({"uri": "supervisor://nothing"})),
        ("no/such/method", json!({})),
    ];
    let over_stdio = stdio(&dir, &requests).await;
    for (id, ((method, params), expected)) in (10..).zip(requests.iter().zip(over_stdio)) {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let response = running.post(None, Some(&session), &message).await;
        let reply = reply_of(response, id).await;
        for part in ["result", "error"] {
            assert_eq!(reply[part], expected[part], "{method} {params}");
        }
    }
    let ended = running
        .request(Method::DELETE)
        .header("mcp-session-id", &session);
    assert!(ended.send().await.expect("an answer").status().is_success());
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let response = running.post(None, Some(&session), &list).await;
    assert_eq!(
        response.status(),
        StatusCode::NOT_FOUND,
        "the session is over"
    );
}

/// The replies to the same requests over a pair of pipes.
async fn stdio(dir: &TempDir, requests: &[(&str, Value)]) -> Vec<Value> {
    let (mut write, input) = tokio::io::duplex(1 << 20);
    let (output, read) = tokio::io::duplex(1 << 20);
    let session = supervisor_mcp::serve(
        Server::new(app(dir)),
        input,
        output,
        CancellationToken::new(),
    );
    let session = tokio::spawn(session);
    let mut lines = BufReader::new(read).lines();
    let mut replies = Vec::new();
    let begun = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    for message in [initialize(), begun] {
        write
            .write_all(format!("{message}\n").as_bytes())
            .await
            .expect("sent");
    }
    lines
        .next_line()
        .await
        .expect("read")
        .expect("the handshake");
    for (id, (method, params)) in (10..).zip(requests) {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        write
            .write_all(format!("{message}\n").as_bytes())
            .await
            .expect("sent");
        let line = lines.next_line().await.expect("read").expect("a reply");
        replies.push(serde_json::from_str(&line).expect("JSON"));
    }
    drop(write);
    session.await.expect("it ended");
    replies
}

#[tokio::test(flavor = "multi_thread")]
async fn newest_protocol_needs_no_session() {
    let running = Running::start(|_, _| {}).await;
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    let message =
        json!({"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": {"_meta": meta}});
    let request = running
        .request(Method::POST)
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/list");
    let response = request.body(message.to_string()).send().await;
    let response = response.expect("an answer");
    assert_eq!(response.status(), StatusCode::OK);
    assert!(!response.headers().contains_key("mcp-session-id"));
    let reply = reply_of(response, 3).await;
    assert!(
        reply["result"]["tools"]
            .as_array()
            .is_some_and(|tools| tools.len() > 3)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn token_of_the_issuer_is_accepted() {
    let running = Running::with_tokens().await;
    let session = running.initialize(Some(&token("ada"))).await;
    let result = running
        .call(Some(&token("ada")), &session, "tier", json!({}))
        .await;
    assert_eq!(result["status"], "pass", "{result}");
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_tokens_are_refused() {
    let running = Running::with_tokens().await;
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let unsigned = format!(
        "{}.{}.",
        part(&json!({"alg": "none", "kid": "k1"})),
        part(&claims("ada"))
    );
    // The public key as a shared secret: a check that trusts the token's own algorithm accepts it.
    let secret = EncodingKey::from_secret(KEY_X.as_bytes());
    let shared = Header {
        kid: Some("k1".into()),
        ..Header::new(Algorithm::HS256)
    };
    let confused = encode(&shared, &claims("ada"), &secret).expect("signed");
    let rsa = format!(
        "{}.{}.AAAA",
        part(&json!({"alg": "RS256", "kid": "k1"})),
        part(&claims("ada"))
    );
    let valid = token("ada");
    let mut tampered: Vec<&str> = valid.split('.').collect();
    let body = part(&claims("root"));
    tampered[1] = &body;
    let rows = [
        (
            "another key",
            sign(&header(Some("k1")), &claims("ada"), OTHER_KEY),
        ),
        ("expired", changed(|c| c["exp"] = json!(now() - 3600))),
        (
            "expired, as a text",
            changed(|c| c["exp"] = json!((now() + 600).to_string())),
        ),
        ("without an end", changed(|c| c["exp"] = Value::Null)),
        ("not yet valid", changed(|c| c["nbf"] = json!(now() + 3600))),
        (
            "not yet valid, as a text",
            changed(|c| c["nbf"] = json!("later")),
        ),
        (
            "another audience",
            changed(|c| c["aud"] = json!("https://other.example.com")),
        ),
        ("without audience", changed(|c| c["aud"] = Value::Null)),
        (
            "another issuer",
            changed(|c| c["iss"] = json!("https://evil.example.com")),
        ),
        ("without subject", changed(|c| c["sub"] = Value::Null)),
        ("an empty subject", changed(|c| c["sub"] = json!(""))),
        ("no key id", sign(&header(None), &claims("ada"), KEY)),
        (
            "an unknown key id",
            sign(&header(Some("k2")), &claims("ada"), KEY),
        ),
        ("alg none", unsigned),
        ("a shared secret", confused),
        ("an algorithm of other keys", rsa),
        ("another body", tampered.join(".")),
        ("malformed", String::from("a.b.c")),
        ("empty", String::new()),
        ("too long", "a".repeat(20_000)),
    ];
    for (name, token) in rows {
        let response = running.post(Some(&token), None, &initialize()).await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{name}");
        let challenge = response.headers()["www-authenticate"]
            .to_str()
            .expect("a text");
        assert!(
            challenge.contains("resource_metadata=") && challenge.contains("invalid_token"),
            "{name}: {challenge}"
        );
        let text = response.text().await.expect("a body");
        assert!(token.is_empty() || !text.contains(&token), "{name}: {text}");
    }
    let missing = running.post(None, None, &initialize()).await;
    assert_eq!(missing.status(), StatusCode::UNAUTHORIZED);
    for authorization in ["Basic YTpi", "Bearer", &format!("Token {valid}")] {
        let request = running
            .request(Method::POST)
            .header("authorization", authorization);
        let response = request.body(initialize().to_string()).send().await;
        assert_eq!(
            response.expect("an answer").status(),
            StatusCode::UNAUTHORIZED,
            "{authorization}"
        );
    }
    let twice = running.request(Method::POST);
    let twice = twice
        .header("authorization", format!("Bearer {valid}"))
        .header("authorization", "Bearer x");
    let response = twice.body(initialize().to_string()).send().await;
    assert_eq!(
        response.expect("an answer").status(),
        StatusCode::UNAUTHORIZED,
        "two of them"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_names_the_issuer() {
    let running = Running::with_tokens().await;
    for path in [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
    ] {
        let response = client().get(format!("{}{path}", running.url)).send().await;
        let text = response.expect("an answer").text().await.expect("a body");
        let metadata: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(metadata["resource"], AUDIENCE);
        assert_eq!(metadata["authorization_servers"], json!([ISSUER]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_host_and_origin_are_refused() {
    let open =
        Running::start(|_, settings| settings.origins = vec!["https://app.example.com:443".into()])
            .await;
    let guarded = Running::with_tokens().await;
    let ada = format!("Bearer {}", token("ada"));
    for (header, value, status) in [
        ("host", "evil.example.com", StatusCode::FORBIDDEN),
        ("origin", "https://evil.example.com", StatusCode::FORBIDDEN),
        ("origin", "null", StatusCode::FORBIDDEN),
        ("x-plain", "nothing", StatusCode::OK),
    ] {
        for running in [&open, &guarded] {
            let request = running
                .request(Method::POST)
                .header("authorization", &ada)
                .header(header, value);
            let response = request.body(initialize().to_string()).send().await;
            assert_eq!(
                response.expect("an answer").status(),
                status,
                "{header}: {value}"
            );
        }
    }
    let request = open
        .request(Method::POST)
        .header("origin", "https://app.example.com");
    let response = request.body(initialize().to_string()).send().await;
    assert_eq!(
        response.expect("an answer").status(),
        StatusCode::OK,
        "a known origin"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn project_outside_the_roots_is_refused() {
    let running = Running::with_tokens().await;
    let ada = token("ada");
    let session = running.initialize(Some(&ada)).await;
    let secret = running.dir.path().join("secret");
    std::fs::create_dir(&secret).expect("made");
    std::os::unix::fs::symlink(&secret, running.dir.path().join("work/link")).expect("made");
    let dry = |root: std::path::PathBuf| json!({"project_root": root, "dry_run": true});
    for outside in [
        secret.clone(),
        running.dir.path().join("work/link"),
        running.dir.path().join("work/../secret"),
    ] {
        let result = running
            .call(Some(&ada), &session, "review", dry(outside.clone()))
            .await;
        let message = result["message"].as_str().expect("a message");
        assert!(
            result["status"] == "error" && message.contains("http.roots"),
            "{outside:?}: {result}"
        );
    }
    let uri = format!(
        "supervisor://checkpoints/t/CHECKPOINT-001?project_root={}",
        secret.display()
    );
    let read =
        json!({"jsonrpc": "2.0", "id": 9, "method": "resources/read", "params": {"uri": uri}});
    let reply = reply_of(running.post(Some(&ada), Some(&session), &read).await, 9).await;
    let message = reply["error"]["message"].as_str().expect("an error");
    assert!(
        message.contains("does not work on that project"),
        "{message}"
    );
    let result = running
        .call(
            Some(&ada),
            &session,
            "review",
            dry(running.dir.path().join("work")),
        )
        .await;
    assert!(
        !result["message"]
            .as_str()
            .expect("a message")
            .contains("http.roots"),
        "{result}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_do_not_reach_each_others_sessions() {
    let running = Running::with_tokens().await;
    let (ada, bob) = (token("ada"), token("bob"));
    let session = running.initialize(Some(&ada)).await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let stolen = running.post(Some(&bob), Some(&session), &list).await;
    assert_eq!(stolen.status(), StatusCode::NOT_FOUND);
    let entry = json!({"operation": "append", "session_id": "shared-name", "skill": "review", "final_status": "pass", "entry": {"message": "of ada"}});
    let written = running
        .call(Some(&ada), &session, "session_log", entry)
        .await;
    assert_eq!(written["status"], "pass", "{written}");
    let read = json!({"operation": "read", "session_id": "shared-name"});
    let own = running
        .call(Some(&ada), &session, "session_log", read.clone())
        .await;
    assert!(own.to_string().contains("of ada"), "{own}");
    let of_bob = running.initialize(Some(&bob)).await;
    let seen = running.call(Some(&bob), &of_bob, "session_log", read).await;
    assert!(!seen.to_string().contains("of ada"), "{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_beyond_the_limit_wait() {
    let running = Running::start(|_, settings| settings.requests_per_minute = 3).await;
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(running.post(None, None, &initialize()).await);
    }
    let last = statuses.pop().expect("four");
    assert!(
        statuses
            .iter()
            .all(|response| response.status() == StatusCode::OK)
    );
    assert_eq!(last.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(last.headers().contains_key("retry-after"));
}

#[tokio::test(flavor = "multi_thread")]
async fn large_requests_are_refused() {
    let running = Running::start(|_, _| {}).await;
    let huge =
        json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": "y".repeat(5 << 20)}});
    let response = running.post(None, None, &huge).await;
    assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
}

#[test]
fn public_address_needs_roots_issuer_and_tls() {
    let loaded = supervisor_settings::load(&Sources::built_in(DEFAULTS)).expect("valid");
    let mut settings = loaded.routing.http;
    let public = "0.0.0.0:3200".parse().expect("an address");
    let check = |settings: &HttpSettings| {
        HttpConfig::new(settings, public).map_err(|error| error.to_string())
    };
    let says = |settings: &HttpSettings, words: &str| {
        let error = check(settings).expect_err(words);
        assert!(error.contains(words), "{error}");
    };
    says(&settings, "`http.roots` is required");
    settings.roots = vec!["/tmp".into()];
    says(&settings, "`http.issuer` is required");
    settings.issuer = Some(ISSUER.into());
    says(&settings, "`http.resource` is required");
    settings.resource = Some("http://supervisor.example.com".into());
    says(&settings, "not an `https` address");
    settings.resource = Some(AUDIENCE.into());
    says(&settings, "`http.jwks` is required");
    settings.jwks = Some("http://login.example.com/keys".into());
    says(&settings, "`http.jwks` takes an `https` address");
    settings.jwks = Some("https://login.example.com/keys".into());
    assert!(check(&settings).expect("complete").needs_token());
    let dir = TempDir::new().expect("a directory");
    settings.roots = vec![dir.path().join("no").display().to_string()];
    says(&settings, "not a directory");
}
