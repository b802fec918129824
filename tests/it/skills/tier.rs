//! `tier` says which models can be reached now, asks none of them, and stays small.

use std::process::{Command, Stdio};

use serde_json::{Value, json};
use supervisor_engine::result::{CallResult, Status};
use supervisor_skills::App;
use supervisor_skills::tier::{TierParams, answer};
use tokio_util::sync::CancellationToken;

use crate::support::machine::{CANARY, Machine, cloud, gateway, swap};
use crate::support::mcp_session::{Session, result_of};
use supervisor_test_support::fake_claude::FakeClaude;
use supervisor_test_support::loopback::{ClosedPort, Do, Server};

async fn tier(app: &App) -> CallResult {
    answer(
        app,
        &TierParams { refresh: false },
        &CancellationToken::new(),
    )
    .await
}

async fn refreshed(app: &App) -> CallResult {
    answer(
        app,
        &TierParams { refresh: true },
        &CancellationToken::new(),
    )
    .await
}

fn app(machine: &Machine) -> App {
    App::new(
        machine.sources(),
        supervisor::built_in::PROMPTS,
        machine.look(),
    )
}

/// The result with everything masked that differs from run to run.
fn masked(machine: &Machine, claude: Option<&FakeClaude>, result: &CallResult) -> String {
    let mut value = serde_json::to_value(result).unwrap();
    value["duration_ms"] = json!("N");
    for endpoint in value["details"]["endpoints"].as_array_mut().unwrap() {
        if endpoint["latency_ms"].is_u64() {
            endpoint["latency_ms"] = json!("N");
        }
    }
    machine.masked(&serde_json::to_string_pretty(&value).unwrap(), claude)
}

#[tokio::test]
async fn with_everything_available_every_chain_is_complete() {
    let (cloud, gateway, swap, claude) = (cloud(), gateway(), swap(), FakeClaude::logged_in());
    let machine = Machine::new(&cloud.url, &gateway.url, &swap.url).with(&claude);
    let result = tier(&app(&machine)).await;
    insta::assert_snapshot!(masked(&machine, Some(&claude), &result));
    assert!(
        !gateway
            .paths()
            .iter()
            .any(|path| path.contains("completions") || path == "/health"),
        "no model is asked"
    );
}

#[tokio::test]
async fn unavailable_models_are_listed_with_a_remedy() {
    let closed = [ClosedPort::hold(), ClosedPort::hold(), ClosedPort::hold()];
    let machine = Machine::new(&closed[0].url, &closed[1].url, &closed[2].url)
        .set("PATH", "/no/such/directory");
    let result = tier(&app(&machine)).await;
    assert_eq!(
        result.status,
        Status::Pass,
        "that nothing is there is an answer"
    );
    insta::assert_snapshot!(masked(&machine, None, &result));
    let size = serde_json::to_string(&result).unwrap().len();
    assert!(size < 6_000, "{size}");
}

#[tokio::test]
async fn unset_loaded_models_url_reports_no_server() {
    let closed = ClosedPort::hold();
    let machine = Machine::new(&closed.url, &closed.url, "")
        .without_claude()
        .file("[warm]\nkind = \"none\"\n");
    let details = tier(&app(&machine)).await.more.details;
    assert_eq!(
        details["loaded"]["unknown"], "`warm.kind` names no server that would know",
        "{details:#}"
    );
}

#[tokio::test]
async fn connectivity_degrades_from_cloud_to_offline() {
    let (cloud, swap, claude, closed) =
        (cloud(), swap(), FakeClaude::logged_in(), ClosedPort::hold());
    for (cloud, swap, expected, label) in [
        (&cloud.url, &swap.url, 1, "cloud"),
        (&cloud.url, &closed.url, 1, "cloud"),
        (&closed.url, &swap.url, 2, "local network"),
        (&closed.url, &closed.url, 3, "offline"),
    ] {
        let machine = Machine::new(cloud, &closed.url, swap).with(&claude);
        let details = tier(&app(&machine)).await.more.details;
        assert_eq!(
            (&details["connectivity"], &details["label"]),
            (&json!(expected), &json!(label))
        );
    }
}

