//! Turns `--arg` and `--json` into the arguments of a tool. Rejects only what has no meaning on a
//! command line; the server checks whether the arguments fit the tool.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use serde_json::{Map, Value};

use supervisor_mcp::MAX_LINE;
use supervisor_skills::schema;
use supervisor_text::words;

/// Arguments as given on the command line, before the tool's schema is known.
#[derive(Debug)]
pub(super) enum RawArguments {
    /// In order; names may repeat.
    Pairs(Vec<(String, String)>),
    Json(Map<String, Value>),
}

#[derive(Debug, thiserror::Error)]
pub(super) enum ArgumentError {
    #[error("`--arg` and `--json` both give the arguments; use one of them")]
    Both,
    #[error(
        "`--arg {0}` has no name and `=`; write `--arg NAME=VALUE`, as in `--arg test_path=tests/add.rs`"
    )]
    NoName(String),
    #[error("`{name}` takes one value, and `--arg {name}=…` is there {times} times")]
    Repeated { name: String, times: usize },
    #[error("{from} cannot be read: {why}")]
    Unreadable { from: String, why: io::Error },
    #[error("{from} is longer than the {MAX_LINE} bytes a request may have")]
    TooLong { from: String },
    #[error("{from} is not JSON: {why}")]
    NotJson {
        from: String,
        why: serde_json::Error,
    },
    #[error(
        "{from} holds no JSON object; write the arguments as `{{\"test_path\": \"tests/add.rs\"}}`"
    )]
    NotAnObject { from: String },
    #[error(
        "arguments are there but no tool; write `supervisor call TOOL`, and `supervisor call` lists them"
    )]
    NoTool,
    #[error(
        "the current directory, which would be `project_root`, is not known: {0}; give `project_root`"
    )]
    NoDirectory(io::Error),
    #[error("`project_root` would be `{}`, which is not UTF-8, so it cannot be sent", .0.display())]
    NotText(PathBuf),
}

impl RawArguments {
    /// Parses the `--arg` values or reads the JSON file; `-` is stdin.
    pub(super) fn read(args: &[String], json: Option<&Path>) -> Result<Self, ArgumentError> {
        match json {
            Some(_) if !args.is_empty() => Err(ArgumentError::Both),
            Some(path) => read_json(path).map(Self::Json),
            None => args
                .iter()
                .map(|word| parse_pair(word))
                .collect::<Result<_, _>>()
                .map(Self::Pairs),
        }
    }

    /// Fails if there are arguments, for the case that no tool was named.
    pub(super) fn ensure_empty(self) -> Result<(), ArgumentError> {
        match self {
            Self::Pairs(pairs) if pairs.is_empty() => Ok(()),
            Self::Pairs(_) | Self::Json(_) => Err(ArgumentError::NoTool),
        }
    }

    /// Builds the arguments object. Values stay strings: the server parses `5` and `true` by its
    /// schema, as it does for any client.
    pub(super) fn into_arguments(
        self,
        schema: Option<&Map<String, Value>>,
    ) -> Result<Value, ArgumentError> {
        let mut arguments = match self {
            Self::Json(arguments) => arguments,
            Self::Pairs(pairs) => collect_pairs(pairs, schema)?,
        };
        if let Some(schema) = schema {
            resolve_project_root(&mut arguments, schema)?;
        }
        Ok(Value::Object(arguments))
    }
}

fn parse_pair(word: &str) -> Result<(String, String), ArgumentError> {
    let (name, value) = word.split_once('=').unwrap_or_default();
    if name.is_empty() {
        return Err(ArgumentError::NoName(words::short(word, 100)));
    }
    Ok((name.to_owned(), value.to_owned()))
}

fn read_json(path: &Path) -> Result<Map<String, Value>, ArgumentError> {
    let stdin = path.as_os_str() == "-";
    let from = if stdin {
        String::from("stdin")
    } else {
        format!("`{}`", words::plain(&path.to_string_lossy()))
    };
    // Read one byte more than allowed, to detect input that is too long.
    let limit = MAX_LINE as u64 + 1;
    let mut bytes = Vec::new();
    let read = if stdin {
        io::stdin().lock().take(limit).read_to_end(&mut bytes)
    } else {
        fs::File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes))
    };
    if let Err(why) = read {
        return Err(ArgumentError::Unreadable { from, why });
    }
    if bytes.len() > MAX_LINE {
        return Err(ArgumentError::TooLong { from });
    }
    match serde_json::from_slice(&bytes) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(_) => Err(ArgumentError::NotAnObject { from }),
        Err(why) => Err(ArgumentError::NotJson { from, why }),
    }
}

fn collect_pairs(
    pairs: Vec<(String, String)>,
    schema: Option<&Map<String, Value>>,
) -> Result<Map<String, Value>, ArgumentError> {
    let mut by_name: Vec<(String, Vec<String>)> = Vec::new();
    for (name, value) in pairs {
        match by_name.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => values.push(value),
            None => by_name.push((name, vec![value])),
        }
    }
    let mut arguments = Map::new();
    for (name, mut values) in by_name {
        let property = schema.and_then(|schema| schema::property(schema, &name));
        let value = match property {
            Some(property) if is_list(property, &values) => list_value(property, &values),
            Some(_) if values.len() > 1 => {
                return Err(ArgumentError::Repeated {
                    name,
                    times: values.len(),
                });
            }
            // The server explains unknown names.
            Some(_) | None => Value::String(values.swap_remove(0)),
        };
        arguments.insert(name, value);
    }
    Ok(arguments)
}

