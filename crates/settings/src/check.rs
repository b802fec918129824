//! Checks one layer of settings against the table of keys and reports all problems at once.
//! References between models, backends and chains are checked in `fit`.

use std::path::Path;

use figment::value::{Dict, Num, Value};
use url::Url;

use super::error::{Fault, is_secret_name, looks_secret, quote_name};
use super::keys::{self, KeyLookup, Kind, Unit};
use supervisor_text::words;

/// A fault at a path.
pub(crate) struct KeyProblem {
    pub path: Vec<String>,
    pub fault: Fault,
    pub hint: Option<String>,
}

/// Everything in `layer` that is not a known key, or has an invalid value.
pub(crate) fn find_problems(layer: &Dict) -> Vec<KeyProblem> {
    let mut found = Vec::new();
    collect_problems(&mut Vec::new(), layer, &mut found);
    found
}

/// A kind of text: what it is called in messages, and which texts are valid.
#[derive(Debug)]
pub(crate) struct TextFormat {
    /// `format` in the schema.
    pub name: &'static str,
    expected: &'static str,
    fault: Fault,
    is_valid: fn(&str) -> bool,
}

/// Formats of texts and of lists of texts.
const TEXT_FORMATS: &[TextFormat] = &[
    TextFormat {
        name: "text",
        expected: "a text",
        fault: Fault::Empty,
        is_valid: |text| !text.trim().is_empty(),
    },
    TextFormat {
        name: "address",
        expected: "an address",
        fault: Fault::NotAnAddress,
        is_valid: is_address,
    },
    TextFormat {
        name: "database",
        expected: "the address of a Postgres database",
        fault: Fault::NotADatabase,
        is_valid: is_database,
    },
    TextFormat {
        name: "engine",
        expected: "an address such as grpc://host:port",
        fault: Fault::NotAnEngine,
        is_valid: |text| {
            let place = ["grpc://", "grpcs://"].into_iter();
            let mut place = place.filter_map(|scheme| text.strip_prefix(scheme));
            text.is_empty() || place.any(|place| !place.is_empty() && !place.contains('@'))
        },
    },
    TextFormat {
        name: "optional-text",
        expected: "a text",
        fault: Fault::Empty,
        is_valid: |_| true,
    },
    TextFormat {
        name: "path",
        expected: "an absolute path",
        fault: Fault::NotAbsolute,
        is_valid: |text| text.is_empty() || Path::new(text).is_absolute(),
    },
    TextFormat {
        name: "program",
        expected: "a program",
        fault: Fault::NotAProgram,
        is_valid: is_program,
    },
    TextFormat {
        name: "variable",
        expected: "the name of a variable",
        fault: Fault::NotAVariable,
        is_valid: |text| text.is_empty() || is_key_variable(text),
    },
    TextFormat {
        name: "texts",
        expected: "a list of texts",
        fault: Fault::Empty,
        is_valid: |text| !text.is_empty(),
    },
    TextFormat {
        name: "variables",
        expected: "a list of names of variables",
        fault: Fault::NotAVariable,
        is_valid: is_variable,
    },
    TextFormat {
        name: "paths",
        expected: "a list of absolute paths",
        fault: Fault::NotAbsolute,
        is_valid: |text| Path::new(text).is_absolute(),
    },
    TextFormat {
        name: "models",
        expected: "a list of model names",
        fault: Fault::NotAName,
        is_valid: |text| !text.is_empty() && !text.contains('*'),
    },
    TextFormat {
        name: "patterns",
        expected: "a list of model names or patterns",
        fault: Fault::NotAPattern,
        is_valid: is_pattern,
    },
];

fn is_database(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| {
        matches!(url.scheme(), "postgres" | "postgresql")
            && url.password().is_none()
            && url.query_pairs().all(|(key, _)| key != "password")
    })
}

/// The format that a schema names.
pub(crate) fn text_format(name: &str) -> &'static TextFormat {
    let mut formats = TEXT_FORMATS.iter();
    let found = formats.find(|format| format.name == name);
    found.unwrap_or_else(|| unreachable!("no text format `{name}`; a test builds all keys"))
}

