//! Checks a specification draft: its sections, the test of each criterion and the mapping of each
//! requirement. Missing or dangling parts are rejected, a doubtful map is flagged. Rendering the
//! document is done elsewhere.

mod draft;
mod mapping;
mod questions;
mod requirements;
mod testable;

use std::fmt::Write as _;
use std::io;

use sha2::{Digest as _, Sha256};

use crate::common::count_criteria;
pub(crate) use draft::{
    OpenQuestion, SpecificationAnswer, SpecificationDraft, SpecifiedDecision, SpecifiedRisk, read,
    schema,
};
pub(crate) use questions::examine as examine_questions;
pub(crate) use requirements::RequirementItems;
use supervisor_text::words;
use supervisor_verify::{Check, Flags};
pub(crate) use testable::CriterionTest;

/// A draft that passed every check.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Specification {
    pub problem: String,
    pub criteria: Vec<Criterion>,
    pub constraints: Vec<String>,
    pub out_of_scope: Vec<String>,
    pub approach: Vec<SpecifiedDecision>,
    pub risks: Vec<SpecifiedRisk>,
    /// In the order of the requirements. Each has at least one target or is background.
    pub requirement_map: Vec<RequirementRoute>,
    pub questions: Vec<OpenQuestion>,
}

/// A success criterion and its test.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Criterion {
    pub id: String,
    pub text: String,
    pub test: CriterionTest,
}

/// The targets that a requirement is mapped to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RequirementRoute {
    /// `R1`
    pub requirement: String,
    pub criteria: Vec<String>,
    /// From 1.
    pub out_of_scope: Vec<usize>,
    /// From 1.
    pub questions: Vec<usize>,
    /// The sentence asks for nothing and has no target.
    pub background: bool,
}

/// All checks of a draft. Later checks run even if an earlier one fails, so that the next tier sees
/// every fault at once.
#[derive(Debug, Clone)]
pub(crate) struct ExaminedSpecification {
    pub checks: Vec<Check>,
    /// Doubts that the checks cannot decide.
    pub flags: Flags,
    /// Set if every check passed.
    pub specification: Option<Specification>,
}

impl SpecificationDraft {
    /// Runs all checks.
    pub(crate) fn examine(self, requirements: &RequirementItems) -> ExaminedSpecification {
        let mut flags = Flags::default();
        let (tests, testable) = testable::examine(&self);
        let (routes, mapped) = mapping::examine(&self, &tests, requirements, &mut flags);
        let mut checks = vec![
            self.check_sections(),
            self.check_ids(),
            testable,
            self.check_reasons(),
            mapped,
        ];
        if !self.questions.is_empty() {
            checks.push(questions::examine(&self.questions, requirements));
        }
        let passed = checks.iter().all(Check::passed);
        let specification = passed.then(|| self.specification(tests, routes));
        ExaminedSpecification {
            checks,
            flags,
            specification,
        }
    }

    fn specification(
        self,
        tests: Vec<Option<CriterionTest>>,
        requirement_map: Vec<RequirementRoute>,
    ) -> Specification {
        let criteria = self
            .criteria
            .into_iter()
            .zip(tests)
            .filter_map(|(given, test)| {
                let criterion = |test| Criterion {
                    id: given.id.trim().to_owned(),
                    text: given.text,
                    test,
                };
                test.map(criterion)
            });
        Specification {
            problem: self.problem,
            criteria: criteria.collect(),
            constraints: self.constraints,
            out_of_scope: self.out_of_scope,
            approach: self.approach,
            risks: self.risks,
            requirement_map,
            questions: self.questions,
        }
    }

    /// The list sections: name, what one entry is called, and the texts.
    fn lists(&self) -> [(&'static str, &'static str, Vec<&str>); 5] {
        [
            (
                "criteria",
                "criterion",
                self.criteria.iter().map(|c| c.text.as_str()).collect(),
            ),
            (
                "constraints",
                "constraint",
                self.constraints.iter().map(String::as_str).collect(),
            ),
            (
                "out_of_scope",
                "exclusion",
                self.out_of_scope.iter().map(String::as_str).collect(),
            ),
            (
                "approach",
                "decision",
                self.approach.iter().map(|d| d.decision.as_str()).collect(),
            ),
            (
                "risks",
                "risk",
                self.risks.iter().map(|r| r.risk.as_str()).collect(),
            ),
        ]
    }

    /// Checks that all six sections are present and have content.
    fn check_sections(&self) -> Check {
        let mut missing = Vec::new();
        let mut blank = Vec::new();
        if !has_content(&self.problem) {
            missing.push("problem");
        }
        for (section, one, texts) in self.lists() {
            if texts.is_empty() {
                missing.push(section);
            }
            let empty = texts
                .iter()
                .enumerate()
                .filter(|(_, text)| !has_content(text));
            blank.extend(empty.map(|(n, _)| format!("{one} {}", n + 1)));
        }
        let mut faults = Vec::new();
        if !missing.is_empty() {
            let what = if missing.len() == 1 {
                "the section"
            } else {
                "the sections"
            };
            let names: Vec<String> = missing.iter().map(|name| format!("`{name}`")).collect();
            faults.push(format!(
                "{what} {} must not be missing or empty; each needs at least one entry",
                names.join(", ")
            ));
        }
        if !blank.is_empty() {
            faults.push(format!(
                "these say nothing: {}; write them out or leave them out",
                first_few(&blank)
            ));
        }
        check_from("sections", &faults, || {
            format!(
                "six sections, {}, {}",
                words::count(self.constraints.len(), "constraint"),
                words::count(self.out_of_scope.len(), "exclusion")
            )
        })
    }

