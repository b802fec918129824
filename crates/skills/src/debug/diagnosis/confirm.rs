//! Runs the experiment of a hypothesis: one test of the project, or a search in a file. Nothing
//! else is run.

use std::path::Path;

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::discrimination::Discrimination;
use super::evidence::EvidenceSources;
use super::pattern::SearchPattern;
use super::{Experiment, ExperimentOutcome, Hypothesis};
use supervisor_verify::{NamedTestRunner, RunEnvironment};

/// Max line numbers listed for a search.
const MAX_LISTED_LINES: usize = 10;

/// The outcome of one experiment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Confirmation {
    /// `None` if it could not be run.
    pub(super) outcome: Option<ExperimentOutcome>,
    detail: String,
    /// The lines that a search matched.
    #[serde(skip)]
    pub(super) found: Vec<usize>,
    #[serde(skip)]
    pub(super) predicted: ExperimentOutcome,
    #[serde(skip)]
    discrimination: Discrimination,
}

impl Confirmation {
    pub(crate) fn outcome(&self) -> Option<ExperimentOutcome> {
        self.outcome
    }

    /// `None` if the outcome is inconclusive.
    pub(crate) fn as_predicted(&self) -> Option<bool> {
        let came_true = self.came_true()?;
        (!came_true || self.discrimination.why_inconclusive.is_none()).then_some(came_true)
    }

    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// Which rivals the outcome rules out, and why it is inconclusive if it is.
    pub(crate) fn discrimination(&self) -> &Discrimination {
        &self.discrimination
    }

    /// Whether the outcome matches the prediction, conclusive or not.
    pub(super) fn came_true(&self) -> Option<bool> {
        self.outcome.map(|outcome| outcome == self.predicted)
    }

    pub(super) fn with_discrimination(self, discrimination: Discrimination) -> Self {
        Self {
            discrimination,
            ..self
        }
    }
}

impl Hypothesis {
    /// Runs the experiment.
    pub(crate) async fn confirm(
        &self,
        lab: &NamedTestRunner,
        sources: &EvidenceSources,
        bench: &RunEnvironment,
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
            Experiment::Search { pattern, file } => self.search(pattern, file, sources),
        }
    }

    pub(super) fn search(
        &self,
        pattern: &SearchPattern,
        file: &Path,
        sources: &EvidenceSources,
    ) -> Confirmation {
        let named = file.to_string_lossy();
        // The file was read together with the citations, under its project path.
        match sources.text(file).map(|text| pattern.lines(text)) {
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
            discrimination: Discrimination::default(),
        }
    }
}

fn list_lines(found: &[usize]) -> String {
    let shown: Vec<String> = found
        .iter()
        .take(MAX_LISTED_LINES)
        .map(ToString::to_string)
        .collect();
    let more = found.len().saturating_sub(MAX_LISTED_LINES);
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
