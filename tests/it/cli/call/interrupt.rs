//! Ctrl-C: the call is cancelled as a client would, the project is as it was, and nothing runs on.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tempfile::TempDir;

use super::{red_demo, standing_in};
use crate::skills::tdd::{ADD, ADD_TEST, MANIFEST, OLD_TEST, ONE};
use crate::support::mcp_session::{until, wait};
use crate::support::scenario::{Scenario, creates, replaces};

fn start(scenario: &Scenario, words: &[&str]) -> Child {
    standing_in(scenario)
        .arg("call")
        .args(words)
        .spawn()
        .unwrap()
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// What it said, and that it left with 130 and nothing on stdout.
fn interrupted(mut child: Child) -> String {
    let code = wait(&mut child);
    let (mut out, mut err) = (String::new(), String::new());
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut out)
        .unwrap();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut err)
        .unwrap();
    assert_eq!((code, out.as_str()), (Some(130), ""), "{err}");
    err
}

/// Every process of a call carries the directory of its state in its environment.
fn running(scenario: &Scenario) -> Vec<String> {
    let mark = scenario.state.path().display().to_string();
    let carries = |pid: &str| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        String::from_utf8_lossy(&environ).contains(&mark)
    };
    let pids = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    let alive = pids.filter(|name| name.parse::<u32>().is_ok() && carries(name));
    alive
        .map(|pid| {
            fs::read_to_string(format!("/proc/{pid}/cmdline"))
                .unwrap_or_default()
                .replace('\0', " ")
        })
        .collect()
}

#[test]
fn ctrl_c_during_a_question_cancels_the_call() {
    for (signal, named) in [
        (Signal::INT, true),
        (Signal::TERM, false),
        (Signal::HUP, false),
    ] {
        // In place, so that there is something to take back.
        let mut scenario = red_demo(&["small"]).settings("[workspace]\nstrategy = \"in-place\"\n");
        scenario.line(&json!({"model": "small", "failure": "hang"}));
        let before = scenario.tree();
        let mut words = vec!["tdd_green", "--arg", "test_path=tests/add.rs"];
        words.extend(
            named
                .then_some(["--arg", "session_id=stopped"])
                .into_iter()
                .flatten(),
        );
        let child = start(&scenario, &words);
        until("the question", || !scenario.asked_of("small").is_empty());
        assert_ne!(
            scenario.tree(),
            before,
            "the lock file of the first run is there"
        );
        assert!(!running(&scenario).is_empty());
        send(&child, signal);
        let said = interrupted(child);
        assert_eq!(scenario.tree(), before);
        assert_eq!(running(&scenario), Vec::<String>::new());
        assert!(
            said.contains("Cancelled. Your files are as they were."),
            "{said}"
        );
        let log = said
            .lines()
            .find_map(|line| line.strip_prefix("log "))
            .unwrap()
            .trim();
        assert_eq!(log.ends_with("/stopped.jsonl"), named, "{log}");
        assert!(
            fs::read_to_string(log).unwrap().contains("Cancelled"),
            "{log}"
        );
    }
}

/// A project whose own tests do not end; `pid` is the test that waits.
fn with_a_test_that_waits(ignores_signals: bool) -> (Scenario, std::path::PathBuf, TempDir) {
    // Beside the state directory, which no child sees.
    let beside = tempfile::tempdir().unwrap();
    let scenario = red_demo(&["small"]).settings(&format!(
        "[sandbox]\nwrite = [\"{}\"]\n",
        beside.path().display()
    ));
    let started = beside.path().join("started");
    // A child of the test, since cargo and the test itself would heed the interrupt.
    let script = format!(
        "{}echo $$ > {file}.new; mv {file}.new {file}; while :; do sleep 1; done",
        if ignores_signals {
            "trap '' INT TERM HUP; "
        } else {
            ""
        },
        file = started.display()
    );
    let test = format!(
        "#[test]\nfn waits() {{\n    \
         let status = std::process::Command::new(\"sh\").args([\"-c\", {script:?}]).status();\n    \
         assert!(status.unwrap().success());\n}}\n"
    );
    fs::write(scenario.project.path().join("tests/old.rs"), test).unwrap();
    fs::remove_file(scenario.project.path().join("tests/add.rs")).unwrap();
    (scenario, started, beside)
}

fn pid_in(file: &std::path::Path) -> String {
    until("the test that waits", || file.exists());
    fs::read_to_string(file).unwrap().trim().to_owned()
}

#[test]
fn ctrl_c_during_tests_ends_the_whole_tree() {
    let (scenario, started, _beside) = with_a_test_that_waits(false);
    let before = scenario.tree();
    let child = start(&scenario, &["tdd_red", "--arg", "spec=two() is 2"]);
    let pid = pid_in(&started);
    send(&child, Signal::INT);
    let said = interrupted(child);
    assert!(
        !std::path::Path::new(&format!("/proc/{pid}")).exists(),
        "{said}"
    );
    assert_eq!(running(&scenario), Vec::<String>::new());
    assert_eq!(scenario.tree(), before);
    assert!(
        said.contains("Cancelled. Your files are as they were."),
        "{said}"
    );
}

#[test]
fn cancelled_cycle_says_what_is_kept() {
    let mut scenario = Scenario::chain(&["small"], &[MANIFEST, ("src/lib.rs", ONE), OLD_TEST])
        .answers("small", &creates("tests/add.rs", ADD_TEST))
        .answers("small", &replaces("src/lib.rs", ADD));
    scenario.line(&json!({"model": "small", "failure": "hang"}));
    let words = [
        "tdd",
        "--arg",
        "criteria=add(1, 2) is 3",
        "--arg",
        "criteria=sub(2, 1) is 1",
    ];
    let child = start(&scenario, &words);
    until("the third question", || {
        scenario.asked_of("small").len() == 3
    });
    send(&child, Signal::INT);
    let said = interrupted(child);
    assert!(
        said.contains("Cancelled. Kept: 1 finished criterion. All other files are as they were."),
        "{said}"
    );
    assert!(!said.contains("Your files are as they were"), "{said}");
    let code = fs::read_to_string(scenario.root().join("src/lib.rs")).unwrap();
    assert_eq!(code, ADD, "the finished criterion stays");
}

#[test]
fn second_ctrl_c_exits_and_still_restores() {
    let (scenario, started, _beside) = with_a_test_that_waits(true);
    let before = scenario.tree();
    let mut child = start(&scenario, &["tdd_red", "--arg", "spec=two() is 2"]);
    pid_in(&started);
    send(&child, Signal::INT);
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    // The test does not heed the interrupt, so the first one waits for it to be killed.
    let heard = lines
        .by_ref()
        .map_while(Result::ok)
        .any(|line| line.contains("cancelling the call"));
    assert!(heard, "the first interrupt is acknowledged");
    send(&child, Signal::INT);
    assert_eq!(wait(&mut child), Some(130));
    until("the end of everything", || running(&scenario).is_empty());
    until("the project to be as it was", || scenario.tree() == before);
}
