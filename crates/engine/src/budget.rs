//! What may still be spent. Before each ask its worst case is set aside, from the call's budget and from the session's;
//! after it, what was really used is taken and the rest given back. What is not told is charged by an estimate.
//! Knows money, tokens and time. Does not know who spends them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use supervisor_models::cost::{CostForecast, UNKNOWN_TOKENS, UNKNOWN_USD};
use supervisor_models::{Ask, Usage, facts_of};
use supervisor_settings::Tier;

/// Amounts of the three things that run out. `None` as a limit is no limit, as an estimate unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Amounts {
    pub usd: Option<f64>,
    pub tokens: Option<u64>,
    pub time: Option<Duration>,
}

/// What an ask can cost at most, and what it is charged when it does not tell.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SpendForecast {
    /// `None` is unknown beforehand.
    pub worst: Amounts,
    pub likely: Amounts,
}

impl From<Amounts> for SpendForecast {
    /// Where nothing but the worst case is known, that is what is charged; else what is stated for the unknown.
    fn from(worst: Amounts) -> Self {
        let likely = Amounts {
            usd: worst.usd.or(Some(UNKNOWN_USD)),
            tokens: worst.tokens.or(Some(UNKNOWN_TOKENS)),
            time: None,
        };
        Self { worst, likely }
    }
}

/// What one ask can cost, as far as its backend knows beforehand.
pub fn worst_case(ask: &Ask, tier: &Tier) -> SpendForecast {
    let CostForecast { worst, likely } = facts_of(tier.backend.kind).forecast(ask, tier);
    SpendForecast {
        worst: Amounts {
            usd: worst.usd,
            tokens: worst.tokens,
            time: Some(ask.limit),
        },
        likely: Amounts {
            usd: likely.usd,
            tokens: likely.tokens,
            time: None,
        },
    }
}

/// One budget: a call's, or a session's. Clones share it.
#[derive(Debug, Clone)]
pub struct Budget {
    limits: Amounts,
    spent: Arc<Mutex<SpentAmounts>>,
    /// What this one is a part of.
    parent: Option<Box<Budget>>,
}

/// Used and set aside.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct SpentAmounts {
    usd: f64,
    tokens: u64,
    time: Duration,
}

/// Which limit stands in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ExceededLimit {
    #[error(
        "the budget in USD is used up; raise `budget_usd` of the call, or `budgets.call_usd` and `budgets.session_usd`"
    )]
    Usd,
    #[error(
        "the budget in tokens is used up; raise `budgets.call_tokens` and `budgets.session_tokens`"
    )]
    Tokens,
    #[error("the time for this call is used up; raise `budgets.call_s` and `budgets.session_s`")]
    Time,
}

impl Budget {
    pub fn new(limits: Amounts) -> Self {
        Self {
            limits,
            spent: Arc::default(),
            parent: None,
        }
    }

    /// A smaller budget inside this one: what is set aside there is set aside here, too.
    pub fn part(&self, limits: Amounts) -> Self {
        Self {
            limits,
            spent: Arc::default(),
            parent: Some(Box::new(self.clone())),
        }
    }

    /// Sets the worst case of one ask aside. Where it is unknown, or time is short, all that is left is granted: the
    /// ask must be held to [`Reservation::granted`]. Refused if nothing is left, or less than is known to be needed.
    pub fn reserve(
        &self,
        foreseen: impl Into<SpendForecast>,
    ) -> Result<Reservation, ExceededLimit> {
        let SpendForecast { worst, likely } = foreseen.into();
        let chain: Vec<&Self> =
            std::iter::successors(Some(self), |budget| budget.parent.as_deref()).collect();
        // Always from the innermost to the outermost, so two calls cannot wait for each other.
        let mut locked: Vec<MutexGuard<'_, SpentAmounts>> =
            chain.iter().map(|budget| budget.lock()).collect();
        let mut left = Amounts::default();
        for (budget, spent) in chain.iter().zip(&locked) {
            left = tightest(left, budget.limits.less(spent));
        }
        let granted = grant(left, worst)?;
        for spent in &mut locked {
            spent.add(granted);
        }
        drop(locked);
        Ok(Reservation {
            budget: self.clone(),
            granted,
            likely,
            settled: false,
        })
    }

    /// What is left, the outer budgets considered. What is set aside is not left.
    pub fn left(&self) -> Amounts {
        let own = self.limits.less(&self.lock());
        self.parent
            .as_ref()
            .map_or(own, |parent| tightest(own, parent.left()))
    }

