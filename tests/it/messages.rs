//! The catalogue of messages that a caller can get when a call fails, so that their wording is
//! reviewed in one place: `tests/it/snapshots/it__messages__*.snap`. Each says what happened, what
//! became of the files, and what to type next.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::json;
use supervisor_edits::EditAnswerError;
use supervisor_models::{AskError, FailureBlame};
use supervisor_test_support::chain::Bench;
use supervisor_test_support::programs::require;
use supervisor_workspace::{LockError, RestoreError};

use crate::support::scenario::Scenario;

fn s(text: &str) -> String {
    text.to_owned()
}

/// One of each kind.
#[expect(clippy::too_many_lines, reason = "a list")]
fn ask_errors() -> Vec<AskError> {
    let (backend, model, detail) = (s("ollama"), s("qwen3-coder:30b"), s("what the server said"));
    let (b, m, d) = (|| backend.clone(), || model.clone(), || detail.clone());
    vec![
        AskError::Unreachable {
            backend: b(),
            address: s("http://localhost:11434"),
            why: s("the connection was refused"),
        },
        AskError::TimedOut {
            model: m(),
            waited: Duration::from_secs(120),
            setting: s("limits.local_s"),
        },
        AskError::GaveUpEarly {
            backend: b(),
            model: m(),
            waited: Duration::from_secs(5),
            detail: d(),
        },
        AskError::ServerFailed {
            backend: b(),
            status: 500,
            detail: d(),
            blame: FailureBlame::Endpoint,
        },
        AskError::Loading {
            model: m(),
            retry_after: None,
        },
        AskError::Malformed {
            model: m(),
            why: s("no JSON"),
        },
        AskError::Crashed {
            program: s("claude"),
            why: s("exit code 1"),
        },
        AskError::NotAsked { detail: d() },
        AskError::NoWorker {
            waited: Duration::from_secs(60),
        },
        AskError::RateLimited {
            backend: b(),
            detail: d(),
            retry_after: None,
        },
        AskError::NoCredit {
            backend: b(),
            detail: d(),
        },
        AskError::Crowded {
            model: m(),
            detail: d(),
            retry_after: None,
        },
        AskError::ContextTooLong {
            model: m(),
            detail: d(),
        },
        AskError::PromptCut {
            model: m(),
            sent_bytes: 60_000,
            seen_tokens: 4096,
        },
        AskError::AnswerCut { model: m() },
        AskError::Unsupported {
            model: m(),
            detail: d(),
        },
        AskError::TurnsUsedUp {
            model: m(),
            turns: 30,
        },
        AskError::Declined {
            model: m(),
            detail: d(),
        },
        AskError::NoKey {
            backend: b(),
            var: Some(s("OPENAI_API_KEY")),
            detail: s(""),
        },
        AskError::KeyRefused {
            backend: b(),
            var: Some(s("OPENAI_API_KEY")),
            detail: s(""),
        },
        AskError::UpstreamKeyRefused {
            backend: b(),
            detail: s(""),
        },
        AskError::UnknownModel {
            backend: b(),
            model: m(),
            id: m(),
            detail: s(""),
        },
        AskError::WrongAddress {
            backend: b(),
            address: s("http://localhost:1"),
            detail: s(""),
        },
        AskError::OtherModel {
            backend: b(),
            model: m(),
            answered: s("gpt-oss:20b"),
        },
        AskError::NoProgram {
            backend: s("claude"),
            why: s("not found on the PATH"),
        },
        AskError::NotLoggedIn {
            backend: s("claude"),
            detail: s(""),
        },
        AskError::CallRefused {
            program: s("claude"),
            detail: s("unknown option"),
        },
        AskError::Misconfigured {
            setting: s("backends.x"),
            why: s("wrong"),
        },
        AskError::BudgetUsedUp { model: m() },
        AskError::Cancelled,
    ]
}

