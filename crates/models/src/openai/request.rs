//! Builds the request body, and decides which simpler form to try if a server rejects it.

use serde_json::{Value, json};

use crate::Ask;
use crate::server::ServerResponse;
use supervisor_settings::Model;

/// Optional parts of the body. Not every server accepts all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Form {
    /// Asks the server to enforce the schema.
    response_format: bool,
    /// Parameters for LiteLLM gateways. Most other servers ignore them, but some reject unknown
    /// parameters.
    gateway_params: bool,
    /// Asks for several answers at once.
    pub(super) several: bool,
}

impl Default for Form {
    fn default() -> Self {
        Self {
            response_format: true,
            gateway_params: true,
            several: true,
        }
    }
}

/// The body, and the number of bytes of text shown to the model.
pub(super) fn body(ask: &Ask, model: &Model, form: Form) -> (Value, usize) {
    let system = ask.rules_with_schema();
    let sent = system.len() + ask.prompt.len();
    let mut body = json!({
        "model": model.id,
        "messages": [
            {"role": "system", "content": system},
            {"role": "user", "content": ask.prompt},
        ],
        "stream": false,
    });
    if form.response_format && !ask.schema.is_null() {
        body["response_format"] =
            json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": ask.schema}});
    }
    if form.gateway_params {
        // The engine decides about retries and fallbacks. Hidden ones cost minutes and misreport
        // which model answered.
        body["num_retries"] = json!(0);
        body["disable_fallbacks"] = json!(true);
    }
    if let Some(max_tokens) = ask.max_answer_tokens(model) {
        body["max_tokens"] = json!(max_tokens);
    }
    if form.several && ask.samples > 1 {
        body["n"] = json!(ask.samples);
    }
    // Answers that should differ are asked for a little warmer, unless the server decides.
    let attempt = match ask.attempt {
        0 | 1 if ask.is_sampled() && model.temperature.is_some() => 2,
        attempt => attempt,
    };
    if let Some(temperature) = temperature(model, attempt) {
        body["temperature"] = json!(temperature);
    }
    if let Some(seed) = model.seed {
        // A different seed per ask: the same one would give the same answer.
        let number = ask.attempt.saturating_sub(1) + ask.sample.unwrap_or_default();
        body["seed"] = json!(seed.wrapping_add(u64::from(number)));
    }
    (body, sent)
}

/// The first attempt leaves the temperature to the server unless it is set. Each further attempt
/// raises it.
fn temperature(model: &Model, attempt: u32) -> Option<f64> {
    /// The default of most servers.
    const DEFAULT_TEMPERATURE: f64 = 0.7;
    const STEP: f64 = 0.2;
    const MAX_TEMPERATURE: f64 = 1.2;
    match attempt {
        0 | 1 => model.temperature,
        n => {
            let base = model.temperature.unwrap_or(DEFAULT_TEMPERATURE);
            let warmer = (base + STEP * f64::from(n - 1)).min(MAX_TEMPERATURE.max(base));
            Some((warmer * 100.0).round() / 100.0)
        }
    }
}