    fn lock(&self) -> MutexGuard<'_, SpentAmounts> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What was set aside for one ask. Dropped without a word, its estimate is charged: the ask may have been made.
#[must_use = "say what was used"]
#[derive(Debug)]
pub struct Reservation {
    budget: Budget,
    granted: Amounts,
    likely: Amounts,
    settled: bool,
}

impl Reservation {
    /// What the ask must be held to; `None` is no limit.
    pub fn granted(&self) -> Amounts {
        self.granted
    }

    /// Takes what was used and gives the rest back. What is not told is charged by its estimate.
    pub fn settle(mut self, usage: &Usage, took: Duration) {
        let tokens = usage
            .tokens_in
            .zip(usage.tokens_out)
            .map(|(a, b)| a.saturating_add(b));
        let used = Amounts {
            usd: usage
                .cost_usd
                .filter(|usd| usd.is_finite() && *usd >= 0.0)
                .or(self.untold().usd),
            tokens: tokens.or(self.untold().tokens),
            time: Some(took),
        };
        self.replace(used);
    }

    /// What is charged for an ask that does not tell: its estimate, and no more than it was granted.
    fn untold(&self) -> Amounts {
        let usd = match (self.likely.usd, self.granted.usd) {
            (Some(likely), Some(granted)) => Some(likely.min(granted)),
            (likely, granted) => likely.or(granted),
        };
        let tokens = self
            .likely
            .tokens
            .into_iter()
            .chain(self.granted.tokens)
            .min();
        Amounts {
            usd,
            tokens,
            time: self.granted.time,
        }
    }

    /// The ask was never made.
    pub fn release(mut self) {
        self.replace(Amounts::default());
    }

    fn replace(&mut self, used: Amounts) {
        self.settled = true;
        let mut budget = Some(&self.budget);
        while let Some(this) = budget {
            let mut spent = this.lock();
            spent.remove(self.granted);
            spent.add(used);
            budget = this.parent.as_deref();
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if !self.settled {
            self.replace(self.untold());
        }
    }
}

impl Amounts {
    /// What is left of these limits.
    fn less(&self, spent: &SpentAmounts) -> Self {
        Self {
            usd: self.usd.map(|limit| (limit - spent.usd).max(0.0)),
            tokens: self.tokens.map(|limit| limit.saturating_sub(spent.tokens)),
            time: self.time.map(|limit| limit.saturating_sub(spent.time)),
        }
    }
}

impl SpentAmounts {
    fn add(&mut self, amounts: Amounts) {
        self.usd += amounts.usd.unwrap_or_default();
        self.tokens = self
            .tokens
            .saturating_add(amounts.tokens.unwrap_or_default());
        self.time = self.time.saturating_add(amounts.time.unwrap_or_default());
    }

