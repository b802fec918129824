//! `walls`: what sandbox and private view add to a green whose suite takes one second, as a ratio to the same call in the
//! project itself without either. In turns, each a call of its own from the shell.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const ROUNDS: usize = 7;
/// Stated: at most this.
const TARGET: f64 = 1.1;

/// How children run.
struct Way {
    name: &'static str,
    settings: &'static str,
}

const WAYS: [Way; 3] = [
    Way {
        name: "none",
        settings: "[sandbox]\nmode = \"off\"\n[workspace]\nstrategy = \"in-place\"\n",
    },
    Way {
        name: "walls",
        settings: "[workspace]\nstrategy = \"in-place\"\n",
    },
    Way {
        name: "walls and view",
        settings: "",
    },
];

pub(crate) fn run() {
    let mut times: [Vec<Duration>; 3] = Default::default();
    let mut told: [String; 3] = Default::default();
    for round in 0..=ROUNDS {
        for ((way, times), told) in WAYS.iter().zip(&mut times).zip(&mut told) {
            match measure(way) {
                // The first round fills caches.
                Ok(_) if round == 0 => {}
                Ok((took, sandbox)) => {
                    times.push(took);
                    *told = sandbox;
                }
                Err(why) => return println!("not measured: {}: {why}", way.name),
            }
        }
    }
    let medians = times.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2].as_secs_f64()
    });
    println!("one green, two runs of a suite of one second; median of {ROUNDS}");
    for ((way, took), told) in WAYS.iter().zip(medians).zip(told) {
        println!(
            "{:<16} {took:>6.2} s   {:>5.2} × none   {told}",
            way.name,
            took / medians[0]
        );
    }
    println!("stated: at most {TARGET} × none");
}

/// One call on a fresh project: how long it took, and which walls stood.
fn measure(way: &Way) -> Result<(Duration, String), String> {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    let project = base.join("project");
    std::fs::create_dir(&project).unwrap();
    std::fs::write(project.join("code.py"), "answer = 41\n").unwrap();
    std::fs::write(
        project.join("check.sh"),
        "sleep 1; grep -q 'answer = 42' code.py\n",
    )
    .unwrap();
    let edit = json!({"path": "code.py", "action": "replace", "content": "answer = 42\n"});
    std::fs::write(
        base.join("answers.jsonl"),
        format!(
            "{}\n",
            json!({"model": "small", "answer": {"edits": [edit]}})
        ),
    )
    .unwrap();
    std::fs::write(base.join("models.toml"), settings(&base, way)).unwrap();
    let arguments =
        json!({"project_root": project, "test_path": "check.sh", "test_cmd": "sh check.sh"});
    std::fs::write(base.join("call.json"), arguments.to_string()).unwrap();
    let began = Instant::now();
    let output = Command::new(crate::program())
        .args(["call", "tdd_green", "--output", "json", "--json"])
        .arg(base.join("call.json"))
        .arg("--config")
        .arg(base.join("models.toml"))
        .env("SUPERVISOR_STATE_DIR", base.join("state"))
        .output()
        .map_err(|e| e.to_string())?;
    let took = began.elapsed();
    let told: Value = serde_json::from_slice(&output.stdout)
        .map_err(|e| format!("{e}: {}", String::from_utf8_lossy(&output.stderr)))?;
    if told["status"] != "pass" {
        return Err(told["message"].to_string());
    }
    Ok((
        took,
        told["sandbox"].as_str().unwrap_or_default().to_owned(),
    ))
}

fn settings(base: &Path, way: &Way) -> String {
    format!(
        "verifier = \"none\"\ndefault_chain = [\"small\"]\n[skills.tdd]\nchain = [\"small\"]\n{}\
         [backends.lab]\nkind = \"replay\"\ntier = \"local\"\nmodels = [\"small\"]\nfile = \"{}/answers.jsonl\"\n",
        way.settings,
        base.display()
    )
}
