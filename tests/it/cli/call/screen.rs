//! What a person sees on a terminal while a call runs, and what is left of it afterwards.

use std::process::Command;

use serde_json::json;

use super::{masked, red_demo, standing_in};
use crate::skills::tdd::{ADD, WRONG};
use crate::support::scenario::{Scenario, replaces};
use crate::support::terminal::Terminal;

const GREEN: [&str; 6] = [
    "call",
    "tdd_green",
    "--arg",
    "test_path=tests/add.rs",
    "--arg",
    "session_id=shell",
];

/// The first tier is wrong, and the second never answers.
fn hanging() -> Scenario {
    let mut scenario =
        red_demo(&["small", "large"]).answers("small", &replaces("src/lib.rs", WRONG));
    scenario.line(&json!({"model": "large", "failure": "hang"}));
    scenario
}

fn green(scenario: &Scenario) -> Command {
    let mut command = standing_in(scenario);
    command.args(GREEN);
    command
}

#[test]
fn attempts_stay_above_the_live_line() {
    let scenario = hanging();
    let before = scenario.tree();
    let mut terminal = Terminal::start(green(&scenario), 24, 220);
    terminal.until("tier 2/2 large");
    let rows: Vec<String> = terminal
        .rows()
        .into_iter()
        .filter(|row| !row.is_empty())
        .collect();
    let [ended, live] = rows.as_slice() else {
        panic!("{rows:?}")
    };
    assert!(
        ended.starts_with("tdd_green · tier 1/2 small rejected: "),
        "{ended}"
    );
    assert!(
        live.contains(" s  tdd_green · tier 2/2 large · ask"),
        "{live}"
    );
    terminal.ctrl_c();
    let (code, rows, raw) = terminal.finish();
    assert_eq!(code, Some(130));
    let [ended, said, log] = rows.as_slice() else {
        panic!("the live line is gone: {rows:?}")
    };
    assert!(
        ended.contains("rejected") && log.starts_with("log "),
        "{rows:?}"
    );
    assert_eq!(said, "Cancelled. Your files are as they were.");
    assert!(
        String::from_utf8_lossy(&raw).contains("\u{1b}[33mtdd_green"),
        "a rejection has its colour"
    );
    assert_eq!(scenario.tree(), before);
}

#[test]
fn live_line_is_cut_to_the_window() {
    let scenario = hanging();
    let mut terminal = Terminal::start(green(&scenario), 40, 42);
    terminal.until("tier 2/2");
    let rows = terminal.rows();
    let at = rows
        .iter()
        .position(|row| row.contains("tier 2/2"))
        .unwrap();
    assert!(
        rows[at].contains(" s  tdd_green"),
        "the time is there: {rows:?}"
    );
    assert!(rows[at + 1..].iter().all(String::is_empty), "{rows:?}");
    terminal.ctrl_c();
    assert_eq!(terminal.finish().0, Some(130));
}

#[test]
fn live_line_works_without_colour() {
    let scenario = hanging();
    let mut command = green(&scenario);
    command.env("NO_COLOR", "1");
    let mut terminal = Terminal::start(command, 24, 220);
    terminal.until("tier 2/2 large");
    terminal.ctrl_c();
    let (code, rows, raw) = terminal.finish();
    assert_eq!((code, rows.len()), (Some(130), 3), "{rows:?}");
    let raw = String::from_utf8_lossy(&raw).into_owned();
    assert!(
        !raw.contains("\u{1b}[3") && !raw.contains("\u{1b}[1m"),
        "{raw:?}"
    );
}

#[test]
fn dumb_terminal_gets_plain_lines() {
    let scenario = red_demo(&["small"]).answers("small", &replaces("src/lib.rs", ADD));
    let mut command = green(&scenario);
    command.env("TERM", "dumb");
    let (code, rows, raw) = Terminal::start(command, 60, 120).finish();
    assert_eq!(code, Some(0), "{rows:?}");
    assert!(!raw.contains(&0x1b), "{:?}", String::from_utf8_lossy(&raw));
    assert!(
        rows.iter()
            .any(|row| row.contains("tier 1/1 small · asking")),
        "{rows:?}"
    );
}

#[test]
fn pass_shows_a_coloured_diff() {
    let scenario = red_demo(&["small"]).answers("small", &replaces("src/lib.rs", ADD));
    let (code, rows, raw) = Terminal::start(green(&scenario), 60, 160).finish();
    assert_eq!(code, Some(0), "{rows:?}");
    insta::assert_snapshot!("call_screen", masked(&rows.join("\n"), &scenario));
    let raw = String::from_utf8_lossy(&raw).into_owned();
    assert!(
        raw.contains("\u{1b}[32m+pub fn add") && raw.contains("\u{1b}[32mpass"),
        "{raw:?}"
    );
}
