//! Finds the line of the settings that an advice refers to. Uses the current settings, not those at
//! the time of the log.

use serde::Serialize;

use supervisor_settings::{CallOverrides, LoadedRouting, Origin};

/// What to do about a model that is mostly wrong at a skill.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Remedy {
    /// The table of models.toml the line belongs to: `[skills.tdd_green]`.
    pub(super) table: String,
    /// The line to write there; `None` if there is nothing to remove or nothing would remain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<String>,
    /// The current source: a file and line, a variable, or `built-in`. `None` if the settings
    /// cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) now: Option<String>,
    pub(super) step: RemedyStep,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RemedyStep {
    /// The rest of the chain can do without it.
    LeaveOut,
    /// It is the only model of the chain.
    Replace,
    /// A variable overrides the file.
    ChangeVariable,
    /// The chain no longer contains it.
    Done,
}

impl Remedy {
    pub(super) fn of(loaded: Option<&LoadedRouting>, skill: &str, model: &str) -> Self {
        let table = format!("[skills.{}]", toml_key(skill));
        let unknown = Self {
            table: table.clone(),
            line: None,
            now: None,
            step: RemedyStep::LeaveOut,
        };
        let choices = loaded.map(|loaded| loaded.routing.choices(skill, &CallOverrides::default()));
        let Some(Ok(choices)) = choices else {
            return unknown;
        };
        let chain: Vec<&str> = choices
            .route
            .chain
            .tiers()
            .map(|tier| tier.name.0.as_str())
            .collect();
        let rest: Vec<&str> = chain
            .iter()
            .copied()
            .filter(|name| *name != model)
            .collect();
        let (step, line) = match &choices.chain.origin {
            _ if rest.len() == chain.len() => (RemedyStep::Done, None),
            _ if rest.is_empty() => (RemedyStep::Replace, None),
            Origin::Variable(name) => (
                RemedyStep::ChangeVariable,
                Some(format!("{name}={}", rest.join(","))),
            ),
            Origin::BuiltIn | Origin::File(..) | Origin::Call(_) => (
                RemedyStep::LeaveOut,
                Some(format!(
                    "chain = {}",
                    serde_json::json!(rest)
                        .to_string()
                        .replace("\",\"", "\", \"")
                )),
            ),
        };
        let now = format!("{} ({})", choices.chain.key, choices.chain.origin);
        Self {
            table,
            line,
            now: Some(now),
            step,
        }
    }
}

/// A TOML key, quoted if necessary.
fn toml_key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !name.is_empty() && name.chars().all(bare) {
        name.to_owned()
    } else {
        serde_json::json!(name).to_string()
    }
}
