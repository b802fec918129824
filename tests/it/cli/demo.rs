//! `supervisor demo`: the README's first command, run as a newcomer would run it. Each whole run is real: nine times
//! `cargo test`, three calls, one log.

mod picture;
mod place;
mod stopped;
mod terminal;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use supervisor_test_support::programs::require;

use place::{Place, masked};
use serde_json::Value;

/// What each refusal, each acceptance and each diff says, in this order.
const STORY: &[&str] = &[
    "scripted   the models' answers, tokens and prices: no keys, no network",
    "RED  ",
    "before     `cargo test` passed: 1 passed, 0 failed, 0 skipped",
    "1/2 scripted/small  accepted  red: `numerals::roman nine_is_ix` fails",
    "+    assert_eq!(roman(9), \"IX\");",
    "after      `cargo test` failed: 1 passed, 1 failed, 0 skipped",
    "GREEN  ",
    "before     `cargo test` failed: 1 passed, 1 failed, 0 skipped",
    "1/3 scripted/small  rejected  `numerals::roman nine_is_ix` still fails:",
    "left: \"VIIII\"",
    "right: \"IX\"",
    "2/3 scripted/sly    tampered  `tests/roman.rs` may not be changed here",
    "-    assert_eq!(roman(9), \"IX\");",
    "+    assert_eq!(roman(9), \"VIIII\");",
    "undone     what scripted/small had written, to the byte",
    "evidence   scripted/large was shown what scripted/small and scripted/sly",
    "3/3 scripted/large  accepted  green: `numerals::roman nine_is_ix` passes",
    "-    \"I\".repeat(n as usize)",
    "+    let table = [(10, \"X\"), (9, \"IX\"), (5, \"V\"), (4, \"IV\"), (1, \"I\")];",
    "after      `cargo test` passed: 2 passed, 0 failed, 0 skipped",
    "REFACTOR  ",
    "1/2 scripted/small  accepted  refactored `src/lib.rs`",
    "+    for (value, letters) in NUMERALS {",
    "after      `cargo test` passed: 2 passed, 0 failed, 0 skipped",
    "COST  ",
    "DONE  ",
    "claude mcp add supervisor -- ",
];

pub(crate) fn assert_story(screen: &str) {
    let mut rest = screen;
    for part in STORY {
        let Some((_, after)) = rest.split_once(part) else {
            panic!("`{part}` is missing, or not where it should be, in:\n{screen}");
        };
        rest = after;
    }
}

#[test]
fn without_a_terminal_output_is_plain_lines() {
    let place = Place::new();
    let output = place.demo().output().unwrap();
    let screen = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).as_ref()
        ),
        (Some(0), ""),
        "{screen}"
    );
    assert_story(&screen);
    assert!(
        !screen.contains('\u{1b}') && !screen.contains('\r'),
        "{screen:?}"
    );
    // A command is never broken, so that it can be copied.
    let is_command = |line: &&str| {
        line.contains("claude mcp add") || line.contains("demo-") || line.ends_with(" doctor")
    };
    for line in screen.lines().filter(|line| !is_command(line)) {
        assert!(
            line.chars().count() <= 80 && line == line.trim_end(),
            "{line:?}"
        );
    }
    let program = fs::canonicalize(env!("CARGO_BIN_EXE_supervisor")).unwrap();
    assert!(
        screen.contains(&format!(
            "claude mcp add supervisor -- {}\n",
            program.display()
        )),
        "{screen}"
    );

    let log = place.log_named_in(&screen);
    assert_eq!(
        place.left(),
        BTreeSet::from([log.clone()]),
        "only what it names"
    );
    assert_eq!(
        fs::metadata(&log).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_log(&fs::read_to_string(&log).unwrap(), &screen);
    assert_docs(&screen);
}

