//! A canary in every place where a secret can be: whatever happens to the text around it, it is seen only where it belongs.

use std::fs;
use std::path::Path;

use serde_json::json;

use supervisor_test_support::agent::write_program;
use supervisor_test_support::agent::{result, run};
use supervisor_test_support::chain::{Bench, Ran, SESSION};
use supervisor_test_support::upstream::{Says, Upstream};

/// No shape gives them away: only by value can they be known.
const GATE: &str = "canary of the gateway 11";
const API: &str = "canary of the provider 22";
const OAUTH: &str = "canary of the account 33";
const OTHER: &str = "canary of a forge 44";
const ALL: [&str; 4] = [GATE, API, OAUTH, OTHER];

/// The tests print what they find and what they were given.
const TESTS: &str = "cat answer.txt; env; grep -q 42 answer.txt";

#[tokio::test]
async fn refused_answer_leaks_no_key() {
    let bench = Scene::new(&format!("41 {}", ALL.join(" ")), "").await;
    let ran = bench.run().await;
    assert_eq!(
        ran.trail(),
        "gate/small rejected | agent rejected | large rejected"
    );
    let told = ran.asked_of("large")[0]["prompt"].as_str().unwrap();
    assert!(
        told.contains("[redacted-"),
        "what was tried is told, the keys are not: {told}"
    );
    bench.shows_no_canary(&ran);
    assert_eq!(
        bench.given_to_the_agent("canary"),
        0,
        "no key was configured for it"
    );
}

#[tokio::test]
async fn accepted_answer_shows_no_key() {
    let bench = Scene::new(&format!("42 {}", ALL.join(" ")), "").await;
    let ran = bench.run().await;
    assert_eq!(ran.trail(), "gate/small accepted");
    let judged = ran.asked_of("judge")[0]["prompt"].as_str().unwrap();
    assert!(judged.contains("42 [redacted"), "{judged}");
    assert!(
        ran.result.more.diff.contains("+42 [redacted-"),
        "{}",
        ran.result.more.diff
    );
    bench.shows_no_canary(&ran);
}

#[tokio::test]
async fn workers_key_is_only_in_its_environment() {
    let bench = Scene::new("41 plain", "env_pass = [\"ANTHROPIC_API_KEY\"]").await;
    let ran = bench.run().await;
    assert_eq!(
        ran.trail(),
        "gate/small rejected | agent rejected | large rejected"
    );
    bench.shows_no_canary(&ran);
    assert_eq!(
        (
            bench.given_to_the_agent("canary"),
            bench.given_to_the_agent(API)
        ),
        (1, 1)
    );
}

/// A gateway, an agent and recorded models that all say every key; a project that holds them and tests that print them.
struct Scene {
    bench: Bench,
    upstream: Upstream,
    dir: tempfile::TempDir,
}

impl Scene {
    async fn new(answer: &str, agent: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let edits = json!([{"path": "answer.txt", "action": "replace", "content": answer}]);
        let upstream = Upstream::start([Says::content(
            &json!({"edits": edits, "note": ALL}).to_string(),
        )])
        .await;
        let said = run(&result(|r| {
            r["structured_output"] = json!({"note": ALL, "text": ALL.join(" ")});
        }));
        fs::write(dir.path().join("out"), said).unwrap();
        let program = write_program(
            dir.path(),
            &format!(
                "printf '%s\\n' \"$@\" > \"$here/argv\"; env > \"$here/env\"; cat > \"$here/stdin\"
                 echo '{}' >> answer.txt; cat \"$here/out\"",
                ALL.join(" ")
            ),
        );
        let settings = format!(
            "[backends.gate]\nkind = \"openai\"\ntier = \"local\"\nbase_url = \"{}\"\napi_key_env = \"GATE_KEY\"\n\
             models = [\"gate/*\"]\n\
             [backends.agent]\nkind = \"claude-cli\"\ntier = \"subagent\"\nprogram = \"{}\"\nmodels = [\"agent\"]\n{agent}\n\
             [models.agent]\nid = \"claude-x\"\n\
             [sandbox]\nwrite = [\"{}\"]\n",
            upstream.url,
            program.display(),
            dir.path().display()
        );
        let bench = Bench::chain(&["gate/small", "agent", "large"])
            .settings(&settings)
            .env("GATE_KEY", GATE)
            .env("ANTHROPIC_API_KEY", API)
            .env("CLAUDE_CODE_OAUTH_TOKEN", OAUTH)
            .env("FORGE_TOKEN", OTHER)
            .writes("large", "40")
            .judges(true, "");
        let project = bench.project.path();
        fs::write(
            project.join("answer.txt"),
            format!("41\n{}\n", ALL.join("\n")),
        )
        .unwrap();
        let kept = dir.path().join("tests.env");
        fs::write(
            project.join("check.sh"),
            format!("env >> '{}'\n{TESTS}\n", kept.display()),
        )
        .unwrap();
        Self {
            bench,
            upstream,
            dir,
        }
    }

    async fn run(&self) -> Ran {
        self.bench.run().await
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.dir.path().join(name)).unwrap_or_default()
    }

    /// How often this is in the agent's environment.
    fn given_to_the_agent(&self, text: &str) -> usize {
        let env = self.read("env");
        assert!(env.contains("PATH="), "it was started: {env}");
        env.matches(text).count()
    }

    fn shows_no_canary(&self, ran: &Ran) {
        let state = self.bench.state.path();
        let log = fs::read_to_string(
            state
                .join("state/sessions")
                .join(format!("{SESSION}.jsonl")),
        )
        .unwrap();
        let tests = self.read("tests.env");
        assert!(
            tests.contains("PATH=") && log.contains("[redacted"),
            "there was something to find"
        );
        let mut shown = vec![
            ("the log", log),
            ("the reply", serde_json::to_string(&ran.result).unwrap()),
            ("the story", ran.story.join("\n")),
            ("the recorded models' prompts", format!("{:?}", ran.asked)),
            ("the agent's arguments", self.read("argv")),
            ("the agent's prompt", self.read("stdin")),
            ("the tests' environment", tests),
        ];
        for request in self.upstream.requests() {
            shown.push(("the gateway's prompt", request.body.to_string()));
            let (mine, others): (Vec<_>, Vec<_>) = request
                .head
                .lines()
                .partition(|line| line.to_lowercase().starts_with("authorization:"));
            assert_eq!(
                mine,
                [format!("authorization: Bearer {GATE}")],
                "where the key belongs"
            );
            shown.push(("the gateway's other headers", others.join("\n")));
        }
        for (what, text) in shown {
            assert!(!text.contains("canary"), "{what}: {text}");
        }
        // Nor in what a call leaves in the state directory, but for what is the project's own: kept to bring it back.
        for path in files(&state.join("state")) {
            let own = ["store", "projects", "rejected"]
                .iter()
                .any(|part| path.iter().any(|p| p == *part));
            // The file that others watch a call by goes a moment after its call.
            let bytes = match fs::read(&path) {
                Err(gone) if gone.kind() == std::io::ErrorKind::NotFound => continue,
                read => read.unwrap(),
            };
            let text = String::from_utf8_lossy(&bytes).into_owned();
            assert!(own || !text.contains("canary"), "{}", path.display());
        }
    }
}

fn files(dir: &Path) -> Vec<std::path::PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found
}
