//! Loads and merges the layers: built-in `models.toml` < the user's file < environment. A call adds
//! its own, see `layers`. The origin of each value is kept. Nothing is read from the project or the
//! current directory.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use etcetera::BaseStrategy as _;
use figment::value::{Dict, Value};
use figment::{Figment, Source};

use super::check;
use super::error::{Fault, Origin, Problem, RoutingError, Warning};
use super::file::{self, Document};
use super::keys::{self, FILE_VAR};
use super::layers::{Layers, RoutingLayer};
use super::sections::Routing;
use super::variables::{self, KnownNames, Pass, Setting};

/// Where settings come from.
#[derive(Debug, Clone)]
pub struct Sources {
    /// The text of the built-in `models.toml`: every default.
    pub built_in: &'static str,
    /// `--config`: must exist.
    pub user_file: Option<PathBuf>,
    /// All variables; those without our prefix or an alias are ignored.
    pub env: BTreeMap<OsString, OsString>,
    /// The platform's config directory. `supervisor/models.toml` is read from there if it exists
    /// and no file was named.
    pub config_dir: Option<PathBuf>,
}

impl Sources {
    /// The built-in defaults alone.
    pub fn built_in(models_toml: &'static str) -> Self {
        Self {
            built_in: models_toml,
            user_file: None,
            env: BTreeMap::new(),
            config_dir: None,
        }
    }

    /// This of this process and the user's config directory.
    pub fn of_process(models_toml: &'static str, user_file: Option<PathBuf>) -> Self {
        let config_dir = etcetera::choose_base_strategy()
            .ok()
            .map(|base| base.config_dir());
        // With a relative HOME it would be below the current directory, which is the project.
        let config_dir = config_dir.filter(|dir| dir.is_absolute());
        Self {
            built_in: models_toml,
            user_file,
            env: std::env::vars_os().collect(),
            config_dir,
        }
    }

    /// The path of the user's file, whether or not it exists.
    pub fn user_path(&self) -> Option<PathBuf> {
        self.file().map(|(path, ..)| path)
    }

    /// The file to read, who named it, and whether it must exist.
    fn file(&self) -> Option<(PathBuf, Origin, Presence)> {
        let variable = self.env.get(OsStr::new(FILE_VAR)).filter(|v| !v.is_empty());
        match (&self.user_file, variable, &self.config_dir) {
            (Some(path), ..) => Some((
                path.clone(),
                Origin::File(path.clone(), None),
                Presence::Required,
            )),
            (None, Some(path), _) => Some((
                path.into(),
                Origin::Variable(FILE_VAR.to_owned()),
                Presence::Required,
            )),
            (None, None, Some(dir)) => {
                let path = dir.join("supervisor").join("models.toml");
                Some((path.clone(), Origin::File(path, None), Presence::Optional))
            }
            (None, None, None) => None,
        }
    }
}

/// The settings with their origins and warnings.
#[derive(Debug, Clone)]
pub struct LoadedRouting {
    pub routing: Routing,
    /// The value of every key that is set, as written. None of them is a secret.
    pub values: BTreeMap<String, serde_json::Value>,
    pub warnings: Vec<Warning>,
    /// The user's file that was read, if any.
    pub file: Option<PathBuf>,
}

impl LoadedRouting {
    /// The origin of a key as written in TOML: `limits.local_s`, `models."ollama/x".context`.
    /// `None` if the key is not set.
    pub fn origin(&self, key: &str) -> Option<&Origin> {
        self.routing.origins.get(key)
    }
}

/// Reads and checks all layers. Reports every problem, not only the first.
pub fn load(sources: &Sources) -> Result<LoadedRouting, RoutingError> {
    // Lines and problems are not needed: a test checks that the built-in file has none.
    let built_in =
        file::values(sources.built_in).expect("the built-in models.toml is TOML; a test reads it");
    let (mut user, file) = read_user_file(sources)?;

    let (mut problems, mut warnings) = (Vec::new(), Vec::new());
    warnings.extend(read_former_keys(&mut user));
    let mut figment = Figment::new().merge(RoutingLayer::new("built-in", None, built_in));
    if let Some(path) = &file {
        problems.extend(key_problems(&user, |line| Origin::File(path.clone(), line)));
        figment = figment.merge(RoutingLayer::new(
            "file",
            Some(Source::File(path.clone())),
            user.values,
        ));
    }
    for pass in [Pass::General, Pass::Models] {
        let reading = variables::read(&sources.env, pass, || known_names(&figment));
        problems.extend(reading.problems);
        warnings.extend(reading.warnings);
        figment = merge_settings(figment, reading.settings, &mut warnings);
    }
    if !problems.is_empty() {
        return Err(RoutingError::Invalid(problems));
    }

    let layers = Layers::new(figment, user.lines);
    let (mut routing, values) = layers.read()?;
    let own_prompts = sources
        .config_dir
        .as_ref()
        .map(|dir| dir.join("supervisor").join("prompts"));
    routing.prompts_dir = routing
        .prompts_dir
        .or_else(|| own_prompts.filter(|dir| dir.is_dir()));
    let home = sources.env.get(OsStr::new("HOME")).map(PathBuf::from);
    routing.home = home.filter(|home| home.is_absolute());
    warnings.extend(routing.unreachable_tiers());
    Ok(LoadedRouting {
        routing,
        values,
        warnings,
        file,
    })
}

/// The defaults of a repository, for tests; the program passes them in.
#[cfg(test)]
pub(crate) const BUILT_IN: &str = include_str!("../../../models.toml");

enum Presence {
    Required,
    Optional,
}

