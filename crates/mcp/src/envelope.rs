//! Turns one line into a message for the SDK, or into an error reply. A request is always answered
//! under its own id, a notification never.

use rmcp::model::{
    CallToolRequestParams, CancelTaskParams, ClientJsonRpcMessage, ClientNotification,
    ClientRequest, CompleteRequestParams, GetPromptRequestParams, GetTaskParams,
    InitializeRequestParams, ListToolsRequest, PaginatedRequestParams, ProtocolVersion,
    ReadResourceRequestParams, UpdateTaskParams,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::lines::{self, InputLine, MAX_LINE};

pub(super) const PARSE_ERROR: i64 = -32700;
pub(super) const INVALID_REQUEST: i64 = -32600;
pub(super) const INVALID_PARAMS: i64 = -32602;

/// The result of reading one line.
#[derive(Debug)]
pub(super) enum Incoming {
    Request(Box<ClientJsonRpcMessage>),
    Notification(Box<ClientJsonRpcMessage>),
    /// The client's answer to a question of ours. The SDK ignores one that it did not ask.
    Answer(Box<ClientJsonRpcMessage>),
    Refused(Vec<TransportRefusal>),
    /// Nothing to do and nothing to report: an empty line, a stray response, a broken notification.
    Ignored,
}

/// An error reply from the transport itself.
#[derive(Debug)]
pub(super) struct TransportRefusal {
    /// As the client wrote it; null if there was none.
    id: Value,
    code: i64,
    message: String,
}

impl TransportRefusal {
    fn new(id: Option<Value>, code: i64, message: impl Into<String>) -> Self {
        Self {
            id: id.unwrap_or(Value::Null),
            code,
            message: message.into(),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        json!({"jsonrpc": "2.0", "id": self.id, "error": {"code": self.code, "message": self.message}})
    }
}

impl From<TransportRefusal> for Incoming {
    fn from(refusal: TransportRefusal) -> Self {
        Self::Refused(vec![refusal])
    }
}

pub(super) fn read(line: InputLine) -> Incoming {
    let bytes = match line {
        InputLine::Whole(bytes) => bytes,
        InputLine::TooLong { id } => {
            let limit = MAX_LINE / (1024 * 1024);
            return TransportRefusal::new(
                id,
                INVALID_REQUEST,
                format!("the message is longer than {limit} MiB; send less"),
            )
            .into();
        }
    };
    let text = bytes
        .strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(&bytes)
        .trim_ascii();
    if text.is_empty() {
        return Incoming::Ignored;
    }
    match serde_json::from_slice(text) {
        Ok(Value::Object(object)) => read_object(object),
        Ok(Value::Array(batch)) => refuse_batch(&batch),
        Ok(other) => {
            let message = format!("a message is a JSON object, not {}", kind_of(&other));
            TransportRefusal::new(None, INVALID_REQUEST, message).into()
        }
        Err(error) => {
            // Exceeding the recursion limit is the one syntax error of a line that may be valid
            // JSON, so its sender waits for a reply.
            let id = error
                .to_string()
                .contains("recursion limit")
                .then(|| lines::find_id(text))
                .flatten();
            TransportRefusal::new(id, PARSE_ERROR, format!("the line is not JSON: {error}")).into()
        }
    }
}

fn read_object(mut object: Map<String, Value>) -> Incoming {
    let id = object.get("id").cloned();
    let Some(method) = object.get("method") else {
        if object.contains_key("result") || object.contains_key("error") {
            return read_answer(object);
        }
        return TransportRefusal::new(
            matchable_id(id),
            INVALID_REQUEST,
            "the message has no `method`",
        )
        .into();
    };
    let Some(method) = method.as_str().map(str::to_owned) else {
        return TransportRefusal::new(
            matchable_id(id),
            INVALID_REQUEST,
            "`method` must be a string",
        )
        .into();
    };
    let Some(id) = id else {
        return read_notification(object);
    };

    let refuse = |code, message: String| {
        Incoming::from(TransportRefusal::new(
            matchable_id(Some(id.clone())),
            code,
            message,
        ))
    };
    if object.get("jsonrpc") != Some(&Value::from("2.0")) {
        return refuse(INVALID_REQUEST, String::from("`jsonrpc` must be \"2.0\""));
    }
    if object.contains_key("result") || object.contains_key("error") {
        return refuse(
            INVALID_REQUEST,
            String::from("a request has neither `result` nor `error`"),
        );
    }
    match object.get("params") {
        Some(Value::Null) => {
            object.remove("params");
        }
        None | Some(Value::Object(_)) => {}
        Some(other) => {
            return refuse(
                INVALID_PARAMS,
                format!("`params` must be an object, not {}", kind_of(other)),
            );
        }
    }
    if method == "initialize" {
        complete_initialize(&mut object);
    }
    // Kept because the SDK silently drops invalid params of this method.
    let list_params = (method == "tools/list")
        .then(|| object.get("params").cloned())
        .flatten();
    match serde_json::from_value::<ClientJsonRpcMessage>(Value::Object(object)) {
        Ok(ClientJsonRpcMessage::Request(request)) => {
            let error = match &request.request {
                // The SDK turns a request it cannot parse into a custom request.
                ClientRequest::CustomRequest(custom) => {
                    params_error(&method, custom.params.clone())
                }
                ClientRequest::ListToolsRequest(ListToolsRequest { params: None, .. }) => {
                    params_error(&method, list_params)
                }
                _ => None,
            };
            match error {
                Some(error) => refuse(INVALID_PARAMS, format!("`{method}`: {error}")),
                None => Incoming::Request(Box::new(ClientJsonRpcMessage::Request(request))),
            }
        }
        Ok(_) | Err(_) if !is_id(&id) => refuse(
            INVALID_REQUEST,
            String::from("`id` must be a string or an integer"),
        ),
        Ok(_) => refuse(
            INVALID_REQUEST,
            String::from("the message is not a request"),
        ),
        Err(error) => refuse(
            INVALID_REQUEST,
            format!("the message is not a request: {error}"),
        ),
    }
}

/// Smoke tests send empty params.
fn complete_initialize(object: &mut Map<String, Value>) {
    if let Some(Value::Object(params)) = object.get_mut("params")
        && params.is_empty()
    {
        object.insert("params".into(), oldest_client());
    }
}

/// The params of `initialize` that stand for a client that says nothing about itself.
pub(super) fn oldest_client() -> Value {
    json!({"protocolVersion": ProtocolVersion::V_2024_11_05, "capabilities": {}, "clientInfo": {"name": "unknown", "version": "0"}})
}

fn read_answer(object: Map<String, Value>) -> Incoming {
    match serde_json::from_value::<ClientJsonRpcMessage>(Value::Object(object)) {
        Ok(answer @ (ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Error(_))) => {
            Incoming::Answer(Box::new(answer))
        }
        _ => Incoming::Ignored,
    }
}

fn read_notification(object: Map<String, Value>) -> Incoming {
    let method = object.get("method").cloned();
    match serde_json::from_value::<ClientJsonRpcMessage>(Value::Object(object)) {
        Ok(ClientJsonRpcMessage::Notification(notification)) => {
            let custom = matches!(
                notification.notification,
                ClientNotification::CustomNotification(_)
            );
            if custom
                && method
                    .as_ref()
                    .and_then(Value::as_str)
                    .is_some_and(|m| m.starts_with("notifications/"))
            {
                return Incoming::Ignored; // unknown, or known and malformed
            }
            Incoming::Notification(Box::new(ClientJsonRpcMessage::Notification(notification)))
        }
        _ => Incoming::Ignored,
    }
}

/// Refuses every request of a batch under its own id, so that the client waits for none of them.
fn refuse_batch(batch: &[Value]) -> Incoming {
    const MESSAGE: &str = "batches are not supported; send one message per line";
    let is_request =
        |entry: &&Value| entry.get("method").is_some() && entry.get("id").is_some_and(is_id);
    let refusals: Vec<_> = batch
        .iter()
        .filter(is_request)
        .map(|entry| TransportRefusal::new(entry.get("id").cloned(), INVALID_REQUEST, MESSAGE))
        .collect();
    if refusals.is_empty() {
        return TransportRefusal::new(None, INVALID_REQUEST, MESSAGE).into();
    }
    Incoming::Refused(refusals)
}

/// Why `params` do not fit a method that is served here; `None` for any other method.
fn params_error(method: &str, params: Option<Value>) -> Option<String> {
    fn check<T: DeserializeOwned>(params: Value) -> Option<String> {
        let error = serde_path_to_error::deserialize::<_, T>(params).err()?;
        let path = error.path().to_string();
        Some(if path == "." {
            error.inner().to_string()
        } else {
            format!("`{path}`: {}", error.inner())
        })
    }
    let params = params.unwrap_or_else(|| json!({}));
    let fallback = || Some(String::from("the params do not fit the method"));
    match method {
        "initialize" => check::<InitializeRequestParams>(params).or_else(fallback),
        "tools/call" => check::<CallToolRequestParams>(params).or_else(fallback),
        "tools/list" => check::<PaginatedRequestParams>(params),
        "resources/list" | "resources/templates/list" | "prompts/list" => {
            check::<PaginatedRequestParams>(params)
        }
        "resources/read" => check::<ReadResourceRequestParams>(params).or_else(fallback),
        "prompts/get" => check::<GetPromptRequestParams>(params).or_else(fallback),
        "completion/complete" => check::<CompleteRequestParams>(params).or_else(fallback),
        "tasks/get" => check::<GetTaskParams>(params).or_else(fallback),
        "tasks/update" => check::<UpdateTaskParams>(params).or_else(fallback),
        "tasks/cancel" => check::<CancelTaskParams>(params).or_else(fallback),
        "ping" | "server/discover" => fallback(),
        _ => None,
    }
}

fn is_id(id: &Value) -> bool {
    match id {
        Value::String(_) => true,
        Value::Number(number) => {
            number.is_i64()
                || number
                    .as_f64()
                    .is_some_and(|f| f.fract() == 0.0 && f.abs() < 9e15)
        }
        _ => false,
    }
}

/// An id that a client can match: any string or number, even one we refuse.
fn matchable_id(id: Option<Value>) -> Option<Value> {
    id.filter(|id| matches!(id, Value::String(_) | Value::Number(_)))
}

pub(super) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str) -> Vec<(Value, i64, String)> {
        match read(InputLine::Whole(line.as_bytes().to_vec())) {
            Incoming::Refused(all) => all.into_iter().map(|r| (r.id, r.code, r.message)).collect(),
            other => panic!("{line} gave {other:?}"),
        }
    }

    #[test]
    fn invalid_request_is_refused_under_its_id() {
        let cases: &[(&str, Value, i64, &str)] = &[
            ("{", Value::Null, PARSE_ERROR, "not JSON"),
            ("5", Value::Null, INVALID_REQUEST, "not a number"),
            ("{}", Value::Null, INVALID_REQUEST, "no `method`"),
            (r#"{"id":4}"#, 4.into(), INVALID_REQUEST, "no `method`"),
            (
                r#"{"jsonrpc":"2.0","id":4,"method":7}"#,
                4.into(),
                INVALID_REQUEST,
                "`method` must",
            ),
            (
                r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#,
                "a".into(),
                INVALID_REQUEST,
                "`jsonrpc`",
            ),
            (
                r#"{"id":4,"method":"ping"}"#,
                4.into(),
                INVALID_REQUEST,
                "`jsonrpc`",
            ),
            (
                r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
                Value::Null,
                INVALID_REQUEST,
                "`id` must",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
                1.5.into(),
                INVALID_REQUEST,
                "`id` must",
            ),
            (
                r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#,
                Value::Null,
                INVALID_REQUEST,
                "`id` must",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#,
                1.into(),
                INVALID_REQUEST,
                "neither",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[1]}"#,
                1.into(),
                INVALID_PARAMS,
                "an array",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#,
                1.into(),
                INVALID_PARAMS,
                "`name`",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5}}"#,
                1.into(),
                INVALID_PARAMS,
                "`name`",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":[1]}}"#,
                1.into(),
                INVALID_PARAMS,
                "`arguments`",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":5}}"#,
                1.into(),
                INVALID_PARAMS,
                "`cursor`",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}"#,
                1.into(),
                INVALID_PARAMS,
                "`protocolVersion`",
            ),
            ("[]", Value::Null, INVALID_REQUEST, "batches"),
        ];
        for (line, id, code, words) in cases {
            let all = refused(line);
            let [(got_id, got_code, message)] = all.as_slice() else {
                panic!("{line}: {all:?}")
            };
            assert_eq!((got_id, got_code), (id, code), "{line}: {message}");
            assert!(message.contains(words), "{line}: {message}");
        }
    }

    #[test]
    fn each_request_of_a_batch_is_refused() {
        let all = refused(
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"method":"n"},{"id":"b","method":"ping"}]"#,
        );
        assert_eq!(
            all.iter().map(|(id, ..)| id.clone()).collect::<Vec<_>>(),
            [Value::from(1), Value::from("b")]
        );
    }

    #[test]
    fn too_deep_nesting_is_answered_under_its_id() {
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":6,"method":"x","params":{{"a":{}}}}}"#,
            "[".repeat(500) + &"]".repeat(500)
        );
        let all = refused(&line);
        assert_eq!((&all[0].0, all[0].1), (&Value::from(6), PARSE_ERROR));
    }

    #[test]
    fn unawaited_messages_are_not_answered() {
        let lines = [
            "",
            "  \r",
            r#"{"jsonrpc":"2.0","id":1,"error":7}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":7}"#,
            r#"{"method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/who_knows"}"#,
        ];
        for line in lines {
            let incoming = read(InputLine::Whole(line.as_bytes().to_vec()));
            assert!(
                matches!(incoming, Incoming::Ignored),
                "{line}: {incoming:?}"
            );
        }
    }

    #[test]
    fn answers_pass() {
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}"#,
        ] {
            let incoming = read(InputLine::Whole(line.as_bytes().to_vec()));
            assert!(
                matches!(incoming, Incoming::Answer(_)),
                "{line}: {incoming:?}"
            );
        }
    }

    #[test]
    fn odd_but_valid_requests_pass() {
        let lines = [
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#,
            "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r",
            r#"{"jsonrpc":"2.0","id":-5,"method":"tools/list","params":null}"#,
            r#"{"jsonrpc":"2.0","id":9007199254740993,"method":"no/such"}"#,
            r#"{"jsonrpc":"2.0","id":"","method":"tools/call","params":{"name":"x","arguments":null}}"#,
        ];
        for line in lines {
            let incoming = read(InputLine::Whole(line.as_bytes().to_vec()));
            assert!(
                matches!(incoming, Incoming::Request(_)),
                "{line}: {incoming:?}"
            );
        }
    }
}
