//! Reads settings from environment variables. The kind of a key decides how its value is parsed:
//! `007` remains text for a text key, and `a,b` is a list for a list key.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};

use figment::value::{Dict, Value};

use super::check;
use super::error::{Fault, Origin, Problem, Warning, is_secret_name};
use super::keys::{self, ALIASES, KEYS, Kind, OTHER_VARIABLES, PREFIX};
use supervisor_text::words;

/// One variable that sets one key.
pub(crate) struct Setting {
    pub variable: String,
    pub path: Vec<String>,
    pub value: Value,
}

/// Names from files that variables can refer to.
pub(crate) struct KnownNames {
    pub backends: BTreeSet<String>,
    pub models: BTreeSet<String>,
}

/// Settings from the environment. Later ones override earlier ones.
#[derive(Default)]
pub(crate) struct EnvironmentSettings {
    pub settings: Vec<Setting>,
    pub problems: Vec<Problem>,
    pub warnings: Vec<Warning>,
}

/// Reads everything except `SUPERVISOR_MODELS__…`, whose names depend on the chains that other
/// variables may set. `known_names` is called only if there is a variable to read; usually there is none.
pub(crate) fn read_general(
    env: &Environment,
    known_names: &dyn Fn() -> KnownNames,
) -> EnvironmentSettings {
    let mut reading = EnvironmentSettings::default();
    for (alias, path) in ALIASES {
        if let Some(value) = env.get(OsStr::new(alias)).filter(|v| !v.is_empty()) {
            let path: Vec<String> = path.iter().map(|&s| s.to_owned()).collect();
            reading.add_setting(alias, path, value);
        }
    }
    reading.read_all(
        own_variables(env)
            .filter(|(name, _)| !name.starts_with(MODELS))
            .collect(),
        known_names,
    );
    reading
}

/// Reads `SUPERVISOR_MODELS__…` with all model names known by now.
pub(crate) fn read_models(
    env: &Environment,
    known_names: &dyn Fn() -> KnownNames,
) -> EnvironmentSettings {
    let mut reading = EnvironmentSettings::default();
    reading.read_all(
        own_variables(env)
            .filter(|(name, _)| name.starts_with(MODELS))
            .collect(),
        known_names,
    );
    reading
}

type Environment = BTreeMap<OsString, OsString>;

impl Setting {
    /// The setting as its own layer, so that figment keeps the variable's name with the value.
    pub(crate) fn layer(&self) -> Dict {
        let (last, tables) = self.path.split_last().expect("a key has a name");
        let leaf = Dict::from([(last.clone(), self.value.clone())]);
        tables.iter().rev().fold(leaf, |inner, table| {
            Dict::from([(table.clone(), Value::from(inner))])
        })
    }
}

impl EnvironmentSettings {
    fn read_all(
        &mut self,
        variables: Vec<(String, &OsString)>,
        known_names: &dyn Fn() -> KnownNames,
    ) {
        if variables.is_empty() {
            return;
        }
        let known_names = known_names();
        for (name, value) in variables {
            match target(&name, &known_names) {
                Target::Key(path) => self.add_setting(&name, path, value),
                Target::Nothing => self.add_unknown(&name, value, &known_names),
                Target::Several(candidates) => self.add_ambiguous(&name, candidates),
            }
        }
    }

    fn add_setting(&mut self, variable: &str, path: Vec<String>, value: &OsString) {
        let parts: Vec<&str> = path.iter().map(String::as_str).collect();
        let keys::KeyLookup::Leaf(key) = keys::lookup(&parts) else {
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
                self.add_problem(variable, Some(keys::toml_path(&path)), fault, hint);
            }
        }
    }

    fn add_unknown(&mut self, variable: &str, value: &OsString, known_names: &KnownNames) {
        // A number is not a secret but probably a count, such as a misspelt `CALL_TOKENS`.
        let number = value
            .to_str()
            .is_some_and(|text| text.trim().parse::<f64>().is_ok());
        if is_secret_name(variable) && variable.contains("__") && !number {
            let hint = "put the key into a variable that `api_key_env` of the backend names, such as LITELLM_API_KEY";
            return self.add_problem(variable, None, Fault::Secret, Some(hint.into()));
        }
        // Compare without the common prefix, which would make all names look similar.
        let known = known_variables(known_names);
        let names = known.iter().map(|name| &name[PREFIX.len()..]);
        let suggestion = words::did_you_mean(&variable[PREFIX.len()..], names)
            .map(|name| format!("{PREFIX}{name}"));
        self.warnings.push(Warning::Stray {
            variable: variable.to_owned(),
            suggestion,
        });
    }

    fn add_ambiguous(&mut self, variable: &str, candidates: Vec<String>) {
        let hint = "set it in a file, where the name is exact";
        self.add_problem(
            variable,
            None,
            Fault::Ambiguous(candidates),
            Some(hint.into()),
        );
    }

    fn add_problem(
        &mut self,
        variable: &str,
        key: Option<String>,
        fault: Fault,
        hint: Option<String>,
    ) {
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

/// Variables with our prefix that no other part of the program reads. Empty ones count as unset.
fn own_variables(env: &Environment) -> impl Iterator<Item = (String, &OsString)> {
    env.iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value))
        .filter(|(name, _)| name.starts_with(PREFIX) && !keys::is_read_elsewhere(name))
}

