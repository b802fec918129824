//! `supervisor jobs`, beside servers that run.

use serde_json::{Value, json};

use crate::support::mcp_bench::until;
use crate::support::review_bench::{both, good, shop};
use crate::support::tasks_bench::{ended, get, hanging_review, offering, on, start, start_hanging};
use crate::support::tdd_bench::Bench;

/// What the command printed, and whether it went well.
fn jobs(bench: &Bench, arguments: &[&str]) -> (bool, String) {
    let output = bench
        .command()
        .arg("jobs")
        .args(arguments)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    (output.status.success(), text.concat())
}

#[test]
fn a_job_of_a_running_server_is_listed_shown_and_cancelled() {
    let bench = hanging_review();
    assert!(jobs(&bench, &[]).1.contains("no jobs"));
    let mut session = offering(&bench);
    let id = start_hanging(&mut session, &bench);
    let (_, listed) = jobs(&bench, &[]);
    assert!(
        listed.contains(&id[..12]) && listed.contains("review") && listed.contains("working"),
        "{listed}"
    );
    let (went_well, said) = jobs(&bench, &["cancel", &id[..8]]);
    assert!(went_well && said.contains(&id), "{said}");
    assert_eq!(ended(&mut session, &id)["status"], "cancelled");
    let (went_well, said) = jobs(&bench, &["cancel", &id]);
    assert!(!went_well && said.contains("is over: cancelled"), "{said}");
    let (went_well, said) = jobs(&bench, &["show", "../x"]);
    assert!(!went_well && said.contains("there is no job"), "{said}");
}

#[test]
fn a_finished_job_is_shown_with_its_result() {
    let bench = shop(&["small"]).answers("small", &good());
    let mut session = offering(&bench);
    let id = start(&mut session, "review", on(&bench, both()));
    let task = ended(&mut session, &id);
    let shown: Value = serde_json::from_str(&jobs(&bench, &["show", &id]).1).unwrap();
    assert_eq!(
        (&shown["state"], &shown["result"]),
        (&json!("completed"), &task["result"])
    );
}

#[test]
fn the_command_finds_a_crash_as_well_as_a_server_does() {
    let bench = hanging_review();
    let mut session = offering(&bench);
    let id = start_hanging(&mut session, &bench);
    session.process.kill().unwrap();
    session.process.wait().unwrap();
    until("the crash", || {
        jobs(&bench, &[]).1.contains("failed: crashed")
    });
    let shown: Value = serde_json::from_str(&jobs(&bench, &["show", &id]).1).unwrap();
    let task = get(&mut offering(&bench), &id);
    assert_eq!(
        (&task["lastUpdatedAt"], &task["statusMessage"]),
        (&shown["changed"], &shown["message"])
    );
}