fn read_user_file(sources: &Sources) -> Result<(Document, Option<PathBuf>), RoutingError> {
    let Some((path, named_by, presence)) = sources.file() else {
        return Ok((Document::default(), None));
    };
    let problem = |origin, key, fault, hint: Option<&str>| {
        RoutingError::Invalid(vec![Problem {
            origin,
            key,
            fault,
            hint: hint.map(str::to_owned),
        }])
    };
    if matches!(named_by, Origin::Variable(_)) && !path.is_absolute() {
        // The current directory is the project, which must not configure us.
        let hint = "write the whole path, from `/` on";
        return Err(problem(
            named_by,
            Some(path.display().to_string()),
            Fault::RelativeFile,
            Some(hint),
        ));
    }
    match (file::read(&path), presence) {
        (Ok(document), _) => Ok((document, Some(path))),
        (Err(fault), Presence::Optional) if fault.is_missing => Ok((Document::default(), None)),
        (Err(fault), _) => {
            let hint = match (&named_by, fault.is_missing) {
                (Origin::Variable(_), true) => {
                    Some("create it, or unset the variable to use the built-in settings")
                }
                (_, true) => {
                    Some("create it, or leave `--config` out to use the built-in settings")
                }
                _ => match &fault.fault {
                    Fault::Unreadable(_) => Some("name a file that you may read"),
                    Fault::NotToml(why) if why.starts_with("invalid string") => {
                        Some("write texts in quotes")
                    }
                    _ => None,
                },
            };
            match named_by {
                Origin::Variable(_) => {
                    let place = Origin::File(path, fault.line).to_string();
                    Err(problem(named_by, Some(place), fault.fault, hint))
                }
                _ => Err(problem(
                    Origin::File(path, fault.line),
                    None,
                    fault.fault,
                    hint,
                )),
            }
        }
    }
}

/// Moves a key of the first version to its new place, unless that is set as well.
fn read_former_keys(user: &mut Document) -> Option<Warning> {
    const FORMER: &str = "llama_swap_url";
    let url = user.values.remove(FORMER)?;
    let line = user.lines.remove(FORMER);
    let warm = user
        .values
        .entry("warm".into())
        .or_insert_with(|| Dict::new().into());
    if let Value::Dict(_, warm) = warm
        && !warm.contains_key("url")
    {
        warm.insert("url".into(), url);
        warm.entry("kind".into())
            .or_insert_with(|| "llama-swap".into());
        for key in ["warm", "warm.url", "warm.kind"] {
            let line = line.into_iter();
            user.lines.extend(line.map(|line| (key.to_owned(), line)));
        }
    }
    Some(Warning::Renamed {
        key: FORMER,
        now: "warm.url",
    })
}

fn key_problems(document: &Document, origin: impl Fn(Option<usize>) -> Origin) -> Vec<Problem> {
    let place = |problem: check::KeyProblem| {
        let key = keys::toml_path(&problem.path);
        let line = document.lines.get(&key).copied();
        (
            line,
            Problem {
                origin: origin(line),
                key: Some(key),
                fault: problem.fault,
                hint: problem.hint,
            },
        )
    };
    let mut placed: Vec<_> = check::find_problems(&document.values)
        .into_iter()
        .map(place)
        .collect();
    placed.sort_by_key(|(line, _)| *line);
    placed.into_iter().map(|(_, problem)| problem).collect()
}

fn merge_settings(
    mut figment: Figment,
    settings: Vec<Setting>,
    warnings: &mut Vec<Warning>,
) -> Figment {
    let kind = |figment: &Figment| {
        figment
            .find_value("warm.kind")
            .ok()
            .and_then(Value::into_string)
    };
    for setting in settings {
        if setting.variable == "LLAMA_SWAP_URL" && kind(&figment).as_deref() != Some("llama-swap") {
            let why = "`warm.kind` is not \"llama-swap\"";
            warnings.push(Warning::Unused {
                variable: setting.variable,
                why,
            });
            continue;
        }
        let layer = setting.layer();
        figment = figment.merge(RoutingLayer::new(
            "variable",
            Some(Source::Custom(setting.variable)),
            layer,
        ));
    }
    figment
}

/// Backends and models named so far in tables, chains and patterns.
fn known_names(figment: &Figment) -> KnownNames {
    // Fetch everything once: figment copies all values for each lookup.
    let all = figment
        .find_value("")
        .ok()
        .and_then(Value::into_dict)
        .unwrap_or_default();
    let table = |name: &str| {
        all.get(name)
            .and_then(Value::as_dict)
            .cloned()
            .unwrap_or_default()
    };
    let texts = |value: &Value| -> Vec<String> {
        let list = value.as_array().unwrap_or_default();
        value
            .as_str()
            .into_iter()
            .chain(list.iter().filter_map(Value::as_str))
            .map(str::to_owned)
            .collect()
    };
    let inside = |table: &Dict, key: &str| -> Vec<String> {
        table
            .values()
            .filter_map(|v| v.as_dict()?.get(key))
            .flat_map(texts)
            .collect()
    };
    let (backends, skills) = (table("backends"), table("skills"));
    let mut models: BTreeSet<String> = table("models").into_keys().collect();
    models.extend(
        inside(&backends, "models")
            .into_iter()
            .filter(|pattern| !pattern.ends_with('*')),
    );
    models.extend(inside(&skills, "chain"));
    models.extend(inside(&skills, "verifier"));
    for key in ["verifier", "default_chain"] {
        models.extend(all.get(key).into_iter().flat_map(texts));
    }
    models.remove("none");
    KnownNames {
        backends: backends.into_keys().collect(),
        models,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_settings_are_valid() {
        let document = file::parse(BUILT_IN).expect("TOML");
        let problems: Vec<String> = key_problems(&document, |_| Origin::BuiltIn)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert!(problems.is_empty(), "{problems:#?}");
    }
}
