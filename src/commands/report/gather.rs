//! Reads the logs once and keeps what a report shows. Memory is bounded by the rows and by [`DETAILS`]: of the whole
//! entries only the newest are kept.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use jiff::Timestamp;
use serde_json::json;

use super::flow::Flow;
use super::reasons::{ReasonTally, RefusalReason};
use super::rows::{CallRow, ReportNames};
use super::timeline::Timeline;
use supervisor_engine::Attempt;
use supervisor_engine::exchange::TextId;
use supervisor_engine::session::stats::{
    Admission, CallTally, Calls, ModelStats, ModelTally, UnreadEntries, nearest_rank,
};
use supervisor_engine::session::{CallRecord, Filter, LogError, SessionLog};

/// Bytes of whole entries in one page. Browsers open it at once, and it can still be sent by mail.
const DETAILS: usize = 32 << 20;
/// Flaky tests that are counted one by one.
const FLAKY: usize = 2_000;

/// Everything that a report shows.
#[derive(Debug)]
pub(super) struct ReportData {
    pub(super) filter: Filter,
    pub(super) made_at: Timestamp,
    /// Oldest first.
    pub(super) rows: Vec<CallRow>,
    /// Whole entries by row, as JSON. Empty where they did not fit or were not asked for.
    pub(super) details: HashMap<usize, String>,
    pub(super) names: ReportNames,
    pub(super) total: Calls,
    /// From local to managed tiers, then by name.
    pub(super) models: Vec<ModelFigures>,
    pub(super) median_ms: Option<u64>,
    pub(super) p95_ms: Option<u64>,
    pub(super) reasons: Vec<RefusalReason>,
    /// The commonest first.
    pub(super) flaky: Vec<FlakyTest>,
    pub(super) timeline: Timeline,
    pub(super) flow: Flow,
    pub(super) unread: UnreadEntries,
}

/// One model over all skills.
#[derive(Debug)]
pub(super) struct ModelFigures {
    /// Its place among the names.
    pub(super) place: usize,
    pub(super) stats: ModelStats,
    pub(super) latency: LatencyHistogram,
    pub(super) generate_ms: u64,
    pub(super) verify_ms: u64,
}

/// How often attempts took how long, in steps that grow.
#[derive(Debug, Clone, Default)]
pub(super) struct LatencyHistogram {
    pub(super) counts: [usize; Self::STEPS],
}

impl LatencyHistogram {
    pub(super) const STEPS: usize = 30;
    /// From 100 ms to 100 minutes: five powers of ten.
    const FIRST_POWER: f64 = 2.0;
    const POWERS: f64 = 4.8;

    fn add(&mut self, ms: u64) {
        self.counts[Self::step(ms)] += 1;
    }

    /// Where a duration stands on the axis, from 0 to 1.
    pub(super) fn place(ms: u64) -> f64 {
        (((ms.max(1) as f64).log10() - Self::FIRST_POWER) / Self::POWERS).clamp(0.0, 1.0)
    }

    fn step(ms: u64) -> usize {
        ((Self::place(ms) * Self::STEPS as f64) as usize).min(Self::STEPS - 1)
    }
}

/// A test that ended differently in two runs of the same files.
#[derive(Debug, Clone)]
pub(super) struct FlakyTest {
    pub(super) name: String,
    pub(super) project: usize,
    pub(super) times: usize,
    pub(super) last_ms: Option<i64>,
}

impl ReportData {
    /// `whole`: keep entries too, for a page on which calls can be opened.
    pub(super) fn gather(log: &SessionLog, filter: &Filter, whole: bool) -> Result<Self, LogError> {
        let sessions = match &filter.session {
            Some(session) => vec![session.clone()],
            None => log.sessions()?,
        };
        let mut pass = GatheringPass {
            kept: KeptDetails {
                room: if whole { DETAILS } else { 0 },
                ..Default::default()
            },
            ..Default::default()
        };
        for session in sessions {
            let mut reader = match log.reader(&session) {
                Ok(reader) => reader,
                Err(error) => {
                    pass.unread.file(&error);
                    continue;
                }
            };
            for record in reader.by_ref() {
                pass.add(&record, filter, log);
            }
            pass.unread.lines(reader.damage());
        }
        Ok(pass.finish(filter.clone()))
    }

