//! Computes score and verdict from the checks alone.

use serde::{Deserialize, Serialize};

/// Minimum score to pass.
const PASS_FROM: f64 = 0.8;
/// Scores below this block.
const BLOCK_BELOW: f64 = 0.5;
/// Minimum score change that counts as a trend.
const MIN_TREND_CHANGE: f64 = 0.05;

/// The outcome of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckOutcome {
    Pass,
    Warn,
    Fail,
    /// There was nothing to check; not counted.
    NotApplicable,
}

/// The report table in which a check is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckGroup {
    Consistency,
    Process,
    Health,
}

/// A citation: where something was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceLocation {
    pub file: String,
    /// From 1; 0 if the whole file is meant, for example a missing one.
    pub line: usize,
    pub text: String,
}

/// One check and its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckFinding {
    pub id: String,
    pub title: String,
    pub group: CheckGroup,
    /// A failure of this check blocks, whatever the score.
    pub critical: bool,
    pub outcome: CheckOutcome,
    /// One line.
    pub details: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<EvidenceLocation>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SupervisionVerdict {
    Pass,
    Warn,
    Block,
}

/// A verdict and the numbers behind it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ScoredVerdict {
    pub verdict: SupervisionVerdict,
    /// Rounded to two decimals.
    pub score: f64,
    /// Critical checks that failed.
    pub blocks: usize,
    /// Checks that warn or fail.
    pub risks: usize,
    pub counted: usize,
    pub not_applicable: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QualityTrend {
    Stable,
    Improving,
    Degrading,
}

impl ScoredVerdict {
    /// The mean of the applicable checks. A critical failure always blocks.
    pub fn of(checks: &[CheckFinding]) -> Self {
        let points = |outcome| match outcome {
            CheckOutcome::Pass => Some(1.0),
            CheckOutcome::Warn => Some(0.5),
            CheckOutcome::Fail => Some(0.0),
            CheckOutcome::NotApplicable => None,
        };
        let counted: Vec<f64> = checks
            .iter()
            .filter_map(|check| points(check.outcome))
            .collect();
        #[expect(clippy::cast_precision_loss, reason = "a handful of checks")]
        let mean = if counted.is_empty() {
            1.0
        } else {
            counted.iter().sum::<f64>() / counted.len() as f64
        };
        let blocks = checks
            .iter()
            .filter(|c| c.critical && c.outcome == CheckOutcome::Fail)
            .count();
        let verdict = if blocks > 0 || mean < BLOCK_BELOW {
            SupervisionVerdict::Block
        } else if mean < PASS_FROM {
            SupervisionVerdict::Warn
        } else {
            SupervisionVerdict::Pass
        };
        Self {
            verdict,
            score: (mean * 100.0).round() / 100.0,
            blocks,
            risks: checks
                .iter()
                .filter(|c| matches!(c.outcome, CheckOutcome::Warn | CheckOutcome::Fail))
                .count(),
            counted: counted.len(),
            not_applicable: checks.len() - counted.len(),
        }
    }
}

impl QualityTrend {
    /// Compares with the previous checkpoint.
    pub fn between(previous: Option<f64>, now: f64) -> Self {
        match previous {
            Some(before) if now - before >= MIN_TREND_CHANGE => Self::Improving,
            Some(before) if before - now >= MIN_TREND_CHANGE => Self::Degrading,
            _ => Self::Stable,
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Stable => "stable",
            Self::Improving => "improving",
            Self::Degrading => "degrading",
        }
    }
}

impl SupervisionVerdict {
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Warn => "warn",
            Self::Block => "block",
        }
    }
}

impl CheckOutcome {
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Warn => "warn",
            Self::Fail => "fail",
            Self::NotApplicable => "n/a",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checks(outcomes: &[(CheckOutcome, bool)]) -> Vec<CheckFinding> {
        let check = |&(outcome, critical): &(CheckOutcome, bool)| CheckFinding {
            id: "c".into(),
            title: "c".into(),
            group: CheckGroup::Process,
            critical,
            outcome,
            details: String::new(),
            evidence: Vec::new(),
        };
        outcomes.iter().map(check).collect()
    }

    #[test]
    fn verdict_is_the_mean_unless_critical() {
        use CheckOutcome::{Fail, NotApplicable, Pass, Warn};
        use SupervisionVerdict as V;
        let (p, w, f, n, c) = (
            (Pass, false),
            (Warn, false),
            (Fail, false),
            (NotApplicable, false),
            (Fail, true),
        );
        type Row<'a> = (&'a [(CheckOutcome, bool)], V, f64);
        let table: &[Row<'_>] = &[
            (&[], V::Pass, 1.0),
            (&[n, n], V::Pass, 1.0),
            (&[p, p, p, p, f], V::Pass, 0.8),
            (&[p, p, p, f], V::Warn, 0.75),
            (&[w], V::Warn, 0.5),
            (&[w, w, f], V::Block, 0.33),
            (&[p, f, f], V::Block, 0.33),
            (&[p, p, p, p, p, p, p, c], V::Block, 0.88),
            (&[p, (Warn, true)], V::Warn, 0.75),
            (&[p, n, n, w], V::Warn, 0.75),
            (&[p, p, w, w, w, p, p, p], V::Pass, 0.81),
            (&[f], V::Block, 0.0),
        ];
        for (outcomes, verdict, score) in table {
            let judged = ScoredVerdict::of(&checks(outcomes));
            assert_eq!(
                (judged.verdict, judged.score),
                (*verdict, *score),
                "{outcomes:?}"
            );
        }
    }

    #[test]
    fn small_score_changes_are_no_trend() {
        for (before, now, trend) in [
            (None, 0.2, QualityTrend::Stable),
            (Some(0.8), 0.82, QualityTrend::Stable),
            (Some(0.7), 0.9, QualityTrend::Improving),
            (Some(0.9), 0.7, QualityTrend::Degrading),
        ] {
            assert_eq!(QualityTrend::between(before, now), trend);
        }
    }
}
