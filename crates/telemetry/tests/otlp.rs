//! What a collector receives: a small HTTP server that decodes the official messages.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use serde_json::{Value, json};
use supervisor_engine::exchange::{ExchangeRecord, ExchangeTexts, TextId};
use supervisor_engine::services::{OpenRecord, Recorder};
use supervisor_engine::{Attempt, Entry};
use supervisor_mcp::Server;
use supervisor_settings::Sources;
use supervisor_skills::{App, RecorderLayer};
use supervisor_telemetry::Telemetry;
use supervisor_test_support::MODELS_TOML;
use supervisor_workspace::state::StateDir;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

/// What came in.
#[derive(Default)]
struct Received {
    spans: Vec<Span>,
    metrics: BTreeSet<String>,
}

type Collector = Arc<Mutex<Received>>;

async fn traces(State(collector): State<Collector>, body: Bytes) {
    let request = ExportTraceServiceRequest::decode(body).expect("the official message");
    let scopes = request
        .resource_spans
        .into_iter()
        .flat_map(|r| r.scope_spans);
    let mut received = collector.lock().await;
    received.spans.extend(scopes.flat_map(|scope| scope.spans));
}

async fn metrics(State(collector): State<Collector>, body: Bytes) {
    let request = ExportMetricsServiceRequest::decode(body).expect("the official message");
    let scopes = request
        .resource_metrics
        .into_iter()
        .flat_map(|r| r.scope_metrics);
    let mut received = collector.lock().await;
    let names = scopes.flat_map(|scope| scope.metrics).map(|m| m.name);
    received.metrics.extend(names);
}

/// A collector on a port of its own, and its address.
async fn collect() -> (Collector, String) {
    let collector = Collector::default();
    let router = Router::new()
        .route("/v1/traces", post(traces))
        .route("/v1/metrics", post(metrics))
        .with_state(Arc::clone(&collector));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move { axum::serve(listener, router).await });
    (collector, format!("http://{address}"))
}

async fn shut_down(telemetry: Telemetry) {
    let ended = tokio::task::spawn_blocking(move || telemetry.shutdown()).await;
    ended.expect("it ended");
}

const TEST: &str = "#[test]\nfn adds_two_numbers() {\n    assert_eq!(demo::add(1, 2), 3);\n}\n";
const WRONG: &str = "pub fn add(a: i32, b: i32) -> i32 {\n    a - b\n}\n";
const RIGHT: &str = "pub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n";

/// A Rust project with a failing test, and two models: the first is wrong, the second right.
fn scenario(dir: &TempDir) -> (PathBuf, PathBuf) {
    let (project, settings) = (dir.path().join("project"), dir.path().join("models.toml"));
    let manifest =
        "[package]\nname = \"demo\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n";
    for (path, text) in [
        ("Cargo.toml", manifest),
        ("src/lib.rs", ""),
        ("tests/add.rs", TEST),
    ] {
        let path = project.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, text).expect("written");
    }
    let answer = |model: &str, text: &str| {
        let edits = json!([{"path": "src/lib.rs", "action": "replace", "content": text}]);
        json!({"model": model, "answer": {"edits": edits}})
    };
    let answers = dir.path().join("answers.jsonl");
    let lines = format!("{}\n{}\n", answer("small", WRONG), answer("large", RIGHT));
    std::fs::write(&answers, lines).expect("written");
    let text = format!(
        "default_chain = [\"small\", \"large\"]\nverifier = \"none\"\nattempts_per_tier = 1\n\
         [skills.tdd]\nchain = [\"small\", \"large\"]\n\
         [backends.near]\nkind = \"replay\"\ntier = \"local\"\nfile = \"{0}\"\nmodels = [\"small\"]\n\
         [backends.far]\nkind = \"replay\"\ntier = \"subagent\"\nfile = \"{0}\"\nmodels = [\"large\"]\n",
        answers.display()
    );
    std::fs::write(&settings, text).expect("written");
    (project, settings)
}

