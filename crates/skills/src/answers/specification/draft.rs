//! The shape in which a specification is handed in. Lenient about what is left out, so that the check which looks for it
//! can say so in its own words; strict about unknown fields, which are mostly misspelt names.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{quoted, some};
use supervisor_text::words;
use supervisor_verify::Check;

/// A specification as a model hands it in; nothing about it is known yet.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(
    default,
    deny_unknown_fields,
    expecting = "an object with the eight sections"
)]
pub struct SpecificationDraft {
    pub problem: String,
    pub criteria: Vec<GivenCriterion>,
    pub constraints: Vec<String>,
    pub out_of_scope: Vec<String>,
    pub approach: Vec<SpecifiedDecision>,
    pub risks: Vec<SpecifiedRisk>,
    pub requirement_map: Vec<RequirementMapping>,
    pub questions: Vec<OpenQuestion>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(
    default,
    deny_unknown_fields,
    expecting = "an object with `id`, `text` and `test`"
)]
pub struct GivenCriterion {
    pub id: String,
    pub text: String,
    pub test: GivenTest,
}

/// One of three kinds, told apart by which fields are there.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(
    default,
    deny_unknown_fields,
    expecting = "an object that holds one kind of test"
)]
pub struct GivenTest {
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
#[serde(
    default,
    deny_unknown_fields,
    expecting = "an object with `decision` and `rationale`"
)]
pub struct SpecifiedDecision {
    pub decision: String,
    pub rationale: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(
    default,
    deny_unknown_fields,
    expecting = "an object with `risk` and `mitigation`"
)]
pub struct SpecifiedRisk {
    pub risk: String,
    pub mitigation: String,
}

/// Where one requirement went: to criteria, to an exclusion, or to a question; the last two counted from 1.
/// Or nowhere, because it only tells how it came about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(
    default,
    deny_unknown_fields,
    expecting = "an object with `requirement` and where it went"
)]
pub struct RequirementMapping {
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
#[serde(
    default,
    deny_unknown_fields,
    expecting = "an object with `requirement` and `question`"
)]
pub struct OpenQuestion {
    /// The requirement it is about.
    pub requirement: String,
    pub question: String,
}

/// What a reply is.
#[derive(Debug, Clone, PartialEq)]
pub enum SpecificationAnswer {
    Draft(Box<SpecificationDraft>),
    /// No criteria: too much is open to write any.
    Questions(Vec<OpenQuestion>),
}

/// More entries in one list are no specification that anybody reads.
const MOST_ENTRIES: usize = 60;
/// Bytes of one text. The problem may be told at more length.
const LONGEST: usize = 1_500;
const LONGEST_PROBLEM: usize = 6_000;

/// The reply in its shape, or the check that it has none.
pub fn read(reply: &Value) -> Result<SpecificationAnswer, Check> {
    let wrong = |why: String| Check::new("shape", false, why);
    let draft: SpecificationDraft = serde_path_to_error::deserialize(without_nulls(reply.clone()))
        .map_err(|error| {
            let at = error.path().to_string();
            wrong(format!(
                "the answer does not have the shape asked for: at {}: {}",
                quoted(&at),
                words::cut_end(&words::plain(&error.inner().to_string()), 300)
            ))
        })?;
    let faults = draft.too_much();
    if !faults.is_empty() {
        return Err(wrong(some(&faults)));
    }
    if draft.criteria.is_empty() && !draft.questions.is_empty() {
        return Ok(SpecificationAnswer::Questions(draft.questions));
    }
    Ok(SpecificationAnswer::Draft(Box::new(draft)))
}

impl SpecificationDraft {
    /// Every text with its place in words; commands are no prose, so they are not among them.
    pub(super) fn texts(&self) -> Vec<(String, &str)> {
        let mut all = vec![(String::from("the problem"), self.problem.as_str())];
        for (n, c) in self.criteria.iter().enumerate() {
            let place = c.place(n);
            let test = &c.test;
            let parts = [
                ("given", &test.given),
                ("when", &test.when),
                ("then", &test.then),
            ];
            all.push((place.clone(), &c.text));
            all.extend(parts.map(|(part, text)| (format!("`{part}` of {place}"), text.as_str())));
            let parts = [("metric", &test.metric), ("unit", &test.unit)];
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

    fn too_much(&self) -> Vec<String> {
        let lists = [
            ("criteria", self.criteria.len(), MOST_ENTRIES),
            ("constraints", self.constraints.len(), MOST_ENTRIES),
            ("out_of_scope", self.out_of_scope.len(), MOST_ENTRIES),
            ("approach", self.approach.len(), MOST_ENTRIES),
            ("risks", self.risks.len(), MOST_ENTRIES),
            (
                "requirement_map",
                self.requirement_map.len(),
                4 * MOST_ENTRIES,
            ),
            ("questions", self.questions.len(), MOST_ENTRIES),
        ];
        let long = lists.into_iter().filter(|(_, is, most)| is > most);
        let mut faults: Vec<String> = long
            .map(|(name, is, most)| format!("`{name}` has {is} entries; {most} is the most"))
            .collect();
        let commands = self.criteria.iter().enumerate().map(|(n, c)| {
            (
                format!("`command` of {}", c.place(n)),
                c.test.command.as_str(),
            )
        });
        for (place, text) in self.texts().into_iter().chain(commands) {
            let most = if place == "the problem" {
                LONGEST_PROBLEM
            } else {
                LONGEST
            };
            if text.len() > most {
                faults.push(format!(
                    "{place} has {} bytes; {most} is the most",
                    text.len()
                ));
            }
        }
        faults
    }
}

impl GivenCriterion {
    /// `AC-1`, or its number where it has no name.
    pub(super) fn place(&self, n: usize) -> String {
        let id = self.id.trim();
        if id.is_empty() {
            format!("criterion {}", n + 1)
        } else {
            format!("criterion {}", quoted(id))
        }
    }
}

/// Models write `null` for what they leave out.
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

/// The shape as a JSON schema.
pub fn schema() -> Value {
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
