//! Secrets are replaced by placeholders in what a model sees, and are still in the files that it edits.

use serde_json::{Value, json};

use super::tdd_baselines::{RIGHT, TEST, project_with};
use crate::support::scenario::{Scenario, replaces, trail};

const SECRET: &str = "s3cr3t!x9";

fn code(sum: &str) -> String {
    format!(
        "# Mirrored at ftp://foo:{SECRET}@ftp.corp.net/\nlast = 1\n\n\n{}",
        RIGHT.replace("a + b", sum)
    )
}

fn project() -> Scenario {
    project_with(&[("calc.py", &code("a - b")), ("tests/test_calc.py", TEST)])
}

fn arguments() -> Value {
    json!({"test_path": "tests/test_calc.py", "test_cmd": "./pytest"})
}

/// The placeholder that the brief has for the secret.
fn placeholder(scenario: &mut Scenario) -> String {
    let mut call = arguments();
    call["dry_run"] = json!(true);
    call["show_prompt"] = json!(true);
    let plan = scenario.call("tdd_green", call);
    let prompt = plan["details"]["prompt"].as_str().unwrap_or_default();
    assert!(!prompt.contains(SECRET), "{prompt}");
    let start = prompt.find("[redacted-").expect("a placeholder");
    let end = start + prompt[start..].find(']').expect("its end") + 1;
    prompt[start..end].to_owned()
}

#[test]
fn whole_file_answer_keeps_secrets() {
    let mut scenario = project();
    let hidden = code("a + b").replace(SECRET, &placeholder(&mut scenario));
    scenario.say("small", &replaces("calc.py", &hidden));
    let result = scenario.call("tdd_green", arguments());
    assert_eq!(trail(&result), "small accepted", "{result:#}");
    assert_eq!(scenario.read("calc.py"), code("a + b"));
    assert!(!result.to_string().contains(SECRET), "{result:#}");
}

#[test]
fn changed_place_keeps_secrets() {
    let mut scenario = project();
    let hidden = placeholder(&mut scenario);
    let edits = json!({"edits": [
        {"path": "calc.py", "action": "change",
         "search": format!("# Mirrored at ftp://foo:{hidden}@ftp.corp.net/\nlast = 1"),
         "replace": format!("# Mirror: ftp://foo:{hidden}@ftp.corp.net/\nlast = 2")},
        {"path": "calc.py", "action": "change", "search": "return a - b", "replace": "return a + b"},
    ]});
    scenario.say("small", &edits);
    let result = scenario.call("tdd_green", arguments());
    assert_eq!(trail(&result), "small accepted", "{result:#}");
    let expected = code("a + b")
        .replace("Mirrored at", "Mirror:")
        .replace("last = 1", "last = 2");
    assert_eq!(scenario.read("calc.py"), expected);
}

#[test]
fn marker_in_place_of_a_secret_is_refused() {
    for marker in ["[redacted]", "[redacted-0123456789ab]"] {
        let mut scenario = project();
        let answer = code("a + b").replace(SECRET, marker);
        scenario.say("small", &replaces("calc.py", &answer));
        let result = scenario.call("tdd_green", arguments());
        assert_eq!(trail(&result), "small rejected", "{result:#}");
        let attempt = &result["attempts"][0];
        let why = attempt["feedback"].as_str().unwrap_or_default();
        assert!(why.contains(marker) && why.contains("secret"), "{result:#}");
        assert_eq!(scenario.read("calc.py"), code("a - b"));
    }
    let mut scenario = project();
    let hidden = placeholder(&mut scenario);
    let elsewhere = format!(
        "{}KEY = \"{hidden}\"\n",
        code("a + b").replace(SECRET, &hidden)
    );
    scenario.say("small", &replaces("calc.py", &elsewhere));
    let result = scenario.call("tdd_green", arguments());
    assert_eq!(trail(&result), "small rejected", "{result:#}");
    assert_eq!(scenario.read("calc.py"), code("a - b"));
}
