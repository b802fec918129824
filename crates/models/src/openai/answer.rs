//! What a 200 means. It may hold no choice, no text, the text of another model, half a text, or an answer to half a
//! prompt.

use serde_json::Value;

use super::{Endpoint, ReceivedAnswer, refusal};
use crate::extract;
use crate::extract::NoObject;
use crate::said::said;
use crate::{Ask, AskError, AskResult, Failure, Reply, Usage};
use supervisor_settings::{Model, Tier};
use supervisor_text::words;

/// Kept of what was said.
const RAW: usize = 64 * 1024;

pub(super) fn read(
    at: &Endpoint,
    mut got: ReceivedAnswer,
    ask: &Ask,
    tier: &Tier,
    sent: usize,
) -> AskResult {
    let model = tier.name.0.clone();
    let malformed = |why: String| AskError::Malformed {
        model: model.clone(),
        why,
    };
    if got.cut {
        return Err(Failure::unknown(malformed(NoObject::TooLong.to_string())));
    }
    let is_stream = got
        .header("content-type")
        .is_some_and(|kind| kind.starts_with("text/event-stream"));
    if is_stream || got.body.trim_ascii_start().starts_with(b"data:") {
        // A server that streams although it was told not to may have left out the end.
        return Err(Failure::unknown(malformed(
            "it is a stream of events, which was not asked for".into(),
        )));
    }
    let Ok(mut body) = serde_json::from_slice::<Value>(&got.body) else {
        return Err(not_json(at, &got, malformed));
    };
    if !body["error"].is_null() && body["choices"].is_null() {
        // Some servers say 200 first and change their mind.
        return Err(Failure::unknown(refusal::error(
            at,
            &ReceivedAnswer { status: 500, ..got },
            ask,
            tier,
        )));
    }
    // An answer may be long; what has been read of it is not held twice.
    got.body = Vec::new();
    let usage = usage(&got, &body, &tier.model);
    let kept = |text: &str| {
        at.secrets
            .redact(&words::cut_middle(text, RAW))
            .into_owned()
    };
    let said_in_vain = |why: AskError, text: &str| {
        Err(Box::new(Failure {
            why,
            usage,
            notes: Vec::new(),
            answer: kept(text),
        }))
    };
    let fail = |why: AskError| said_in_vain(why, "");

    let (answered, notes) = match who(&got, &body, &tier.model.id) {
        Who::Asked(name) => (name, Vec::new()),
        Who::SaysOtherwise(name) => {
            let note = format!(
                "the server calls the model `{}`",
                words::cut_end(&words::plain(&name), 100)
            );
            (name, vec![note])
        }
        Who::Other(answered) => {
            return fail(AskError::OtherModel {
                backend: at.backend.clone(),
                model,
                answered,
            });
        }
    };
    let choices = body.get_mut("choices").and_then(Value::as_array_mut);
    let Some(choice) = choices.and_then(|choices| choices.first_mut()) else {
        return fail(malformed("it holds no choice".into()));
    };
    let mut message = choice
        .get_mut("message")
        .map(Value::take)
        .unwrap_or_default();
    let finish = choice["finish_reason"].as_str().unwrap_or_default();
    let refused = message["refusal"].as_str().unwrap_or_default();
    if !refused.is_empty() || finish == "content_filter" {
        return fail(AskError::Declined {
            model,
            said: said(refused, &at.secrets),
        });
    }
    if let Some(seen_tokens) = usage.tokens_in.filter(|seen| was_cut(sent, *seen)) {
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
        return said_in_vain(AskError::AnswerCut { model }, &text);
    }
    if ask.wants_text() {
        let text = if text.trim().is_empty() {
            elsewhere(message)
        } else {
            text
        };
        let raw = kept(&text);
        let body = Value::String(text);
        return Ok(Reply {
            body,
            raw,
            model_answered: answered,
            usage,
            notes,
        });
    }
    let object = match extract::object(&text, &extract::required(&ask.schema)) {
        Ok(object) => object,
        // The answer must be said, not thought: thoughts end up here when the server parses them out.
        Err(NoObject::Empty) if thought(message) => {
            return said_in_vain(
                malformed(NoObject::OnlyThoughts.to_string()),
                &message.to_string(),
            );
        }
        Err(NoObject::Empty) if !message["tool_calls"].is_null() => {
            return said_in_vain(
                malformed("it calls a tool where none was offered".into()),
                &message.to_string(),
            );
        }
        Err(why) => return said_in_vain(malformed(why.to_string()), &text),
    };
    let raw = kept(&text);
    Ok(Reply {
        body: Value::Object(object),
        raw,
        model_answered: answered,
        usage,
        notes,
    })
}

fn not_json(
    at: &Endpoint,
    got: &ReceivedAnswer,
    malformed: impl Fn(String) -> AskError,
) -> Box<Failure> {
    let start = String::from_utf8_lossy(&got.body[..got.body.len().min(200)])
        .trim_start()
        .to_lowercase();
    if start.starts_with("<!doctype") || start.starts_with("<html") {
        return Failure::free(AskError::WrongAddress {
            backend: at.backend.clone(),
            address: at.address.clone(),
            said: "it answers with a web page".into(),
        });
    }
    Failure::unknown(malformed(if start.is_empty() {
        "the body is empty".into()
    } else {
        "the body is not JSON".into()
    }))
    .saying(
        at.secrets
            .redact(&words::cut_middle(&String::from_utf8_lossy(&got.body), RAW)),
    )
}

