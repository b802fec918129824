//! `walls`: overhead of the sandbox and the project overlay for a green whose suite takes one
//! second, as a ratio to the same call without either. The variants alternate; each call is a
//! separate process.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const ROUNDS: usize = 7;
/// Maximum ratio that the documentation states.
const TARGET: f64 = 1.1;

/// Settings under which child processes run.
struct SandboxVariant {
    name: &'static str,
    settings: &'static str,
}

const VARIANTS: [SandboxVariant; 3] = [
    SandboxVariant {
        name: "none",
        settings: "[sandbox]\nmode = \"off\"\n[workspace]\nstrategy = \"in-place\"\n",
    },
    SandboxVariant {
        name: "walls",
        settings: "[workspace]\nstrategy = \"in-place\"\n",
    },
    SandboxVariant {
        name: "walls and view",
        settings: "",
    },
];

pub(crate) fn run() {
    let mut times: [Vec<Duration>; 3] = Default::default();
    let mut sandboxes: [String; 3] = Default::default();
    for round in 0..=ROUNDS {
        for ((variant, times), used_sandbox) in VARIANTS.iter().zip(&mut times).zip(&mut sandboxes)
        {
            match measure(variant) {
                // The first round fills caches.
                Ok(_) if round == 0 => {}
                Ok((took, sandbox)) => {
                    times.push(took);
                    *used_sandbox = sandbox;
                }
                Err(why) => return println!("not measured: {}: {why}", variant.name),
            }
        }
    }
    let medians = times.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2].as_secs_f64()
    });
    println!("one green, two runs of a suite of one second; median of {ROUNDS}");
    for ((variant, took), sandbox) in VARIANTS.iter().zip(medians).zip(sandboxes) {
        println!(
            "{:<16} {took:>6.2} s   {:>5.2} × none   {sandbox}",
            variant.name,
            took / medians[0]
        );
    }
    println!("stated: at most {TARGET} × none");
}

/// Makes one call on a fresh project. Returns its duration and the sandbox that was active.
fn measure(variant: &SandboxVariant) -> Result<(Duration, String), String> {
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
    std::fs::write(base.join("models.toml"), settings(&base, variant)).unwrap();
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
    let result: Value = serde_json::from_slice(&output.stdout)
        .map_err(|e| format!("{e}: {}", String::from_utf8_lossy(&output.stderr)))?;
    if result["status"] != "pass" {
        return Err(result["message"].to_string());
    }
    Ok((
        took,
        result["sandbox"].as_str().unwrap_or_default().to_owned(),
    ))
}

fn settings(base: &Path, variant: &SandboxVariant) -> String {
    format!(
        "verifier = \"none\"\ndefault_chain = [\"small\"]\n[skills.tdd]\nchain = [\"small\"]\n{}\
         [backends.lab]\nkind = \"replay\"\ntier = \"local\"\nmodels = [\"small\"]\nfile = \"{}/answers.jsonl\"\n",
        variant.settings,
        base.display()
    )
}