fn edit_errors() -> Vec<EditAnswerError> {
    let path = || s("src/a.rs");
    vec![
        EditAnswerError::Empty,
        EditAnswerError::OnlyThoughts,
        EditAnswerError::TooLong { megabytes: 9 },
        EditAnswerError::NoCode,
        EditAnswerError::BrokenJson {
            why: s("EOF at line 1"),
        },
        EditAnswerError::NoPath {
            blocks: 1,
            candidates: vec![path()],
        },
        EditAnswerError::UnclosedBlock {
            path: path(),
            line: 4,
        },
        EditAnswerError::EmptyBlock { path: path() },
        EditAnswerError::SearchWithoutDivider { path: path() },
        EditAnswerError::SearchWithoutEnd { path: path() },
        EditAnswerError::UnclearElision { path: path() },
        EditAnswerError::ElidedFile {
            path: path(),
            line: 3,
            text: s("// …"),
        },
        EditAnswerError::AmbiguousPath {
            path: s("a.rs"),
            known: vec![path(), s("b/a.rs")],
        },
        EditAnswerError::CollidingPaths {
            first: s("a.rs"),
            second: s("A.rs"),
        },
        EditAnswerError::TooManyEdits { count: 99 },
        EditAnswerError::Incomplete {
            path: path(),
            has: "no content",
        },
        EditAnswerError::ControlCharacter {
            path: path(),
            line: 2,
            code: 27,
        },
        EditAnswerError::Rename,
    ]
}

#[test]
fn failures_of_models_name_their_remedy() {
    let mut text = String::new();
    for error in ask_errors() {
        let _ = writeln!(text, "{error}");
        if let Some(hint) = error.hint() {
            let _ = writeln!(text, "    -> {hint}");
        }
    }
    insta::assert_snapshot!("model_failures", text);
}

#[test]
fn callers_read_no_instructions_for_workers() {
    let mut text = String::new();
    for error in edit_errors() {
        let for_caller = error.to_string();
        if let Some(instruction) = error.instruction() {
            assert!(!for_caller.contains(&instruction), "{for_caller}");
            assert_eq!(error.for_model(), format!("{for_caller}; {instruction}"));
        }
        let _ = writeln!(text, "{for_caller}");
    }
    insta::assert_snapshot!("unreadable_answers", text);
}

#[tokio::test]
async fn exhausted_chains_say_what_to_do() {
    let chain = || Bench::chain(&["small", "large"]);
    let cases = [
        (
            "nothing is set up",
            chain().fails("small", "setup").fails("large", "setup"),
        ),
        (
            "no server answers",
            chain().fails("small", "infra").fails("large", "infra"),
        ),
        (
            "the quota is used up",
            chain().fails("small", "infra").fails("large", "quota"),
        ),
        (
            "every answer is rejected",
            chain().writes("small", "17").writes("large", "18"),
        ),
        (
            "one is rejected, one is out of quota",
            chain().writes("small", "17").fails("large", "quota"),
        ),
        (
            "the pinned model is rejected",
            chain().pinned("small").writes("small", "17"),
        ),
        (
            "the answer is unreadable",
            chain()
                .line(serde_json::json!({"model": "small", "answer": {"edits": 5}}))
                .line(serde_json::json!({"model": "small", "answer": {"edits": 5}}))
                .fails("large", "infra"),
        ),
    ];
    let mut text = String::new();
    for (case, bench) in cases {
        let message = bench.run().await.result.message;
        // Where an answer is kept differs from run to run.
        let message = match (message.find("is in /"), message.find(".txt")) {
            (Some(from), Some(to)) => format!("{}is in [PATH]{}", &message[..from], &message[to..]),
            _ => message,
        };
        let _ = writeln!(text, "{case}:\n    {message}");
    }
    insta::assert_snapshot!("exhausted_chains", text);
}

/// The message of a call on a project whose test is a shell script.
struct Calls {
    scenario: Scenario,
    text: String,
}

impl Calls {
    fn on(files: &[(&str, &str)]) -> Self {
        Self {
            scenario: Scenario::chain(&["small"], files).settings("\n[limits]\ntests_s = 2\n"),
            text: String::new(),
        }
    }

    fn say(&mut self, case: &str, tool: &str, arguments: serde_json::Value) {
        let before = self.scenario.tree();
        let result = self.scenario.call(tool, arguments);
        assert_ne!(result["status"], "pass", "{case}: {result:#}");
        assert_eq!(self.scenario.tree(), before, "{case}");
        let message = result["message"].as_str().unwrap_or_default();
        let message = message.replace(&self.scenario.root().display().to_string(), "[PROJECT]");
        let state = self.scenario.state.path().display().to_string();
        let _ = writeln!(
            self.text,
            "{case}:\n    {}",
            message.replace(&state, "[STATE]")
        );
    }
}

