//! `exercism`: how many reference solutions of Exercism tracks are accepted in a model's place, and
//! how long a call takes. What is refused is printed. The tracks are not part of this repository.
//!
//! `SUPERVISOR_EXERCISM=DIR[:DIR…] just bench exercism` with one checked-out track each;
//! `SUPERVISOR_EXERCISM_TASKS=N` takes N of each, spread evenly.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};
use supervisor_gym::exercism::read_track;
use supervisor_gym::task::GymTask;

pub(crate) fn run() {
    let Ok(tracks) = std::env::var("SUPERVISOR_EXERCISM") else {
        println!("SKIPPED: SUPERVISOR_EXERCISM does not name checked-out tracks");
        return;
    };
    let count = std::env::var("SUPERVISOR_EXERCISM_TASKS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(30);
    for track in tracks.split(':').map(PathBuf::from) {
        let modules = Some(track.join("node_modules")).filter(|m| m.is_dir());
        let (mut accepted, mut all, mut seconds) = (0, 0, 0.0);
        for task in read_track(&track, count) {
            let began = Instant::now();
            let refusal = solve(&task, modules.as_deref());
            all += 1;
            seconds += began.elapsed().as_secs_f64();
            match refusal {
                None => accepted += 1,
                Some(why) => println!(
                    "{}/{}: {}",
                    track.display(),
                    task.name,
                    why.lines().next().unwrap_or_default()
                ),
            }
        }
        println!(
            "{}: {accepted} of {all} accepted, {:.1} s each",
            track.display(),
            seconds / f64::from(all.max(1))
        );
    }
}

fn answer(task: &GymTask) -> Value {
    let edit = |(path, text): (&String, &String)| {
        let action = if task.files.contains_key(path) {
            "replace"
        } else {
            "create"
        };
        json!({"path": path, "action": action, "content": text})
    };
    json!({"edits": task.reference.iter().map(edit).collect::<Vec<_>>()})
}

/// Makes the task green with its reference solution; why that was refused, if it was.
fn solve(task: &GymTask, modules: Option<&Path>) -> Option<String> {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("project");
    fs::create_dir(&root).unwrap();
    task.write_project(&root).unwrap();
    if let Some(modules) = modules {
        std::os::unix::fs::symlink(modules, root.join("node_modules")).unwrap();
    }
    let answers = dir.path().join("answers.jsonl");
    let line = json!({"model": "recorded", "answer": answer(task)});
    fs::write(&answers, format!("{line}\n")).unwrap();
    let settings = format!(
        "default_chain = [\"recorded\"]\nverifier = \"none\"\nattempts_per_tier = 1\n[skills.tdd]\nchain = [\"recorded\"]\n\
         [backends.near]\nkind = \"replay\"\ntier = \"local\"\nfile = \"{}\"\nmodels = [\"recorded\"]\n",
        answers.display()
    );
    let config = dir.path().join("models.toml");
    fs::write(&config, settings).unwrap();
    let mut arguments = json!({"project_root": root, "test_path": task.test_path});
    if task.allow_dependencies {
        arguments["allow_dependencies"] = json!(true);
    }
    let mut child = Command::new(super::program())
        .args(["call", "tdd_green", "--json", "-", "--output", "json"])
        .arg("--config")
        .arg(config)
        .env("SUPERVISOR_STATE_DIR", dir.path().join("state"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(arguments.to_string().as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let result: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let cause = result["attempts"][0]["cause"]
        .as_str()
        .unwrap_or("not asked");
    let message = result["message"].as_str().unwrap_or_default();
    (result["status"] != "pass").then(|| format!("{cause} {message}"))
}
