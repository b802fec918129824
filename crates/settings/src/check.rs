//! Checks one layer of settings against the table of keys and reports all problems at once.
//! References between models, backends and chains are checked in `fit`.

use std::path::Path;

use figment::value::{Dict, Num, Value};
use url::Url;

use super::error::{Fault, is_secret_name, looks_secret, quote_name};
use super::keys::{self, KeyLookup, Kind};
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

/// Checks that `value` is valid for a key of this kind.
pub(crate) fn check_value(kind: Kind, value: &Value) -> Result<(), Fault> {
    let wrong = || Fault::WrongType {
        expected: expected(kind),
        found: describe_type(value),
    };
    let text = || value.as_str().ok_or_else(wrong);
    let ensure = |is_valid: bool, fault: Fault| if is_valid { Ok(()) } else { Err(fault) };
    match kind {
        Kind::Text => ensure(!text()?.trim().is_empty(), Fault::Empty),
        Kind::OneOf(words) => ensure(
            words.contains(&text()?),
            Fault::NotOneOf {
                expected: expected(kind),
                found: text()?.to_owned(),
            },
        ),
        Kind::Url => ensure(is_address(text()?), Fault::NotAnAddress),
        Kind::Path => ensure(
            text()?.is_empty() || Path::new(text()?).is_absolute(),
            Fault::NotAbsolute,
        ),
        Kind::Program => ensure(is_program(text()?), Fault::NotAProgram),
        Kind::Variable => ensure(
            text()?.is_empty() || is_key_variable(text()?),
            Fault::NotAVariable,
        ),
        Kind::Variables => check_each(value, wrong, |v| {
            ensure(is_variable(v), Fault::NotAVariable)
        }),
        Kind::Models => check_each(value, wrong, |v| {
            ensure(!v.is_empty() && !v.contains('*'), Fault::NotAName)
        }),
        Kind::Patterns => check_each(value, wrong, |v| ensure(is_pattern(v), Fault::NotAPattern)),
        Kind::Texts => check_each(value, wrong, |v| ensure(!v.is_empty(), Fault::Empty)),
        Kind::Count(low, high) => {
            let n = as_integer(value).ok_or_else(wrong)?;
            ensure(
                (i128::from(low)..=i128::from(high)).contains(&n),
                out_of_bounds(kind, &n),
            )
        }
        Kind::Seconds(low) => {
            let n = as_float(value).ok_or_else(wrong)?;
            ensure((low..=MAX_SECONDS).contains(&n), out_of_bounds(kind, &n))
        }
        Kind::Money => {
            let n = as_float(value).ok_or_else(wrong)?;
            ensure((0.0..=MAX_USD).contains(&n), out_of_bounds(kind, &n))
        }
        Kind::Temperature => {
            let n = as_float(value).ok_or_else(wrong)?;
            ensure((0.0..=2.0).contains(&n), out_of_bounds(kind, &n))
        }
        Kind::Switch => match value {
            Value::Bool(..) => Ok(()),
            _ => Err(Fault::NotOneOf {
                expected: expected(kind),
                found: text()?.to_owned(),
            }),
        },
        Kind::Recall => match value {
            Value::Bool(..) => Ok(()),
            _ => ensure(
                text()? == "session",
                Fault::NotOneOf {
                    expected: expected(kind),
                    found: text()?.to_owned(),
                },
            ),
        },
    }
}

/// Describes the values that a key of this kind takes.
pub(crate) fn expected(kind: Kind) -> String {
    match kind {
        Kind::Text => "a text".into(),
        Kind::OneOf(list) => words::one_of(list.iter().copied()),
        Kind::Url => "an address".into(),
        Kind::Path => "an absolute path".into(),
        Kind::Program => "a program".into(),
        Kind::Variable => "the name of a variable".into(),
        Kind::Variables => "a list of names of variables".into(),
        Kind::Models => "a list of model names".into(),
        Kind::Patterns => "a list of model names or patterns".into(),
        Kind::Texts => "a list of texts".into(),
        Kind::Count(low, high) if high >= i64::MAX as u64 => {
            format!("a whole number from {low} on")
        }
        Kind::Count(low, high) => format!("a whole number from {low} to {high}"),
        Kind::Seconds(low) => format!("seconds, {low} or more and at most a year"),
        Kind::Money => "an amount of USD, 0 or more".into(),
        Kind::Temperature => "a number from 0 to 2".into(),
        Kind::Switch => "true or false".into(),
        Kind::Recall => "true, false or `session`".into(),
    }
}

