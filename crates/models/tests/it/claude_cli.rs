//! What comes of asking Claude through its program, for every way it was seen to end. The program here is a script that
//! prints what was recorded, or misbehaves.

mod own_server;
mod rows;
mod text;

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;
use supervisor_models::{
    Ask, AskError, AskResult, AskStep, Backends, Edits, Env, FailureCause, SharedResources, Usage,
};
use supervisor_process::Launcher;
use supervisor_settings::{BackendKind, Tier};
use tokio_util::sync::CancellationToken;

use supervisor_test_support::tiers::tier;

use rows::{Ends, more_rows, rows};
use supervisor_test_support::agent::{result, run, write_program};

const CANARY: &str = "sk-ant-canary-0123456789abcdef";

#[tokio::test]
async fn every_ending_has_cause_blame_and_message() {
    for row in rows().into_iter().chain(more_rows()) {
        let bench = Bench::prints(&row.stdout, row.stderr, row.code);
        match (bench.ask().await, row.ends) {
            (Ok(reply), Ends::Answer(note)) => {
                assert_eq!(reply.body, json!({"n": 1}), "{}", row.name);
                let notes = reply.notes.join("\n");
                assert!(notes.contains(note), "{}: {notes}", row.name);
            }
            (Err(failure), Ends::Fails(cause, blame, names)) => {
                let why = &failure.why;
                assert_eq!(
                    (why.cause(), why.blame()),
                    (cause, blame),
                    "{}: {why:?}",
                    row.name
                );
                let message = why.message();
                assert!(
                    message.contains(names),
                    "{}: `{message}` does not name `{names}`",
                    row.name
                );
                assert!(message.len() < 900, "{}: {message}", row.name);
            }
            (answered, _) => panic!("{}: {answered:?}", row.name),
        }
    }
}

#[test]
fn no_row_of_the_table_is_missing() {
    let names: std::collections::BTreeSet<_> = rows()
        .iter()
        .map(|row| row.name.split(": ").next().unwrap().to_owned())
        .collect();
    assert_eq!(names.len(), 18, "{names:#?}");
    let api = rows()
        .iter()
        .filter(|row| row.name.starts_with("API error: "))
        .count();
    assert!(api >= 11, "one for each status and failure listed, {api}");
}

#[tokio::test]
async fn cost_tokens_and_model_are_read() {
    let reply = Bench::prints(&run(&result(|_| ())), "", 0)
        .ask()
        .await
        .unwrap();
    assert_eq!(
        reply.usage,
        Usage {
            tokens_in: Some(3600),
            tokens_out: Some(20),
            cost_usd: Some(0.0125)
        }
    );
    assert_eq!(reply.model_answered, "claude-x");
    // A failed run is paid for as well; one that never started is not; one that was cut off is unknown.
    let row = rows()
        .into_iter()
        .find(|row| row.name == "`--max-turns N` reached")
        .unwrap();
    assert_eq!(
        Bench::prints(&row.stdout, "", 1)
            .ask()
            .await
            .unwrap_err()
            .usage
            .cost_usd,
        Some(0.0125)
    );
    assert_eq!(
        Bench::prints("", "error: unknown option", 1)
            .ask()
            .await
            .unwrap_err()
            .usage,
        Usage::ZERO
    );
    let init = "{\"type\":\"system\",\"subtype\":\"init\"}\n";
    assert_eq!(
        Bench::prints(init, "", 1).ask().await.unwrap_err().usage,
        Usage::default()
    );
}

