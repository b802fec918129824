//! Reduces tool schemas to what helps the calling model, which pays for every token, and describes
//! them in words: what a field accepts, and an example. Expects JSON Schema as written by schemars.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool};
use serde_json::{Map, Value, json};

use supervisor_text::words;

/// The tool as listed to clients.
pub fn listed(mut tool: Tool) -> Tool {
    let mut input = tidy_object(&tool.input_schema, Optional::MayBeLeftOut);
    if let Some(Value::Object(properties)) = input.get_mut("properties") {
        let is_marked = |name: &str| {
            property(&tool.input_schema, name).is_some_and(|one| one.get(UNLISTED).is_some())
        };
        properties
            .retain(|name, _| !UNLISTED_ARGUMENTS.contains(&name.as_str()) && !is_marked(name));
    }
    tool.input_schema = Arc::new(input);
    tool.description = tool
        .description
        .map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ").into());
    tool.output_schema = tool
        .output_schema
        .map(|schema| Arc::new(tidy_object(&schema, Optional::IsNull)));
    tool
}

/// Marks an argument of one tool that is accepted but not listed.
const UNLISTED: &str = "unlisted";

/// Arguments that are accepted but not listed: they are for users who inspect a call from a shell.
const UNLISTED_ARGUMENTS: &[&str] = &["show_prompt"];

/// The meaning of an `Option` in a schema.
#[derive(Clone, Copy, PartialEq)]
enum Optional {
    /// An argument may be omitted. That null works as well is not mentioned.
    MayBeLeftOut,
    /// A result field may be null.
    IsNull,
}

fn tidy_object(schema: &JsonObject, optional: Optional) -> JsonObject {
    let mut schema = Value::Object(schema.clone());
    tidy(&mut schema, optional);
    match schema {
        Value::Object(mut object) => {
            // Clients drop the whole list if one tool lacks a type.
            object.entry("type").or_insert_with(|| json!("object"));
            in_reading_order(object)
        }
        _ => JsonObject::new(),
    }
}

/// Puts type, properties and required fields first.
fn in_reading_order(mut object: JsonObject) -> JsonObject {
    let first = ["type", "properties", "required", "additionalProperties"];
    let mut ordered: JsonObject = first
        .into_iter()
        .filter_map(|key| Some((key.to_owned(), object.shift_remove(key)?)))
        .collect();
    ordered.append(&mut object);
    ordered
}

fn tidy(schema: &mut Value, optional: Optional) {
    match schema {
        Value::Object(object) => {
            for noise in ["$schema", "title"] {
                // A property may have such a name; its value is then a schema.
                if object.get(noise).is_some_and(Value::is_string) {
                    object.shift_remove(noise);
                }
            }
            if object
                .get("format")
                .and_then(Value::as_str)
                .is_some_and(|f| f.starts_with(['u', 'i', 'd', 'f']))
            {
                object.shift_remove("format"); // Rust formats: uint32, int64, double, float
            }
            if optional == Optional::MayBeLeftOut {
                simplify_argument(object);
            }
            object.values_mut().for_each(|value| tidy(value, optional));
        }
        Value::Array(items) => items.iter_mut().for_each(|value| tidy(value, optional)),
        _ => {}
    }
}

fn simplify_argument(object: &mut Map<String, Value>) {
    // Omit defaults that are empty.
    let is_empty = |value: &Value| {
        value.is_null() || [json!(false), json!([]), json!({}), json!("")].contains(value)
    };
    if object.get("default").is_some_and(is_empty) {
        object.shift_remove("default");
    }
    if object
        .get("minimum")
        .is_some_and(|least| least.as_f64() == Some(0.0))
    {
        object.shift_remove("minimum");
    }
    // Omit the default for objects that accept any property.
    if object.get("additionalProperties") == Some(&json!(true)) {
        object.shift_remove("additionalProperties");
    }
    if let Some(Value::Array(values)) = object.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            object["type"] = only.clone();
        }
    }
    if let Some(Value::Array(choices)) = object.get_mut("anyOf") {
        choices.retain(|choice| choice != &json!({"type": "null"}));
        if choices.len() == 1
            && let Some(Value::Object(only)) = choices.pop()
        {
            object.shift_remove("anyOf");
            for (key, value) in only {
                object.entry(key).or_insert(value);
            }
        }
    }
}

/// The schema of one top-level property, with references resolved.
pub fn property<'a>(schema: &'a JsonObject, name: &str) -> Option<&'a Value> {
    Some(resolve(schema, schema.get("properties")?.get(name)?))
}

pub fn property_names(schema: &JsonObject) -> Vec<&str> {
    schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str())
        .collect()
}

pub fn allows(schema: &Value, kind: &str) -> bool {
    let any_of = schema.get("anyOf").and_then(Value::as_array);
    match schema.get("type") {
        Some(Value::String(name)) => name == kind,
        Some(Value::Array(names)) => names.iter().any(|name| name == kind),
        _ => any_of.is_some_and(|all| all.iter().any(|one| allows(one, kind))),
    }
}

