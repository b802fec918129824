//! `claude` is asked about itself: what is missing, mute, broken or logged out is told apart.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use supervisor_models::Env;
use supervisor_models::installed;
use supervisor_models::installed::{InstalledAgent, Login, NotUsable};
use supervisor_process::Launcher;
use tokio_util::sync::CancellationToken;

use supervisor_test_support::fake_claude::FakeClaude;
use supervisor_test_support::settings::claude;

const PATIENT: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(300);
const VERSION: &str = "echo '2.1.197 (Claude Code)'";

async fn ask(fake: &FakeClaude, limit: Duration) -> Result<InstalledAgent, NotUsable> {
    let home = fake.home().display().to_string();
    let env = Env::from_iter([
        ("PATH", fake.path()),
        ("HOME", home),
        ("LC_ALL", "C".into()),
        ("ANTHROPIC_API_KEY", "canary-1".into()),
        ("MY_SECRET", "canary-2".into()),
        ("CLAUDE_CODE_SIMPLE", "canary-3".into()),
    ]);
    let launcher = Launcher::this_program();
    installed::query(&claude(), &env, &launcher, limit, &CancellationToken::new()).await
}

#[tokio::test]
async fn login_is_reported_without_personal_data() {
    let fake = FakeClaude::logged_in();
    let seen = ask(&fake, PATIENT).await.unwrap();
    assert_eq!(seen.program, fake.program());
    assert_eq!(seen.version, "2.1.197 (Claude Code)");
    assert_eq!(
        seen.login,
        Login::In {
            method: "claude.ai".into(),
            provider: "firstParty".into()
        }
    );

    let given = fake.environments();
    assert!(
        given.contains("HOME=") && given.contains("LC_ALL=C"),
        "{given}"
    );
    assert!(!given.contains("canary"), "{given}");
    assert_eq!(
        fake.ran_in(),
        "/",
        "in the project its settings would be read"
    );
}

#[tokio::test]
async fn logged_out_is_an_answer() {
    assert_eq!(
        ask(&FakeClaude::logged_out(), PATIENT).await.unwrap().login,
        Login::Out
    );
}

#[tokio::test]
async fn version_without_login_status_is_usable() {
    let old = FakeClaude::new(
        "echo '1.0.3 (Claude Code)'",
        "echo \"error: unknown command 'auth'\" >&2; exit 1",
    );
    let seen = ask(&old, PATIENT).await.unwrap();
    assert_eq!(
        (seen.version.as_str(), seen.login),
        ("1.0.3 (Claude Code)", Login::Unknown)
    );
}

#[tokio::test]
async fn hanging_program_is_ended_and_named() {
    let hangs = FakeClaude::new(VERSION, "sleep 1000");
    let trouble = ask(&hangs, SHORT).await.unwrap_err();
    // On a slow machine the version may be late too; either way it is the silence that is reported.
    assert!(matches!(&trouble, NotUsable::Hangs { .. }), "{trouble}");
    let mute = FakeClaude::new("sleep 1000", "sleep 1000");
    let trouble = ask(&mute, SHORT).await.unwrap_err();
    assert!(
        matches!(
            &trouble,
            NotUsable::Hangs {
                asked: "--version",
                ..
            }
        ),
        "{trouble}"
    );
}

#[tokio::test]
async fn broken_program_says_why() {
    let crashes = FakeClaude::new(
        "echo; echo 'Node.js 12 is too old\u{1b}[0m' >&2; exit 3",
        "exit 3",
    );
    let trouble = ask(&crashes, PATIENT).await.unwrap_err().to_string();
    assert!(
        trouble.ends_with("failed: exit code 3, Node.js 12 is too old\\u{1b}[0m"),
        "{trouble}"
    );

    let killed = FakeClaude::new("kill -9 $$", "kill -9 $$");
    assert!(
        ask(&killed, PATIENT)
            .await
            .unwrap_err()
            .to_string()
            .contains("signal 9")
    );

    let flood = FakeClaude::new(VERSION, "yes '{\"loggedIn\":true}' | head -c 20000000");
    assert_eq!(ask(&flood, PATIENT).await.unwrap().login, Login::Unknown);

    let no_interpreter = FakeClaude::logged_in();
    std::fs::write(no_interpreter.program(), "#!/no/such/interpreter\n").unwrap();
    assert!(matches!(
        ask(&no_interpreter, PATIENT).await.unwrap_err(),
        NotUsable::Broken { .. }
    ));
}

#[tokio::test]
async fn missing_and_not_executable_differ() {
    let fake = FakeClaude::logged_in();
    std::fs::set_permissions(fake.program(), std::fs::Permissions::from_mode(0o644)).unwrap();
    let path = fake.program().display().to_string();
    assert_eq!(
        ask(&fake, PATIENT).await.unwrap_err(),
        NotUsable::NotExecutable(path)
    );
    std::fs::remove_file(fake.program()).unwrap();
    assert_eq!(
        ask(&fake, PATIENT).await.unwrap_err(),
        NotUsable::NotFound("claude".into())
    );
}

#[tokio::test]
async fn cancelled_check_ends_at_once() {
    let hangs = FakeClaude::new("sleep 1000", "sleep 1000");
    let env = Env::from_iter([("PATH", hangs.path())]);
    let stop = CancellationToken::new();
    stop.cancel();
    let launcher = Launcher::this_program();
    let seen = installed::query(&claude(), &env, &launcher, Duration::from_secs(600), &stop).await;
    assert_eq!(seen.unwrap_err(), NotUsable::Cancelled);
}

#[tokio::test]
async fn check_uses_the_environment_of_a_worker() {
    let status = r#"[ "$ANTHROPIC_API_KEY" = canary-4 ] && [ "$ANTHROPIC_BASE_URL" = https://eu.anthropic.com ] &&
        echo '{"loggedIn":true,"authMethod":"api_key","apiProvider":"firstParty"}'"#;
    let fake = FakeClaude::new(VERSION, status);
    let mut backend = claude();
    backend.api_key_env = Some("CLAUDE_WORK_KEY".into());
    backend.base_url = Some("https://eu.anthropic.com".into());
    let env = Env::from_iter([
        ("PATH", fake.path()),
        ("CLAUDE_WORK_KEY", "canary-4".into()),
    ]);
    let launcher = Launcher::this_program();
    let seen = installed::query(
        &backend,
        &env,
        &launcher,
        PATIENT,
        &CancellationToken::new(),
    )
    .await
    .unwrap();
    assert_eq!(
        seen.login,
        Login::In {
            method: "api_key".into(),
            provider: "firstParty".into()
        }
    );
}

#[tokio::test]
async fn foreign_server_needs_no_login() {
    let fake = FakeClaude::new(VERSION, "echo '{\"loggedIn\":true}'");
    let mut backend = claude();
    backend.base_url = Some("http://localhost:11434".into());
    let env = Env::from_iter([("PATH", fake.path())]);
    let launcher = Launcher::this_program();
    let stop = CancellationToken::new();
    let seen = installed::query(&backend, &env, &launcher, PATIENT, &stop).await;
    assert_eq!(seen.unwrap().login, Login::NotNeeded);
}
