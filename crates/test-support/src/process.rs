//! Programs for tests to start, below this test program as the shim.

use std::time::{Duration, Instant};

use supervisor_process::{
    ChildKind, CommandSpec, Confinement, End, Launcher, SandboxLevel, SandboxMode, SandboxRules,
};
use tokio_util::sync::CancellationToken;

pub fn launcher() -> Launcher {
    Launcher::this_program()
}

/// A safety net, not a measure: a loaded machine is slow, a hang is longer.
pub const LONG: Duration = Duration::from_secs(60);

pub fn sh(script: &str) -> CommandSpec {
    let mut spec = CommandSpec::new(["sh", "-c", script], "/");
    spec.env
        .insert("PATH".into(), std::env::var_os("PATH").unwrap());
    spec.limit = LONG;
    spec
}

/// Written by another process: a child that another test starts meanwhile would hold our descriptor for a moment, and a
/// file open for writing cannot be executed.
pub fn write_program(path: &std::path::Path, text: &str) {
    let script = "printf %s \"$1\" > \"$2\" && chmod 755 \"$2\"";
    let status = std::process::Command::new("sh")
        .args(["-c", script, "sh", text])
        .arg(path)
        .status()
        .unwrap();
    assert!(status.success());
}

/// Polls until the condition holds; a hang ends the test.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) -> Duration {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < LONG, "still not so: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
    began.elapsed()
}

/// Figures belong in the output of a test run; `--nocapture` shows them.
#[allow(clippy::print_stderr, reason = "tests talk to the terminal")]
pub fn say(text: &str) {
    eprintln!("{text}");
}

/// The strongest sandbox that this system allows.
pub async fn sandbox_level() -> SandboxLevel {
    let rules = SandboxRules {
        mode: SandboxMode::Auto,
        ..SandboxRules::default()
    };
    let dir = tempfile::tempdir().unwrap();
    let mut spec = CommandSpec::new(["true"], dir.path());
    spec.env
        .insert("PATH".into(), std::env::var_os("PATH").unwrap());
    spec.confine = Some(Confinement::new(ChildKind::Tests));
    let finished = launcher()
        .with_rules(rules)
        .run(spec, &CancellationToken::new())
        .await;
    assert_eq!(finished.end, End::Exited(0), "{finished:?}");
    finished.sandbox.level
}
