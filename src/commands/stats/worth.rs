//! "Is it worth it?" in words, for `stats`, and as figures for the page of `report`.

use std::path::Path;

use super::table;
use supervisor_engine::session::stats::{Estimate, Worth, WorthTally};
use supervisor_engine::{CallResult, archive};
use supervisor_settings::LoadedRouting;
use supervisor_skills::reply;
use supervisor_text::words::{count, plain};
use supervisor_workspace::state::StateDir;

/// Bytes of a token, about: English and code.
const BYTES_PER_TOKEN: u64 = 4;
/// More replies are not measured.
const MAX_REPLIES: usize = 500;

/// What replies put into the context of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HostContext {
    replies: usize,
    bytes: u64,
}

/// The figures with the prices of the settings; the built-in ones where they cannot be read.
pub(crate) fn judge(tally: &WorthTally, loaded: Option<&LoadedRouting>) -> Worth {
    const MINUTE_USD: f64 = 0.1;
    let routing = loaded.map(|loaded| &loaded.routing);
    let minute_usd = routing.map_or(MINUTE_USD, |routing| routing.policy.minute_usd);
    tally.finish(minute_usd)
}

impl HostContext {
    /// Measures the replies of the results that are still kept.
    pub(crate) fn measure(state: &StateDir) -> Option<Self> {
        let mut measured = Self {
            replies: 0,
            bytes: 0,
        };
        for path in archive::kept(state).into_iter().take(MAX_REPLIES) {
            if let Some(bytes) = reply_bytes(&path) {
                measured.replies += 1;
                measured.bytes += bytes;
            }
        }
        (measured.replies > 0).then_some(measured)
    }

    fn sentence(self) -> String {
        format!(
            "{} put {} bytes into the context of the caller (of the results of the last week): about {} tokens each, \
             which every later turn reads again.",
            match self.replies {
                1 => String::from("1 reply"),
                n => format!("{n} replies"),
            },
            self.bytes,
            self.bytes / self.replies as u64 / BYTES_PER_TOKEN
        )
    }
}

fn reply_bytes(path: &Path) -> Option<u64> {
    let bytes = std::fs::read(path).ok()?;
    let mut result: CallResult = serde_json::from_slice(&bytes).ok()?;
    // As it was sent: with the path of the whole result.
    result.more.full_result = path.display().to_string();
    let sent = reply::reply(result).structured_content?;
    u64::try_from(sent.to_string().len()).ok()
}

/// The lines of the text: the answer, the figures, the assumptions.
pub(crate) fn paragraphs(worth: &Worth, context: Option<HostContext>) -> Vec<String> {
    let mut lines = vec![format!(
        "Is it worth it? {}",
        worth.advice.sentences().join(" ")
    )];
    lines.extend(
        figures(worth, context)
            .into_iter()
            .map(|line| format!("  {line}")),
    );
    lines.push(String::from("  Assumed:"));
    lines.extend(worth.assumptions.iter().map(|line| format!("  - {line}")));
    lines
}

/// The figures behind the answer, a sentence each.
pub(crate) fn figures(worth: &Worth, context: Option<HostContext>) -> Vec<String> {
    let mut lines = Vec::new();
    if worth.compared == 0 {
        lines.push(format!(
            "{} asked a model, and of none are both costs known.",
            count(worth.calls, "call")
        ));
    } else {
        lines.push(format!(
            "Of {} that asked a model, {} can be compared: money saved {}, minutes saved {}, together {} with a minute at {}.",
            count(worth.calls, "call"),
            worth.compared,
            usd(&worth.usd_saved),
            worth
                .minutes_saved
                .as_ref()
                .map_or_else(|| String::from("unknown"), |minutes| range(minutes, minutes_text)),
            usd(&worth.value_usd),
            table::money(worth.minute_usd),
        ));
    }
    lines.push(format!(
        "The calls took {}; somebody waited for {} of it.",
        minutes_text(worth.minutes),
        minutes_text(worth.foreground_minutes)
    ));
    for kind in &worth.kinds {
        lines.push(format!(
            "{}: {} of {} accepted ({} to {}), {} of them without the top tier; worth {}.",
            plain(&kind.name()),
            kind.accepted,
            count(kind.calls, "call"),
            table::share(Some(kind.rate.low)),
            table::share(Some(kind.rate.high)),
            kind.accepted_below_top,
            usd(&kind.value_usd),
        ));
    }
    let hidden = worth.false_accepts;
    lines.push(match hidden.tested {
        0 => String::from(
            "Accepted answers that are wrong: unknown, because no hidden tests ran (`twins`).",
        ),
        tested => format!(
            "Accepted answers that fail hidden tests: {} of {tested}.",
            hidden.failed
        ),
    });
    lines.extend(context.map(HostContext::sentence));
    lines
}

fn usd(estimate: &Estimate) -> String {
    range(estimate, |usd| match usd < 0.0 {
        true => format!("-{}", table::money(-usd)),
        false => table::money(usd),
    })
}

fn minutes_text(minutes: f64) -> String {
    format!("{minutes:.1} min")
}

fn range(estimate: &Estimate, text: impl Fn(f64) -> String) -> String {
    let sum = text(estimate.sum);
    match estimate.is_known() {
        true => format!("{sum} ({} to {})", text(estimate.low), text(estimate.high)),
        false => sum,
    }
}
