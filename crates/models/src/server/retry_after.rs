//! Parses the wait a server asks for: seconds or a date, directly or through a gateway, or the reset of a
//! rate limit of the Messages API that is used up.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::HeaderMap;

/// Longer waits are treated as a mistake and capped.
const MAX_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// The limits of the Messages API: `anthropic-ratelimit-<limit>-remaining` and `-reset`.
const LIMITS: [&str; 4] = ["requests", "tokens", "input-tokens", "output-tokens"];

/// The requested wait. Unreadable values are ignored.
pub(super) fn read(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| Some(headers.get(name)?.to_str().ok()?.trim());
    ["retry-after", "llm_provider-retry-after"]
        .iter()
        .filter_map(|name| text(name))
        .find_map(|value| parse(value, now))
        .or_else(|| until_reset(text, now))
}

/// The time until the last of the limits that are used up is reset.
fn until_reset<'a>(text: impl Fn(&str) -> Option<&'a str>, now: Timestamp) -> Option<Duration> {
    let wait = |limit: &str| {
        let value = |what: &str| text(&format!("anthropic-ratelimit-{limit}-{what}"));
        if value("remaining")?.parse::<u64>().ok()? > 0 {
            return None;
        }
        let reset: Timestamp = value("reset")?.parse().ok()?;
        let wait = Duration::try_from(reset.duration_since(now)).unwrap_or_default();
        Some(wait.min(MAX_WAIT))
    };
    LIMITS.into_iter().filter_map(wait).max()
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
    fn reset_of_a_used_up_limit_is_waited_for() {
        let now: Timestamp = "2026-01-02T03:04:05Z".parse().expect("a time");
        let read_from = |given: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in given {
                headers.insert(*name, value.parse().expect("a value"));
            }
            read(&headers, now).map(|wait| wait.as_secs())
        };
        let requests = [
            ("anthropic-ratelimit-requests-remaining", "0"),
            ("anthropic-ratelimit-requests-reset", "2026-01-02T03:05:05Z"),
        ];
        let input = [
            ("anthropic-ratelimit-input-tokens-remaining", "0"),
            (
                "anthropic-ratelimit-input-tokens-reset",
                "2026-01-02T03:04:25Z",
            ),
        ];
        let output = [
            ("anthropic-ratelimit-output-tokens-remaining", "12"),
            (
                "anthropic-ratelimit-output-tokens-reset",
                "2026-01-02T04:04:05Z",
            ),
        ];
        for (headers, wait) in [
            (input.to_vec(), Some(20)),
            ([requests, input, output].concat(), Some(60)),
            (
                [input.to_vec(), vec![("retry-after", "7")]].concat(),
                Some(7),
            ),
            (output.to_vec(), None),
            (vec![requests[0]], None),
            (vec![requests[0], (requests[1].0, "soon")], None),
        ] {
            assert_eq!(read_from(&headers), wait, "{headers:?}");
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
