//! A reviewer with tools may look around and touch nothing; who does is found out, and it is said that it stays.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use supervisor_process::SandboxLevel;
use tempfile::TempDir;

use super::text;
use crate::support::review_project::{both, clean, good, shop};
use crate::support::scenario::{Scenario, gate, trail};
use supervisor_test_support::agent::write_program;
use supervisor_test_support::agent::{result, run};

/// A program that reads its prompt and then does this, in the project.
struct Agent {
    dir: TempDir,
    program: PathBuf,
}

impl Agent {
    fn does(answer: &Value, body: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(
            dir.path().join("out"),
            run(&result(|r| r["structured_output"] = answer.clone())),
        )
        .unwrap();
        let program = write_program(
            dir.path(),
            &format!("echo \"$@\" > \"$here/args\"; cat > \"$here/stdin\"; {body}"),
        );
        Self { dir, program }
    }

    /// In the sandbox it can write only to its own directory.
    fn scenario(&self, tiers: &[&str]) -> Scenario {
        shop(tiers).settings(&format!(
            "{}[sandbox]\nwrite = [\"{}\"]\n",
            self.backend(),
            self.dir.path().display()
        ))
    }

    fn bench_without_walls(&self, tiers: &[&str]) -> Scenario {
        shop(tiers).settings(&format!("{}[sandbox]\nmode = \"off\"\n", self.backend()))
    }

    fn backend(&self) -> String {
        format!(
            "[backends.agent]\nkind = \"claude-cli\"\ntier = \"subagent\"\nprogram = \"{}\"\nmodels = [\"agent\"]\n\
             [models.agent]\nid = \"claude-x\"\n",
            self.program.display()
        )
    }
}

#[test]
fn agent_reviews_with_read_only_tools() {
    let agent = Agent::does(&good(), "cat \"$here/out\"");
    let mut scenario = agent.scenario(&["agent"]);
    let review = scenario.call("review", both());
    assert_eq!(
        (&review["status"], trail(&review).as_str()),
        (&json!("pass"), "agent accepted"),
        "{review:#}"
    );
    assert_eq!(gate(&review, "untouched")["pass"], true);
    let arguments = fs::read_to_string(agent.dir.path().join("args")).unwrap();
    assert!(
        arguments.contains("--tools Read,Glob,Grep --permission-mode default"),
        "{arguments}"
    );
}

const TOUCHES: [(&str, &str); 4] = [
    ("echo fixed >> src/util.py", "src/util.py"),
    ("echo x > notes.md", "notes.md"),
    ("rm src/util.py", "src/util.py"),
    ("chmod 600 src/shop.py", "src/shop.py"),
];

#[tokio::test]
#[ignore = "needs user namespaces"]
async fn sandboxed_agent_cannot_change_the_project() {
    assert_eq!(
        supervisor_test_support::process::sandbox_level().await,
        SandboxLevel::Namespaces
    );
    for (touch, _) in TOUCHES {
        let agent = Agent::does(&good(), &format!("{touch}; cat \"$here/out\""));
        let mut scenario = agent.scenario(&["agent"]);
        let before = scenario.tree();
        let review = scenario.call("review", both());
        assert_eq!(trail(&review), "agent accepted", "{touch}: {review:#}");
        assert_eq!(
            gate(&review, "untouched")["pass"],
            true,
            "{touch}: {review:#}"
        );
        assert_eq!(scenario.tree(), before, "{touch}");
    }
}

#[test]
fn unsandboxed_agent_that_edits_is_refused() {
    for (touch, path) in TOUCHES {
        let agent = Agent::does(&good(), &format!("{touch}; cat \"$here/out\""));
        let mut scenario = agent
            .bench_without_walls(&["agent", "small"])
            .answers("small", &clean(&["src/shop.py", "src/util.py"]));
        let review = scenario.call("review", both());
        assert_eq!(
            trail(&review),
            "agent tampered | small accepted",
            "{touch}: {review:#}"
        );
        let feedback = text(&review["attempts"][0], "feedback");
        assert!(
            feedback.contains(&format!("`{path}` changed")) && feedback.contains("not undone"),
            "{feedback}"
        );
        assert!(scenario.asked_of("small")[0].contains("[1 · agent · tampered]"));
        assert!(
            review["details"].get("changed_meanwhile").is_none(),
            "{review:#}"
        );
    }
}

#[test]
fn unsandboxed_agents_edits_are_reported_on_failure() {
    let agent = Agent::does(&good(), "echo x > left.txt; exit 1");
    let mut scenario = agent.bench_without_walls(&["agent"]);
    let review = scenario.call("review", both());
    assert_eq!(
        (&review["status"], trail(&review).as_str()),
        (&json!("error"), "agent infra"),
        "{review:#}"
    );
    let feedback = text(&review["attempts"][0], "feedback");
    assert!(
        feedback.contains("meanwhile `left.txt` was changed, and this was not undone"),
        "{feedback}"
    );
}
