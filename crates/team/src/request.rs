//! A coordinator's requests, as types or parsed from the text that wakes a supervisor.

use serde_json::Value;

/// A checkpoint by its name: `CHECKPOINT-001`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CheckpointId(String);

/// A checkpoint to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointRequest {
    pub task_id: CheckpointId,
    pub scope: Vec<String>,
    pub progress: String,
}

/// A request parsed from a wake text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WakeRequest {
    Checkpoint(CheckpointRequest),
    Shutdown { request_id: String },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    #[error("`task_id` is {0:?}; a checkpoint is named CHECKPOINT-001, with at least three digits")]
    TaskId(String),
    #[error(
        "the text asks for nothing known; a checkpoint is asked for with the lines `## Checkpoint Request`, `task_id: CHECKPOINT-001`, `scope: [DRAFT-001, DRAFT-002]`, `pipeline_progress: 3/10 tasks completed`"
    )]
    Unknown,
    #[error("the checkpoint request has no line `task_id: CHECKPOINT-001`")]
    NoTaskId,
}

impl CheckpointId {
    pub fn new(given: &str) -> Result<Self, RequestError> {
        let digits = given.strip_prefix("CHECKPOINT-").unwrap_or_default();
        let ok =
            digits.len() >= 3 && digits.len() <= 9 && digits.bytes().all(|b| b.is_ascii_digit());
        if ok {
            Ok(Self(given.to_owned()))
        } else {
            Err(RequestError::TaskId(given.chars().take(60).collect()))
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl WakeRequest {
    /// Parses a coordinator's text, in Markdown or JSON. Fields may be in any order.
    pub fn parse(text: &str) -> Result<Self, RequestError> {
        if let Ok(Value::Object(message)) = serde_json::from_str::<Value>(text.trim()) {
            return Self::of_json(&Value::Object(message));
        }
        if text.contains("shutdown_request") {
            let request_id = field(text, "request_id")
                .or_else(|| field(text, "requestId"))
                .unwrap_or_default();
            return Ok(Self::Shutdown { request_id });
        }
        let has_head = text.lines().any(|line| {
            line.trim_start_matches(['#', ' '])
                .eq_ignore_ascii_case("checkpoint request")
        });
        let task_id = field(text, "task_id");
        if !has_head && task_id.is_none() {
            return Err(RequestError::Unknown);
        }
        let task_id = CheckpointId::new(&task_id.ok_or(RequestError::NoTaskId)?)?;
        let scope = field(text, "scope").unwrap_or_default();
        let scope = scope
            .trim_matches(['[', ']'])
            .split(',')
            .map(|s| s.trim().trim_matches(['"', '\'']).to_owned());
        Ok(Self::Checkpoint(CheckpointRequest {
            task_id,
            scope: scope.filter(|s| !s.is_empty()).collect(),
            progress: field(text, "pipeline_progress").unwrap_or_default(),
        }))
    }

    fn of_json(message: &Value) -> Result<Self, RequestError> {
        let text = |key: &str| message.get(key).and_then(Value::as_str).map(str::to_owned);
        if text("type").as_deref() == Some("shutdown_request") {
            let request_id = text("request_id")
                .or_else(|| text("requestId"))
                .unwrap_or_default();
            return Ok(Self::Shutdown { request_id });
        }
        if let Some(inner) = message.get("message") {
            return match inner {
                Value::String(inner) => Self::parse(inner),
                inner => Self::of_json(inner),
            };
        }
        let task_id = CheckpointId::new(&text("task_id").ok_or(RequestError::Unknown)?)?;
        let scope = message
            .get("scope")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let scope = scope
            .iter()
            .filter_map(|s| s.as_str().map(str::to_owned))
            .collect();
        Ok(Self::Checkpoint(CheckpointRequest {
            task_id,
            scope,
            progress: text("pipeline_progress").unwrap_or_default(),
        }))
    }
}

/// The value of a line `name: value`.
fn field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find_map(|line| {
        line.trim()
            .trim_start_matches(['-', '*', ' '])
            .strip_prefix(name)?
            .trim_start()
            .strip_prefix(':')
    })?;
    Some(line.trim().trim_matches('`').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wake_text_is_parsed() {
        let text = "## Checkpoint Request\ntask_id: CHECKPOINT-001\nscope: [DRAFT-001, DRAFT-002]\npipeline_progress: 3/10 tasks completed\n";
        let Ok(WakeRequest::Checkpoint(request)) = WakeRequest::parse(text) else {
            panic!("not read")
        };
        assert_eq!(request.task_id.as_str(), "CHECKPOINT-001");
        assert_eq!(request.scope, ["DRAFT-001", "DRAFT-002"]);
        assert_eq!(request.progress, "3/10 tasks completed");
        let json = r#"{"to":"supervisor","message":{"type":"shutdown_request","requestId":"r-7"}}"#;
        assert_eq!(
            WakeRequest::parse(json),
            Ok(WakeRequest::Shutdown {
                request_id: "r-7".into()
            })
        );
    }

    #[test]
    fn invalid_requests_are_refused() {
        for (text, error) in [
            ("hello", RequestError::Unknown),
            ("", RequestError::Unknown),
            ("## Checkpoint Request\nscope: []", RequestError::NoTaskId),
            ("task_id: ../x", RequestError::TaskId("../x".into())),
            (
                "task_id: CHECKPOINT-1",
                RequestError::TaskId("CHECKPOINT-1".into()),
            ),
        ] {
            assert_eq!(WakeRequest::parse(text), Err(error), "{text:?}");
        }
    }
}