/// Checks that `value` is valid for a key of this kind.
pub(crate) fn check_value(kind: &Kind, value: &Value) -> Result<(), Fault> {
    let expected = || expected(kind);
    let wrong = || Fault::WrongType {
        expected: expected(),
        found: describe_type(value),
    };
    let check_text = |format: &TextFormat, value: &Value| {
        let is_valid = (format.is_valid)(value.as_str().ok_or_else(wrong)?);
        is_valid.then_some(()).ok_or_else(|| format.fault.clone())
    };
    let out_of_bounds = |n: &dyn ToString| Fault::OutOfBounds {
        expected: expected(),
        found: Some(n.to_string()),
    };
    match kind {
        Kind::Text(format) => check_text(format, value),
        Kind::List(format) => {
            let list = value.as_array().ok_or_else(wrong)?;
            list.iter().try_for_each(|item| check_text(format, item))
        }
        Kind::Switch(_) if matches!(value, Value::Bool(..)) => Ok(()),
        Kind::OneOf(words) | Kind::Switch(words) => {
            let found = value.as_str().ok_or_else(wrong)?;
            let is_known = words.iter().any(|word| word == found);
            is_known.then_some(()).ok_or_else(|| Fault::NotOneOf {
                expected: expected(),
                found: found.to_owned(),
            })
        }
        Kind::CountOr(_, _, words)
            if value
                .as_str()
                .is_some_and(|text| words.iter().any(|word| word == text)) =>
        {
            Ok(())
        }
        Kind::Count(low, high) | Kind::CountOr(low, high, _) => {
            let n = as_integer(value).ok_or_else(wrong)?;
            let is_within = (i128::from(*low)..=i128::from(*high)).contains(&n);
            is_within.then_some(()).ok_or_else(|| out_of_bounds(&n))
        }
        Kind::Number(low, high, _) => {
            let n = as_float(value).ok_or_else(wrong)?;
            let is_within = (*low..=*high).contains(&n);
            is_within.then_some(()).ok_or_else(|| out_of_bounds(&n))
        }
    }
}

/// Describes the values that a key of this kind takes.
pub(crate) fn expected(kind: &Kind) -> String {
    let one_of = |words: &[String]| words::one_of(words.iter().map(String::as_str));
    match kind {
        Kind::Text(format) | Kind::List(format) => format.expected.into(),
        Kind::OneOf(words) => one_of(words),
        Kind::Switch(words) if words.is_empty() => "true or false".into(),
        Kind::Switch(words) => format!("true, false or {}", one_of(words)),
        Kind::Count(low, keys::MAX_INTEGER) => format!("a whole number from {low} on"),
        Kind::Count(low, high) => format!("a whole number from {low} to {high}"),
        Kind::CountOr(low, high, words) => {
            format!("a whole number from {low} to {high} or {}", one_of(words))
        }
        Kind::Number(low, _, Unit::Seconds) => {
            format!("seconds, {low} or more and at most a year")
        }
        Kind::Number(low, _, Unit::Usd) => format!("an amount of USD, {low} or more"),
        Kind::Number(low, high, Unit::None) => format!("a number from {low} to {high}"),
    }
}

fn collect_problems(path: &mut Vec<String>, table: &Dict, found: &mut Vec<KeyProblem>) {
    for (key, value) in table {
        path.push(key.clone());
        if let Some((fault, hint)) = problem_at(path, value) {
            found.push(KeyProblem {
                path: path.clone(),
                fault,
                hint,
            });
        } else if let Value::Dict(_, inner) = value {
            collect_problems(path, inner, found);
        }
        path.pop();
    }
}

fn problem_at(path: &[String], value: &Value) -> Option<(Fault, Option<String>)> {
    match keys::lookup(path) {
        KeyLookup::Leaf(key) => {
            let fault = check_value(&key.kind, value).err()?;
            let hint = hint_for(&key.kind, &fault);
            Some((fault, hint))
        }
        KeyLookup::Unknown => Some(unknown_key(path, value)),
        KeyLookup::Table if value.as_dict().is_none() => {
            let fault = Fault::WrongType {
                expected: format!("a table: [{}]", keys::toml_path(path)),
                found: describe_type(value),
            };
            Some((fault, None))
        }
        KeyLookup::Table => match path {
            [table, skill] if table == "skills" && !keys::skills().any(|known| known == skill) => {
                let hint = match words::did_you_mean(skill, keys::skills()) {
                    Some(suggestion) => format!("did you mean `skills.{suggestion}`?"),
                    None => format!("there is {}", words::one_of(keys::skills())),
                };
                Some((Fault::UnknownSkill, Some(hint)))
            }
            [_, name] if name.is_empty() => {
                Some((Fault::Empty, Some("a name stands there".into())))
            }
            _ => None,
        },
    }
}

