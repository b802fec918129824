//! Answers in words that were refused: a malformed one is asked for again, and the best one is kept.

use serde_json::{Value, json};

use crate::skills::spec::rows::{REQUIREMENTS, good as good_spec};
use crate::skills::tdd::{ADD_TEST, MANIFEST, OLD_TEST, WRONG};
use crate::support::debug_project::{ERROR, project, sound};
use crate::support::review_project::{both, good, shop, with_judge};
use crate::support::scenario::{Scenario, trail};

struct Case {
    tool: &'static str,
    arguments: Value,
    good: Value,
    /// An object that does not have the form asked for.
    malformed: Value,
    scenario: Scenario,
}

fn cases(tiers: &[&str]) -> Vec<Case> {
    let chain: Vec<String> = tiers.iter().map(|tier| format!("\"{tier}\"")).collect();
    let spec = Scenario::chain(tiers, &[("README.md", "# tables\n")])
        .settings(&format!("[skills.spec]\nchain = [{}]\n", chain.join(", ")));
    vec![
        Case {
            tool: "review",
            arguments: both(),
            good: good(),
            malformed: json!({"findings": "none", "reviewed": []}),
            scenario: shop(tiers),
        },
        Case {
            tool: "debug",
            arguments: json!({"error": ERROR}),
            good: sound(),
            malformed: json!({"hypotheses": "many"}),
            scenario: project(tiers),
        },
        Case {
            tool: "spec",
            arguments: json!({"requirements": REQUIREMENTS}),
            good: good_spec(),
            malformed: json!({"problem": 7}),
            scenario: spec,
        },
    ]
}

#[test]
fn malformed_answer_is_asked_for_again() {
    for prose in [false, true] {
        for mut case in cases(&["small"]) {
            if prose {
                let line = json!({"model": "small", "text": "I would rather talk about it."});
                case.scenario.line(&line);
            } else {
                case.scenario.say("small", &case.malformed);
            }
            case.scenario.say("small", &case.good);
            let result = case.scenario.call(case.tool, case.arguments);
            assert_eq!(
                trail(&result),
                "small accepted",
                "{}: {result:#}",
                case.tool
            );
            let asked = case.scenario.asked_of("small");
            assert!(
                asked.len() == 2 && asked[1].contains("Your last answer could not be used"),
                "{}: {asked:?}",
                case.tool
            );
            assert_eq!(result["attempts"][0]["asks"][1]["follow_up"], "repair");
        }
    }
}

#[test]
fn unreadable_text_has_the_same_cause_everywhere() {
    let words = cases(&["small"])
        .into_iter()
        .map(|case| (case.tool, case.arguments, case.scenario));
    let files = [
        MANIFEST,
        OLD_TEST,
        ("src/lib.rs", WRONG),
        ("tests/add.rs", ADD_TEST),
    ];
    let tdd = [
        ("tdd_red", json!({"spec": "two() is 2"})),
        ("tdd_green", json!({"test_path": "tests/add.rs"})),
        (
            "tdd_refactor",
            json!({"test_path": "tests/old.rs", "impl_path": "src/lib.rs"}),
        ),
    ]
    .map(|(tool, arguments)| (tool, arguments, Scenario::chain(&["small"], &files)));
    for (tool, arguments, mut scenario) in words.chain(tdd) {
        for _ in 0..3 {
            scenario.line(&json!({"model": "small", "text": "I do not know."}));
        }
        let result = scenario.call(tool, arguments);
        assert_eq!(trail(&result), "small unreadable", "{tool}: {result:#}");
    }
}

#[test]
fn best_refused_answer_is_kept() {
    for case in cases(&["small"]) {
        let mut scenario = with_judge(case.scenario).answers("small", &case.good);
        let verdict = json!({"accept": false, "feedback": "too vague"});
        scenario.line(&json!({"model": "judge", "answer": verdict, "tokens_in": 100, "tokens_out": 10, "cost_usd": 0.001}));
        let result = scenario.call(case.tool, case.arguments);
        assert_eq!(
            trail(&result),
            "small rejected",
            "{}: {result:#}",
            case.tool
        );
        let attempt = &result["attempts"][0];
        assert_eq!(
            (&attempt["gates_passed"], &attempt["verified"]),
            (&json!(true), &json!(false)),
            "{}: {attempt:#}",
            case.tool
        );
        let best = &result["details"]["best_candidate"];
        assert_eq!(best["model"], "small", "{}: {result:#}", case.tool);
        let kept = best["answer"]["details"].to_string();
        let word = match case.tool {
            "review" => "an empty list divides by zero",
            "debug" => "leading blanks hide the field",
            _ => "AC-3",
        };
        assert!(kept.contains(word), "{}: {result:#}", case.tool);
    }
}

#[test]
fn answer_that_failed_a_check_is_kept() {
    let mut wrong = good();
    for finding in wrong["findings"].as_array_mut().unwrap() {
        finding["line"] = json!(99);
        finding["quote"] = json!("no such words");
    }
    let result = shop(&["small"])
        .answers("small", &wrong)
        .call("review", both());
    let best = &result["details"]["best_candidate"];
    assert_eq!(best["answer"]["findings"][0]["line"], 99, "{result:#}");
}
