//! The real `claude` program against a scripted API: what the recorded endings of `claude_cli` were taken from.
//! Needs `claude` (or `SUPERVISOR_TEST_CLAUDE`, a path) and python3; no account, no network.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use supervisor_models::{
    Ask, AskError, AskResult, AskStep, Backends, Env, FailureCause, SharedResources, Shell,
    ToolAccess,
};
use supervisor_process::Launcher;
use supervisor_settings::{BackendKind, Tier, TierKind};
use tokio_util::sync::CancellationToken;

use supervisor_test_support::programs::require;
use supervisor_test_support::tiers::tier;

pub(crate) const KEY: &str = "sk-ant-canary-0123456789abcdef";

#[tokio::test]
#[ignore = "needs claude"]
async fn run_edits_files_and_answers() {
    let script = json!([
        call("Read", &json!({"file_path": "${cwd}/a.txt"})),
        call(
            "Edit",
            &json!({"file_path": "${cwd}/a.txt", "old_string": "one", "new_string": "two"})
        ),
        structured(),
    ]);
    let mut bench = ClaudeSetup::new(&script);
    fs::write(bench.ask.root.join("a.txt"), "one\n").unwrap();
    bench.ask.tool_access = ToolAccess::Edit {
        shell: Shell::Never,
    };
    let reply = bench.ask().await.unwrap();
    assert_eq!(reply.body, json!({"n": 1}));
    assert_eq!(
        fs::read_to_string(bench.ask.root.join("a.txt")).unwrap(),
        "two\n"
    );
    assert_eq!(reply.model_answered, "claude-sonnet-4-6", "{reply:?}");
    assert!(reply.usage.cost_usd.unwrap() > 0.0 && reply.usage.tokens_in.unwrap() > 0);
    let tools: Vec<_> = bench
        .steps()
        .iter()
        .filter_map(|s| {
            if let AskStep::Tool { name, .. } = s {
                Some(name.clone())
            } else {
                None
            }
        })
        .collect();
    assert_eq!(tools, ["Read", "Edit"]);
    let asked = bench.asked();
    let mut offered: Vec<_> = asked[0]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t["name"].as_str().unwrap())
        .collect();
    offered.sort_unstable();
    assert_eq!(
        offered,
        ["Edit", "Glob", "Grep", "Read", "StructuredOutput", "Write"]
    );
    assert!(
        asked[0]["system"]
            .to_string()
            .contains("the rules of this house")
    );
    assert!(!bench.log().contains("canary"));
}

#[tokio::test]
#[ignore = "needs claude"]
async fn run_without_a_structured_answer_fails() {
    let bench = ClaudeSetup::new(&json!([say("All done, everything passes!")]));
    let failure = bench.ask().await.unwrap_err();
    assert!(
        matches!(failure.why, AskError::Malformed { .. }),
        "{failure:?}"
    );
    assert!(
        failure.usage.cost_usd.unwrap() > 0.0,
        "it is paid for all the same"
    );
}

#[tokio::test]
#[ignore = "needs claude"]
async fn answer_that_never_fits_the_schema_fails() {
    let bench = ClaudeSetup::new(&json!([call("StructuredOutput", &json!({"n": "one"}))]));
    let failure = bench.ask().await.unwrap_err();
    assert!(
        matches!(&failure.why, AskError::Malformed { why, .. } if why.contains("never fitted")),
        "{failure:?}"
    );
}

#[tokio::test]
#[ignore = "needs claude"]
async fn rate_limits_differ_from_other_refusals() {
    for (error, cause, names) in [
        (
            json!({"status": 429, "message": "slow down", "headers": {"retry-after": "600"}}),
            FailureCause::Quota,
            "slow down",
        ),
        (
            json!({"status": 429, "message": "slow down"}),
            FailureCause::Quota,
            "another backend",
        ),
        (
            json!({"status": 529, "message": "overloaded"}),
            FailureCause::Infra,
            "529",
        ),
        (
            json!({"status": 401, "message": "bad key"}),
            FailureCause::Setup,
            "$TEST_KEY",
        ),
        (
            json!({"status": 404, "message": "model: nope"}),
            FailureCause::Setup,
            "models.\"claude-sonnet-4-6\".id",
        ),
        (
            json!({"status": 400, "message": "prompt is too long: 9 tokens > 8 maximum"}),
            FailureCause::Incapable,
            "context",
        ),
        (
            json!({"status": 400, "message": "Your credit balance is too low"}),
            FailureCause::Quota,
            "credit",
        ),
    ] {
        let bench = ClaudeSetup::new(&json!([{"error": error}]));
        let failure = bench.ask().await.unwrap_err();
        assert_eq!(failure.why.cause(), cause, "{error}: {failure:?}");
        assert!(
            failure.why.message().contains(names),
            "{error}: {}",
            failure.why.message()
        );
        assert!(!format!("{failure:?}").contains("canary"));
    }
}