/// One call over the transport of stdio; returns its result.
async fn call(server: Server, tool: &str, arguments: Value, meta: Value) -> Value {
    let (mut write, input) = tokio::io::duplex(1 << 20);
    let (output, read) = tokio::io::duplex(1 << 20);
    let session = supervisor_mcp::serve(server, input, output, CancellationToken::new());
    let session = tokio::spawn(session);
    let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let sent = write.write_all(format!("{message}\n").as_bytes()).await;
    sent.expect("sent");
    drop(write);
    let line = BufReader::new(read).lines().next_line().await;
    let reply: Value = serde_json::from_str(&line.expect("read").expect("a reply")).expect("JSON");
    session.await.expect("it ended");
    reply["result"]["structuredContent"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn call_over_stdio_is_one_connected_trace() {
    let (collector, endpoint) = collect().await;
    let telemetry = Telemetry::to_endpoint(&endpoint, &Handle::current()).expect("built");
    let dir = TempDir::new().expect("a directory");
    let (project, settings) = scenario(&dir);
    let state = StateDir::at(dir.path().join("state")).expect("absolute");
    let layer = telemetry.clone();
    let app = App::of_process(
        Sources::of_process(MODELS_TOML, Some(settings)),
        supervisor_test_support::prompts(),
    )
    .with_state_dir(state)
    .with_recorder_layer(RecorderLayer::new(move |inner| layer.wrap(inner)));
    let (trace, parent) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
    let arguments = json!({"project_root": project, "test_path": "tests/add.rs"});
    let meta = json!({"traceparent": format!("00-{trace}-{parent}-01")});
    let result = call(Server::new(app), "tdd_green", arguments, meta).await;
    assert_eq!(result["status"], "pass", "{result:#}");
    shut_down(telemetry).await;

    let received = collector.lock().await;
    let hex = |bytes: &[u8]| -> String { bytes.iter().map(|b| format!("{b:02x}")).collect() };
    let spans = &received.spans;
    let ids: HashSet<String> = spans.iter().map(|span| hex(&span.span_id)).collect();
    assert!(spans.iter().all(|span| hex(&span.trace_id) == trace));
    let roots: Vec<&Span> = spans
        .iter()
        .filter(|span| hex(&span.parent_span_id) == parent)
        .collect();
    let names = |spans: &[&Span]| spans.iter().map(|s| s.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&roots), ["tools/call tdd_green"]);
    for span in spans.iter().filter(|span| span.span_id != roots[0].span_id) {
        assert!(
            ids.contains(&hex(&span.parent_span_id)),
            "{} is not connected",
            span.name
        );
    }
    let child_of = |name: &str, parent: &str| {
        let of = spans.iter().find(|s| s.name == parent).expect(parent);
        let is_child = |s: &&Span| s.name == name && s.parent_span_id == of.span_id;
        assert!(spans.iter().any(|s| is_child(&s)), "{name} below {parent}");
    };
    for tier in ["small", "large"] {
        child_of(&format!("tier {tier}"), "tools/call tdd_green");
        child_of(&format!("chat {tier}"), &format!("tier {tier}"));
        child_of("test run", &format!("tier {tier}"));
        child_of("gate sealed", &format!("tier {tier}"));
    }
    let everything = format!("{spans:?}");
    let root = project.display().to_string();
    for private in [
        "adds_two_numbers",
        "a + b",
        "a - b",
        "add.rs",
        root.as_str(),
    ] {
        assert!(!everything.contains(private), "`{private}` is in a span");
    }
    for metric in [
        "supervisor.calls",
        "supervisor.attempts",
        "supervisor.cost",
        "supervisor.call.duration",
        "gen_ai.client.operation.duration",
    ] {
        assert!(
            received.metrics.contains(metric),
            "{metric}: {:?}",
            received.metrics
        );
    }
}

/// A log that keeps nothing.
struct NoLog;

impl Recorder for NoLog {
    fn session(&self, _: Option<&str>) -> Result<String, String> {
        Ok("s".into())
    }

    fn ready(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn begin(&self, _: &Entry) -> Result<Box<dyn OpenRecord>, String> {
        Ok(Box::new(NoRecord))
    }

    fn keep_exchange(&self, _: &ExchangeTexts) -> ExchangeRecord {
        unreachable!("nothing is asked here")
    }

    fn keep_diff(&self, _: &str) -> Option<TextId> {
        None
    }

    fn locate(&self, _: &TextId) -> Option<PathBuf> {
        None
    }
}

struct NoRecord;

impl OpenRecord for NoRecord {
    fn note(&self, _: &Attempt) {}

    fn close(self: Box<Self>, _: &Entry) -> Result<(), String> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_collector_delays_nothing() {
    // It accepts connections and never answers: a call that waited would take the exporter's ten seconds.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = format!("http://{}", listener.local_addr().expect("bound"));
    let telemetry = Telemetry::to_endpoint(&endpoint, &Handle::current()).expect("built");
    let recorder = telemetry.wrap(Arc::new(NoLog));
    let entry: Entry = serde_json::from_value(json!({
        "session_id": "s", "call": "c", "timestamp": "2026-01-01T00:00:00Z", "skill": "review", "tool": "review", "final_status": "pass"
    }))
    .expect("an entry");
    let began = Instant::now();
    for _ in 0..20_000 {
        let open = recorder.begin(&entry).expect("begun");
        open.close(&entry).expect("closed");
    }
    shut_down(telemetry).await;
    assert!(
        began.elapsed() < Duration::from_secs(9),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_one_request_share_a_trace() {
    use supervisor_engine::trace::RequestTrace;
    let (collector, endpoint) = collect().await;
    let telemetry = Telemetry::to_endpoint(&endpoint, &Handle::current()).expect("built");
    let recorder = telemetry.wrap(Arc::new(NoLog));
    let entry = |call: &str| -> Entry {
        let entry = json!({"session_id": "s", "call": call, "timestamp": "", "skill": "tdd", "tool": "tdd_red", "final_status": "pass"});
        serde_json::from_value(entry).expect("an entry")
    };
    let two_calls = async {
        for call in ["a", "b"] {
            let open = recorder.begin(&entry(call)).expect("begun");
            open.close(&entry(call)).expect("closed");
        }
    };
    RequestTrace::default().scope(two_calls).await;
    let other = recorder.begin(&entry("c")).expect("begun");
    other.close(&entry("c")).expect("closed");
    shut_down(telemetry).await;
    let received = collector.lock().await;
    let traces: Vec<_> = received.spans.iter().map(|span| &span.trace_id).collect();
    assert_eq!(traces.len(), 3);
    assert_eq!(traces[0], traces[1]);
    assert_ne!(traces[0], traces[2], "another request");
}
