//! The real `claude` program answers in words: a review, a diagnosis, a specification, called through our tools over
//! stdio. Needs what `real_claude` needs; `tests/interop/backends claude` runs this too.

use serde_json::{Value, json};

use crate::backend::real_claude::{self, KEY, call};
use crate::skills::spec::rows as spec;
use crate::support::debug_project as error;
use crate::support::review_project as shop;
use crate::support::scenario::{Scenario, trail};

#[test]
#[ignore = "needs claude"]
fn real_agent_answers_by_our_schemas() {
    let rows = [
        (shop::shop(&["small"]), "review", shop::both(), shop::good()),
        (
            error::project(&["small"]),
            "debug",
            json!({"error": error::ERROR, "repro_cmd": error::REPRO}),
            error::sound(),
        ),
        (
            Scenario::chain(&["small"], &[]),
            "spec",
            json!({"requirements": spec::REQUIREMENTS}),
            spec::good(),
        ),
    ];
    for (scenario, tool, arguments, answer) in rows {
        let real = real_claude::ClaudeSetup::new(&json!([call("StructuredOutput", &answer)]));
        let mut scenario = agent(scenario, &real);
        let before = scenario.tree();
        let result = scenario.call(tool, with(arguments, "model", "agent"));
        assert_eq!(
            (&result["status"], &result["verified"]),
            (&json!("pass"), &json!(true)),
            "{tool}: {result:#}"
        );
        assert_eq!(trail(&result), "agent accepted", "{tool}");
        let mut after = scenario.tree();
        assert_eq!(
            after.remove(std::path::Path::new("docs/spec.md")).is_some(),
            tool == "spec"
        );
        assert_eq!(after, before, "{tool} changes nothing else");
        // Only tools that read, and ours for the answer.
        let asked = real.asked();
        let mut offered: Vec<_> = asked[0]["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        offered.sort_unstable();
        assert_eq!(
            offered,
            ["Glob", "Grep", "Read", "StructuredOutput"],
            "{tool}"
        );
        assert!(!real.log().contains(KEY) && !result.to_string().contains(KEY));
    }
}

fn with(mut arguments: Value, name: &str, value: &str) -> Value {
    arguments[name] = json!(value);
    arguments
}

/// The same project, with the real agent to be asked.
fn agent(scenario: Scenario, real: &real_claude::ClaudeSetup) -> Scenario {
    let settings = format!(
        "[backends.agent]\nkind = \"claude-cli\"\ntier = \"subagent\"\nprogram = \"{}\"\nmodels = [\"agent\"]\n\
         env_pass = [\"ANTHROPIC_API_KEY\", \"ANTHROPIC_BASE_URL\"]\n[models.agent]\nid = \"claude-sonnet-4-6\"\n",
        real.tier.backend.program.as_deref().unwrap(),
    );
    scenario
        .settings(&settings)
        .env("ANTHROPIC_API_KEY", KEY)
        .env(
            "ANTHROPIC_BASE_URL",
            real.tier.backend.base_url.as_deref().unwrap(),
        )
        .env(
            "CLAUDE_CONFIG_DIR",
            real.dir.path().join("home").to_str().unwrap(),
        )
}
