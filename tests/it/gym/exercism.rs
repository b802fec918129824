//! Tasks of the Exercism tracks as measuring stones: a checked-out track is read where it lies, its reference solutions
//! answer in a model's place, and what is refused is printed. Nothing of the tracks is in this repository.
//!
//! `SUPERVISOR_EXERCISM=DIR[:DIR…] cargo test --test it -- --ignored --exact gym::exercism::reference_solutions --nocapture`
//! with one checked-out track each; `SUPERVISOR_EXERCISM_TASKS=N` takes N of each, spread evenly.

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};
use supervisor_gym::exercism::read_track;
use supervisor_gym::task::GymTask;

use crate::support::tdd_bench::Bench;

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

/// Green by the reference solution: how it ended, and in how many seconds.
fn solve(task: &GymTask, modules: Option<&Path>) -> (bool, String, f64) {
    let mut bench = Bench::chain(&["small"], &[]).answers("small", &answer(task));
    task.write_project(bench.project.path()).unwrap();
    if let Some(modules) = modules {
        std::os::unix::fs::symlink(modules, bench.project.path().join("node_modules")).unwrap();
    }
    let began = Instant::now();
    let mut arguments = json!({"test_path": task.test_path});
    if task.allow_dependencies {
        arguments["allow_dependencies"] = json!(true);
    }
    let result = bench.call("tdd_green", arguments);
    let said = format!(
        "{} {}",
        result["attempts"][0]["cause"]
            .as_str()
            .unwrap_or("not asked"),
        result["message"].as_str().unwrap_or_default()
    );
    (
        result["status"] == "pass",
        said,
        began.elapsed().as_secs_f64(),
    )
}

#[test]
#[ignore = "needs checked-out tracks, see above"]
#[expect(clippy::print_stdout, reason = "the table is what it is for")]
fn reference_solutions() {
    let tracks =
        std::env::var("SUPERVISOR_EXERCISM").expect("SUPERVISOR_EXERCISM names checked-out tracks");
    let most = std::env::var("SUPERVISOR_EXERCISM_TASKS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(30);
    for track in tracks.split(':').map(PathBuf::from) {
        let modules = Some(track.join("node_modules")).filter(|m| m.is_dir());
        let (mut accepted, mut all, mut seconds) = (0, 0, 0.0);
        for task in read_track(&track, most) {
            let (passed, said, took) = solve(&task, modules.as_deref());
            all += 1;
            seconds += took;
            if passed {
                accepted += 1;
            } else {
                println!(
                    "{}/{}: {}",
                    track.display(),
                    task.name,
                    said.lines().next().unwrap_or_default()
                );
            }
        }
        println!(
            "{}: {accepted} of {all} accepted, {:.1} s each",
            track.display(),
            seconds / f64::from(all.max(1))
        );
    }
}
