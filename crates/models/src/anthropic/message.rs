//! Collects one message, streamed or whole, and turns it into a reply.

use serde_json::Value;

use crate::extract::{self, ExtractError};
use crate::remote_text::sanitize;
use crate::server::{Server, ServerResponse, is_prompt_truncated, refusal};
use crate::{Ask, AskError, AskResult, Failure, Reply, Usage};
use supervisor_settings::{Model, Tier};

/// A message as far as it has arrived.
#[derive(Debug, Default)]
pub(super) struct Message {
    /// Bytes that are not a complete line yet; all of them, if the answer is not a stream.
    pending: Vec<u8>,
    /// The first byte that is not white space.
    first: Option<u8>,
    /// True once an event was read.
    is_stream: bool,
    model: String,
    text: String,
    has_thoughts: bool,
    stop_reason: Option<String>,
    stop_detail: String,
    tokens: Tokens,
    has_ended: bool,
    error: Option<Value>,
}

/// What the server counted. Later counts replace earlier ones.
#[derive(Debug, Default, Clone, Copy)]
struct Tokens {
    input: Option<u64>,
    cache_written: Option<u64>,
    cache_read: Option<u64>,
    output: Option<u64>,
}

impl Message {
    /// True if nothing more is expected.
    pub(super) fn is_finished(&self) -> bool {
        self.has_ended || self.error.is_some()
    }

    /// Reads the next bytes of the body. Returns true if the model has just begun to think.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> bool {
        let had_thoughts = self.has_thoughts;
        // What came before has no line end, or was not searched for one.
        let searched = if self.is_stream {
            self.pending.len()
        } else {
            0
        };
        self.pending.extend_from_slice(bytes);
        let is_text = |byte: &&u8| !byte.is_ascii_whitespace();
        self.first = self.first.or_else(|| bytes.iter().find(is_text).copied());
        if !self.is_stream && matches!(self.first, None | Some(b'{' | b'<')) {
            return false;
        }
        self.is_stream = true;
        let new = self.pending[searched..].iter();
        if let Some(end) = new
            .rev()
            .position(|b| *b == b'\n')
            .map(|n| self.pending.len() - 1 - n)
        {
            let rest = self.pending.split_off(end + 1);
            let lines = std::mem::replace(&mut self.pending, rest);
            lines.split(|b| *b == b'\n').for_each(|l| self.on_line(l));
        }
        self.has_thoughts && !had_thoughts
    }

    /// The type of an event is also in its data, so the `event:` lines are not needed.
    fn on_line(&mut self, line: &[u8]) {
        let Some(data) = line.strip_prefix(b"data:") else {
            return;
        };
        let Ok(event) = serde_json::from_slice::<Value>(data.trim_ascii()) else {
            return;
        };
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => self.start(&event["message"]),
            "content_block_start" => self.add_block(&event["content_block"]),
            "content_block_delta" => self.add_block(&event["delta"]),
            "message_delta" => {
                self.stop(&event["delta"]);
                self.tokens.update(&event["usage"]);
            }
            "message_stop" => self.has_ended = true,
            // Some servers send an error without a type.
            "error" | "" if !event["error"].is_null() => self.error = Some(event),
            _ => {}
        }
    }

    fn start(&mut self, message: &Value) {
        self.model = message["model"].as_str().unwrap_or_default().to_owned();
        self.tokens.update(&message["usage"]);
        for block in message["content"].as_array().into_iter().flatten() {
            self.add_block(block);
        }
        self.stop(message);
    }

    fn add_block(&mut self, block: &Value) {
        match block["type"].as_str().unwrap_or_default() {
            "text" | "text_delta" => self.text += block["text"].as_str().unwrap_or_default(),
            "thinking" | "thinking_delta" | "redacted_thinking" => self.has_thoughts = true,
            _ => {}
        }
    }

    fn stop(&mut self, end: &Value) {
        if let Some(reason) = end["stop_reason"].as_str() {
            self.stop_reason = Some(reason.to_owned());
        }
        let detail = &end["stop_details"];
        if !detail.is_null() {
            self.stop_detail = detail["explanation"]
                .as_str()
                .map_or_else(|| detail.to_string(), str::to_owned);
        }
    }

    pub(super) fn into_reply(
        mut self,
        server: &Server,
        mut response: ServerResponse,
        ask: &Ask,
        tier: &Tier,
        sent: usize,
    ) -> AskResult {
        let model = tier.name.0.clone();
        let malformed = |why: String| AskError::Malformed {
            model: model.clone(),
            why,
        };
        if response.truncated {
            let why = malformed(ExtractError::TooLong.to_string());
            return Err(Failure::with_unknown_cost(why));
        }
        if self.is_stream {
            let last = std::mem::take(&mut self.pending);
            self.on_line(&last);
        } else {
            match serde_json::from_slice::<Value>(&self.pending) {
                Ok(body) if body["error"].is_null() => self.start(&body),
                Ok(body) => self.error = Some(body),
                Err(_) => return Err(server.not_json(&self.pending, malformed)),
            }
        }
        if let Some(error) = self.error.take() {
            response.status = status_of(&error);
            response.body = error.to_string().into_bytes();
            let why = refusal::error(server, &response, ask, tier);
            return Err(Failure::with_unknown_cost(why).with_answer(server.keep(&self.text)));
        }
        let (usage, mut notes) = self.tokens.usage(&response, &tier.model);
        let fail = |why: AskError| {
            Err(Box::new(Failure {
                why,
                usage,
                notes: Vec::new(),
                answer: server.keep(&self.text),
            }))
        };
        if let Some(why) = self.failure(server, tier, malformed) {
            return fail(why);
        }
        if let Some(seen_tokens) = usage.tokens_in.filter(|n| is_prompt_truncated(sent, *n)) {
            return fail(AskError::PromptCut {
                model,
                sent_bytes: sent,
                seen_tokens,
            });
        }
        let body = if ask.wants_text() {
            Value::String(self.text.clone())
        } else {
            match extract::object(&self.text, &extract::required(&ask.schema)) {
                Ok(object) => Value::Object(object),
                Err(ExtractError::Empty) if self.has_thoughts => {
                    return fail(malformed(ExtractError::OnlyThoughts.to_string()));
                }
                Err(why) => return fail(malformed(why.to_string())),
            }
        };
        let mut model_answered = sanitize(&self.model, &server.redactor);
        if model_answered.is_empty() {
            model_answered.clone_from(&tier.model.id);
        } else if !model_answered.contains(&tier.model.id) {
            notes.push(format!("the server calls the model `{model_answered}`"));
        }
        Ok(Reply {
            body,
            raw: server.keep(&self.text),
            model_answered,
            usage,
            notes,
        })
    }

    /// Why the message is not a whole answer. Only known reasons to stop count as its end.
    fn failure(
        &self,
        server: &Server,
        tier: &Tier,
        malformed: impl Fn(String) -> AskError,
    ) -> Option<AskError> {
        let model = tier.name.0.clone();
        let Some(reason) = self.stop_reason.as_deref() else {
            return Some(malformed("its message has no end".into()));
        };
        match reason {
            "end_turn" | "stop_sequence" => None,
            "max_tokens" => Some(AskError::AnswerCut { model }),
            "model_context_window_exceeded" => Some(AskError::ContextTooLong {
                model,
                detail: "its answer reached the end of the window".into(),
            }),
            "refusal" => Some(AskError::Declined {
                model,
                detail: sanitize(&self.stop_detail, &server.redactor),
            }),
            "tool_use" => Some(malformed("it calls a tool where none was offered".into())),
            other => Some(malformed(format!(
                "it stopped for a reason that is not known here: `{}`",
                sanitize(other, &server.redactor)
            ))),
        }
    }
}

