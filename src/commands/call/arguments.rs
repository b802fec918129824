//! What was written on the command line, as the arguments of a tool. Says what the shell's form cannot mean;
//! whether the arguments fit the tool is for the server to say.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use serde_json::{Map, Value};

use supervisor_mcp::MAX_LINE;
use supervisor_skills::schema;
use supervisor_text::words;

/// Arguments as they were given, before the tool is known.
#[derive(Debug)]
pub(super) enum GivenArguments {
    /// In order; a name may come again.
    Pairs(Vec<(String, String)>),
    Whole(Map<String, Value>),
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Unclear {
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
    #[error("{from} is no JSON: {why}")]
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
    #[error("`project_root` would be `{}`, which is no UTF-8 and so cannot be sent", .0.display())]
    NotText(PathBuf),
}

impl GivenArguments {
    /// Takes the words apart, or reads the file; `-` is stdin.
    pub(super) fn read(args: &[String], json: Option<&Path>) -> Result<Self, Unclear> {
        match json {
            Some(_) if !args.is_empty() => Err(Unclear::Both),
            Some(path) => whole(path).map(Self::Whole),
            None => args
                .iter()
                .map(|word| pair(word))
                .collect::<Result<_, _>>()
                .map(Self::Pairs),
        }
    }

    /// Arguments need a tool.
    pub(super) fn none_without_a_tool(self) -> Result<(), Unclear> {
        match self {
            Self::Pairs(pairs) if pairs.is_empty() => Ok(()),
            Self::Pairs(_) | Self::Whole(_) => Err(Unclear::NoTool),
        }
    }

    /// The arguments object. Texts stay texts: the server reads `5` and `true` by its schema, as it does for any client.
    pub(super) fn for_tool(self, schema: Option<&Map<String, Value>>) -> Result<Value, Unclear> {
        let mut arguments = match self {
            Self::Whole(arguments) => arguments,
            Self::Pairs(pairs) => gathered(pairs, schema)?,
        };
        if let Some(schema) = schema {
            with_project_root(&mut arguments, schema)?;
        }
        Ok(Value::Object(arguments))
    }
}

fn pair(word: &str) -> Result<(String, String), Unclear> {
    let (name, value) = word.split_once('=').unwrap_or_default();
    if name.is_empty() {
        return Err(Unclear::NoName(
            words::cut_end(&words::plain(word), 100).into_owned(),
        ));
    }
    Ok((name.to_owned(), value.to_owned()))
}

fn whole(path: &Path) -> Result<Map<String, Value>, Unclear> {
    let stdin = path.as_os_str() == "-";
    let from = if stdin {
        String::from("stdin")
    } else {
        format!("`{}`", words::plain(&path.to_string_lossy()))
    };
    // One byte more than fits, so that what is too long shows.
    let most = MAX_LINE as u64 + 1;
    let mut bytes = Vec::new();
    let read = if stdin {
        io::stdin().lock().take(most).read_to_end(&mut bytes)
    } else {
        fs::File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes))
    };
    if let Err(why) = read {
        return Err(Unclear::Unreadable { from, why });
    }
    if bytes.len() > MAX_LINE {
        return Err(Unclear::TooLong { from });
    }
    match serde_json::from_slice(&bytes) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(_) => Err(Unclear::NotAnObject { from }),
        Err(why) => Err(Unclear::NotJson { from, why }),
    }
}

fn gathered(
    pairs: Vec<(String, String)>,
    schema: Option<&Map<String, Value>>,
) -> Result<Map<String, Value>, Unclear> {
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
            Some(property) if schema::allows(property, "array") => list(property, &values),
            Some(_) if values.len() > 1 => {
                return Err(Unclear::Repeated {
                    name,
                    times: values.len(),
                });
            }
            // An unknown name is the server's to explain.
            Some(_) | None => Value::String(values.swap_remove(0)),
        };
        arguments.insert(name, value);
    }
    Ok(arguments)
}

/// Each value is an element, or JSON for several.
fn list(property: &Value, values: &[String]) -> Value {
    let texts = property
        .get("items")
        .is_none_or(|items| schema::allows(items, "string"));
    let element = |value: &String| match serde_json::from_str(value) {
        Ok(parsed) if !texts => parsed,
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

/// A shell stands somewhere, a client does not: so `.` has a meaning here, and nothing at all has the same.
fn with_project_root(
    arguments: &mut Map<String, Value>,
    schema: &Map<String, Value>,
) -> Result<(), Unclear> {
    const NAME: &str = "project_root";
    let required = schema
        .get("required")
        .and_then(Value::as_array)
        .is_some_and(|all| all.iter().any(|n| n == NAME));
    let written = match arguments.get(NAME) {
        None if required => ".",
        // Empty is a variable that was not set, hardly the wish to work here.
        Some(Value::String(path))
            if !path.is_empty() && schema::property(schema, NAME).is_some() =>
        {
            path
        }
        _ => return Ok(()),
    };
    if Path::new(written).is_absolute() {
        return Ok(());
    }
    let path = env::current_dir()
        .map_err(Unclear::NoDirectory)?
        .join(written);
    // One that does not exist is named as it would be.
    let path = path.canonicalize().unwrap_or(path);
    let text = path
        .to_str()
        .ok_or_else(|| Unclear::NotText(path.clone()))?;
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
            },
            "required": ["project_root", "spec"],
        })
    }

    fn arguments(words: &[&str]) -> Result<Value, Unclear> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        GivenArguments::read(&words, None)?.for_tool(schema().as_object())
    }

    #[test]
    fn a_name_again_makes_a_list_where_the_tool_takes_one() {
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
        let refused = arguments(&["spec=a", "spec=b"]).expect_err("one value");
        assert_eq!(
            refused.to_string(),
            "`spec` takes one value, and `--arg spec=…` is there 2 times"
        );
    }

    #[test]
    fn a_value_is_taken_whole_and_a_name_is_needed() {
        assert_eq!(
            arguments(&["spec=a = b\n"]).expect("clear")["spec"],
            "a = b\n"
        );
        assert_eq!(arguments(&["spec="]).expect("clear")["spec"], "");
        for wrong in ["spec", "=x", ""] {
            assert!(
                matches!(arguments(&[wrong]), Err(Unclear::NoName(_))),
                "{wrong}"
            );
        }
    }

    #[test]
    fn the_project_is_where_the_shell_stands_unless_it_is_named() {
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
