//! `claude` with a server that is not Anthropic's: no login for it, and no network for models of one's own.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::json;
use supervisor_models::{
    AskError, Backends, Env, FailureCause, SharedResources, Shell, ToolAccess,
};
use supervisor_process::{Launcher, SandboxMode, SandboxRules};
use supervisor_settings::TierKind;
use supervisor_test_support::upstream::{Says, Upstream};

use super::{Bench, result, run};

const LOGIN: &str = "sk-ant-oat-login-canary";

/// A bench of somebody who is logged in, in three ways.
fn logged_in(mut bench: Bench, url: &str, tier: TierKind, rules: SandboxRules) -> Bench {
    let home = bench.dir.path().join("home");
    fs::create_dir_all(home.join(".claude")).unwrap();
    fs::write(home.join(".claude/.credentials.json"), LOGIN).unwrap();
    let path = std::env::var("PATH").unwrap();
    let env: Env = [
        ("PATH", path.as_str()),
        ("HOME", home.to_str().unwrap()),
        ("CLAUDE_CONFIG_DIR", home.join(".claude").to_str().unwrap()),
        ("CLAUDE_CODE_OAUTH_TOKEN", LOGIN),
        ("ANTHROPIC_AUTH_TOKEN", LOGIN),
        ("HTTPS_PROXY", "http://proxy.invalid:1"),
    ]
    .into_iter()
    .collect();
    let launcher = Launcher::this_program().with_rules(rules);
    bench.backends = Backends::new(SharedResources::new(launcher, env, 1));
    bench.tier.backend.tier = tier;
    bench.tier.backend.base_url = Some(url.into());
    bench.tier.backend.env_pass = ["CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN"]
        .map(String::from)
        .to_vec();
    bench
}

fn edits() -> ToolAccess {
    ToolAccess::Edit {
        shell: Shell::UnlessKey(vec!["make".into(), "test".into()]),
    }
}

fn noted(bench: &Bench, what: &str) -> String {
    fs::read_to_string(bench.dir.path().join(what)).unwrap()
}

fn variable(env: &str, name: &str) -> Option<String> {
    let value = |line: &str| Some(line.strip_prefix(name)?.strip_prefix('=')?.to_owned());
    env.lines().find_map(value)
}

#[tokio::test]
async fn login_goes_to_anthropic_only() {
    for (url, tier, is_sent) in [
        ("https://gateway.example", TierKind::Subagent, false),
        ("https://anthropic.com.example", TierKind::Subagent, false),
        ("http://api.anthropic.com", TierKind::Subagent, false),
        ("http://localhost:9", TierKind::Local, false),
        ("https://api.anthropic.com", TierKind::Subagent, true),
    ] {
        let list = "ls -A \"$CLAUDE_CONFIG_DIR\" > \"$here/config\"; env > \"$here/env\"; cat > /dev/null; cat \"$here/out\"";
        let bench = Bench::script(list);
        fs::write(bench.dir.path().join("out"), run(&result(|_| ()))).unwrap();
        let mut bench = logged_in(bench, url, tier, SandboxRules::default());
        bench.ask.tool_access = edits();
        bench
            .ask()
            .await
            .unwrap_or_else(|failure| panic!("{url}: {failure:?}"));
        let env = noted(&bench, "env");
        assert_eq!(env.contains(LOGIN), is_sent, "{url}: {env}");
        let config = noted(&bench, "config");
        assert_eq!(config.contains(".credentials"), is_sent, "{url}: {config}");
        let key = variable(&env, "ANTHROPIC_API_KEY");
        assert_eq!(key.as_deref(), (!is_sent).then_some("local"), "{url}");
        let dir = variable(&env, "CLAUDE_CONFIG_DIR").unwrap();
        assert_eq!(fs::exists(dir).unwrap(), is_sent, "{url}: it is removed");
    }
}

#[tokio::test]
async fn configured_key_is_the_one_sent() {
    let bench = Bench::prints(&run(&result(|_| ())), "", 0);
    let mut bench = logged_in(
        bench,
        "https://gateway.example",
        TierKind::Subagent,
        SandboxRules::default(),
    );
    bench.tier.backend.api_key_env = Some("ANTHROPIC_AUTH_TOKEN".into());
    bench.ask().await.unwrap();
    let env = noted(&bench, "env");
    assert_eq!(
        variable(&env, "ANTHROPIC_AUTH_TOKEN").as_deref(),
        Some(LOGIN)
    );
    assert_eq!(variable(&env, "ANTHROPIC_API_KEY"), None);
}

