//! Edits as data: what a model without tools proposes, and the server applies.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::workspace::Edit;

/// At most this many edits in one answer; more is no small step.
const MOST: usize = 50;

/// The schema of `edits`, for a reply's own schema.
pub fn schema() -> Value {
    json!({
        "type": "array",
        "maxItems": MOST,
        "items": {
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "relative to the project"},
                "action": {"type": "string", "enum": ["create", "replace", "delete", "change"]},
                "content": {"type": "string", "description": "create, replace: the whole file"},
                "search": {"type": "string", "description": "change: text that stands there exactly once"},
                "replace": {"type": "string", "description": "change: what stands there instead"}
            },
            "required": ["path", "action"],
            "additionalProperties": false
        }
    })
}

/// Why an answer holds no edits. Feedback for the next tier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoEdits {
    #[error("the answer has no `edits`")]
    Missing,
    #[error("the answer's `edits` cannot be read: {0}")]
    Shape(String),
    #[error("the answer has an empty list of edits, so nothing would change")]
    Empty,
    #[error("the answer has {0} edits; {MOST} is the most")]
    TooMany(usize),
    #[error("edit {n} (`{path}`): {why}")]
    Incomplete { n: usize, path: String, why: &'static str },
}

/// The edits of an answer, in the order they are to be made.
pub fn edits(answer: &Value) -> Result<Vec<Edit>, NoEdits> {
    let given = answer.get("edits").cloned().ok_or(NoEdits::Missing)?;
    let given: Vec<Given> = serde_json::from_value(given).map_err(|e| NoEdits::Shape(e.to_string()))?;
    match given.len() {
        0 => return Err(NoEdits::Empty),
        n if n > MOST => return Err(NoEdits::TooMany(n)),
        _ => {}
    }
    given.into_iter().enumerate().map(|(n, given)| given.edit(n + 1)).collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    path: String,
    action: Action,
    content: Option<String>,
    search: Option<String>,
    replace: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Create,
    Replace,
    Delete,
    Change,
}

impl Given {
    fn edit(self, n: usize) -> Result<Edit, NoEdits> {
        let Self { path, action, content, search, replace } = self;
        let lacks = |path: &str, why| NoEdits::Incomplete { n, path: path.to_owned(), why };
        Ok(match (action, content, search, replace) {
            (Action::Create, Some(content), None, None) => Edit::Create { path, contents: content.into_bytes() },
            (Action::Replace, Some(content), None, None) => Edit::Replace { path, contents: content.into_bytes() },
            (Action::Delete, None, None, None) => Edit::Delete { path },
            // `replace` with search text is a change by another name; small models mix them up.
            (Action::Change | Action::Replace, None, Some(search), Some(replace)) => {
                Edit::Change { path, search, replace }
            }
            (Action::Create | Action::Replace, ..) => {
                return Err(lacks(&path, "`create` and `replace` take `content`, the whole file"));
            }
            (Action::Delete, ..) => return Err(lacks(&path, "`delete` takes nothing but the path")),
            (Action::Change, ..) => return Err(lacks(&path, "`change` takes `search` and `replace`")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_action_becomes_its_edit() {
        let answer = json!({"edits": [
            {"path": "a", "action": "create", "content": "x"},
            {"path": "b", "action": "delete"},
            {"path": "c", "action": "change", "search": "1", "replace": "2"},
            {"path": "d", "action": "replace", "search": "1", "replace": "2"},
        ]});
        let made = edits(&answer).expect("four edits");
        assert_eq!(made[0], Edit::Create { path: "a".into(), contents: b"x".to_vec() });
        assert_eq!(made[1], Edit::Delete { path: "b".into() });
        assert!(matches!(&made[2..], [Edit::Change { .. }, Edit::Change { .. }]));
    }

    #[test]
    fn what_is_missing_is_said_by_number_and_path() {
        let answer = json!({"edits": [{"path": "a", "action": "change", "search": "1"}]});
        assert_eq!(
            edits(&answer).expect_err("incomplete").to_string(),
            "edit 1 (`a`): `change` takes `search` and `replace`"
        );
        assert_eq!(edits(&json!({"edits": []})), Err(NoEdits::Empty));
        assert_eq!(edits(&json!({"edit": 1})), Err(NoEdits::Missing));
        assert_eq!(
            edits(&json!({"edits": [{"path": "a"}]})).expect_err("incomplete").to_string(),
            "the answer's `edits` cannot be read: missing field `action`"
        );
    }
}