/// The status that Anthropic's documentation gives to an error; an error in a stream has none.
fn status_of(error: &Value) -> u16 {
    let error = &error["error"];
    match error["type"].as_str().unwrap_or_default() {
        "invalid_request_error" => 400,
        "authentication_error" => 401,
        "billing_error" => 402,
        "permission_error" => 403,
        "not_found_error" => 404,
        "request_too_large" => 413,
        "rate_limit_error" => 429,
        "timeout_error" => 504,
        "overloaded_error" => 529,
        // llama.cpp puts the status into the body.
        _ => error["code"]
            .as_u64()
            .and_then(|code| u16::try_from(code).ok())
            .filter(|code| (400..600).contains(code))
            .unwrap_or(500),
    }
}

impl Tokens {
    fn update(&mut self, usage: &Value) {
        let set = |field: &mut Option<u64>, name: &str| {
            if let Some(count) = usage[name].as_u64() {
                *field = Some(count);
            }
        };
        set(&mut self.input, "input_tokens");
        set(&mut self.cache_written, "cache_creation_input_tokens");
        set(&mut self.cache_read, "cache_read_input_tokens");
        set(&mut self.output, "output_tokens");
    }

    /// Tokens and cost, with a note if the prompt cache was used. Writing to the cache costs a quarter
    /// more than plain input, reading from it a tenth. Zero tokens mean that the server did not count.
    fn usage(&self, response: &ServerResponse, model: &Model) -> (Usage, Vec<String>) {
        let count = |tokens: Option<u64>| tokens.unwrap_or_default();
        let (plain, written, read) = (
            count(self.input),
            count(self.cache_written),
            count(self.cache_read),
        );
        let total = plain.saturating_add(written).saturating_add(read);
        let total = Some(total).filter(|total| *total > 0);
        let counted = Usage {
            tokens_in: total,
            tokens_out: total.and(self.output),
            cost_usd: None,
        }
        .plausible();
        let priced = || {
            let (price_in, price_out) = model.price_in.zip(model.price_out)?;
            counted.tokens_in?;
            let weighted = plain as f64 + 1.25 * written as f64 + 0.1 * read as f64;
            Some((weighted * price_in + counted.tokens_out? as f64 * price_out) / 1e6)
        };
        let cost_usd = response.gateway_cost().or_else(priced);
        let mut notes = Vec::new();
        if counted.tokens_in.is_some() && (written > 0 || read > 0) {
            notes.push(format!(
                "prompt cache: {read} tokens read, {written} written"
            ));
        }
        (
            Usage {
                cost_usd,
                ..counted
            }
            .plausible(),
            notes,
        )
    }
}