#[tokio::test]
async fn prompt_goes_to_stdin_and_key_to_environment() {
    let mut bench = Bench::prints(&run(&result(|_| ())), "", 0);
    bench.tier.backend.api_key_env = Some("MY_KEY".into());
    bench.ask.prompt = format!("/review @/etc/passwd {}", "long ".repeat(100_000));
    let reply = bench.ask().await.unwrap();
    let read = fs::read_to_string(bench.dir.path().join("stdin")).unwrap();
    let message: serde_json::Value = serde_json::from_str(&read).unwrap();
    assert_eq!(message["message"]["content"][0]["text"], bench.ask.prompt);
    let argv = fs::read_to_string(bench.dir.path().join("argv")).unwrap();
    assert!(
        argv.contains("--strict-mcp-config")
            && !argv.contains("long long")
            && !argv.contains("canary"),
        "{argv}"
    );
    let env = fs::read_to_string(bench.dir.path().join("env")).unwrap();
    assert_eq!(
        env.matches("canary").count(),
        1,
        "only ANTHROPIC_API_KEY holds it"
    );
    assert!(
        env.contains("ANTHROPIC_API_KEY=sk-ant-canary")
            && env.contains("CLAUDE_CODE_MAX_RETRIES=2")
    );
    assert!(
        !env.contains("OTHER_SECRET") && !env.contains("CLAUDECODE"),
        "{env}"
    );
    assert!(!read.contains("canary") && !format!("{reply:?}").contains("canary"));
    let cwd = fs::read_to_string(bench.dir.path().join("cwd")).unwrap();
    assert_eq!(cwd.trim(), bench.ask.root.to_str().unwrap());
}

#[tokio::test]
async fn model_is_an_argument() {
    let bench = Bench::prints(&run(&result(|_| ())), "", 0);
    bench.ask().await.unwrap();
    let argv = fs::read_to_string(bench.dir.path().join("argv")).unwrap();
    let argv: Vec<&str> = argv.lines().collect();
    let flags: Vec<usize> = (0..argv.len()).filter(|n| argv[*n] == "--model").collect();
    assert_eq!(flags.len(), 1, "{argv:?}");
    assert_eq!(argv[flags[0] + 1], "claude-x", "{argv:?}");
}

#[tokio::test]
async fn output_without_an_envelope_is_kept() {
    let said = format!("Sure, I have done it with {CANARY}.\n");
    let failure = Bench::prints(&said, "", 0).ask().await.unwrap_err();
    assert!(
        failure.answer.contains("Sure, I have done it") && !failure.answer.contains(CANARY),
        "{failure:?}"
    );
}

#[tokio::test]
async fn unconfigured_key_is_not_passed_on() {
    let bench = Bench::prints(&run(&result(|_| ())), "", 0);
    bench.ask().await.unwrap();
    let env = fs::read_to_string(bench.dir.path().join("env")).unwrap();
    assert!(
        !env.contains("canary") && !env.contains("ANTHROPIC"),
        "{env}"
    );
}

#[tokio::test]
async fn printed_key_is_redacted() {
    let said = format!("bad key {CANARY}");
    let mut outputs = vec![(String::new(), format!("Error: {said}"))];
    outputs.push((
        run(&result(|r| {
            r["is_error"] = json!(true);
            r["result"] = json!(said);
        })),
        String::new(),
    ));
    for (stdout, stderr) in outputs {
        let mut bench = Bench::prints(&stdout, &stderr, 1);
        bench.tier.backend.api_key_env = Some("MY_KEY".into());
        let failure = bench.ask().await.unwrap_err();
        assert!(!format!("{failure:?}").contains("canary"), "{failure:?}");
    }
}

#[tokio::test]
async fn progress_names_the_tools_in_use() {
    let bench = Bench::prints(&run(&result(|_| ())), "", 0);
    bench.ask().await.unwrap();
    assert_eq!(
        bench.steps(),
        [
            AskStep::Asked,
            AskStep::Tool {
                name: "Edit".into(),
                on: "a.rs".into()
            }
        ]
    );
}

#[tokio::test]
async fn agent_runs_in_place() {
    let bench = Bench::prints(&run(&result(|_| ())), "", 0);
    assert_eq!(
        bench.backends.of(&bench.tier).unwrap().edits(&bench.tier),
        Edits::InPlace
    );
}