    /// Checks that each criterion has a valid, unique id.
    fn check_ids(&self) -> Check {
        let mut faults = Vec::new();
        let mut seen: Vec<String> = Vec::new();
        for (n, criterion) in self.criteria.iter().enumerate() {
            let id = criterion.id.trim();
            if !is_id(id) {
                faults.push(format!(
                    "criterion {} has the id {}; an id is letters, a dash if you like, and a number, such as `AC-1`",
                    n + 1,
                    quoted(id)
                ));
            } else if seen.contains(&id.to_uppercase()) {
                faults.push(format!(
                    "two criteria have the id {}; give each an id of its own",
                    quoted(id)
                ));
            }
            seen.push(id.to_uppercase());
        }
        check_from("ids", &faults, || {
            format!("{}, each with an id of its own", count_criteria(seen.len()))
        })
    }

    /// Checks that each decision has a rationale and each risk a mitigation.
    fn check_reasons(&self) -> Check {
        let mut faults = Vec::new();
        for (n, given) in self.approach.iter().enumerate() {
            if !has_content(&given.rationale) {
                faults.push(format!(
                    "decision {} ({}) has no rationale; say why",
                    n + 1,
                    quoted(&given.decision)
                ));
            } else if same_words(&given.rationale, &given.decision) {
                faults.push(format!(
                    "the rationale of decision {} only repeats it; say why",
                    n + 1
                ));
            }
        }
        for (n, given) in self.risks.iter().enumerate() {
            if !has_content(&given.mitigation) {
                let risk = quoted(&given.risk);
                faults.push(format!(
                    "risk {} ({risk}) has no mitigation; say what is done about it",
                    n + 1
                ));
            } else if same_words(&given.mitigation, &given.risk) {
                faults.push(format!(
                    "the mitigation of risk {} only repeats it; say what is done about it",
                    n + 1
                ));
            }
        }
        check_from("reasons", &faults, || {
            format!(
                "{} with a rationale, {} with a mitigation",
                words::count(self.approach.len(), "decision"),
                words::count(self.risks.len(), "risk")
            )
        })
    }
}

/// Checks that the file on disk has the expected content.
pub(crate) fn check_written(expected: &[u8], found: io::Result<Vec<u8>>) -> Check {
    match found {
        Ok(found) if found == expected => {
            let (digest, bytes) = (sha256(&found), words::count(found.len(), "byte"));
            Check::new(
                "written",
                true,
                format!("read back: {bytes}, sha256 {digest}"),
            )
        }
        Ok(found) => {
            let (is, was) = (found.len(), expected.len());
            Check::new(
                "written",
                false,
                format!("read back {is} bytes that differ from the {was} written"),
            )
        }
        Err(error) => Check::new(
            "written",
            false,
            format!("what was written cannot be read back: {error}"),
        ),
    }
}

/// The digest in hexadecimal, as `sha256sum` prints it.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
}

/// A failed check with the faults, or a passed one with its detail.
fn check_from(id: &'static str, faults: &[String], detail: impl FnOnce() -> String) -> Check {
    if faults.is_empty() {
        Check::new(id, true, detail())
    } else {
        Check::new(id, false, first_few(faults))
    }
}

/// Joins the first few faults and counts the rest.
fn first_few(faults: &[String]) -> String {
    const MAX_SHOWN: usize = 5;
    let shown = faults
        .iter()
        .take(MAX_SHOWN)
        .cloned()
        .collect::<Vec<_>>()
        .join("; ");
    match faults.len().saturating_sub(MAX_SHOWN) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}

/// Whether the text has a letter or digit.
fn has_content(text: &str) -> bool {
    text.chars().any(char::is_alphanumeric)
}

/// Accepts ids such as `AC-1` and `SC12`: up to eight letters, an optional dash, a number. `R1` is
/// reserved for requirements.
fn is_id(id: &str) -> bool {
    let letters = id.chars().take_while(char::is_ascii_alphabetic).count();
    let rest = &id[letters..];
    let digits = rest.strip_prefix('-').unwrap_or(rest);
    (1..=8).contains(&letters)
        && (1..=4).contains(&digits.len())
        && digits.bytes().all(|b| b.is_ascii_digit())
        && !(id[..letters].eq_ignore_ascii_case("r"))
}

/// Whether both texts have the same words, ignoring case, spaces and punctuation.
fn same_words(a: &str, b: &str) -> bool {
    let bare = |text: &str| -> String {
        text.chars()
            .filter(|c| c.is_alphanumeric())
            .flat_map(char::to_lowercase)
            .collect()
    };
    bare(a) == bare(b)
}

/// Quotes a model's text in a message.
fn quoted(text: &str) -> String {
    let one_line = words::one_line(text).replace('`', "'");
    format!("`{}`", words::cut_end(&words::plain(&one_line), 80))
}

#[cfg(test)]
mod tests;
