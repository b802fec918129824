//! Honest answers that word rules refused before structure and words were told apart. Each is a sound answer with the
//! changes of its row, and each is accepted at the first tier now, with a flag or without.

use serde_json::{Value, json};

use crate::skills::spec::rows as spec;
use crate::support::debug_project as error;
use crate::support::review_project as shop;
use crate::support::scenario::{Scenario, trail};

/// Rows of `what`, `skill`, `set` (JSON pointer to value) and, for some, `requirements`.
fn rows() -> Vec<Value> {
    serde_json::from_str(include_str!("honest_answers/rows.json")).unwrap()
}

/// The project, the arguments and the sound answer of a skill.
fn bench_of(row: &Value) -> (Scenario, Value, Value) {
    match row["skill"].as_str().unwrap() {
        "spec" => {
            let scenario = Scenario::chain(&["small"], &[("README.md", "# tables\n")])
                .settings("[skills.spec]\nchain = [\"small\"]\n");
            let asked = row["requirements"].as_str().unwrap_or(spec::REQUIREMENTS);
            (scenario, json!({"requirements": asked}), spec::good())
        }
        "review" => (shop::shop(&["small"]), shop::both(), shop::good()),
        "debug" => (
            error::project(&["small"]),
            json!({"error": error::ERROR, "repro_cmd": error::REPRO}),
            error::sound(),
        ),
        other => panic!("no skill `{other}`"),
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "the counts are the point")]
fn honest_answers_once_refused_are_accepted() {
    let rows = rows();
    assert!(rows.len() >= 20, "{}", rows.len());
    let (mut unflagged, mut refused) = (0, Vec::new());
    for row in &rows {
        let (scenario, arguments, mut answer) = bench_of(row);
        for (pointer, value) in row["set"].as_object().unwrap() {
            *answer
                .pointer_mut(pointer)
                .unwrap_or_else(|| panic!("{row}: no {pointer}")) = value.clone();
        }
        let mut scenario = scenario.answers("small", &answer);
        let result = scenario.call(row["skill"].as_str().unwrap(), arguments);
        if trail(&result) != "small accepted" || result["status"] == "error" {
            refused.push(format!("{}: {}", row["what"], result["message"]));
        }
        unflagged += usize::from(result["details"].get("flags").is_none());
    }
    assert!(refused.is_empty(), "{refused:#?}");
    eprintln!(
        "honest answers: {} of {} accepted, {unflagged} of them without a flag",
        rows.len(),
        rows.len()
    );
    assert!(unflagged >= 6, "{unflagged}");
}
