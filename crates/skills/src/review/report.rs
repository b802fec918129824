//! Formats a review: one sentence with counts, one line per finding, and the rest as data.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::judgement::{JudgedReview, RequirementVerdict, ReviewFinding, Severity};
use super::material::{ReadExtent, ReviewMaterial};
use supervisor_engine::Status;
use supervisor_engine::skill::ServerFinding;
use supervisor_engine::work::{AcceptedWork, KeepPolicy, Verification, VerifierMaterial};
use supervisor_text::words;
use supervisor_verify::{Flags, Proof};

/// Max entries of each kind in the result; the rest is counted.
const MAX_FINDINGS: usize = 30;
const MAX_DROPPED: usize = 10;
const MAX_FILES: usize = 30;
const MAX_REQUIREMENTS: usize = 50;
/// Max bytes of findings in the result.
const MAX_FINDING_BYTES: usize = 20 * 1024;
/// Max bytes of `runner_output`.
const MAX_OUTPUT_BYTES: usize = 8 * 1024;
/// Max bytes of material shown to a verifier.
const MAX_EXHIBIT_BYTES: usize = 20 * 1024;

pub(super) struct ReviewReport<'a> {
    pub(super) material: &'a ReviewMaterial,
    pub(super) judged: JudgedReview,
    pub(super) questions: usize,
    pub(super) by_others: Vec<PathBuf>,
}

impl ReviewReport<'_> {
    pub(super) fn accepted_with(self, proof: Proof) -> AcceptedWork {
        let mut findings: Vec<&ReviewFinding> = self
            .material
            .scanned
            .iter()
            .chain(&self.judged.findings)
            .collect();
        findings.sort_by(|a, b| (a.severity, &a.file, a.line).cmp(&(b.severity, &b.file, b.line)));
        let is_critical = findings
            .iter()
            .any(|finding| finding.severity == Severity::Critical);
        AcceptedWork {
            verification: Verification::Proven(proof),
            keeps: KeepPolicy::Nothing,
            status: if is_critical {
                Status::Fail
            } else {
                Status::Pass
            },
            message: self.message(&findings),
            file_path: String::new(),
            runner_output: words::cut_middle(
                &findings.iter().map(|f| line(f)).collect::<String>(),
                MAX_OUTPUT_BYTES,
            )
            .into_owned(),
            gates: Vec::new(),
            flags: Flags::default(),
            details: self.details(&findings),
            next: Value::Null,
            exhibit: self.exhibit(),
        }
    }

    fn message(&self, findings: &[&ReviewFinding]) -> String {
        let count = |severity: Severity| findings.iter().filter(|f| f.severity == severity).count();
        let counted: Vec<String> = Severity::ALL
            .into_iter()
            .filter(|severity| count(*severity) > 0)
            .map(|severity| match severity {
                Severity::Critical => format!("{} critical", count(severity)),
                other => words::count(count(other), other.word()),
            })
            .collect();
        let files = words::count(self.material.shown(), "file");
        let mut message = match counted.as_slice() {
            [] => {
                format!(
                    "no findings in {files}; looked at {}",
                    words::cut_end(&self.judged.checks_run.join(", "), 200)
                )
            }
            some => format!("{} in {files}", some.join(", ")),
        };
        let mut add = |text: String| message.push_str(&format!("; {text}"));
        match self.judged.dropped.len() {
            0 => {}
            1 => add(String::from(
                "1 finding of the model did not hold and was dropped",
            )),
            n => add(format!(
                "{n} findings of the model did not hold and were dropped"
            )),
        }
        let answers = &self.judged.answers;
        if !answers.is_empty() {
            let of = |verdict| {
                answers
                    .iter()
                    .filter(|answer| answer.verdict == verdict)
                    .count()
            };
            let (missing, unsure) = (
                of(RequirementVerdict::Missing),
                of(RequirementVerdict::CannotVerify),
            );
            let required = words::count(answers.len(), "requirement");
            add(format!(
                "{required}: {} met, {missing} missing, {unsure} not verifiable",
                of(RequirementVerdict::Met)
            ));
        }
        let unseen = self
            .material
            .covered
            .iter()
            .filter(|file| file.read == ReadExtent::No)
            .count();
        if unseen > 0 {
            add(format!(
                "{} not shown",
                words::count(unseen, "changed file")
            ));
        }
        if self.questions > 1 {
            add(format!(
                "asked in {} parts, because it did not fit one window",
                self.questions
            ));
        }
        message
    }

    fn details(&self, findings: &[&ReviewFinding]) -> Value {
        let count = |severity: Severity| findings.iter().filter(|f| f.severity == severity).count();
        let mut remaining = MAX_FINDING_BYTES;
        let fits = |finding: &&&ReviewFinding| {
            let also: usize = finding.also.iter().map(String::len).sum();
            let size = finding.quote.len() + finding.why.len() + finding.fix.len() + also + 200;
            remaining = remaining.saturating_sub(size);
            remaining > 0
        };
        let shown_findings: Vec<_> = findings
            .iter()
            .take(MAX_FINDINGS)
            .take_while(fits)
            .collect();
        let shown = shown_findings.len();
        let mut details = json!({
            "findings": shown_findings,
            "counts": {
                "critical": count(Severity::Critical),
                "warning": count(Severity::Warning),
                "suggestion": count(Severity::Suggestion),
                "dropped": self.judged.dropped.len(),
            },
            "coverage": self.material.coverage(MAX_FILES),
            "checks_run": self.judged.checks_run.iter().take(20).collect::<Vec<_>>(),
        });
        let mut left_out = |what: &str, all: usize, most: usize| {
            if all > most {
                details["left_out"][what] = json!(all - most);
            }
        };
        left_out("findings", findings.len(), shown);
        left_out("coverage", self.material.covered.len(), MAX_FILES);
        left_out("dropped", self.judged.dropped.len(), MAX_DROPPED);
        left_out("requirements", self.judged.answers.len(), MAX_REQUIREMENTS);
        if !self.judged.dropped.is_empty() {
            details["dropped"] = json!(
                self.judged
                    .dropped
                    .iter()
                    .take(MAX_DROPPED)
                    .collect::<Vec<_>>()
            );
        }
        if !self.judged.answers.is_empty() {
            details["requirements"] = json!(
                self.judged
                    .answers
                    .iter()
                    .take(MAX_REQUIREMENTS)
                    .collect::<Vec<_>>()
            );
        }
        if !self.material.range.is_null() {
            details["range"] = self.material.range.clone();
        }
        if self.questions > 1 {
            details["questions"] = json!(self.questions);
        }
        if !self.by_others.is_empty() {
            details["changed_meanwhile"] =
                json!(self.by_others.iter().take(MAX_FILES).collect::<Vec<_>>());
        }
        details
    }

    /// For the verifier: the model's findings and the lines they cite, with context.
    fn exhibit(&self) -> VerifierMaterial {
        let mut answer: String = self.judged.findings.iter().map(line).collect();
        if answer.is_empty() {
            answer = String::from("no findings\n");
        }
        let _ = writeln!(answer, "checks made: {}", self.judged.checks_run.join(", "));
        for given in &self.judged.answers {
            let _ = writeln!(
                answer,
                "{} {}: {}",
                given.id,
                given.verdict.word(),
                given.why
            );
        }
        let mut material = String::new();
        for finding in &self.judged.findings {
            if material.len() > MAX_EXHIBIT_BYTES {
                break;
            }
            let (from, to) = (
                finding.line.saturating_sub(3),
                finding.end_line.unwrap_or(finding.line) + 3,
            );
            material += &self.material.excerpt(&finding.file, from..=to);
            material.push('\n');
        }
        // Show the other lines too, so that the verifier can notice what was missed.
        for (file, _, lines) in self.material.scope.files() {
            for range in lines.ranges() {
                if material.len() > MAX_EXHIBIT_BYTES {
                    break;
                }
                material += &self.material.excerpt(
                    file,
                    *range.start()..=(*range.end()).min(range.start() + 200),
                );
                material.push('\n');
            }
        }
        VerifierMaterial::Text {
            answer,
            material: words::cut_end(&material, MAX_EXHIBIT_BYTES).into_owned(),
        }
    }
}

