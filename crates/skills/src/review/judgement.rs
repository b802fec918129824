//! Checks a review against what the reviewer was shown: every file, line and quote. Findings that
//! fail are dropped and counted. A review is rejected if most findings fail or a file is left out.
//! Whether a finding is right is not judged.

mod claim;
mod requirements;
mod scope;

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::Serialize;
use serde_json::Value;

use crate::common::SHAPE;
use crate::common::citations::without_whitespace;
use claim::FindingClaim;
use supervisor_text::words;
use supervisor_verify::Check;

pub(crate) use requirements::{RequirementAnswer, RequirementList, RequirementVerdict};
pub(crate) use scope::{LineRanges, LineSpan, ReviewScope, ScopePart};

/// The checks that every review must make.
pub(crate) const IRON_LAWS: [&str; 4] = ["security", "errors", "validation", "tests"];

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    Critical,
    Warning,
    Suggestion,
}

impl Severity {
    pub(crate) const ALL: [Self; 3] = [Self::Critical, Self::Warning, Self::Suggestion];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Warning => "warning",
            Self::Suggestion => "suggestion",
        }
    }
}

/// Who reported the finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FindingSource {
    Server,
    Model,
}

/// A finding with a verified citation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ReviewFinding {
    pub severity: Severity,
    pub file: PathBuf,
    pub line: usize,
    /// The line number that the reviewer gave, if it had to be corrected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corrected_from: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_line: Option<usize>,
    pub quote: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub rule: String,
    pub why: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub fix: String,
    /// Other places where an identical line has the same finding.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    pub source: FindingSource,
}

impl ReviewFinding {
    /// `src/a.rs:12`
    pub(crate) fn place(&self) -> String {
        format!("{}:{}", self.file.display(), self.line)
    }

    fn is_same_defect(&self, other: &Self) -> bool {
        without_whitespace(&self.quote) == without_whitespace(&other.quote)
            && normalize(&self.why) == normalize(&other.why)
            && self.severity <= other.severity
    }
}

/// A rejected finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct DroppedFinding {
    /// Its number in the reply, from 1.
    pub finding: usize,
    pub because: String,
}

/// The judgement of a review: kept and dropped findings, answers and checks.
#[derive(Debug, Clone)]
pub(crate) struct JudgedReview {
    /// Most severe first.
    pub findings: Vec<ReviewFinding>,
    pub dropped: Vec<DroppedFinding>,
    pub answers: Vec<RequirementAnswer>,
    /// The checks the reviewer claims to have made, without duplicates.
    pub checks_run: Vec<String>,
    pub checks: Vec<Check>,
}

/// Judges the replies, one for each part of the scope, in order.
pub(crate) fn judge(
    scope: &ReviewScope,
    parts: &[ScopePart],
    requirements: &RequirementList,
    replies: &[&Value],
) -> JudgedReview {
    let mut judged = JudgedReview {
        findings: Vec::new(),
        dropped: Vec::new(),
        answers: Vec::new(),
        checks_run: Vec::new(),
        checks: Vec::new(),
    };
    let shape = check_shape(replies, !requirements.is_empty());
    let is_well_formed = shape.passed();
    judged.checks.push(shape);
    if !is_well_formed {
        return judged;
    }
    judged.judge_findings(scope, replies);
    judged.check_coverage(scope, parts, replies);
    if !requirements.is_empty() {
        let (answers, check) = requirements.check_answers(replies);
        judged.answers = answers;
        judged.checks.push(check);
    }
    judged
        .findings
        .sort_by(|a, b| (a.severity, &a.file, a.line).cmp(&(b.severity, &b.file, b.line)));
    judged
}

/// Checks that the reviewer changed nothing.
pub(crate) fn check_untouched(paths: &[PathBuf]) -> Check {
    if paths.is_empty() {
        return Check::new(
            "untouched",
            true,
            "nothing in the project was changed by the reviewer",
        );
    }
    let detail = format!(
        "{} changed while the reviewer worked, who may only read; this was not undone, so look at it; answer without writing",
        words::list(paths.iter().map(|path| path.to_string_lossy()), 10)
    );
    Check::new("untouched", false, detail)
}

/// Checks that a reply has the required lists.
fn check_shape(replies: &[&Value], with_requirements: bool) -> Check {
    let required = ["findings", "reviewed", "requirements"];
    for (n, reply) in replies.iter().enumerate() {
        for field in required.iter().take(if with_requirements { 3 } else { 2 }) {
            let what = match reply.get(field) {
                Some(Value::Array(_)) => continue,
                Some(_) => "is not a list",
                None => "is missing",
            };
            let which = if replies.len() > 1 {
                format!(" of question {}", n + 1)
            } else {
                String::new()
            };
            let detail = format!(
                "`{field}` {what} in the reply{which}; give `findings` (empty if there are none) and `reviewed`, \
                 which names every file and the checks made on it{}",
                if with_requirements {
                    ", and `requirements` with a verdict on each"
                } else {
                    ""
                }
            );
            return Check::new(SHAPE, false, detail);
        }
    }
    Check::new(SHAPE, true, "every list that was asked for is there")
}