    pub(super) fn sessions(&self) -> usize {
        self.names.sessions.names().len()
    }
}

#[derive(Debug, Default)]
struct GatheringPass {
    rows: Vec<CallRow>,
    kept: KeptDetails,
    names: ReportNames,
    total: CallTally,
    models: BTreeMap<usize, ModelPass>,
    reasons: ReasonTally,
    flaky: HashMap<(String, usize), (usize, Option<i64>)>,
    unread: UnreadEntries,
}

#[derive(Debug, Default)]
struct ModelPass {
    tally: ModelTally,
    latency: LatencyHistogram,
    generate_ms: u64,
    verify_ms: u64,
}

impl GatheringPass {
    fn add(&mut self, record: &CallRecord, filter: &Filter, log: &SessionLog) {
        let ended = match filter.admit(record) {
            Admission::Counts(ended) => ended.map(Timestamp::as_millisecond),
            Admission::Undated => {
                self.unread.undated += 1;
                return;
            }
            Admission::LeftOut => return,
        };
        self.unread.newer += usize::from(record.entry.v > supervisor_engine::entry::VERSION);
        self.total.add(record);
        for attempt in &record.entry.attempts {
            let model = self.names.models.place(&attempt.model);
            self.models.entry(model).or_default().add(attempt);
        }
        let (names, reasons) = (&mut self.names, &mut self.reasons);
        // Names first, so that a reason knows its model.
        let places: HashMap<&str, usize> = record
            .entry
            .attempts
            .iter()
            .map(|one| (one.model.as_str(), names.models.place(&one.model)))
            .collect();
        let row = CallRow::of(record, ended, names, |attempt| {
            reasons.add(attempt, places[attempt.model.as_str()])
        });
        for name in record
            .entry
            .attempts
            .iter()
            .flat_map(|attempt| &attempt.flaky)
        {
            if self.flaky.len() < FLAKY || self.flaky.contains_key(&(name.clone(), row.project)) {
                let (times, last) = self.flaky.entry((name.clone(), row.project)).or_default();
                *times += 1;
                *last = (*last).max(ended);
            }
        }
        if self.kept.room > 0 {
            self.kept
                .add(self.rows.len(), ended, || details(record, log));
        }
        self.rows.push(row);
    }

    fn finish(self, filter: Filter) -> ReportData {
        // By time, and those without one first: what is new stands at the end.
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_by_key(|place| self.rows[*place].ended_ms);
        let mut kept = self.kept.details;
        let details = order
            .iter()
            .enumerate()
            .filter_map(|(new, old)| Some((new, kept.remove(old)?)))
            .collect();
        let mut rows: Vec<Option<CallRow>> = self.rows.into_iter().map(Some).collect();
        let rows: Vec<CallRow> = order.iter().filter_map(|old| rows[*old].take()).collect();
        let mut durations: Vec<u64> = rows.iter().map(|row| row.duration_ms).collect();
        durations.sort_unstable();
        let names = self.names;
        let mut models: Vec<ModelFigures> = self
            .models
            .into_iter()
            .map(|(place, pass)| ModelFigures {
                place,
                stats: pass.tally.finish(names.models.get(place).to_owned()),
                latency: pass.latency,
                generate_ms: pass.generate_ms,
                verify_ms: pass.verify_ms,
            })
            .collect();
        models.sort_by(|a, b| (a.stats.tier, &a.stats.model).cmp(&(b.stats.tier, &b.stats.model)));
        let flaky = self.flaky.into_iter();
        let mut flaky: Vec<FlakyTest> = flaky
            .map(|((name, project), (times, last_ms))| FlakyTest {
                name,
                project,
                times,
                last_ms,
            })
            .collect();
        flaky.sort_by(|a, b| {
            (Reverse(a.times), &a.name, a.project).cmp(&(Reverse(b.times), &b.name, b.project))
        });
        ReportData {
            filter,
            made_at: Timestamp::now(),
            timeline: Timeline::of(&rows),
            flow: Flow::of(&rows, &models),
            details,
            names,
            total: self.total.finish(),
            models,
            median_ms: nearest_rank(&durations, 50),
            p95_ms: nearest_rank(&durations, 95),
            reasons: self.reasons.into_reasons(),
            flaky,
            unread: self.unread,
            rows,
        }
    }
}

