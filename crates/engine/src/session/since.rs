//! Parses `--since`: a date, a time, or how long ago.

use std::str::FromStr;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// Start time of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Since(Timestamp);

#[derive(Debug, thiserror::Error)]
#[error(
    "write a date as in `2026-01-31` (UTC), a time as in `2026-01-31T12:00:00Z`, or how long ago as in `7d`, `36h`, `2w` or `90m`"
)]
pub struct InvalidSince;

impl Since {
    pub fn time(self) -> Timestamp {
        self.0
    }

    fn parse(input: &str, now: Timestamp) -> Option<Self> {
        if let Some(ago) = ago(input) {
            return now.checked_sub(ago).ok().map(Self);
        }
        if let Ok(time) = input.parse::<Timestamp>() {
            return Some(Self(time));
        }
        // jiff would silently ignore a time after the date.
        let date: Date = input
            .parse()
            .ok()
            .filter(|date: &Date| date.to_string() == input)?;
        Some(Self(date.to_zoned(TimeZone::UTC).ok()?.timestamp()))
    }
}

impl FromStr for Since {
    type Err = InvalidSince;

    fn from_str(input: &str) -> Result<Self, InvalidSince> {
        Self::parse(input, Timestamp::now()).ok_or(InvalidSince)
    }
}

/// Parses `7d`: a whole number and one of the fixed-length units minutes, hours, days or weeks.
fn ago(input: &str) -> Option<SignedDuration> {
    let unit = input.chars().next_back()?;
    let number = &input[..input.len() - unit.len_utf8()];
    let minutes = match unit {
        'm' => 1,
        'h' => 60,
        'd' => 24 * 60,
        'w' => 7 * 24 * 60,
        _ => return None,
    };
    // `parse` alone would accept a sign.
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
    fn only_dates_times_and_durations_parse() {
        let now: Timestamp = "2026-03-10T12:00:00Z".parse().expect("a time");
        for (input, expected) in [
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
                Since::parse(input, now)
                    .map(|since| since.time().to_string())
                    .as_deref(),
                Some(expected),
                "{input}"
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
