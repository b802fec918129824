//! Runs the checks of one checkpoint over what was loaded. Commands and questions are handed out, because running a
//! program and asking a model is not this module's business; everything else is decided here.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::bus::TeamMeta;
use super::checks::{self, health::BusDigest};
use super::definition::{CheckDefinition, CheckRule, CheckpointDefinition, HealthLimits, TraceEnd};
use super::document::{SessionDocuments, TeamDocument};
use super::terms;
use super::verdict::{CheckFinding, CheckOutcome, EvidencePlace};
use supervisor_text::words;

/// Places shown for one check.
const MOST_EVIDENCE: usize = 8;

/// What the checks look at.
#[derive(Debug)]
pub struct CheckContext<'a> {
    pub definition: &'a CheckpointDefinition,
    pub documents: &'a SessionDocuments,
    pub meta: &'a TeamMeta,
    pub digest: &'a BusDigest,
    /// Now, in seconds since 1970.
    pub now_s: i64,
}

/// A check that needs more than files.
#[derive(Debug, Clone)]
pub enum OutsideCheck {
    Command {
        check: CheckDefinition,
        run: Vec<String>,
        timeout_s: Option<u64>,
    },
    Question {
        check: CheckDefinition,
        ask: String,
        material: Vec<Arc<TeamDocument>>,
    },
}

/// What code could decide, and what it could not.
#[derive(Debug, Default)]
pub struct CheckedFiles {
    /// In the order of the definition; what is decided outside is put in its place later.
    pub findings: Vec<Option<CheckFinding>>,
    pub outside: Vec<(usize, OutsideCheck)>,
}

impl CheckContext<'_> {
    pub fn run(&self) -> CheckedFiles {
        let mut checked = CheckedFiles::default();
        for (n, check) in self.definition.checks.iter().enumerate() {
            let finding = match &check.rule {
                CheckRule::Artifacts {
                    sources,
                    min_bytes,
                    front_matter,
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
                    let wanted = NumberWanted {
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
                    let outside = OutsideCheck::Command {
                        check: check.clone(),
                        run: run.clone(),
                        timeout_s: *timeout_s,
                    };
                    checked.outside.push((n, outside));
                    None
                }
                CheckRule::Question { ask, sources } => {
                    let material = sources
                        .iter()
                        .flat_map(|source| self.documents.of(source))
                        .cloned()
                        .collect();
                    checked.outside.push((
                        n,
                        OutsideCheck::Question {
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

    pub fn limits(&self) -> HealthLimits {
        self.definition.limits
    }

    /// The documents of several sources; or the finding that says which source has none.
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

    fn missing_place(&self, source: &str) -> EvidencePlace {
        EvidencePlace {
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
        let (mut wrong, mut files) = (Vec::new(), 0);
        for source in sources {
            let documents = self.documents.of(source);
            if documents.is_empty() {
                wrong.push((self.missing(source), self.missing_place(source)));
            }
            files += documents.len();
            for document in documents {
                let place = |line, text: &str| EvidencePlace {
                    file: document.path.clone(),
                    line,
                    text: text.to_owned(),
                };
                if (document.text.len() as u64) < min_bytes || document.text.trim().is_empty() {
                    wrong.push((
                        format!("`{}` has {} bytes", document.name, document.text.len()),
                        place(1, "too short"),
                    ));
                }
                if let Some(problem) = &document.front_problem {
                    wrong.push((format!("`{}`: {problem}", document.name), place(1, problem)));
                }
                let is_markdown = document.name.ends_with(".md");
                for key in keys
                    .iter()
                    .filter(|key| is_markdown && !document.front.contains_key(*key))
                {
                    wrong.push((
                        format!("`{}` has no `{key}` in its front matter", document.name),
                        place(1, key),
                    ));
                }
            }
        }
        for (path, why) in &self.documents.unreadable {
            wrong.push((
                why.clone(),
                EvidencePlace {
                    file: path.clone(),
                    line: 0,
                    text: why.clone(),
                },
            ));
        }
        if wrong.is_empty() {
            return check.pass(format!("{} present", words::count(files, "file")));
        }
        let details = words::series(wrong.iter().map(|(why, _)| why.as_str()), 5);
        let places = wrong.into_iter().map(|(_, place)| place);
        // What the checkpoint requires and is not there stops the pipeline; what is merely expected is a risk.
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
        let lost: Vec<_> = wanted
            .iter()
            .filter(|(id, _)| !found.contains(id))
            .collect();
        if lost.is_empty() {
            return check.pass(format!("{} of {} traced", wanted.len(), wanted.len()));
        }
        let names = words::series(lost.iter().map(|(id, _)| id.as_str()), 8);
        let details = format!("{} of {} not traced: {names}", lost.len(), wanted.len());
        check.fail(details, lost.into_iter().map(|(_, place)| place.clone()))
    }

    /// Each id once, where it stands first.
    fn ids(&self, end: &TraceEnd) -> Vec<(String, EvidencePlace)> {
        let mut ids: Vec<(String, EvidencePlace)> = Vec::new();
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
                            EvidencePlace {
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
        let one = |d: &terms::TermDrift| {
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
        let details = words::series(drift.iter().map(one), 5);
        // Words are style: they are a risk, and stop nothing.
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
        wanted: &NumberWanted<'_>,
    ) -> CheckFinding {
        let documents = match self.sources(check, [source]) {
            Ok(documents) => documents,
            Err(missing) => return missing,
        };
        let mut seen: Vec<(f64, EvidencePlace)> = Vec::new();
        for document in documents {
            let place = |line, text: &str| EvidencePlace {
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
                seen.push((
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
                seen.extend(number.map(|number: f64| (number, place(row.line, &row.text()))));
            }
        }
        if seen.is_empty() {
            let what = wanted.pointer.or(wanted.column).unwrap_or_default();
            return check.warn(
                format!("no number at `{what}`"),
                [self.missing_place(source)],
            );
        }
        let is_out =
            |n: f64| wanted.min.is_some_and(|min| n < min) || wanted.max.is_some_and(|max| n > max);
        let out: Vec<_> = seen.iter().filter(|(n, _)| is_out(*n)).collect();
        if out.is_empty() {
            return check.pass(format!(
                "{} within bounds",
                words::count(seen.len(), "number")
            ));
        }
        let bound = |b: Option<f64>| b.map_or_else(|| String::from("…"), |b| b.to_string());
        let details = format!(
            "{} outside {} to {}",
            words::series(out.iter().map(|(n, _)| n.to_string()), 5),
            bound(wanted.min),
            bound(wanted.max)
        );
        check.fail(details, out.into_iter().map(|(_, place)| place.clone()))
    }
}

struct NumberWanted<'a> {
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
        evidence: impl IntoIterator<Item = EvidencePlace>,
    ) -> CheckFinding {
        self.finding(
            CheckOutcome::Warn,
            &details.into(),
            evidence.into_iter().collect(),
        )
    }

    /// A failure cites what was seen; without a place it is a warning, because nothing may be blocked by an opinion.
    pub fn fail(
        &self,
        details: impl Into<String>,
        evidence: impl IntoIterator<Item = EvidencePlace>,
    ) -> CheckFinding {
        let evidence: Vec<EvidencePlace> = evidence.into_iter().collect();
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
        mut evidence: Vec<EvidencePlace>,
    ) -> CheckFinding {
        evidence.truncate(MOST_EVIDENCE);
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
