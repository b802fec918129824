//! Tests that another tier writes and the worker never sees: what they find, what becomes of bad ones, what they leave.

use std::fs;

use serde_json::{Value, json};
use supervisor_gym::task::GymTask;
use supervisor_gym::task_set::TaskSet;

use crate::support::scenario::{Scenario, gate, trail};
use supervisor_test_support::programs::require;

fn task() -> GymTask {
    let tasks = TaskSet::own().and_then(|set| set.tasks()).unwrap();
    tasks
        .into_iter()
        .find(|task| task.name == "ruby/rows_needed")
        .unwrap()
}

fn hidden(task: &GymTask) -> &str {
    task.hidden.values().next().unwrap()
}

fn code(task: &GymTask, text: &str) -> Value {
    json!({"edits": [{"path": task.solution_path, "action": "replace", "content": text}]})
}

fn reference(task: &GymTask) -> Value {
    code(task, &task.reference[&task.solution_path])
}

/// Passes the visible tests and is wrong.
fn overfit(task: &GymTask, number: usize) -> Value {
    code(task, &task.wrong[number].files[&task.solution_path])
}

fn scenario(task: &GymTask, tiers: &[&str]) -> Scenario {
    let scenario = Scenario::chain(tiers, &[]);
    task.write_project(scenario.project.path()).unwrap();
    scenario
}

fn green(scenario: &mut Scenario, task: &GymTask, twins: u32) -> Value {
    scenario.call(
        "tdd_green",
        json!({"test_path": task.test_path, "context": task.spec, "twins": twins}),
    )
}

/// The author's answer, at a known price.
fn writes(scenario: &mut Scenario, model: &str, tests: &str) {
    let answer = json!({"tests": tests});
    scenario.line(&json!({"model": model, "answer": answer, "tokens_in": 70, "tokens_out": 30, "cost_usd": 0.02}));
}

