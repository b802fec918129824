//! Runs the checks of one checkpoint. Commands and questions are returned as [`ExternalCheck`],
//! because this module neither runs programs nor asks models.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::bus::TeamMeta;
use super::checks::{self, health::BusDigest};
use super::definition::{CheckDefinition, CheckRule, CheckpointDefinition, HealthLimits, TraceEnd};
use super::document::{SessionDocuments, TeamDocument};
use super::role_spec::DOCUMENTS;
use super::terms;
use super::verdict::{CheckFinding, CheckOutcome, EvidenceLocation};
use supervisor_text::words;

/// Maximum evidence shown for one check.
const MAX_EVIDENCE: usize = 8;

/// Input of the checks.
#[derive(Debug)]
pub struct CheckContext<'a> {
    pub definition: &'a CheckpointDefinition,
    pub documents: &'a SessionDocuments,
    pub meta: &'a TeamMeta,
    pub digest: &'a BusDigest,
    /// Current time in seconds since 1970.
    pub now_s: i64,
}

/// A check that needs more than files.
#[derive(Debug, Clone)]
pub enum ExternalCheck {
    Command {
        check: CheckDefinition,
        run: Vec<String>,
        timeout_s: Option<u64>,
    },
    Proven {
        check: CheckDefinition,
        base: Option<String>,
    },
    Question {
        check: CheckDefinition,
        ask: String,
        material: Vec<Arc<TeamDocument>>,
    },
}

/// Findings decided by code, and the checks that are left.
#[derive(Debug, Default)]
pub struct FileCheckResults {
    /// In the order of the definition. `None` for checks that are decided outside.
    pub findings: Vec<Option<CheckFinding>>,
    pub outside: Vec<(usize, ExternalCheck)>,
}

