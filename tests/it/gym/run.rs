//! `supervisor gym`, the built program with real test runs: what it measures, and what it says when it cannot.

use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::{Value, json};
use supervisor_gym::results::ResultsFile;

use crate::support::scenario::Scenario;
use supervisor_test_support::programs::require;
use supervisor_test_support::small_disk::SmallDisk;

/// A user with one recorded model, `small`.
fn user() -> Scenario {
    Scenario::chain(&["small"], &[])
}

fn gym(scenario: &Scenario, arguments: &[&str]) -> Output {
    scenario
        .command()
        .arg("gym")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    format!(
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", said(output)))
}

/// What `small` answers to a task of ours: the reference, or one of the wrong answers.
fn answer(task: &str, wrong: Option<usize>) -> Value {
    let tasks = supervisor_gym::task_set::TaskSet::own()
        .and_then(|set| set.tasks())
        .unwrap();
    let task = tasks.into_iter().find(|known| known.name == task).unwrap();
    let files = wrong.map_or(&task.reference, |n| &task.wrong[n].files);
    let edits: Vec<Value> = files
        .iter()
        .map(|(path, text)| json!({"path": path, "action": "replace", "content": text}))
        .collect();
    json!({"edits": edits})
}

#[test]
#[ignore = "needs ruby"]
fn references_pass_and_cheats_and_stubs_fail() {
    require(&["ruby"]);
    let scenario = user();
    let arguments = ["--self", "--tracks", "ruby", "--only", "ruby/par", "--json"];
    let output = gym(&scenario, &arguments);
    assert!(output.status.success(), "{}", said(&output));
    let told = report(&output);
    let model = |name: &str| {
        let models = told["models"].as_array().unwrap();
        models
            .iter()
            .find(|m| m["model"] == name)
            .unwrap_or_else(|| panic!("{name} in {told:#}"))
            .clone()
    };
    let reference = model("reference");
    assert_eq!(
        (reference["judged"].clone(), reference["accepted"].clone()),
        (json!(2), json!(2)),
        "{told:#}"
    );
    assert_eq!(reference["overfit"], 0);
    assert_eq!(model("cheat")["accepted"], 0, "{told:#}");
    assert_eq!(model("stub")["accepted"], 0, "{told:#}");
    // Made to pass the visible tests: those that were accepted are all found out.
    let wrong = model("wrong");
    assert!(
        wrong["accepted"].as_u64() > Some(0) && wrong["overfit"] == wrong["accepted"],
        "{wrong:#}"
    );

    // Once more: everything is there already, and nothing is run.
    let again = gym(&scenario, &arguments);
    assert_eq!(report(&again)["models"], told["models"]);
    assert!(
        String::from_utf8_lossy(&again.stderr).contains("already measured"),
        "{}",
        said(&again)
    );
}

#[test]
#[ignore = "needs ruby"]
fn model_gets_a_passport_across_endpoint_failures() {
    require(&["ruby"]);
    let scenario = user();
    let says = |lines: &[Value]| {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(scenario.state.path().join("answers.jsonl"), text).unwrap();
    };
    let right =
        |task: &str| json!({"model": "small", "answer": answer(task, None), "cost_usd": 0.5});
    // Right on the visible tests alone; right; and then the endpoint is gone.
    let overfit =
        json!({"model": "small", "answer": answer("ruby/busy_minutes", Some(0)), "cost_usd": 0.5});
    let gone = json!({"model": "small", "failure": "infra"});
    says(&[
        overfit,
        right("ruby/initials"),
        gone.clone(),
        gone.clone(),
        gone,
    ]);
    let arguments = ["--model", "small", "--tracks", "ruby", "--json"];
    let output = gym(&scenario, &arguments);
    assert!(output.status.success(), "{}", said(&output));
    let told = report(&output);
    assert_eq!(
        (told["ended"].as_str(), told["models"][0]["judged"].as_u64()),
        (Some("unreachable"), Some(2)),
        "{told:#}"
    );

    // It is back, and the rest is measured; what was measured is not measured again.
    let rest = [
        "page_of",
        "parcel_fee",
        "parse_span",
        "price_after",
        "release_order",
        "rows_needed",
    ];
    says(&rest.map(|name| right(&format!("ruby/{name}"))));
    let output = gym(&scenario, &arguments);
    let told = report(&output);
    let small = &told["models"][0];
    assert_eq!(told["ended"], "done", "{}", said(&output));
    assert_eq!(
        (small["judged"].as_u64(), small["accepted"].as_u64()),
        (Some(8), Some(8)),
        "{small:#}"
    );
    assert_eq!(
        (small["overfit"].as_u64(), small["usd"].as_f64()),
        (Some(1), Some(4.0)),
        "{small:#}"
    );

    let explained = scenario
        .command()
        .args(["explain", "tdd_green"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        said(&explained).contains("accepted 8 of 8"),
        "{}",
        said(&explained)
    );
    let doctor = scenario
        .command()
        .arg("doctor")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        said(&doctor).contains("small: accepted 8 of 8"),
        "{}",
        said(&doctor)
    );
}

#[test]
fn impossible_run_names_cause_and_remedy() {
    let scenario = user();
    let refused = |arguments: &[&str], words: &[&str]| {
        let output = gym(&scenario, arguments);
        let text = said(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        for word in words {
            assert!(
                text.contains(word),
                "{arguments:?}: `{word}` is not in {text}"
            );
        }
    };
    refused(&["--minutes", "0"], &["--minutes", "more than 0"]);
    refused(&["--budget-usd", "0"], &["--budget-usd"]);
    refused(&["--model", "nobody/knows"], &["nobody/knows"]);
    refused(&["--tracks", "cobol"], &["nothing to run"]);
    let empty = tempfile::tempdir().unwrap();
    refused(
        &["--tasks", empty.path().to_str().unwrap()],
        &[
            "holds no tasks",
            "languages.toml",
            "`exercises` of an Exercism track",
        ],
    );
    refused(&["--self", "--model", "small"], &["--model"]);

    let path = scenario.state.path().join("state/gym/models.jsonl");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let held = ResultsFile::open(&path).unwrap();
    refused(&["--model", "small"], &["another gym"]);
    drop(held);
}

#[test]
#[ignore = "needs root and ruby"]
fn full_disk_is_reported_and_run_resumes() {
    require(&["ruby"]);
    let small = SmallDisk::new("2m");
    let scenario = user();
    let run = || {
        let mut command = scenario.command();
        command.env("SUPERVISOR_STATE_DIR", small.dir.path().join("state"));
        command.args([
            "gym",
            "--self",
            "--tracks",
            "ruby",
            "--only",
            "rows_needed",
            "--answers",
            "reference",
            "--json",
        ]);
        command.stdin(Stdio::null()).output().unwrap()
    };
    fs::create_dir_all(small.dir.path().join("state/gym")).unwrap();
    fs::write(small.dir.path().join("state/gym/self.jsonl"), "").unwrap();
    small.fill(Path::new("filler"));
    let output = run();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    for words in [
        "no room left for results",
        "self.jsonl",
        "goes on from here",
    ] {
        assert!(
            said(&output).contains(words),
            "`{words}` is not in {}",
            said(&output)
        );
    }
    fs::remove_file(small.dir.path().join("filler")).unwrap();
    let output = run();
    assert_eq!(
        report(&output)["models"][0]["accepted"],
        1,
        "{}",
        said(&output)
    );
}

#[test]
#[ignore = "needs ruby"]
fn broken_tasks_are_found() {
    require(&["ruby"]);
    let dir = tempfile::tempdir().unwrap();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/gym/tasks");
    fs::copy(
        own.join("languages.toml"),
        dir.path().join("languages.toml"),
    )
    .unwrap();
    fs::create_dir(dir.path().join("ruby")).unwrap();
    let text = fs::read_to_string(own.join("ruby/rows_needed.toml")).unwrap();
    let (before, rest) = text.split_once("stub = '''").unwrap();
    let (stub, after) = rest.split_once("'''").unwrap();
    let reference = text
        .split_once("reference = '''")
        .unwrap()
        .1
        .split_once("'''")
        .unwrap()
        .0;
    let green = format!("{before}stub = '''{reference}'''{after}");
    let failing = text.replace(
        &format!("reference = '''{reference}'''"),
        &format!("reference = '''{stub}'''"),
    );
    let failing = failing.split("[[wrong]]").next().unwrap().to_owned();
    fs::write(dir.path().join("ruby/green.toml"), green).unwrap();
    fs::write(dir.path().join("ruby/failing.toml"), failing).unwrap();
    let scenario = user();
    let output = gym(
        &scenario,
        &["--self", "--tasks", dir.path().to_str().unwrap()],
    );
    let text = said(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("fault: ruby/failing reference"), "{text}");
    assert!(
        text.contains("ruby/green") && text.contains("not given"),
        "{text}"
    );
}

#[test]
fn economics_table_is_reproducible_by_seed() {
    let scenario = user();
    let simulate = |arguments: &[&str]| {
        let output = scenario
            .command()
            .arg("simulate")
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let table = simulate(&["--seeds", "5", "--calls", "100"]);
    assert_eq!(table, simulate(&["--seeds", "5", "--calls", "100"]));
    for words in [
        "always the top tier",
        "static chain, one try",
        "learned",
        "saving",
        "Nemotron-3-Nano-30B",
    ] {
        assert!(table.contains(words), "{words} is not in {table}");
    }
    let report: Value =
        serde_json::from_str(&simulate(&["--seeds", "2", "--calls", "10", "--json"])).unwrap();
    assert_eq!(
        report["worlds"][0]["policies"][0]["policy"],
        "always the top tier"
    );
}

#[test]
fn recorded_calls_of_a_tool_are_simulated() {
    let scenario = user();
    let nothing = scenario
        .command()
        .args(["simulate", "--log"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(nothing.status.code(), Some(2));
    assert!(
        said(&nothing).contains("supervisor gym"),
        "{}",
        said(&nothing)
    );
    // Entries of version 1 have the tool in `skill`.
    let entry = |version: u32, skill: &str, tool: &str| {
        let attempt = json!({"attempt": 1, "model": "small", "tier": "local", "duration_ms": 900, "cause": "accepted",
            "verdict": "accept", "cost_usd": 0.01});
        let mut entry = json!({"v": version, "session_id": "s", "timestamp": "2026-03-01T09:00:00Z", "skill": skill,
            "final_status": "pass", "attempts": [attempt]});
        if !tool.is_empty() {
            entry["tool"] = json!(tool);
        }
        format!("{entry}\n")
    };
    let log = [
        entry(2, "tdd", "tdd_green"),
        entry(1, "tdd_green", ""),
        entry(2, "tdd", "tdd_red"),
        entry(2, "review", "review"),
    ];
    let sessions = scenario.state.path().join("state/sessions");
    fs::create_dir_all(&sessions).unwrap();
    fs::write(sessions.join("s.jsonl"), log.concat()).unwrap();
    for (skill, tasks) in [("tdd_green", 2), ("tdd_red", 1), ("review", 1)] {
        let output = scenario
            .command()
            .args(["simulate", "--log", "--json", "--calls", "5", "--skill"])
            .arg(skill)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let world = &report(&output)["worlds"][0];
        let note = world["notes"][0].as_str().unwrap();
        assert!(note.starts_with(&format!("{tasks} recorded")), "{note}");
        assert_eq!(world["policies"][0]["accepted"]["mean"], 1.0, "{world}");
    }
}

#[test]
#[ignore = "needs ruby"]
fn ways_to_ask_are_compared() {
    require(&["ruby"]);
    let scenario = user().settings("[models.small]\nattempts_per_tier = 2\n");
    // Each way finds the same answers: two that change nothing, and then the right one.
    let lines: String = ["1", "2", "right"]
        .iter()
        .map(|n| {
            let mut answer = answer("ruby/initials", None);
            if *n != "right" {
                answer["edits"][0]["content"] = json!(format!("def initials(name)\n  {n}\nend\n"));
            }
            let line = json!({"model": "small", "answer": answer, "cost_usd": 0.5, "tokens_in": 90, "tokens_out": 10});
            format!("{line}\n")
        })
        .collect();
    let file = scenario.state.path().join("answers.jsonl");
    fs::write(&file, lines).unwrap();
    let arguments = [
        "--model",
        "small",
        "--tracks",
        "ruby",
        "--only",
        "initials",
        "--samples",
        "1,3",
        "--repair",
        "plain,cause",
    ];
    let output = gym(&scenario, &[&arguments[..], &["--json"]].concat());
    assert!(output.status.success(), "{}", said(&output));
    let told = report(&output);
    let modes: Vec<Value> = told["modes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            json!([
                one["samples"],
                one["repair"],
                one["accepted"],
                one["judged"],
                one["tokens_in"],
                one["usd"]
            ])
        })
        .collect();
    assert_eq!(
        modes,
        [
            json!([1, "plain", 0, 1, 180, 1.0]),
            json!([1, "cause", 0, 1, 180, 1.0]),
            json!([3, "plain", 1, 1, 270, 1.5]),
            json!([3, "cause", 1, 1, 270, 1.5]),
        ],
        "{told:#}"
    );
    let asked = fs::read_to_string(format!("{}.asked", file.display())).unwrap();
    let asks_cause: Vec<&str> = asked
        .lines()
        .filter(|line| line.contains("Before you edit again"))
        .collect();
    assert_eq!(
        (asked.lines().count(), asks_cause.len()),
        (2 + 2 + 3 + 3, 1)
    );
    let repair: Value = serde_json::from_str(asks_cause[0]).unwrap();
    let prompt = repair["prompt"].as_str().unwrap();
    assert!(
        prompt.contains("the failing assertion:") && prompt.contains("still fails: "),
        "{prompt}"
    );
    assert_eq!(repair["schema"]["properties"]["cause"]["type"], "string");
    // A person gets a table, and nothing is asked again.
    let output = gym(&scenario, &arguments);
    let text = said(&output);
    assert!(text.contains("minutes per accepted"), "{text}");
    assert!(text.contains("already measured"), "{text}");
}