fn flags(result: &Value) -> Vec<&str> {
    let flags = result["details"]["flags"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    flags
        .iter()
        .map(|flag| flag["id"].as_str().unwrap())
        .collect()
}

/// Without an overlay there are no hidden tests.
fn assert_overlay(result: &Value) {
    let sandbox = result["sandbox"].as_str().unwrap_or_default();
    assert!(sandbox.contains("private view"), "{result:#}");
}

#[test]
#[ignore = "needs ruby and user namespaces"]
fn overfitted_answer_is_flagged_by_hidden_tests() {
    require(&["ruby"]);
    let task = task();
    for (number, found, count) in [(0, "test_full_rows", 3), (1, "test_nobody", 1)] {
        let mut scenario =
            scenario(&task, &["small", "large"]).answers("small", &overfit(&task, number));
        writes(&mut scenario, "large", hidden(&task));
        let before = scenario.tree();
        let result = green(&mut scenario, &task, 4);
        assert_eq!(
            (result["status"].as_str(), trail(&result).as_str()),
            (Some("pass"), "small accepted"),
            "{result:#}"
        );
        let twins = &result["details"]["twins"];
        assert_eq!(
            (twins["author"].as_str(), twins["failed"].as_u64()),
            (Some("large"), Some(count)),
            "{result:#}"
        );
        let ids = ["twin", "twin-2", "twin-3"];
        assert_eq!(
            flags(&result),
            ids[..usize::try_from(count).unwrap()],
            "{result:#}"
        );
        assert!(
            result["details"]["flags"].to_string().contains(found),
            "{result:#}"
        );
        assert!(
            gate(&result, "twins")["detail"]
                .as_str()
                .unwrap()
                .contains(&format!("{count} failed")),
            "{result:#}"
        );
        assert!(
            result["message"].as_str().unwrap().contains("twin"),
            "{result:#}"
        );
        // It costs what it costs, and the log says whom it was paid to.
        let author = &result["attempts"][0]["author"];
        assert_eq!(
            (author["model"].as_str(), author["cost_usd"].as_f64()),
            (Some("large"), Some(0.02)),
            "{result:#}"
        );
        // The author knows the task and the tests, and nothing of the work.
        let [asked] = scenario.asked_of("large").try_into().unwrap();
        assert!(
            asked.contains("rows without seats cannot be used")
                && asked.contains("test_one_more_than_two_rows")
        );
        let questions = fs::read_to_string(scenario.state.path().join("answers.jsonl.asked"));
        let questions = questions.unwrap();
        assert!(
            questions
                .lines()
                .all(|asked| asked.contains("You do not converse.")),
            "the rules of all skills: {questions}"
        );
        assert!(
            !asked.contains("people / per_row + 1") && !asked.contains(".max"),
            "{asked}"
        );
        assert!(
            scenario
                .asked_of("small")
                .iter()
                .all(|asked| !asked.contains(found))
        );
        let mut after = scenario.tree();
        assert_ne!(
            after.remove(task.solution_path.as_ref() as &std::path::Path),
            None
        );
        let rest: Vec<_> = before
            .iter()
            .filter(|(path, _)| path.to_str() != Some(&task.solution_path))
            .collect();
        assert_eq!(
            after.iter().collect::<Vec<_>>(),
            rest,
            "only the code has changed"
        );
    }
}

#[test]
#[ignore = "needs ruby and user namespaces"]
fn right_answer_passes_the_hidden_tests() {
    require(&["ruby"]);
    let task = task();
    let mut scenario = scenario(&task, &["small", "large"]).answers("small", &reference(&task));
    writes(&mut scenario, "large", hidden(&task));
    let result = green(&mut scenario, &task, 4);
    assert_overlay(&result);
    let twins = &result["details"]["twins"];
    assert_eq!(
        (twins["passed"].as_u64(), twins["failed"].as_u64()),
        (Some(2), Some(0)),
        "{result:#}"
    );
    // Those that the stub passes too say nothing of the work.
    assert_eq!(
        twins["dropped"],
        json!({"not red without the work": 2}),
        "{result:#}"
    );
    assert!(flags(&result).is_empty(), "{result:#}");
}

#[test]
#[ignore = "needs ruby and user namespaces"]
fn upheld_hidden_test_rejects_without_being_revealed() {
    require(&["ruby"]);
    let task = task();
    let mut scenario = scenario(&task, &["small", "medium", "large"]);
    let file = scenario.state.path().join("answers.jsonl");
    scenario = scenario.settings(&format!(
        "[skills.tdd_green]\nverifier = \"judge\"\ntwins = 3\n[backends.court]\nkind = \"replay\"\ntier = \"subagent\"\n\
         file = \"{}\"\nmodels = [\"judge\"]\n",
        file.display()
    ));
    scenario.say("small", &overfit(&task, 0));
    scenario.say("medium", &reference(&task));
    writes(&mut scenario, "large", hidden(&task));
    let verdict = |upheld: bool| {
        let flags = json!([{"id": "twin", "upheld": upheld, "why": "full rows are rows"}]);
        let answer = json!({"accept": true, "feedback": "", "flags": if upheld { flags } else { json!([]) }});
        json!({"model": "judge", "answer": answer, "tokens_in": 1, "tokens_out": 1, "cost_usd": 0.001})
    };
    scenario.line(&verdict(true));
    scenario.line(&verdict(false));
    let result = scenario.call(
        "tdd_green",
        json!({"test_path": task.test_path, "context": task.spec}),
    );
    assert_overlay(&result);
    assert_eq!(
        trail(&result),
        "small rejected | medium accepted",
        "{result:#}"
    );
    let judged = &scenario.asked_of("judge")[0];
    assert!(
        judged.contains("test_full_rows") && judged.contains("Solution.rows_needed(12, 4)"),
        "{judged}"
    );
    let next = &scenario.asked_of("medium")[0];
    assert!(
        next.contains("a further test of the task, which is not shown, fails"),
        "{next}"
    );
    assert!(
        !next.contains("full_rows") && !next.contains("12, 4"),
        "{next}"
    );
    assert_eq!(
        scenario.asked_of("large").len(),
        1,
        "written once for all answers of a call"
    );
    assert_eq!(result["details"]["twins"]["failed"], 0, "{result:#}");
}

#[test]
#[ignore = "needs ruby and user namespaces"]
fn bad_hidden_tests_are_dropped_and_counted() {
    require(&["ruby"]);
    let task = task();
    let file = |body: &str| {
        format!(
            "require \"minitest/autorun\"\nrequire_relative \"../lib/solution\"\nclass VisibleTest < Minitest::Test\n{body}end\n"
        )
    };
    let of = |body: &str| file(&format!("  def test_it\n    {body}\n  end\n"));
    for (written, said) in [
        (of("flunk"), "fails whatever the code does"),
        (
            of("assert_equal 3, Solutoin.rows_needed(12, 4)"),
            "says a name that does not exist",
        ),
        (
            of("assert_equal 0, Solution.rows_needed(0, 4)"),
            "not red without the work",
        ),
        (String::from("no code at all ("), "no test of it was run"),
        (String::new(), "holds no tests"),
    ] {
        let mut scenario = scenario(&task, &["small", "large"]).answers("small", &reference(&task));
        writes(&mut scenario, "large", &written);
        let before = fs::read(scenario.project.path().join(&task.test_path)).unwrap();
        let result = green(&mut scenario, &task, 1);
        assert_overlay(&result);
        assert_eq!(result["status"], "pass", "{written}: {result:#}");
        assert!(
            result["details"]["twins"].to_string().contains(said),
            "{written}: {result:#}"
        );
        assert!(flags(&result).is_empty(), "{written}: {result:#}");
        assert_eq!(
            fs::read(scenario.project.path().join(&task.test_path)).unwrap(),
            before
        );
    }
    let mut alone = scenario(&task, &["small"]).answers("small", &reference(&task));
    let result = green(&mut alone, &task, 2);
    assert_eq!(result["status"], "pass", "{result:#}");
    assert!(
        result["details"]["twins"]["why"]
            .as_str()
            .unwrap()
            .contains("no tier but the worker's"),
        "{result:#}"
    );
    let mut in_place = scenario(&task, &["small", "large"])
        .settings("[workspace]\nstrategy = \"in-place\"\n")
        .answers("small", &reference(&task));
    writes(&mut in_place, "large", hidden(&task));
    let result = green(&mut in_place, &task, 2);
    assert!(
        result["details"]["twins"]["why"]
            .as_str()
            .unwrap()
            .contains("private view"),
        "{result:#}"
    );
    assert!(
        in_place.asked_of("large").is_empty(),
        "nothing is paid for what cannot be used"
    );
    let mut off = scenario(&task, &["small", "large"]).answers("small", &reference(&task));
    let result = off.call("tdd_green", json!({"test_path": task.test_path}));
    assert_eq!(
        (result["status"].as_str(), &result["details"]["twins"]),
        (Some("pass"), &Value::Null),
        "off by default"
    );
}
