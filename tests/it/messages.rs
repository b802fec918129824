//! The catalogue of messages that a caller can get when a call fails, so that their wording is
//! reviewed in one place: `tests/it/snapshots/it__messages__*.snap`. Each says what happened, what
//! became of the files, and what to type next.

use std::fmt::Write as _;
use std::time::Duration;

use supervisor_edits::EditAnswerError;
use supervisor_models::{AskError, FailureBlame};
use supervisor_test_support::chain::Bench;

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
