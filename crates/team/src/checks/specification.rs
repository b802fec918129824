//! Checks of the specification documents: scope, architecture, scores, open questions.

use serde_json::Value;

use super::super::check::CheckContext;
use super::super::definition::CheckDefinition;
use super::super::document::TeamDocument;
use super::super::verdict::{CheckFinding, EvidenceLocation};
use supervisor_text::words;

/// Shorter words are too unspecific to match by.
const MIN_WORD_LEN: usize = 4;

/// Checks that no requirement is out of scope, and that each one serves a goal.
pub(super) fn scope(context: &CheckContext<'_>, check: &CheckDefinition) -> CheckFinding {
    let briefs = match context.sources(check, ["brief"]) {
        Ok(briefs) => briefs,
        Err(missing) => return missing,
    };
    let requirements = match context.sources(check, ["requirement"]) {
        Ok(requirements) => requirements,
        Err(missing) => return missing,
    };
    let (mut outside, mut without_goal) = (Vec::new(), Vec::new());
    let out_of_scope = briefs.iter().flat_map(|brief| &brief.items);
    let out_of_scope: Vec<_> = out_of_scope
        .filter(|i| i.section.to_lowercase().contains("out of scope"))
        .collect();
    for requirement in &requirements {
        let title = requirement
            .headings
            .first()
            .map_or("", |heading| heading.title.as_str());
        let line = requirement
            .headings
            .first()
            .map_or(1, |heading| heading.line);
        let at = |text: &str| EvidenceLocation {
            file: requirement.path.clone(),
            line,
            text: text.to_owned(),
        };
        if out_of_scope
            .iter()
            .any(|item| covers(&significant_words(title), &significant_words(&item.text)))
        {
            outside.push(at(title));
        }
        if !requirement.text.lines().any(has_goal) {
            without_goal.push(at(title));
        }
    }
    let names =
        |places: &[EvidenceLocation]| words::series(places.iter().map(|p| p.text.as_str()), 5);
    if !outside.is_empty() {
        return check.fail(
            format!("required although out of scope: {}", names(&outside)),
            outside,
        );
    }
    if !without_goal.is_empty() {
        return check.warn(
            format!("traces to no goal: {}", names(&without_goal)),
            without_goal,
        );
    }
    check.pass(format!(
        "{} within the scope of the brief",
        words::count(requirements.len(), "requirement")
    ))
}

fn has_goal(line: &str) -> bool {
    line.match_indices("G-")
        .any(|(at, _)| line[at + 2..].starts_with(|c: char| c.is_ascii_digit()))
}

fn significant_words(text: &str) -> Vec<String> {
    let words = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.chars().count() >= MIN_WORD_LEN);
    words.map(str::to_lowercase).collect()
}

/// True if `text` contains all significant words of `of`, and there are at least two.
fn covers(text: &[String], of: &[String]) -> bool {
    of.len() >= 2 && of.iter().all(|word| text.contains(word))
}

/// Checks that an epic covers every component and decision of the architecture.
pub(super) fn architecture_coverage(
    context: &CheckContext<'_>,
    check: &CheckDefinition,
) -> CheckFinding {
    let architecture = match context.sources(check, ["architecture"]) {
        Ok(documents) => documents,
        Err(missing) => return missing,
    };
    let epics = match context.sources(check, ["epics"]) {
        Ok(documents) => documents,
        Err(missing) => return missing,
    };
    let mut parts: Vec<(String, EvidenceLocation)> = Vec::new();
    for document in &architecture {
        let components = document
            .rows
            .iter()
            .filter(|row| row.cell("component").is_some());
        for row in components {
            let name = row.cell("component").unwrap_or_default().to_owned();
            parts.push((
                name,
                EvidenceLocation {
                    file: document.path.clone(),
                    line: row.line,
                    text: row.text(),
                },
            ));
        }
        if let Some(id) = document
            .front_text("id")
            .or_else(|| id_in_name(document, "ADR-"))
        {
            let text = document
                .headings
                .first()
                .map_or_else(|| id.clone(), |heading| heading.title.clone());
            parts.push((
                id,
                EvidenceLocation {
                    file: document.path.clone(),
                    line: 1,
                    text,
                },
            ));
        }
    }
    if parts.is_empty() {
        return check.not_applicable("the architecture names no component and no decision");
    }
    let all = epics
        .iter()
        .map(|epic| epic.text.to_lowercase())
        .collect::<String>();
    let uncovered: Vec<_> = parts
        .iter()
        .filter(|(name, _)| !name.is_empty() && !all.contains(&name.to_lowercase()))
        .collect();
    if uncovered.is_empty() {
        return check.pass(format!(
            "{} covered by epics",
            words::count(parts.len(), "component")
        ));
    }
    let names = words::series(uncovered.iter().map(|(name, _)| name.as_str()), 8);
    check.fail(
        format!("no epic covers {names}"),
        uncovered.into_iter().map(|(_, place)| place.clone()),
    )
}

