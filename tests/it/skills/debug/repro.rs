//! The command that is said to show the error: what counts as shown, and what becomes of a command that misbehaves.

use serde_json::{Value, json};

use crate::support::debug_project::{ERROR, SCRIPT, project, sound, text, with_files};
use crate::support::mcp_session::until;
use crate::support::scenario::Scenario;

fn asked(scenario: &mut Scenario, repro: Option<&str>) -> Value {
    scenario.say("small", &sound());
    let mut arguments = json!({"error": ERROR});
    if let Some(repro) = repro {
        arguments["repro_cmd"] = json!(repro);
    }
    scenario.call("debug", arguments)
}

#[test]
fn unreproduced_error_is_reported_plainly() {
    let mut scenario = project(&["small"]);
    let rows = [
        (None, "Pass `repro_cmd` to have it reproduced.", Value::Null),
        (
            Some("sh report.sh full.txt"),
            "ended with exit code 0",
            json!(0),
        ),
        (
            Some("sh -c 'echo connection refused >&2; exit 1'"),
            "but the error is not in what it wrote",
            json!(1),
        ),
        // The words alone are not enough: it has to fail.
        (
            Some("sh -c 'echo RowError: the first row has no fields'"),
            "ended with exit code 0",
            json!(0),
        ),
        (
            Some("no-such-program-here x"),
            "could not be run: `no-such-program-here` was not found",
            Value::Null,
        ),
        (
            Some("sh -c 'no-such-program-here x'"),
            "could not be run: `sh`, or something it needs, was not",
            json!(127),
        ),
        (
            Some("./report.sh empty.txt"),
            "/report.sh` may not be executed",
            Value::Null,
        ),
        (
            Some("sh -c 'kill -SEGV $$'"),
            "ended by a signal, but the error is not in what it wrote",
            Value::Null,
        ),
        // Words of a command, and no shell.
        (
            Some("echo $(touch canary) && touch canary; touch canary"),
            "ended with exit code 0",
            json!(0),
        ),
    ];
    for (repro, said, code) in rows {
        let result = asked(&mut scenario, repro);
        assert_eq!(
            (&result["status"], &result["verified"]),
            (&json!("pass"), &json!(false)),
            "{repro:?}: {result:#}"
        );
        let message = text(&result, "message");
        assert!(
            message.starts_with("Most likely: ") && message.contains(said),
            "{repro:?}: {message}"
        );
        assert_eq!(result["details"]["reproduced"], false, "{repro:?}");
        if repro.is_some() {
            assert_eq!(
                result["details"]["repro"]["matched_error"], false,
                "{repro:?}"
            );
            assert_eq!(result["details"]["repro"]["exit_code"], code, "{repro:?}");
        }
    }
    assert!(!scenario.project.path().join("canary").exists());
}

#[test]
fn signal_reproduces_a_crash() {
    let mut scenario = project(&["small"]).answers("small", &sound());
    let arguments =
        json!({"error": "Segmentation fault (core dumped)", "repro_cmd": "sh -c 'kill -SEGV $$'"});
    let result = scenario.call("debug", arguments);
    assert_eq!(
        (&result["verified"], &result["details"]["reproduced"]),
        (&json!(true), &json!(true)),
        "{result:#}"
    );
}

#[test]
fn files_written_by_the_command_are_undone() {
    let mut scenario = project(&["small"]);
    let before = scenario.tree();
    let spoils = "sh -c 'echo ruined > report.sh; echo x > new.txt; rm full.txt; echo RowError: the first row has no fields >&2; exit 1'";
    let result = asked(&mut scenario, Some(spoils));
    assert_eq!(
        (&result["status"], &result["verified"]),
        (&json!("pass"), &json!(true)),
        "{result:#}"
    );
    assert_eq!(
        result["details"]["taken_back"],
        json!(["full.txt", "new.txt", "report.sh"]),
        "{result:#}"
    );
    assert!(
        !scenario.asked_of("small")[0].contains("ruined\n"),
        "the file is shown as it was"
    );
    assert_eq!(scenario.tree(), before);
}

#[test]
fn flooding_or_endless_command_is_bounded() {
    let scenario = with_files(&["small"], &[("report.sh", SCRIPT), ("empty.txt", "")]);
    let file = scenario.state.path().join("models.toml");
    let settings = std::fs::read_to_string(&file)
        .unwrap()
        .replace("tests_s = 120", "tests_s = 3");
    std::fs::write(&file, settings).unwrap();
    let mut scenario = scenario;
    let hangs = asked(&mut scenario, Some("sh -c 'echo started; sleep 1000'"));
    assert_eq!(hangs["status"], "pass", "{hangs:#}");
    assert!(
        text(&hangs, "message").contains("did not end and was ended after its limit of 3 s"),
        "{hangs:#}"
    );
    // As much as it can write until then; at least a gigabyte would be there on most machines.
    let floods = asked(
        &mut scenario,
        Some("sh -c 'yes RowError | head -c 1000000000; exit 1'"),
    );
    assert_eq!(
        (&floods["status"], &floods["verified"]),
        (&json!("pass"), &json!(false)),
        "{floods:#}"
    );
    assert!(
        floods.to_string().len() < 12_000,
        "{}",
        floods.to_string().len()
    );
    assert!(
        text(&floods["details"]["repro"], "output").contains("bytes cut"),
        "{floods:#}"
    );
}

#[test]
fn cancel_during_the_command_restores_the_project() {
    let scenario = project(&["small"]).env("SUPERVISOR_LIMITS__LOCK_WAIT_S", "0");
    // Where nothing is written in place, nothing has to come back.
    let mut scenario = scenario.settings("[workspace]\nstrategy = \"in-place\"\n");
    let before = scenario.tree();
    let repro = "sh -c 'echo ruined > report.sh; echo x > new.txt; sleep 1000'";
    let arguments = json!({"project_root": scenario.root(), "error": ERROR, "repro_cmd": repro, "session_id": "stopped"});
    scenario.session().call(7, "debug", arguments);
    until("the command to write", || {
        scenario.project.path().join("new.txt").exists()
    });
    // Nobody else gets in meanwhile: what stands there now is not the project.
    let busy = scenario.call("debug", json!({"error": ERROR}));
    assert_eq!(busy["status"], "error", "{busy:#}");
    assert!(
        text(&busy, "message").contains("debug"),
        "it says who: {busy:#}"
    );
    scenario.session().cancel(7);
    let log = scenario.state.path().join("state/sessions/stopped.jsonl");
    until("the entry", || {
        std::fs::read_to_string(&log).is_ok_and(|text| text.contains("Cancelled"))
    });
    assert_eq!(scenario.tree(), before);
    assert!(scenario.asked_of("small").is_empty());
}

#[test]
fn keys_do_not_reach_the_command() {
    let mut scenario = project(&["small"])
        .env("SOME_API_KEY", "kkkkkkkk-secret")
        .env("PLAIN", "seen");
    let result = asked(
        &mut scenario,
        Some("sh -c 'echo key=$SOME_API_KEY plain=$PLAIN; exit 1'"),
    );
    assert_eq!(
        text(&result["details"]["repro"], "output"),
        "key= plain=seen",
        "{result:#}"
    );
}
