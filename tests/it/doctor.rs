//! `doctor` says on one line each what was found and what helps, in every world it may wake up in.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use supervisor::backend::Env;
use supervisor::backend::world::Look;
use supervisor::cli::doctor::{Case, Report, examine};
use supervisor::process::Launcher;
use supervisor::routing::Sources;
use supervisor::state::StateDir;

use crate::fake_claude::FakeClaude;
use crate::loopback::{ClosedPort, Do, Server, http};

const CANARY: &str = "sk-canary-0123456789";
const PATIENT: Duration = Duration::from_secs(60);

/// Somebody's machine: servers, a `claude` or none, a file, variables.
struct Machine {
    dir: tempfile::TempDir,
    env: Vec<(String, String)>,
    file: Option<String>,
}

impl Machine {
    fn new(cloud: &str, gateway: &str, swap: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let env = [
            ("ANTHROPIC_BASE_URL", cloud),
            ("LITELLM_BASE_URL", gateway),
            ("LLAMA_SWAP_URL", swap),
            ("LITELLM_API_KEY", CANARY),
        ];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        Self { dir, env, file: None }
    }

    fn set(mut self, name: &str, value: &str) -> Self {
        self.env.retain(|(known, _)| known != name);
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    fn with(self, claude: &FakeClaude) -> Self {
        let home = claude.home().display().to_string();
        self.set("PATH", &claude.path()).set("HOME", &home)
    }

    fn file(mut self, text: &str) -> Self {
        self.file = Some(text.to_owned());
        self
    }

    async fn examined(&self) -> Report {
        let user_file = self.file.as_ref().map(|text| {
            let path = self.dir.path().join("models.toml");
            std::fs::write(&path, text).unwrap();
            path
        });
        let env: Env = self.env.iter().map(|(k, v)| (k, v)).collect();
        let sources = Sources { user_file, env: env.vars().clone(), ..Sources::default() };
        let mut look = Look::new(env, Launcher::at(env!("CARGO_BIN_EXE_supervisor")));
        (look.probe_limit, look.list_limit, look.agent_limit) = (PATIENT, PATIENT, PATIENT);
        let state = StateDir::at(self.dir.path().join("state"));
        examine(&Case::new(sources, look, state)).await
    }

    /// What is printed, with everything masked that differs from run to run.
    fn masked(&self, text: &str, claude: Option<&FakeClaude>) -> String {
        let mut text = text.to_owned();
        for (name, value) in &self.env {
            let shown = match name.as_str() {
                "ANTHROPIC_BASE_URL" => "http://CLOUD",
                "LITELLM_BASE_URL" => "http://GATEWAY",
                "LLAMA_SWAP_URL" => "http://SWAP",
                _ => continue,
            };
            text = text.replace(value.as_str(), shown);
        }
        if let Some(claude) = claude {
            text = text.replace(&claude.bin().display().to_string(), "BIN");
        }
        text = text.replace(&self.dir.path().display().to_string(), "DIR");
        let mut lines: Vec<String> = text.lines().map(masked_line).collect();
        lines.push(String::new());
        lines.join("\n")
    }
}

/// Milliseconds and the version of git are the machine's own.
fn masked_line(line: &str) -> String {
    if let Some((before, after)) = line.split_once(" answers in ") {
        let rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
        return format!("{before} answers in N{rest}");
    }
    if line.starts_with("ok    git") {
        return "ok    git       VERSION".into();
    }
    line.to_owned()
}

fn text(report: &Report) -> String {
    let mut out = Vec::new();
    report.write_text(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// A gateway that offers all built-in models, in front of a llama-swap that has one of them loaded.
fn gateway() -> Server {
    let names = ["qwen3-coder-30b-tuned", "devstral-tuned", "deepseek-r1-tuned", "gemma4", "phi4"];
    let list: Vec<_> = names.iter().map(|n| serde_json::json!({"id": format!("ollama/{n}")})).collect();
    let list = serde_json::json!({"data": list}).to_string();
    Server::start(move |path| match path {
        "/health/liveliness" => Do::Json(200, "\"I'm alive!\"".into()),
        "/v1/models" => Do::Json(200, list.clone()),
        _ => Do::Json(404, "{}".into()),
    })
}

fn swap() -> Server {
    Server::start(|path| match path {
        "/running" => Do::Json(
            200,
            r#"{"running":[{"model":"ollama/phi4","state":"ready"},{"model":"gemma4","state":"starting"}]}"#.into(),
        ),
        _ => Do::Raw(http(200, "text/plain", "OK")),
    })
}

fn cloud() -> Server {
    Server::always(Do::Json(404, "{}".into()))
}

#[tokio::test]
async fn with_nothing_there_every_line_says_what_helps() {
    let closed = [ClosedPort::hold(), ClosedPort::hold(), ClosedPort::hold()];
    let machine = Machine::new(&closed[0].url, &closed[1].url, &closed[2].url).set("PATH", "/no/such/directory");
    let report = machine.examined().await;
    insta::assert_snapshot!(machine.masked(&text(&report), None));
    assert_eq!(report.exit_code, 1);
}

#[tokio::test]
async fn with_all_in_place_every_line_is_ok() {
    let (cloud, gateway, swap, claude) = (cloud(), gateway(), swap(), FakeClaude::logged_in());
    let machine = Machine::new(&cloud.url, &gateway.url, &swap.url).with(&claude);
    let report = machine.examined().await;
    let shown = machine.masked(&text(&report), Some(&claude));
    insta::assert_snapshot!(shown);
    assert_eq!(report.exit_code, 0);
    assert!(!shown.contains("example.org"), "whose account it is concerns nobody");
    assert!(!gateway.paths().contains(&"/health".to_owned()), "that would ask every model a question");
}

#[tokio::test]
async fn with_the_gateway_down_the_agent_still_works() {
    let (cloud, closed, claude) = (cloud(), ClosedPort::hold(), FakeClaude::logged_in());
    let machine = Machine::new(&cloud.url, &closed.url, &closed.url).with(&claude);
    let report = machine.examined().await;
    insta::assert_snapshot!(machine.masked(&text(&report), Some(&claude)));
    assert_eq!(report.exit_code, 0);
}

#[tokio::test]
async fn with_nobody_logged_in_local_tiers_still_work_and_nobody_judges_them() {
    let (cloud, gateway, swap, claude) = (cloud(), gateway(), swap(), FakeClaude::logged_out());
    let machine = Machine::new(&cloud.url, &gateway.url, &swap.url).with(&claude);
    let report = machine.examined().await;
    insta::assert_snapshot!(machine.masked(&text(&report), Some(&claude)));
    assert_eq!(report.exit_code, 0);
}

#[tokio::test]
async fn with_a_wrong_key_and_a_missing_model_the_setting_is_named() {
    let (cloud, swap, claude) = (cloud(), swap(), FakeClaude::logged_in());
    let no_db = r#"{"error":{"message":"No connected db.","type":"no_db_connection","param":null,"code":"400"}}"#;
    let refuses = Server::start(move |path| match path {
        "/health/liveliness" => Do::Json(200, "{}".into()),
        _ => Do::Json(400, no_db.into()),
    });
    let machine = Machine::new(&cloud.url, &refuses.url, &swap.url).with(&claude);
    let shown = text(&machine.examined().await);
    assert!(
        shown.contains("warn  models    `litellm`: the key in $LITELLM_API_KEY was refused, so `ollama/"),
        "{shown}"
    );

    let small = Server::start(|path| match path {
        "/v1/models" => Do::Json(200, r#"{"data":[{"id":"ollama/qwen3-coder-30b-tuned"},{"id":"ollama/g*"}]}"#.into()),
        _ => Do::Json(200, "{}".into()),
    });
    let machine = Machine::new(&cloud.url, &small.url, &swap.url).with(&claude);
    let shown = text(&machine.examined().await);
    let missing = "`litellm` does not offer `ollama/deepseek-r1-tuned`, `ollama/devstral-tuned` and `ollama/phi4`\n";
    assert!(shown.contains(missing), "{shown}");
}

#[tokio::test]
async fn with_broken_settings_the_file_the_key_and_a_hint_are_there() {
    let closed = ClosedPort::hold();
    let machine = Machine::new(&closed.url, &closed.url, &closed.url)
        .set("PATH", "/usr/bin:/bin")
        .file("verifer = \"none\"\n\n[skills.reveiw]\nchain = [\"gpt-5\"]\n");
    let report = machine.examined().await;
    insta::assert_snapshot!(machine.masked(&text(&report), None));
    assert_eq!(report.exit_code, 2);
}

#[tokio::test]
async fn stray_variables_are_warnings_and_sources_are_named() {
    let (cloud, gateway, swap, claude) = (cloud(), gateway(), swap(), FakeClaude::logged_in());
    let machine = Machine::new(&cloud.url, &gateway.url, &swap.url)
        .with(&claude)
        .set("SUPERVISOR_MAX_ATTEMPS", "2")
        .file("verifier = \"none\"\n");
    let shown = machine.masked(&text(&machine.examined().await), Some(&claude));
    assert!(shown.contains("(built-in; DIR/models.toml; $LITELLM_BASE_URL, $LLAMA_SWAP_URL)"), "{shown}");
    assert!(shown.contains("warn  routing   $SUPERVISOR_MAX_ATTEMPS sets nothing"), "{shown}");
    assert!(shown.contains("ok    verifier  none: gates alone decide"), "{shown}");
}

#[tokio::test]
async fn a_key_is_in_no_output_even_if_a_server_repeats_it() {
    let echo = |_: &str| Do::Json(500, format!(r#"{{"error":{{"message":"key {CANARY} is bad"}}}}"#));
    let (cloud, gateway, swap) = (cloud(), Server::start(echo), swap());
    let claude = FakeClaude::new(&format!("echo {CANARY}-not-ours"), &format!("echo {CANARY}; exit 1"));
    let machine = Machine::new(&cloud.url, &gateway.url, &swap.url).with(&claude);
    let report = machine.examined().await;
    let mut json = Vec::new();
    report.write_json(&mut json).unwrap();
    let json = String::from_utf8(json).unwrap();
    assert!(gateway.asked().iter().any(|a| a.head.contains(CANARY)), "the gateway got it");
    assert!(!claude.environments().contains(CANARY), "the agent did not");
    for shown in [text(&report), json] {
        // The fake's own version line is the one place where it may stand: the agent never had the key.
        let ours: String = shown.lines().filter(|l| !l.contains("-not-ours")).collect();
        assert!(!ours.contains(CANARY), "{ours}");
    }
}

#[tokio::test]
async fn json_carries_the_same_findings() {
    let closed = ClosedPort::hold();
    let machine = Machine::new(&closed.url, &closed.url, &closed.url).set("PATH", "/no/such/directory");
    let report = machine.examined().await;
    let mut json = Vec::new();
    report.write_json(&mut json).unwrap();
    let value: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(value["exit_code"], 1);
    let checks = value["checks"].as_array().unwrap();
    assert_eq!(checks.len(), text(&report).lines().filter(|l| !l.starts_with(' ')).count());
    let claude = checks.iter().find(|c| c["check"] == "claude").unwrap();
    assert_eq!(claude["level"], "warn");
    assert!(claude["hint"].as_str().unwrap().contains("backends.claude.program"));
}

/// The built program, with nothing of this machine's own settings.
fn program(home: &Path, closed: &ClosedPort) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_supervisor"));
    command.env_clear().env("HOME", home).env("PATH", "/usr/bin:/bin").current_dir(home);
    for name in ["ANTHROPIC_BASE_URL", "LITELLM_BASE_URL", "LLAMA_SWAP_URL"] {
        command.env(name, &closed.url);
    }
    command.arg("doctor");
    command
}

#[test]
fn the_exit_code_of_the_program_says_whether_a_call_can_succeed() {
    let (home, closed) = (tempfile::tempdir().unwrap(), ClosedPort::hold());
    let output = program(home.path(), &closed).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("fail  chains"), "{output:?}");

    let output = program(home.path(), &closed).args(["--config", "/no/such/file.toml"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("/no/such/file.toml"), "{output:?}");

    // Nothing in the current directory configures us.
    std::fs::write(home.path().join("models.toml"), "broken").unwrap();
    let output = program(home.path(), &closed).arg("--json").output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["exit_code"], 1);
}

#[test]
fn a_system_without_certificates_still_reaches_a_plain_gateway() {
    let (home, closed, gateway) = (tempfile::tempdir().unwrap(), ClosedPort::hold(), gateway());
    let output = program(home.path(), &closed)
        .env("LITELLM_BASE_URL", &gateway.url)
        .env("ANTHROPIC_BASE_URL", closed.url.replace("http:", "https:"))
        .env("SSL_CERT_FILE", "/no/such/file")
        .env("SSL_CERT_DIR", "/no/such/directory")
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("ok    gateway") && shown.contains("ok    models"), "{shown}");
    assert!(shown.contains("no secure connection: ") && shown.contains("$SSL_CERT_FILE"), "{shown}");
    assert_eq!(output.status.code(), Some(0), "{shown}");
}

#[test]
fn a_proxy_does_not_answer_for_a_gateway_on_loopback() {
    let (home, closed) = (tempfile::tempdir().unwrap(), ClosedPort::hold());
    let proxy = Server::always(Do::Json(502, "{}".into()));
    let output =
        program(home.path(), &closed).env("HTTP_PROXY", &proxy.url).env("http_proxy", &proxy.url).output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("warn  gateway") && shown.contains("refused"), "{shown}");
    assert!(proxy.asked().is_empty());
}