/// Whether these values are meant as a list. A single text stays a text where the tool takes both.
fn is_list(property: &Value, values: &[String]) -> bool {
    let is_single = values.len() == 1 && !values[0].trim_start().starts_with('[');
    schema::allows(property, "array") && !(is_single && schema::allows(property, "string"))
}

/// Each value is one element, or a JSON array of several.
fn list_value(property: &Value, values: &[String]) -> Value {
    let takes_strings = property
        .get("items")
        .is_none_or(|items| schema::allows(items, "string"));
    let element = |value: &String| match serde_json::from_str(value) {
        Ok(parsed) if !takes_strings => parsed,
        _ => Value::String(value.clone()),
    };
    let elements = values
        .iter()
        .flat_map(|value| match serde_json::from_str(value) {
            Ok(Value::Array(several)) => several,
            _ => vec![element(value)],
        });
    Value::Array(elements.collect())
}

/// Resolves `project_root` against the current directory, which is also the default. An MCP client
/// has no current directory, so the server requires an absolute path.
fn resolve_project_root(
    arguments: &mut Map<String, Value>,
    schema: &Map<String, Value>,
) -> Result<(), ArgumentError> {
    const NAME: &str = "project_root";
    let required = schema
        .get("required")
        .and_then(Value::as_array)
        .is_some_and(|all| all.iter().any(|n| n == NAME));
    let path_arg = match arguments.get(NAME) {
        None if required => ".",
        // An empty value is probably an unset shell variable, so it does not mean the current
        // directory.
        Some(Value::String(path))
            if !path.is_empty() && schema::property(schema, NAME).is_some() =>
        {
            path
        }
        _ => return Ok(()),
    };
    if Path::new(path_arg).is_absolute() {
        return Ok(());
    }
    let path = env::current_dir()
        .map_err(ArgumentError::NoDirectory)?
        .join(path_arg);
    // Keep a path that does not exist, so that the server's error names it.
    let path = path.canonicalize().unwrap_or(path);
    let text = path
        .to_str()
        .ok_or_else(|| ArgumentError::NotText(path.clone()))?;
    arguments.insert(NAME.into(), text.into());
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({
            "properties": {
                "project_root": {"type": "string"}, "spec": {"type": "string"}, "times": {"type": "integer"},
                "files": {"type": "array", "items": {"type": "string"}},
                "lines": {"type": "array", "items": {"type": "integer"}},
                "both": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
            },
            "required": ["project_root", "spec"],
        })
    }

    fn arguments(words: &[&str]) -> Result<Value, ArgumentError> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        RawArguments::read(&words, None)?.into_arguments(schema().as_object())
    }

    #[test]
    fn repeated_name_makes_list_if_tool_allows() {
        let cases = [
            (&["files=a"][..], json!(["a"])),
            (&["files=a", "spec=s", "files=b=c"], json!(["a", "b=c"])),
            (&[r#"files=["a","b"]"#], json!(["a", "b"])),
            (&[r#"files=["a"]"#, "files=7"], json!(["a", "7"])),
            (&["files=[x"], json!(["[x"])),
        ];
        for (words, files) in cases {
            assert_eq!(
                arguments(words).expect("clear")["files"],
                files,
                "{words:?}"
            );
        }
        assert_eq!(
            arguments(&["lines=3", "lines=4"]).expect("clear")["lines"],
            json!([3, 4])
        );
        for (words, both) in [
            (&["both=a"][..], json!("a")),
            (&["both=a", "both=b"], json!(["a", "b"])),
            (&[r#"both=["a"]"#], json!(["a"])),
        ] {
            assert_eq!(arguments(words).expect("clear")["both"], both);
        }
        let refused = arguments(&["spec=a", "spec=b"]).expect_err("one value");
        assert_eq!(
            refused.to_string(),
            "`spec` takes one value, and `--arg spec=…` is there 2 times"
        );
    }

    #[test]
    fn value_is_verbatim_and_name_required() {
        assert_eq!(
            arguments(&["spec=a = b\n"]).expect("clear")["spec"],
            "a = b\n"
        );
        assert_eq!(arguments(&["spec="]).expect("clear")["spec"], "");
        for wrong in ["spec", "=x", ""] {
            assert!(
                matches!(arguments(&[wrong]), Err(ArgumentError::NoName(_))),
                "{wrong}"
            );
        }
    }

    #[test]
    fn project_root_defaults_to_current_directory() {
        let here = env::current_dir()
            .and_then(|path| path.canonicalize())
            .expect("a directory");
        let root = |words: &[&str]| arguments(words).expect("clear")["project_root"].clone();
        assert_eq!(root(&[]), json!(here));
        assert_eq!(root(&["project_root=."]), json!(here));
        assert_eq!(root(&["project_root=src/.."]), json!(here));
        assert_eq!(root(&["project_root=no/such"]), json!(here.join("no/such")));
        assert_eq!(
            root(&["project_root=/p/../q"]),
            "/p/../q",
            "as it was written"
        );
        assert_eq!(
            root(&["project_root="]),
            "",
            "a variable that was not set names no project"
        );
    }
}
