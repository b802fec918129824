//! Secrets of the user's environment do not reach the project's tests, and what tests print reaches no model unless it is
//! clean by shape. What the log says is checked for lines that something else wrote.

use std::fs;

use serde_json::json;
use supervisor_engine::session::SessionLog;
use supervisor_workspace::state::StateDir;

use crate::skills::tdd::{ADD, MANIFEST, WRONG};
use crate::support::scenario::{Scenario, replaces};

/// Prints its environment, a key and an address with a password. None of them stands in the source in one piece.
const PRINTS: &str = r#"#[test]
fn adds_two_numbers() {
    for name in ["AWS_SECRET_ACCESS_KEY", "MY_PASSWORD", "DATABASE_URL", "PLAIN_SETTING"] {
        println!("{name} is {:?}", std::env::var(name));
    }
    let part = "printed";
    println!("connecting to postgres://app:{part}canary@db/x");
    println!("-----BEGIN RSA {} KEY-----\nMIIE{part}canary\n-----END RSA {} KEY-----", "PRIVATE", "PRIVATE");
    assert_eq!(demo::add(1, 2), 3);
}
"#;

fn scenario() -> Scenario {
    Scenario::chain(
        &["small"],
        &[MANIFEST, ("src/lib.rs", WRONG), ("tests/add.rs", PRINTS)],
    )
    .answers("small", &replaces("src/lib.rs", ADD))
    .env(
        "AWS_SECRET_ACCESS_KEY",
        "wJalrXUtnFEMI/K7MDENG/canaryEXAMPLEKEY",
    )
    .env("MY_PASSWORD", "canary7!")
    .env("DATABASE_URL", "postgres://app:canary8@db.internal/app")
    .env("PLAIN_SETTING", "on")
}

#[test]
fn tests_get_no_secrets_and_output_is_redacted() {
    let mut scenario = scenario();
    let green = scenario.call("tdd_green", json!({"test_path": "tests/add.rs"}));
    assert_eq!(green["status"], "pass", "{green:#}");
    let asked = &scenario.asked_of("small")[0];
    for name in ["AWS_SECRET_ACCESS_KEY", "MY_PASSWORD", "DATABASE_URL"] {
        assert!(
            asked.contains(&format!("{name} is Err(NotPresent)")),
            "{name}: {asked}"
        );
    }
    assert!(asked.contains("PLAIN_SETTING is Ok(\"on\")"), "{asked}");
    assert!(!asked.contains("printedcanary"), "{asked}");
    assert!(asked.contains("postgres://app:[redacted-"), "{asked}");
    assert!(!green.to_string().contains("printedcanary"), "{green:#}");
}

#[test]
fn env_pass_variable_reaches_the_tests() {
    let mut scenario = scenario().env("SUPERVISOR_ENV_PASS", "MY_PASSWORD,DATABASE_URL");
    scenario.call("tdd_green", json!({"test_path": "tests/add.rs"}));
    let asked = &scenario.asked_of("small")[0];
    assert!(
        asked.contains("MY_PASSWORD is Ok(") && asked.contains("DATABASE_URL is Ok("),
        "{asked}"
    );
    assert!(
        asked.contains("AWS_SECRET_ACCESS_KEY is Err(NotPresent)"),
        "{asked}"
    );
    assert!(
        !asked.contains("canary7!") && !asked.contains("canary8"),
        "what they print is still clean: {asked}"
    );
}

#[test]
fn stats_reports_changed_or_removed_log_lines() {
    let scenario = Scenario::chain(&["small"], &[MANIFEST, ("src/lib.rs", WRONG)]);
    let log =
        SessionLog::open(&StateDir::at(scenario.state.path().join("state")).unwrap()).unwrap();
    for n in 0..3 {
        let entry = json!({"skill": "own", "final_status": "pass", "message": format!("call {n}"), "attempts": []});
        log.append_value(&"mine".parse().unwrap(), entry).unwrap();
    }
    let path = scenario.state.path().join("state/sessions/mine.jsonl");
    let written = fs::read_to_string(&path).unwrap();
    assert_eq!(written.lines().count(), 3, "{written}");
    let stats = |scenario: &Scenario| {
        let mut command = scenario.command();
        let output = command
            .arg("stats")
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        // Paragraphs are wrapped.
        String::from_utf8(output.stdout)
            .unwrap()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    let warning = "may not be as written";
    assert!(!stats(&scenario).contains(warning), "{}", stats(&scenario));
    let lines: Vec<&str> = written.lines().collect();
    for tampered in [
        written.replace("call 1", "call 9"),
        format!("{}\n{}\n", lines[0], lines[2]),
        format!(
            "{written}{}\n",
            r#"{"skill":"own","final_status":"pass","message":"forged"}"#
        ),
    ] {
        fs::write(&path, tampered).unwrap();
        assert!(stats(&scenario).contains(warning), "{}", stats(&scenario));
    }
    // A log from before there were digests is as good as it was.
    let old: String = lines
        .iter()
        .map(|line| format!("{}}}\n", line.split(",\"chain\"").next().unwrap()))
        .collect();
    fs::write(&path, old).unwrap();
    assert!(!stats(&scenario).contains(warning), "{}", stats(&scenario));
}