/// Three entries, and the sums on the screen are theirs.
fn assert_log(log: &str, screen: &str) {
    let entries: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let trail: Vec<String> = entries
        .iter()
        .flat_map(|entry| {
            let attempts = entry["attempts"].as_array().unwrap().iter();
            attempts.map(|a| {
                format!("{} {} {}", entry["phase"], a["model"], a["cause"]).replace('"', "")
            })
        })
        .collect();
    let expected = [
        "red scripted/small accepted",
        "green scripted/small rejected",
        "green scripted/sly tampered",
        "green scripted/large accepted",
        "refactor scripted/small accepted",
    ];
    assert_eq!(trail, expected);
    let attempts = || {
        entries
            .iter()
            .flat_map(|entry| entry["attempts"].as_array().unwrap())
    };
    let priced = |attempt: &Value, price_in: f64, price_out: f64| {
        let tokens = |key: &str| attempt[key].as_f64().unwrap();
        (tokens("tokens_in") * price_in + tokens("tokens_out") * price_out) / 1e6
    };
    // $3 and $15 a million are what `scripted/large` costs; the other two are free.
    let paid: f64 = attempts()
        .filter(|a| a["model"] == "scripted/large")
        .map(|a| priced(a, 3.0, 15.0))
        .sum();
    let alone: f64 = attempts()
        .filter(|a| a["cause"] == "accepted")
        .map(|a| priced(a, 3.0, 15.0))
        .sum();
    assert!(paid > 0.0 && paid < alone);
    assert!(
        screen.contains(&format!(
            "paid       ${paid:.4}  1 of 5 answers bought, 4 local ones free\n"
        )),
        "{screen}"
    );
    let otherwise =
        format!("otherwise  ${alone:.4}  estimated, had scripted/large answered all 3 calls\n");
    assert!(
        screen.contains(&otherwise),
        "{otherwise} is missing in {screen}"
    );
}

#[test]
#[ignore = "needs jq"]
fn printed_jq_command_works() {
    require(&["jq"]);
    // With a blank in it, the path must be quoted to be typed.
    for state in [None, Some("own state")] {
        let place = Place::new();
        let mut demo = place.demo();
        demo.envs(state.map(|name| ("SUPERVISOR_STATE_DIR", place.home().join(name))));
        let output = demo.output().unwrap();
        let screen = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(0), "{screen}");
        assert_jq_line(&place, &screen);
    }
}

/// The line on the screen, typed into a shell.
fn assert_jq_line(place: &Place, screen: &str) {
    let mut lines = screen.lines().skip_while(|line| !line.contains("jq -r"));
    let (first, second) = (lines.next().unwrap(), lines.next().unwrap());
    let command = format!("{}\n{second}", &first[first.find("jq -r").unwrap()..]);
    let output = Command::new("sh")
        .args(["-c", &command])
        .env("HOME", place.home())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{command}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 5, "{said}");
    assert!(
        lines[1].starts_with("scripted/small rejected `numerals::roman nine_is_ix` still fails: "),
        "{said}"
    );
    assert!(
        lines[2].starts_with("scripted/sly tampered `tests/roman.rs` may not be changed here: "),
        "{said}"
    );
}

/// The page that the README shows is what a run prints. With `SUPERVISOR_UPDATE_DOCS=1` it is written anew.
fn assert_docs(screen: &str) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/demo.txt");
    let program = fs::canonicalize(env!("CARGO_BIN_EXE_supervisor"))
        .unwrap()
        .display()
        .to_string();
    let screen = screen.replace(&program, "~/supervisor/target/release/supervisor");
    if std::env::var_os("SUPERVISOR_UPDATE_DOCS").is_some() {
        fs::write(path, &screen).unwrap();
        let picture = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/demo.svg");
        fs::write(picture, picture::svg(&screen)).unwrap();
    }
    let page = fs::read_to_string(path).unwrap_or_default();
    assert_eq!(
        masked(&page),
        masked(&screen),
        "`just demo-screen` writes docs/demo.txt and docs/demo.svg anew"
    );
    let picture = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/demo.svg");
    assert_eq!(
        fs::read_to_string(picture).unwrap_or_default(),
        picture::svg(&page)
    );
}

#[test]
fn no_setting_of_the_caller_breaks_it() {
    let place = Place::new();
    let config = place.home().join(".config/supervisor");
    fs::create_dir_all(&config).unwrap();
    fs::write(config.join("models.toml"), "this is = not [ TOML").unwrap();
    let elsewhere = place.home().join("elsewhere");
    let before = place.left();
    let output = place
        .demo()
        .env("SUPERVISOR_MODELS_FILE", "/no/such/file")
        .env("SUPERVISOR_LIMITS__TESTS_S", "soon")
        .env("SUPERVISOR_STATE_DIR", place.home().join("own state"))
        .env("CARGO_TARGET_DIR", &elsewhere)
        .env("CARGO_BUILD_TARGET", "wasm32-unknown-unknown")
        .env("CARGO_BUILD_RUSTFLAGS", "--no-such-flag")
        .env("RUSTFLAGS", "--no-such-flag")
        .env("RUSTC_WRAPPER", "/no/such/wrapper")
        .env("RUST_TEST_NOCAPTURE", "1")
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    let screen = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{screen}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_story(&screen);
    assert!(!elsewhere.exists());
    let new: Vec<_> = place.left().difference(&before).cloned().collect();
    assert!(
        matches!(new.as_slice(), [log] if log.starts_with(place.home().join("own state/demo"))),
        "{new:?}"
    );
    // With a blank in it, the path must be quoted to be typed.
    assert!(
        screen.contains(&format!("'{}'", new[0].display())),
        "{screen}"
    );
}

