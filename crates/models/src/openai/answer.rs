//! Reads a response with status 200. It may contain no choice, no text, another model's answer, a
//! truncated answer, or an answer to a truncated prompt.

use serde_json::Value;

use crate::extract;
use crate::extract::ExtractError;
use crate::remote_text::sanitize;
use crate::server::{Server, ServerResponse, is_prompt_truncated, refusal};
use crate::{Ask, AskError, AskResult, Failure, Reply, Usage};
use supervisor_settings::{Model, Tier};
use supervisor_text::words;

/// Reads every answer of a response; a failure of the whole response is an error. The usage of the
/// request is that of the first answer, and the others count as free.
pub(super) fn read_all(
    server: &Server,
    mut response: ServerResponse,
    ask: &Ask,
    tier: &Tier,
    sent: usize,
) -> Result<Vec<AskResult>, Box<Failure>> {
    let model = tier.name.0.clone();
    let malformed = |why: String| AskError::Malformed {
        model: model.clone(),
        why,
    };
    if response.truncated {
        return Err(Failure::with_unknown_cost(malformed(
            ExtractError::TooLong.to_string(),
        )));
    }
    let is_stream = response
        .header("content-type")
        .is_some_and(|kind| kind.starts_with("text/event-stream"));
    if is_stream || response.body.trim_ascii_start().starts_with(b"data:") {
        // A server that streams without being asked to may have dropped the end.
        return Err(Failure::with_unknown_cost(malformed(
            "it is a stream of events, which was not asked for".into(),
        )));
    }
    let Ok(mut body) = serde_json::from_slice::<Value>(&response.body) else {
        return Err(server.not_json(&response.body, malformed));
    };
    if !body["error"].is_null() && body["choices"].is_null() {
        // Some servers send 200 before they fail.
        return Err(Failure::with_unknown_cost(refusal::error(
            server,
            &ServerResponse {
                status: 500,
                ..response
            },
            ask,
            tier,
        )));
    }
    // Answers can be long; free the bytes once they are parsed.
    response.body = Vec::new();
    let usage = usage(&response, &body, &tier.model);
    let fail = |why: AskError| {
        Err(Box::new(Failure {
            why,
            usage,
            notes: Vec::new(),
            answer: String::new(),
        }))
    };

    let (answered, notes) = match answering_model(&response, &body, &tier.model.id) {
        AnsweringModel::Asked(name) => (name, Vec::new()),
        AnsweringModel::Unverified(name) => {
            let note = format!(
                "the server calls the model `{}`",
                words::cut_end(&words::plain(&name), 100)
            );
            (name, vec![note])
        }
        AnsweringModel::Other(answered) => {
            return fail(AskError::OtherModel {
                backend: server.backend.clone(),
                model,
                answered,
            });
        }
    };
    let choices = body.get_mut("choices").map(Value::take);
    let Some(Value::Array(choices)) = choices.filter(|choices| choices[0].is_object()) else {
        return fail(malformed("it holds no choice".into()));
    };
    let read = |(n, choice): (usize, Value)| {
        let reader = ChoiceReader {
            server,
            ask,
            model: &tier.name.0,
            answered: &answered,
            notes: &notes,
            usage: if n == 0 { usage } else { Usage::ZERO },
            seen_tokens: usage.tokens_in,
            sent,
        };
        reader.read(choice)
    };
    let wanted = ask.samples.max(1) as usize;
    Ok(choices
        .into_iter()
        .take(wanted)
        .enumerate()
        .map(read)
        .collect())
}

/// Reads one answer of a response.
struct ChoiceReader<'a> {
    server: &'a Server,
    ask: &'a Ask,
    model: &'a str,
    answered: &'a str,
    notes: &'a [String],
    usage: Usage,
    /// Tokens of the prompt, as counted by the server.
    seen_tokens: Option<u64>,
    /// Bytes of the prompt.
    sent: usize,
}