#[tokio::test]
async fn agent_with_another_provider_needs_no_anthropic() {
    let closed = ClosedPort::hold();
    let bedrock = r#"echo '{"loggedIn":true,"authMethod":"third_party","apiProvider":"bedrock"}'"#;
    let claude = FakeClaude::new("echo 2.1.197", bedrock);
    let machine = Machine::new(&closed.url, &closed.url, &closed.url).with(&claude);
    let details = tier(&app(&machine)).await.more.details;
    assert_eq!(details["connectivity"], 3);
    assert_eq!(
        details["chains"]["review"],
        json!(["haiku-text", "sonnet-text", "sonnet"])
    );
}

#[tokio::test]
async fn gateway_names_are_resolved_to_loaded_models() {
    let (cloud, claude) = (cloud(), FakeClaude::logged_in());
    let swap = Server::start(|path| match path {
        "/running" => Do::Json(
            200,
            r#"{"running":[{"model":"org/phi","state":"ready"}]}"#.into(),
        ),
        _ => Do::Json(200, "{}".into()),
    });
    let gateway = Server::start(|path| {
        match path {
        "/v1/models" => Do::Json(200, r#"{"data":[{"id":"ollama/*"}]}"#.into()),
        "/model/info" => Do::Json(
            200,
            r#"{"data":[{"model_name":"ollama/phi4","litellm_params":{"model":"openai/org/phi","api_base":"http://swap:8080/v1"}}]}"#.into(),
        ),
        _ => Do::Json(200, "{}".into()),
    }
    });
    let machine = Machine::new(&cloud.url, &gateway.url, &swap.url).with(&claude);
    let details = tier(&app(&machine)).await.more.details;
    assert_eq!(
        details["loaded"],
        json!([{"id": "org/phi", "state": "ready", "serves": ["ollama/phi4"]}])
    );
    assert_eq!(details["out"], json!([]));
}

#[tokio::test]
async fn probe_is_shared_and_cached_until_refresh() {
    let (cloud, gateway, swap, claude) = (cloud(), gateway(), swap(), FakeClaude::logged_in());
    let machine = Machine::new(&cloud.url, &gateway.url, &swap.url).with(&claude);
    let app = app(&machine);
    let looks = || {
        gateway
            .paths()
            .iter()
            .filter(|path| *path == "/health/liveliness")
            .count()
    };

    let together = futures_util::future::join_all((0..8).map(|_| tier(&app))).await;
    assert!(together.iter().all(|result| result.status == Status::Pass));
    assert_eq!(looks(), 1, "calls that come together share one look");
    tier(&app).await;
    assert_eq!(looks(), 1);
    refreshed(&app).await;
    assert_eq!(looks(), 2);
}

#[tokio::test]
async fn changed_settings_apply_to_the_next_call() {
    let (cloud, closed, claude) = (cloud(), ClosedPort::hold(), FakeClaude::logged_in());
    let machine = Machine::new(&cloud.url, &closed.url, &closed.url)
        .with(&claude)
        .file("verifier = \"none\"\n");
    let app = app(&machine);
    assert_eq!(tier(&app).await.more.details["verifiers"], json!([]));

    let file = machine.dir.path().join("models.toml");
    std::fs::write(&file, "[skills.review]\nchain = [\"opus\"]\n").unwrap();
    let details = tier(&app).await.more.details;
    assert_eq!(details["verifiers"], json!(["sonnet"]));
    assert_eq!(details["chains"]["review"], json!(["opus"]));

    std::fs::write(&file, "[skills.reveiw]\n").unwrap();
    let broken = tier(&app).await;
    assert_eq!(broken.status, Status::Error);
    assert!(
        broken.message.contains("models.toml:1") && broken.message.contains("skills.review"),
        "{}",
        broken.message
    );
}

#[tokio::test]
async fn cancelled_call_does_not_await_hanging_server() {
    let (hangs, claude) = (
        Server::always(Do::Stall(vec![])),
        FakeClaude::new("sleep 1000", "sleep 1000"),
    );
    let machine = Machine::new(&hangs.url, &hangs.url, &hangs.url).with(&claude);
    let (app, stop) = (app(&machine), CancellationToken::new());
    let asked = TierParams::default();
    let call = answer(&app, &asked, &stop);
    let cancel = async {
        while hangs.asked().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        stop.cancel();
    };
    let (result, ()) = tokio::join!(call, cancel);
    assert_eq!(
        (result.status, result.message.as_str()),
        (Status::Error, "the call was cancelled")
    );
}

#[tokio::test]
async fn key_repeated_by_a_server_is_redacted() {
    let echo = |_: &str| {
        Do::Json(
            500,
            format!(r#"{{"error":{{"message":"key {CANARY} is bad"}}}}"#),
        )
    };
    let names = Server::start(|path| match path {
        "/running" => Do::Json(
            200,
            format!(r#"{{"running":[{{"model":"{CANARY}","state":"{CANARY}"}}]}}"#),
        ),
        _ => Do::Json(200, "{}".into()),
    });
    let (cloud, gateway) = (cloud(), Server::start(echo));
    let claude = FakeClaude::new(
        &format!("echo {CANARY} >&2; exit 1"),
        &format!("echo {CANARY}; exit 1"),
    );
    for swap in [&gateway, &names] {
        let machine = Machine::new(&cloud.url, &gateway.url, &swap.url).with(&claude);
        let result = serde_json::to_string(&tier(&app(&machine)).await).unwrap();
        assert!(!result.contains("canary"), "{result}");
    }
    assert!(
        gateway
            .asked()
            .iter()
            .any(|asked| asked.head.contains(CANARY))
    );
}

/// The built program as a client starts it, on this machine alone.
fn session(machine: &Machine) -> Session {
    let mut command = Command::new(env!("CARGO_BIN_EXE_supervisor"));
    command
        .env_clear()
        .envs(machine.variables().vars())
        .env("XDG_CONFIG_HOME", machine.dir.path());
    command.current_dir(machine.dir.path());
    let mut process = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (stdin, stdout) = (
        process.stdin.take().unwrap(),
        process.stdout.take().unwrap(),
    );
    Session::with(process, Some(Box::new(stdin)), Box::new(stdout))
}

#[test]
fn built_program_lists_and_answers_tier() {
    let (closed, claude) = (ClosedPort::hold(), FakeClaude::logged_out());
    let machine = Machine::new(&closed.url, &closed.url, &closed.url).with(&claude);
    let mut session = session(&machine);
    session.initialize("2025-11-25");

    session.request(1, "tools/list", json!({}));
    let list = session.reply(1);
    let mut tool = list["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .find(|t| t["name"] == "tier")
        .unwrap()
        .clone();
    assert_eq!(
        (&tool["title"], &tool["annotations"]),
        (&json!("Reachable models"), &json!({"readOnlyHint": true}))
    );
    assert_eq!(tool["inputSchema"]["type"], "object");
    assert!(tool["inputSchema"].get("required").is_none());
    tool.as_object_mut().unwrap().remove("outputSchema");
    assert!(
        tool.to_string().len() < 1_100,
        "{} bytes of every client's context",
        tool.to_string().len()
    );

    session.call(2, "tier", json!({}));
    let result = result_of(&session.reply(2));
    assert_eq!(
        (&result["status"], &result["skill"], &result["verified"]),
        (&json!("pass"), &json!("tier"), &json!(false))
    );
    assert_eq!(result["details"]["connectivity"], 3);
    let out = result["details"]["out"].as_array().unwrap();
    let claude_is_out = |o: &&Value| o["models"].as_array().unwrap().contains(&json!("sonnet"));
    let hint = &out.iter().find(claude_is_out).unwrap()["hint"];
    assert!(
        hint.as_str().unwrap().contains("claude auth login"),
        "{hint}"
    );
    assert_eq!(result["details"]["chains"]["tdd"], json!([]));

    session.call(3, "tier", json!({"refresh": "true"}));
    assert_eq!(
        result_of(&session.reply(3))["status"],
        "pass",
        "a model that writes \"true\" means true"
    );

    session.call(4, "tier", json!({"refesh": true}));
    let wrong = result_of(&session.reply(4));
    assert!(
        wrong["message"]
            .as_str()
            .unwrap()
            .contains("did you mean `refresh`?"),
        "{wrong}"
    );

    let end = session.finish();
    assert_eq!(end.code, Some(0));
    assert!(
        end.stderr.lines().count() == 1 && end.stderr.contains("supervisor starting"),
        "{}",
        end.stderr
    );
    assert!(
        !end.rest
            .iter()
            .map(Value::to_string)
            .collect::<String>()
            .contains("canary")
    );
    assert!(!claude.environments().contains("canary"));
}