impl CheckContext<'_> {
    pub fn run(&self) -> FileCheckResults {
        let mut checked = FileCheckResults::default();
        for (n, check) in self.definition.checks.iter().enumerate() {
            let finding = match &check.rule {
                CheckRule::Artifacts {
                    sources,
                    min_bytes,
                    front_matter,
                    required: _,
                } => Some(self.artifacts(check, sources, *min_bytes, front_matter)),
                CheckRule::Trace { from, to } => Some(self.trace(check, from, to)),
                CheckRule::Terms { sources, synonyms } => {
                    Some(self.terms(check, sources, synonyms))
                }
                CheckRule::Numbers {
                    source,
                    pointer,
                    column,
                    min,
                    max,
                } => {
                    let wanted = NumberRule {
                        pointer: pointer.as_deref(),
                        column: column.as_deref(),
                        min: *min,
                        max: *max,
                    };
                    Some(self.numbers(check, source, &wanted))
                }
                CheckRule::Code { name } => {
                    let (_, decide) = checks::NAMES
                        .iter()
                        .find(|(known, _)| known == name)
                        .expect("checked when it was read");
                    Some(decide(self, check))
                }
                CheckRule::Command { run, timeout_s } => {
                    let outside = ExternalCheck::Command {
                        check: check.clone(),
                        run: run.clone(),
                        timeout_s: *timeout_s,
                    };
                    checked.outside.push((n, outside));
                    None
                }
                CheckRule::Proven { base } => {
                    let outside = ExternalCheck::Proven {
                        check: check.clone(),
                        base: base.clone(),
                    };
                    checked.outside.push((n, outside));
                    None
                }
                CheckRule::Question { ask, sources } => {
                    let material = sources
                        .iter()
                        .flat_map(|source| self.documents.of(source))
                        .chain(self.refs_for(sources))
                        .cloned()
                        .collect();
                    checked.outside.push((
                        n,
                        ExternalCheck::Question {
                            check: check.clone(),
                            ask: ask.clone(),
                            material,
                        },
                    ));
                    None
                }
            };
            checked.findings.push(finding);
        }
        checked
    }

    /// The question of a role spec's row is about all that the tasks wrote.
    fn refs_for(&self, sources: &[String]) -> &[Arc<TeamDocument>] {
        let is_about_all = sources.iter().any(|source| source == DOCUMENTS);
        if is_about_all {
            &self.documents.refs
        } else {
            &[]
        }
    }

    pub fn limits(&self) -> HealthLimits {
        self.definition.limits
    }

    /// The documents of several sources, or a finding that names the source without files.
    pub fn sources<'s>(
        &self,
        check: &CheckDefinition,
        names: impl IntoIterator<Item = &'s str>,
    ) -> Result<Vec<&TeamDocument>, CheckFinding> {
        let mut documents: Vec<&TeamDocument> = Vec::new();
        for name in names {
            match self.documents.of(name) {
                [] => {
                    return Err(check.warn(
                        format!("nothing to check: {}", self.missing(name)),
                        [self.missing_place(name)],
                    ));
                }
                found => documents.extend(found.iter().map(Arc::as_ref)),
            }
        }
        Ok(documents)
    }

    fn missing(&self, source: &str) -> String {
        format!("no file for `{source}` ({})", self.globs(source))
    }

    fn missing_place(&self, source: &str) -> EvidenceLocation {
        EvidenceLocation {
            file: self.globs(source),
            line: 0,
            text: String::from("missing"),
        }
    }

    fn globs(&self, source: &str) -> String {
        self.definition
            .sources
            .get(source)
            .map(|globs| globs.written.join(", "))
            .unwrap_or_default()
    }

    fn artifacts(
        &self,
        check: &CheckDefinition,
        sources: &[String],
        min_bytes: u64,
        keys: &[String],
    ) -> CheckFinding {
        let (mut problems, mut files) = (Vec::new(), 0);
        for source in sources {
            let documents = self.documents.of(source);
            if documents.is_empty() {
                problems.push((self.missing(source), self.missing_place(source)));
            }
            files += documents.len();
            for document in documents {
                let place = |line, text: &str| EvidenceLocation {
                    file: document.path.clone(),
                    line,
                    text: text.to_owned(),
                };
                if (document.text.len() as u64) < min_bytes || document.text.trim().is_empty() {
                    problems.push((
                        format!("`{}` has {} bytes", document.name, document.text.len()),
                        place(1, "too short"),
                    ));
                }
                if let Some(problem) = &document.front_problem {
                    problems.push((format!("`{}`: {problem}", document.name), place(1, problem)));
                }
                let is_markdown = document.name.ends_with(".md");
                for key in keys
                    .iter()
                    .filter(|key| is_markdown && !document.front.contains_key(*key))
                {
                    problems.push((
                        format!("`{}` has no `{key}` in its front matter", document.name),
                        place(1, key),
                    ));
                }
            }
        }
        for (path, why) in &self.documents.unreadable {
            problems.push((
                why.clone(),
                EvidenceLocation {
                    file: path.clone(),
                    line: 0,
                    text: why.clone(),
                },
            ));
        }
        if problems.is_empty() {
            return check.pass(format!("{} present", words::count(files, "file")));
        }
        let details = words::series(problems.iter().map(|(why, _)| why.as_str()), 5);
        let places = problems.into_iter().map(|(_, place)| place);
        // A missing required file blocks the pipeline; a missing expected file is a risk.
        if check.critical {
            check.fail(details, places)
        } else {
            check.warn(details, places)
        }
    }

    fn trace(&self, check: &CheckDefinition, from: &TraceEnd, to: &[TraceEnd]) -> CheckFinding {
        if let Err(missing) = self.sources(check, [from.source.as_str()]) {
            return missing;
        }
        let wanted = self.ids(from);
        if wanted.is_empty() {
            return check.not_applicable(format!(
                "no id of the form `{}` in `{}`",
                from.pattern.0, from.source
            ));
        }
        let found: BTreeSet<String> = to
            .iter()
            .flat_map(|end| self.ids(end))
            .map(|(id, _)| id)
            .collect();
        let untraced: Vec<_> = wanted
            .iter()
            .filter(|(id, _)| !found.contains(id))
            .collect();
        if untraced.is_empty() {
            return check.pass(format!("{} of {} traced", wanted.len(), wanted.len()));
        }
        let names = words::series(untraced.iter().map(|(id, _)| id.as_str()), 8);
        let details = format!("{} of {} not traced: {names}", untraced.len(), wanted.len());
        check.fail(
            details,
            untraced.into_iter().map(|(_, place)| place.clone()),
        )
    }

    /// Each id once, at its first occurrence.
    fn ids(&self, end: &TraceEnd) -> Vec<(String, EvidenceLocation)> {
        let mut ids: Vec<(String, EvidenceLocation)> = Vec::new();
        for document in self.documents.of(&end.source) {
            let field = end
                .key
                .as_deref()
                .map(|key| document.front_text(key).unwrap_or_default());
            let lines: Vec<(usize, &str)> = match &field {
                Some(field) => vec![(1, field)],
                None => document.lines().collect(),
            };
            for (line, text) in lines {
                if end.with.as_ref().is_some_and(|with| !with.0.is_match(text)) {
                    continue;
                }
                for id in end.pattern.0.find_iter(text).map(|found| found.as_str()) {
                    if !ids.iter().any(|(known, _)| known == id) {
                        let text = words::cut_end(text.trim(), 120).into_owned();
                        ids.push((
                            id.to_owned(),
                            EvidenceLocation {
                                file: document.path.clone(),
                                line,
                                text,
                            },
                        ));
                    }
                }
            }
        }
        ids
    }

    fn terms(
        &self,
        check: &CheckDefinition,
        sources: &[String],
        synonyms: &[Vec<String>],
    ) -> CheckFinding {
        let documents = match self.sources(check, sources.iter().map(String::as_str)) {
            Ok(documents) => documents,
            Err(missing) => return missing,
        };
        let drift = terms::find_drift(&documents, synonyms);
        if drift.is_empty() {
            return check.pass(format!(
                "one word for one thing in {}",
                words::count(documents.len(), "document")
            ));
        }
        let describe = |d: &terms::TermDrift| {
            format!(
                "\"{}\" beside \"{}\"",
                d.others
                    .iter()
                    .map(|(t, _)| t.as_str())
                    .collect::<Vec<_>>()
                    .join("\", \""),
                d.main
            )
        };
        let details = words::series(drift.iter().map(describe), 5);
        // Wording is a matter of style: it is a risk and never blocks.
        check.warn(
            details,
            drift
                .into_iter()
                .flat_map(|d| d.others)
                .map(|(_, place)| place),
        )
    }

    fn numbers(
        &self,
        check: &CheckDefinition,
        source: &str,
        wanted: &NumberRule<'_>,
    ) -> CheckFinding {
        let documents = match self.sources(check, [source]) {
            Ok(documents) => documents,
            Err(missing) => return missing,
        };
        let mut numbers_found: Vec<(f64, EvidenceLocation)> = Vec::new();
        for document in documents {
            let place = |line, text: &str| EvidenceLocation {
                file: document.path.clone(),
                line,
                text: text.to_owned(),
            };
            if let Some(pointer) = wanted.pointer
                && let Some(number) = document
                    .json()
                    .and_then(|json| json.pointer(pointer)?.as_f64())
            {
                let last = pointer.rsplit('/').next().unwrap_or(pointer);
                numbers_found.push((
                    number,
                    place(document.line_with(&format!("\"{last}\"")), pointer),
                ));
            }
            for row in wanted
                .column
                .iter()
                .flat_map(|column| document.rows.iter().map(move |row| (row, column)))
            {
                let (row, column) = row;
                let number = row
                    .cell(column)
                    .and_then(|cell| cell.trim_end_matches(['%', ' ']).parse().ok());
                numbers_found
                    .extend(number.map(|number: f64| (number, place(row.line, &row.text()))));
            }
        }
        if numbers_found.is_empty() {
            let what = wanted.pointer.or(wanted.column).unwrap_or_default();
            return check.warn(
                format!("no number at `{what}`"),
                [self.missing_place(source)],
            );
        }
        let is_out_of_bounds =
            |n: f64| wanted.min.is_some_and(|min| n < min) || wanted.max.is_some_and(|max| n > max);
        let out_of_bounds: Vec<_> = numbers_found
            .iter()
            .filter(|(n, _)| is_out_of_bounds(*n))
            .collect();
        if out_of_bounds.is_empty() {
            return check.pass(format!(
                "{} within bounds",
                words::count(numbers_found.len(), "number")
            ));
        }
        let bound = |b: Option<f64>| b.map_or_else(|| String::from("…"), |b| b.to_string());
        let details = format!(
            "{} outside {} to {}",
            words::series(out_of_bounds.iter().map(|(n, _)| n.to_string()), 5),
            bound(wanted.min),
            bound(wanted.max)
        );
        check.fail(
            details,
            out_of_bounds.into_iter().map(|(_, place)| place.clone()),
        )
    }
}