const MAX_SECONDS: f64 = 31_536_000.0;
const MAX_USD: f64 = 1e9;

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
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match keys::lookup(&path) {
        KeyLookup::Leaf(key) => check_value(key.kind, value).err().map(|fault| {
            let hint = hint_for(key.kind, &fault);
            (fault, hint)
        }),
        KeyLookup::Unknown => Some(unknown_key(&path, value)),
        KeyLookup::Table if value.as_dict().is_none() => {
            let expected = format!("a table: [{}]", keys::toml_path(&path));
            Some((
                Fault::WrongType {
                    expected,
                    found: describe_type(value),
                },
                None,
            ))
        }
        KeyLookup::Table => match path[..] {
            ["skills", skill] if keys::SKILLS.iter().all(|(known, _)| *known != skill) => {
                let known = || keys::SKILLS.iter().map(|(name, _)| *name);
                let hint = match words::did_you_mean(skill, known()) {
                    Some(suggestion) => format!("did you mean `skills.{suggestion}`?"),
                    None => format!("there is {}", words::one_of(known())),
                };
                Some((Fault::UnknownSkill, Some(hint)))
            }
            ["backends" | "models", ""] => Some((Fault::Empty, Some("a name stands there".into()))),
            _ => None,
        },
    }
}

fn unknown_key(path: &[&str], value: &Value) -> (Fault, Option<String>) {
    let (last, table) = path.split_last().expect("a path has at least one part");
    // A number is not a secret but probably a count, such as a misspelt `call_tokens`.
    if is_secret_name(last) && !matches!(value, Value::Num(..)) {
        let hint =
            "put the key into a variable and name that variable in `api_key_env` of the backend";
        return (Fault::Secret, Some(hint.into()));
    }
    let siblings = keys::children(table);
    let full = |name: &str| keys::toml_path(&[table, &[name]].concat());
    let elsewhere = keys::KEYS
        .iter()
        .find(|k| k.path.last() == Some(last))
        .map(|k| k.path.join("."));
    let hint = match words::did_you_mean(last, siblings.iter().copied()) {
        Some(suggestion) => format!("did you mean `{}`?", full(suggestion)),
        None => match elsewhere {
            Some(path) => format!("`{last}` belongs at `{path}`"),
            None => format!("known here: {}", siblings.join(", ")),
        },
    };
    (Fault::UnknownKey, Some(hint))
}

pub(crate) fn hint_for(kind: Kind, fault: &Fault) -> Option<String> {
    match (kind, fault) {
        (Kind::OneOf(list), Fault::NotOneOf { found, .. }) => {
            words::did_you_mean(found, list.iter().copied())
                .map(|suggestion| format!("did you mean {}?", quote_name(suggestion)))
        }
        (Kind::Variable, Fault::NotAVariable) => Some(
            "write the key into a variable, `LITELLM_API_KEY` for one, and that name here".into(),
        ),
        (
            Kind::Models | Kind::Patterns | Kind::Texts | Kind::Variables,
            Fault::WrongType { .. },
        ) => Some(r#"write it as ["a", "b"]"#.into()),
        (
            Kind::Count(..) | Kind::Seconds(_) | Kind::Money | Kind::Temperature,
            Fault::WrongType {
                found: "a text", ..
            },
        ) => Some("write the number without quotes".into()),
        _ => None,
    }
}

fn out_of_bounds(kind: Kind, found: &dyn ToString) -> Fault {
    Fault::OutOfBounds {
        expected: expected(kind),
        found: Some(found.to_string()),
    }
}

fn check_each<W: Fn() -> Fault>(
    value: &Value,
    wrong: W,
    check: impl Fn(&str) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let list = value.as_array().ok_or_else(&wrong)?;
    list.iter()
        .try_for_each(|item| check(item.as_str().ok_or_else(&wrong)?))
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
