//! Checks that decisions agree: the same key has the same value, unless the later decision says
//! that it supersedes the earlier. Free text is not compared here; that takes a question to a
//! model.

use std::sync::Arc;

use serde_json::Value;

use super::super::check::CheckContext;
use super::super::definition::CheckDefinition;
use super::super::document::TeamDocument;
use super::super::verdict::{CheckFinding, EvidenceLocation};
use supervisor_text::words;

/// A decision with a key, and where it was made.
#[derive(Debug, Clone)]
pub struct KeyedDecision {
    pub key: String,
    pub value: String,
    /// True if it replaces an earlier decision on purpose.
    pub supersedes: bool,
    pub place: EvidenceLocation,
}

/// Checks that no role contradicts an earlier decision.
pub(super) fn decision_chain(context: &CheckContext<'_>, check: &CheckDefinition) -> CheckFinding {
    let (mut decisions, unkeyed) = decisions_in_states(context);
    if decisions.is_empty() {
        decisions = decisions_in_artifacts(context);
    }
    if decisions.is_empty() {
        return check.not_applicable(match unkeyed {
            0 => String::from("no role published decisions, and no artifact lists any"),
            n => format!(
                "{} in free text; only a model can compare them",
                words::count(n, "decision")
            ),
        });
    }
    match contradictions(&decisions) {
        clashes if clashes.is_empty() => check.pass(format!(
            "{} with a key, none contradicts another",
            words::count(decisions.len(), "decision")
        )),
        clashes => check.fail(
            describe(&clashes),
            clashes
                .into_iter()
                .flat_map(|(a, b)| [a.place.clone(), b.place.clone()]),
        ),
    }
}

/// Checks that the team's wisdom does not contradict its decisions.
pub(super) fn wisdom_consistency(
    context: &CheckContext<'_>,
    check: &CheckDefinition,
) -> CheckFinding {
    let wisdom: Vec<KeyedDecision> = context
        .documents
        .wisdom
        .iter()
        .flat_map(keyed_items)
        .collect();
    if wisdom.is_empty() {
        return check.not_applicable("no wisdom of the form `key: value`");
    }
    let mut all = decisions_in_states(context).0;
    all.extend(wisdom);
    match contradictions(&all) {
        clashes if clashes.is_empty() => check.pass("no entry contradicts a decision"),
        clashes => check.fail(
            describe(&clashes),
            clashes
                .into_iter()
                .flat_map(|(a, b)| [a.place.clone(), b.place.clone()]),
        ),
    }
}

/// Keyed decisions in the sections about decisions, where no role published any.
fn decisions_in_artifacts(context: &CheckContext<'_>) -> Vec<KeyedDecision> {
    let documents = context.documents.all();
    let wisdom = |document: &Arc<TeamDocument>| {
        let mut wisdom = context.documents.wisdom.iter();
        wisdom.any(|one| one.path == document.path)
    };
    documents
        .iter()
        .filter(|document| !wisdom(document))
        .flat_map(|document| {
            let is_decision = |decision: &KeyedDecision| {
                let mut items = document.items.iter();
                items.any(|item| {
                    item.line == decision.place.line
                        && item.section.to_lowercase().contains("decision")
                })
            };
            let keyed = keyed_items(document);
            keyed.into_iter().filter(is_decision).collect::<Vec<_>>()
        })
        .collect()
}

/// Keyed decisions in the order of their tasks, and how many had no key.
fn decisions_in_states(context: &CheckContext<'_>) -> (Vec<KeyedDecision>, usize) {
    let (mut keyed, mut unkeyed) = (Vec::new(), 0);
    let mut states = context.meta.tasks();
    states.sort_by_key(|(_, task, state)| {
        (
            state
                .get("_updated_at")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
            task.clone(),
        )
    });
    for (role, task, state) in states {
        // Our own verdicts are not decisions of the pipeline.
        if role == "supervisor" {
            continue;
        }
        for decision in state
            .get("decisions")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let place = context.digest.place_of_task(&task);
            match keyed_decision(decision, place) {
                Some(decision) => keyed.push(decision),
                None => unkeyed += 1,
            }
        }
    }
    (keyed, unkeyed)
}