/// The form to try next, if the server rejected the form of the request and not its content.
/// For several answers at once any rejection counts: llama.cpp, for one, names no parameter.
pub(super) fn simpler_form(response: &ServerResponse, form: Form, samples: u32) -> Option<Form> {
    if !matches!(response.status, 400 | 422) {
        return None;
    }
    let detail = String::from_utf8_lossy(&response.body).to_lowercase();
    let mentions = |words: &[&str]| words.iter().any(|word| detail.contains(word));
    if form.gateway_params && mentions(&["num_retries", "disable_fallbacks"]) {
        return Some(Form {
            gateway_params: false,
            ..form
        });
    }
    let about_schema = [
        "response_format",
        "json_schema",
        "json schema",
        "json_object",
        "grammar",
        "structured output",
    ];
    if form.response_format && mentions(&about_schema) {
        return Some(Form {
            response_format: false,
            ..form
        });
    }
    (form.several && samples > 1).then_some(Form {
        several: false,
        ..form
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::response;

    fn ask() -> Ask {
        Ask::new(
            "rules",
            "task",
            json!({"type": "object", "required": ["n"]}),
            "/",
        )
    }

    #[test]
    fn schema_is_enforced_and_shown() {
        let (body, sent) = body(&ask(), &Model::named("m", 8192), Form::default());
        assert_eq!(
            body["response_format"]["json_schema"]["schema"]["required"],
            json!(["n"])
        );
        let system = body["messages"][0]["content"].as_str().expect("text");
        assert!(system.starts_with("rules\n") && system.contains(r#""required":["n"]"#));
        assert_eq!(
            body["messages"][1],
            json!({"role": "user", "content": "task"})
        );
        assert_eq!(
            (&body["num_retries"], &body["disable_fallbacks"]),
            (&json!(0), &json!(true))
        );
        assert_eq!(sent, system.len() + 4);
        assert!(
            ["max_tokens", "temperature", "seed"]
                .iter()
                .all(|field| body.get(field).is_none())
        );
    }

    #[test]
    fn smaller_answer_limit_applies() {
        let sent = |own, asked| {
            let model = Model {
                max_tokens: own,
                ..Model::named("m", 8192)
            };
            body(
                &Ask {
                    max_tokens: asked,
                    ..ask()
                },
                &model,
                Form::default(),
            )
            .0["max_tokens"]
                .as_u64()
        };
        assert_eq!([sent(None, None), sent(Some(900), None)], [None, Some(900)]);
        assert_eq!(
            [sent(Some(900), Some(40)), sent(Some(9), Some(40))],
            [Some(40), Some(9)]
        );
    }

    #[test]
    fn later_attempts_raise_temperature_and_seed() {
        let sent = |model: &Model, attempt| {
            let (body, _) = body(&Ask { attempt, ..ask() }, model, Form::default());
            (body["temperature"].as_f64(), body["seed"].as_u64())
        };
        let set = Model {
            temperature: Some(0.1),
            seed: Some(7),
            ..Model::named("m", 8192)
        };
        assert_eq!(
            [1, 2, 3].map(|n| sent(&set, n)),
            [
                (Some(0.1), Some(7)),
                (Some(0.3), Some(8)),
                (Some(0.5), Some(9))
            ]
        );
        let plain = Model::named("m", 8192);
        assert_eq!(
            [1, 2, 9].map(|n| sent(&plain, n)),
            [(None, None), (Some(0.9), None), (Some(1.2), None)]
        );
        let hot = Model {
            temperature: Some(1.5),
            ..plain
        };
        assert_eq!(sent(&hot, 2).0, Some(1.5), "never colder than what was set");
    }

    #[test]
    fn only_form_rejection_leads_to_simpler_form() {
        let all = Form::default();
        let no_format = Form {
            response_format: false,
            ..all
        };
        for (status, detail, next) in [
            (
                400,
                "litellm.UnsupportedParamsError: does not support parameters: ['response_format']",
                Some(no_format),
            ),
            (
                400,
                "JSON schema error at #/properties/a: unrecognized type nonsense",
                Some(no_format),
            ),
            (
                422,
                r#"{"detail":[{"loc":["body","response_format"]}]}"#,
                Some(no_format),
            ),
            (
                400,
                "Unrecognized request argument supplied: num_retries",
                Some(Form {
                    gateway_params: false,
                    ..all
                }),
            ),
            (400, "the prompt is too long", None),
            (500, "response_format", None),
        ] {
            assert_eq!(
                simpler_form(&response(status, &[], detail), all, 1),
                next,
                "{detail}"
            );
        }
        assert_eq!(
            simpler_form(&response(400, &[], "response_format"), no_format, 1),
            None,
            "once is enough"
        );
    }
}
