//! The JSON shape of a specification draft. Missing fields are accepted, so that the check that
//! needs them can report them. Unknown fields are ignored: an answer with a `title` is not wrong, and a
//! misspelt name is reported as a missing one.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{first_few, quoted};
use crate::common::SHAPE;
use supervisor_text::words;
use supervisor_verify::Check;

/// A specification as a model returned it, not yet checked.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, expecting = "an object with the eight sections")]
pub(crate) struct SpecificationDraft {
    pub problem: String,
    pub criteria: Vec<CriterionDraft>,
    pub constraints: Vec<String>,
    pub out_of_scope: Vec<String>,
    pub approach: Vec<SpecifiedDecision>,
    pub risks: Vec<SpecifiedRisk>,
    pub requirement_map: Vec<RequirementMapping>,
    pub questions: Vec<OpenQuestion>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, expecting = "an object with `id`, `text` and `test`")]
pub(crate) struct CriterionDraft {
    pub id: String,
    pub text: String,
    pub test: CriterionTestDraft,
}

/// One of three kinds of test, distinguished by the fields that are set.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, expecting = "an object that holds one kind of test")]
pub(crate) struct CriterionTestDraft {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub command: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub metric: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub comparison: String,
    #[serde(skip_serializing_if = "Value::is_null")]
    pub value: Value,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub unit: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub given: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub when: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub then: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, expecting = "an object with `decision` and `rationale`")]
pub(crate) struct SpecifiedDecision {
    pub decision: String,
    pub rationale: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, expecting = "an object with `risk` and `mitigation`")]
pub(crate) struct SpecifiedRisk {
    pub risk: String,
    pub mitigation: String,
}

/// The targets of one requirement: criteria, an exclusion or a question, the last two counted from
/// 1. None if it is only background.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, expecting = "an object with `requirement` and where it went")]
pub(crate) struct RequirementMapping {
    pub requirement: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub out_of_scope: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<usize>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub background: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, expecting = "an object with `requirement` and `question`")]
pub(crate) struct OpenQuestion {
    /// The requirement it is about.
    pub requirement: String,
    pub question: String,
}

/// The two kinds of reply.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SpecificationAnswer {
    Draft(Box<SpecificationDraft>),
    /// Questions only: the requirements are too vague for criteria.
    Questions(Vec<OpenQuestion>),
}

/// Max entries in one list.
const MAX_ENTRIES: usize = 60;
/// Max bytes of one text. The problem statement may be longer.
const MAX_TEXT_BYTES: usize = 1_500;
const MAX_PROBLEM_BYTES: usize = 6_000;

/// Parses a reply, or returns the failed check.
pub(crate) fn read(reply: &Value) -> Result<SpecificationAnswer, Check> {
    let wrong = |why: String| Check::new(SHAPE, false, why);
    let draft: SpecificationDraft = serde_path_to_error::deserialize(without_nulls(reply.clone()))
        .map_err(|error| {
            let at = error.path().to_string();
            wrong(format!(
                "the answer does not have the shape asked for: at {}: {}",
                quoted(&at),
                words::cut_end(&words::plain(&error.inner().to_string()), 300)
            ))
        })?;
    let faults = draft.size_faults();
    if !faults.is_empty() {
        return Err(wrong(first_few(&faults)));
    }
    if draft.criteria.is_empty() && !draft.questions.is_empty() {
        return Ok(SpecificationAnswer::Questions(draft.questions));
    }
    Ok(SpecificationAnswer::Draft(Box::new(draft)))
}

impl SpecificationDraft {
    /// Every prose text with a description of its place. Commands are not included.
    pub(super) fn texts(&self) -> Vec<(String, &str)> {
        let mut all = vec![(String::from("the problem"), self.problem.as_str())];
        for (n, c) in self.criteria.iter().enumerate() {
            let place = c.place(n);
            let test = &c.test;
            let parts = [
                ("given", &test.given),
                ("when", &test.when),
                ("then", &test.then),
                ("metric", &test.metric),
                ("unit", &test.unit),
            ];
            all.push((place.clone(), &c.text));
            all.extend(parts.map(|(part, text)| (format!("`{part}` of {place}"), text.as_str())));
        }
        all.extend(
            self.constraints
                .iter()
                .enumerate()
                .map(|(n, t)| (format!("constraint {}", n + 1), t.as_str())),
        );
        all.extend(
            self.out_of_scope
                .iter()
                .enumerate()
                .map(|(n, t)| (format!("exclusion {}", n + 1), t.as_str())),
        );
        for (n, given) in self.approach.iter().enumerate() {
            all.push((format!("decision {}", n + 1), &given.decision));
            all.push((
                format!("the rationale of decision {}", n + 1),
                &given.rationale,
            ));
        }
        for (n, given) in self.risks.iter().enumerate() {
            all.push((format!("risk {}", n + 1), &given.risk));
            all.push((
                format!("the mitigation of risk {}", n + 1),
                &given.mitigation,
            ));
        }
        all.extend(
            self.questions
                .iter()
                .enumerate()
                .map(|(n, q)| (format!("question {}", n + 1), q.question.as_str())),
        );
        all.retain(|(_, text)| !text.trim().is_empty());
        all
    }