fn id_in_name(document: &TeamDocument, prefix: &str) -> Option<String> {
    let file = document.name.rsplit('/').next()?;
    let rest = file.strip_prefix(prefix)?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    (!digits.is_empty()).then(|| format!("{prefix}{digits}"))
}

/// Checks that the drafts' own quality scores do not fall.
pub(super) fn quality_trend(context: &CheckContext<'_>, check: &CheckDefinition) -> CheckFinding {
    let mut scores: Vec<(String, f64)> = Vec::new();
    for (_, task, state) in context.meta.tasks() {
        if let Some(score) = state.get("quality_self_score").and_then(Value::as_f64) {
            scores.push((task, score));
        }
    }
    scores.sort_by(|a, b| a.0.cmp(&b.0));
    if scores.len() < 2 {
        return check.not_applicable("fewer than two tasks published a `quality_self_score`");
    }
    let drop = context.limits().score_drop;
    let falls: Vec<_> = scores
        .windows(2)
        .filter(|pair| pair[1].1 < pair[0].1 - drop)
        .collect();
    if falls.is_empty() {
        return check.pass(
            scores
                .iter()
                .map(|(task, s)| format!("{task} {s}"))
                .collect::<Vec<_>>()
                .join(", "),
        );
    }
    let describe = |pair: &&[(String, f64)]| {
        format!(
            "{} {} after {} {}",
            pair[1].0, pair[1].1, pair[0].0, pair[0].1
        )
    };
    let details = words::series(falls.iter().map(describe), 5);
    let places = falls
        .iter()
        .map(|pair| context.digest.place_of_task(&pair[1].0));
    check.fail(format!("fell by more than {drop}: {details}"), places)
}

/// Checks that no critical question is left open.
pub(super) fn open_questions(context: &CheckContext<'_>, check: &CheckDefinition) -> CheckFinding {
    let (mut critical, mut open) = (Vec::new(), Vec::new());
    let is_critical = |text: &str| {
        let text = text.to_lowercase();
        ["critical", "blocker", "blocking"]
            .iter()
            .any(|word| text.contains(word))
    };
    for document in context.documents.all() {
        let items = document
            .items
            .iter()
            .filter(|item| item.section.to_lowercase().contains("open question"));
        for item in items.filter(|item| item.ticked == Some(false)) {
            let place = EvidenceLocation {
                file: document.path.clone(),
                line: item.line,
                text: item.text.clone(),
            };
            if is_critical(&item.text) {
                &mut critical
            } else {
                &mut open
            }
            .push(place);
        }
    }
    let mut states = 0;
    for (_, task, state) in context.meta.tasks() {
        let Some(questions) = state.get("open_questions").and_then(Value::as_array) else {
            continue;
        };
        states += 1;
        for question in questions {
            let text = question
                .as_str()
                .or_else(|| question.get("question")?.as_str())
                .unwrap_or_default();
            if question.get("resolved").and_then(Value::as_bool) == Some(true) {
                continue;
            }
            let severity = question
                .get("severity")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let place = EvidenceLocation {
                text: text.to_owned(),
                ..context.digest.place_of_task(&task)
            };
            if is_critical(severity) || (severity.is_empty() && is_critical(text)) {
                &mut critical
            } else {
                &mut open
            }
            .push(place);
        }
    }
    let names =
        |places: &[EvidenceLocation]| words::series(places.iter().map(|p| p.text.as_str()), 3);
    if !critical.is_empty() {
        return check.fail(format!("critical and open: {}", names(&critical)), critical);
    }
    if !open.is_empty() {
        return check.warn(
            format!(
                "{} open: {}",
                words::count(open.len(), "question"),
                names(&open)
            ),
            open,
        );
    }
    let note = if states == 0 {
        "; no role published `open_questions`"
    } else {
        ""
    };
    check.pass(format!("none open{note}"))
}