impl ChoiceReader<'_> {
    fn read(&self, mut choice: Value) -> AskResult {
        let Self {
            server,
            ask,
            usage,
            sent,
            ..
        } = *self;
        let model = self.model.to_owned();
        let malformed = |why: String| AskError::Malformed {
            model: self.model.to_owned(),
            why,
        };
        let fail_with_answer = |why: AskError, text: &str| {
            Err(Box::new(Failure {
                why,
                usage,
                notes: Vec::new(),
                answer: server.keep(text),
            }))
        };
        let fail = |why: AskError| fail_with_answer(why, "");
        let mut message = choice
            .get_mut("message")
            .map(Value::take)
            .unwrap_or_default();
        let finish = choice["finish_reason"].as_str().unwrap_or_default();
        let refused = message["refusal"].as_str().unwrap_or_default();
        if !refused.is_empty() || finish == "content_filter" {
            return fail(AskError::Declined {
                model,
                detail: sanitize(refused, &server.redactor),
            });
        }
        if let Some(seen_tokens) = self
            .seen_tokens
            .filter(|seen| is_prompt_truncated(sent, *seen))
        {
            return fail(AskError::PromptCut {
                model,
                sent_bytes: sent,
                seen_tokens,
            });
        }
        let text = text(
            message
                .get_mut("content")
                .map(Value::take)
                .unwrap_or_default(),
        );
        let message = &message;
        if finish == "length" {
            return fail_with_answer(AskError::AnswerCut { model }, &text);
        }
        if ask.wants_text() {
            let text = if text.trim().is_empty() {
                text_in_other_fields(message)
            } else {
                text
            };
            let raw = server.keep(&text);
            let body = Value::String(text);
            return Ok(Reply {
                body,
                raw,
                model_answered: self.answered.to_owned(),
                usage,
                notes: self.notes.to_vec(),
            });
        }
        let object = match extract::object(&text, &extract::required(&ask.schema)) {
            Ok(object) => object,
            // Only the answer itself counts. Servers that separate the reasoning leave `content` empty.
            Err(ExtractError::Empty) if has_reasoning(message) => {
                return fail_with_answer(
                    malformed(ExtractError::OnlyThoughts.to_string()),
                    &message.to_string(),
                );
            }
            Err(ExtractError::Empty) if !message["tool_calls"].is_null() => {
                return fail_with_answer(
                    malformed("it calls a tool where none was offered".into()),
                    &message.to_string(),
                );
            }
            Err(why) => return fail_with_answer(malformed(why.to_string()), &text),
        };
        let raw = server.keep(&text);
        Ok(Reply {
            body: Value::Object(object),
            raw,
            model_answered: self.answered.to_owned(),
            usage,
            notes: self.notes.to_vec(),
        })
    }
}

enum AnsweringModel {
    Asked(String),
    /// Servers with a single model accept any name, so a different name alone proves nothing.
    Unverified(String),
    Other(String),
}

/// Only a gateway's own headers prove a different model: the group it used, and whether it fell
/// back.
fn answering_model(response: &ServerResponse, body: &Value, asked: &str) -> AnsweringModel {
    let named = body["model"].as_str().unwrap_or_default();
    let group = response.header("x-litellm-model-group").unwrap_or_default();
    let fell_back = response
        .header("x-litellm-attempted-fallbacks")
        .is_some_and(|n| n.parse() != Ok(0));
    if (!group.is_empty() && group != asked) || fell_back {
        return AnsweringModel::Other(
            if group.is_empty() || group == asked {
                named
            } else {
                group
            }
            .to_owned(),
        );
    }
    if named.is_empty() || !group.is_empty() || named == asked || named == format!("{asked}:latest")
    {
        AnsweringModel::Asked(asked.to_owned())
    } else {
        AnsweringModel::Unverified(named.to_owned())
    }
}

/// Zero tokens mean that the server did not count.
fn usage(response: &ServerResponse, body: &Value, model: &Model) -> Usage {
    let tokens_in = body["usage"]["prompt_tokens"].as_u64().filter(|n| *n > 0);
    let tokens_out = tokens_in.and(body["usage"]["completion_tokens"].as_u64());
    let tokens_out = tokens_out.map(|tokens| tokens_of_all_choices(body, tokens));
    let counted = Usage {
        tokens_in,
        tokens_out,
        cost_usd: None,
    }
    .plausible();
    let cost_usd = cost(response, model, counted.tokens_in, counted.tokens_out);
    Usage {
        cost_usd,
        ..counted
    }
    .plausible()
}

