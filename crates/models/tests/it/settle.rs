//! Which backend serves a tier, by what is set up on the machine.

use serde_json::json;
use supervisor_models::{Backends, Env, SharedResources};
use supervisor_process::Launcher;
use supervisor_settings::{BackendKind, BackendSettings, Tier, TierKind, Worker};
use supervisor_test_support::fake_claude::FakeClaude;
use supervisor_test_support::tiers::tier;
use supervisor_test_support::upstream::{Says, Upstream};
use tokio_util::sync::CancellationToken;

const KEY: (&str, &str) = ("ANTHROPIC_API_KEY", "sk-ant-canary-0123456789abcdef");

/// `sonnet` by the program, else by the API.
fn sonnet(claude: Option<&FakeClaude>) -> Tier {
    let mut tier = tier("claude", BackendKind::ClaudeCli, "sonnet");
    tier.backend.program = Some(claude.map_or("no-such-claude".into(), |claude| {
        claude.program().to_str().unwrap().into()
    }));
    let mut api = BackendSettings::named("anthropic", BackendKind::Anthropic, TierKind::Subagent);
    api.api_key_env = Some(KEY.0.into());
    tier.instead = Some(Box::new(api));
    tier
}

/// The backend that serves it, or why none does.
async fn settle(mut tier: Tier, home: &str, key: bool) -> Result<(String, Worker), String> {
    let vars = [("PATH", "/usr/bin:/bin"), ("HOME", home)];
    let env: Env = vars.into_iter().chain(key.then_some(KEY)).collect();
    let shared = SharedResources::new(Launcher::this_program(), env, 1);
    let outage = Backends::new(shared)
        .settle(&mut tier, &CancellationToken::new())
        .await;
    match outage {
        None => Ok((tier.backend.name.clone(), tier.worker())),
        Some(outage) => Err(format!("{}; {}", outage.why, outage.hint)),
    }
}

#[tokio::test]
async fn login_serves_before_key_and_key_without_login() {
    let (logged_in, logged_out) = (FakeClaude::logged_in(), FakeClaude::logged_out());
    let agent = Ok(("claude".to_owned(), Worker::Agent));
    let api = Ok(("anthropic".to_owned(), Worker::Text));
    let home = logged_in.home();
    let home = home.to_str().unwrap();
    for (name, claude, key, served) in [
        ("login only", Some(&logged_in), false, &agent),
        ("login and key", Some(&logged_in), true, &agent),
        ("key and no login", Some(&logged_out), true, &api),
        ("key only", None, true, &api),
        // Without a choice the program itself says that nobody is logged in.
        ("no login, no key", Some(&logged_out), false, &agent),
    ] {
        assert_eq!(&settle(sonnet(claude), home, key).await, served, "{name}");
    }
    let why = settle(sonnet(None), home, false).await.unwrap_err();
    assert!(why.contains("`no-such-claude` is not on the PATH"), "{why}");
}

#[tokio::test]
async fn login_file_is_enough() {
    let claude = FakeClaude::logged_out();
    let dir = claude.home().join(".claude");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join(".credentials.json"), "{}").unwrap();
    let home = claude.home();
    let served = settle(sonnet(Some(&claude)), home.to_str().unwrap(), true).await;
    assert_eq!(served, Ok(("claude".into(), Worker::Agent)));
    assert_eq!(claude.environments(), "", "the program was not started");
}

#[tokio::test]
async fn server_that_refuses_here_is_skipped() {
    let upstream = Upstream::start([Says::Silence]).await;
    let mut local = tier("litellm", BackendKind::Openai, "m");
    local.backend.base_url = Some(upstream.url.clone());
    assert!(
        settle(local.clone(), "/", false).await.is_ok(),
        "a slow server is asked"
    );
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    local.backend.base_url = Some(format!("http://{address}"));
    let why = settle(local.clone(), "/", false).await.unwrap_err();
    assert!(
        why.contains("the connection was refused; start it"),
        "{why}"
    );
    // Whether a far server answers is found out by asking it.
    local.backend.base_url = Some("http://model-server.invalid:9".into());
    assert!(settle(local, "/", false).await.is_ok());
}

#[tokio::test]
async fn agent_without_a_tool_template_is_skipped() {
    let claude = FakeClaude::logged_out();
    for (path, body, is_skipped) in [
        (
            "/props",
            json!({"chat_template_caps": {"supports_tools": false}}),
            true,
        ),
        (
            "/props",
            json!({"chat_template_caps": {"supports_tools": true}}),
            false,
        ),
        ("/api/show", json!({"capabilities": ["completion"]}), true),
        (
            "/api/show",
            json!({"capabilities": ["completion", "tools"]}),
            false,
        ),
        ("/nothing", json!({}), false),
    ] {
        let upstream = Upstream::answering(move |request| match request.head.contains(path) {
            true => Says::json(200, &[], &body),
            false => Says::json(404, &[], &json!({"error": "no"})),
        })
        .await;
        let mut local = tier("own", BackendKind::ClaudeCli, "m");
        local.backend.program = Some(claude.program().to_str().unwrap().into());
        local.backend.base_url = Some(upstream.url.clone());
        let settled = settle(local.clone(), "/", false).await;
        assert_eq!(settled.is_err(), is_skipped, "{path}: {settled:?}");
        if let Err(why) = settled {
            assert!(why.contains("`models.m.worker` to \"text\""), "{why}");
        }
        // A text worker needs none.
        local.model.worker = Some(Worker::Text);
        assert!(settle(local, "/", false).await.is_ok());
    }
    assert_eq!(claude.environments(), "", "no login is asked for");
}