enum Who {
    Asked(String),
    /// Servers with a single model answer to any name, so this alone proves nothing.
    SaysOtherwise(String),
    Other(String),
}

/// Only a gateway's own word counts against it: which group it used, and whether it fell back.
fn who(got: &ReceivedAnswer, body: &Value, asked: &str) -> Who {
    let named = body["model"].as_str().unwrap_or_default();
    let group = got.header("x-litellm-model-group").unwrap_or_default();
    let fell_back = got
        .header("x-litellm-attempted-fallbacks")
        .is_some_and(|n| n.parse() != Ok(0));
    if (!group.is_empty() && group != asked) || fell_back {
        return Who::Other(
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
        Who::Asked(asked.to_owned())
    } else {
        Who::SaysOtherwise(named.to_owned())
    }
}

/// Zero tokens mean that the server did not count.
fn usage(got: &ReceivedAnswer, body: &Value, model: &Model) -> Usage {
    let tokens_in = body["usage"]["prompt_tokens"].as_u64().filter(|n| *n > 0);
    let tokens_out = tokens_in.and(body["usage"]["completion_tokens"].as_u64());
    let counted = Usage {
        tokens_in,
        tokens_out,
        cost_usd: None,
    }
    .plausible();
    let cost_usd = cost(got, model, counted.tokens_in, counted.tokens_out);
    Usage {
        cost_usd,
        ..counted
    }
    .plausible()
}

fn cost(
    got: &ReceivedAnswer,
    model: &Model,
    tokens_in: Option<u64>,
    tokens_out: Option<u64>,
) -> Option<f64> {
    let header = |name| {
        got.header(name)?
            .parse::<f64>()
            .ok()
            .filter(|usd| usd.is_finite() && *usd >= 0.0)
    };
    // LiteLLM leaves the header out when the cost is zero.
    if let Some(usd) =
        header("x-litellm-response-cost").or_else(|| header("x-litellm-response-cost-original"))
    {
        return Some(usd);
    }
    if got.is_from_litellm() && tokens_in.is_some() {
        return Some(0.0);
    }
    let price =
        |tokens: Option<u64>, per_million: Option<f64>| Some(tokens? as f64 * per_million? / 1e6);
    Some(price(tokens_in, model.price_in)? + price(tokens_out, model.price_out)?)
}

/// Far fewer tokens than the text can have, or exactly a window's worth of a text that needs more.
/// Prose and code take 3 to 5 bytes a token, deeply indented code up to 7.
fn was_cut(sent_bytes: usize, seen_tokens: u64) -> bool {
    let sent = sent_bytes as u64;
    let full_window = |n: u64| n >= 2048 && (n.is_power_of_two() || (n + 1).is_power_of_two());
    sent > 4096
        && (sent > seen_tokens.saturating_mul(9)
            || (full_window(seen_tokens) && sent > seen_tokens * 5))
}

/// Text, or parts of text.
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

/// Where a server put the words that it took for thoughts or for a call of a tool.
fn elsewhere(message: &Value) -> String {
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

fn thought(message: &Value) -> bool {
    ["reasoning_content", "reasoning"]
        .iter()
        .any(|field| message[*field].as_str().is_some_and(|t| !t.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::super::got;
    use super::*;
    use serde_json::json;

    fn model(price: Option<f64>) -> Model {
        Model {
            price_in: price,
            price_out: price,
            ..Model::named("m", 8192)
        }
    }

    #[test]
    fn cost_is_what_the_gateway_says_then_the_price_list_then_unknown() {
        let counted = json!({"usage": {"prompt_tokens": 1_000_000, "completion_tokens": 500_000}});
        let zeros = json!({"usage": {"prompt_tokens": 0, "completion_tokens": 0}});
        let litellm = [("x-litellm-call-id", "1")];
        let priced = [
            ("x-litellm-response-cost", "9e-06"),
            ("x-litellm-response-cost-original", "1"),
        ];
        let cost = |headers: &[(&str, &str)], body: &Value, price| {
            usage(&got(200, headers, ""), body, &model(price)).cost_usd
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
            usage(&got(200, &[], ""), &absurd, &model(Some(2.0))),
            Usage::default()
        );
        assert_eq!(
            usage(&got(200, &[], ""), &zeros, &model(None)),
            Usage::default()
        );
    }

    #[test]
    fn a_prompt_counts_as_cut_only_where_no_tokenizer_could_explain_it() {
        for (sent, seen, cut) in [
            (40_000, 4095, true), // Ollama's default window
            (40_000, 4096, true),
            (24_000, 4096, true),
            (24_000, 4000, false), // six bytes a token: indented code
            (16_000, 4096, false), // fits by chance
            (400_000, 8000, true),
            (3_000, 100, false), // too short to tell
        ] {
            assert_eq!(was_cut(sent, seen), cut, "{sent} bytes, {seen} tokens");
        }
    }
}
