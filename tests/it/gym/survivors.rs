//! Answers of the gym's tasks with one operator changed, as changes of a project: those that the visible tests let pass
//! have a surviving mutant on the wrong line, which shows where a test is missing.

use std::process::Command;

use serde_json::Value;
use supervisor_gym::mutant::mutants;
use supervisor_gym::task::{GymTask, write_below};
use supervisor_gym::task_set::TaskSet;
use supervisor_test_support::programs::require;

use crate::support::user_shell::program;

/// A task's project in git, with the visible tests, and an answer in its working tree.
struct Answered {
    dir: tempfile::TempDir,
}

impl Answered {
    fn new(task: &GymTask, answer: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("project");
        task.write_project(&root).unwrap();
        for arguments in [
            &["init", "-q"][..],
            &["add", "-A"],
            &[
                "-c",
                "user.name=A",
                "-c",
                "user.email=a@example.org",
                "commit",
                "-qm",
                "Task",
            ],
        ] {
            let done = Command::new("git")
                .args(arguments)
                .current_dir(&root)
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .status()
                .unwrap();
            assert!(done.success());
        }
        write_below(&root, &task.solution_path, answer.as_bytes()).unwrap();
        Self { dir }
    }

    fn prove(&self, more: &[&str]) -> Value {
        let output = program()
            .args(["prove", "--json", "--timeout", "20", "--project"])
            .arg(self.dir.path().join("project"))
            .args(more)
            .env("SUPERVISOR_STATE_DIR", self.dir.path().join("state"))
            .output()
            .unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
    }
}

#[test]
#[ignore = "needs pytest, node, npm, go, rspec and elixir"]
#[expect(clippy::print_stdout, reason = "the figures are worth reading")]
fn missed_mistakes_have_a_surviving_mutant() {
    require(&["pytest", "node", "npm", "go", "rspec", "mix", "git"]);
    let is_long = std::env::var("SUPERVISOR_TEST_LONG").is_ok_and(|value| value == "1");
    let mut tasks = TaskSet::own().and_then(|set| set.tasks()).unwrap();
    if !is_long {
        tasks.retain(|task| task.name.ends_with("/parcel_fee"));
    }
    let (mut answers, mut missed, mut shown) = (0, 0, 0);
    for task in &tasks {
        let Some(reference) = task.reference.get(&task.solution_path) else {
            continue;
        };
        let all = mutants(&task.solution_path, reference);
        if all.is_empty() {
            continue;
        }
        let hash = blake3::hash(format!("1\0{}", task.name).as_bytes());
        let number = u64::from_le_bytes(hash.as_bytes()[..8].try_into().unwrap());
        let mistake = &all[usize::try_from(number % all.len() as u64).unwrap()];
        answers += 1;
        let answered = Answered::new(task, &mistake.text);
        if answered.prove(&[])["verdict"] != "proven" {
            continue;
        }
        missed += 1;
        let report = answered.prove(&["--mutants=120"]);
        let survived = report["mutants"]["survived"].as_array().cloned();
        let is_shown = survived
            .unwrap_or_default()
            .iter()
            .any(|mutant| mutant["line"] == mistake.line);
        shown += usize::from(is_shown);
        println!(
            "{} line {}: {} for {}: {}",
            task.name,
            mistake.line,
            mistake.to,
            mistake.from,
            if is_shown {
                "a mutant survives there"
            } else {
                "no mutant survives there"
            }
        );
    }
    println!(
        "{missed} of {answers} wrong answers pass the visible tests; {shown} of them have a surviving mutant on the wrong line"
    );
    assert!(answers > 0 && shown * 2 >= missed);
}
