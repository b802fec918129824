//! Checks learnings from a session: each must cite existing calls and must not name anything
//! private. Whether a learning is wise is not judged.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::common::private_names::PrivateNames;
use supervisor_text::words;
use supervisor_verify::Check;

/// Max learnings in one answer.
const MAX_LEARNINGS: usize = 8;
/// Min bytes of a recommendation.
const MIN_RECOMMENDATION_LEN: usize = 20;

/// One learning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Learning {
    pub title: String,
    /// A kind of note.
    pub kind: String,
    /// Where it was observed.
    #[serde(default)]
    pub context: String,
    /// What to do, in any project.
    pub recommendation: String,
    /// The session entries that support it.
    pub evidence: Vec<String>,
}

/// A rejected learning, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct DroppedLearning {
    pub title: String,
    pub why: String,
}

/// The learnings of an answer, kept and dropped.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ExaminedLearnings {
    pub check: Check,
    pub kept: Vec<Learning>,
    pub dropped: Vec<DroppedLearning>,
}

pub(crate) fn schema(kinds: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": {"learnings": {"type": "array", "maxItems": MAX_LEARNINGS, "items": {
            "type": "object",
            "properties": {
                "title": {"type": "string"},
                "kind": {"type": "string", "enum": kinds},
                "context": {"type": "string"},
                "recommendation": {"type": "string"},
                "evidence": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["title", "kind", "context", "recommendation", "evidence"],
            "additionalProperties": false,
        }}},
        "required": ["learnings"],
        "additionalProperties": false,
    })
}

/// Examines each learning separately. An answer whose learnings are all dropped is rejected; an
/// empty answer is valid.
pub(crate) fn examine(
    body: &Value,
    kinds: &[&str],
    entries: &BTreeSet<String>,
    names: &PrivateNames,
) -> ExaminedLearnings {
    let refuse = |why: String| ExaminedLearnings {
        check: Check::new("learnings", false, why),
        kept: Vec::new(),
        dropped: Vec::new(),
    };
    let Some(given) = body["learnings"].as_array() else {
        return refuse(String::from(
            "the answer has no list `learnings`; an empty one is a good answer",
        ));
    };
    if given.len() > MAX_LEARNINGS {
        return refuse(format!(
            "{} learnings are too many; give the {MAX_LEARNINGS} that matter most",
            given.len()
        ));
    }
    let (mut kept, mut dropped): (Vec<Learning>, Vec<DroppedLearning>) = (Vec::new(), Vec::new());
    for value in given {
        let title = words::short(value["title"].as_str().unwrap_or_default(), 100);
        let fault = match serde_json::from_value::<Learning>(value.clone()) {
            Err(error) => Some(error.to_string()),
            Ok(learning) => match find_fault(&learning, kinds, entries, names, &kept) {
                None => {
                    kept.push(learning);
                    None
                }
                fault => fault,
            },
        };
        dropped.extend(fault.map(|why| DroppedLearning { title, why }));
    }
    let reasons: Vec<String> = dropped
        .iter()
        .map(|one| format!("`{}`: {}", one.title, one.why))
        .collect();
    let check = match (kept.len(), dropped.len()) {
        (0, n) if n > 0 => Check::new(
            "learnings",
            false,
            format!("no lesson has enough evidence: {}", reasons.join("; ")),
        ),
        (n, 0) => Check::new(
            "learnings",
            true,
            format!("{} with evidence that exists", words::count(n, "learning")),
        ),
        (n, _) => Check::new(
            "learnings",
            true,
            format!(
                "{} with evidence that exists; left out: {}",
                words::count(n, "learning"),
                reasons.join("; ")
            ),
        ),
    };
    ExaminedLearnings {
        check,
        kept,
        dropped,
    }
}

/// Checks that every note was written and can be found by its own words.
pub(crate) fn check_written(names: &[String], missing: &[String]) -> Check {
    match missing {
        [] => Check::new(
            "written",
            true,
            format!(
                "{} written and found again",
                words::count(names.len(), "note")
            ),
        ),
        missing => Check::new(
            "written",
            false,
            format!("written, but not found again: {}", missing.join(", ")),
        ),
    }
}

fn find_fault(
    learning: &Learning,
    kinds: &[&str],
    entries: &BTreeSet<String>,
    names: &PrivateNames,
    others: &[Learning],
) -> Option<String> {
    let Learning {
        title,
        kind,
        context,
        recommendation,
        evidence,
    } = learning;
    if title.trim().is_empty() || title.len() > 200 || title.contains('\n') {
        return Some(String::from("`title` must be one short line"));
    }
    if !kinds.contains(&kind.as_str()) {
        return Some(format!(
            "`kind` is {kind:?}; it must be {}",
            words::one_of(kinds.iter().copied())
        ));
    }
    if recommendation.trim().len() < MIN_RECOMMENDATION_LEN {
        return Some(String::from(
            "`recommendation` says nothing that can be done",
        ));
    }
    if evidence.is_empty() {
        return Some(String::from("it names no entry as evidence"));
    }
    if let Some(invented) = evidence.iter().find(|id| !entries.contains(*id)) {
        return Some(format!("there is no entry {invented:?}"));
    }
    for (field, text) in [("title", title), ("recommendation", recommendation)] {
        if let Some(found) = names.find_with_files(text) {
            return Some(format!(
                "`{field}` names {found}; say it so that it holds elsewhere"
            ));
        }
    }
    if let Some(found) = names.find(context) {
        return Some(format!("`context` names {found}"));
    }
    let plain = |text: &str| words::one_line(text).to_lowercase();
    let is_duplicate = others
        .iter()
        .any(|other| plain(&other.recommendation) == plain(recommendation));
    is_duplicate.then(|| String::from("it was said before"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn learning_needs_real_evidence_and_no_private_names() {
        let mut names = PrivateNames::of_this_machine();
        names.add_project("/home/ada/orders");
        names.add_file("src/cart.py");
        let entries = BTreeSet::from(["s:1".to_owned(), "s:2".to_owned()]);
        let good = json!({"title": "Rounding", "kind": "failure", "context": "a sum of prices",
            "recommendation": "Round once, at the end, and not each price.", "evidence": ["s:2"]});
        let with = |field: &str, value: Value| {
            let mut one = good.clone();
            one[field] = value;
            one
        };
        let all = json!({"learnings": [
            good,
            with("evidence", json!([])),
            with("evidence", json!(["s:9"])),
            with("recommendation", json!("In src/cart.py, round once and at the end.")),
            with("recommendation", json!("Never write to /home/ada/orders again, please.")),
            with("kind", json!("gossip")),
            good,
        ]});
        let found = examine(&all, &["fact", "failure"], &entries, &names);
        assert!(found.check.passed(), "{:?}", found.check);
        assert_eq!(
            (found.kept.len(), found.dropped.len()),
            (1, 6),
            "{:#?}",
            found.dropped
        );
        assert!(
            examine(&json!({"learnings": []}), &["fact"], &entries, &names)
                .check
                .passed()
        );
        let none = json!({"learnings": [with("evidence", json!(["s:9"]))]});
        assert!(
            !examine(&none, &["failure"], &entries, &names)
                .check
                .passed()
        );
        assert!(
            !examine(&json!({}), &["failure"], &entries, &names)
                .check
                .passed()
        );
    }
}
