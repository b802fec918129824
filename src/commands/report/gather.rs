//! Reads the logs once and collects the data of a report. Memory is bounded by the number of rows
//! and [`MAX_DETAILS_BYTES`]: full entries are kept only for the newest calls.

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
    Admission, CallTally, Calls, ModelStats, ModelTally, UnreadEntries, WorthTally, nearest_rank,
};
use supervisor_engine::session::{CallRecord, Filter, LogError, SessionLog};

/// Maximum size of all full entries in one page. Browsers still open such a page at once, and it
/// can be mailed.
const MAX_DETAILS_BYTES: usize = 32 << 20;
/// Maximum number of flaky tests counted separately.
const MAX_FLAKY_TESTS: usize = 2_000;

/// All data of a report.
#[derive(Debug)]
pub(super) struct ReportData {
    pub(super) filter: Filter,
    pub(super) made_at: Timestamp,
    /// Oldest first.
    pub(super) rows: Vec<CallRow>,
    /// Full entries as JSON, by row. Entries that did not fit or were not requested are missing.
    pub(super) details: HashMap<usize, String>,
    pub(super) names: ReportNames,
    pub(super) total: Calls,
    pub(super) worth: WorthTally,
    /// From local to managed tiers, then by name.
    pub(super) models: Vec<ModelFigures>,
    pub(super) median_ms: Option<u64>,
    pub(super) p95_ms: Option<u64>,
    pub(super) reasons: Vec<RefusalReason>,
    /// Most frequent first.
    pub(super) flaky: Vec<FlakyTest>,
    pub(super) timeline: Timeline,
    pub(super) flow: Flow,
    pub(super) unread: UnreadEntries,
}

/// One model over all skills.
#[derive(Debug)]
pub(super) struct ModelFigures {
    /// Index of its name in [`ReportNames::models`].
    pub(super) name_index: usize,
    pub(super) stats: ModelStats,
    pub(super) latency: LatencyHistogram,
    pub(super) generate_ms: u64,
    pub(super) verify_ms: u64,
}

/// Histogram of attempt durations with logarithmic bins.
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

    /// Position of a duration on the axis, from 0 to 1.
    pub(super) fn position(ms: u64) -> f64 {
        (((ms.max(1) as f64).log10() - Self::FIRST_POWER) / Self::POWERS).clamp(0.0, 1.0)
    }

    fn step(ms: u64) -> usize {
        ((Self::position(ms) * Self::STEPS as f64) as usize).min(Self::STEPS - 1)
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
    /// `with_details` also keeps full entries, for a page on which calls can be opened.
    pub(super) fn gather(
        log: &SessionLog,
        filter: &Filter,
        with_details: bool,
    ) -> Result<Self, LogError> {
        let sessions = match &filter.session {
            Some(session) => vec![session.clone()],
            None => log.sessions()?,
        };
        let mut pass = ReportBuilder {
            kept: NewestDetails {
                capacity: if with_details { MAX_DETAILS_BYTES } else { 0 },
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
struct ReportBuilder {
    rows: Vec<CallRow>,
    kept: NewestDetails,
    names: ReportNames,
    total: CallTally,
    worth: WorthTally,
    models: BTreeMap<usize, ModelBuilder>,
    reasons: ReasonTally,
    flaky: HashMap<(String, usize), (usize, Option<i64>)>,
    unread: UnreadEntries,
}

#[derive(Debug, Default)]
struct ModelBuilder {
    tally: ModelTally,
    latency: LatencyHistogram,
    generate_ms: u64,
    verify_ms: u64,
}

impl ReportBuilder {
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
        self.worth.add(record);
        for attempt in &record.entry.attempts {
            let model = self.names.models.intern(&attempt.model);
            self.models.entry(model).or_default().add(attempt);
        }
        let (names, reasons) = (&mut self.names, &mut self.reasons);
        // Intern the names first: a reason refers to its model by index.
        let model_indices: HashMap<&str, usize> = record
            .entry
            .attempts
            .iter()
            .map(|one| (one.model.as_str(), names.models.intern(&one.model)))
            .collect();
        let row = CallRow::of(record, ended, names, |attempt| {
            reasons.add(attempt, model_indices[attempt.model.as_str()])
        });
        for name in record
            .entry
            .attempts
            .iter()
            .flat_map(|attempt| &attempt.flaky)
        {
            if self.flaky.len() < MAX_FLAKY_TESTS
                || self.flaky.contains_key(&(name.clone(), row.project))
            {
                let (times, last) = self.flaky.entry((name.clone(), row.project)).or_default();
                *times += 1;
                *last = (*last).max(ended);
            }
        }
        if self.kept.capacity > 0 {
            self.kept
                .add(self.rows.len(), ended, || details(record, log));
        }
        self.rows.push(row);
    }

    fn finish(self, filter: Filter) -> ReportData {
        // Sort by time, with undated calls first and the newest last.
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_by_key(|row| self.rows[*row].ended_ms);
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
            .map(|(name_index, pass)| ModelFigures {
                name_index,
                stats: pass.tally.finish(names.models.get(name_index).to_owned()),
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
            worth: self.worth,
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

impl ModelBuilder {
    fn add(&mut self, attempt: &Attempt) {
        self.tally.add(attempt);
        if attempt.was_asked() {
            self.latency.add(attempt.duration_ms);
            self.generate_ms = self.generate_ms.saturating_add(attempt.generate_ms);
            self.verify_ms = self.verify_ms.saturating_add(attempt.verify_ms);
        }
    }
}

/// Keeps the newest full entries that fit into `capacity` bytes.
#[derive(Debug, Default)]
struct NewestDetails {
    capacity: usize,
    used: usize,
    details: HashMap<usize, String>,
    oldest: BinaryHeap<Reverse<(Option<i64>, usize)>>,
}

impl NewestDetails {
    fn add(&mut self, row: usize, ended: Option<i64>, details: impl FnOnce() -> String) {
        // Full, and older than every kept entry.
        if self.used >= self.capacity
            && self
                .oldest
                .peek()
                .is_some_and(|Reverse((time, _))| ended < *time)
        {
            return;
        }
        let details = details();
        self.used += details.len();
        self.details.insert(row, details);
        self.oldest.push(Reverse((ended, row)));
        while self.used > self.capacity
            && let Some(Reverse((_, oldest))) = self.oldest.pop()
        {
            self.used -= self
                .details
                .remove(&oldest)
                .map_or(0, |details| details.len());
        }
    }
}

/// The log entry plus the diff and the answers of each attempt, where they still exist.
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
            .filter_map(|exchange| exchange.answer.as_ref().and_then(text))
            .collect()
    };
    let answers: Vec<Vec<String>> = attempts.iter().map(answers).collect();
    let mut entry = serde_json::to_value(&record.entry).unwrap_or_default();
    entry["kept"] = json!({"diffs": diffs, "answers": answers});
    entry.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_details_are_kept_when_full() {
        let mut kept = NewestDetails {
            capacity: 10,
            ..NewestDetails::default()
        };
        for (row, time) in [
            (0, Some(5)),
            (1, Some(9)),
            (2, None),
            (3, Some(7)),
            (4, Some(8)),
        ] {
            kept.add(row, time, || "abcd".into());
        }
        let mut rows_kept: Vec<_> = kept.details.keys().copied().collect();
        rows_kept.sort_unstable();
        assert_eq!((rows_kept, kept.used), (vec![1, 4], 8));
    }

    #[test]
    fn histogram_bins_grow_with_duration() {
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
