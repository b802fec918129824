//! Reads the environment: which variable sets which key, and to what.
//! The key's kind decides how a value is read, so `007` stays a text where a text is meant and `a,b` is a list.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};

use figment::value::{Dict, Value};

use super::check;
use super::error::{Fault, Origin, Problem, Warning, names_secret};
use super::keys::{self, ALIASES, ELSEWHERE, KEYS, Kind, PREFIX};
use supervisor_text::words;

/// One variable that sets one key.
pub struct Setting {
    pub variable: String,
    pub path: Vec<String>,
    pub value: Value,
}

/// The names that variables can refer to, because a file gives them.
pub struct KnownNames {
    pub backends: BTreeSet<String>,
    pub models: BTreeSet<String>,
}

/// What the environment says. Later settings win over earlier ones.
#[derive(Default)]
pub struct EnvironmentReading {
    pub settings: Vec<Setting>,
    pub problems: Vec<Problem>,
    pub warnings: Vec<Warning>,
}

/// Reads everything but `SUPERVISOR_MODELS__…`, whose names depend on the chains the rest may set.
/// What is named is asked for only if there is something to read: most environments say nothing about us.
pub fn general(env: &Environment, named: &dyn Fn() -> KnownNames) -> EnvironmentReading {
    let mut read = EnvironmentReading::default();
    for (alias, path) in ALIASES {
        if let Some(value) = env.get(OsStr::new(alias)).filter(|v| !v.is_empty()) {
            let path: Vec<String> = path.iter().map(|&s| s.to_owned()).collect();
            read.take(alias, path, value);
        }
    }
    read.all(
        ours(env)
            .filter(|(name, _)| !name.starts_with(MODELS))
            .collect(),
        named,
    );
    read
}

/// Reads `SUPERVISOR_MODELS__…` against all model names known by now.
pub fn models(env: &Environment, named: &dyn Fn() -> KnownNames) -> EnvironmentReading {
    let mut read = EnvironmentReading::default();
    read.all(
        ours(env)
            .filter(|(name, _)| name.starts_with(MODELS))
            .collect(),
        named,
    );
    read
}

type Environment = BTreeMap<OsString, OsString>;

impl Setting {
    /// The setting as a layer of its own, so that the variable's name stays with the value.
    pub fn layer(&self) -> Dict {
        let (last, tables) = self.path.split_last().expect("a key has a name");
        let leaf = Dict::from([(last.clone(), self.value.clone())]);
        tables.iter().rev().fold(leaf, |inner, table| {
            Dict::from([(table.clone(), Value::from(inner))])
        })
    }
}

impl EnvironmentReading {
    fn all(&mut self, variables: Vec<(String, &OsString)>, named: &dyn Fn() -> KnownNames) {
        if variables.is_empty() {
            return;
        }
        let named = named();
        for (name, value) in variables {
            match target(&name, &named) {
                Target::Key(path) => self.take(&name, path, value),
                Target::Nothing => self.stray(&name, value, &named),
                Target::Several(candidates) => self.ambiguous(&name, candidates),
            }
        }
    }

    fn take(&mut self, variable: &str, path: Vec<String>, value: &OsString) {
        let parts: Vec<&str> = path.iter().map(String::as_str).collect();
        let keys::Place::Leaf(key) = keys::place(&parts) else {
            unreachable!("targets are keys")
        };
        let parsed = value
            .to_str()
            .ok_or(Fault::NotUtf8)
            .and_then(|text| parse(key.kind, text));
        match parsed {
            Ok(value) => self.settings.push(Setting {
                variable: variable.to_owned(),
                path,
                value,
            }),
            Err(fault) => {
                let hint = check::hint_for(key.kind, &fault);
                self.problem(variable, Some(keys::shown(&path)), fault, hint);
            }
        }
    }

    fn stray(&mut self, variable: &str, value: &OsString, named: &KnownNames) {
        // A number is no secret but a count, such as a misspelt `CALL_TOKENS`.
        let number = value
            .to_str()
            .is_some_and(|text| text.trim().parse::<f64>().is_ok());
        if names_secret(variable) && variable.contains("__") && !number {
            let hint = "put the key into a variable that `api_key_env` of the backend names, such as LITELLM_API_KEY";
            return self.problem(variable, None, Fault::Secret, Some(hint.into()));
        }
        // Without the prefix, which they all share and which would make everything look near.
        let known = known(named);
        let names = known.iter().map(|name| &name[PREFIX.len()..]);
        let meant = words::did_you_mean(&variable[PREFIX.len()..], names)
            .map(|name| format!("{PREFIX}{name}"));
        self.warnings.push(Warning::Stray {
            variable: variable.to_owned(),
            meant,
        });
    }

    fn ambiguous(&mut self, variable: &str, candidates: Vec<String>) {
        let hint = "set it in a file, where the name is exact";
        self.problem(
            variable,
            None,
            Fault::Ambiguous(candidates),
            Some(hint.into()),
        );
    }

    fn problem(&mut self, variable: &str, key: Option<String>, fault: Fault, hint: Option<String>) {
        self.problems.push(Problem {
            origin: Origin::Variable(variable.to_owned()),
            key,
            fault,
            hint,
        });
    }
}

