//! Parses tool arguments. Obvious mistakes are corrected (`"5"` for 5, null for a missing
//! argument). Otherwise the error names the field, what it accepts, what was given, and an example.

use std::borrow::Cow;

use rmcp::ErrorData;
use rmcp::handler::server::common::FromContextPart;
use rmcp::handler::server::tool::{ToolCallContext, schema_for_input};
use rmcp::model::JsonObject;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::schema;
use supervisor_text::words;

/// The arguments of a call. Named like the SDK's own type, because its macro derives the input
/// schema from this name.
#[derive(Debug)]
pub struct Parameters<T>(pub T);

impl<S, T: DeserializeOwned + JsonSchema + 'static> FromContextPart<ToolCallContext<'_, S>>
    for Parameters<T>
{
    fn from_context_part(call: &mut ToolCallContext<'_, S>) -> Result<Self, ErrorData> {
        // [`Server`](super::Server) turns this error into a result that the calling model can read.
        parse(call.arguments.take().unwrap_or_default())
            .map(Self)
            .map_err(|message| {
                ErrorData::invalid_params(format!("`{}`: {message}", call.name()), None)
            })
    }
}

/// The schema of the arguments themselves.
impl<T: JsonSchema> JsonSchema for Parameters<T> {
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// Parses the arguments of one call. The error is a sentence that says what is wrong.
pub(crate) fn parse<T: DeserializeOwned + JsonSchema + 'static>(
    mut arguments: JsonObject,
) -> Result<T, String> {
    let schema = schema_for_input::<T>()?;
    coerce_arguments(&mut arguments, &schema);
    serde_path_to_error::deserialize(Value::Object(arguments.clone())).map_err(|error| {
        explain(
            &error.path().to_string(),
            &error.inner().to_string(),
            &arguments,
            &schema,
        )
    })
}

/// Callers are models: numbers arrive as strings, lists as JSON in a string, missing arguments as
/// null.
fn coerce_arguments(arguments: &mut JsonObject, schema: &JsonObject) {
    arguments.retain(|_, value| !value.is_null());
    for (name, value) in arguments.iter_mut() {
        if let Some(coerced) =
            schema::property(schema, name).and_then(|property| coerce(value, property))
        {
            *value = coerced;
        }
    }
}

fn coerce(value: &Value, property: &Value) -> Option<Value> {
    match value {
        Value::Number(number)
            if schema::allows(property, "integer") && !number.is_i64() && !number.is_u64() =>
        {
            let float = number
                .as_f64()
                .filter(|f| f.fract() == 0.0 && f.abs() < 9e15)?;
            #[expect(
                clippy::cast_possible_truncation,
                reason = "checked to be a whole number in range"
            )]
            Some(Value::from(float as i64))
        }
        Value::String(text) if !schema::allows(property, "string") => {
            let parsed: Value = serde_json::from_str(text.trim()).ok()?;
            let fits = match &parsed {
                Value::Number(number) if schema::allows(property, "integer") => {
                    number.is_i64() || number.is_u64()
                }
                Value::Number(_) => schema::allows(property, "number"),
                Value::Bool(_) => schema::allows(property, "boolean"),
                Value::Array(_) => schema::allows(property, "array"),
                Value::Object(_) => schema::allows(property, "object"),
                _ => false,
            };
            fits.then_some(parsed)
        }
        _ => None,
    }
}

fn explain(path: &str, inner: &str, arguments: &JsonObject, schema: &JsonObject) -> String {
    let known = schema::property_names(schema);
    let mut parts = Vec::new();
    let field = path.split(['.', '[']).next().unwrap_or_default();
    if let Some(unknown) = quoted_after(inner, "unknown field `") {
        parts.push(format!(
            "unknown argument `{}`",
            words::cut_end(&words::plain(unknown), 100)
        ));
        if let Some(near) = words::did_you_mean(unknown, known.iter().copied()) {
            parts.push(format!("did you mean `{near}`?"));
        }
        parts.push(match known.as_slice() {
            [] => String::from("this tool takes no arguments"),
            names => format!(
                "accepted arguments: {}",
                words::one_of(names.iter().copied())
            ),
        });
    } else if let Some(missing) = quoted_after(inner, "missing field `") {
        // Serde stops at the first missing field. Naming all of them saves the caller further
        // attempts.
        let required = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        let all: Vec<&str> = required
            .filter(|name| !arguments.contains_key(*name))
            .collect();
        if let [_, _, ..] = all.as_slice() {
            parts.push(format!(
                "{} are required: these arguments are missing",
                all.join(", ")
            ));
            let named = |name: &&str| Some(format!("`{name}` {}", schema::accepted(schema, name)?));
            parts.extend(all.iter().filter_map(named));
        } else {
            parts.push(format!(
                "{missing} is required: the argument `{missing}` is missing"
            ));
            parts.extend(schema::accepted(schema, missing));
        }
    } else {
        parts.push(format!(
            "the argument `{}` does not fit: {}",
            words::plain(path),
            words::cut_end(&without_rust_type_names(inner), 300)
        ));
        parts.extend(schema::accepted(schema, field));
        if let Some(got) = arguments.get(field) {
            parts.push(format!(
                "got {}",
                words::cut_end(&words::plain(&got.to_string()), 200)
            ));
        }
    }
    parts.push(format!(
        "example: {}",
        words::cut_end(&schema::example(schema).to_string(), 1000)
    ));
    parts.join("; ")
}

