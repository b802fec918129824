//! Budgets in money, tokens and time. Before each ask its worst case is reserved from the budgets
//! of the call and the session; afterwards the actual usage is charged and the rest released.
//! Unreported usage is charged by an estimate.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use std::time::Duration;

use supervisor_models::cost::{CostForecast, UNKNOWN_TOKENS, UNKNOWN_USD};
use supervisor_models::{Ask, Usage, facts_of};
use supervisor_settings::Tier;

use super::spend_ledger::{Cap, ProjectSpend, ReservedSpend};

/// How long a reservation of a shared budget is kept for a process that died, at least.
const SHARED_LEASE: Duration = Duration::from_secs(15 * 60);

/// Amounts of money, tokens and time. `None` means unlimited in a limit and unknown in an estimate.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Amounts {
    pub usd: Option<f64>,
    pub tokens: Option<u64>,
    pub time: Option<Duration>,
}

/// The maximum cost of an ask, and what is charged if it does not report its usage.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SpendForecast {
    /// `None` if unknown beforehand.
    pub worst: Amounts,
    pub likely: Amounts,
}

impl From<Amounts> for SpendForecast {
    /// Charges the worst case if known, otherwise the default for unknown usage.
    fn from(worst: Amounts) -> Self {
        let likely = Amounts {
            usd: worst.usd.or(Some(UNKNOWN_USD)),
            tokens: worst.tokens.or(Some(UNKNOWN_TOKENS)),
            time: None,
        };
        Self { worst, likely }
    }
}

/// Forecast of one ask with all its answers, as far as its backend knows.
pub fn worst_case(ask: &Ask, tier: &Tier) -> SpendForecast {
    let CostForecast { worst, likely } = facts_of(tier.backend.kind).forecast(ask, tier);
    let samples = ask.samples.max(1);
    let usd = |usd: Option<f64>| usd.map(|usd| usd * f64::from(samples));
    let tokens = |tokens: Option<u64>| tokens.map(|n| n.saturating_mul(u64::from(samples)));
    SpendForecast {
        worst: Amounts {
            usd: usd(worst.usd),
            tokens: tokens(worst.tokens),
            time: Some(ask.limit.saturating_mul(samples)),
        },
        likely: Amounts {
            usd: usd(likely.usd),
            tokens: tokens(likely.tokens),
            time: None,
        },
    }
}

/// A budget that others spend from too, such as that of a team for a day.
pub trait SharedBudget: Send + Sync + fmt::Debug {
    /// Reserves this much for one ask, which ends before `lease` is over. The error says why it may not be asked.
    fn reserve(&self, usd: f64, lease: Duration) -> SharedBudgetFuture<'_>;
}

pub type SharedBudgetFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Box<dyn SharedReservation>, String>> + Send + 'a>>;

/// What is reserved of a [`SharedBudget`]. If it is dropped, the reservation ends with its lease.
pub trait SharedReservation: Send + Sync + fmt::Debug {
    /// Charges what was used. Returns at once.
    fn settle(self: Box<Self>, usd: f64);
}

/// The budget of a call or a session. Clones share their state.
#[derive(Debug, Clone)]
pub struct Budget {
    /// The outermost budget, beyond this process.
    shared: Option<Arc<dyn SharedBudget>>,
    limits: Amounts,
    spent: Arc<Mutex<SpentAmounts>>,
    /// The budget that contains this one.
    parent: Option<Box<Budget>>,
    /// Where what is spent is counted together with other sessions.
    ledger: Option<ProjectSpend>,
}

/// Amounts used and reserved.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct SpentAmounts {
    usd: f64,
    tokens: u64,
    time: Duration,
}

/// The limit that was reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
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
    #[error(
        "the cap on what is spent {} is reached; raise `{}`, or wait", .0.describe(), .0.key()
    )]
    Cap(Cap),
    #[error(
        "what was spent is not known, because `{path}` cannot be used: {why}; correct that, or remove the caps under \
         [budgets]"
    )]
    Ledger { path: String, why: String },
    #[error("{0}")]
    Shared(String),
}

impl Budget {
    pub fn new(limits: Amounts) -> Self {
        Self {
            shared: None,
            limits,
            spent: Arc::default(),
            parent: None,
            ledger: None,
        }
    }

    /// The same budget, which also keeps the caps of this ledger.
    #[must_use]
    pub fn with_ledger(self, ledger: ProjectSpend) -> Self {
        Self {
            ledger: Some(ledger),
            ..self
        }
    }