    fn remove(&mut self, amounts: Amounts) {
        self.usd = (self.usd - amounts.usd.unwrap_or_default()).max(0.0);
        self.tokens = self
            .tokens
            .saturating_sub(amounts.tokens.unwrap_or_default());
        self.time = self.time.saturating_sub(amounts.time.unwrap_or_default());
    }
}

fn tightest(a: Amounts, b: Amounts) -> Amounts {
    let least_usd = match (a.usd, b.usd) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    let least_tokens = a.tokens.into_iter().chain(b.tokens).min();
    Amounts {
        usd: least_usd,
        tokens: least_tokens,
        time: a.time.into_iter().chain(b.time).min(),
    }
}

/// Rounding must not refuse a budget its last part.
const CENT_OF_A_CENT: f64 = 1e-4;

fn grant(left: Amounts, worst: Amounts) -> Result<Amounts, ExceededLimit> {
    let usd = match (left.usd, worst.usd) {
        // What costs nothing is possible also when nothing is left.
        (_, Some(0.0)) => Some(0.0),
        (Some(left), _) if left < CENT_OF_A_CENT => return Err(ExceededLimit::Usd),
        (Some(left), Some(worst)) if worst > left + 1e-9 => return Err(ExceededLimit::Usd),
        (left, worst) => worst.or(left),
    };
    let tokens = match (left.tokens, worst.tokens) {
        (Some(0), _) => return Err(ExceededLimit::Tokens),
        (Some(left), Some(worst)) if worst > left => return Err(ExceededLimit::Tokens),
        (left, worst) => worst.or(left),
    };
    // Time is different: an ask can be held to whatever is left.
    let time = match (left.time, worst.time) {
        (Some(Duration::ZERO), _) => return Err(ExceededLimit::Time),
        (left, worst) => left.into_iter().chain(worst).min(),
    };
    Ok(Amounts { usd, tokens, time })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use supervisor_settings::{
        BackendKind, BackendSettings, EditFormat, Model, ModelName, TierKind,
    };

    fn usd(usd: f64) -> Amounts {
        Amounts {
            usd: Some(usd),
            ..Amounts::default()
        }
    }

    fn cost(usd: Option<f64>) -> Usage {
        Usage {
            cost_usd: usd,
            ..Usage::default()
        }
    }

    const NO_TIME: Duration = Duration::ZERO;

    #[test]
    fn the_worst_case_is_known_for_one_answer_and_unknown_for_an_agent() {
        let mut tier = Tier {
            name: ModelName("m".into()),
            backend: BackendSettings::named("b", BackendKind::Openai, TierKind::Local),
            model: Model::named("m", 8192),
            limit: Duration::from_secs(9),
            limit_by: "limits.local_s".into(),
            attempts: 1,
            edit_format: EditFormat::Auto,
        };
        let mut ask = Ask::new("", "x".repeat(2_999_994), serde_json::json!({}), "/");
        ask.max_tokens = Some(1_000_000);
        let (worst, likely) = (
            |ask: &Ask, tier: &Tier| worst_case(ask, tier).worst,
            |ask: &Ask, tier: &Tier| worst_case(ask, tier).likely.usd.expect("an estimate"),
        );
        assert_eq!(
            worst(&ask, &tier).usd,
            Some(0.0),
            "a model of one's own without a price"
        );
        (tier.model.price_in, tier.model.price_out) = (Some(3.0), Some(15.0));
        assert!((worst(&ask, &tier).usd.expect("priced") - 18.0).abs() < 0.001);
        ask.max_tokens = None;
        assert_eq!(
            (worst(&ask, &tier).usd, worst(&ask, &tier).tokens),
            (None, None)
        );
        assert!(
            (likely(&ask, &tier) - 3.06).abs() < 0.001,
            "a million tokens in, and 4,000 out"
        );
        tier.backend.kind = BackendKind::ClaudeCli;
        (tier.model.price_in, tier.model.price_out) = (None, None);
        assert_eq!(
            worst(&ask, &tier),
            Amounts {
                time: Some(ask.limit),
                ..Amounts::default()
            }
        );
        tier.backend.tier = TierKind::Subagent;
        assert!(
            (likely(&ask, &tier) - UNKNOWN_USD).abs() < 1e-9,
            "no price is known"
        );
    }

    #[test]
    fn an_answer_of_unknown_cost_is_charged_an_estimate_and_never_all_that_is_left() {
        let budget = Budget::new(usd(5.0));
        let agent = SpendForecast {
            likely: usd(0.25),
            ..SpendForecast::default()
        };
        let run = budget.reserve(agent).expect("all of it");
        assert_eq!(run.granted().usd, Some(5.0));
        run.settle(&cost(None), NO_TIME);
        assert!((budget.left().usd.expect("a limit") - 4.75).abs() < 1e-9);
        drop(budget.reserve(agent).expect("the rest"));
        assert!(
            (budget.left().usd.expect("a limit") - 4.5).abs() < 1e-9,
            "dropped without a word"
        );
        let small = Budget::new(usd(0.1));
        small
            .reserve(agent)
            .expect("what is there")
            .settle(&cost(None), NO_TIME);
        assert_eq!(
            small.left().usd,
            Some(0.0),
            "an estimate is never more than what was granted"
        );
        assert!(
            (SpendForecast::from(Amounts::default())
                .likely
                .usd
                .expect("stated")
                - UNKNOWN_USD)
                .abs()
                < 1e-9
        );
    }

    #[test]
    fn what_was_not_used_is_given_back_and_what_is_unknown_is_not() {
        let budget = Budget::new(usd(1.0));
        budget
            .reserve(usd(0.5))
            .expect("enough")
            .settle(&cost(Some(0.1)), NO_TIME);
        assert!((budget.left().usd.expect("a limit") - 0.9).abs() < 1e-9);
        budget
            .reserve(usd(0.5))
            .expect("enough")
            .settle(&cost(None), NO_TIME);
        assert!((budget.left().usd.expect("a limit") - 0.4).abs() < 1e-9);
        assert_eq!(
            budget.reserve(usd(0.5)).expect_err("too little"),
            ExceededLimit::Usd
        );
        budget.reserve(usd(0.4)).expect("exactly enough").release();
        drop(budget.reserve(usd(0.4)).expect("still there"));
        assert_eq!(
            budget.reserve(usd(0.1)).expect_err("dropped is used"),
            ExceededLimit::Usd
        );
    }

    #[test]
    fn an_ask_of_unknown_cost_gets_all_that_is_left_and_no_other_ask_meanwhile() {
        let budget = Budget::new(usd(1.0));
        let all = budget.reserve(Amounts::default()).expect("all of it");
        assert_eq!(all.granted().usd, Some(1.0));
        assert!(budget.reserve(Amounts::default()).is_err());
        assert!(
            budget.reserve(usd(0.0)).is_ok(),
            "what is free is always possible"
        );
        all.settle(&cost(Some(0.2)), NO_TIME);
        assert_eq!(
            budget
                .reserve(Amounts::default())
                .expect("the rest")
                .granted()
                .usd,
            Some(0.8)
        );
    }

    #[test]
    fn a_calls_spending_counts_in_its_session() {
        let session = Budget::new(usd(1.0));
        let (a, b) = (session.part(usd(0.8)), session.part(usd(0.8)));
        a.reserve(usd(0.7))
            .expect("enough")
            .settle(&cost(Some(0.7)), NO_TIME);
        assert_eq!(
            b.reserve(usd(0.5)).expect_err("the session has 0.3 left"),
            ExceededLimit::Usd
        );
        assert!(b.reserve(usd(0.3)).is_ok());
    }

    #[test]
    fn time_is_granted_as_far_as_it_goes() {
        let s = |n| Some(Duration::from_secs(n));
        let budget = Budget::new(Amounts {
            time: s(100),
            ..Amounts::default()
        });
        let first = budget
            .reserve(Amounts {
                time: s(70),
                ..Amounts::default()
            })
            .expect("time");
        first.settle(&Usage::default(), Duration::from_secs(60));
        let second = budget
            .reserve(Amounts {
                time: s(70),
                ..Amounts::default()
            })
            .expect("time");
        assert_eq!(second.granted().time, s(40));
        second.settle(&Usage::default(), Duration::from_secs(41));
        assert_eq!(
            budget.reserve(Amounts::default()).expect_err("no time"),
            ExceededLimit::Time
        );
    }

    #[test]
    fn without_limits_nothing_is_refused_and_nothing_imposed() {
        let reservation = Budget::new(Amounts::default())
            .reserve(Amounts::default())
            .expect("no limit");
        assert_eq!(reservation.granted(), Amounts::default());
    }

    #[derive(Debug, Clone)]
    struct Call {
        worst: Option<f64>,
        /// Part of what was granted that is used; above one, the estimate was wrong.
        used: f64,
        told: bool,
        inner: bool,
    }

    proptest! {
        /// With asks that keep to what they were granted nothing is overspent, as far as they tell; with ones that do
        /// not, the overshoot is what one of them took too much. What is not told counts by its estimate.
        #[test]
        fn no_budget_is_overshot_by_more_than_one_call(
            limit in 0.01..10.0_f64, part in 0.01..10.0_f64,
            calls in proptest::collection::vec((proptest::option::of(0.0..3.0_f64), 0.0..1.5_f64, any::<bool>(), any::<bool>())
                .prop_map(|(worst, used, told, inner)| Call { worst, used, told, inner }), 1..40)) {
            let session = Budget::new(usd(limit));
            let call = session.part(usd(part));
            let (mut truth, mut truth_inner, mut largest_excess) = (0.0, 0.0, 0.0_f64);
            for one in calls {
                let budget = if one.inner { &call } else { &session };
                let Ok(reservation) = budget.reserve(Amounts { usd: one.worst, ..Amounts::default() }) else { continue };
                let granted = reservation.granted().usd.expect("there is a limit");
                let estimate = one.worst.unwrap_or(UNKNOWN_USD).min(granted);
                let used = if one.told { granted * one.used } else { estimate };
                truth += used;
                if one.inner {
                    truth_inner += used;
                }
                largest_excess = largest_excess.max(used - granted);
                reservation.settle(&cost(one.told.then_some(used)), NO_TIME);
                prop_assert!(truth <= limit + largest_excess + 1e-6, "{truth} of {limit}, {largest_excess}");
                prop_assert!(truth_inner <= part + largest_excess + 1e-6, "{truth_inner} of {part}, {largest_excess}");
            }
        }

        /// Set aside at once, by any number of asks: together never more than the limit.
        #[test]
        fn reservations_in_flight_never_exceed_the_limit(
            limit in 1..10_000_u64, wanted in proptest::collection::vec(proptest::option::of(0..4000_u64), 0..30)) {
            let budget = Budget::new(Amounts { tokens: Some(limit), ..Amounts::default() });
            let held: Vec<_> = wanted
                .into_iter()
                .filter_map(|tokens| budget.reserve(Amounts { tokens, ..Amounts::default() }).ok())
                .collect();
            prop_assert!(held.iter().map(|r| r.granted().tokens.expect("a limit")).sum::<u64>() <= limit);
            for reservation in held {
                reservation.release();
            }
            prop_assert_eq!(budget.left().tokens, Some(limit));
        }
    }
}
