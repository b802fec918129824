//! Checks that each criterion has a test of its own: a command, a number with a unit, or a
//! scenario, complete and of one kind.

use std::fmt;

use serde_json::Value;

use super::draft::{CriterionTestDraft, SpecificationDraft};
use super::{check_from, has_content, quoted, same_words};
use supervisor_text::words;
use supervisor_verify::Check;

/// The test of a criterion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CriterionTest {
    /// Passes if it exits with code 0.
    Command(String),
    Number {
        metric: String,
        /// `<`, `≤`, `=`, `≥` or `>`.
        comparison: &'static str,
        value: String,
        unit: String,
    },
    Scenario {
        given: String,
        when: String,
        then: String,
    },
}

impl CriterionTest {
    /// `command`, `number` or `scenario`.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Command(_) => "command",
            Self::Number { .. } => "number",
            Self::Scenario { .. } => "scenario",
        }
    }
}

impl fmt::Display for CriterionTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(command) => write!(f, "`{command}` succeeds"),
            Self::Number {
                metric,
                comparison,
                value,
                unit,
            } => write!(f, "{metric} {comparison} {value} {unit}"),
            Self::Scenario { given, when, then } => {
                write!(f, "given {given}, when {when}, then {then}")
            }
        }
    }
}

/// The test of each criterion that has one, and the check that all have.
pub(super) fn examine(draft: &SpecificationDraft) -> (Vec<Option<CriterionTest>>, Check) {
    let mut faults = Vec::new();
    let tests: Vec<Option<CriterionTest>> = draft
        .criteria
        .iter()
        .enumerate()
        .map(|(n, criterion)| match parse_test(&criterion.test) {
            Ok(test) => Some(test),
            Err(why) => {
                faults.push(format!("{} {why}", criterion.place(n)));
                None
            }
        })
        .collect();
    faults.extend(find_shared_tests(draft, &tests));
    let count = |kind: &str| tests.iter().flatten().filter(|t| t.kind() == kind).count();
    let check = check_from("testable", &faults, || {
        let kinds = ["command", "number", "scenario"].map(|kind| words::count(count(kind), kind));
        format!("each criterion has a test: {}", kinds.join(", "))
    });
    (tests, check)
}

/// Reports tests shared by several criteria: they cannot show which one is met.
fn find_shared_tests(draft: &SpecificationDraft, tests: &[Option<CriterionTest>]) -> Vec<String> {
    // Keep punctuation: `< 2 s` and `> 2 s` differ.
    let plain = |test: &CriterionTest| words::one_line(&test.to_string()).to_lowercase();
    let texts: Vec<Option<String>> = tests.iter().map(|test| test.as_ref().map(plain)).collect();
    let mut faults = Vec::new();
    for (n, test) in texts.iter().enumerate() {
        let Some(test) = test else { continue };
        let is_same = |m: &usize| texts[*m].as_ref() == Some(test);
        // Report each group once, at its second member.
        if (0..n).filter(is_same).count() != 1 {
            continue;
        }
        let places: Vec<String> = (0..texts.len())
            .filter(is_same)
            .map(|m| quoted(draft.criteria[m].id.trim()))
            .collect();
        faults.push(format!(
            "the criteria {} have the same test, {}; give each one that fails until that one is met",
            places.join(", "),
            quoted(test)
        ));
    }
    faults
}

const KINDS: &str =
    "give `command`, or `metric`, `comparison`, `value` and `unit`, or `given`, `when` and `then`";

fn parse_test(given: &CriterionTestDraft) -> Result<CriterionTest, String> {
    let value = parse_number(&given.value);
    let is_set = |text: &str| !text.trim().is_empty();
    let command = is_set(&given.command);
    let numeric = [
        ("metric", has_content(&given.metric)),
        ("comparison", is_set(&given.comparison)),
        ("value", !given.value.is_null()),
        ("unit", is_set(&given.unit)),
    ];
    let scenario = [
        ("given", has_content(&given.given)),
        ("when", has_content(&given.when)),
        ("then", has_content(&given.then)),
    ];
    let some = |fields: &[(&str, bool)]| fields.iter().any(|(_, is_set)| *is_set);
    match (command, some(&numeric), some(&scenario)) {
        (false, false, false) => Err(format!("has no test; {KINDS}")),
        (true, false, false) => parse_command(given.command.trim()).map(CriterionTest::Command),
        (false, true, false) => {
            ensure_complete(&numeric)?;
            let comparison = parse_comparison(given.comparison.trim())?;
            let value = value.ok_or_else(|| {
                format!(
                    "has the value {}, which is not a number",
                    quoted(&given.value.to_string())
                )
            })?;
            Ok(CriterionTest::Number {
                metric: given.metric.clone(),
                comparison,
                value,
                unit: given.unit.clone(),
            })
        }
        (false, false, true) => {
            ensure_complete(&scenario)?;
            let (given, when, then) = (&given.given, &given.when, &given.then);
            if same_words(given, when) || same_words(when, then) || same_words(given, then) {
                return Err(String::from(
                    "has a scenario whose parts repeat each other; say what is given, what happens and what is seen",
                ));
            }
            Ok(CriterionTest::Scenario {
                given: given.clone(),
                when: when.clone(),
                then: then.clone(),
            })
        }
        _ => Err(format!(
            "has a test of more than one kind; {KINDS}, and only one of them"
        )),
    }
}