/// Describes what a property accepts: its type, values or range, and its purpose.
pub fn accepted(schema: &JsonObject, name: &str) -> Option<String> {
    let property = property(schema, name)?;
    let mut words = match choices(property) {
        Some(values) => format!(
            "accepted: {}",
            words::one_of(values.iter().map(String::as_str))
        ),
        None => format!("accepted: {}", kind(property)),
    };
    let bounds = [
        ("minimum", "from"),
        ("maximum", "to"),
        ("minLength", "at least"),
        ("maxLength", "at most"),
    ];
    for (key, word) in bounds {
        if let Some(bound) = property.get(key) {
            words += &format!(" {word} {bound}");
        }
    }
    if let Some(purpose) = property.get("description").and_then(Value::as_str) {
        words += &format!(" ({})", words::cut_end(purpose.trim_end_matches('.'), 200));
    }
    Some(words)
}

fn choices(property: &Value) -> Option<Vec<String>> {
    let named = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    if let Some(values) = property.get("enum").and_then(Value::as_array) {
        return Some(
            values
                .iter()
                .filter(|value| !value.is_null())
                .map(named)
                .collect(),
        );
    }
    // An enum with documented variants.
    let variants = property.get("oneOf")?.as_array()?;
    variants
        .iter()
        .map(|variant| variant.get("const").map(named))
        .collect()
}

fn kind(property: &Value) -> String {
    for (name, words) in [
        ("integer", "an integer"),
        ("number", "a number"),
        ("string", "a string"),
        ("boolean", "true or false"),
        ("array", "an array"),
        ("object", "an object"),
    ] {
        if allows(property, name) {
            return words.to_owned();
        }
    }
    String::from("see the input schema")
}

/// Example arguments: those of the schema, else one value per required property.
pub fn example(schema: &JsonObject) -> Value {
    if let Some(first) = schema.get("examples").and_then(|all| all.get(0)) {
        return first.clone();
    }
    let mut arguments = Map::new();
    for name in schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        let value = property(schema, name).map_or(Value::Null, sample);
        arguments.insert(name.to_owned(), value);
    }
    Value::Object(arguments)
}

fn sample(property: &Value) -> Value {
    let given = property
        .get("examples")
        .and_then(|all| all.get(0))
        .or_else(|| property.get("default"));
    if let Some(given) = given {
        return given.clone();
    }
    if let Some(first) = choices(property).and_then(|all| all.into_iter().next()) {
        return first.into();
    }
    if allows(property, "integer") || allows(property, "number") {
        return property.get("minimum").cloned().unwrap_or_else(|| 1.into());
    }
    if allows(property, "boolean") {
        return true.into();
    }
    if allows(property, "array") {
        return property
            .get("items")
            .map_or_else(|| json!([]), |items| json!([sample(items)]));
    }
    if allows(property, "object") {
        return json!({});
    }
    "…".into()
}

fn resolve<'a>(root: &'a JsonObject, property: &'a Value) -> &'a Value {
    let reference = |value: &'a Value| value.get("$ref").and_then(Value::as_str);
    let through_option = || {
        property
            .get("anyOf")?
            .as_array()?
            .iter()
            .find_map(reference)
    };
    let Some(name) = reference(property)
        .or_else(through_option)
        .and_then(|path| path.strip_prefix("#/$defs/"))
    else {
        return property;
    };
    root.get("$defs")
        .and_then(|all| all.get(name))
        .unwrap_or(property)
}

#[cfg(test)]
mod tests {
    use rmcp::handler::server::tool::schema_for_input;
    use schemars::JsonSchema;

    use super::*;

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Sample {
        /// Absolute path of the project.
        project_root: String,
        depth: Option<Depth>,
        #[schemars(range(min = 1, max = 10))]
        tries: u32,
        /// What the tool is called, not noise.
        title: Option<String>,
    }

    #[derive(JsonSchema)]
    #[schemars(rename_all = "lowercase")]
    #[expect(dead_code, reason = "only its schema is looked at")]
    enum Depth {
        Quick,
        Full,
    }

    #[test]
    fn listed_schema_omits_noise() {
        let raw = schema_for_input::<Sample>().expect("an object");
        let tidy = Value::Object(tidy_object(&raw, Optional::MayBeLeftOut));
        let text = tidy.to_string();
        assert!(
            !text.contains("$schema") && !text.contains("null") && !text.contains("uint32"),
            "{text}"
        );
        assert_eq!(
            tidy["properties"]["title"]["type"], "string",
            "a property called title stays"
        );
        assert_eq!(tidy["properties"]["depth"]["$ref"], "#/$defs/Depth");
    }

    #[test]
    fn field_description_and_example_match_schema() {
        let raw = schema_for_input::<Sample>().expect("an object");
        assert_eq!(
            accepted(&raw, "depth").as_deref(),
            Some("accepted: `quick` or `full`")
        );
        assert_eq!(
            accepted(&raw, "tries").as_deref(),
            Some("accepted: an integer from 1 to 10")
        );
        let root = accepted(&raw, "project_root");
        assert_eq!(
            root.as_deref(),
            Some("accepted: a string (Absolute path of the project)")
        );
        assert_eq!(example(&raw), json!({"project_root": "…", "tries": 1}));
    }
}
