//! The checkpoints of a role spec. Its front matter may define them; otherwise its body does, as
//! tables or lists below headings that name a checkpoint. Each row becomes a check of ours where one
//! fits, and otherwise a question to a model.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use serde::Serialize;

use super::definition::{
    CheckDefinition, CheckRule, CheckpointDefinition, DefinitionError, HealthLimits, SourceGlobs,
};
use super::document::TeamDocument;
use super::verdict::CheckGroup;
use supervisor_text::words;

/// Files that a question of a role spec is about if nothing else is known.
const DOCUMENTS: &str = "documents";
const DOCUMENT_GLOBS: [&str; 2] = ["{*,*/*,*/*/*}.md", "{*,*/*,*/*/*}.json"];

static CHECKPOINT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\bCHECKPOINT-\d{3,}\b").expect("valid regex"));
static TASK: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b[A-Z]{2,}-\d{3,}\b").expect("valid regex"));

/// Words in the title of a row, all of which must be there, and the built-in check they stand for.
const KNOWN_ROWS: &[(&[&str], &str)] = &[
    (&["goal", "trace"], "goal_trace"),
    (&["requirements trace"], "goal_trace"),
    (&["terminolog"], "terminology"),
    (&["term consistency"], "terminology"),
    (&["scope"], "scope"),
    (&["decision continuity"], "decision_continuity"),
    (&["decision chain"], "decision_chain"),
    (&["architecture", "epic"], "architecture_epics"),
    (&["quality", "trend"], "quality_trend"),
    (&["open question"], "open_questions"),
    (&["wisdom"], "wisdom"),
    (&["artifact", "exist"], "artifact_existence"),
    (&["plan", "cover"], "plan_coverage"),
    (&["complexity"], "complexity"),
    (&["dependency chain"], "dependency_chain"),
    (&["execution method"], "execution_method"),
    (&["upstream", "consumed"], "upstream_consumed"),
    (&["retry pattern"], "error_patterns"),
    (&["error pattern"], "error_patterns"),
    (&["message bus anomal"], "activity"),
    (&["fast-advance"], "spawns"),
    (&["duplicate spawn"], "spawns"),
];

/// A role spec as it is understood.
#[derive(Debug, Clone, Default)]
pub struct RoleSpec {
    pub definitions: Vec<CheckpointDefinition>,
    pub rows: Vec<SpecRow>,
}

/// What became of one row of a role spec.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SpecRow {
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
        }
    }

    pub fn parse(file: &str, text: &str) -> Result<Self, DefinitionError> {
        if let Some(own) = CheckpointDefinition::of_front_matter(file, text)? {
            return Ok(Self::defined(own, "defined in the front matter"));
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
        Ok(spec)
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
            .find(|section| section.title.contains(id))
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
                // The original scores a missing file as a warning.
                if matches!(check.rule, CheckRule::Artifacts { .. }) {
                    check.critical = false;
                }
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

/// The built-in check that a title stands for, and the checkpoint it is from: the one with the same
/// id if it has such a check.
fn built_in_check(id: &str, title: &str) -> Option<(CheckDefinition, CheckpointDefinition)> {
    let title = title.to_lowercase();
    let is_meant = |words: &[&str]| words.iter().all(|word| title.contains(word));
    let (_, wanted) = KNOWN_ROWS.iter().find(|(words, _)| is_meant(words))?;
    let mut all = CheckpointDefinition::built_in();
    all.sort_by_key(|definition| definition.id != id);
    all.into_iter().find_map(|definition| {
        let check = definition.checks.iter().find(|check| check.id == *wanted)?;
        Some((check.clone(), definition.clone()))
    })
}

/// Part of a document below one heading, without the parts of deeper headings.
#[derive(Debug)]
struct Section {
    title: String,
    /// Titles of the headings above it.
    above: Vec<String>,
    rows: Vec<Row>,
}

/// One row of a matrix.
#[derive(Debug)]
struct Row {
    title: String,
    /// Column titles and cells after the first.
    more: Vec<(String, String)>,
    group: CheckGroup,
}

impl Row {
    fn question(&self) -> String {
        let more = self
            .more
            .iter()
            .filter(|(_, cell)| !cell.is_empty())
            .map(|(head, cell)| format!(" {head}: {cell}."));
        format!("{}.{}", self.title, more.collect::<String>())
    }
}

/// The rows about this checkpoint: those below its own heading, and those for all checkpoints if it
/// has any of its own.
fn rows_of<'a>(sections: &'a [Section], id: &'a str) -> impl Iterator<Item = &'a Row> {
    let is_about = move |section: &Section, word: &str| {
        let mut titles = section.above.iter().chain([&section.title]);
        titles.any(|title| title.to_lowercase().contains(&word.to_lowercase()))
    };
    let has_own = sections
        .iter()
        .any(|section| is_about(section, id) && !section.rows.is_empty());
    sections
        .iter()
        .filter(move |section| {
            is_about(section, id) || has_own && is_about(section, "all checkpoints")
        })
        .flat_map(|section| &section.rows)
}

fn sections(document: &TeamDocument) -> Vec<Section> {
    let lines: Vec<&str> = document.text.lines().collect();
    let level = |line: usize| {
        let line = lines.get(line - 1).copied().unwrap_or_default();
        line.chars().take_while(|c| *c == '#').count().max(1)
    };
    let mut open: Vec<(usize, String)> = Vec::new();
    let mut sections = Vec::new();
    for (n, heading) in document.headings.iter().enumerate() {
        let level = level(heading.line);
        open.retain(|(above, _)| *above < level);
        let end = document.headings.get(n + 1).map_or(usize::MAX, |h| h.line);
        let range = heading.line..end;
        let all = || open.iter().map(|(_, title)| title.clone());
        let group = group_of(&format!("{} {}", heading.title, all().collect::<String>()));
        let of_table = document
            .rows
            .iter()
            .filter(|row| range.contains(&row.line))
            .filter_map(|row| {
                let title = row.cells.first()?.clone();
                let more = row.head.iter().cloned().zip(row.cells.iter().cloned());
                Some((title, more.skip(1).collect()))
            });
        let of_list = document
            .items
            .iter()
            .filter(|item| range.contains(&item.line))
            .map(|item| (item.text.trim().to_owned(), Vec::new()));
        let rows = of_table
            .chain(of_list)
            .filter(|(title, _): &(String, Vec<_>)| !title.is_empty())
            .map(|(title, more)| Row { title, more, group });
        sections.push(Section {
            title: heading.title.clone(),
            above: all().collect(),
            rows: rows.collect(),
        });
        open.push((level, heading.title.clone()));
    }
    sections
}

fn group_of(titles: &str) -> CheckGroup {
    let titles = titles.to_lowercase();
    if titles.contains("health") {
        CheckGroup::Health
    } else if titles.contains("process") {
        CheckGroup::Process
    } else {
        CheckGroup::Consistency
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
                "CHECKPOINT-001 Terminology alignment → the built-in check `terminology`",
                "CHECKPOINT-001 Licences named → a question to a model",
                "CHECKPOINT-001 Retry patterns → the built-in check `error_patterns`",
                "CHECKPOINT-002  → built in",
                "CHECKPOINT-004 Changelog has an entry for each story → a question to a model",
                "CHECKPOINT-004 Retry patterns → the built-in check `error_patterns`",
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
    fn spec_without_checkpoints_is_refused() {
        let error = RoleSpec::parse("role.md", "# Supervisor\nwatch well").expect_err("refused");
        assert!(error.to_string().contains("CHECKPOINT-001"), "{error}");
    }
}
