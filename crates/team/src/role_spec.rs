//! The checkpoints of a role spec. Its front matter may define them; otherwise its body does, as
//! tables or lists below headings that name a checkpoint. Each row becomes a check of ours where one
//! fits, and otherwise a question to a model. The spec may also give the form of the report.

mod known_rows;
mod matrix;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use serde::Serialize;

use super::definition::{
    CheckDefinition, CheckRule, CheckpointDefinition, DefinitionError, HealthLimits, SourceGlobs,
};
use super::document::TeamDocument;
use super::report_format::ReportFormat;
use known_rows::built_in_check;
use matrix::{Row, Section, names_id, rows_of, sections};
use supervisor_text::words;

/// Files that a question of a role spec is about if nothing else is known.
pub(super) const DOCUMENTS: &str = "documents";
const DOCUMENT_GLOBS: [&str; 2] = ["{*,*/*,*/*/*}.md", "{*,*/*,*/*/*}.json"];

static CHECKPOINT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\bCHECKPOINT-\d{3,}\b").expect("valid regex"));
static TASK: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b[A-Z]{2,}-\d{3,}\b").expect("valid regex"));

/// A role spec as it is understood.
#[derive(Debug, Clone, Default)]
pub struct RoleSpec {
    pub definitions: Vec<CheckpointDefinition>,
    pub rows: Vec<SpecRow>,
    pub format: ReportFormat,
}

/// What became of one row of a role spec.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SpecRow {
    /// Empty for a section of the report.
    pub checkpoint: String,
    /// As written; empty for a checkpoint that is only named.
    pub row: String,
    pub became: String,
}

impl RoleSpec {
    /// The three built-in checkpoints.
    pub fn built_in() -> Self {
        Self::defined(CheckpointDefinition::built_in(), "built in")
    }

    /// Checkpoints that were defined as data.
    pub fn defined(definitions: Vec<CheckpointDefinition>, became: &str) -> Self {
        let row = |definition: &CheckpointDefinition| SpecRow {
            checkpoint: definition.id.clone(),
            row: String::new(),
            became: became.to_owned(),
        };
        Self {
            rows: definitions.iter().map(row).collect(),
            definitions,
            format: ReportFormat::default(),
        }
    }