#[tokio::test]
#[ignore = "needs claude"]
async fn retries_are_bounded_and_reported_as_progress() {
    let bench = ClaudeSetup::new(&json!([{"error": {"status": 500, "message": "boom"}}]));
    let failure = bench.ask().await.unwrap_err();
    assert!(
        matches!(failure.why, AskError::ServerFailed { status: 500, .. }),
        "{failure:?}"
    );
    let retries = bench
        .steps()
        .iter()
        .filter(|step| matches!(step, AskStep::Retrying { .. }))
        .count();
    assert_eq!(retries, 2, "{:?}", bench.steps());
}

#[tokio::test]
#[ignore = "needs claude"]
async fn commands_and_file_references_in_tasks_are_text() {
    let mut bench = ClaudeSetup::new(&json!([structured()]));
    let secret = bench.dir.path().join("secret.txt");
    fs::write(&secret, "never-send-this\n").unwrap();
    bench.ask.prompt = format!("/clear\n@{0} see @{0} and\n@\"{0}\"\n", secret.display());
    assert_eq!(bench.ask().await.unwrap().body, json!({"n": 1}));
    let sent = bench.log();
    assert!(
        sent.contains("/clear") && sent.contains("secret.txt") && !sent.contains("never-send-this")
    );
    let names: Vec<_> = bench.asked()[0]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t["name"].clone())
        .collect();
    assert_eq!(
        names,
        ["StructuredOutput"],
        "without power there is nothing to act with"
    );
}

#[tokio::test]
#[ignore = "needs claude"]
async fn without_a_login_the_remedy_is_named() {
    let mut bench = ClaudeSetup::new(&json!([structured()]));
    bench.tier.backend.api_key_env = None;
    bench.tier.backend.base_url = None;
    let failure = bench.ask().await.unwrap_err();
    assert!(
        matches!(failure.why, AskError::NotLoggedIn { .. }),
        "{failure:?}"
    );
    assert!(
        failure.why.message().contains("log in"),
        "{}",
        failure.why.message()
    );
}

#[tokio::test]
#[ignore = "needs claude"]
async fn turns_and_money_end_a_run() {
    let endless = json!([call("Glob", &json!({"pattern": "*"}))]);
    let mut bench = ClaudeSetup::new(&endless);
    bench.ask.tool_access = ToolAccess::ReadOnly;
    bench.ask.max_turns = std::num::NonZeroU32::new(3);
    let failure = bench.ask().await.unwrap_err();
    assert!(
        matches!(failure.why, AskError::TurnsUsedUp { turns: 3, .. }),
        "{failure:?}"
    );
    bench.ask.max_turns = None;
    bench.ask.budget_usd = Some(0.001);
    let failure = bench.ask().await.unwrap_err();
    assert_eq!(failure.why.cause(), FailureCause::Budget, "{failure:?}");
}

#[tokio::test]
#[ignore = "needs claude"]
async fn background_process_ends_with_the_run() {
    let script = json!([
        call(
            "Bash",
            &json!({"command": "sh leak.sh", "description": "leave something"})
        ),
        structured()
    ]);
    let mut bench = ClaudeSetup::new(&script);
    bench.leaks();
    let reply = bench.ask().await.unwrap();
    assert!(
        reply.notes.iter().any(|note| note.contains("left behind")),
        "{:?}",
        reply.notes
    );
    bench.leak_is_gone().await;
}

#[tokio::test]
#[ignore = "needs claude"]
async fn cancelled_command_leaves_nothing_behind() {
    let script = json!([
        call(
            "Bash",
            &json!({"command": "sh leak.sh forever", "description": "hang"})
        ),
        structured()
    ]);
    let mut bench = ClaudeSetup::new(&script);
    bench.leaks();
    let (answered, ()) = tokio::join!(bench.ask(), async {
        until("the command to run", || {
            bench.ask.root.join("leak.pid").exists()
        })
        .await;
        bench.stop.cancel();
    });
    assert_eq!(answered.unwrap_err().why, AskError::Cancelled);
    bench.leak_is_gone().await;
}

