//! Tool arguments into their type. Forgiving where the meaning is plain (`"5"` for 5, null for "left out"),
//! and where it is not, a sentence that names the field, what it accepts, what was written, and an example.

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

/// The arguments of a call. Named as the SDK's own, whose macro derives the input schema from this name.
#[derive(Debug)]
pub struct Parameters<T>(pub T);

impl<S, T: DeserializeOwned + JsonSchema + 'static> FromContextPart<ToolCallContext<'_, S>>
    for Parameters<T>
{
    fn from_context_part(call: &mut ToolCallContext<'_, S>) -> Result<Self, ErrorData> {
        // The frame around every call turns this into a result the calling model can read.
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

/// Parses the arguments of one call, or says in a sentence what is wrong with them.
pub fn parse<T: DeserializeOwned + JsonSchema + 'static>(
    mut arguments: JsonObject,
) -> Result<T, String> {
    let schema = schema_for_input::<T>()?;
    meet_halfway(&mut arguments, &schema);
    serde_path_to_error::deserialize(Value::Object(arguments.clone())).map_err(|error| {
        explain(
            &error.path().to_string(),
            &error.inner().to_string(),
            &arguments,
            &schema,
        )
    })
}

/// Callers are models: numbers arrive as strings, lists as JSON in a string, "not given" as null.
fn meet_halfway(arguments: &mut JsonObject, schema: &JsonObject) {
    arguments.retain(|_, value| !value.is_null());
    for (name, value) in arguments.iter_mut() {
        if let Some(better) =
            schema::property(schema, name).and_then(|property| as_meant(value, property))
        {
            *value = better;
        }
    }
}

fn as_meant(value: &Value, property: &Value) -> Option<Value> {
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
            let meant: Value = serde_json::from_str(text.trim()).ok()?;
            let fits = match &meant {
                Value::Number(number) if schema::allows(property, "integer") => {
                    number.is_i64() || number.is_u64()
                }
                Value::Number(_) => schema::allows(property, "number"),
                Value::Bool(_) => schema::allows(property, "boolean"),
                Value::Array(_) => schema::allows(property, "array"),
                Value::Object(_) => schema::allows(property, "object"),
                _ => false,
            };
            fits.then_some(meant)
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
        // Serde stops at the first; a caller who is told of all needs one further call.
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
            words::cut_end(&in_words(inner), 300)
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

/// The reader may not know what a `u64` or a sequence is.
fn in_words(inner: &str) -> String {
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
    fn all_that_is_missing_is_named_at_once() {
        #[derive(Debug, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        #[expect(dead_code, reason = "read by serde alone")]
        struct Two {
            /// Absolute path.
            project_root: String,
            /// The behaviour.
            spec: String,
        }
        let said = parse::<Two>(JsonObject::new()).expect_err("nothing is given");
        assert!(
            said.starts_with("project_root, spec are required: these arguments are missing; "),
            "{said}"
        );
        assert!(said.contains("`spec` accepted: "), "{said}");
    }

    #[test]
    fn what_is_plainly_meant_is_accepted() {
        let written = json!({
            "project_root": "/p", "timeout_s": "30", "files": "[\"a\"]", "dry_run": "true", "depth": null, "budget_usd": "0.5",
        });
        let meant = sample(&written).expect("accepted");
        assert_eq!(
            (meant.timeout_s, meant.dry_run, meant.budget_usd),
            (Some(30), true, Some(0.5))
        );
        assert_eq!(meant.files, ["a"]);
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
    fn what_does_not_fit_is_explained() {
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
    fn a_tool_without_arguments_says_so() {
        let error = parse::<Nothing>(json!({"x": 1}).as_object().expect("object").clone())
            .expect_err("refused");
        assert!(error.contains("takes no arguments"), "{error}");
    }
}
