//! Which rows of a matrix are built-in checks. A title stands for a check only if all its words are
//! about that check: another word may ask for something else.

use std::sync::LazyLock;

use regex::Regex;

use crate::definition::{CheckDefinition, CheckpointDefinition};

/// A built-in check, the titles that stand for it without [`FILLERS`], and its criteria.
const KNOWN: &[(&str, &str, &str)] = &[
    (
        "goal_trace",
        r"(vision |goals? )?(requirements? )?trac(e|ed|eability|ing)",
        "every goal `G-NN` of the brief is in a requirement",
    ),
    (
        "terminology",
        r"(\d+-docs? )?(key )?term(s|inology)?( drift)?",
        "one term for each concept",
    ),
    (
        "scope",
        r"scope",
        "no requirement is outside of the brief's scope",
    ),
    (
        "decision_continuity",
        r"decisions? continuity",
        "no decision contradicts another",
    ),
    (
        "decision_chain",
        r"decisions? chain",
        "no decision contradicts another",
    ),
    (
        "architecture_epics",
        r"architecture epics?( coverage)?",
        "every component is in an epic",
    ),
    (
        "quality_trend",
        r"quality( self-score)? trend",
        "no score falls by more than 10",
    ),
    ("open_questions", r"open questions?", "no question is open"),
    (
        "wisdom",
        r"wisdom",
        "no wisdom entry contradicts a decision",
    ),
    (
        "artifact_existence",
        r"artifacts?( files?)? exist(s|ence)?",
        "the documents of the phase are there and not empty",
    ),
    (
        "plan_coverage",
        r"plan (covers?|coverage)( requirements?)?",
        "every must-have requirement has a task",
    ),
    (
        "complexity",
        r"(plan )?complexity assessment|plan complexity",
        "the plan's complexity fits the number of its modules",
    ),
    (
        "dependency_chain",
        r"(task )?dependency (chain|graph)",
        "no cycle and no unknown task",
    ),
    (
        "execution_method",
        r"execution method",
        "the method fits the complexity",
    ),
    (
        "upstream_consumed",
        r"upstream (context |refs? |artifacts? )?consumed",
        "the plan refers to the documents before it",
    ),
    (
        "error_patterns",
        r"(retry|error) patterns?",
        "fewer than 3 errors of each role",
    ),
    (
        "activity",
        r"message bus anomal(y|ies)",
        "each task in progress sent a message in the last 30 minutes",
    ),
    (
        "spawns",
        r"fast-advance conflicts?|duplicate spawns?",
        "no task was started twice",
    ),
];

/// Words of a title that say nothing about what is checked.
const FILLERS: &[&str] = &[
    "a",
    "across",
    "aligned",
    "alignment",
    "all",
    "and",
    "appropriate",
    "between",
    "check",
    "checks",
    "consistency",
    "consistent",
    "documents",
    "of",
    "resolved",
    "sanity",
    "the",
    "to",
    "valid",
    "validity",
];

static TITLES: LazyLock<Vec<(&str, Regex)>> = LazyLock::new(|| {
    let anchored = |titles: &str| Regex::new(&format!("^(?:{titles})$")).expect("valid regex");
    let all = KNOWN.iter();
    all.map(|(id, titles, _)| (*id, anchored(titles))).collect()
});

/// The criteria of a built-in check; the row's own are not evaluated.
pub(super) fn criteria(id: &str) -> &'static str {
    let known = KNOWN.iter().find(|(known, ..)| *known == id);
    known.map_or("", |(.., criteria)| criteria)
}

/// The built-in check that a title stands for, and the checkpoint it is from: the one with the same
/// id if it has such a check.
pub(super) fn built_in_check(
    id: &str,
    title: &str,
) -> Option<(CheckDefinition, CheckpointDefinition)> {
    let title = title.to_lowercase();
    let words = title.split(|c: char| !c.is_alphanumeric() && c != '-');
    let telling: Vec<&str> = words
        .filter(|word| !word.is_empty() && !FILLERS.contains(word))
        .collect();
    let telling = telling.join(" ");
    let (wanted, _) = TITLES
        .iter()
        .find(|(_, is_meant)| is_meant.is_match(&telling))?;
    let mut all = CheckpointDefinition::built_in();
    all.sort_by_key(|definition| definition.id != id);
    all.into_iter().find_map(|definition| {
        let check = definition.checks.iter().find(|check| check.id == *wanted)?;
        Some((check.clone(), definition.clone()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_with_other_words_are_not_built_in() {
        let rows = [
            ("Goals → requirements trace", Some("goal_trace")),
            ("4-doc term consistency", Some("terminology")),
            ("Scope consistency", Some("scope")),
            ("Architecture↔Epics alignment", Some("architecture_epics")),
            ("Quality self-score trend", Some("quality_trend")),
            ("Complexity assessment sanity", Some("complexity")),
            ("Execution method appropriate", Some("execution_method")),
            ("Message bus anomalies", Some("activity")),
            ("Cyclomatic complexity below 10", None),
            ("Complexity", None),
            ("Scope of the licence", None),
            ("Wisdom contributed", None),
            ("Open questions have an owner", None),
            ("Terminology of the glossary is translated", None),
        ];
        for (title, check) in rows {
            let found = built_in_check("CHECKPOINT-001", title).map(|(check, _)| check.id);
            assert_eq!(found.as_deref(), check, "{title}");
        }
    }

    #[test]
    fn every_known_check_is_built_in() {
        let all = CheckpointDefinition::built_in();
        for (id, ..) in KNOWN {
            let mut checks = all.iter().flat_map(|definition| &definition.checks);
            assert!(checks.any(|check| check.id == *id), "{id}");
        }
    }
}