    /// Reserves from this budget as well.
    #[must_use]
    pub fn with_shared(self, shared: Option<Arc<dyn SharedBudget>>) -> Self {
        Self { shared, ..self }
    }

    /// A smaller budget inside this one. Its reservations count here, too.
    pub fn sub_budget(&self, limits: Amounts) -> Self {
        Self {
            shared: self.shared.clone(),
            limits,
            spent: Arc::default(),
            parent: Some(Box::new(self.clone())),
            ledger: None,
        }
    }

    /// Reserves the worst case of one ask. If it is unknown, or time is short, everything that is
    /// left is granted; the ask must respect [`Reservation::granted`]. Fails if nothing is left, or
    /// less than is known to be needed.
    pub fn reserve(
        &self,
        forecast: impl Into<SpendForecast>,
    ) -> Result<Reservation, ExceededLimit> {
        let SpendForecast { worst, likely } = forecast.into();
        let chain: Vec<&Self> =
            std::iter::successors(Some(self), |budget| budget.parent.as_deref()).collect();
        // Always lock from the innermost to the outermost, so that two calls cannot deadlock.
        let mut locked: Vec<MutexGuard<'_, SpentAmounts>> =
            chain.iter().map(|budget| budget.lock()).collect();
        let mut left = Amounts::default();
        for (budget, spent) in chain.iter().zip(&locked) {
            left = min_amounts(left, budget.limits.remaining_after(spent));
        }
        // What costs nothing needs no look at the caps.
        let is_free = worst.usd == Some(0.0);
        let ledger = chain.iter().find_map(|budget| budget.ledger.as_ref());
        let (granted, entry) = match ledger.filter(|_| !is_free) {
            Some(ledger) => grant_capped(ledger, left, worst, likely)?,
            None => (grant(left, worst)?, None),
        };
        for spent in &mut locked {
            spent.add(granted);
        }
        drop(locked);
        Ok(Reservation {
            budget: self.clone(),
            granted,
            likely,
            entry,
            shared: None,
            settled: false,
        })
    }

    /// Like [`Self::reserve`], and from the shared budget too, if the ask can cost anything.
    pub async fn reserve_shared(
        &self,
        forecast: impl Into<SpendForecast>,
    ) -> Result<Reservation, ExceededLimit> {
        let mut reserved = self.reserve(forecast)?;
        let Some(shared) = &self.shared else {
            return Ok(reserved);
        };
        let granted = reserved.granted;
        let usd = granted.usd.or(reserved.likely.usd).unwrap_or(UNKNOWN_USD);
        if usd > 0.0 {
            let lease = granted.time.unwrap_or(SHARED_LEASE).max(SHARED_LEASE);
            match shared.reserve(usd, lease).await {
                Ok(held) => reserved.shared = Some(held),
                Err(why) => {
                    reserved.release();
                    return Err(ExceededLimit::Shared(why));
                }
            }
        }
        Ok(reserved)
    }

    /// What is left, considering the outer budgets. Reserved amounts are not left.
    pub fn left(&self) -> Amounts {
        let own = self.limits.remaining_after(&self.lock());
        self.parent
            .as_ref()
            .map_or(own, |parent| min_amounts(own, parent.left()))
    }

    fn lock(&self) -> MutexGuard<'_, SpentAmounts> {
        self.spent.lock()
    }
}

/// An amount reserved for one ask. If it is dropped without settling, its estimate is charged: the
/// ask may have been made.
#[must_use = "say what was used"]
#[derive(Debug)]
pub struct Reservation {
    budget: Budget,
    granted: Amounts,
    likely: Amounts,
    /// The reservation in the ledger, if there are caps.
    entry: Option<ReservedSpend>,
    shared: Option<Box<dyn SharedReservation>>,
    settled: bool,
}

impl Reservation {
    /// Limits for the ask; `None` means unlimited.
    pub fn granted(&self) -> Amounts {
        self.granted
    }

    /// Charges the usage and releases the rest. Unreported usage is charged by the estimate.
    pub fn settle(mut self, usage: &Usage, took: Duration) {
        let tokens = usage
            .tokens_in
            .zip(usage.tokens_out)
            .map(|(a, b)| a.saturating_add(b));
        let used = Amounts {
            usd: usage
                .cost_usd
                .filter(|usd| usd.is_finite() && *usd >= 0.0)
                .or(self.unreported_usage().usd),
            tokens: tokens.or(self.unreported_usage().tokens),
            time: Some(took),
        };
        self.replace(used);
    }

