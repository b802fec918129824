//! More than one window holds: asked in parts, each covered, all checked together, and said.

use std::fs;

use serde_json::{Value, json};

use super::text;
use crate::support::review_project::{clean, reviewed, reviewers};
use crate::support::scenario::{Scenario, trail};

/// Lines that are all different, about 60 bytes each.
fn lines(name: &str, count: usize) -> String {
    (1..=count)
        .map(|n| format!("{name}_value_{n:04} = compute_something_for({n:04}, \"{name}\")\n"))
        .collect()
}

fn line(name: &str, n: usize) -> String {
    format!("{name}_value_{n:04} = compute_something_for({n:04}, \"{name}\")")
}

fn finding(file: &str, name: &str, n: usize) -> Value {
    json!({"severity": "warning", "file": file, "line": n, "quote": line(name, n), "why": format!("computes too much at {n}")})
}

/// Six files, of which one fits a small window at a time.
fn six(tiers: &[&str]) -> (Scenario, Vec<String>) {
    let files: Vec<(String, String)> = ["a", "b", "c", "d", "e", "f"]
        .map(|n| (format!("{n}.py"), lines(n, 100)))
        .into();
    let named: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    (
        reviewers(tiers, &named),
        files.iter().map(|(path, _)| path.clone()).collect(),
    )
}

/// One answer, with what it used.
fn say(scenario: &mut Scenario, model: &str, answer: &Value) {
    scenario.line(&json!({"model": model, "answer": answer, "tokens_in": 1000, "tokens_out": 10, "cost_usd": 0.01}));
}

#[test]
fn large_review_is_split_and_checked_together() {
    let (mut scenario, files) = six(&["small"]);
    for (n, file) in files.iter().enumerate() {
        let name = &file[..1];
        let findings = if n == 3 {
            json!([finding(file, name, 77)])
        } else {
            json!([])
        };
        say(
            &mut scenario,
            "small",
            &json!({"findings": findings, "reviewed": reviewed(&[file])}),
        );
    }
    let review = scenario.call("review", json!({"files": files}));
    assert_eq!(
        (&review["status"], trail(&review).as_str()),
        (&json!("pass"), "small accepted"),
        "{review:#}"
    );
    let asked = scenario.asked_of("small");
    assert_eq!(
        (asked.len(), &review["details"]["questions"]),
        (6, &json!(6))
    );
    assert_eq!(
        text(&review, "message"),
        "1 warning in 6 files; asked in 6 parts, because it did not fit one window"
    );
    for (n, (prompt, file)) in asked.iter().zip(&files).enumerate() {
        assert!(prompt.len() < 8192 * 3, "{}", prompt.len());
        assert!(
            prompt.contains(&format!("This is part {} of 6", n + 1)),
            "{prompt}"
        );
        assert!(
            prompt.contains(&format!("100: {}\n", line(&file[..1], 100))),
            "whole: {prompt}"
        );
    }
    let attempt = &review["attempts"][0];
    assert_eq!(
        (&attempt["tokens_in"], &attempt["tokens_out"]),
        (&json!(6000), &json!(60))
    );
    assert!(
        (attempt["cost_usd"].as_f64().unwrap() - 0.06).abs() < 1e-9,
        "{attempt}"
    );
    let mut plan = json!({"files": files});
    plan["dry_run"] = json!(true);
    assert_eq!(
        scenario.call("review", plan)["details"]["chain"][0]["questions"],
        6
    );
}

#[test]
fn file_larger_than_context_is_cut_between_lines() {
    let mut scenario = reviewers(&["small"], &[("long.py", &lines("long", 500))]);
    let plan = scenario.call("review", json!({"files": ["long.py"], "dry_run": true}));
    let parts =
        usize::try_from(plan["details"]["chain"][0]["questions"].as_u64().unwrap()).unwrap();
    assert!(parts >= 3, "{plan:#}");
    for n in 1..=parts {
        let last = json!([finding("long.py", "long", 499)]);
        let findings = if n == parts { last } else { json!([]) };
        say(
            &mut scenario,
            "small",
            &json!({"findings": findings, "reviewed": reviewed(&["long.py"])}),
        );
    }
    let review = scenario.call("review", json!({"files": ["long.py"]}));
    assert_eq!(review["details"]["findings"][0]["line"], 499, "{review:#}");
    let asked = scenario.asked_of("small").concat();
    for n in 1..=500 {
        let shown = format!("\n{n}: {}\n", line("long", n));
        assert_eq!(asked.matches(&shown).count(), 1, "line {n} is shown once");
    }
    assert_eq!(
        (
            &review["details"]["coverage"][0]["read"],
            scenario.asked_of("small").len()
        ),
        (&json!("full"), parts)
    );
}

