//! Explanations of an error: does each hold what an explanation must, does what it predicts come true, and does that tell
//! its cause from the others? Knows drafts, citations and experiments. Does not know who wrote them.

mod alike;
mod confirm;
mod draft;
mod evidence;
mod gates;
mod pattern;
mod telling;
mod wording;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use confirm::Confirmation;
pub use draft::{HypothesisDraft, drafts};
pub use evidence::EvidenceShelf;
pub use gates::examine;
use pattern::SearchPattern;
pub use telling::compare;

use super::citations::Citation;
use supervisor_verify::{Check, Proof, Refusal, Repro};

/// An explanation that holds what an explanation must.
#[derive(Debug, Clone)]
pub struct Hypothesis {
    pub likelihood: Likelihood,
    pub title: String,
    pub mechanism: String,
    /// Real lines of the project.
    pub evidence: Vec<Citation>,
    pub experiment: Experiment,
    pub expect_if_true: ExperimentOutcome,
    pub expect_if_false: ExperimentOutcome,
    /// Where another hypothesis predicts something of its own.
    pub rivals: Vec<RivalPrediction>,
    /// Why the outcome would show it.
    pub because: String,
    /// What a person might run. Shown, never run.
    pub command: String,
}

/// What another hypothesis predicts of an experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RivalPrediction {
    /// Counted from 0.
    pub hypothesis: usize,
    /// `None`: it says nothing about it.
    pub expects: Option<ExperimentOutcome>,
}

/// From likely to unlikely, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Likelihood {
    High,
    Medium,
    Low,
}

/// What the server can do by itself to learn more. There is no third way: free commands are not run.
#[derive(Debug, Clone)]
pub enum Experiment {
    RunTest(String),
    Search {
        pattern: SearchPattern,
        /// As the project names it.
        file: std::path::PathBuf,
    },
}

/// What an experiment can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExperimentOutcome {
    Fails,
    Passes,
    Found,
    NotFound,
}

impl Hypothesis {
    /// Does its test look for something that it speaks of? A test of the project cannot be told by its name.
    fn is_about_its_test(&self) -> bool {
        let Experiment::Search { pattern, .. } = &self.experiment else {
            return true;
        };
        let mut texts = vec![self.title.as_str(), &self.mechanism, &self.because];
        texts.extend(self.evidence.iter().map(|cited| cited.text.as_str()));
        pattern.is_about(&texts)
    }
}

impl ExperimentOutcome {
    /// `found`, and also `the_pattern_is_found_in_line_3`; `None` where two could be meant.
    fn meant(said: &str) -> Option<Self> {
        let has = |word: &str| said.contains(word);
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

/// A cause is shown only if the error was seen again and one confirmation held where its rivals predicted otherwise;
/// `held` is what was checked before, `cause` what [`compare`] found.
pub fn proof(
    held: Vec<Check>,
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
    let said = match cause {
        Some(n) => format!(
            "confirmation {} held where every other cause predicts otherwise",
            n + 1
        ),
        None if came_true == 0 => format!(
            "0 of {} confirmations came out as predicted",
            confirmed.len()
        ),
        None => format!(
            "{came_true} of {} confirmations came out as predicted, and none tells its cause from all the others",
            confirmed.len()
        ),
    };
    let mut checks = held;
    checks.extend([
        repro.check(),
        Check::new("confirmed", cause.is_some(), said),
    ]);
    Proof::of_checks(checks).map_err(|refusal| match refusal {
        Refusal::Check { detail, .. } => detail,
        other => other.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_is_known_by_its_word_where_only_one_can_be_meant() {
        for (said, meant) in [
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
            assert_eq!(ExperimentOutcome::meant(said), meant, "{said}");
        }
    }
}
