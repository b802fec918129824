//! Explanations of an error: does each hold what an explanation must, and does what it predicts come true?
//! Knows drafts, citations and experiments. Does not know who wrote them; that a cause is the true one it cannot know.

mod alike;
mod confirm;
mod draft;
mod evidence;
mod gates;
mod pattern;
mod phrases;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use confirm::{Confirmation, Lab};
pub use draft::{Draft, drafts};
pub use evidence::Shelf;
pub use gates::{Examined, examine};
use pattern::Pattern;

use super::citations::Cited;
use super::proof::{Check, Proof, Refusal};
use super::repro::Repro;

/// An explanation that holds what an explanation must.
#[derive(Debug, Clone)]
pub struct Hypothesis {
    pub likelihood: Likelihood,
    pub title: String,
    pub mechanism: String,
    /// Real lines of the project.
    pub evidence: Vec<Cited>,
    pub experiment: Experiment,
    pub expect_if_true: Outcome,
    pub expect_if_false: Outcome,
    /// Why the outcome would show it.
    pub because: String,
    /// What a person might run. Shown, never run.
    pub command: String,
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
        pattern: Pattern,
        /// As the project names it.
        file: std::path::PathBuf,
    },
}

/// What an experiment can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Fails,
    Passes,
    Found,
    NotFound,
}

impl Hypothesis {
    /// Does its test look for something that it speaks of? Of a test of the project nobody can tell by its name.
    fn is_about_its_test(&self) -> bool {
        let Experiment::Search { pattern, .. } = &self.experiment else { return true };
        let mut texts = vec![self.title.as_str(), &self.mechanism, &self.because];
        texts.extend(self.evidence.iter().map(|cited| cited.text.as_str()));
        pattern.is_about(&texts)
    }
}

impl Outcome {
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

impl fmt::Display for Outcome {
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

/// It is shown only if the error was seen again and at least one prediction came true; `held` is what was checked before.
pub fn proof(held: Vec<Check>, repro: Option<&Repro>, confirmed: &[Confirmation]) -> Result<Proof, String> {
    let Some(repro) = repro else {
        return Err(String::from("no `repro_cmd` was given, so the error was not seen again"));
    };
    let came_true = confirmed.iter().filter(|c| c.as_predicted() == Some(true)).count();
    let said = format!("{came_true} of {} confirmations came out as predicted", confirmed.len());
    let mut checks = held;
    checks.extend([repro.check(), Check::new("confirmed", came_true > 0, said)]);
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
            ("found", Some(Outcome::Found)),
            ("found_in_line_3", Some(Outcome::Found)),
            ("not_found", Some(Outcome::NotFound)),
            ("the_pattern_is_not_found", Some(Outcome::NotFound)),
            ("the_test_fails", Some(Outcome::Fails)),
            ("it_passes", Some(Outcome::Passes)),
            ("does_not_fail", None),
            ("isn't_found", None),
            ("passes_or_fails", None),
            ("something_else", None),
            ("", None),
        ] {
            assert_eq!(Outcome::meant(said), meant, "{said}");
        }
    }
}