    pub fn parse(file: &str, text: &str) -> Result<Self, DefinitionError> {
        if let Some(own) = CheckpointDefinition::of_front_matter(file, text)? {
            return Ok(Self::defined(own, "defined in the front matter").with_format(text));
        }
        let document = TeamDocument::new("role.md", "role.md", text.as_bytes());
        let sections = sections(&document);
        let mut spec = Self::default();
        let mut ids: Vec<&str> = CHECKPOINT.find_iter(text).map(|id| id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        for id in ids {
            let own: Vec<&Row> = rows_of(&sections, id).collect();
            let built_in = CheckpointDefinition::built_in()
                .into_iter()
                .find(|definition| definition.id == id);
            match built_in {
                _ if !own.is_empty() => spec.add_matrix(file, id, &sections, &own)?,
                Some(built_in) => spec.add(Self::defined(vec![built_in], "built in")),
                // A template such as `CHECKPOINT-NNN` is no checkpoint either.
                None => spec.rows.push(SpecRow {
                    checkpoint: id.to_owned(),
                    row: String::new(),
                    became: String::from("not defined: there is no table or list below its name"),
                }),
            }
        }
        if spec.definitions.is_empty() {
            let built_in = CheckpointDefinition::built_in();
            return Err(DefinitionError::NoCheckpoints {
                file: file.to_owned(),
                known: words::one_of(built_in.iter().map(|d| d.id.as_str())),
            });
        }
        Ok(spec.with_format(text))
    }

    /// Takes the form of the report from the spec, and tells which of its sections stay empty.
    fn with_format(mut self, text: &str) -> Self {
        self.format = ReportFormat::of_role_spec(text);
        let not_filled = self.format.unknown().map(|title| SpecRow {
            checkpoint: String::new(),
            row: format!("report section `{title}`"),
            became: String::from("not filled: a checkpoint has nothing for it"),
        });
        self.rows.extend(not_filled);
        self
    }

    fn add(&mut self, other: Self) {
        self.definitions.extend(other.definitions);
        self.rows.extend(other.rows);
    }

    /// Adds the checkpoint that this matrix describes.
    fn add_matrix(
        &mut self,
        file: &str,
        id: &str,
        sections: &[Section],
        rows: &[&Row],
    ) -> Result<(), DefinitionError> {
        let heading = sections
            .iter()
            .find(|section| names_id(&section.title, id))
            .map_or(id, |section| section.title.as_str());
        let mut definition = CheckpointDefinition {
            id: id.to_owned(),
            name: heading
                .split_once(':')
                .map_or(heading, |(_, name)| name)
                .trim()
                .to_owned(),
            scope: TASK
                .find_iter(heading)
                .map(|task| task.as_str().to_owned())
                .filter(|task| task != id)
                .collect(),
            sources: BTreeMap::new(),
            limits: HealthLimits::default(),
            checks: Vec::new(),
        };
        for row in rows {
            let became = definition.add_row(row);
            self.rows.push(SpecRow {
                checkpoint: id.to_owned(),
                row: row.title.clone(),
                became,
            });
        }
        definition.check_names(file)?;
        self.definitions.push(definition);
        Ok(())
    }
}

impl CheckpointDefinition {
    /// Adds the check for a row. Returns what it became.
    fn add_row(&mut self, row: &Row) -> String {
        let mut check = match built_in_check(&self.id, &row.title) {
            Some((mut check, from)) => {
                // A matrix has no critical rows: the verdict comes from the score.
                check.critical = false;
                for source in check.rule.sources() {
                    let globs = from.sources[source].clone();
                    self.sources.entry(source.to_owned()).or_insert(globs);
                }
                // Checks in code find their files by these names.
                if matches!(check.rule, CheckRule::Code { .. }) {
                    for (name, globs) in from.sources {
                        self.sources.entry(name).or_insert(globs);
                    }
                }
                check
            }
            None => {
                let globs = DOCUMENT_GLOBS.map(str::to_owned).to_vec();
                let globs = SourceGlobs::try_from(globs).expect("a test compiles them");
                self.sources.insert(DOCUMENTS.to_owned(), globs);
                CheckDefinition {
                    id: slug(&row.title),
                    title: row.title.clone(),
                    group: row.group,
                    critical: false,
                    rule: CheckRule::Question {
                        ask: row.question(),
                        sources: vec![DOCUMENTS.to_owned()],
                    },
                }
            }
        };
        let became = match &check.rule {
            CheckRule::Question { .. } => String::from("a question to a model"),
            _ if row.has_criteria() => format!(
                "the built-in check `{}` (criteria as built in: {})",
                check.id,
                known_rows::criteria(&check.id)
            ),
            _ => format!("the built-in check `{}`", check.id),
        };
        check.title.clone_from(&row.title);
        let taken = |id: &str| self.checks.iter().any(|known| known.id == id);
        if taken(&check.id) {
            let number = (2..).find(|n| !taken(&format!("{}_{n}", check.id)));
            check.id = format!("{}_{}", check.id, number.unwrap_or_default());
        }
        self.checks.push(check);
        became
    }
}

fn slug(title: &str) -> String {
    let folded: String = title
        .to_lowercase()
        .chars()
        .map(|c| if c.is_alphanumeric() { c } else { ' ' })
        .collect();
    words::cut_end(&folded.split_whitespace().collect::<Vec<_>>().join("_"), 60).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: &str = "\
# Watcher

### CHECKPOINT-001: Brief and PRD agree (after DRAFT-002)

| Check | Method | Pass Criteria |
|---|---|---|
| Terminology alignment | Compare terms | One term per concept |
| Licences named | Read both | Every dependency has one |

### CHECKPOINT-004: Release

| # | Weight | Item | Rule |
|---|---|---|---|
| 1 | 30 | Cyclomatic complexity below 10 | Run the linter |
| 2 | 70 | Terminology | One term |

### CHECKPOINT-0040: Aftercare

| 1 | Users are told | By mail |
|---|---|---|
| 2 | Wisdom contributed | Look |

#### Process

- Changelog has an entry for each story

### Execution Health Checks (all checkpoints)

| Check | Method | Pass Criteria |
|---|---|---|
| Retry patterns | Count errors | None has 3 |

## Phase 4: Verdict Generation

| Verdict | Score |
|---|---|
| pass | 0.8 |

CHECKPOINT-002 and CHECKPOINT-009 come later.
";

    #[test]
    fn every_row_becomes_a_check() {
        let spec = RoleSpec::parse("role.md", SPEC).expect("understood");
        let told: Vec<String> = spec
            .rows
            .iter()
            .map(|row| format!("{} {} → {}", row.checkpoint, row.row, row.became))
            .collect();
        assert_eq!(
            told,
            [
                "CHECKPOINT-001 Terminology alignment → the built-in check `terminology` (criteria as built in: one term for each concept)",
                "CHECKPOINT-001 Licences named → a question to a model",
                "CHECKPOINT-001 Retry patterns → the built-in check `error_patterns` (criteria as built in: fewer than 3 errors of each role)",
                "CHECKPOINT-002  → built in",
                "CHECKPOINT-004 Cyclomatic complexity below 10 → a question to a model",
                "CHECKPOINT-004 Terminology → the built-in check `terminology` (criteria as built in: one term for each concept)",
                "CHECKPOINT-004 Retry patterns → the built-in check `error_patterns` (criteria as built in: fewer than 3 errors of each role)",
                "CHECKPOINT-0040 Wisdom contributed → a question to a model",
                "CHECKPOINT-0040 Changelog has an entry for each story → a question to a model",
                "CHECKPOINT-0040 Retry patterns → the built-in check `error_patterns` (criteria as built in: fewer than 3 errors of each role)",
                "CHECKPOINT-009  → not defined: there is no table or list below its name",
            ]
        );
        let first = &spec.definitions[0];
        assert_eq!(
            (first.name.as_str(), first.scope.as_slice()),
            (
                "Brief and PRD agree (after DRAFT-002)",
                &["DRAFT-002".to_owned()][..]
            )
        );
        let CheckRule::Question { ask, .. } = &first.checks[1].rule else {
            panic!("{first:?}")
        };
        assert_eq!(
            ask,
            "Licences named. Method: Read both. Pass Criteria: Every dependency has one."
        );
    }

    #[test]
    fn no_row_of_a_matrix_is_critical() {
        let text = "## CHECKPOINT-003\n\n| Check |\n|---|\n| Plan covers requirements |\n| Dependency chain valid |\n";
        let spec = RoleSpec::parse("role.md", text).expect("understood");
        let checks = &spec.definitions[0].checks;
        assert_eq!(checks.len(), 2);
        assert!(checks.iter().all(|check| !check.critical), "{checks:?}");
    }

    #[test]
    fn spec_without_checkpoints_is_refused() {
        let error = RoleSpec::parse("role.md", "# Supervisor\nwatch well").expect_err("refused");
        assert!(error.to_string().contains("CHECKPOINT-001"), "{error}");
    }
}
