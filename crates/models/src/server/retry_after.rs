//! Parses the wait a server asks for: seconds or a date, directly or through a gateway.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::HeaderMap;

/// Longer waits are treated as a mistake and capped.
const MAX_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// The requested wait. Unreadable values are ignored.
pub(super) fn read(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    ["retry-after", "llm_provider-retry-after"]
        .iter()
        .filter_map(|name| headers.get(*name)?.to_str().ok())
        .find_map(|value| parse(value.trim(), now))
}

fn parse(value: &str, now: Timestamp) -> Option<Duration> {
    let wait = match value.parse::<f64>() {
        Ok(seconds) if seconds.is_finite() && seconds >= 0.0 => {
            Duration::from_secs_f64(seconds.min(MAX_WAIT.as_secs_f64()))
        }
        Ok(_) => return None,
        Err(_) => {
            let when = jiff::fmt::rfc2822::parse(value).ok()?.timestamp();
            Duration::try_from(when.duration_since(now)).unwrap_or_default()
        }
    };
    Some(wait.min(MAX_WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_dates_are_parsed() {
        let now: Timestamp = "2026-01-02T03:04:05Z".parse().expect("a time");
        let s = |n| Some(Duration::from_secs(n));
        for (value, wait) in [
            ("7", s(7)),
            ("0", s(0)),
            ("2.5", Some(Duration::from_millis(2500))),
            ("Fri, 02 Jan 2026 03:05:05 GMT", s(60)),
            ("Fri, 02 Jan 2026 03:00:00 GMT", s(0)),
            ("999999999999", Some(MAX_WAIT)),
            ("-1", None),
            ("NaN", None),
            ("inf", None),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(parse(value, now), wait, "{value}");
        }
    }

    #[test]
    fn gateway_header_is_a_fallback() {
        let mut headers = HeaderMap::new();
        headers.insert("llm_provider-retry-after", "9".parse().expect("a value"));
        assert_eq!(
            read(&headers, Timestamp::UNIX_EPOCH),
            Some(Duration::from_secs(9))
        );
        headers.insert("retry-after", "tomorrow".parse().expect("a value"));
        assert_eq!(
            read(&headers, Timestamp::UNIX_EPOCH),
            Some(Duration::from_secs(9))
        );
        headers.insert("retry-after", "3".parse().expect("a value"));
        assert_eq!(
            read(&headers, Timestamp::UNIX_EPOCH),
            Some(Duration::from_secs(3))
        );
    }
}