fn keyed_decision(decision: &Value, place: EvidenceLocation) -> Option<KeyedDecision> {
    if let Some(text) = decision.as_str() {
        let (key, value) = split_key(text)?;
        return Some(KeyedDecision {
            key,
            value,
            supersedes: false,
            place: EvidenceLocation {
                text: text.to_owned(),
                ..place
            },
        });
    }
    let field = |names: &[&str]| names.iter().find_map(|name| decision.get(name)?.as_str());
    let key = field(&["key", "topic", "id"])?.to_owned();
    let value = field(&["value", "choice", "decision"])?.to_owned();
    let supersedes = decision
        .get("supersedes")
        .is_some_and(|s| !s.is_null() && s != "");
    let text = format!("{key}: {value}");
    Some(KeyedDecision {
        key,
        value,
        supersedes,
        place: EvidenceLocation { text, ..place },
    })
}

fn keyed_items(document: &Arc<TeamDocument>) -> Vec<KeyedDecision> {
    let keyed = |item: &super::super::document::ListItem| {
        let (key, value) = split_key(&item.text)?;
        let place = EvidenceLocation {
            file: document.path.clone(),
            line: item.line,
            text: item.text.clone(),
        };
        Some(KeyedDecision {
            supersedes: value.to_lowercase().contains("supersedes"),
            key,
            value,
            place,
        })
    };
    document.items.iter().filter_map(keyed).collect()
}

/// Splits `database: postgres`, where the key has few words. A sentence with a colon has no key.
fn split_key(text: &str) -> Option<(String, String)> {
    let (key, value) = text.split_once(": ").or_else(|| text.split_once(" = "))?;
    let key = key
        .trim()
        .trim_start_matches(['-', '*', '['])
        .trim_end_matches(']')
        .trim();
    (key.split_whitespace().count() <= 4 && !key.is_empty() && !value.trim().is_empty())
        .then(|| (key.to_owned(), value.trim().to_owned()))
}

fn contradictions(decisions: &[KeyedDecision]) -> Vec<(&KeyedDecision, &KeyedDecision)> {
    let mut clashes = Vec::new();
    for (n, later) in decisions.iter().enumerate() {
        let earlier = decisions[..n]
            .iter()
            .rev()
            .find(|earlier| is_same(&earlier.key, &later.key));
        if let Some(earlier) = earlier
            && !is_same(&earlier.value, &later.value)
            && !later.supersedes
        {
            clashes.push((earlier, later));
        }
    }
    clashes
}

fn is_same(first: &str, other: &str) -> bool {
    let fold = |text: &str| {
        text.to_lowercase()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .trim_end_matches('.')
            .to_owned()
    };
    fold(first) == fold(other)
}

fn describe(clashes: &[(&KeyedDecision, &KeyedDecision)]) -> String {
    let first = |(a, b): &(&KeyedDecision, &KeyedDecision)| {
        format!("{}: \"{}\" against \"{}\"", b.key, b.value, a.value)
    };
    words::series(clashes.iter().map(first), 5)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(text: &str) -> KeyedDecision {
        let place = EvidenceLocation {
            file: "f".into(),
            line: 1,
            text: text.into(),
        };
        keyed_decision(&Value::from(text), place).expect("keyed")
    }

    #[test]
    fn same_key_with_other_value_contradicts() {
        let chain = [
            decision("database: Postgres"),
            decision("cache: none"),
            decision("Database:  postgres."),
        ];
        assert!(contradictions(&chain).is_empty());
        let chain = [decision("database: Postgres"), decision("database: SQLite")];
        assert_eq!(contradictions(&chain).len(), 1);
        let replaced = KeyedDecision {
            supersedes: true,
            ..decision("database: SQLite")
        };
        assert!(contradictions(&[decision("database: Postgres"), replaced]).is_empty());
        assert!(split_key("We chose this for one reason that matters: speed").is_none());
    }
}
