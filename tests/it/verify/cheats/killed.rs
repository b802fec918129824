//! Killed while the tests lie there falsified: whichever process dies, and whenever, the project is as it was before.
//! Twelve kills each time; the hundred by `SUPERVISOR_TEST_LONG=1`.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::support::mcp_session::{Session, result_of, until};
use crate::support::scenario::replaces;
use crate::support::tasks::{ADDED, green, on, red_project};
use supervisor_test_support::programs::require;

#[derive(Debug, Clone, Copy)]
enum Victim {
    Server,
    Children,
    All,
}

#[test]
#[expect(clippy::print_stderr, reason = "the figures are what the test shows")]
#[ignore = "needs python3"]
fn random_kill_during_falsification_restores_the_tree() {
    require(&["python3"]);
    let rounds = if std::env::var("SUPERVISOR_TEST_LONG").is_ok_and(|v| v == "1") {
        100
    } else {
        12
    };
    let victims = [Victim::Server, Victim::All, Victim::Children];
    let (mut crashed, mut answered) = (0, 0);
    for round in 0..rounds {
        let is_sandboxed = round % 2 == 0;
        let victim = victims[round / 2 % victims.len()];
        let mut scenario = red_project(is_sandboxed);
        scenario.say("small", &replaces("add.py", ADDED));
        let before = scenario.tree();
        let mut session = scenario.fresh_session();
        session.call(1, "tdd_green", on(&scenario, green()));
        assert!(
            session.wait_for_progress("falsified", 1),
            "the tests were never falsified"
        );
        std::thread::sleep(Duration::from_millis(u64::from(
            getrandom::u32().unwrap() % 900,
        )));
        kill(&mut session, victim);
        // A child that dies is an answer; with the server everything ends.
        let is_accepted = if matches!(victim, Victim::Children) {
            answered += 1;
            let reply = session.reply_after_tests(1);
            result_of(&reply)["status"] == "pass"
        } else {
            crashed += 1;
            session.process.wait().unwrap();
            false
        };
        // Busy as long as a guard that outlived the server puts things right.
        let recover = || {
            scenario
                .command()
                .arg("recover")
                .stdin(Stdio::null())
                .output()
                .unwrap()
                .status
                .success()
        };
        until("a clean project", recover);
        let mut after = scenario.tree();
        // Killed after the work was accepted: then it is all there.
        let code = Path::new("add.py");
        if is_accepted || after.get(code).is_some_and(|text| text == ADDED.as_bytes()) {
            after.insert(code.into(), before[code].clone());
        }
        assert_eq!(
            after, before,
            "round {round}: {victim:?} killed, walls {is_sandboxed}"
        );
    }
    eprintln!("{rounds} kills: {crashed} of the server, {answered} of its children alone; 0 dirty");
}

fn kill(session: &mut Session, victim: Victim) {
    let server = session.process.id();
    let children = || {
        let tasks = fs::read_dir(format!("/proc/{server}/task"))
            .into_iter()
            .flatten()
            .flatten();
        let of_task = |task: fs::DirEntry| {
            fs::read_to_string(task.path().join("children")).unwrap_or_default()
        };
        tasks.map(of_task).flat_map(|line| {
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
    };
    let mut pids: Vec<i32> = match victim {
        Victim::Server => Vec::new(),
        Victim::Children | Victim::All => children().filter_map(|pid| pid.parse().ok()).collect(),
    };
    if !matches!(victim, Victim::Children) {
        pids.push(i32::try_from(server).unwrap());
    }
    for pid in pids {
        let _ = rustix::process::kill_process(
            rustix::process::Pid::from_raw(pid).unwrap(),
            rustix::process::Signal::KILL,
        );
    }
}
