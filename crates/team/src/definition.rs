//! A checkpoint as data: files, and checks over them. Written in TOML or as front matter. The three
//! built-in ones are in `checkpoints/`. Checks that cannot be expressed this way are code, see
//! `checks`.

use std::collections::BTreeMap;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use regex::Regex;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::checks;
use super::verdict::CheckGroup;
use supervisor_text::words;
use supervisor_text::words::front_matter;

/// One checkpoint.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointDefinition {
    /// `CHECKPOINT-001`.
    pub id: String,
    pub name: String,
    /// The tasks whose work is checked.
    #[serde(default)]
    pub scope: Vec<String>,
    /// Named sets of files: globs relative to the session folder.
    #[serde(default)]
    pub sources: BTreeMap<String, SourceGlobs>,
    #[serde(default)]
    pub limits: HealthLimits,
    #[serde(default, rename = "check")]
    pub checks: Vec<CheckDefinition>,
}

/// Limits of the health checks.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HealthLimits {
    /// This many errors of one role are too many.
    pub errors_per_role: usize,
    /// A task in progress without a message for this long has lost its worker.
    pub stale_after_s: u64,
    /// A score may fall by this much from one draft to the next.
    pub score_drop: f64,
}

impl Default for HealthLimits {
    fn default() -> Self {
        Self {
            errors_per_role: 3,
            stale_after_s: 1800,
            score_drop: 10.0,
        }
    }
}

/// Compiled globs, with their source text.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Vec<String>")]
pub struct SourceGlobs {
    pub written: Vec<String>,
    set: GlobSet,
}

/// One check, and its place in the report.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
pub struct CheckDefinition {
    pub id: String,
    pub title: String,
    pub group: CheckGroup,
    pub critical: bool,
    pub rule: CheckRule,
}

/// How a check is decided.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum CheckRule {
    /// Each source has a file that is long enough and whose front matter has these keys.
    Artifacts {
        sources: Vec<String>,
        #[serde(default = "one")]
        min_bytes: u64,
        #[serde(default)]
        front_matter: Vec<String>,
        /// A missing file blocks; otherwise it is a warning.
        #[serde(default)]
        required: bool,
    },
    /// Each id found in one set of files also occurs in another.
    Trace { from: TraceEnd, to: Vec<TraceEnd> },
    /// Consistent terms: of each group of synonyms only one is used.
    Terms {
        sources: Vec<String>,
        synonyms: Vec<Vec<String>>,
    },
    /// A number in a JSON file or table column is within bounds.
    Numbers {
        source: String,
        /// A JSON pointer.
        #[serde(default)]
        pointer: Option<String>,
        /// The title of a column in Markdown tables.
        #[serde(default)]
        column: Option<String>,
        #[serde(default)]
        min: Option<f64>,
        #[serde(default)]
        max: Option<f64>,
    },
    /// A command that must exit with 0. A list of arguments, never a shell line.
    Command {
        run: Vec<String>,
        #[serde(default)]
        timeout_s: Option<u64>,
    },
    /// The project's change since this commit is proven by its own tests.
    Proven {
        #[serde(default)]
        base: Option<String>,
    },
    /// A question that only a model can answer, from these files.
    Question { ask: String, sources: Vec<String> },
    /// A named check in code.
    Code { name: String },
}

/// One side of a trace.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceEnd {
    pub source: String,
    pub pattern: IdPattern,
    /// Search only this field of the front matter.
    #[serde(default)]
    pub key: Option<String>,
    /// Search only lines that also match this: `\\bMust\\b`.
    #[serde(default)]
    pub with: Option<IdPattern>,
}

/// A regular expression for ids.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub struct IdPattern(pub Regex);

#[derive(Debug, thiserror::Error)]
pub enum DefinitionError {
    #[error("`{file}` is not a checkpoint definition: {why}")]
    Malformed { file: String, why: String },
    #[error("`{file}`, check `{check}`: {why}")]
    Check {
        file: String,
        check: String,
        why: String,
    },
    #[error(
        "`{file}` defines no checkpoint and names none of {known}; give it `[[check]]` tables, or name one"
    )]
    NoCheckpoints { file: String, known: String },
}

