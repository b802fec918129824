//! Checks explanations of an error: whether each is complete, whether its prediction comes true,
//! and whether that distinguishes its cause from the others.

mod confirm;
mod discrimination;
mod draft;
mod evidence;
mod gates;
mod pattern;
mod similarity;

use std::fmt;

use serde::{Deserialize, Serialize};

pub(crate) use confirm::Confirmation;
pub(crate) use discrimination::compare;
pub(crate) use draft::{HypothesisDraft, drafts};
pub(crate) use evidence::EvidenceSources;
pub(crate) use gates::examine;
use pattern::SearchPattern;

use crate::common::citations::Citation;
use supervisor_verify::{Check, Proof, ProofError, Repro};

/// A complete explanation.
#[derive(Debug, Clone)]
pub(crate) struct Hypothesis {
    pub likelihood: Likelihood,
    pub title: String,
    pub mechanism: String,
    /// Verified citations.
    pub evidence: Vec<Citation>,
    pub experiment: Experiment,
    pub expect_if_true: ExperimentOutcome,
    pub expect_if_false: ExperimentOutcome,
    /// Explicit predictions of other hypotheses for this experiment.
    pub rivals: Vec<RivalPrediction>,
    /// Why the outcome would support it.
    pub because: String,
    /// A command for people. It is shown, never run.
    pub command: String,
}

/// The outcome that another hypothesis predicts for an experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RivalPrediction {
    /// Counted from 0.
    pub hypothesis: usize,
    /// `None` if it predicts neither outcome.
    pub expects: Option<ExperimentOutcome>,
}

/// Ordered from likely to unlikely.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Likelihood {
    High,
    Medium,
    Low,
}

/// An experiment that the server can run. Arbitrary commands are not run.
#[derive(Debug, Clone)]
pub(crate) enum Experiment {
    RunTest(String),
    Search {
        pattern: SearchPattern,
        /// Relative to the project root.
        file: std::path::PathBuf,
    },
}

/// The outcome of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ExperimentOutcome {
    Fails,
    Passes,
    Found,
    NotFound,
}

impl Hypothesis {
    /// Whether its search looks for something that it mentions. A test's name says too little to
    /// judge, so a test always counts as related.
    fn is_related_to_its_search(&self) -> bool {
        let Experiment::Search { pattern, .. } = &self.experiment else {
            return true;
        };
        let mut texts = vec![self.title.as_str(), &self.mechanism, &self.because];
        texts.extend(self.evidence.iter().map(|cited| cited.text.as_str()));
        pattern.shares_word_with(&texts)
    }
}

impl ExperimentOutcome {
    /// Parses `found` and also `the_pattern_is_found_in_line_3`. `None` if it is ambiguous.
    fn parse_lenient(text: &str) -> Option<Self> {
        let has = |word: &str| text.contains(word);
        let denied = ["not_", "n't", "no_", "never"].into_iter().any(has);
        match (has("found"), has("fail"), has("pass")) {
            (true, false, false) if has("not_found") => Some(Self::NotFound),
            (true, false, false) if !denied => Some(Self::Found),
            (false, true, false) if !denied => Some(Self::Fails),
            (false, false, true) if !denied => Some(Self::Passes),
            _ => None,
        }
    }
}

impl fmt::Display for ExperimentOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fails => "fails",
            Self::Passes => "passes",
            Self::Found => "found",
            Self::NotFound => "not_found",
        })
    }
}

impl fmt::Display for Experiment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RunTest(name) => write!(f, "run_test {name}"),
            Self::Search { pattern, file } => write!(f, "search `{pattern}` in {}", file.display()),
        }
    }
}

/// Proves a cause if the error was reproduced and one confirmation held where every rival predicts
/// otherwise. `passed` are the checks so far; `cause` is the result of [`compare`].
pub(crate) fn proof(
    passed: Vec<Check>,
    repro: Option<&Repro>,
    confirmed: &[Confirmation],
    cause: Option<usize>,
) -> Result<Proof, String> {
    let Some(repro) = repro else {
        return Err(String::from(
            "no `repro_cmd` was given, so the error was not seen again",
        ));
    };
    let came_true = confirmed
        .iter()
        .filter(|c| c.came_true() == Some(true))
        .count();
    let detail = match cause {
        Some(n) => format!(
            "confirmation {} held where every other cause predicts otherwise",
            n + 1
        ),
        None if came_true == 0 => format!(
            "none of {} experiments came out as predicted",
            confirmed.len()
        ),
        None => format!(
            "{came_true} of {} experiments came out as predicted, and none tells its cause from all the others",
            confirmed.len()
        ),
    };
    let mut checks = passed;
    checks.extend([
        repro.check(),
        Check::new("confirmed", cause.is_some(), detail),
    ]);
    Proof::of_checks(checks).map_err(|refusal| match refusal {
        ProofError::CheckFailed { detail, .. } => detail,
        other => other.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unambiguous_outcome_is_parsed_leniently() {
        for (text, expected) in [
            ("found", Some(ExperimentOutcome::Found)),
            ("found_in_line_3", Some(ExperimentOutcome::Found)),
            ("not_found", Some(ExperimentOutcome::NotFound)),
            (
                "the_pattern_is_not_found",
                Some(ExperimentOutcome::NotFound),
            ),
            ("the_test_fails", Some(ExperimentOutcome::Fails)),
            ("it_passes", Some(ExperimentOutcome::Passes)),
            ("does_not_fail", None),
            ("isn't_found", None),
            ("passes_or_fails", None),
            ("something_else", None),
            ("", None),
        ] {
            assert_eq!(ExperimentOutcome::parse_lenient(text), expected, "{text}");
        }
    }
}