fn target(variable: &str, known_names: &KnownNames) -> Target {
    let rest = &variable[PREFIX.len()..];
    let names: Vec<String> = match rest.split_once("__") {
        Some(("MODELS", _)) => known_names.models.iter().cloned().collect(),
        Some(("BACKENDS", _)) => known_names.backends.iter().cloned().collect(),
        Some(("SKILLS", _)) => keys::SKILLS
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .collect(),
        _ => Vec::new(),
    };
    let mut found: Vec<Vec<String>> = KEYS
        .iter()
        .flat_map(|key| expand_names(key, &names))
        .collect();
    found.retain(|path| keys::variable(path) == variable);
    match found.len() {
        0 => Target::Nothing,
        1 => Target::Key(found.remove(0)),
        _ => Target::Several(found.iter().map(|path| keys::toml_path(path)).collect()),
    }
}

/// The key's path for each name that can replace its `*`.
fn expand_names(key: &'static keys::Key, names: &[String]) -> Vec<Vec<String>> {
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

/// Every variable that would currently set something.
fn known_variables(known_names: &KnownNames) -> Vec<String> {
    let lists = [
        (
            "backends",
            known_names.backends.iter().cloned().collect::<Vec<_>>(),
        ),
        ("models", known_names.models.iter().cloned().collect()),
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
        .flat_map(|key| expand_names(key, names(key)))
        .map(|path| keys::variable(&path))
        .collect();
    all.extend(OTHER_VARIABLES.iter().map(|&s| s.to_owned()));
    all
}

fn parse(kind: Kind, text: &str) -> Result<Value, Fault> {
    let text = text.trim();
    // An invalid number is not repeated in the message: it could be anything, even a secret.
    let out_of_bounds = || Fault::OutOfBounds {
        expected: check::expected(kind),
        found: None,
    };
    let value = match kind {
        Kind::Variables | Kind::Models | Kind::Patterns | Kind::Texts => {
            Value::from(parse_list(text))
        }
        Kind::Count(..) => Value::from(text.parse::<i64>().map_err(|_| out_of_bounds())?),
        Kind::Seconds(_) | Kind::Money | Kind::Temperature => Value::from(
            text.parse::<f64>()
                .ok()
                .filter(|n| n.is_finite())
                .ok_or_else(out_of_bounds)?,
        ),
        Kind::Switch | Kind::Recall => match unquote(text) {
            "true" => Value::from(true),
            "false" => Value::from(false),
            other => Value::from(other),
        },
        Kind::Text | Kind::OneOf(_) | Kind::Url | Kind::Path | Kind::Program | Kind::Variable => {
            Value::from(unquote(text))
        }
    };
    check::check_value(kind, &value).map(|()| value)
}

/// `a,b`, `[a, b]` and `["a", "b"]` are the same list.
fn parse_list(text: &str) -> Vec<String> {
    let inner = text
        .strip_prefix('[')
        .and_then(|t| t.strip_suffix(']'))
        .unwrap_or(text);
    inner
        .split(',')
        .map(|item| unquote(item.trim()).to_owned())
        .filter(|item| !item.is_empty())
        .collect()
}

fn unquote(text: &str) -> &str {
    ['"', '\'']
        .iter()
        .find_map(|&q| text.strip_prefix(q)?.strip_suffix(q))
        .unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_parsed_by_kind() {
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
    fn list_brackets_are_optional() {
        for text in ["a,b", "[a,b]", r#"["a", "b"]"#, " a , b ,"] {
            assert_eq!(parse_list(text), ["a", "b"], "{text}");
        }
        assert!(parse_list("[]").is_empty());
    }
}
