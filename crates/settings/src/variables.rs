//! Reads settings from environment variables. The kind of a key decides how its value is parsed:
//! `007` remains text for a text key, and `a,b` is a list for a list key.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

use figment::value::{Dict, Value};

use super::check;
use super::error::{Fault, Origin, Problem, Warning, is_secret_name};
use super::keys::{self, ALIASES, KEYS, Key, Kind, OTHER_VARIABLES, PREFIX};
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

/// Which variables to read. Names in `SUPERVISOR_MODELS__…` depend on the chains that other
/// variables may set, so those are read last.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Pass {
    General,
    Models,
}

/// Reads settings from variables. `known_names` is called only if there is a variable to read;
/// usually there is none.
pub(crate) fn read(
    env: &BTreeMap<OsString, OsString>,
    pass: Pass,
    known_names: impl FnOnce() -> KnownNames,
) -> EnvironmentSettings {
    let mut reading = EnvironmentSettings::default();
    let set = || env.iter().filter(|(_, value)| !value.is_empty());
    if pass == Pass::General {
        for (alias, path) in ALIASES {
            if let Some((_, value)) = set().find(|(name, _)| name == alias) {
                let path = path.iter().map(|&part| part.to_owned()).collect();
                reading.add_setting(alias, path, value);
            }
        }
    }
    let own: Vec<(String, &OsString)> = set()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value))
        .filter(|(name, _)| name.starts_with(PREFIX) && !keys::is_read_elsewhere(name))
        .filter(|(name, _)| name.starts_with(MODELS) == (pass == Pass::Models))
        .collect();
    if !own.is_empty() {
        let known = known_variables(&known_names());
        for (name, value) in own {
            reading.read_variable(&name, value, &known);
        }
    }
    reading
}

const MODELS: &str = "SUPERVISOR_MODELS__";

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
    fn read_variable(&mut self, name: &str, value: &OsString, known: &[KnownVariable]) {
        let mut paths = known
            .iter()
            .filter(|(variable, _)| variable == name)
            .map(|(_, path)| path);
        match (paths.next(), paths.next()) {
            (None, _) => self.add_unknown(name, value, known),
            (Some(path), None) => self.add_setting(name, path.clone(), value),
            (Some(one), Some(two)) => {
                let all = [one, two].into_iter().chain(paths);
                let fault = Fault::Ambiguous(all.map(|path| keys::toml_path(path)).collect());
                let hint = "set it in a file, where the name is exact";
                self.add_problem(name, None, fault, Some(hint.into()));
            }
        }
    }

    fn add_setting(&mut self, variable: &str, path: Vec<String>, value: &OsString) {
        let keys::KeyLookup::Leaf(key) = keys::lookup(&path) else {
            unreachable!("targets are keys")
        };
        let parsed = value
            .to_str()
            .ok_or(Fault::NotUtf8)
            .and_then(|text| parse(&key.kind, text));
        match parsed {
            Ok(value) => self.settings.push(Setting {
                variable: variable.to_owned(),
                path,
                value,
            }),
            Err(fault) => {
                let hint = check::hint_for(&key.kind, &fault);
                self.add_problem(variable, Some(keys::toml_path(&path)), fault, hint);
            }
        }
    }

    fn add_unknown(&mut self, variable: &str, value: &OsString, known: &[KnownVariable]) {
        // A number is not a secret but probably a count, such as a misspelt `CALL_TOKENS`.
        let number = value
            .to_str()
            .is_some_and(|text| text.trim().parse::<f64>().is_ok());
        if is_secret_name(variable) && variable.contains("__") && !number {
            let hint = "put the key into a variable that `api_key_env` of the backend names, such as LITELLM_API_KEY";
            return self.add_problem(variable, None, Fault::Secret, Some(hint.into()));
        }
        // Compare without the common prefix, which would make all names look similar.
        let names = known
            .iter()
            .map(|(name, _)| name.as_str())
            .chain(OTHER_VARIABLES.iter().copied())
            .map(|name| &name[PREFIX.len()..]);
        let suggestion = words::did_you_mean(&variable[PREFIX.len()..], names)
            .map(|name| format!("{PREFIX}{name}"));
        self.warnings.push(Warning::Stray {
            variable: variable.to_owned(),
            suggestion,
        });
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

/// A variable that would currently set something, and the path of its key.
type KnownVariable = (String, Vec<String>);

fn known_variables(names: &KnownNames) -> Vec<KnownVariable> {
    let mut known = Vec::new();
    for Key { path, .. } in KEYS.iter() {
        let names: Vec<&str> = match path[0].as_str() {
            "backends" => names.backends.iter().map(String::as_str).collect(),
            "models" => names.models.iter().map(String::as_str).collect(),
            "skills" => keys::skills().collect(),
            // A path cannot be told from the name of a variable.
            "projects" => Vec::new(),
            _ => vec![""],
        };
        for name in names {
            let with_name = |part: &String| if part == "*" { name } else { part }.to_owned();
            let path: Vec<String> = path.iter().map(with_name).collect();
            known.push((keys::variable(&path), path));
        }
    }
    known
}

fn parse(kind: &Kind, text: &str) -> Result<Value, Fault> {
    let text = text.trim();
    // An invalid number is not repeated in the message: it could be anything, even a secret.
    let out_of_bounds = || Fault::OutOfBounds {
        expected: check::expected(kind),
        found: None,
    };
    let value = match kind {
        Kind::List(_) => Value::from(parse_list(text)),
        Kind::CountOr(_, _, words) if words.iter().any(|word| word == unquote(text)) => {
            Value::from(unquote(text))
        }
        Kind::Count(..) | Kind::CountOr(..) => {
            Value::from(text.parse::<i64>().map_err(|_| out_of_bounds())?)
        }
        Kind::Number(..) => {
            let number = text.parse::<f64>().ok().filter(|n| n.is_finite());
            Value::from(number.ok_or_else(out_of_bounds)?)
        }
        Kind::Switch(_) => match unquote(text) {
            "true" => Value::from(true),
            "false" => Value::from(false),
            other => Value::from(other),
        },
        Kind::Text(_) | Kind::OneOf(_) => Value::from(unquote(text)),
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
        let text_kind = Kind::Text(check::text_format("text"));
        for (text, kept) in [
            ("007", "007"),
            ("true", "true"),
            ("\"123\"", "123"),
            (" x ", "x"),
        ] {
            let value = parse(&text_kind, text).expect("a text");
            assert_eq!(value.as_str(), Some(kept));
        }
        for wrong in ["x", "-1"] {
            assert!(parse(&Kind::Count(1, 9), wrong).is_err());
        }
        for wrong in ["NaN", "inf"] {
            assert!(parse(&Kind::Number(0.1, 9.0, keys::Unit::Seconds), wrong).is_err());
        }
    }

    #[test]
    fn list_brackets_are_optional() {
        for text in ["a,b", "[a,b]", r#"["a", "b"]"#, " a , b ,"] {
            assert_eq!(parse_list(text), ["a", "b"], "{text}");
        }
        assert!(parse_list("[]").is_empty());
    }
}