    /// The charge for an ask that does not report its usage: its estimate, but at most what was
    /// granted.
    fn unreported_usage(&self) -> Amounts {
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

    /// Releases everything; for an ask that was never made.
    pub fn release(mut self) {
        self.replace(Amounts::default());
    }

    fn replace(&mut self, used: Amounts) {
        self.settled = true;
        if let Some(entry) = self.entry.take()
            && let Err(error) = entry.settle(used.usd.unwrap_or_default())
        {
            tracing::warn!(
                "what was spent could not be recorded, so all that was reserved counts: {error}"
            );
        }
        if let Some(shared) = self.shared.take() {
            shared.settle(used.usd.unwrap_or(0.0));
        }
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
            self.replace(self.unreported_usage());
        }
    }
}

impl Amounts {
    /// What is left of these limits.
    fn remaining_after(&self, spent: &SpentAmounts) -> Self {
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

fn min_amounts(a: Amounts, b: Amounts) -> Amounts {
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

/// Anything smaller counts as used up, to tolerate rounding errors.
const MIN_USD: f64 = 1e-4;

fn grant(left: Amounts, worst: Amounts) -> Result<Amounts, ExceededLimit> {
    let usd = match (left.usd, worst.usd) {
        // A free ask is possible even if nothing is left.
        (_, Some(0.0)) => Some(0.0),
        (Some(left), _) if left < MIN_USD => return Err(ExceededLimit::Usd),
        (Some(left), Some(worst)) if worst > left + 1e-9 => return Err(ExceededLimit::Usd),
        (left, worst) => worst.or(left),
    };
    let tokens = match (left.tokens, worst.tokens) {
        (Some(0), _) => return Err(ExceededLimit::Tokens),
        (Some(left), Some(worst)) if worst > left => return Err(ExceededLimit::Tokens),
        (left, worst) => worst.or(left),
    };
    // Time is different: an ask can be limited to whatever is left.
    let time = match (left.time, worst.time) {
        (Some(Duration::ZERO), _) => return Err(ExceededLimit::Time),
        (left, worst) => left.into_iter().chain(worst).min(),
    };
    Ok(Amounts { usd, tokens, time })
}

/// Grants what the budgets and the caps of a ledger leave, and reserves it there.
fn grant_capped(
    ledger: &ProjectSpend,
    left: Amounts,
    worst: Amounts,
    likely: Amounts,
) -> Result<(Amounts, Option<ReservedSpend>), ExceededLimit> {
    let failed = |error: std::io::Error| ExceededLimit::Ledger {
        path: ledger.file().display().to_string(),
        why: error.to_string(),
    };
    let open = ledger.open(jiff::Timestamp::now()).map_err(failed)?;
    let Some((usd, cap)) = open.left() else {
        return Ok((grant(left, worst)?, None));
    };
    let is_tightest = left.usd.is_none_or(|left| usd < left);
    let left = min_amounts(
        left,
        Amounts {
            usd: Some(usd),
            ..Amounts::default()
        },
    );
    let granted = grant(left, worst).map_err(|exceeded| match exceeded {
        ExceededLimit::Usd if is_tightest => ExceededLimit::Cap(cap),
        other => other,
    })?;
    let reserved = granted.usd.unwrap_or_default();
    let likely = likely.usd.unwrap_or(UNKNOWN_USD);
    let entry = open.reserve(reserved, likely).map_err(failed)?;
    Ok((granted, Some(entry)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spend_ledger::SpendLedger;
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
    fn worst_case_is_unknown_for_agents() {
        let mut tier = Tier {
            name: ModelName("m".into()),
            backend: BackendSettings::named("b", BackendKind::Openai, TierKind::Local),
            instead: None,
            outage: None,
            model: Model::named("m", 8192),
            limit: Duration::from_secs(9),
            limit_by: "limits.local_s".into(),
            is_shortened: false,
            attempts: 1,
            samples: supervisor_settings::Samples::default(),
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
    fn unknown_cost_is_charged_by_estimate() {
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
    fn unused_amounts_are_released() {
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
    fn ask_of_unknown_cost_reserves_everything() {
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
    fn call_spending_counts_in_its_session() {
        let session = Budget::new(usd(1.0));
        let (a, b) = (session.sub_budget(usd(0.8)), session.sub_budget(usd(0.8)));
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
    fn remaining_time_is_granted() {
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
    fn without_limits_nothing_is_refused() {
        let reservation = Budget::new(Amounts::default())
            .reserve(Amounts::default())
            .expect("no limit");
        assert_eq!(reservation.granted(), Amounts::default());
    }

    #[derive(Debug, Clone)]
    struct Call {
        worst: Option<f64>,
        /// Share of the granted amount that is used; above one, the estimate was wrong.
        used: f64,
        reported: bool,
        inner: bool,
    }

    proptest! {
        /// If asks stay within what they were granted, nothing is overspent. Otherwise the excess
        /// is at most that of one ask. Unreported usage counts by its estimate.
        #[test]
        fn budgets_are_exceeded_by_at_most_one_call(
            limit in 0.01..10.0_f64, call_limit in 0.01..10.0_f64,
            calls in proptest::collection::vec((proptest::option::of(0.0..3.0_f64), 0.0..1.5_f64, any::<bool>(), any::<bool>())
                .prop_map(|(worst, used, reported, inner)| Call { worst, used, reported, inner }), 1..40)) {
            let session = Budget::new(usd(limit));
            let call = session.sub_budget(usd(call_limit));
            let (mut total_used, mut inner_used, mut largest_excess) = (0.0, 0.0, 0.0_f64);
            for one in calls {
                let budget = if one.inner { &call } else { &session };
                let Ok(reservation) = budget.reserve(Amounts { usd: one.worst, ..Amounts::default() }) else { continue };
                let granted = reservation.granted().usd.expect("there is a limit");
                let estimate = one.worst.unwrap_or(UNKNOWN_USD).min(granted);
                let used = if one.reported { granted * one.used } else { estimate };
                total_used += used;
                if one.inner {
                    inner_used += used;
                }
                largest_excess = largest_excess.max(used - granted);
                reservation.settle(&cost(one.reported.then_some(used)), NO_TIME);
                prop_assert!(total_used <= limit + largest_excess + 1e-6, "{total_used} of {limit}, {largest_excess}");
                prop_assert!(inner_used <= call_limit + largest_excess + 1e-6, "{inner_used} of {call_limit}, {largest_excess}");
            }
        }

        /// Concurrent reservations never exceed the limit together.
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

    #[test]
    fn cap_binds_calls_of_all_sessions() {
        let dir = tempfile::tempdir().expect("made");
        let caps = supervisor_settings::SpendCaps {
            day: Some(1.0),
            ..Default::default()
        };
        // Another server, or the same one after a restart.
        let call = || {
            let ledger = SpendLedger::new(dir.path(), caps).expect("caps");
            Budget::new(usd(5.0)).with_ledger(Arc::new(ledger).for_project("/p"))
        };
        let first = call().reserve(usd(0.75)).expect("it is left");
        let refused = call().reserve(usd(0.5)).expect_err("the rest is reserved");
        assert_eq!(refused, ExceededLimit::Cap(Cap::Day));
        insta::assert_snapshot!(
            refused,
            @"the cap on what is spent in the last 24 hours is reached; raise `budgets.day_usd`, or wait"
        );
        first.settle(&cost(Some(0.25)), NO_TIME);
        let second = call().sub_budget(usd(2.0)).reserve(usd(0.5));
        second.expect("the unused part is free again").release();
        // An agent of unknown cost gets what the cap leaves.
        let agent = call().reserve(Amounts::default()).expect("granted");
        assert_eq!(agent.granted().usd, Some(0.75));
        drop(agent);
        call()
            .reserve(usd(0.0))
            .expect("a free ask needs no budget")
            .release();
        assert_eq!(
            call().reserve(usd(4.9)).expect_err("too much"),
            ExceededLimit::Cap(Cap::Day)
        );
        assert_eq!(
            call().reserve(usd(5.5)).expect_err("too much"),
            ExceededLimit::Cap(Cap::Day)
        );
        // Without the record nothing is known, so nothing is spent.
        std::fs::remove_file(dir.path().join("spend.lock")).expect("removed");
        std::fs::create_dir(dir.path().join("spend.lock")).expect("made");
        let refused = call().reserve(usd(0.1)).expect_err("no ledger");
        assert!(matches!(refused, ExceededLimit::Ledger { .. }), "{refused}");
    }
}