/// Replaces Rust type names, which the reader may not know.
fn without_rust_type_names(inner: &str) -> String {
    let inner = inner
        .replace("type: sequence", "type: a list")
        .replace("type: map", "type: an object");
    let Some((head, kind)) = inner.rsplit_once("expected ") else {
        return inner;
    };
    let words = match kind {
        "u8" | "u16" | "u32" | "u64" | "usize" | "i8" | "i16" | "i32" | "i64" | "isize" => {
            "a whole number"
        }
        "f32" | "f64" => "a number",
        "a sequence" => "a list",
        "a map" => "an object",
        other => other,
    };
    format!("{head}expected {words}")
}

fn quoted_after<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let rest = &text[text.find(prefix)? + prefix.len()..];
    Some(&rest[..rest.find('`')?])
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        /// Absolute path.
        project_root: String,
        #[serde(default)]
        timeout_s: Option<u32>,
        #[serde(default)]
        files: Vec<String>,
        #[serde(default)]
        dry_run: bool,
        #[serde(default)]
        depth: Option<Depth>,
        #[serde(default)]
        budget_usd: Option<f64>,
    }

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Depth {
        Quick,
        Full,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Nothing {}

    fn sample(arguments: &Value) -> Result<Sample, String> {
        parse(arguments.as_object().expect("an object").clone())
    }

    #[test]
    fn all_missing_arguments_are_named() {
        #[derive(Debug, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        #[expect(dead_code, reason = "read by serde alone")]
        struct Two {
            /// Absolute path.
            project_root: String,
            /// The behaviour.
            spec: String,
        }
        let message = parse::<Two>(JsonObject::new()).expect_err("nothing is given");
        assert!(
            message.starts_with("project_root, spec are required: these arguments are missing; "),
            "{message}"
        );
        assert!(message.contains("`spec` accepted: "), "{message}");
    }

    #[test]
    fn obvious_mistakes_are_corrected() {
        let written = json!({
            "project_root": "/p", "timeout_s": "30", "files": "[\"a\"]", "dry_run": "true", "depth": null, "budget_usd": "0.5",
        });
        let parsed = sample(&written).expect("accepted");
        assert_eq!(
            (parsed.timeout_s, parsed.dry_run, parsed.budget_usd),
            (Some(30), true, Some(0.5))
        );
        assert_eq!(parsed.files, ["a"]);
        assert_eq!(
            sample(&json!({"project_root": "7", "timeout_s": 30.0}))
                .expect("accepted")
                .timeout_s,
            Some(30)
        );
        assert_eq!(
            sample(&json!({"project_root": "7"}))
                .expect("a string stays one")
                .project_root,
            "7"
        );
    }

    #[test]
    fn invalid_arguments_are_explained() {
        let cases = [
            (
                json!({}),
                vec![
                    "`project_root` is missing",
                    "a string (Absolute path)",
                    r#"example: {"project_root":"…"}"#,
                ],
            ),
            (
                json!({"project_root": 5}),
                vec!["`project_root` does not fit", "got 5", "accepted: a string"],
            ),
            (
                json!({"project_root": "/p", "timeout_s": "soon"}),
                vec!["`timeout_s`", "an integer", "got \"soon\""],
            ),
            (
                json!({"project_root": "/p", "timeout_s": -1}),
                vec!["`timeout_s`", "from 0", "got -1"],
            ),
            (
                json!({"project_root": "/p", "timeout_s": 1.5}),
                vec!["`timeout_s`", "got 1.5"],
            ),
            (
                json!({"project_root": "/p", "files": ["a", 5]}),
                vec!["`files[1]`", "accepted: an array"],
            ),
            (
                json!({"project_root": "/p", "depth": "deep"}),
                vec!["`depth`", "`quick` or `full`", "got \"deep\""],
            ),
            (
                json!({"project_root": "/p", "timeout": 5}),
                vec![
                    "unknown argument `timeout`",
                    "did you mean `timeout_s`?",
                    "accepted arguments:",
                ],
            ),
        ];
        for (arguments, wanted) in cases {
            let error = sample(&arguments).expect_err("refused");
            for words in wanted {
                assert!(
                    error.contains(words),
                    "{arguments} gave: {error}\nwithout: {words}"
                );
            }
        }
    }

    #[test]
    fn tool_without_arguments_says_so() {
        let error = parse::<Nothing>(json!({"x": 1}).as_object().expect("object").clone())
            .expect_err("refused");
        assert!(error.contains("takes no arguments"), "{error}");
    }
}