#[test]
fn refused_calls_say_what_to_do() {
    let mut calls = Calls::on(&[
        ("code.txt", "wrong\n"),
        ("red.sh", "grep -q right code.txt\n"),
        ("green.sh", "grep -q wrong code.txt\n"),
        ("slow.sh", "sleep 60\n"),
    ]);
    let green = |test: &str| json!({"test_path": test, "test_cmd": format!("sh {test}")});
    let many: Vec<String> = (0..21).map(|n| format!("criterion {n}")).collect();
    calls.say("no criterion", "tdd", json!({"criteria": []}));
    calls.say("21 criteria", "tdd", json!({"criteria": many}));
    calls.say("no specification", "tdd_red", json!({"spec": " "}));
    calls.say("no runner is recognised", "tdd_red", json!({"spec": "x"}));
    calls.say("nothing is red", "tdd_green", green("green.sh"));
    calls.say("no such test", "tdd_green", green("none.sh"));
    calls.say("the tests take too long", "tdd_green", green("slow.sh"));
    calls.say(
        "the program of the tests is missing",
        "tdd_green",
        json!({"test_path": "red.sh", "test_cmd": "no-such-runner"}),
    );
    calls.say(
        "red before a refactoring",
        "tdd_refactor",
        json!({"target": "code.txt", "test_path": "red.sh", "test_cmd": "sh red.sh"}),
    );
    calls.say(
        "unknown model",
        "tdd_green",
        json!({"test_path": "red.sh", "test_cmd": "sh red.sh", "model": "gpt-99"}),
    );
    calls.say(
        "no answer",
        "tdd",
        json!({"criteria": ["it is right"], "test_cmd": "sh green.sh"}),
    );
    calls.say(
        "nothing to review",
        "review",
        json!({"files": ["none.txt"]}),
    );
    calls.say("no error to look into", "debug", json!({"error": ""}));
    insta::assert_snapshot!("refused_calls", calls.text);
}

#[test]
#[ignore = "needs git"]
fn reviews_of_nothing_say_what_to_name() {
    require(&["git"]);
    let mut calls = Calls::on(&[("code.txt", "wrong\n")]);
    let root = calls.scenario.root();
    let git = |words: &[&str]| {
        let names = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
        let mut command = std::process::Command::new("git");
        let done = command.args(names).args(words).current_dir(&root).output();
        assert!(done.unwrap().status.success(), "{words:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-qm", "one"]);
    calls.say("no changes", "review", json!({}));
    std::fs::write(root.join("code.txt"), "changed\n").unwrap();
    calls.say("nothing is staged", "review", json!({"staged": true}));
    calls.say(
        "no commits",
        "review",
        json!({"base": "HEAD", "head": "HEAD"}),
    );
    calls.say("no such commit", "review", json!({"base": "none"}));
    insta::assert_snapshot!("empty_reviews", calls.text);
}

/// Errors of commands, as a person at a shell reads them.
#[test]
fn failed_commands_say_what_to_do() {
    let scenario = Scenario::chain(&["small"], &[("code.txt", "wrong\n")]);
    let mut text = String::new();
    for words in [
        &["undo"][..],
        &["undo", "c0ffee"],
        &["log", "show", "none"],
        &["jobs", "show", "none"],
        &["shadow", "run"],
        &["stats", "--session", "none"],
        &["explain", "none"],
        &["verify"],
        &["prove"],
        &["call", "none"],
        &["--config", "none.toml", "explain"],
    ] {
        let output = scenario
            .command()
            .args(words)
            .current_dir(scenario.root())
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        assert_ne!(output.status.code(), Some(0), "{words:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let said = said.replace(&scenario.root().display().to_string(), "[PROJECT]");
        let said = said.replace(&scenario.state.path().display().to_string(), "[STATE]");
        let _ = writeln!(text, "{}:\n    {}", words.join(" "), said.trim_end());
    }
    insta::assert_snapshot!("failed_commands", text);
}

#[test]
fn locks_and_restores_say_what_to_do() {
    let io = || std::io::Error::from(std::io::ErrorKind::PermissionDenied);
    let path = || std::path::PathBuf::from("/p/src/a.rs");
    let locks = [
        LockError::Recovering,
        LockError::OtherStateDir,
        LockError::Cancelled,
        LockError::Unusable {
            path: path(),
            source: io(),
        },
        LockError::NotRecovered(RestoreError::StillRunning),
    ];
    let restores = [
        RestoreError::Io {
            path: path(),
            source: io(),
        },
        RestoreError::StillRunning,
        RestoreError::Journal {
            path: path(),
            source: io(),
        },
    ];
    let mut text = String::new();
    for error in locks {
        let _ = writeln!(text, "{error}");
    }
    for error in restores {
        let _ = writeln!(text, "{error}");
    }
    insta::assert_snapshot!("locks_and_restores", text);
}
