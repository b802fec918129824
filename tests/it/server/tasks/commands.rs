//! `supervisor jobs`, beside servers that run.

use serde_json::{Value, json};

use crate::support::mcp_session::until;
use crate::support::review_project::{both, good, shop};
use crate::support::scenario::Scenario;
use crate::support::tasks::{ended, get, hanging_review, offering, on, start, start_hanging};

/// What the command printed, and whether it went well.
fn jobs(scenario: &Scenario, arguments: &[&str]) -> (bool, String) {
    let output = scenario
        .command()
        .arg("jobs")
        .args(arguments)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    (output.status.success(), text.concat())
}

#[test]
fn running_job_is_listed_shown_and_cancelled() {
    let scenario = hanging_review();
    assert!(jobs(&scenario, &[]).1.contains("no jobs"));
    let mut session = offering(&scenario);
    let id = start_hanging(&mut session, &scenario);
    let (_, listed) = jobs(&scenario, &[]);
    assert!(
        listed.contains(&id[..12]) && listed.contains("review") && listed.contains("working"),
        "{listed}"
    );
    let (went_well, said) = jobs(&scenario, &["cancel", &id[..8]]);
    assert!(went_well && said.contains(&id), "{said}");
    assert_eq!(ended(&mut session, &id)["status"], "cancelled");
    let (went_well, said) = jobs(&scenario, &["cancel", &id]);
    assert!(!went_well && said.contains("is over: cancelled"), "{said}");
    let (went_well, said) = jobs(&scenario, &["show", "../x"]);
    assert!(!went_well && said.contains("there is no job"), "{said}");
}

#[test]
fn finished_job_is_shown_with_its_result() {
    let scenario = shop(&["small"]).answers("small", &good());
    let mut session = offering(&scenario);
    let id = start(&mut session, "review", on(&scenario, both()));
    let task = ended(&mut session, &id);
    let shown: Value = serde_json::from_str(&jobs(&scenario, &["show", &id]).1).unwrap();
    assert_eq!(
        (&shown["state"], &shown["result"]),
        (&json!("completed"), &task["result"])
    );
}

#[test]
fn command_detects_a_crashed_job() {
    let scenario = hanging_review();
    let mut session = offering(&scenario);
    let id = start_hanging(&mut session, &scenario);
    session.process.kill().unwrap();
    session.process.wait().unwrap();
    until("the crash", || {
        jobs(&scenario, &[]).1.contains("failed: crashed")
    });
    let shown: Value = serde_json::from_str(&jobs(&scenario, &["show", &id]).1).unwrap();
    let task = get(&mut offering(&scenario), &id);
    assert_eq!(
        (&task["lastUpdatedAt"], &task["statusMessage"]),
        (&shown["changed"], &shown["message"])
    );
}