/// Accepts a single line that starts with a program name.
fn parse_command(command: &str) -> Result<String, String> {
    let shown = quoted(command);
    if command.chars().any(char::is_control) {
        return Err(format!(
            "has a command of several lines or with control characters: {shown}; write one line"
        ));
    }
    let words = shell_words::split(command)
        .map_err(|e| format!("has a command that cannot be read, {shown}: {e}"))?;
    // The program comes after variables and wrappers such as `env`.
    let is_prefix =
        |word: &&str| is_assignment(word) || ["!", "env", "sudo", "command", "time"].contains(word);
    let mut words = words.iter().map(String::as_str);
    let program = words
        .find(|word| !is_prefix(word))
        .unwrap_or_default()
        .trim_end_matches(';');
    let is_named = program
        .chars()
        .all(|c| c.is_alphanumeric() || "_./+@:-~[".contains(c))
        && (has_content(program) || [":", "[", "[["].contains(&program));
    if !is_named {
        return Err(format!(
            "has the command {shown}, which names no program; write what one types, such as `cargo test login`"
        ));
    }
    Ok(command.to_owned())
}

/// A variable assignment such as `RUST_LOG=debug`.
fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

fn ensure_complete(fields: &[(&str, bool)]) -> Result<(), String> {
    let missing: Vec<String> = fields
        .iter()
        .filter(|(_, is_set)| !is_set)
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(format!("has a test without {}", missing.join(" and ")))
    }
}

/// The number as written, if it is finite.
fn parse_number(value: &Value) -> Option<String> {
    let written = match value {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.trim().to_owned(),
        _ => return None,
    };
    let plain = written
        .bytes()
        .all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    (plain && written.parse::<f64>().is_ok_and(f64::is_finite)).then_some(written)
}

fn parse_comparison(written: &str) -> Result<&'static str, String> {
    Ok(match written {
        "<" => "<",
        "<=" | "≤" | "=<" => "≤",
        "=" | "==" => "=",
        ">=" | "≥" | "=>" => "≥",
        ">" => ">",
        other => {
            return Err(format!(
                "has the comparison {}; it is `<`, `<=`, `=`, `>=` or `>`",
                quoted(other)
            ));
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(given: Value) -> Result<CriterionTest, String> {
        parse_test(&serde_json::from_value(given).expect("the shape"))
    }

    #[test]
    fn complete_tests_are_accepted() {
        for whole in [
            json!({"command": "cargo test"}),
            json!({"command": "RUST_LOG=debug ./run.sh --all 'a b'"}),
            json!({"command": "echo 1,2 | csv2json"}),
            json!({"command": "! grep -rn unwrap src"}),
            json!({"command": "[ -d dist ]"}),
            json!({"command": "time make; test $? = 0"}),
            json!({"metric": "p95 latency", "comparison": "<=", "value": 200, "unit": "ms"}),
            json!({"metric": "p95 latency", "comparison": "≤", "value": "0.5", "unit": "s", "command": ""}),
            json!({"metric": "lost rows", "comparison": "=", "value": 0, "unit": "rows"}),
            json!({"given": "a file", "when": "it is read", "then": "its rows are printed"}),
            json!({"given": "an expired token", "when": "it is used", "then": "the answer is 401"}),
            json!({"metric": "probes answered", "comparison": ">=", "value": 99.9, "unit": "%"}),
        ] {
            assert!(
                of(whole.clone()).is_ok(),
                "{whole}: {:?}",
                of(whole.clone())
            );
        }
    }

    #[test]
    fn incomplete_test_names_the_missing_part() {
        for (half, part) in [
            (json!({}), "has no test"),
            (json!({"command": "  "}), "has no test"),
            (json!({"command": "cargo 'test"}), "cannot be read"),
            (json!({"command": "<command>"}), "names no program"),
            (json!({"command": "A=1"}), "names no program"),
            (json!({"command": "A=1 && cargo test"}), "names no program"),
            (json!({"command": "cargo test\nrm -rf /"}), "several lines"),
            (
                json!({"metric": "latency", "comparison": "<="}),
                "without `value` and `unit`",
            ),
            (
                json!({"metric": "latency", "comparison": "<=", "value": 5}),
                "without `unit`",
            ),
            (
                json!({"metric": "latency", "comparison": "about", "value": 5, "unit": "s"}),
                "the comparison `about`",
            ),
            (
                json!({"metric": "latency", "comparison": "<", "value": "soon", "unit": "s"}),
                "no number",
            ),
            (
                json!({"metric": "latency", "comparison": "<", "value": "inf", "unit": "s"}),
                "no number",
            ),
            (
                json!({"metric": "latency", "comparison": "<", "value": "1e999", "unit": "s"}),
                "no number",
            ),
            (json!({"given": "a file", "then": "rows"}), "without `when`"),
            (
                json!({"given": "a file", "when": "A file.", "then": "rows"}),
                "repeat each other",
            ),
            (
                json!({"command": "cargo test", "given": "a", "when": "b", "then": "c"}),
                "more than one kind",
            ),
        ] {
            let error = of(half.clone()).expect_err("half a test");
            assert!(error.contains(part), "{half}: {error}");
        }
    }
}
