//! What one call's failures mean for the next: a model that gave no answer is passed over for a
//! while, unless the caller shortened the time or nobody else is left.

use serde_json::{Value, json};

use crate::support::review_project::{both, good, shop};
use crate::support::scenario::{Scenario, trail};

/// A chain whose first model hangs once and then answers.
fn hanging(tiers: &[&str]) -> Scenario {
    let mut scenario = shop(tiers);
    scenario.line(&json!({"model": tiers[0], "failure": "hang"}));
    scenario.answers(tiers[0], &good())
}

/// `small` may take 1 s, as the user's own settings say.
const BRIEF: &str = "[models.small]\nlimit_s = 1\n";

fn review(scenario: &mut Scenario, more: &Value) -> String {
    let mut arguments = both();
    let more = more.as_object().unwrap().clone();
    arguments.as_object_mut().unwrap().extend(more);
    trail(&scenario.call("review", arguments))
}

#[test]
fn limit_of_the_settings_pauses_the_model() {
    let mut scenario = hanging(&["small", "large"])
        .settings(BRIEF)
        .answers("large", &good())
        .answers("large", &good());
    let first = review(&mut scenario, &json!({}));
    assert_eq!(first, "small infra | large accepted");
    let result = scenario.call("review", both());
    assert_eq!(trail(&result), "small skipped | large accepted");
    let why = result["attempts"][0]["feedback"].as_str().unwrap();
    assert!(why.contains("is paused for another"), "{why}");
    assert_eq!(scenario.asked_of("small").len(), 1);
}

#[test]
fn limit_that_the_caller_shortened_pauses_nothing() {
    let mut scenario = hanging(&["small", "large"]).answers("large", &good());
    let first = review(&mut scenario, &json!({"timeout_s": 1}));
    assert_eq!(first, "small infra | large accepted");
    assert_eq!(review(&mut scenario, &json!({})), "small accepted");
}

#[test]
fn last_reachable_tier_is_asked_although_paused() {
    let mut scenario = hanging(&["small"]).settings(BRIEF);
    assert_eq!(review(&mut scenario, &json!({})), "small infra");
    assert_eq!(review(&mut scenario, &json!({})), "small accepted");
    assert_eq!(scenario.asked_of("small").len(), 2);
}
