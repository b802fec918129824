//! What was asked and what came back is kept beside the log, as much as is wanted and no secret of it; and a call has
//! its one line in the log even if its server dies.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::mcp_session::until;
use crate::support::review_project::{both, good, good_but, shop};
use crate::support::scenario::Scenario;

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    entries
        .flat_map(|path| {
            if path.is_dir() {
                files_below(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

fn entries(scenario: &Scenario, session: &str) -> Vec<Value> {
    let path = scenario
        .state
        .path()
        .join(format!("state/sessions/{session}.jsonl"));
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn asked_in(session: &str) -> Value {
    let mut asked = both();
    asked["session_id"] = json!(session);
    asked
}

/// A review that is refused, and one that is accepted.
fn reviewed_with(mode: &str) -> (Scenario, Value) {
    let invented = good_but(|review| review["findings"][0]["quote"] = json!("nothing like it"));
    let all_invented = good_but(|review| {
        for n in 0..3 {
            review["findings"][n]["quote"] = json!("nothing like it");
        }
    });
    let mut scenario = shop(&["small", "large"])
        .answers(
            "small",
            if mode == "off" {
                &invented
            } else {
                &all_invented
            },
        )
        .answers("large", &good())
        .env("SUPERVISOR_LOG__EXCHANGE", mode);
    scenario.call("review", asked_in("s"));
    let entry = entries(&scenario, "s").remove(0);
    (scenario, entry)
}

#[test]
fn answers_are_kept_and_questions_on_request() {
    for (mode, fields) in [
        ("answers", &["answer"][..]),
        ("full", &["answer", "prompt", "rules"]),
    ] {
        let (scenario, entry) = reviewed_with(mode);
        assert_eq!(entry["attempts"].as_array().unwrap().len(), 2, "{entry:#}");
        for (n, attempt) in entry["attempts"].as_array().unwrap().iter().enumerate() {
            let mut names: Vec<&str> = attempt["exchange"][0]
                .as_object()
                .unwrap()
                .keys()
                .map(String::as_str)
                .collect();
            names.sort_unstable();
            assert_eq!(names, fields, "{mode}");
            for name in fields {
                let id = attempt["exchange"][0][name].as_str().unwrap();
                let path = scenario
                    .state
                    .path()
                    .join(format!("state/exchange/{}/{id}.txt", &id[..2]));
                let text = fs::read_to_string(&path).unwrap();
                let expected = ["nothing like it", "divides by zero"][n];
                match *name {
                    "answer" => assert!(text.contains(expected), "{text}"),
                    "prompt" => assert!(text.contains("return sum(prices)"), "{text}"),
                    _ => assert!(text.len() > 100, "{text}"),
                }
                assert_eq!(
                    fs::metadata(&path).unwrap().permissions().mode() & 0o777,
                    0o600
                );
            }
        }
    }
    let (scenario, entry) = reviewed_with("off");
    assert!(files_below(&scenario.state.path().join("state/exchange")).is_empty());
    assert_eq!(entry["attempts"][0]["exchange"], json!([{}]), "{entry:#}");
}

#[test]
fn unparsable_answer_names_its_kept_file() {
    let mut scenario = shop(&["small"]);
    scenario.line(&json!({"model": "small", "text": "There is nothing to find here, trust me."}));
    let review = scenario.call("review", asked_in("s"));
    let message = review["message"].as_str().unwrap();
    let path = message
        .split("its answer is in ")
        .nth(1)
        .unwrap()
        .split([';', ' ', ')'])
        .next()
        .unwrap();
    assert_eq!(
        fs::read_to_string(path).unwrap(),
        "There is nothing to find here, trust me."
    );
}

#[test]
fn one_call_is_shown_in_readable_form() {
    let (scenario, _) = reviewed_with("full");
    let say = |words: &[&str]| {
        let output = scenario.command().arg("log").args(words).output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (code, page, _) = say(&["show", "s", "1"]);
    assert_eq!(code, Some(0));
    for part in [
        "s:1 · review pass",
        "attempt 1 rejected  small",
        "nothing like it",
        "attempt 2 accepted  large",
        "divides by zero",
    ] {
        assert!(page.contains(part), "{part}:\n{page}");
    }
    assert!(
        !page.contains("return sum(prices)\n    "),
        "questions are long, and shown on request"
    );
    assert!(
        say(&["show", "last", "last", "--prompts"])
            .1
            .contains("import os")
    );
    assert!(
        say(&["show", "s"]).1.contains("review pass"),
        "{}",
        say(&["show", "s"]).1
    );
    assert!(say(&["list"]).1.contains("s  1 call (review)"));
    let data: Value =
        serde_json::from_str(&say(&["show", "s", "1", "--json", "--prompts"]).1).unwrap();
    assert!(
        data[0]["attempts"][1]["texts"][0]["prompt"]
            .as_str()
            .unwrap()
            .contains("import os")
    );
    for (words, said) in [
        (&["show", "t"][..], "has no log"),
        (&["show", "s", "7"], "it has 1 call"),
        (&["show", "../s"], "is not a name"),
        (&["show", "elsewhere"], "`supervisor log list`"),
    ] {
        let (code, _, error) = say(words);
        assert!(
            code == Some(2) && error.contains(said),
            "{words:?}: {error}"
        );
    }
}

#[test]
fn crashed_call_is_logged_once_after_restart() {
    let mut scenario = shop(&["small", "large"]);
    scenario.say("small", &json!({"findings": [], "reviewed": []}));
    scenario.line(&json!({"model": "large", "failure": "hang"}));
    let mut arguments = asked_in("killed");
    arguments["project_root"] = json!(scenario.root());
    let open = scenario.state.path().join("state/open");
    scenario.session().call(1, "review", arguments);
    until("the second tier is asked", || {
        files_below(&open)
            .iter()
            .any(|file| fs::read_to_string(file).is_ok_and(|text| text.contains("\"large\"")))
    });
    assert!(
        entries(&scenario, "killed").is_empty(),
        "the line is written at the end"
    );
    assert_eq!(running(&scenario), [("review".to_owned(), true)]);
    let mut server = scenario.end_session();
    server.process.kill().unwrap();
    server.process.wait().unwrap();
    assert_eq!(running(&scenario), [("review".to_owned(), false)]);
    // Two at once, so that each must leave the other's work alone.
    let mut others = [scenario.fresh_session(), scenario.fresh_session()];
    for other in &mut others {
        other.call(1, "session_log", json!({"operation": "list"}));
    }
    until("the entry is written", || {
        !entries(&scenario, "killed").is_empty() && files_below(&open).is_empty()
    });
    let found = entries(&scenario, "killed");
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(
        (&found[0]["final_status"], &found[0]["cause"]),
        (&json!("error"), &json!("crashed")),
        "{found:#?}"
    );
    let causes: Vec<_> = found[0]["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| (&a["model"], &a["cause"]))
        .collect();
    assert_eq!(
        causes,
        [
            (&json!("small"), &json!("rejected")),
            (&json!("large"), &json!("crashed"))
        ]
    );
    for other in &mut others {
        other.process.kill().unwrap();
    }
}

fn running(scenario: &Scenario) -> Vec<(String, bool)> {
    let state =
        supervisor_workspace::state::StateDir::at(scenario.state.path().join("state")).unwrap();
    let calls = supervisor_engine::session::running_calls(&state);
    calls
        .into_iter()
        .map(|call| (call.entry.tool, call.is_alive))
        .collect()
}