const MODELS: &str = "SUPERVISOR_MODELS__";

enum Target {
    Key(Vec<String>),
    Several(Vec<String>),
    Nothing,
}

/// Variables with our prefix that no other part of the program reads; empty ones count as unset.
fn ours(env: &Environment) -> impl Iterator<Item = (String, &OsString)> {
    env.iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value))
        .filter(|(name, _)| name.starts_with(PREFIX) && !keys::is_read_elsewhere(name))
}

fn target(variable: &str, named: &KnownNames) -> Target {
    let rest = &variable[PREFIX.len()..];
    let names: Vec<String> = match rest.split_once("__") {
        Some(("MODELS", _)) => named.models.iter().cloned().collect(),
        Some(("BACKENDS", _)) => named.backends.iter().cloned().collect(),
        Some(("SKILLS", _)) => keys::SKILLS
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .collect(),
        _ => Vec::new(),
    };
    let mut found: Vec<Vec<String>> = KEYS.iter().flat_map(|key| spelled(key, &names)).collect();
    found.retain(|path| keys::variable(path) == variable);
    match found.len() {
        0 => Target::Nothing,
        1 => Target::Key(found.remove(0)),
        _ => Target::Several(found.iter().map(|path| keys::shown(path)).collect()),
    }
}

/// The key's path for each name that can stand for its `*`.
fn spelled(key: &'static keys::Key, names: &[String]) -> Vec<Vec<String>> {
    let with = |name: &str| {
        key.path
            .iter()
            .map(|&s| {
                if s == "*" {
                    name.to_owned()
                } else {
                    s.to_owned()
                }
            })
            .collect()
    };
    if key.path.contains(&"*") {
        names.iter().map(|name| with(name)).collect()
    } else {
        vec![with("")]
    }
}

/// Every variable that would set something now.
fn known(named: &KnownNames) -> Vec<String> {
    let lists = [
        (
            "backends",
            named.backends.iter().cloned().collect::<Vec<_>>(),
        ),
        ("models", named.models.iter().cloned().collect()),
        (
            "skills",
            keys::SKILLS
                .iter()
                .map(|(name, _)| (*name).to_owned())
                .collect(),
        ),
    ];
    let names = |key: &keys::Key| {
        lists
            .iter()
            .find(|(table, _)| key.path[0] == *table)
            .map_or(&[][..], |(_, names)| names.as_slice())
    };
    let mut all: Vec<String> = KEYS
        .iter()
        .flat_map(|key| spelled(key, names(key)))
        .map(|path| keys::variable(&path))
        .collect();
    all.extend(ELSEWHERE.iter().map(|&s| s.to_owned()));
    all
}

fn parse(kind: Kind, text: &str) -> Result<Value, Fault> {
    let text = text.trim();
    // What is no number is not repeated: it could be anything.
    let wrong = || Fault::OutOfBounds {
        expected: check::expected(kind),
        found: None,
    };
    let value = match kind {
        Kind::Variables | Kind::Models | Kind::Patterns | Kind::Texts => Value::from(list(text)),
        Kind::Count(..) => Value::from(text.parse::<i64>().map_err(|_| wrong())?),
        Kind::Seconds(_) | Kind::Money | Kind::Temperature => Value::from(
            text.parse::<f64>()
                .ok()
                .filter(|n| n.is_finite())
                .ok_or_else(wrong)?,
        ),
        Kind::Switch | Kind::Recall => match unquoted(text) {
            "true" => Value::from(true),
            "false" => Value::from(false),
            other => Value::from(other),
        },
        Kind::Text | Kind::OneOf(_) | Kind::Url | Kind::Path | Kind::Program | Kind::Variable => {
            Value::from(unquoted(text))
        }
    };
    check::fits(kind, &value).map(|()| value)
}

/// `a,b`, `[a, b]` and `["a", "b"]` are the same list.
fn list(text: &str) -> Vec<String> {
    let inner = text
        .strip_prefix('[')
        .and_then(|t| t.strip_suffix(']'))
        .unwrap_or(text);
    inner
        .split(',')
        .map(|item| unquoted(item.trim()).to_owned())
        .filter(|item| !item.is_empty())
        .collect()
}

fn unquoted(text: &str) -> &str {
    ['"', '\'']
        .iter()
        .find_map(|&q| text.strip_prefix(q)?.strip_suffix(q))
        .unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_decides_how_a_value_is_read() {
        for (text, kept) in [
            ("007", "007"),
            ("true", "true"),
            ("\"123\"", "123"),
            (" x ", "x"),
        ] {
            assert_eq!(
                parse(Kind::Text, text).expect("a text").as_str(),
                Some(kept)
            );
        }
        assert!(parse(Kind::Count(1, 9), "x").is_err() && parse(Kind::Count(1, 9), "-1").is_err());
        assert!(
            parse(Kind::Seconds(0.1), "NaN").is_err() && parse(Kind::Seconds(0.1), "inf").is_err()
        );
    }

    #[test]
    fn lists_come_with_and_without_brackets() {
        for text in ["a,b", "[a,b]", r#"["a", "b"]"#, " a , b ,"] {
            assert_eq!(list(text), ["a", "b"], "{text}");
        }
        assert!(list("[]").is_empty());
    }
}
