//! Says in a sentence when a call is not expected to pay for itself. Advice only: the call is made all
//! the same.

use super::PolicyDecision;
use super::cost::ChainCost;

/// Fewer turns of the first tier at this kind of task say too little.
const ENOUGH_TURNS: u32 = 8;
/// Less of a loss is not worth a word.
const WORTH_A_WORD: f64 = 1.1;
/// A top tier that is hardly ever right is reckoned as asked this often.
const MAX_TURNS: f64 = 3.0;

/// Compares what a call is expected to take with what the strongest tier takes by itself, as whoever
/// calls would. `None` if the call is expected to pay, or too little is known. `is_learned`: the chain
/// is walked as decided, not as written.
pub fn advice(decision: &PolicyDecision, is_learned: bool) -> Option<String> {
    let (first, rest) = decision.tiers.split_first()?;
    let top = rest.last()?;
    if first.judged < ENOUGH_TURNS {
        return None;
    }
    let call = match is_learned {
        true => decision.expected,
        false => decision.as_written,
    };
    let turns = 1.0 / top.rate.max(1.0 / MAX_TURNS);
    let own = ChainCost {
        usd: top.usd * turns,
        minutes: top.seconds / 60.0 * turns,
    };
    let price = |cost: ChainCost| cost.priced(decision.minute_usd);
    if price(call) <= price(own) * WORTH_A_WORD {
        return None;
    }
    Some(format!(
        "{} is not expected to pay here: expected {} by this call, against {} if you do it yourself (reckoned as \
         `{}`); `{}` was accepted in {} of {} turns",
        decision.class.describe(),
        describe(call),
        describe(own),
        top.model,
        first.model,
        first.accepted,
        first.judged
    ))
}

/// `$0.02 and 4 min`
fn describe(cost: ChainCost) -> String {
    let seconds = cost.minutes * 60.0;
    let time = match seconds {
        ..90.0 => format!("{seconds:.0} s"),
        _ => format!("{:.0} min", cost.minutes),
    };
    format!("${:.2} and {time}", cost.usd)
}
