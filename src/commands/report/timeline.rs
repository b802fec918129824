//! Counts calls in equal time steps, as many as a chart has space for.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::rows::CallRow;
use supervisor_engine::session::RecordedOutcome;

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;
/// Maximum number of bars that are distinguishable on a phone.
const MAX_STEPS: i64 = 90;
/// 1970 began on a Thursday; weeks start on Monday.
const FIRST_MONDAY: i64 = 4 * DAY;

/// Calls over time.
#[derive(Debug, Clone, Default)]
pub(super) struct Timeline {
    pub(super) step_ms: i64,
    pub(super) steps: Vec<TimeStep>,
}

/// The calls of one step.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct TimeStep {
    pub(super) begins_ms: i64,
    pub(super) pass: usize,
    pub(super) fail: usize,
    pub(super) error: usize,
    /// Sums over the calls for which both costs are fully known.
    pub(super) spent_usd: f64,
    pub(super) top_tier_usd: f64,
}

impl TimeStep {
    pub(super) fn calls(&self) -> usize {
        self.pass + self.fail + self.error
    }
}

impl Timeline {
    /// Covers the first to the last call; empty if no call has a time.
    pub(super) fn of(rows: &[CallRow]) -> Self {
        let times = || rows.iter().filter_map(|row| row.ended_ms);
        let (Some(first), Some(last)) = (times().min(), times().max()) else {
            return Self::default();
        };
        let (step_ms, begin) = step(first, last);
        let number = |time: i64| usize::try_from((time - begin) / step_ms).unwrap_or_default();
        let mut steps: Vec<TimeStep> = (0..=number(last))
            .map(|n| TimeStep {
                begins_ms: begin + step_ms * n as i64,
                ..TimeStep::default()
            })
            .collect();
        for row in rows {
            let Some(time) = row.ended_ms else { continue };
            let step = &mut steps[number(time)];
            match row.outcome {
                RecordedOutcome::Pass => step.pass += 1,
                RecordedOutcome::Fail => step.fail += 1,
                RecordedOutcome::Error | RecordedOutcome::Skipped | RecordedOutcome::Other(_) => {
                    step.error += 1;
                }
            }
            if let (Some(spent), Some(top)) = (row.cost_usd, row.top_tier_usd) {
                step.spent_usd += spent;
                step.top_tier_usd += top;
            }
        }
        Self { step_ms, steps }
    }

    /// The step length as text, such as `per day`.
    pub(super) fn unit(&self) -> String {
        match (self.step_ms / HOUR, self.step_ms / DAY) {
            (1, _) => "per hour".into(),
            (hours @ 2..24, _) => format!("per {hours} hours"),
            (_, 1) => "per day".into(),
            (_, 7) => "per week".into(),
            (_, days) => format!("per {days} days"),
        }
    }

    /// Start of a step, with a precision that fits the step length.
    pub(super) fn label(&self, begins_ms: i64) -> String {
        let format = if self.step_ms < DAY {
            "%Y-%m-%d %H:%M"
        } else {
            "%Y-%m-%d"
        };
        format_time(begins_ms, format)
    }
}

/// Formats a time in UTC; a dash if it is out of range.
pub(super) fn format_time(ms: i64, format: &str) -> String {
    let zoned = Timestamp::from_millisecond(ms)
        .map(|time| time.to_zoned(TimeZone::UTC).strftime(format).to_string());
    zoned.unwrap_or_else(|_| "–".into())
}

/// Chooses the shortest step that keeps the chart within [`MAX_STEPS`], and the start of the first
/// step.
fn step(first: i64, last: i64) -> (i64, i64) {
    let begin = |step: i64| {
        let offset = if step > DAY { FIRST_MONDAY } else { 0 };
        (first - offset).div_euclid(step) * step + offset
    };
    for step in [HOUR, 3 * HOUR, 6 * HOUR, DAY, 7 * DAY, 28 * DAY] {
        if (last - begin(step)) / step < MAX_STEPS {
            return (step, begin(step));
        }
    }
    let step = ((last - first) / (MAX_STEPS - 1) / DAY + 1) * DAY;
    (step, first.div_euclid(DAY) * DAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(time: &str) -> i64 {
        time.parse::<Timestamp>().expect("a time").as_millisecond()
    }

    #[test]
    fn shortest_fitting_step_is_chosen() {
        for (first, last, length, begins) in [
            (
                "2026-03-10T12:34:00Z",
                "2026-03-10T12:34:00Z",
                HOUR,
                "2026-03-10T12:00:00Z",
            ),
            (
                "2026-03-10T12:34:00Z",
                "2026-03-12T12:34:00Z",
                HOUR,
                "2026-03-10T12:00:00Z",
            ),
            (
                "2026-03-10T12:34:00Z",
                "2026-04-12T12:34:00Z",
                DAY,
                "2026-03-10T00:00:00Z",
            ),
            (
                "2026-03-10T12:34:00Z",
                "2026-09-12T12:34:00Z",
                7 * DAY,
                "2026-03-09T00:00:00Z",
            ),
            (
                "1969-12-31T12:34:00Z",
                "1970-01-01T00:00:01Z",
                HOUR,
                "1969-12-31T12:00:00Z",
            ),
        ] {
            assert_eq!(
                step(ms(first), ms(last)),
                (length, ms(begins)),
                "{first} to {last}"
            );
        }
        let (first, last) = (ms("0001-01-01T00:00:00Z"), ms("9999-12-30T00:00:00Z"));
        let (step, begin) = step(first, last);
        assert!((last - begin) / step < MAX_STEPS && begin <= first);
    }
}