/// The server's own findings, reported even if no model gave an answer.
pub(super) fn scan_finding(material: &ReviewMaterial) -> Option<ServerFinding> {
    let findings: Vec<&ReviewFinding> = material.scanned.iter().take(MAX_FINDINGS).collect();
    let lines: String = findings.iter().map(|finding| line(finding)).collect();
    (!findings.is_empty()).then(|| ServerFinding {
        sentence: words::cut_end(&lines.trim_end().replace('\n', "; "), 1000).into_owned(),
        details: json!({"findings": findings}),
    })
}

/// `critical src/a.rs:12 [security] why (fix: …)`
fn line(finding: &ReviewFinding) -> String {
    let mut line = format!(
        "{} {}:{}",
        finding.severity.word(),
        finding.file.display(),
        finding.line
    );
    if let Some(end) = finding.end_line {
        let _ = write!(line, "-{end}");
    }
    if let Some(given) = finding.corrected_from {
        let _ = write!(line, " (line {given} corrected)");
    }
    if !finding.rule.is_empty() {
        let _ = write!(line, " [{}]", finding.rule);
    }
    let _ = write!(line, " {}", finding.why);
    if !finding.also.is_empty() {
        let _ = write!(line, " (also {})", words::list(finding.also.iter(), 10));
    }
    if !finding.fix.is_empty() {
        let _ = write!(line, " (fix: {})", finding.fix);
    }
    line.replace('\n', " ") + "\n"
}
