//! Asks for several independent answers to one question: one after another, or all at once.

use std::time::Instant;

use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use super::{Ask, AskError, AskResult, AskStep, Backend};
use supervisor_settings::{Tier, TierKind};

/// Asks in the way the server can be expected to take: one of one's own may compute on the CPU, or
/// have one slot; a provider answers several at once.
pub(super) async fn as_its_tier_allows<B: Backend + ?Sized>(
    backend: &B,
    ask: &Ask,
    tier: &Tier,
    stop: &CancellationToken,
    progress: &(dyn Fn(AskStep) + Send + Sync),
) -> Vec<AskResult> {
    match tier.backend.tier {
        TierKind::Local => one_by_one(backend, ask, tier, stop, progress, Vec::new()).await,
        TierKind::Subagent | TierKind::Managed => {
            concurrently(backend, ask, tier, stop, progress).await
        }
    }
}

/// Asks one after another, until there are `ask.samples` answers together with those `answered`
/// already. Stops at a failure that the next ask would meet, too.
pub(super) async fn one_by_one<B: Backend + ?Sized>(
    backend: &B,
    ask: &Ask,
    tier: &Tier,
    stop: &CancellationToken,
    progress: &(dyn Fn(AskStep) + Send + Sync),
    mut answered: Vec<AskResult>,
) -> Vec<AskResult> {
    let began = Instant::now();
    let wanted = ask.samples.max(1) as usize;
    while answered.len() < wanted && answered.last().is_none_or(may_ask_on) {
        let one = ask.for_sample(u32::try_from(answered.len()).unwrap_or(u32::MAX), began);
        let is_over = one.limit.is_zero() || stop.is_cancelled();
        if is_over && !answered.is_empty() {
            break;
        }
        answered.push(backend.ask(&one, tier, stop, progress).await);
    }
    answered
}

/// Asks for the first, and for all others at once as soon as it begins to come: by then the prompt
/// is in the provider's cache, and a server that refuses is asked only once.
async fn concurrently<B: Backend + ?Sized>(
    backend: &B,
    ask: &Ask,
    tier: &Tier,
    stop: &CancellationToken,
    progress: &(dyn Fn(AskStep) + Send + Sync),
) -> Vec<AskResult> {
    let (began, begins) = (Instant::now(), CancellationToken::new());
    let step = |step: AskStep| {
        if matches!(step, AskStep::Thinking | AskStep::Answering) {
            begins.cancel();
        }
        progress(step);
    };
    let one = |number| ask.for_sample(number, began);
    let first = async {
        let first = backend.ask(&one(0), tier, stop, &step).await;
        if may_ask_on(&first) {
            begins.cancel();
        }
        first
    };
    let others = async {
        begins.cancelled().await;
        let asks: Vec<Ask> = (1..ask.samples).map(one).collect();
        join_all(
            asks.iter()
                .map(|ask| backend.ask(ask, tier, stop, progress)),
        )
        .await
    };
    tokio::pin!(first, others);
    tokio::select! {
        first = &mut first => {
            let mut answered = vec![first];
            if begins.is_cancelled() {
                answered.extend(others.await);
            }
            answered
        }
        rest = &mut others => {
            let mut answered = vec![first.await];
            answered.extend(rest);
            answered
        }
    }
}

/// Whether the next ask may end better. An answer that cannot be read says nothing about the next.
fn may_ask_on(answered: &AskResult) -> bool {
    match answered {
        Ok(_) => true,
        Err(failure) => matches!(
            failure.why,
            AskError::Malformed { .. } | AskError::AnswerCut { .. } | AskError::Declined { .. }
        ),
    }
}
