//! `doctor` says on one line each what was found and what helps, in every world it may wake up in.

mod own;

use std::path::Path;
use std::process::Command;

use supervisor::doctor::{DoctorContext, DoctorReport, examine};
use supervisor_workspace::state::StateDir;

use crate::support::machine::{CANARY, Machine, cloud, gateway, swap};
use supervisor_test_support::fake_claude::FakeClaude;
use supervisor_test_support::loopback::{ClosedPort, Do, Server};

async fn examined(machine: &Machine) -> DoctorReport {
    let state = StateDir::at(machine.dir.path().join("state"));
    examine(&DoctorContext::new(
        &machine.sources(),
        machine.look(),
        state,
        machine.dir.path().into(),
    ))
    .await
}

fn text(report: &DoctorReport) -> String {
    let mut out = Vec::new();
    report.write_text(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[tokio::test]
async fn with_nothing_installed_every_line_names_a_remedy() {
    let closed = [ClosedPort::hold(), ClosedPort::hold(), ClosedPort::hold()];
    let machine = Machine::new(&closed[0].url, &closed[1].url, &closed[2].url)
        .set("PATH", "/no/such/directory");
    let report = examined(&machine).await;
    insta::assert_snapshot!(machine.masked(&text(&report), None));
    assert_eq!(report.exit_code, 1);
}

#[tokio::test]
async fn with_everything_available_every_line_is_ok() {
    let (cloud, gateway, swap, claude) = (cloud(), gateway(), swap(), FakeClaude::logged_in());
    let machine = Machine::new(&cloud.url, &gateway.url, &swap.url).with(&claude);
    // Any name on this PATH will do: which tests there are is decided by the manifest, and nothing is run.
    std::os::unix::fs::symlink("/bin/sh", claude.bin().join("cargo")).unwrap();
    std::fs::write(machine.dir.path().join("Cargo.toml"), "").unwrap();
    let report = examined(&machine).await;
    let shown = machine.masked(&text(&report), Some(&claude));
    insta::assert_snapshot!(shown);
    assert_eq!(report.exit_code, 0);
    assert!(
        !shown.contains("example.org"),
        "whose account it is concerns nobody"
    );
    assert!(
        !gateway.paths().contains(&"/health".to_owned()),
        "that would ask every model a question"
    );
}

#[tokio::test]
async fn agent_still_works_with_the_gateway_down() {
    let (cloud, closed, claude) = (cloud(), ClosedPort::hold(), FakeClaude::logged_in());
    let machine = Machine::new(&cloud.url, &closed.url, &closed.url).with(&claude);
    let report = examined(&machine).await;
    insta::assert_snapshot!(machine.masked(&text(&report), Some(&claude)));
    assert_eq!(report.exit_code, 0);
}

#[tokio::test]
async fn without_login_local_tiers_work_without_verifier() {
    let (cloud, gateway, swap, claude) = (cloud(), gateway(), swap(), FakeClaude::logged_out());
    let machine = Machine::new(&cloud.url, &gateway.url, &swap.url).with(&claude);
    let report = examined(&machine).await;
    insta::assert_snapshot!(machine.masked(&text(&report), Some(&claude)));
    assert_eq!(report.exit_code, 0);
}

#[tokio::test]
async fn wrong_key_and_missing_model_name_the_setting() {
    let (cloud, swap, claude) = (cloud(), swap(), FakeClaude::logged_in());
    let no_db = r#"{"error":{"message":"No connected db.","type":"no_db_connection","param":null,"code":"400"}}"#;
    let refuses = Server::start(move |path| match path {
        "/health/liveliness" => Do::Json(200, "{}".into()),
        _ => Do::Json(400, no_db.into()),
    });
    let machine = Machine::new(&cloud.url, &refuses.url, &swap.url).with(&claude);
    let shown = text(&examined(&machine).await);
    assert!(
        shown.contains(
            "warn  models    `litellm`: the key in $LITELLM_API_KEY was refused, so `ollama/"
        ),
        "{shown}"
    );

    let small = Server::start(|path| match path {
        "/v1/models" => Do::Json(
            200,
            r#"{"data":[{"id":"ollama/qwen3.6:27b"},{"id":"ollama/gem*"}]}"#.into(),
        ),
        _ => Do::Json(200, "{}".into()),
    });
    let machine = Machine::new(&cloud.url, &small.url, &swap.url).with(&claude);
    let shown = text(&examined(&machine).await);
    let missing = "`litellm` does not offer `ollama/devstral-small-2`, `ollama/glm-4.7-flash` and `ollama/phi4`\n";
    assert!(shown.contains(missing), "{shown}");
}

#[tokio::test]
async fn broken_settings_show_file_key_and_hint() {
    let closed = ClosedPort::hold();
    let machine = Machine::new(&closed.url, &closed.url, &closed.url)
        .without_claude()
        .file("verifer = \"none\"\n\n[skills.reveiw]\nchain = [\"gpt-5\"]\n");
    let report = examined(&machine).await;
    insta::assert_snapshot!(machine.masked(&text(&report), None));
    assert_eq!(report.exit_code, 2);
}

#[tokio::test]
async fn stray_variables_are_warnings_with_their_source() {
    let (cloud, gateway, swap, claude) = (cloud(), gateway(), swap(), FakeClaude::logged_in());
    let machine = Machine::new(&cloud.url, &gateway.url, &swap.url)
        .with(&claude)
        .set("SUPERVISOR_MAX_ATTEMPS", "2")
        .file("verifier = \"none\"\n");
    let shown = machine.masked(&text(&examined(&machine).await), Some(&claude));
    assert!(
        shown.contains("(built-in; DIR/models.toml; $LITELLM_BASE_URL, $LLAMA_SWAP_URL, $SUPERVISOR_LIMITS__PROBE_S)"),
        "{shown}"
    );
    assert!(
        shown.contains("warn  routing   $SUPERVISOR_MAX_ATTEMPS sets nothing"),
        "{shown}"
    );
    assert!(
        shown.contains("ok    verifier  none: tests and other checks decide alone"),
        "{shown}"
    );
}

#[tokio::test]
async fn key_repeated_by_a_server_is_never_printed() {
    let echo = |_: &str| {
        Do::Json(
            500,
            format!(r#"{{"error":{{"message":"key {CANARY} is bad"}}}}"#),
        )
    };
    let (cloud, gateway, swap) = (cloud(), Server::start(echo), Server::start(echo));
    let claude = FakeClaude::new(&format!("echo {CANARY}"), &format!("echo {CANARY}; exit 1"));
    let machine = Machine::new(&cloud.url, &gateway.url, &swap.url).with(&claude);
    let report = examined(&machine).await;
    let mut json = Vec::new();
    report.write_json(&mut json).unwrap();
    assert!(
        gateway.asked().iter().any(|a| a.head.contains(CANARY)),
        "the gateway got it"
    );
    assert!(!claude.environments().contains(CANARY), "the agent did not");
    for shown in [text(&report), String::from_utf8(json).unwrap()] {
        assert!(!shown.contains("canary"), "{shown}");
    }
}

#[tokio::test]
async fn json_has_the_same_findings() {
    let closed = ClosedPort::hold();
    let machine =
        Machine::new(&closed.url, &closed.url, &closed.url).set("PATH", "/no/such/directory");
    let report = examined(&machine).await;
    let mut json = Vec::new();
    report.write_json(&mut json).unwrap();
    let value: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(value["exit_code"], 1);
    let checks = value["checks"].as_array().unwrap();
    assert_eq!(
        checks.len(),
        text(&report)
            .lines()
            .filter(|l| !l.starts_with(' '))
            .count()
    );
    let claude = checks.iter().find(|c| c["check"] == "claude").unwrap();
    assert_eq!(claude["level"], "warn");
    assert!(
        claude["hint"]
            .as_str()
            .unwrap()
            .contains("backends.claude.program")
    );
}

/// The built program, with nothing of this machine's own settings.
fn program(home: &Path, closed: &ClosedPort) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_supervisor"));
    command
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin")
        .current_dir(home);
    for name in ["ANTHROPIC_BASE_URL", "LITELLM_BASE_URL", "LLAMA_SWAP_URL"] {
        command.env(name, &closed.url);
    }
    // More patience than a server needs that answers at all.
    command.env("SUPERVISOR_LIMITS__PROBE_S", "60");
    command.arg("doctor");
    command
}

#[test]
fn exit_code_says_whether_a_call_can_succeed() {
    let (home, closed) = (tempfile::tempdir().unwrap(), ClosedPort::hold());
    let output = program(home.path(), &closed).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("fail  chains"),
        "{output:?}"
    );

    let output = program(home.path(), &closed)
        .args(["--config", "/no/such/file.toml"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("/no/such/file.toml"),
        "{output:?}"
    );

    // Nothing in the current directory configures us.
    std::fs::write(home.path().join("models.toml"), "broken").unwrap();
    let output = program(home.path(), &closed)
        .arg("--json")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["exit_code"], 1);
}

#[test]
fn plain_gateway_needs_no_certificates() {
    let (home, closed, gateway) = (tempfile::tempdir().unwrap(), ClosedPort::hold(), gateway());
    let output = program(home.path(), &closed)
        .env("LITELLM_BASE_URL", &gateway.url)
        .env("ANTHROPIC_BASE_URL", closed.url.replace("http:", "https:"))
        .env("SSL_CERT_FILE", "/no/such/file")
        .env("SSL_CERT_DIR", "/no/such/directory")
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(
        shown.contains("ok    gateway") && shown.contains("ok    models"),
        "{shown}"
    );
    assert!(
        shown.contains("no secure connection: ") && shown.contains("$SSL_CERT_FILE"),
        "{shown}"
    );
    assert_eq!(output.status.code(), Some(0), "{shown}");
}

#[test]
fn proxy_is_not_used_for_a_loopback_gateway() {
    let (home, closed) = (tempfile::tempdir().unwrap(), ClosedPort::hold());
    let proxy = Server::always(Do::Json(502, "{}".into()));
    let output = program(home.path(), &closed)
        .env("HTTP_PROXY", &proxy.url)
        .env("http_proxy", &proxy.url)
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(
        shown.contains("warn  gateway") && shown.contains("refused"),
        "{shown}"
    );
    assert!(proxy.asked().is_empty());
}

#[test]
fn read_only_state_directory_is_a_failure() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;

    let (home, closed, gateway) = (tempfile::tempdir().unwrap(), ClosedPort::hold(), gateway());
    // Somebody else's program cannot always be run from where it was built.
    let program_copy = home.path().join("supervisor");
    let copied = Command::new("cp")
        .arg(env!("CARGO_BIN_EXE_supervisor"))
        .arg(&program_copy)
        .status();
    assert!(copied.unwrap().success());
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let locked = home.path().join("locked");
    std::fs::create_dir(&locked).unwrap();
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o555)).unwrap();

    let mut command = Command::new("sh");
    command.args([
        "-c",
        "exec \"$0\" doctor",
        &program_copy.display().to_string(),
    ]);
    command.env_clear().envs(
        program(home.path(), &closed)
            .get_envs()
            .filter_map(|(k, v)| Some((k, v?))),
    );
    command
        .env("LITELLM_BASE_URL", &gateway.url)
        .env("SUPERVISOR_STATE_DIR", locked.join("state"));
    command.current_dir("/");
    if rustix::process::geteuid().is_root() {
        // Root may write anywhere. If this fails, so does the test.
        command.uid(65534).gid(65534);
    }
    let output = command.output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(
        shown.contains("ok    chains"),
        "{shown}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        shown.contains("fail  state     the state directory `")
            && shown.contains("$SUPERVISOR_STATE_DIR"),
        "{shown}"
    );
    assert_eq!(output.status.code(), Some(1), "{shown}");
}
