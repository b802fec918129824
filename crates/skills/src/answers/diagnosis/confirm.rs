//! Runs what a hypothesis predicts: one test of the project, or a search in a file. Nothing else is ever run.

use std::path::Path;

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::evidence::EvidenceShelf;
use super::pattern::SearchPattern;
use super::telling::Telling;
use super::{Experiment, ExperimentOutcome, Hypothesis};
use supervisor_verify::{Bench, TestLab};

/// Lines of a search that are told.
const LINES: usize = 10;

/// What came of one experiment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Confirmation {
    /// `None` if it could not be run.
    pub(super) outcome: Option<ExperimentOutcome>,
    detail: String,
    /// The lines that a search found.
    #[serde(skip)]
    pub(super) found: Vec<usize>,
    #[serde(skip)]
    pub(super) predicted: ExperimentOutcome,
    #[serde(skip)]
    telling: Telling,
}

impl Confirmation {
    pub fn outcome(&self) -> Option<ExperimentOutcome> {
        self.outcome
    }

    /// `None` if nothing was shown either way.
    pub fn as_predicted(&self) -> Option<bool> {
        let came_true = self.came_true()?;
        (!came_true || self.telling.nothing.is_none()).then_some(came_true)
    }

    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// The rivals that it speaks against, by rank, and why it says nothing where it does not.
    pub fn telling(&self) -> &Telling {
        &self.telling
    }

    /// Did it come out as its hypothesis says, whatever that is worth?
    pub(super) fn came_true(&self) -> Option<bool> {
        self.outcome.map(|outcome| outcome == self.predicted)
    }

    pub(super) fn with(self, telling: Telling) -> Self {
        Self { telling, ..self }
    }
}

impl Hypothesis {
    /// Does what the hypothesis asks for.
    pub async fn confirm(
        &self,
        lab: &TestLab,
        shelf: &EvidenceShelf,
        bench: &Bench,
        stop: &CancellationToken,
    ) -> Confirmation {
        match &self.experiment {
            Experiment::RunTest(name) => {
                let (passes, detail) = lab.run_named(name, bench, stop).await;
                let outcome = |passes| {
                    if passes {
                        ExperimentOutcome::Passes
                    } else {
                        ExperimentOutcome::Fails
                    }
                };
                self.confirmation(passes.map(outcome), detail, Vec::new())
            }
            Experiment::Search { pattern, file } => self.search(pattern, file, shelf),
        }
    }

    pub(super) fn search(
        &self,
        pattern: &SearchPattern,
        file: &Path,
        shelf: &EvidenceShelf,
    ) -> Confirmation {
        let named = file.to_string_lossy();
        // Read together with the citations; a path that the project uses is its own name.
        match shelf.text(file).map(|text| pattern.lines(text)) {
            Some(Ok(lines)) if lines.is_empty() => self.confirmation(
                Some(ExperimentOutcome::NotFound),
                format!("no line of `{named}`"),
                lines,
            ),
            Some(Ok(lines)) => {
                self.confirmation(Some(ExperimentOutcome::Found), list_lines(&lines), lines)
            }
            Some(Err(why)) => self.confirmation(None, why, Vec::new()),
            None => self.confirmation(None, format!("`{named}` cannot be read"), Vec::new()),
        }
    }

    fn confirmation(
        &self,
        outcome: Option<ExperimentOutcome>,
        detail: String,
        found: Vec<usize>,
    ) -> Confirmation {
        Confirmation {
            outcome,
            detail,
            found,
            predicted: self.expect_if_true,
            telling: Telling::default(),
        }
    }
}

fn list_lines(found: &[usize]) -> String {
    let shown: Vec<String> = found.iter().take(LINES).map(ToString::to_string).collect();
    let more = found.len().saturating_sub(LINES);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    format!(
        "{} {}{more}",
        if found.len() == 1 { "line" } else { "lines" },
        shown.join(", ")
    )
}