    fn size_faults(&self) -> Vec<String> {
        let lists = [
            ("criteria", self.criteria.len(), MAX_ENTRIES),
            ("constraints", self.constraints.len(), MAX_ENTRIES),
            ("out_of_scope", self.out_of_scope.len(), MAX_ENTRIES),
            ("approach", self.approach.len(), MAX_ENTRIES),
            ("risks", self.risks.len(), MAX_ENTRIES),
            (
                "requirement_map",
                self.requirement_map.len(),
                4 * MAX_ENTRIES,
            ),
            ("questions", self.questions.len(), MAX_ENTRIES),
        ];
        let long = lists.into_iter().filter(|(_, is, max)| is > max);
        let mut faults: Vec<String> = long
            .map(|(name, is, max)| format!("`{name}` has {is} entries; {max} is the most"))
            .collect();
        let commands = self.criteria.iter().enumerate().map(|(n, c)| {
            (
                format!("`command` of {}", c.place(n)),
                c.test.command.as_str(),
            )
        });
        for (place, text) in self.texts().into_iter().chain(commands) {
            let max = if place == "the problem" {
                MAX_PROBLEM_BYTES
            } else {
                MAX_TEXT_BYTES
            };
            if text.len() > max {
                faults.push(format!(
                    "{place} has {} bytes; {max} is the most",
                    text.len()
                ));
            }
        }
        faults
    }
}

impl CriterionDraft {
    /// Names the criterion by its id, or by its number if it has none.
    pub(super) fn place(&self, n: usize) -> String {
        let id = self.id.trim();
        if id.is_empty() {
            format!("criterion {}", n + 1)
        } else {
            format!("criterion {}", quoted(id))
        }
    }
}

/// Removes nulls, which models write for omitted fields.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(_, v)| !v.is_null());
            Value::Object(kept.map(|(name, v)| (name, without_nulls(v))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

/// The JSON schema of a draft.
pub(crate) fn schema() -> Value {
    let text = json!({"type": "string"});
    let list = |items: &Value| json!({"type": "array", "items": items});
    let object = |fields: &[(&str, Value)], required: &[&str]| {
        let fields: serde_json::Map<String, Value> = fields
            .iter()
            .map(|(n, v)| ((*n).to_owned(), v.clone()))
            .collect();
        json!({"type": "object", "properties": fields, "required": required, "additionalProperties": false})
    };
    let whole = |names: &[&str]| {
        object(
            &names.iter().map(|n| (*n, text.clone())).collect::<Vec<_>>(),
            names,
        )
    };
    let number = object(
        &[
            ("metric", text.clone()),
            (
                "comparison",
                json!({"type": "string", "enum": ["<", "<=", "=", ">=", ">"]}),
            ),
            ("value", json!({"type": "number"})),
            ("unit", text.clone()),
        ],
        &["metric", "comparison", "value", "unit"],
    );
    let test = json!({"anyOf": [whole(&["command"]), number, whole(&["given", "when", "then"])]});
    let criterion = object(
        &[("id", text.clone()), ("text", text.clone()), ("test", test)],
        &["id", "text", "test"],
    );
    let index = json!({"type": "integer", "minimum": 1});
    let mapping = object(
        &[
            ("requirement", text.clone()),
            ("criteria", list(&text)),
            ("out_of_scope", index.clone()),
            ("question", index),
            ("background", json!({"type": "boolean"})),
        ],
        &["requirement"],
    );
    object(
        &[
            ("problem", text.clone()),
            ("criteria", list(&criterion)),
            ("constraints", list(&text)),
            ("out_of_scope", list(&text)),
            ("approach", list(&whole(&["decision", "rationale"]))),
            ("risks", list(&whole(&["risk", "mitigation"]))),
            ("requirement_map", list(&mapping)),
            ("questions", list(&whole(&["requirement", "question"]))),
        ],
        &[
            "problem",
            "criteria",
            "constraints",
            "out_of_scope",
            "approach",
            "risks",
            "requirement_map",
            "questions",
        ],
    )
}