#[tokio::test]
async fn missing_program_names_its_setting() {
    let mut bench = Bench::prints("", "", 0);
    bench.tier.backend.program = Some("/nonexistent/claude".into());
    let failure = bench.ask().await.unwrap_err();
    assert_eq!(
        (failure.why.cause(), failure.usage),
        (FailureCause::Setup, Usage::ZERO)
    );
    assert!(
        failure.why.message().contains("backends.claude.program"),
        "{}",
        failure.why.message()
    );
}

#[tokio::test]
async fn output_flood_before_the_result_is_ignored() {
    let line = format!("{{\"type\":\"user\",\"message\":\"{}\"}}", "x".repeat(1000));
    let bench = Bench::script(&format!(
        "i=0; while [ $i -lt 5000 ]; do echo '{line}'; i=$((i+1)); done; cat \"$here/out\""
    ));
    fs::write(bench.dir.path().join("out"), run(&result(|_| ()))).unwrap();
    assert_eq!(bench.ask().await.unwrap().body, json!({"n": 1}));
}

#[tokio::test]
async fn result_larger_than_the_capture_is_read() {
    let long = "y".repeat(2 * 1024 * 1024);
    let bench = Bench::prints(
        &run(&result(|r| r["structured_output"]["text"] = json!(long))),
        "",
        0,
    );
    assert_eq!(bench.ask().await.unwrap().body["text"], long);
}

#[tokio::test]
async fn hanging_run_ends_at_its_limit() {
    let mut bench = Bench::script(&format!("{LEAVES_SURVIVORS} sleep 1000"));
    bench.ask.limit = Duration::from_millis(700);
    let failure = bench.ask().await.unwrap_err();
    assert!(
        matches!(failure.why, AskError::TimedOut { .. }),
        "{failure:?}"
    );
    assert_eq!(failure.usage, Usage::default(), "nobody knows what it cost");
    bench.nothing_is_left().await;
}

#[tokio::test]
async fn cancel_ends_a_run_and_its_children() {
    let bench = Bench::script(&format!("{LEAVES_SURVIVORS} sleep 1000"));
    let (answered, ()) = tokio::join!(bench.ask(), async {
        bench.until_started().await;
        bench.stop.cancel();
    });
    assert_eq!(answered.unwrap_err().why, AskError::Cancelled);
    bench.nothing_is_left().await;
}

#[tokio::test]
async fn leftover_processes_are_ended_and_noted() {
    let bench = Bench::script(&format!("{LEAVES_SURVIVORS} cat \"$here/out\""));
    fs::write(bench.dir.path().join("out"), run(&result(|_| ()))).unwrap();
    let reply = bench.ask().await.unwrap();
    assert!(
        reply.notes.iter().any(|note| note.contains("left behind")),
        "{:?}",
        reply.notes
    );
    bench.nothing_is_left().await;
}

#[tokio::test]
async fn concurrent_workers_are_limited() {
    // Each waits until it has seen the go; the second cannot start before the first is done.
    let bench = Bench::script(
        "cat > /dev/null; echo x >> \"$here/started\"; while [ ! -e \"$here/go\" ]; do sleep 0.02; done; cat \"$here/out\"",
    );
    let dir = bench.dir.path();
    fs::write(dir.join("out"), run(&result(|_| ()))).unwrap();
    let starts = || {
        fs::read_to_string(dir.join("started"))
            .unwrap_or_default()
            .lines()
            .count()
    };
    let (a, b, ()) = tokio::join!(bench.ask(), bench.ask(), async {
        until("one start and one in the queue", || {
            starts() == 1 && bench.steps().contains(&AskStep::Queued)
        })
        .await;
        fs::write(dir.join("go"), "").unwrap();
    });
    a.unwrap();
    b.unwrap();
    assert_eq!(starts(), 2);
}