impl CheckpointDefinition {
    /// Parses a TOML file, or the front matter of a Markdown file.
    pub fn parse(file: &str, text: &str) -> Result<Self, DefinitionError> {
        let malformed = |why: String| DefinitionError::Malformed {
            file: file.to_owned(),
            why,
        };
        let value: Value = if file.ends_with(".md") {
            let front = front_matter::split(text).map_err(|e| malformed(e.to_string()))?;
            Value::Object(front.fields)
        } else {
            toml::from_str(text).map_err(|e| malformed(e.to_string()))?
        };
        let definition: Self =
            serde_json::from_value(value).map_err(|e| malformed(e.to_string()))?;
        definition.check_names(file)?;
        Ok(definition)
    }

    /// The three checkpoints of the built-in pipeline.
    pub fn built_in() -> Vec<Self> {
        let texts = [
            (
                "checkpoints/001.toml",
                include_str!("../checkpoints/001.toml"),
            ),
            (
                "checkpoints/002.toml",
                include_str!("../checkpoints/002.toml"),
            ),
            (
                "checkpoints/003.toml",
                include_str!("../checkpoints/003.toml"),
            ),
        ];
        texts
            .into_iter()
            .map(|(file, text)| Self::parse(file, text).expect("a test parses all of them"))
            .collect()
    }

    /// The checkpoints in the front matter of a role spec, if it has any.
    pub(super) fn of_front_matter(
        file: &str,
        text: &str,
    ) -> Result<Option<Vec<Self>>, DefinitionError> {
        let front = front_matter::split(text)
            .map(|front| front.fields)
            .unwrap_or_default();
        let Some(Value::Array(own)) = front.get("checkpoints") else {
            return Ok(None);
        };
        let mut all = Vec::new();
        for value in own {
            let malformed = |e: serde_json::Error| DefinitionError::Malformed {
                file: file.into(),
                why: e.to_string(),
            };
            let definition: Self = serde_json::from_value(value.clone()).map_err(malformed)?;
            definition.check_names(file)?;
            all.push(definition);
        }
        Ok(Some(all))
    }