struct NumberRule<'a> {
    pointer: Option<&'a str>,
    column: Option<&'a str>,
    min: Option<f64>,
    max: Option<f64>,
}

impl CheckDefinition {
    pub fn pass(&self, details: impl Into<String>) -> CheckFinding {
        self.finding(CheckOutcome::Pass, &details.into(), Vec::new())
    }

    pub fn not_applicable(&self, details: impl Into<String>) -> CheckFinding {
        self.finding(CheckOutcome::NotApplicable, &details.into(), Vec::new())
    }

    pub fn warn(
        &self,
        details: impl Into<String>,
        evidence: impl IntoIterator<Item = EvidenceLocation>,
    ) -> CheckFinding {
        self.finding(
            CheckOutcome::Warn,
            &details.into(),
            evidence.into_iter().collect(),
        )
    }

    /// A failure needs evidence. Without any it becomes a warning, because nothing may be blocked
    /// by an opinion.
    pub fn fail(
        &self,
        details: impl Into<String>,
        evidence: impl IntoIterator<Item = EvidenceLocation>,
    ) -> CheckFinding {
        let evidence: Vec<EvidenceLocation> = evidence.into_iter().collect();
        let outcome = if evidence.is_empty() {
            CheckOutcome::Warn
        } else {
            CheckOutcome::Fail
        };
        self.finding(outcome, &details.into(), evidence)
    }

    fn finding(
        &self,
        outcome: CheckOutcome,
        details: &str,
        mut evidence: Vec<EvidenceLocation>,
    ) -> CheckFinding {
        evidence.truncate(MAX_EVIDENCE);
        CheckFinding {
            id: self.id.clone(),
            title: self.title.clone(),
            group: self.group,
            critical: self.critical,
            outcome,
            details: words::plain(details).replace('\n', " "),
            evidence,
        }
    }
}