impl JudgedReview {
    /// Keeps the findings whose citations are right and drops the others.
    fn judge_findings(&mut self, scope: &ReviewScope, replies: &[&Value]) {
        let claims: Vec<&Value> = replies
            .iter()
            .flat_map(|reply| list(reply, "findings"))
            .collect();
        let mut seen = BTreeSet::new();
        for (n, given) in claims.iter().enumerate() {
            let judged = FindingClaim::read(given)
                .and_then(|claim| claim.verify(scope))
                .and_then(|finding| {
                    let place = finding.place();
                    let is_new = seen.insert((place, normalize(&finding.why)));
                    if is_new {
                        Ok(finding)
                    } else {
                        Err(String::from("says the same as one before it"))
                    }
                });
            match judged {
                // The same defect in an identical line is one finding with two places.
                Ok(finding) => match self
                    .findings
                    .iter_mut()
                    .find(|first| first.is_same_defect(&finding))
                {
                    Some(first) => first.also.push(finding.place()),
                    None => self.findings.push(finding),
                },
                Err(because) => self.dropped.push(DroppedFinding {
                    finding: n + 1,
                    because,
                }),
            }
        }
        let (all, dropped) = (claims.len(), self.dropped.len());
        let pass = dropped * 2 <= all;
        let corrected = match self
            .findings
            .iter()
            .filter(|finding| finding.corrected_from.is_some())
            .count()
        {
            0 => String::new(),
            n => format!(", {} corrected", words::count(n, "line number")),
        };
        let detail = match (dropped, pass) {
            (0, _) => format!(
                "{} cited and found there{corrected}",
                words::count(all, "finding")
            ),
            (_, true) => format!(
                "{dropped} of {all} findings dropped{corrected}: {}",
                self.reasons(5)
            ),
            (_, false) => format!(
                "{dropped} of {all} findings do not hold: {}; cite only lines that are shown, by the number before the \
                 colon; copy the line into `quote`; say in `why` what goes wrong there, and when; each defect once",
                self.reasons(5)
            ),
        };
        self.checks.push(Check::new("citations", pass, detail));
    }

    /// Checks that every file was reviewed, and for what.
    fn check_coverage(&mut self, scope: &ReviewScope, parts: &[ScopePart], replies: &[&Value]) {
        let mut missing: BTreeSet<String> = BTreeSet::new();
        for (part, reply) in parts.iter().zip(replies) {
            let named: Vec<(PathBuf, Vec<String>)> = list(reply, "reviewed")
                .iter()
                .filter_map(parse_reviewed)
                .collect();
            for file in part.files().filter(|file| !scope.is_deleted(file)) {
                let checks: Vec<&String> = named
                    .iter()
                    .filter(|(path, _)| path == file)
                    .flat_map(|(_, checks)| checks)
                    .collect();
                if checks.is_empty() {
                    missing.insert(file.display().to_string());
                }
            }
            for check in named.into_iter().flat_map(|(_, checks)| checks) {
                if !self.checks_run.contains(&check) {
                    self.checks_run.push(check);
                }
            }
        }
        let detail = if missing.is_empty() {
            String::from("every file that was shown is named with the checks made on it")
        } else {
            format!(
                "`reviewed` does not say what was checked in {}; read every file that is shown, and name it with its checks",
                words::list(missing.iter(), 10)
            )
        };
        self.checks
            .push(Check::new("coverage", missing.is_empty(), detail));
        let unnamed: Vec<&str> = IRON_LAWS
            .into_iter()
            .filter(|law| !self.checks_run.iter().any(|run| mentions_law(run, law)))
            .collect();
        let is_incomplete = self.findings.is_empty() && !unnamed.is_empty();
        let detail = if is_incomplete {
            format!(
                "no findings, and the checks named leave out {}; an answer without findings must have looked for {}",
                words::list(unnamed.iter(), 4),
                words::list(IRON_LAWS.iter(), 4),
            )
        } else {
            format!(
                "looked at: {}",
                words::cut_end(&self.checks_run.join(", "), 300)
            )
        };
        self.checks
            .push(Check::new("checks", !is_incomplete, detail));
    }

    /// The first few distinct reasons why findings were dropped.
    pub(crate) fn reasons(&self, max: usize) -> String {
        let mut grouped: Vec<(&str, Vec<String>)> = Vec::new();
        for dropped in &self.dropped {
            let number = dropped.finding.to_string();
            match grouped
                .iter_mut()
                .find(|(because, _)| *because == dropped.because)
            {
                Some((_, numbers)) => numbers.push(number),
                None => grouped.push((&dropped.because, vec![number])),
            }
        }
        let lines = grouped
            .iter()
            .take(max)
            .map(|(because, numbers)| match numbers.as_slice() {
                [one] => format!("finding {one}: {because}"),
                several => format!("findings {}: {because}", several.join(", ")),
            });
        let mut text = lines.collect::<Vec<_>>().join("; ");
        let more: usize = grouped
            .iter()
            .skip(max)
            .map(|(_, numbers)| numbers.len())
            .sum();
        if more > 0 {
            text += &format!("; and {more} more");
        }
        text
    }
}

/// Lowercase words separated by single spaces. Texts with the same result count as equal.
fn normalize(text: &str) -> String {
    let words = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

fn list<'a>(reply: &'a Value, field: &str) -> &'a [Value] {
    reply
        .get(field)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// Parses a file and the checks made on it.
fn parse_reviewed(entry: &Value) -> Option<(PathBuf, Vec<String>)> {
    let file = entry.get("file")?.as_str()?;
    let checks = match entry.get("checks")? {
        Value::String(one) => vec![one.as_str()],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => return None,
    };
    let tidy = |check: &str| words::cut_end(words::plain(check.trim()).trim(), 80).into_owned();
    let checks = checks
        .into_iter()
        .map(tidy)
        .filter(|check| check.chars().any(char::is_alphanumeric))
        .collect();
    Some((scope::normalize_path(file), checks))
}

/// Whether a check in the reviewer's words covers this law.
fn mentions_law(check: &str, law: &str) -> bool {
    let check = check.to_lowercase();
    match law {
        "errors" => check.contains("error"),
        "validation" => check.contains("valid") || check.contains("boundar"),
        "tests" => check.contains("test"),
        other => check.contains(other),
    }
}

#[cfg(test)]
mod tests;