pub(crate) fn call(tool: &str, input: &Value) -> Value {
    json!({"blocks": [{"type": "tool_use", "name": tool, "input": input}]})
}

fn say(text: &str) -> Value {
    json!({"blocks": [{"type": "text", "text": text}]})
}

fn structured() -> Value {
    call("StructuredOutput", &json!({"n": 1}))
}

pub(crate) struct ClaudeSetup {
    pub(crate) dir: tempfile::TempDir,
    api: Child,
    backends: Backends,
    pub(crate) tier: Tier,
    ask: Ask,
    stop: CancellationToken,
    steps: Arc<Mutex<Vec<AskStep>>>,
}

impl ClaudeSetup {
    pub(crate) fn new(script: &Value) -> Self {
        let claude = std::env::var("SUPERVISOR_TEST_CLAUDE").unwrap_or_else(|_| "claude".into());
        require(&[claude.as_str(), "python3"]);
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("script.json"), script.to_string()).unwrap();
        let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop/scripted_api.py");
        let mut api = Command::new("python3")
            .arg(server)
            .arg(dir.path().join("script.json"))
            .arg("--log")
            .arg(dir.path().join("log"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(api.stdout.take().unwrap())
            .read_line(&mut url)
            .unwrap();

        let (root, home) = (dir.path().join("project"), dir.path().join("home"));
        fs::create_dir(&root).unwrap();
        fs::create_dir(&home).unwrap();
        let path = std::env::var("PATH").unwrap();
        let env: Env = [
            ("PATH", path.as_str()),
            ("HOME", home.to_str().unwrap()),
            ("TEST_KEY", KEY),
            ("LANG", "C.UTF-8"),
        ]
        .into_iter()
        .collect();
        let mut tier = tier("claude", BackendKind::ClaudeCli, "claude-sonnet-4-6");
        tier.backend.program = Some(claude);
        tier.backend.tier = TierKind::Subagent;
        tier.backend.base_url = Some(url.trim().into());
        tier.backend.api_key_env = Some("TEST_KEY".into());
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false});
        let mut ask = Ask::new(
            "the rules of this house",
            "do it",
            schema,
            root.canonicalize().unwrap(),
        );
        ask.limit = Duration::from_secs(240);
        let backends = Backends::new(SharedResources::new(
            Launcher::at(env!("CARGO_BIN_EXE_supervisor")),
            env,
            2,
        ));
        Self {
            dir,
            api,
            backends,
            tier,
            ask,
            stop: CancellationToken::new(),
            steps: Arc::default(),
        }
    }

    /// A script in the project that leaves a process in a session of its own, deaf to interrupts.
    fn leaks(&mut self) {
        let script = "(trap '' INT TERM; exec setsid sh -c 'echo $$ > leak.new; mv leak.new leak.pid; exec sleep 1000') > /dev/null 2>&1 &\n\
                      while [ ! -e leak.pid ]; do sleep 0.05; done\n[ -z \"$1\" ] || sleep 1000\n";
        fs::write(self.ask.root.join("leak.sh"), script).unwrap();
        self.ask.tool_access = ToolAccess::Edit {
            shell: Shell::Always(vec!["sh".into(), "leak.sh".into()]),
        };
    }

    async fn leak_is_gone(&self) {
        let pid = fs::read_to_string(self.ask.root.join("leak.pid")).unwrap();
        until("the process to be gone", || {
            !Path::new("/proc").join(pid.trim()).exists()
        })
        .await;
    }

    async fn ask(&self) -> AskResult {
        let backend = self.backends.of(&self.tier).unwrap();
        let steps = Arc::clone(&self.steps);
        backend
            .ask(&self.ask, &self.tier, &self.stop, &move |step| {
                steps.lock().unwrap().push(step);
            })
            .await
    }

    fn steps(&self) -> Vec<AskStep> {
        self.steps.lock().unwrap().clone()
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    /// The bodies of what the API was asked.
    pub(crate) fn asked(&self) -> Vec<Value> {
        let lines = self.log();
        let entries = lines
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        entries
            .map(|entry| entry["body"].clone())
            .filter(|body| body["messages"].is_array() && !body["tools"].is_null())
            .collect()
    }
}

impl Drop for ClaudeSetup {
    fn drop(&mut self) {
        let _ = self.api.kill();
        let _ = self.api.wait();
    }
}

async fn until(what: &str, done: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !done() {
        assert!(Instant::now() < deadline, "waited for {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