#[test]
fn every_part_of_a_review_must_pass() {
    let (mut scenario, files) = six(&["small", "medium"]);
    for (n, file) in files.iter().enumerate() {
        // The fourth answer speaks of a file that another question showed.
        let named = if n == 3 { "a.py" } else { file };
        say(&mut scenario, "small", &clean(&[named]));
    }
    say(&mut scenario, "medium", &clean(&[&files[0]]));
    scenario.line(&json!({"model": "medium", "failure": "infra"}));
    let review = scenario.call("review", json!({"files": files}));
    assert_eq!(
        (&review["status"], trail(&review).as_str()),
        (&json!("error"), "small rejected | medium infra"),
        "{review:#}"
    );
    assert!(
        text(&review["attempts"][0], "feedback")
            .contains("does not say what was checked in `d.py`"),
        "{review:#}"
    );
    assert_eq!(
        scenario.asked_of("medium").len(),
        2,
        "nobody is asked on after a failure"
    );
    assert!(
        scenario
            .asked_of("medium")
            .iter()
            .all(|prompt| prompt.contains("what was checked in `d.py`"))
    );
}

#[test]
fn tier_with_tiny_context_window_is_passed_over() {
    let mut scenario = reviewers(&["small", "large"], &[("long.py", &lines("long", 4000))])
        .settings("[models.large]\ncontext = 200_000\n");
    let plan = scenario.call("review", json!({"files": ["long.py"], "dry_run": true}));
    assert!(
        text(&plan["details"]["chain"][0], "cannot").contains("and 16 is the most"),
        "{plan:#}"
    );
    let parts = plan["details"]["chain"][1]["questions"].as_u64().unwrap();
    for _ in 0..parts {
        say(&mut scenario, "large", &clean(&["long.py"]));
    }
    let review = scenario.call("review", json!({"files": ["long.py"]}));
    assert_eq!(
        (&review["status"], trail(&review).as_str()),
        (&json!("pass"), "small incapable | large accepted"),
        "{review:#}"
    );
    assert!(scenario.asked_of("small").is_empty());

    let refused = scenario.call("review", json!({"files": ["long.py"], "model": "small"}));
    assert_eq!(refused["status"], "error", "{refused:#}");
    let message = text(&refused, "message");
    assert!(
        message.starts_with("1 file with ")
            && message.contains("16 questions for any model of the chain"),
        "{message}"
    );
    assert!(message.contains("name fewer files"), "{message}");
    let wordy = json!({"files": ["long.py"], "model": "small", "context": "more ".repeat(4000)});
    let refused = scenario.call("review", wordy);
    assert!(
        text(&refused, "message").contains("requirements and context have 20"),
        "{refused:#}"
    );
    assert!(scenario.asked_of("small").is_empty());
}

#[test]
fn many_findings_are_cut_and_counted() {
    let mut scenario = reviewers(
        &["small"],
        &[
            ("a.py", &lines("a", 90)),
            ("b.py", &"console.log(1)\n".repeat(3)),
        ],
    );
    fs::write(scenario.root().join("c.py"), "c = 1\n").unwrap();
    let mut findings: Vec<Value> = (1..=90).map(|n| finding("a.py", "a", n)).collect();
    for finding in &mut findings {
        finding["fix"] = json!("rewrite it ".repeat(300));
    }
    scenario.say(
        "small",
        &json!({"findings": findings, "reviewed": reviewed(&["a.py", "b.py", "c.py"])}),
    );
    let review = scenario.call("review", json!({"files": ["a.py", "b.py", "c.py"]}));
    assert_eq!(text(&review, "message"), "90 warnings in 3 files");
    let details = &review["details"];
    let told = details["findings"].as_array().unwrap().len();
    assert!((10..=30).contains(&told), "{told}");
    assert_eq!(details["left_out"]["findings"], 90 - told);
    assert!(
        review.to_string().len() < 50_000,
        "{}",
        review.to_string().len()
    );
    assert!(
        text(&review, "runner_output").contains("bytes cut"),
        "{review:#}"
    );
}
