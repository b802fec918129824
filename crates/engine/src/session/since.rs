//! `--since`: a date, a time, or how long ago.

use std::str::FromStr;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// From when on calls count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Since(Timestamp);

#[derive(Debug, thiserror::Error)]
#[error(
    "write a date as in `2026-01-31` (UTC), a time as in `2026-01-31T12:00:00Z`, or how long ago as in `7d`, `36h`, `2w` or `90m`"
)]
pub struct NoTime;

impl Since {
    pub fn time(self) -> Timestamp {
        self.0
    }

    fn parse(written: &str, now: Timestamp) -> Option<Self> {
        if let Some(ago) = ago(written) {
            return now.checked_sub(ago).ok().map(Self);
        }
        if let Ok(time) = written.parse::<Timestamp>() {
            return Some(Self(time));
        }
        // The library would take more of a time than its date and drop it unsaid.
        let date: Date = written
            .parse()
            .ok()
            .filter(|date: &Date| date.to_string() == written)?;
        Some(Self(date.to_zoned(TimeZone::UTC).ok()?.timestamp()))
    }
}

impl FromStr for Since {
    type Err = NoTime;

    fn from_str(written: &str) -> Result<Self, NoTime> {
        Self::parse(written, Timestamp::now()).ok_or(NoTime)
    }
}

/// `7d`: a whole number and its unit, which for minutes, hours, days and weeks is always as long.
fn ago(written: &str) -> Option<SignedDuration> {
    let unit = written.chars().next_back()?;
    let number = &written[..written.len() - unit.len_utf8()];
    let minutes = match unit {
        'm' => 1,
        'h' => 60,
        'd' => 24 * 60,
        'w' => 7 * 24 * 60,
        _ => return None,
    };
    // `parse` alone would take a sign.
    let number: i64 = number
        .bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| number.parse().ok())??;
    Some(SignedDuration::from_secs(number.checked_mul(minutes * 60)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_times_and_spans_are_understood_and_nothing_else() {
        let now: Timestamp = "2026-03-10T12:00:00Z".parse().expect("a time");
        for (written, meant) in [
            ("7d", "2026-03-03T12:00:00Z"),
            ("36h", "2026-03-09T00:00:00Z"),
            ("2w", "2026-02-24T12:00:00Z"),
            ("90m", "2026-03-10T10:30:00Z"),
            ("0d", "2026-03-10T12:00:00Z"),
            ("2026-01-31", "2026-01-31T00:00:00Z"),
            ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z"),
            ("2026-01-31T12:00:00+02:00", "2026-01-31T10:00:00Z"),
        ] {
            assert_eq!(
                Since::parse(written, now)
                    .map(|since| since.time().to_string())
                    .as_deref(),
                Some(meant),
                "{written}"
            );
        }
        for wrong in [
            "",
            "d",
            "7",
            "7x",
            "-7d",
            "+7d",
            "7 d",
            "1.5d",
            "yesterday",
            "2026-13-01",
            "2026-02-30",
            "2026-01-31T12:00:00",
            "2026-01-31T12",
            "99999999999999999999d",
            "9223372036854775807w",
            "900000w",
            "７d",
            "é",
        ] {
            assert_eq!(Since::parse(wrong, now), None, "{wrong}");
        }
    }
}
