//! What the call would have cost if only the top tier had been asked, to show what the cheaper
//! tiers save. It is exact if the top tier was asked, otherwise an estimate, and `None` rather than
//! a guess.

use serde::{Deserialize, Serialize};

use super::attempt::serialize_nano_usd;
use super::{Attempt, Verdict};
use supervisor_settings::{Billing, Route, Tier, TierKind};

/// The last tier of a call's chain, as if it had been asked alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TopTier {
    pub model: String,
    /// `null` means unknown, which is not zero.
    #[serde(serialize_with = "serialize_nano_usd")]
    pub cost_usd: Option<f64>,
    pub basis: Basis,
}

/// Source of the figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// It was asked in this call, and this is the actual cost.
    Asked,
    /// The tokens of the last answer at the top tier's prices. An agent that reads the project
    /// itself uses more tokens than a model that is shown a few files.
    Estimated,
    /// No model was asked, so the top tier would have cost nothing either.
    NoModelAsked,
}

impl TopTier {
    /// The cost of this and of a later call of one cycle.
    pub fn and(self, later: Self) -> Self {
        let basis = match (self.basis, later.basis) {
            (Basis::NoModelAsked, basis) | (basis, Basis::NoModelAsked) => basis,
            (Basis::Asked, Basis::Asked) => Basis::Asked,
            _ => Basis::Estimated,
        };
        Self {
            model: later.model,
            cost_usd: self.cost_usd.zip(later.cost_usd).map(|(a, b)| a + b),
            basis,
        }
    }
}

pub(super) fn estimate_cost(route: &Route, attempts: &[Attempt]) -> TopTier {
    let top = route.chain.rest.last().unwrap_or(&route.chain.first);
    let figure = |basis, cost_usd| TopTier {
        model: top.name.to_string(),
        cost_usd,
        basis,
    };
    if attempts.is_empty() {
        return figure(Basis::NoModelAsked, Some(0.0));
    }
    // A subscription has no price for a single call.
    if top.backend.billing == Some(Billing::Subscription) {
        return figure(Basis::Estimated, None);
    }
    let was_asked = |attempt: &&Attempt| attempt.model == top.name.0 && attempt.was_asked();
    let mut own = attempts.iter().filter(was_asked).peekable();
    if own.peek().is_some() {
        return figure(Basis::Asked, own.map(|attempt| attempt.cost_usd).sum());
    }
    // Any answer, accepted or not, shows the size of the question; an error does not.
    let answered =
        |attempt: &&Attempt| matches!(attempt.verdict, Some(Verdict::Accept | Verdict::Escalate));
    let answer = attempts.iter().rev().find(answered);
    figure(
        Basis::Estimated,
        answer.and_then(|answer| estimate(route, top, answer)),
    )
}

