//! `supervisor init`, as a newcomer runs it: scripted servers on loopback, a `claude` or none, an empty home. What it
//! writes is examined by `doctor` and used by a call.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::support::mcp_session::until;
use crate::support::terminal::Terminal;
use supervisor_test_support::fake_claude::FakeClaude;
use supervisor_test_support::loopback::{ClosedPort, Do, Server};

const BINARY: &str = env!("CARGO_BIN_EXE_supervisor");

/// A home of one's own, and nothing else.
pub(crate) struct Newcomer {
    pub(crate) dir: tempfile::TempDir,
    env: Vec<(String, String)>,
}

pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Newcomer {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("home")).unwrap();
        let home = dir.path().join("home").display().to_string();
        let env = vec![
            ("HOME".into(), home),
            ("PATH".into(), "/usr/bin:/bin".into()),
        ];
        Self { dir, env }
    }

    pub(crate) fn set(mut self, name: &str, value: &str) -> Self {
        self.env.retain(|(known, _)| known != name);
        self.env.push((name.into(), value.into()));
        self
    }

    pub(crate) fn with(self, claude: &FakeClaude) -> Self {
        let path = claude.path();
        self.set("PATH", &path)
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("home/.config/supervisor/models.toml")
    }

    pub(crate) fn settings(&self) -> String {
        fs::read_to_string(self.file()).unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        command
            .args(arguments)
            .env_clear()
            .envs(self.env.iter().map(|(k, v)| (k, v)))
            .current_dir(self.dir.path());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Said {
        let output = self.command(arguments).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Said {
            code: output.status.code(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }
}

/// An answer that makes the little project right.
fn answer() -> String {
    let edits = json!({"edits": [{"path": "code.txt", "action": "replace", "content": "right\n"}]})
        .to_string();
    let message = json!({"role": "assistant", "content": edits});
    let usage = json!({"prompt_tokens": 3000, "completion_tokens": 20});
    json!({"choices": [{"index": 0, "finish_reason": "stop", "message": message}], "usage": usage})
        .to_string()
}

fn ollama() -> Server {
    Server::start(|path| {
        match path {
        "/api/version" => Do::Json(200, r#"{"version":"0.21.0"}"#.into()),
        "/api/tags" => Do::Json(
            200,
            json!({"models": [{"name": "llama3.2:3b"}, {"name": "qwen3.6:27b"}, {"name": "nomic-embed-text:latest"}]})
                .to_string(),
        ),
        "/api/ps" => Do::Json(200, json!({"models": [{"name": "qwen3.6:27b", "context_length": 32768}]}).to_string()),
        "/api/show" => Do::Json(200, json!({"capabilities": ["completion"], "parameters": "top_k 20"}).to_string()),
        "/v1/models" => Do::Json(200, json!({"data": [{"id": "llama3.2:3b"}, {"id": "qwen3.6:27b"}]}).to_string()),
        "/v1/chat/completions" => Do::Json(200, answer()),
        "/" => Do::Json(200, "\"Ollama is running\"".into()),
        _ => Do::Json(404, "{}".into()),
    }
    })
}

fn lm_studio() -> Server {
    Server::start(|path| {
        match path {
        "/api/v0/models" => Do::Json(
            200,
            json!({"data": [
                {"id": "devstral-small-2", "type": "llm", "state": "loaded", "loaded_context_length": 65536},
                {"id": "text-embedding-nomic", "type": "embeddings", "state": "not-loaded"},
            ]})
            .to_string(),
        ),
        "/v1/models" => Do::Json(200, json!({"data": [{"id": "devstral-small-2"}]}).to_string()),
        "/v1/chat/completions" => Do::Json(200, answer()),
        _ => Do::Json(404, "{}".into()),
    }
    })
}

/// A gateway that serves two models and a pattern.
fn open_litellm() -> Server {
    Server::start(|path| {
        match path {
        "/health/liveliness" => Do::Json(200, "\"I'm alive!\"".into()),
        "/v1/models" => Do::Json(200, json!({"data": [{"id": "qwen3.6"}, {"id": "gemma4"}, {"id": "openai/*"}]}).to_string()),
        "/model/info" => Do::Json(
            200,
            json!({"data": [{"model_name": "qwen3.6", "litellm_params": {}, "model_info": {"max_input_tokens": 131_072}}]})
                .to_string(),
        ),
        "/v1/chat/completions" => Do::Json(200, answer()),
        _ => Do::Json(404, "{}".into()),
    }
    })
}

/// A gateway that wants a key for everything but its pulse.
fn litellm() -> Server {
    Server::start(|path| match path {
        "/health/liveliness" => Do::Json(200, "\"I'm alive!\"".into()),
        _ => Do::Json(
            401,
            r#"{"error":{"message":"No api key passed in.","type":"auth_error","code":"401"}}"#
                .into(),
        ),
    })
}

/// `doctor` finds nothing to complain about, and a call with these settings is accepted.
pub(crate) fn works(newcomer: &Newcomer) {
    let doctor = newcomer.run(&["doctor"]);
    assert_eq!(doctor.code, Some(0), "{}", doctor.out);
    let chains = doctor
        .out
        .lines()
        .find(|line| line.contains(" chains    "))
        .unwrap_or_default();
    assert!(
        chains.starts_with("ok ") && chains.contains("every model can be reached"),
        "{}",
        doctor.out
    );
    assert!(!doctor.out.contains("warn  found"), "{}", doctor.out);
    call_is_accepted(newcomer);
}

/// A call in a little project makes it right.
fn call_is_accepted(newcomer: &Newcomer) {
    let project = newcomer.dir.path().join("project");
    fs::create_dir(&project).unwrap();
    fs::write(project.join("code.txt"), "wrong\n").unwrap();
    fs::write(project.join("test.sh"), "grep -q right code.txt\n").unwrap();
    let mut call = newcomer.command(&[
        "call",
        "tdd_green",
        "--arg",
        "test_path=test.sh",
        "--arg",
        "test_cmd=sh test.sh",
    ]);
    let output = call.current_dir(&project).output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(
        fs::read_to_string(project.join("code.txt")).unwrap(),
        "right\n"
    );
}

#[test]
fn ollama_alone_works_without_any_settings() {
    let server = ollama();
    let newcomer = Newcomer::new().set("SUPERVISOR_LOOK_AT", &server.url);
    call_is_accepted(&newcomer);
    let question = server.asked().into_iter();
    let mut question = question.filter(|asked| asked.path == "/v1/chat/completions");
    let question = question.next().expect("it was asked");
    assert!(
        question.body.contains("\"qwen3.6:27b\""),
        "the loaded model is asked: {}",
        question.body
    );
}

#[test]
fn ollama_alone_works_without_manual_settings() {
    let server = ollama();
    let newcomer = Newcomer::new().set("SUPERVISOR_LOOK_AT", &server.url);
    let said = newcomer.run(&["init", "--yes"]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert!(
        said.out.contains("Ollama at ") && said.out.contains("+default_chain = [\"qwen3.6:27b\"]"),
        "{}",
        said.out
    );
    assert!(
        !server.paths().contains(&"/v1/chat/completions".to_owned()),
        "no model is asked without leave"
    );
    let shown = newcomer.settings().replace(&server.url, "http://OLLAMA");
    insta::assert_snapshot!("init_ollama_alone", shown);
    works(&newcomer);
}

#[test]
fn lm_studio_alone_works() {
    let server = lm_studio();
    let newcomer = Newcomer::new().set("SUPERVISOR_LOOK_AT", &server.url);
    let said = newcomer.run(&["init", "--yes"]);
    assert!(
        said.code == Some(0) && said.out.contains("LM Studio at "),
        "{}{}",
        said.out,
        said.err
    );
    works(&newcomer);
}

#[test]
fn litellm_alone_works_with_its_key() {
    let server = open_litellm();
    let newcomer = Newcomer::new()
        .set("SUPERVISOR_LOOK_AT", &server.url)
        .set("LITELLM_API_KEY", "sk-canary-0123456789");
    let said = newcomer.run(&["init", "--yes"]);
    assert!(
        said.code == Some(0) && said.out.contains("LiteLLM at "),
        "{}{}",
        said.out,
        said.err
    );
    let settings = newcomer.settings();
    assert!(
        settings.contains("context = 131072") && settings.contains("LITELLM_API_KEY"),
        "{settings}"
    );
    assert!(
        !settings.contains("canary") && !settings.contains("openai/*"),
        "{settings}"
    );
    works(&newcomer);
    let asked = server
        .asked()
        .into_iter()
        .find(|asked| asked.path == "/v1/chat/completions")
        .expect("it was asked");
    assert!(
        asked.head.contains("sk-canary-0123456789"),
        "the key goes along"
    );
}

#[test]
fn claude_alone_works() {
    let (cloud, claude) = (
        Server::always(Do::Json(404, "{}".into())),
        FakeClaude::that_does("echo right > code.txt"),
    );
    let newcomer = Newcomer::new()
        .with(&claude)
        .set("SUPERVISOR_LOOK_AT", "none")
        .set("ANTHROPIC_BASE_URL", &cloud.url);
    let said = newcomer.run(&["init", "--yes"]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    insta::assert_snapshot!("init_claude_alone", newcomer.settings());
    works(&newcomer);
}

#[test]
fn without_login_only_claude_gets_the_key() {
    let status = r#"if [ -n "$ANTHROPIC_API_KEY" ]; then echo '{"loggedIn":true,"authMethod":"api_key","apiProvider":"firstParty"}'
        else echo '{"loggedIn":false,"authMethod":"none","apiProvider":"firstParty"}'; exit 1; fi"#;
    let (cloud, claude) = (
        Server::always(Do::Json(404, "{}".into())),
        FakeClaude::new("echo '2.1.325 (Claude Code)'", status),
    );
    let newcomer = Newcomer::new()
        .with(&claude)
        .set("SUPERVISOR_LOOK_AT", "none")
        .set("ANTHROPIC_BASE_URL", &cloud.url)
        .set("ANTHROPIC_API_KEY", "key-of-a-newcomer");
    let said = newcomer.run(&["init", "--yes"]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    let settings = newcomer.settings();
    assert!(
        settings.contains(r#"env_pass = ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"]"#),
        "{settings}"
    );
    assert!(!settings.contains("key-of-a-newcomer") && !said.out.contains("key-of-a-newcomer"));
    let doctor = newcomer.run(&["doctor"]);
    assert_eq!(doctor.code, Some(0), "{}", doctor.out);
}

#[test]
fn local_model_is_first_and_claude_verifies() {
    let (server, claude) = (lm_studio(), FakeClaude::logged_in());
    let newcomer = Newcomer::new().with(&claude);
    let said = newcomer.run(&["init", "--yes", "--at", &server.url]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    let settings = newcomer.settings();
    for part in [
        "verifier = \"sonnet\"",
        "default_chain = [\"devstral-small-2\", \"haiku-text\", \"sonnet-text\", \"sonnet\"]",
        "context = 65536",
    ] {
        assert!(settings.contains(part), "{part}: {settings}");
    }
    assert!(
        !settings.contains("nomic"),
        "what embeds is no worker: {settings}"
    );
    let explained = newcomer.run(&["explain", "spec"]);
    assert!(
        explained.out.contains("devstral-small-2") && explained.out.contains("sonnet"),
        "{}",
        explained.out
    );
}

#[test]
fn existing_file_is_kept_or_backed_up() {
    let server = ollama();
    let newcomer = Newcomer::new();
    fs::create_dir_all(newcomer.file().parent().unwrap()).unwrap();
    fs::write(newcomer.file(), "max_attempts = 2\n").unwrap();
    let said = newcomer.run(&["init", "--yes", "--at", &server.url]);
    assert_eq!(
        (said.code, newcomer.settings().as_str()),
        (Some(1), "max_attempts = 2\n"),
        "{}",
        said.out
    );
    assert!(
        said.out.contains("-max_attempts = 2\n") && said.out.contains("--force"),
        "{}",
        said.out
    );
    let said = newcomer.run(&["init", "--yes", "--force", "--at", &server.url]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert_eq!(
        fs::read_to_string(newcomer.file().with_extension("toml.bak")).unwrap(),
        "max_attempts = 2\n"
    );
    let again = newcomer.run(&["init", "--yes", "--at", &server.url]);
    assert!(
        again.code == Some(0) && again.out.contains("already"),
        "{}",
        again.out
    );
}

#[test]
fn nothing_found_names_the_remedy_and_writes_nothing() {
    let (closed, page) = (
        ClosedPort::hold(),
        Server::always(Do::Json(404, "<html>".into())),
    );
    let newcomer = Newcomer::new();
    let said = newcomer.run(&["init", "--yes", "--at", &closed.url, "--at", &page.url]);
    assert_eq!(said.code, Some(1), "{}{}", said.out, said.err);
    assert!(
        said.out
            .contains("no model server answers at `http://127.0.0.1"),
        "{}",
        said.out
    );
    assert!(
        said.out.contains("No model was found") && said.out.contains("--at http://host:port"),
        "{}",
        said.out
    );
    assert!(!newcomer.file().exists());
}

#[test]
fn gateway_without_key_is_named_and_passed_over() {
    let (gateway, server) = (litellm(), ollama());
    // The same server twice, under two names.
    let again = server.url.replace("127.0.0.1", "localhost");
    let newcomer = Newcomer::new();
    let said = newcomer.run(&[
        "init",
        "--yes",
        "--at",
        &gateway.url,
        "--at",
        &server.url,
        "--at",
        &again,
    ]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert!(
        said.out.contains("LiteLLM at ") && said.out.contains("$LITELLM_API_KEY"),
        "{}",
        said.out
    );
    assert_eq!(said.out.matches("Ollama at ").count(), 1, "{}", said.out);
    assert!(
        !newcomer.settings().contains("litellm"),
        "{}",
        newcomer.settings()
    );
}

#[test]
fn key_is_sent_to_the_gateway_only() {
    let (gateway, server) = (litellm(), lm_studio());
    let newcomer = Newcomer::new().set("LITELLM_API_KEY", "sk-canary-0123456789");
    let said = newcomer.run(&["init", "--yes", "--at", &gateway.url, "--at", &server.url]);
    let heads = |server: &Server| {
        server
            .asked()
            .into_iter()
            .map(|asked| asked.head)
            .collect::<String>()
    };
    assert!(heads(&gateway).contains("canary") && !heads(&server).contains("canary"));
    assert!(!format!("{}{}{}", said.out, said.err, newcomer.settings()).contains("canary"));
}

#[test]
fn model_that_fails_the_canary_is_left_out() {
    let server = ollama();
    let newcomer = Newcomer::new();
    let said = newcomer.run(&["init", "--yes", "--canary", "--at", &server.url]);
    assert!(
        said.code == Some(0) && said.out.contains("`qwen3.6:27b` answers"),
        "{}{}",
        said.out,
        said.err
    );
    assert!(server.paths().contains(&"/v1/chat/completions".to_owned()));

    let broken = Server::start(|path| match path {
        "/api/v0/models" => Do::Json(200, json!({"data": [{"id": "broken"}]}).to_string()),
        "/v1/chat/completions" => Do::Json(500, "{}".into()),
        _ => Do::Json(404, "{}".into()),
    });
    let newcomer = Newcomer::new();
    let said = newcomer.run(&["init", "--yes", "--canary", "--at", &broken.url]);
    assert!(
        said.code == Some(1) && said.out.contains("left out"),
        "{}{}",
        said.out,
        said.err
    );
}

#[test]
fn read_only_directory_is_named_with_a_remedy() {
    let server = ollama();
    let newcomer = Newcomer::new();
    let config = newcomer.dir.path().join("home/.config");
    // A file where the directory should be: also root cannot write there.
    fs::write(&config, "").unwrap();
    fs::set_permissions(&config, fs::Permissions::from_mode(0o400)).unwrap();
    let said = newcomer.run(&["init", "--yes", "--at", &server.url]);
    assert_eq!(said.code, Some(2), "{}{}", said.out, said.err);
    assert!(
        said.err.contains("models.toml` cannot be") && said.err.contains("--config FILE"),
        "{}",
        said.err
    );
}

#[test]
fn registering_runs_claudes_command_and_reports_failure() {
    let (server, claude) = (ollama(), FakeClaude::logged_in());
    let newcomer = Newcomer::new().with(&claude);
    let said = newcomer.run(&["init", "--yes", "--register", "--at", &server.url]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert!(
        said.out
            .contains("unexpected: mcp add --scope user supervisor -- "),
        "{}",
        said.out
    );
    assert!(
        said.out
            .contains("by hand: claude mcp add --scope user supervisor -- "),
        "{}",
        said.out
    );
}

#[test]
fn doctor_mentions_what_init_would_find() {
    let server = ollama();
    let newcomer = Newcomer::new().set("OLLAMA_HOST", server.url.trim_start_matches("http://"));
    // The usual ports are looked at as well, so that only what this server says is looked for.
    let doctor = newcomer.run(&["doctor"]);
    let line = doctor
        .out
        .lines()
        .find(|line| line.contains(&format!("Ollama at {}", server.url)))
        .unwrap_or_default();
    assert!(
        line.starts_with("warn  found") && line.contains("offers 2 models"),
        "{}",
        doctor.out
    );
    assert!(
        doctor
            .out
            .contains("`supervisor init` writes settings for it"),
        "{}",
        doctor.out
    );
}

#[test]
fn hosted_key_alone_is_used_with_its_price() {
    let newcomer = Newcomer::new()
        .set("SUPERVISOR_LOOK_AT", "none")
        .set("OPENAI_API_KEY", "sk-canary-0123456789");
    let said = newcomer.run(&["init", "--yes"]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    let settings = newcomer.settings();
    for part in [
        "default_chain = [\"gpt-5-mini\"]",
        "[backends.openai]",
        "api_key_env = \"OPENAI_API_KEY\"",
        "price_in = 0.25",
    ] {
        assert!(settings.contains(part), "{part}: {settings}");
    }
    assert!(!format!("{settings}{}{}", said.out, said.err).contains("canary"));
}

#[test]
fn unknown_window_is_measured_not_guessed() {
    let is_loaded = AtomicBool::new(false);
    let server = Server::start(move |path| match path {
        "/api/version" => Do::Json(200, r#"{"version":"0.21.0"}"#.into()),
        "/api/tags" => Do::Json(
            200,
            json!({"models": [{"name": "qwen3-coder:30b"}]}).to_string(),
        ),
        "/api/ps" if is_loaded.load(Ordering::SeqCst) => {
            let loaded = json!({"name": "qwen3-coder:30b", "context_length": 16_384});
            Do::Json(200, json!({"models": [loaded]}).to_string())
        }
        "/api/ps" => Do::Json(200, json!({"models": []}).to_string()),
        "/api/show" => Do::Json(200, json!({"capabilities": ["completion"]}).to_string()),
        "/v1/chat/completions" => {
            is_loaded.store(true, Ordering::SeqCst);
            Do::Json(200, answer())
        }
        _ => Do::Json(404, "{}".into()),
    });
    let newcomer = Newcomer::new();
    let said = newcomer.run(&["init", "--yes", "--at", &server.url]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert!(
        newcomer.settings().contains("context = 16384"),
        "{}",
        newcomer.settings()
    );
}

#[test]
fn ctrl_c_says_that_nothing_was_written() {
    let server = Server::start(|_| Do::Stall(Vec::new()));
    let newcomer = Newcomer::new().set("SUPERVISOR_LOOK_AT", &server.url);
    let mut command = newcomer.command(&["init", "--yes"]);
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until("the first question", || !server.paths().is_empty());
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert_eq!(said.trim(), "Cancelled. Nothing was written.");
    assert!(!newcomer.file().exists());
}

#[test]
fn doctor_fixes_stale_plugins_and_dead_registrations() {
    let newcomer = Newcomer::new().set("SUPERVISOR_LOOK_AT", "none");
    let home = newcomer.dir.path().join("home");
    fs::create_dir_all(home.join(".claude/plugins")).unwrap();
    let plugins = home.join(".claude/plugins/installed_plugins.json");
    let with_version = |version: &str| {
        let list = json!({"plugins": {"supervisor@supervisor": [{"version": version}]}});
        fs::write(&plugins, list.to_string()).unwrap();
        newcomer.run(&["doctor", "--fix"]).out
    };
    let said = with_version("0.0.9");
    assert!(
        said.contains("To fix: claude plugin update supervisor@supervisor\n"),
        "{said}"
    );
    let said = with_version("99.0.0");
    assert!(!said.contains("To fix: claude plugin"), "{said}");

    let entry = json!({"mcpServers": {"supervisor": {"command": "/no/such/program"}}});
    fs::write(home.join(".claude.json"), entry.to_string()).unwrap();
    let said = with_version(env!("CARGO_PKG_VERSION"));
    let removal = "To fix: claude mcp remove --scope user supervisor\n";
    assert_eq!(said.matches(removal).count(), 1, "{said}");
}

#[test]
fn uninstall_lists_first_and_keeps_logs() {
    let newcomer = Newcomer::new();
    let home = newcomer.dir.path().join("home");
    let entry = json!({"mcpServers": {"supervisor": {"command": "/bin/supervisor"}}});
    fs::write(home.join(".claude.json"), entry.to_string()).unwrap();
    fs::create_dir_all(home.join(".claude/plugins")).unwrap();
    let marketplaces = json!({"supervisor": {"source": {"source": "directory"}}});
    let known = home.join(".claude/plugins/known_marketplaces.json");
    fs::write(known, marketplaces.to_string()).unwrap();
    fs::create_dir_all(newcomer.file().parent().unwrap()).unwrap();
    fs::write(newcomer.file(), "max_attempts = 2\n").unwrap();
    let state = home.join(".local/state/supervisor");
    for folder in ["sessions", "results"] {
        fs::create_dir_all(state.join(folder)).unwrap();
    }
    // It removes its own program.
    let program = newcomer.dir.path().join("supervisor");
    crate::support::user_shell::copy_program(&program);
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command
            .arg("uninstall")
            .args(arguments)
            .env_clear()
            .envs(newcomer.env.iter().map(|(k, v)| (k, v)));
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        (output.status.code(), said)
    };
    let (code, said) = run(&[]);
    assert_eq!(code, Some(1), "{said}");
    for part in [
        "claude mcp remove --scope user supervisor",
        "claude plugin marketplace remove supervisor",
        "models.toml",
        "(kept without --data)",
        "Nothing was removed.",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(newcomer.file().exists() && program.exists());

    // There is no `claude` that could remove the registration.
    let (code, said) = run(&["--yes"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("run it by hand: claude mcp remove"), "{said}");
    assert!(!newcomer.file().exists() && !program.exists(), "{said}");
    assert!(state.join("sessions").exists() && !state.join("results").exists());
}

#[test]
fn ctrl_c_at_the_question_leaves_nothing_behind() {
    let server = ollama();
    let newcomer = Newcomer::new();
    let mut terminal = Terminal::start(newcomer.command(&["init", "--at", &server.url]), 200, 20);
    // The address was named, so that a server that is slow to answer is waited for, also on a busy machine.
    terminal.until("[Y/n]");
    terminal.ctrl_c();
    let (code, ..) = terminal.finish();
    assert_eq!(code, Some(130));
    assert!(!newcomer.file().exists());
    let config = newcomer.dir.path().join("home/.config");
    assert!(!config.exists(), "not even its directory");
}