#[tokio::test]
async fn waiting_for_a_worker_can_be_cancelled() {
    let mut bench = Bench::script("cat > /dev/null; echo x > \"$here/pid\"; sleep 1000");
    bench.ask.limit = Duration::from_secs(60);
    let other = CancellationToken::new();
    let waiting = CancellationToken::new();
    let backend = bench.backends.of(&bench.tier).unwrap();
    let mut brief = bench.ask.clone();
    brief.limit = Duration::from_millis(50);
    let (first, cancelled, timed_out) = tokio::join!(
        backend.ask(&bench.ask, &bench.tier, &other, &|_| ()),
        async {
            bench.until_started().await;
            let cancel = |step| {
                if step == AskStep::Queued {
                    waiting.cancel();
                }
            };
            backend
                .ask(&bench.ask, &bench.tier, &waiting, &cancel)
                .await
        },
        async {
            bench.until_started().await;
            let answered = backend
                .ask(&brief, &bench.tier, &CancellationToken::new(), &|_| ())
                .await;
            other.cancel();
            answered
        }
    );
    assert_eq!(first.unwrap_err().why, AskError::Cancelled);
    assert_eq!(cancelled.unwrap_err().why, AskError::Cancelled);
    let why = timed_out.unwrap_err().why;
    assert!(
        matches!(why, AskError::NoWorker { .. }) && why.message().contains("max_workers"),
        "{why:?}"
    );
}

/// Two processes, one of them in a session of its own, with their ids in files. Both outlive a kill of the group.
const LEAVES_SURVIVORS: &str = "cat > /dev/null
    setsid sh -c 'trap \"\" INT TERM; echo $$ > \"$0/far\"; exec sleep 1000' \"$here\" > /dev/null 2>&1 &
    sh -c 'echo $$ > \"$0/near\"; exec sleep 1000' \"$here\" > /dev/null 2>&1 &
    while [ ! -s \"$here/far\" ] || [ ! -s \"$here/near\" ]; do sleep 0.02; done
    echo $$ > \"$here/pid\";";

struct Bench {
    dir: tempfile::TempDir,
    backends: Backends,
    tier: Tier,
    ask: Ask,
    stop: CancellationToken,
    steps: Arc<Mutex<Vec<AskStep>>>,
}

impl Bench {
    /// A program that notes how it was called, prints and ends.
    fn prints(stdout: &str, stderr: &str, code: u8) -> Self {
        let bench = Self::script(&format!(
            "printf '%s\\n' \"$@\" > \"$here/argv\"; env > \"$here/env\"; pwd > \"$here/cwd\"; cat > \"$here/stdin\"
             cat \"$here/err\" >&2; cat \"$here/out\"; exit {code}"
        ));
        fs::write(bench.dir.path().join("out"), stdout).unwrap();
        fs::write(bench.dir.path().join("err"), stderr).unwrap();
        bench
    }

    fn script(body: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let program = write_program(dir.path(), body);
        let root = dir.path().join("project");
        fs::create_dir(&root).unwrap();
        let root = root.canonicalize().unwrap();
        let path = std::env::var("PATH").unwrap();
        let env: Env = [
            ("PATH", path.as_str()),
            ("HOME", "/nonexistent"),
            ("MY_KEY", CANARY),
            ("ANTHROPIC_API_KEY", CANARY),
            ("OTHER_SECRET", CANARY),
            ("CLAUDECODE", "1"),
        ]
        .into_iter()
        .collect();
        let mut tier = tier("claude", BackendKind::ClaudeCli, "claude-x");
        tier.backend.program = Some(program.to_str().unwrap().into());
        let schema =
            json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let mut ask = Ask::new("rules", "do it", schema, root);
        ask.limit = Duration::from_secs(120);
        let launcher = Launcher::this_program();
        let backends = Backends::new(SharedResources::new(launcher, env, 1));
        Self {
            dir,
            backends,
            tier,
            ask,
            stop: CancellationToken::new(),
            steps: Arc::default(),
        }
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

    async fn until_started(&self) {
        until("the program to start", || {
            self.dir.path().join("pid").exists()
        })
        .await;
    }

    async fn nothing_is_left(&self) {
        for name in ["far", "near", "pid"] {
            let pid = fs::read_to_string(self.dir.path().join(name)).unwrap();
            until("the process to be gone", || {
                !Path::new("/proc").join(pid.trim()).exists()
            })
            .await;
        }
    }
}

async fn until(what: &str, done: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < deadline, "waited for {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