fn unknown_key(path: &[String], value: &Value) -> (Fault, Option<String>) {
    let (last, table) = path.split_last().expect("a path has at least one part");
    // A number is not a secret but probably a count, such as a misspelt `call_tokens`.
    if is_secret_name(last) && !matches!(value, Value::Num(..)) {
        let hint =
            "put the key into a variable and name that variable in `api_key_env` of the backend";
        return (Fault::Secret, Some(hint.into()));
    }
    let siblings = keys::children(table);
    let elsewhere = keys::KEYS.iter().find(|key| key.path.last() == Some(last));
    let hint = match words::did_you_mean(last, siblings.iter().copied()) {
        Some(suggestion) => {
            let path = [table, &[suggestion.to_owned()]].concat();
            format!("did you mean `{}`?", keys::toml_path(&path))
        }
        None => match elsewhere {
            Some(key) => format!("`{last}` belongs at `{}`", key.path.join(".")),
            None => format!("known here: {}", siblings.join(", ")),
        },
    };
    (Fault::UnknownKey, Some(hint))
}

pub(crate) fn hint_for(kind: &Kind, fault: &Fault) -> Option<String> {
    let hint = match (kind, fault) {
        (Kind::OneOf(list), Fault::NotOneOf { found, .. }) => {
            let suggestion = words::did_you_mean(found, list.iter().map(String::as_str))?;
            return Some(format!("did you mean {}?", quote_name(suggestion)));
        }
        (Kind::Text(_), Fault::NotAVariable) => {
            "write the key into a variable, `LITELLM_API_KEY` for one, and that name here"
        }
        (Kind::List(_), Fault::WrongType { .. }) => r#"write it as ["a", "b"]"#,
        (
            Kind::Count(..) | Kind::Number(..),
            Fault::WrongType {
                found: "a text", ..
            },
        ) => "write the number without quotes",
        _ => return None,
    };
    Some(hint.into())
}

fn as_integer(value: &Value) -> Option<i128> {
    match value {
        Value::Num(_, n) => n
            .to_i128()
            .or_else(|| n.to_u128().and_then(|n| i128::try_from(n).ok())),
        _ => None,
    }
}

fn as_float(value: &Value) -> Option<f64> {
    match value {
        Value::Num(_, Num::F32(_) | Num::F64(_)) => value.to_f64(),
        Value::Num(..) => as_integer(value).map(|n| n as f64),
        _ => None,
    }
}

fn describe_type(value: &Value) -> &'static str {
    match value {
        Value::String(..) | Value::Char(..) => "a text",
        Value::Bool(..) => "true or false",
        Value::Num(_, Num::F32(_) | Num::F64(_)) => "a fraction",
        Value::Num(..) => "a number",
        Value::Empty(..) => "nothing",
        Value::Dict(..) => "a table",
        Value::Array(_, list) if list.iter().any(|item| item.as_str().is_none()) => {
            "a list with something else in it"
        }
        Value::Array(..) => "a list",
    }
}

fn is_address(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
    })
}

fn is_program(text: &str) -> bool {
    !text.is_empty() && (!text.contains('/') || Path::new(text).is_absolute())
}

fn is_variable(text: &str) -> bool {
    !looks_secret(text)
        && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Capitals only: a key pasted here by mistake would contain lowercase letters.
fn is_key_variable(text: &str) -> bool {
    is_variable(text) && !text.contains(|c: char| c.is_ascii_lowercase())
}

fn is_pattern(text: &str) -> bool {
    !text.is_empty() && !text.strip_suffix('*').unwrap_or(text).contains('*')
}
