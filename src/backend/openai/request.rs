//! The request's body, and which plainer form to try when a server does not take it.

use serde_json::{Value, json};

use super::Got;
use crate::backend::Ask;

/// What a body holds beyond model and messages. Not every server takes all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Form {
    /// The server holds the model to the schema.
    response_format: bool,
    /// Words that only a LiteLLM gateway knows. Others ignore them, but some refuse what they do not know.
    gateway_words: bool,
}

impl Default for Form {
    fn default() -> Self {
        Self { response_format: true, gateway_words: true }
    }
}

/// The body, and how many bytes of text the model is shown.
pub(super) fn body(ask: &Ask, model: &str, form: Form) -> (Value, usize) {
    // Servers use the schema to hold the model, but do not show it; without sight of it small models write nonsense
    // of the right form.
    let system = format!(
        "{}\n\nAnswer with one JSON object and nothing else: no prose, no code fence. It must match this JSON schema:\n{}",
        ask.system.trim_end(),
        ask.schema
    );
    let sent = system.len() + ask.prompt.len();
    let mut body = json!({
        "model": model,
        "messages": [
            {"role": "system", "content": system},
            {"role": "user", "content": ask.prompt},
        ],
        "stream": false,
    });
    if form.response_format {
        body["response_format"] =
            json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": ask.schema}});
    }
    if form.gateway_words {
        // Retries and other models are ours to decide: hidden ones cost minutes, and lie about who answered.
        body["num_retries"] = json!(0);
        body["disable_fallbacks"] = json!(true);
    }
    if let Some(most) = ask.max_tokens {
        body["max_tokens"] = json!(most);
    }
    (body, sent)
}

/// The form to try next, if the server refused this one for its form and not for what it asks.
pub(super) fn plainer(got: &Got, form: Form) -> Option<Form> {
    if !matches!(got.status, 400 | 422) {
        return None;
    }
    let said = String::from_utf8_lossy(&got.body).to_lowercase();
    let names = |words: &[&str]| words.iter().any(|word| said.contains(word));
    if form.gateway_words && names(&["num_retries", "disable_fallbacks"]) {
        return Some(Form { gateway_words: false, ..form });
    }
    let about_schema = ["response_format", "json_schema", "json schema", "json_object", "grammar", "structured output"];
    if form.response_format && names(&about_schema) {
        return Some(Form { response_format: false, ..form });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::got;
    use super::*;

    fn ask() -> Ask {
        Ask::new("rules", "task", json!({"type": "object", "required": ["n"]}), "/")
    }

    #[test]
    fn the_schema_is_sent_as_a_constraint_and_shown_in_the_prompt() {
        let (body, sent) = body(&ask(), "m", Form::default());
        assert_eq!(body["response_format"]["json_schema"]["schema"]["required"], json!(["n"]));
        let system = body["messages"][0]["content"].as_str().expect("text");
        assert!(system.starts_with("rules\n") && system.contains(r#""required":["n"]"#));
        assert_eq!(body["messages"][1], json!({"role": "user", "content": "task"}));
        assert_eq!((&body["num_retries"], &body["disable_fallbacks"]), (&json!(0), &json!(true)));
        assert_eq!(sent, system.len() + 4);
        assert!(body.get("max_tokens").is_none());
    }

    #[test]
    fn only_a_refusal_of_the_form_leads_to_a_plainer_one() {
        let all = Form::default();
        let no_format = Form { response_format: false, ..all };
        for (status, said, next) in [
            (400, "litellm.UnsupportedParamsError: does not support parameters: ['response_format']", Some(no_format)),
            (400, "JSON schema error at #/properties/a: unrecognized type nonsense", Some(no_format)),
            (422, r#"{"detail":[{"loc":["body","response_format"]}]}"#, Some(no_format)),
            (400, "Unrecognized request argument supplied: num_retries", Some(Form { gateway_words: false, ..all })),
            (400, "the prompt is too long", None),
            (500, "response_format", None),
        ] {
            assert_eq!(plainer(&got(status, &[], said), all), next, "{said}");
        }
        assert_eq!(plainer(&got(400, &[], "response_format"), no_format), None, "once is enough");
    }
}
