//! A little project with a defect in it, and what reviewers say about it.

use serde_json::{Value, json};

use crate::support::scenario::Scenario;

pub(crate) const SHOP: (&str, &str) = (
    "src/shop.py",
    "import os\n\n\ndef total(prices):\n    return sum(prices) / len(prices)\n\n\ndef run(name):\n    os.system(\"ls \" + name)\n\n\ndef load(path):\n    try:\n        return open(path).read()\n    except Exception:\n        pass\n",
);
pub(crate) const UTIL: (&str, &str) = ("src/util.py", "def twice(n):\n    return n + n\n");

/// The shop, with a chain of recorded reviewers.
pub(crate) fn shop(tiers: &[&str]) -> Scenario {
    reviewers(tiers, &[SHOP, UTIL])
}

pub(crate) fn reviewers(tiers: &[&str], files: &[(&str, &str)]) -> Scenario {
    let chain: Vec<String> = tiers.iter().map(|tier| format!("\"{tier}\"")).collect();
    Scenario::chain(tiers, files).settings(&format!(
        "[skills.review]\nchain = [{}]\n",
        chain.join(", ")
    ))
}

/// The same, with a verifier of what local tiers made. Its setting goes into the table that stands last: the skill's own.
pub(crate) fn with_judge(scenario: Scenario) -> Scenario {
    let file = scenario.state.path().join("answers.jsonl");
    scenario.settings(&format!(
        "verifier = \"judge\"\n[backends.court]\nkind = \"replay\"\ntier = \"subagent\"\nfile = \"{}\"\nmodels = [\"judge\"]\n",
        file.display()
    ))
}

pub(crate) fn both() -> Value {
    json!({"files": ["src/shop.py", "src/util.py"]})
}

pub(crate) fn finding(line: usize, quote: &str, why: &str) -> Value {
    json!({"severity": "warning", "file": "src/shop.py", "line": line, "quote": quote, "why": why})
}

/// Three findings that hold, one of them over several lines.
pub(crate) fn findings() -> Vec<Value> {
    vec![
        finding(
            5,
            "    return sum(prices) / len(prices)",
            "an empty list divides by zero",
        ),
        finding(
            9,
            "os.system(\"ls \" + name)",
            "the name is run by a shell, so that it can hold any command",
        ),
        finding(
            15,
            "    except Exception:\n        pass",
            "a file that cannot be read is taken for an empty one",
        ),
    ]
}

/// Every file, with every iron law.
pub(crate) fn reviewed(files: &[&str]) -> Value {
    let checks = [
        "security",
        "swallowed errors",
        "boundary validation",
        "tests",
    ];
    files
        .iter()
        .map(|file| json!({"file": file, "checks": checks}))
        .collect()
}

/// A review that holds.
pub(crate) fn good() -> Value {
    json!({"findings": findings(), "reviewed": reviewed(&["src/shop.py", "src/util.py"])})
}

/// The same, changed.
pub(crate) fn good_but(change: impl Fn(&mut Value)) -> Value {
    let mut review = good();
    change(&mut review);
    review
}

/// A review without findings.
pub(crate) fn clean(files: &[&str]) -> Value {
    json!({"findings": [], "reviewed": reviewed(files)})
}