    /// Checks that all referenced sources and code checks exist.
    pub(super) fn check_names(&self, file: &str) -> Result<(), DefinitionError> {
        let mut seen = Vec::new();
        for check in &self.checks {
            let invalid = |why: String| DefinitionError::Check {
                file: file.to_owned(),
                check: check.id.clone(),
                why,
            };
            if seen.contains(&&check.id) {
                return Err(invalid(String::from("two checks have this id")));
            }
            seen.push(&check.id);
            for source in check.rule.sources() {
                if !self.sources.contains_key(source) {
                    let known = words::one_of(self.sources.keys().map(String::as_str));
                    return Err(invalid(format!(
                        "there is no source `{source}`; [sources] has {known}"
                    )));
                }
            }
            match &check.rule {
                CheckRule::Code { name }
                    if !checks::NAMES.iter().any(|(known, _)| known == name) =>
                {
                    let known = words::one_of(checks::NAMES.iter().map(|(known, _)| *known));
                    return Err(invalid(format!(
                        "there is no code called `{name}`; known: {known}"
                    )));
                }
                CheckRule::Command { run, .. } if run.first().is_none_or(String::is_empty) => {
                    return Err(invalid(String::from(
                        "`run` is empty; write the command as a list of words",
                    )));
                }
                CheckRule::Numbers {
                    pointer,
                    column,
                    min,
                    max,
                    ..
                } => {
                    if pointer.is_some() == column.is_some() {
                        return Err(invalid(String::from(
                            "give either `pointer` (JSON) or `column` (a table)",
                        )));
                    }
                    if min.is_none() && max.is_none() {
                        return Err(invalid(String::from("give `min`, `max` or both")));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl CheckRule {
    pub fn sources(&self) -> Vec<&str> {
        match self {
            Self::Artifacts { sources, .. }
            | Self::Terms { sources, .. }
            | Self::Question { sources, .. } => sources.iter().map(String::as_str).collect(),
            Self::Trace { from, to } => std::iter::once(from)
                .chain(to)
                .map(|end| end.source.as_str())
                .collect(),
            Self::Numbers { source, .. } => vec![source],
            Self::Command { .. } | Self::Proven { .. } | Self::Code { .. } => Vec::new(),
        }
    }
}

impl SourceGlobs {
    pub fn matches(&self, path: &str) -> bool {
        self.set.is_match(path)
    }
}

impl TryFrom<Vec<String>> for SourceGlobs {
    type Error = String;

    fn try_from(written: Vec<String>) -> Result<Self, String> {
        let mut set = GlobSetBuilder::new();
        for glob in &written {
            set.add(
                GlobBuilder::new(glob)
                    .literal_separator(true)
                    .build()
                    .map_err(|e| e.to_string())?,
            );
        }
        Ok(Self {
            written,
            set: set.build().map_err(|e| e.to_string())?,
        })
    }
}

impl TryFrom<String> for IdPattern {
    type Error = String;

    fn try_from(written: String) -> Result<Self, String> {
        Regex::new(&written).map(Self).map_err(|e| e.to_string())
    }
}

impl TryFrom<Map<String, Value>> for CheckDefinition {
    type Error = String;

    fn try_from(mut fields: Map<String, Value>) -> Result<Self, String> {
        let mut text = |name: &str| {
            fields
                .remove(name)
                .and_then(|v| v.as_str().map(str::to_owned))
        };
        let id = text("id").ok_or("a check needs an `id`")?;
        let title = text("title").unwrap_or_else(|| id.replace('_', " "));
        let in_check = |why: String| format!("check `{id}`: {why}");
        let group = fields
            .remove("group")
            .unwrap_or_else(|| Value::from("consistency"));
        let group = serde_json::from_value(group).map_err(|e| in_check(e.to_string()))?;
        let critical = fields
            .remove("critical")
            .and_then(|v| v.as_bool())
            .unwrap_or(false);
        let rule: CheckRule =
            serde_json::from_value(Value::Object(fields)).map_err(|e| in_check(e.to_string()))?;
        let critical = critical || matches!(rule, CheckRule::Artifacts { required: true, .. });
        Ok(Self {
            id,
            title,
            group,
            critical,
            rule,
        })
    }
}

fn one() -> u64 {
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_checkpoints_parse() {
        let ids: Vec<String> = CheckpointDefinition::built_in()
            .into_iter()
            .map(|d| d.id)
            .collect();
        assert_eq!(ids, ["CHECKPOINT-001", "CHECKPOINT-002", "CHECKPOINT-003"]);
    }

    #[test]
    fn invalid_definitions_are_explained() {
        let head = "id = \"X\"\nname = \"x\"\n[sources]\ndocs = [\"*.md\"]\n";
        for (text, expected) in [
            ("", "missing field `id`"),
            (
                "id = \"X\"\nname = \"x\"\ncolour = 1",
                "unknown field `colour`",
            ),
            (
                "[[check]]\nid = \"a\"\nkind = \"spell\"",
                "unknown variant `spell`",
            ),
            ("[[check]]\nkind = \"code\"", "needs an `id`"),
            (
                "[[check]]\nid = \"a\"\nkind = \"code\"\nname = \"magic\"",
                "no code called `magic`",
            ),
            (
                "[[check]]\nid = \"a\"\nkind = \"artifacts\"\nsources = [\"none\"]",
                "no source `none`",
            ),
            (
                "[[check]]\nid = \"a\"\nkind = \"artifacts\"\nsources = [\"docs\"]\nmin = 3",
                "unknown field `min`",
            ),
            (
                "[[check]]\nid = \"a\"\nkind = \"command\"\nrun = []",
                "`run` is empty",
            ),
            (
                "[[check]]\nid = \"a\"\nkind = \"numbers\"\nsource = \"docs\"\ncolumn = \"n\"",
                "`min`, `max`",
            ),
        ] {
            let whole = if text.starts_with("[[") {
                format!("{head}{text}")
            } else {
                text.to_owned()
            };
            let error = CheckpointDefinition::parse("d.toml", &whole)
                .expect_err(text)
                .to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