/// llama.cpp counts the tokens of the first of several answers only. Estimates those of all of them
/// by their length.
fn tokens_of_all_choices(body: &Value, counted: u64) -> u64 {
    let choices = body["choices"].as_array().map_or(&[][..], Vec::as_slice);
    let counts_one = body["timings"]["predicted_n"].as_u64() == Some(counted);
    if choices.len() < 2 || !counts_one {
        return counted;
    }
    let length = |choice: &Value| {
        let message = &choice["message"];
        let fields = ["content", "reasoning_content"];
        let texts = fields.iter().filter_map(|field| message[*field].as_str());
        texts.map(str::len).sum::<usize>().max(1) as u64
    };
    let all: u64 = choices.iter().map(length).sum();
    counted.saturating_mul(all).div_ceil(length(&choices[0]))
}

fn cost(
    response: &ServerResponse,
    model: &Model,
    tokens_in: Option<u64>,
    tokens_out: Option<u64>,
) -> Option<f64> {
    if let Some(usd) = response.gateway_cost() {
        return Some(usd);
    }
    if response.is_from_litellm() && tokens_in.is_some() {
        return Some(0.0);
    }
    model.price(tokens_in, tokens_out)
}

/// Reads content given as a string or as a list of text parts.
fn text(content: Value) -> String {
    match content {
        Value::String(text) => text,
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect(),
        _ => String::new(),
    }
}

/// Text that the server moved to the tool calls or the reasoning.
fn text_in_other_fields(message: &Value) -> String {
    if let Some(calls) = message["tool_calls"]
        .as_array()
        .filter(|calls| !calls.is_empty())
    {
        return Value::from(calls.clone()).to_string();
    }
    let thoughts = ["reasoning_content", "reasoning"]
        .iter()
        .find_map(|field| message[*field].as_str());
    thoughts
        .map(|thoughts| format!("<think>{thoughts}"))
        .unwrap_or_default()
}

fn has_reasoning(message: &Value) -> bool {
    ["reasoning_content", "reasoning"]
        .iter()
        .any(|field| message[*field].as_str().is_some_and(|t| !t.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::response;
    use serde_json::json;

    fn model(price: Option<f64>) -> Model {
        Model {
            price_in: price,
            price_out: price,
            ..Model::named("m", 8192)
        }
    }

    #[test]
    fn cost_prefers_gateway_then_price_list() {
        let counted = json!({"usage": {"prompt_tokens": 1_000_000, "completion_tokens": 500_000}});
        let zeros = json!({"usage": {"prompt_tokens": 0, "completion_tokens": 0}});
        let litellm = [("x-litellm-call-id", "1")];
        let priced = [
            ("x-litellm-response-cost", "9e-06"),
            ("x-litellm-response-cost-original", "1"),
        ];
        let cost = |headers: &[(&str, &str)], body: &Value, price| {
            usage(&response(200, headers, ""), body, &model(price)).cost_usd
        };
        assert_eq!(cost(&priced, &counted, Some(2.0)), Some(9e-6));
        assert_eq!(cost(&litellm, &counted, Some(2.0)), Some(0.0));
        assert_eq!(
            cost(&[("x-litellm-response-cost-original", "0.0")], &zeros, None),
            Some(0.0)
        );
        assert_eq!(cost(&[], &counted, Some(2.0)), Some(3.0));
        assert_eq!(cost(&[], &counted, None), None);
        assert_eq!(cost(&[], &zeros, Some(2.0)), None);
        for absurd in ["-1", "NaN", "inf", "1e300", "free"] {
            assert_eq!(
                cost(&[("x-litellm-response-cost", absurd)], &zeros, None),
                None,
                "{absurd}"
            );
        }
        let absurd = json!({"usage": {"prompt_tokens": -5, "completion_tokens": 1e30}});
        assert_eq!(
            usage(&response(200, &[], ""), &absurd, &model(Some(2.0))),
            Usage::default()
        );
        assert_eq!(
            usage(&response(200, &[], ""), &zeros, &model(None)),
            Usage::default()
        );
    }
}