#[tokio::test]
async fn local_agent_gets_few_tools_and_a_window() {
    let bench = Bench::prints(&run(&result(|_| ())), "", 0);
    let mut bench = logged_in(
        bench,
        "http://localhost:9/v0",
        TierKind::Local,
        SandboxRules::default(),
    );
    bench.ask.tool_access = edits();
    bench.ask.budget_usd = Some(0.5);
    (bench.tier.model.price_in, bench.tier.model.price_out) = (Some(0.0), Some(0.0));
    let reply = bench.ask().await.unwrap();
    assert_eq!(
        reply.usage.cost_usd,
        Some(0.0),
        "the program made up 0.0125"
    );
    let argv = noted(&bench, "argv");
    let argv: Vec<&str> = argv.lines().collect();
    let value = |name: &str| argv.iter().position(|a| *a == name).map(|at| argv[at + 1]);
    assert!(argv.contains(&"--bare"), "{argv:?}");
    assert_eq!(value("--tools"), Some("Read,Edit,Bash"));
    assert_eq!(value("--allowedTools"), Some("Bash(make test:*)"));
    for option in ["--json-schema", "--max-budget-usd"] {
        assert_eq!(value(option), None, "{option}");
    }
    let env = noted(&bench, "env");
    for (name, expected) in [
        ("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "8192"),
        ("CLAUDE_CODE_MAX_OUTPUT_TOKENS", "2048"),
        ("CLAUDE_CODE_ATTRIBUTION_HEADER", "0"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("ANTHROPIC_BASE_URL", "http://localhost/v0"),
    ] {
        assert_eq!(variable(&env, name).as_deref(), Some(expected), "{name}");
    }
    assert!(!env.contains("proxy.invalid"), "{env}");
}

#[tokio::test]
async fn https_server_of_local_models_is_refused() {
    let bench = Bench::prints(&run(&result(|_| ())), "", 0);
    let bench = logged_in(
        bench,
        "https://gpu.lan",
        TierKind::Local,
        SandboxRules::default(),
    );
    let failure = bench.ask().await.unwrap_err();
    assert_eq!(failure.why.cause(), FailureCause::Setup);
    let message = failure.why.to_string();
    assert!(
        message.contains("backends.claude.base_url") && message.contains("not supported"),
        "{message}"
    );
    assert!(!bench.dir.path().join("argv").exists());
}

#[tokio::test]
async fn local_agent_is_judged_by_its_tree() {
    let out_of_turns = result(|r| {
        r["subtype"] = json!("error_max_turns");
        r["is_error"] = json!(true);
        r.as_object_mut().unwrap().remove("structured_output");
    });
    let no_report = result(|r| drop(r.as_object_mut().unwrap().remove("structured_output")));
    let says_only = json!({"type": "assistant", "message": {"model": "m", "content": [{"type": "text", "text": "<tool_call>"}]}});
    for (stdout, code, note) in [
        (run(&out_of_turns), 1, "ended with an error"),
        (run(&no_report), 0, ""),
        (format!("{says_only}\n{no_report}\n"), 0, "called no tool"),
    ] {
        let bench = Bench::prints(&stdout, "", code);
        let mut bench = logged_in(
            bench,
            "http://localhost:9",
            TierKind::Local,
            SandboxRules::default(),
        );
        bench.ask.tool_access = edits();
        let reply = bench.ask().await.unwrap();
        let notes = reply.notes.join("\n");
        assert!(reply.body.is_null() && notes.contains(note), "{notes}");
    }
    // Nothing was done, so the reason counts.
    let bench = Bench::prints(&format!("{out_of_turns}\n"), "", 1);
    let mut bench = logged_in(
        bench,
        "http://localhost:9",
        TierKind::Local,
        SandboxRules::default(),
    );
    bench.ask.tool_access = edits();
    let why = bench.ask().await.unwrap_err().why;
    assert!(matches!(why, AskError::TurnsUsedUp { .. }), "{why:?}");
}

#[tokio::test]
async fn local_agent_reaches_nothing_but_its_server() {
    let upstream = Upstream::start([Says::json(200, &[], &json!({"said": "hello"}))]).await;
    // Loopback of this machine, not that of the agent.
    let port = upstream.url.rsplit(':').next().unwrap().to_owned();
    let bench = Bench::script(&format!(
        "cat > /dev/null; {} --exact {PROGRAM} --ignored --nocapture 2>&1; cat \"$here/out\"",
        std::env::current_exe().unwrap().display()
    ));
    fs::write(bench.dir.path().join("out"), run(&result(|_| ()))).unwrap();
    fs::write(bench.ask.root.join("port"), port).unwrap();
    let rules = SandboxRules {
        mode: SandboxMode::Auto,
        ..SandboxRules::default()
    };
    let mut bench = logged_in(bench, &upstream.url, TierKind::Local, rules);
    bench.ask.tool_access = edits();
    bench.ask().await.unwrap();
    assert_eq!(
        fs::read_to_string(bench.ask.root.join("found")).unwrap(),
        "by socket: hello\nby network: ConnectionRefused\n"
    );
    assert_eq!(upstream.requests().len(), 1);
}

const PROGRAM: &str = "claude_cli::own_server::program_without_a_network";

/// Runs in the sandbox: writes down what it reaches.
#[test]
#[ignore = "the program of `local_agent_reaches_nothing_but_its_server`"]
fn program_without_a_network() {
    let Some(socket) = std::env::var_os("ANTHROPIC_UNIX_SOCKET") else {
        return;
    };
    let mut stream = UnixStream::connect(socket).unwrap();
    let body = "{\"messages\":[]}";
    let request = format!(
        "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let by_socket = if answer.contains("hello") {
        "hello"
    } else {
        &answer
    };
    let port: u16 = fs::read_to_string("port").unwrap().parse().unwrap();
    let direct = TcpStream::connect_timeout(
        &SocketAddr::from(([127, 0, 0, 1], port)),
        Duration::from_secs(5),
    );
    let by_network = direct.map_err(|error| error.kind()).unwrap_err();
    fs::write(
        "found",
        format!("by socket: {by_socket}\nby network: {by_network:?}\n"),
    )
    .unwrap();
}