impl ModelPass {
    fn add(&mut self, attempt: &Attempt) {
        self.tally.add(attempt);
        if attempt.was_asked() {
            self.latency.add(attempt.duration_ms);
            self.generate_ms = self.generate_ms.saturating_add(attempt.generate_ms);
            self.verify_ms = self.verify_ms.saturating_add(attempt.verify_ms);
        }
    }
}

/// Whole entries, the newest that fit.
#[derive(Debug, Default)]
struct KeptDetails {
    room: usize,
    used: usize,
    details: HashMap<usize, String>,
    oldest: BinaryHeap<Reverse<(Option<i64>, usize)>>,
}

impl KeptDetails {
    fn add(&mut self, place: usize, ended: Option<i64>, details: impl FnOnce() -> String) {
        // Older than everything that already fills the room.
        if self.used >= self.room
            && self
                .oldest
                .peek()
                .is_some_and(|Reverse((time, _))| ended < *time)
        {
            return;
        }
        let details = details();
        self.used += details.len();
        self.details.insert(place, details);
        self.oldest.push(Reverse((ended, place)));
        while self.used > self.room
            && let Some(Reverse((_, oldest))) = self.oldest.pop()
        {
            self.used -= self
                .details
                .remove(&oldest)
                .map_or(0, |details| details.len());
        }
    }
}

/// The entry as it is in the log, and of each attempt the change and the answers that are still kept beside it.
fn details(record: &CallRecord, log: &SessionLog) -> String {
    let text = |id: &TextId| log.exchange().read(id).ok().flatten();
    let attempts = &record.entry.attempts;
    let diffs: Vec<Option<String>> = attempts
        .iter()
        .map(|one| one.diff.as_ref().and_then(text))
        .collect();
    let answers = |one: &Attempt| -> Vec<String> {
        one.exchange
            .iter()
            .filter_map(|asked| asked.answer.as_ref().and_then(text))
            .collect()
    };
    let answers: Vec<Vec<String>> = attempts.iter().map(answers).collect();
    let mut whole = serde_json::to_value(&record.entry).unwrap_or_default();
    whole["kept"] = json!({"diffs": diffs, "answers": answers});
    whole.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_there_is_no_room_the_newest_entries_stay() {
        let mut kept = KeptDetails {
            room: 10,
            ..KeptDetails::default()
        };
        for (place, time) in [
            (0, Some(5)),
            (1, Some(9)),
            (2, None),
            (3, Some(7)),
            (4, Some(8)),
        ] {
            kept.add(place, time, || "abcd".into());
        }
        let mut places: Vec<_> = kept.details.keys().copied().collect();
        places.sort_unstable();
        assert_eq!((places, kept.used), (vec![1, 4], 8));
    }

    #[test]
    fn a_duration_has_its_place_on_an_axis_that_grows() {
        assert_eq!(
            (LatencyHistogram::step(0), LatencyHistogram::step(100)),
            (0, 0)
        );
        assert!(LatencyHistogram::step(1_000) < LatencyHistogram::step(10_000));
        assert_eq!(
            LatencyHistogram::step(u64::MAX),
            LatencyHistogram::STEPS - 1
        );
    }
}