#[test]
fn read_only_home_moves_the_log_elsewhere() {
    let place = Place::new();
    fs::set_permissions(place.home(), fs::Permissions::from_mode(0o555)).unwrap();
    let demo = place.demo();
    let mut command = Command::new("sh");
    // Even root may not write then; should this fail, so does the test.
    let script = "if [ \"$(id -u)\" = 0 ]; then exec setpriv --bounding-set -dac_override,-dac_read_search \"$@\"; fi\n\
                  exec \"$@\"";
    command
        .args(["-c", script, "sh"])
        .arg(demo.get_program())
        .args(demo.get_args());
    command.env_clear().envs(
        demo.get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let output = command.output().unwrap();
    let screen = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{screen}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_story(&screen);
    let said = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("there, because the state directory `") && said.contains("Permission denied"),
        "{screen}"
    );
    let log = place.log_named_in(&screen);
    assert!(log.starts_with(place.tmp()), "{log:?}");
    assert_eq!(place.left(), BTreeSet::from([log]));
}

#[test]
fn missing_home_moves_the_log_elsewhere() {
    let place = Place::new();
    let output = place
        .demo()
        .env_remove("HOME")
        .env("SUPERVISOR_STATE_DIR", "not/absolute")
        .output()
        .unwrap();
    let screen = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{screen}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_story(&screen);
    assert!(
        screen.contains("there, because $SUPERVISOR_STATE_DIR is `not/absolute`"),
        "{screen}"
    );
    assert_eq!(place.left(), BTreeSet::from([place.log_named_in(&screen)]));
}

#[test]
fn missing_cargo_names_the_remedy() {
    let place = Place::new();
    let output = place.demo().env("PATH", "/nonexistent").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        (output.status.code(), output.stdout.len()),
        (Some(2), 0),
        "{said}"
    );
    assert!(
        said.contains("`cargo`, which is not on the PATH") && said.contains("https://rustup.rs"),
        "{said}"
    );
    assert_eq!(
        (said.lines().count(), place.left()),
        (1, BTreeSet::new()),
        "{said}"
    );
}

#[test]
fn missing_temporary_directory_is_reported_in_one_sentence() {
    let place = Place::new();
    let output = place
        .demo()
        .env("TMPDIR", place.home().join("none"))
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.code() == Some(2) && said.contains("set $TMPDIR to a directory"),
        "{said}"
    );
    assert_eq!(said.matches("No such file").count(), 1, "{said}");
    let output = place
        .demo()
        .args(["--config", "mine.toml"])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.code() == Some(2) && said.contains("leave `--config` out"),
        "{said}"
    );
    assert_eq!(place.left(), BTreeSet::new());
}

#[test]
fn broken_cargo_ends_it_with_its_message() {
    let place = Place::new();
    let bin = place.home().join("bin");
    let script = "mkdir bin && printf '#!/bin/sh\necho error: no toolchain here >&2\nexit 1\n' > bin/cargo && chmod 755 bin/cargo";
    assert!(
        Command::new("sh")
            .args(["-c", script])
            .current_dir(place.home())
            .status()
            .unwrap()
            .success()
    );
    let before = place.left();
    let output = place
        .demo()
        .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.code() == Some(2) && said.contains("no toolchain here"),
        "{said}"
    );
    assert_eq!(place.left(), before);
}

#[test]
fn closed_stdout_stops_and_breaks_nothing() {
    let place = Place::new();
    let mut child = place
        .demo()
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).as_ref()
        ),
        (Some(0), "")
    );
    let left: Vec<_> = place.left().into_iter().collect();
    assert!(
        matches!(left.as_slice(), [log] if log.extension().is_some_and(|e| e == "jsonl")),
        "{left:?}"
    );
}
