//! "Is it worth it?" in `stats` and on the page of `report`, for three situations, read as somebody new to it would.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

/// What a command prints where this is the only log.
fn shows(situation: &str, arguments: &[&str]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let sessions = dir.path().join("state/sessions");
    fs::create_dir_all(&sessions).unwrap();
    let name = format!("{situation}.jsonl");
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/worth");
    fs::copy(fixtures.join(&name), sessions.join(&name)).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_supervisor"))
        .args(arguments)
        .env_clear()
        .env("HOME", dir.path())
        .env("SUPERVISOR_STATE_DIR", dir.path().join("state"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn advice(situation: &str) -> Value {
    let stats: Value = serde_json::from_str(&shows(situation, &["stats", "--json"])).unwrap();
    stats["worth"]["advice"].clone()
}

#[test]
fn advice_is_right_in_each_situation() {
    assert_eq!(advice("pays")["is"], "pays");
    assert_eq!(advice("too_early")["is"], "too_early");
    assert_eq!(advice("too_early")["more"], 14);
    let no = advice("does_not_pay");
    assert_eq!(
        (&no["is"], &no["change"]["change"]),
        (&"does_not_pay".into(), &"prove_alone".into()),
        "{no}"
    );
    assert_eq!(advice("less_waiting")["change"]["change"], "less_waiting");
    let kinds = &advice("only_kinds")["change"]["kinds"];
    assert_eq!(*kinds, serde_json::json!(["tdd_green in python, small"]));
}

#[test]
fn waiting_ends_where_the_background_begins() {
    // The same calls as in `less_waiting`, of which each was waited for 15 s.
    assert_eq!(advice("background")["is"], "pays");
}

#[test]
fn answer_is_read_in_a_minute() {
    for situation in [
        "pays",
        "does_not_pay",
        "too_early",
        "less_waiting",
        "only_kinds",
    ] {
        let text = shows(situation, &["stats"]);
        let answer = text
            .split("Is it worth it?")
            .nth(1)
            .unwrap_or_else(|| panic!("{text}"));
        insta::assert_snapshot!(format!("worth_{situation}"), answer.trim());
    }
}

#[test]
fn page_has_a_tab_with_the_same_answer() {
    for (situation, answer) in [
        ("pays", "Yes: delegation pays here."),
        (
            "does_not_pay",
            "No: delegation costs more than it saves here.",
        ),
        ("too_early", "Too early to tell."),
    ] {
        let page = shows(situation, &["report", "--html", "-"]);
        assert!(page.contains("Is it worth it?</label>"), "{situation}");
        assert!(page.contains(&format!("<h2>{answer}</h2>")), "{situation}");
        assert!(page.contains("What is assumed"), "{situation}");
    }
    let page = shows("does_not_pay", &["report", "--html", "-"]);
    assert!(page.contains("Use `prove` alone") && page.contains("SUPERVISOR_STOP_GATE=prove"));
}
