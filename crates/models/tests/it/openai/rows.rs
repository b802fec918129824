//! What model servers were seen to answer, and what must come of it.

use serde_json::{Value, json};
use supervisor_models::{FailureBlame, FailureCause};

use supervisor_test_support::upstream::{Says, completion};

/// One way a server answers, named after the row it was seen in, and what must come of it.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) key: Key,
    pub(super) says: Says,
    pub(super) cause: FailureCause,
    pub(super) blame: FailureBlame,
    /// What the message must name.
    pub(super) names: &'static str,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Key {
    Sent,
    Unset,
}

pub(super) fn litellm(status: u16, kind: &str, message: &str) -> Says {
    litellm_with(status, kind, message, &[])
}

fn litellm_with(status: u16, kind: &str, message: &str, more: &[(&str, &str)]) -> Says {
    let mut headers = vec![
        ("x-litellm-call-id", "c1"),
        ("x-litellm-response-cost", "0"),
    ];
    headers.extend(more);
    error(status, &headers, kind, message)
}

pub(super) fn error(status: u16, headers: &[(&str, &str)], kind: &str, message: &str) -> Says {
    let body = json!({"error": {"message": message, "type": kind, "param": null, "code": status.to_string()}});
    Says::json(status, headers, &body)
}

fn gateway_ok(change: impl Fn(&mut Value)) -> Says {
    let mut body = completion(r#"{"n":1}"#);
    body["model"] = json!("local/m");
    change(&mut body);
    Says::json(
        200,
        &[
            ("x-litellm-call-id", "c1"),
            ("x-litellm-model-group", "local/m"),
        ],
        &body,
    )
}

/// The tables of LiteLLM's answers: three about keys, sixteen about errors; a row with several cases has a line for each.
pub(super) fn gateway_rows() -> Vec<Row> {
    use FailureBlame::{Endpoint, Model, Neither};
    use FailureCause::{Incapable, Infra, Quota, Setup};
    let row = |name, key, says, cause, blame, names| Row {
        name,
        key,
        says,
        cause,
        blame,
        names,
    };
    let sent = |name, says, cause, blame, names| row(name, Key::Sent, says, cause, blame, names);
    let internal = "internal_server_error";
    let invalid = "invalid_request_error";
    vec![
        row(
            "auth: no key",
            Key::Unset,
            error(
                401,
                &[],
                "auth_error",
                "Authentication Error, No api key passed in.",
            ),
            Setup,
            Neither,
            "$GATE_KEY",
        ),
        row(
            "auth: no key, prisma absent",
            Key::Unset,
            Says::text(
                500,
                &[("content-type", "text/plain")],
                "Internal Server Error",
            ),
            Setup,
            Neither,
            "$GATE_KEY",
        ),
        sent(
            "auth: wrong key, no database",
            error(400, &[], "no_db_connection", "No connected db."),
            Setup,
            Neither,
            "$GATE_KEY",
        ),
        sent(
            "unknown model name",
            litellm(
                400,
                invalid,
                "litellm.BadRequestError: There are no healthy deployments for this model. Fallbacks=[]",
            ),
            Setup,
            Neither,
            "models.\"local/m\".id",
        ),
        sent(
            "bad request JSON / no messages",
            litellm(400, invalid, "messages: field required"),
            Incapable,
            Neither,
            "local/m",
        ),
        sent(
            "upstream 400",
            litellm(
                400,
                invalid,
                "litellm.BadRequestError: OpenAIException - no",
            ),
            Incapable,
            Neither,
            "local/m",
        ),
        sent(
            "upstream 400, context too long: openai/",
            litellm(
                400,
                invalid,
                "litellm.ContextWindowExceededError: litellm.BadRequestError: 9000 > 4096",
            ),
            Incapable,
            Neither,
            "models.\"local/m\".context",
        ),
        sent(
            "upstream 400, context too long: ollama_chat/",
            litellm(
                400,
                invalid,
                "litellm.BadRequestError: Ollama_chatException - input exceeds the available context size",
            ),
            Incapable,
            Neither,
            "models.\"local/m\".context",
        ),
        sent(
            "\"does not support tools\"",
            litellm(
                400,
                "api_error",
                "litellm.APIError: registry/deepseek-r1 does not support tools",
            ),
            Incapable,
            Neither,
            "does not support tools",
        ),
        sent(
            "upstream 401",
            litellm(
                401,
                "authentication_error",
                "litellm.AuthenticationError: AuthenticationError: OpenAIException - bad",
            ),
            Setup,
            Neither,
            "litellm_params.api_key",
        ),
        sent(
            "upstream 404",
            litellm(
                404,
                invalid,
                "litellm.NotFoundError: NotFoundError: OpenAIException - nope",
            ),
            Setup,
            Neither,
            "models.\"local/m\".id",
        ),
        sent(
            "upstream 422",
            litellm(422, invalid, "litellm.UnprocessableEntityError"),
            Incapable,
            Neither,
            "local/m",
        ),
        sent(
            "upstream 429",
            litellm_with(
                429,
                "throttling_error",
                "litellm.RateLimitError",
                &[("llm_provider-retry-after", "7")],
            ),
            Quota,
            Endpoint,
            "another backend than `gate`",
        ),
        sent(
            "all deployments cooling down",
            litellm_with(
                429,
                "all_deployments_in_cooldown",
                "No deployments available",
                &[("retry-after", "5")],
            ),
            Quota,
            Model,
            "cooldown_time",
        ),
        sent(
            "upstream 500",
            litellm(500, internal, "litellm.InternalServerError: boom"),
            Infra,
            Model,
            "the server behind `gate`",
        ),
        sent(
            "upstream 502",
            litellm(502, internal, "litellm.BadGatewayError"),
            Infra,
            Model,
            "502",
        ),
        sent(
            "upstream 503",
            litellm(503, internal, "litellm.ServiceUnavailableError: busy"),
            Infra,
            Model,
            "503",
        ),
        sent(
            "upstream 503: llama.cpp",
            litellm(
                503,
                internal,
                "litellm.ServiceUnavailableError: Loading model",
            ),
            Infra,
            Model,
            "limits.local_s",
        ),
        sent(
            "refused, closed, truncated body",
            litellm(
                500,
                internal,
                "litellm.InternalServerError: InternalServerError: OpenAIException - Connection error.",
            ),
            Infra,
            Model,
            "Connection error",
        ),
        sent(
            "malformed / empty / HTML 200 body",
            litellm(
                500,
                internal,
                "litellm.InternalServerError: Expecting value: line 1 column 1 (char 0)",
            ),
            Infra,
            Model,
            "Expecting value",
        ),
        sent(
            "timeout",
            litellm(
                408,
                invalid,
                "litellm.Timeout: APITimeoutError - Request timed out.",
            ),
            Infra,
            Model,
            "`gate` gave up on `local/m` after",
        ),
        sent(
            "`choices: []` from upstream",
            gateway_ok(|b| {
                b["choices"] = json!([]);
                b["usage"] = json!({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0});
            }),
            Infra,
            Model,
            "no choice",
        ),
        sent(
            "content null",
            gateway_ok(|b| b["choices"][0]["message"]["content"] = Value::Null),
            Infra,
            Model,
            "empty",
        ),
        sent(
            "content \"\"",
            gateway_ok(|b| b["choices"][0]["message"]["content"] = json!("")),
            Infra,
            Model,
            "empty",
        ),
    ]
}

/// What servers without a gateway say, and what else was seen.
pub(super) fn other_rows() -> Vec<Row> {
    use FailureBlame::{Endpoint, Model, Neither};
    use FailureCause::{Incapable, Infra, Quota, Refused, Setup};
    let sent = |name, says, cause, blame, names| Row {
        name,
        key: Key::Sent,
        says,
        cause,
        blame,
        names,
    };
    let swap = |status, code: &str, message: &str, headers: &[(&str, &str)]| {
        let error = json!({"message": message, "type": "error", "param": null, "code": code});
        Says::json(
            status,
            headers,
            &json!({"src": "llama-swap", "error": error}),
        )
    };
    vec![
        sent(
            "llama.cpp: prompt too long",
            Says::json(
                400,
                &[],
                &json!({"error": {"code": 400, "type": "exceed_context_size_error",
            "message": "the request exceeds the available context size", "n_prompt_tokens": 9000, "n_ctx": 4096}}),
            ),
            Incapable,
            Neither,
            "context",
        ),
        sent(
            "llama.cpp: loading",
            Says::json(
                503,
                &[],
                &json!({"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}),
            ),
            Infra,
            Model,
            "loaded",
        ),
        sent(
            "llama-swap: wrong key",
            swap(401, "401", "unauthorized", &[]),
            Setup,
            Neither,
            "$GATE_KEY",
        ),
        sent(
            "llama-swap: unknown model",
            swap(404, "404", "no router for requested model", &[]),
            Setup,
            Neither,
            "models.\"local/m\".id",
        ),
        sent(
            "llama-swap: too many at once",
            swap(
                429,
                "concurrency_limit",
                "too many requests",
                &[("retry-after", "1")],
            ),
            Quota,
            Model,
            "concurrencyLimit",
        ),
        sent(
            "Ollama: unknown model",
            Says::json(404, &[], &json!({"error": "model 'm' not found"})),
            Setup,
            Neither,
            "models.\"local/m\".id",
        ),
        sent(
            "Ollama: queue full",
            Says::json(
                503,
                &[],
                &json!({"error": "server busy, please try again.  maximum pending requests exceeded"}),
            ),
            Infra,
            Model,
            "maximum pending",
        ),
        sent(
            "not an API: 404 page",
            Says::text(404, &[], "404 page not found"),
            Setup,
            Neither,
            "backends.gate.base_url",
        ),
        sent(
            "not an API: FastAPI 404",
            Says::json(404, &[], &json!({"detail": "Not Found"})),
            Setup,
            Neither,
            "backends.gate.base_url",
        ),
        sent(
            "not an API: web page",
            Says::text(200, &[], "<!DOCTYPE html><html></html>"),
            Setup,
            Neither,
            "web page",
        ),
        sent(
            "redirect",
            Says::text(302, &[("location", "http://me:pw@elsewhere/login?k=1")], ""),
            Setup,
            Neither,
            "http://elsewhere/login",
        ),
        sent(
            "payment",
            Says::json(
                402,
                &[],
                &json!({"error": {"message": "Insufficient credits"}}),
            ),
            Quota,
            Endpoint,
            "credit",
        ),
        sent(
            "gateway's own budget",
            litellm(
                400,
                "budget_exceeded",
                "Budget has been exceeded! Current cost: 2",
            ),
            Quota,
            Endpoint,
            "credit",
        ),
        sent(
            "forbidden",
            Says::json(403, &[], &json!({"error": {"message": "no access"}})),
            Setup,
            Neither,
            "$GATE_KEY",
        ),
        sent(
            "plain 500",
            Says::text(500, &[], "boom"),
            Infra,
            Model,
            "boom",
        ),
        sent(
            "error in a 200",
            Says::json(
                200,
                &[],
                &json!({"error": {"message": "upstream exploded"}}),
            ),
            Infra,
            Model,
            "exploded",
        ),
        sent(
            "body not JSON",
            Says::text(200, &[], "{\"choices\": ["),
            Infra,
            Model,
            "not JSON",
        ),
        sent(
            "a stream of events",
            Says::text(
                200,
                &[("content-type", "text/event-stream")],
                "data: {\"choices\":[{\"message\":{\"content\":\"{}\"}}]}\n\n",
            ),
            Infra,
            Model,
            "stream of events",
        ),
        sent(
            "a 503 without the gateway's headers",
            Says::text(503, &[], "no healthy upstream"),
            Infra,
            Model,
            "healthy",
        ),
        sent(
            "body empty",
            Says::text(200, &[], ""),
            Infra,
            Model,
            "empty",
        ),
        sent(
            "closed at once",
            Says::Raw(vec![]),
            Infra,
            Endpoint,
            "base_url",
        ),
        sent(
            "body shorter than said",
            Says::Raw(b"HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n{\"choices\"".to_vec()),
            Infra,
            Endpoint,
            "closed",
        ),
        sent(
            "not HTTP",
            Says::Raw(b"SSH-2.0-OpenSSH_9\r\n".to_vec()),
            Infra,
            Endpoint,
            "HTTP",
        ),
        sent(
            "cut at its length",
            gateway_ok(|b| b["choices"][0]["finish_reason"] = json!("length")),
            Incapable,
            Neither,
            "max_tokens",
        ),
        sent(
            "refusal field",
            gateway_ok(|b| b["choices"][0]["message"]["refusal"] = json!("I will not")),
            Refused,
            Neither,
            "I will not",
        ),
        sent(
            "content filter",
            gateway_ok(|b| b["choices"][0]["finish_reason"] = json!("content_filter")),
            Refused,
            Neither,
            "declined",
        ),
        sent(
            "thoughts only",
            gateway_ok(|b| {
                b["choices"][0]["message"] =
                    json!({"content": null, "reasoning_content": "hm {\"n\":1}"});
            }),
            Infra,
            Model,
            "reasoning",
        ),
        sent(
            "a tool call instead",
            gateway_ok(|b| {
                b["choices"][0]["message"] = json!({"content": null, "tool_calls": [{}]});
            }),
            Infra,
            Model,
            "tool",
        ),
        sent(
            "prose",
            Says::content("I would change line 3."),
            Infra,
            Model,
            "no JSON object",
        ),
        sent(
            "half an object",
            Says::content("{\"n\": [1, 2"),
            Infra,
            Model,
            "middle",
        ),
        sent(
            "prompt cut to the window",
            gateway_ok(|b| b["usage"]["prompt_tokens"] = json!(20)),
            Incapable,
            Neither,
            "OLLAMA_CONTEXT_LENGTH",
        ),
        sent(
            "gateway fell back",
            {
                let mut body = completion(r#"{"n":1}"#);
                body["model"] = json!("other");
                Says::json(
                    200,
                    &[
                        ("x-litellm-attempted-fallbacks", "1"),
                        ("x-litellm-model-group", "other"),
                    ],
                    &body,
                )
            },
            Setup,
            Neither,
            "`other` answered",
        ),
    ]
}