fn estimate(route: &Route, top: &Tier, answer: &Attempt) -> Option<f64> {
    let opinion = answer.verifier.as_ref();
    let (mut opinion_in, mut opinion_out) = (0, 0);
    for other in opinion.into_iter().chain(&answer.author) {
        opinion_in += other.tokens_in?;
        opinion_out += other.tokens_out?;
    }
    let price = |all: Option<u64>, opinion: u64, per_million: Option<f64>| {
        Some(all?.saturating_sub(opinion) as f64 * per_million? / 1e6)
    };
    let answered = price(answer.tokens_in, opinion_in, top.model.price_in)?
        + price(answer.tokens_out, opinion_out, top.model.price_out)?;
    // Only local tiers are verified, so only a local top tier would have paid for the verifier.
    let judged = top.backend.tier == TierKind::Local && route.verifier.is_some() && !route.pinned;
    match opinion.filter(|_| judged) {
        Some(opinion) => Some(answered + opinion.cost_usd?),
        None => Some(answered),
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::Cause;
    use crate::attempt::Opinion;
    use supervisor_settings::{CallOverrides, Sources, load};

    /// A chain `free`, `small`, `top`, independent of this process's environment; `top` costs 3 and
    /// 15 USD per million tokens.
    fn route() -> Route {
        let dir = tempfile::tempdir().expect("temp dir");
        let file = dir.path().join("models.toml");
        let settings = "[models.claude-top]\nprice_in = 3.0\nprice_out = 15.0\n\
            [skills.debug]\nchain = [\"claude-free\", \"claude-small\", \"claude-top\"]\n";
        std::fs::write(&file, settings).expect("written");
        let sources = Sources {
            user_file: Some(file),
            ..Sources::built_in(include_str!("../../../models.toml"))
        };
        let routing = load(&sources).expect("good settings").routing;
        routing
            .route("debug", &CallOverrides::default())
            .expect("a route")
    }

    fn attempt(
        model: &str,
        cause: Cause,
        tokens: Option<(u64, u64)>,
        cost_usd: Option<f64>,
    ) -> Attempt {
        let line = serde_json::json!({
            "attempt": 1, "model": model, "tier": "local", "duration_ms": 5, "verdict": cause.verdict(), "cause": cause,
            "tokens_in": tokens.map(|t| t.0), "tokens_out": tokens.map(|t| t.1), "cost_usd": cost_usd,
        });
        serde_json::from_value(line).expect("an attempt")
    }

    fn top(attempts: &[Attempt]) -> (Basis, Option<f64>) {
        let top = estimate_cost(&route(), attempts);
        assert_eq!(top.model, "claude-top");
        (top.basis, top.cost_usd)
    }

    const MILLION: Option<(u64, u64)> = Some((1_000_000, 100_000));

    #[test]
    fn asked_top_tier_reports_actual_cost() {
        let refused = attempt("claude-free", Cause::Rejected, MILLION, Some(0.0));
        let asked = |cost| attempt("claude-top", Cause::Accepted, Some((9, 9)), cost);
        assert_eq!(
            top(&[refused.clone(), asked(Some(0.25))]),
            (Basis::Asked, Some(0.25))
        );
        assert_eq!(top(&[refused.clone(), asked(None)]), (Basis::Asked, None));
        assert_eq!(
            top(&[asked(Some(0.25)), asked(Some(0.5))]),
            (Basis::Asked, Some(0.75)),
            "asked twice"
        );
        let skipped = attempt("claude-top", Cause::Skipped, None, None);
        assert_eq!(
            top(&[refused, skipped]),
            (Basis::Estimated, Some(4.5)),
            "never reached"
        );
    }

    #[test]
    fn otherwise_last_answer_is_priced_at_top_tier() {
        let small = attempt(
            "claude-small",
            Cause::Accepted,
            Some((2_000_000, 0)),
            Some(0.0),
        );
        let free = attempt("claude-free", Cause::Rejected, MILLION, None);
        assert_eq!(top(&[free.clone(), small]), (Basis::Estimated, Some(6.0)));
        let broken = attempt("claude-small", Cause::Infra, None, Some(0.0));
        assert_eq!(
            top(&[free, broken]),
            (Basis::Estimated, Some(4.5)),
            "an error is no answer"
        );
    }

    #[test]
    fn unknown_costs_are_not_guessed() {
        let answer = |tokens| attempt("claude-free", Cause::Accepted, tokens, Some(0.0));
        assert_eq!(top(&[answer(None)]), (Basis::Estimated, None));
        assert_eq!(
            top(&[attempt("claude-free", Cause::Infra, MILLION, Some(0.0))]),
            (Basis::Estimated, None)
        );
        let mut unpriced = route();
        unpriced
            .chain
            .rest
            .last_mut()
            .expect("three tiers")
            .model
            .price_out = None;
        assert_eq!(estimate_cost(&unpriced, &[answer(MILLION)]).cost_usd, None);
        assert_eq!(top(&[]), (Basis::NoModelAsked, Some(0.0)));
    }

    #[test]
    fn verifier_cost_counts_only_for_local_top_tier() {
        let mut judged = attempt(
            "claude-free",
            Cause::Accepted,
            Some((1_200_000, 150_000)),
            Some(0.5),
        );
        let opinion = |tokens_in, cost_usd| Opinion {
            model: "claude-judge".into(),
            tokens_in,
            tokens_out: Some(50_000),
            cost_usd,
        };
        judged.verifier = Some(opinion(Some(200_000), Some(0.5)));
        assert_eq!(top(&[judged.clone()]), (Basis::Estimated, Some(4.5)));
        let mut local = route();
        local
            .chain
            .rest
            .last_mut()
            .expect("three tiers")
            .backend
            .tier = TierKind::Local;
        assert_eq!(
            estimate_cost(&local, &[judged.clone()]).cost_usd,
            Some(5.0),
            "there the opinion is paid as well"
        );
        judged.verifier = Some(opinion(None, Some(0.5)));
        assert_eq!(
            top(&[judged]),
            (Basis::Estimated, None),
            "whose tokens are they?"
        );
    }
}
