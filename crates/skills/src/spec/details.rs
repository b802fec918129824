//! The details of a `spec` result: enough to continue without reading the file.

use serde_json::{Map, Value, json};

use super::render::SECTIONS;
use super::specification::{
    Criterion, OpenQuestion, RequirementItems, RequirementRoute, Specification, sha256,
};
use supervisor_text::words;

/// Max entries shown of a list, and max bytes of a text.
const MAX_ENTRIES: usize = 30;
const MAX_TEXT_BYTES: usize = 160;

pub(super) fn of(spec: &Specification, document: &str) -> Value {
    let section_count = if spec.questions.is_empty() {
        SECTIONS.len() - 1
    } else {
        SECTIONS.len()
    };
    let mut details = Map::new();
    details.insert("sections".into(), json!(SECTIONS[..section_count]));
    list(&mut details, "criteria", &spec.criteria, criterion);
    list(
        &mut details,
        "requirement_map",
        &spec.requirement_map,
        route,
    );
    list(&mut details, "questions", &spec.questions, question);
    details.insert("sha256".into(), json!(sha256(document.as_bytes())));
    details.insert("bytes".into(), json!(document.len()));
    Value::Object(details)
}

/// Details of an answer that only asks questions.
pub(super) fn of_questions(questions: &[OpenQuestion], requirements: &RequirementItems) -> Value {
    let asked = questions.iter().map(question).collect::<Vec<_>>();
    let requirements: Map<String, Value> = requirements
        .iter()
        .take(MAX_ENTRIES)
        .map(|(id, text)| (id, json!(short(text))))
        .collect();
    json!({"questions": asked, "requirements": requirements})
}

/// Describes a criterion as a task for `tdd_red`.
pub(super) fn task(criterion: &Criterion) -> String {
    format!(
        "{}: {} (test: {})",
        criterion.id,
        criterion.text.trim(),
        criterion.test
    )
}

fn criterion(criterion: &Criterion) -> Value {
    json!({
        "id": criterion.id,
        "text": short(&criterion.text),
        "measurable_by": {criterion.test.kind(): short(&criterion.test.to_string())},
    })
}

fn route(route: &RequirementRoute) -> Value {
    let mut shown = json!({"requirement": route.requirement});
    for (name, targets) in [
        ("criteria", json!(route.criteria)),
        ("out_of_scope", json!(route.out_of_scope)),
        ("questions", json!(route.questions)),
    ] {
        if targets
            .as_array()
            .is_some_and(|targets| !targets.is_empty())
        {
            shown[name] = targets;
        }
    }
    if route.background {
        shown["background"] = json!(true);
    }
    shown
}

fn question(question: &OpenQuestion) -> Value {
    json!({"requirement": question.requirement.trim(), "question": short(&question.question)})
}

fn list<T>(details: &mut Map<String, Value>, name: &str, all: &[T], show: impl Fn(&T) -> Value) {
    details.insert(
        name.into(),
        all.iter().take(MAX_ENTRIES).map(show).collect(),
    );
    if all.len() > MAX_ENTRIES {
        details.insert(format!("{name}_left_out"), json!(all.len() - MAX_ENTRIES));
    }
}

fn short(text: &str) -> String {
    words::short(text.trim(), MAX_TEXT_BYTES)
}
