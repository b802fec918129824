//! Parses a line of a log of any version into a current entry.

use serde::Deserialize as _;
use serde_json::{Value, json};

use super::SessionId;
use crate::{Attempt, Cause, Entry, Opinion, Status, TopTier, Verdict};
use supervisor_text::words::cut_end;

/// One logged call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallRecord {
    /// `final_status` is `error` if the log has an unknown status; `outcome` keeps the original.
    pub entry: Entry,
    pub outcome: RecordedOutcome,
}

/// How a call ended, including statuses of older logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordedOutcome {
    Pass,
    Fail,
    Error,
    Skipped,
    /// An unknown status; empty if there was none.
    Other(String),
}

impl CallRecord {
    /// Parses the entry in this line. Also returns how many of its attempts had to be left out.
    pub(super) fn parse(line: &[u8], id: &SessionId) -> serde_json::Result<(Self, usize)> {
        match serde_json::from_slice::<Entry>(line) {
            // Entries of the current version.
            Ok(mut entry) => {
                entry.upgrade();
                let outcome = entry.final_status.into();
                Ok((Self { entry, outcome }, 0))
            }
            Err(_) => parse_leniently(line, id),
        }
    }
}

impl From<Status> for RecordedOutcome {
    fn from(status: Status) -> Self {
        match status {
            Status::Pass => Self::Pass,
            Status::Fail => Self::Fail,
            Status::Error => Self::Error,
        }
    }
}

impl RecordedOutcome {
    fn of(word: &Value) -> Self {
        match word
            .as_str()
            .unwrap_or_default()
            .to_ascii_lowercase()
            .as_str()
        {
            "pass" | "ok" => Self::Pass,
            "fail" => Self::Fail,
            "error" => Self::Error,
            "skip" | "skipped" => Self::Skipped,
            other => Self::Other(cut_end(other, 40).into_owned()),
        }
    }

    /// The status as written in the log.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Skipped => "skip",
            Self::Error | Self::Other(_) => "error",
        }
    }

    /// The status of a current entry, which has no `skip`.
    fn status(&self) -> &'static str {
        if *self == Self::Skipped {
            "error"
        } else {
            self.word()
        }
    }
}

/// Converts an older or later entry to the current format.
fn parse_leniently(line: &[u8], id: &SessionId) -> serde_json::Result<(CallRecord, usize)> {
    let mut fields: serde_json::Map<String, Value> = serde_json::from_slice(line)?;
    fields.retain(|_, value| !value.is_null());
    let outcome = RecordedOutcome::of(fields.get("final_status").unwrap_or(&Value::Null));
    fields.insert("final_status".into(), outcome.status().into());
    fields
        .entry("session_id")
        .or_insert_with(|| id.as_str().into());
    for name in ["timestamp", "skill"] {
        fields.entry(name).or_insert_with(|| "".into());
    }
    let attempts = match fields.remove("attempts") {
        Some(Value::Array(attempts)) => attempts,
        _ => Vec::new(),
    };
    // A later version may have another format for `top_tier`; the call still counts.
    if fields
        .get("top_tier")
        .is_some_and(|top| TopTier::deserialize(top).is_err())
    {
        fields.remove("top_tier");
    }
    let all = attempts.len();
    let attempts: Vec<Attempt> = attempts
        .into_iter()
        .enumerate()
        .filter_map(|(i, a)| parse_attempt_leniently(i, a))
        .collect();
    let mut entry: Entry = serde_json::from_value(Value::Object(fields))?;
    let left_out = all - attempts.len();
    entry.attempts = attempts;
    entry.upgrade();
    Ok((CallRecord { entry, outcome }, left_out))
}

/// Missing fields get their default. The tier of the oldest attempts is known from their model.
fn parse_attempt_leniently(index: usize, mut attempt: Value) -> Option<Attempt> {
    let fields = attempt.as_object_mut()?;
    fields.retain(|_, value| !value.is_null());
    for (name, value) in [
        ("attempt", json!(index + 1)),
        ("model", json!("")),
        ("duration_ms", json!(0)),
    ] {
        fields.entry(name).or_insert(value);
    }
    let is_claude = fields["model"]
        .as_str()
        .is_some_and(|model| model.starts_with("claude-"));
    let tier = if is_claude { "subagent" } else { "local" };
    fields.entry("tier").or_insert_with(|| tier.into());
    // Drop unknown verdicts and causes of other versions; the rest of the attempt is still useful.
    if fields
        .get("verdict")
        .is_some_and(|verdict| Verdict::deserialize(verdict).is_err())
    {
        fields.remove("verdict");
    }
    if fields
        .get("cause")
        .is_some_and(|cause| Cause::deserialize(cause).is_err())
    {
        fields.remove("cause");
    }
    if fields
        .get("verifier")
        .is_some_and(|opinion| Opinion::deserialize(opinion).is_err())
    {
        fields.remove("verifier");
    }
    serde_json::from_value(attempt).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use supervisor_settings::TierKind;

    fn parse(line: &str) -> (CallRecord, usize) {
        CallRecord::parse(line.as_bytes(), &"s".parse().expect("a name")).expect(line)
    }

    #[test]
    fn statuses_of_older_logs_parse() {
        for (line, outcome, status) in [
            (
                r#"{"skill":"x","final_status":"ok"}"#,
                RecordedOutcome::Pass,
                Status::Pass,
            ),
            (
                r#"{"skill":"x","final_status":"error","message":null}"#,
                RecordedOutcome::Error,
                Status::Error,
            ),
            (
                r#"{"skill":"x","final_status":"skipped"}"#,
                RecordedOutcome::Skipped,
                Status::Error,
            ),
            (
                r#"{"skill":"x","final_status":"SKIP"}"#,
                RecordedOutcome::Skipped,
                Status::Error,
            ),
            (
                r#"{"final_status":"fail","brain":{"later":true}}"#,
                RecordedOutcome::Fail,
                Status::Fail,
            ),
            (
                r#"{"final_status":"postponed"}"#,
                RecordedOutcome::Other("postponed".into()),
                Status::Error,
            ),
            (
                r#"{}"#,
                RecordedOutcome::Other(String::new()),
                Status::Error,
            ),
        ] {
            let (record, left_out) = parse(line);
            assert_eq!(
                (record.outcome, record.entry.final_status, left_out),
                (outcome, status, 0),
                "{line}"
            );
            assert_eq!(record.entry.session_id, "s");
        }
    }

    #[test]
    fn first_version_has_the_tool_in_skill() {
        let (first, _) = parse(r#"{"v":1,"skill":"tdd_red","final_status":"pass"}"#);
        assert_eq!(
            (first.entry.skill.as_str(), first.entry.tool.as_str()),
            ("tdd", "tdd_red")
        );
        let (now, _) = parse(r#"{"v":2,"skill":"tdd","tool":"tdd_red","final_status":"pass"}"#);
        assert_eq!(
            (now.entry.skill.as_str(), now.entry.tool.as_str()),
            ("tdd", "tdd_red")
        );
    }

    #[test]
    fn attempts_of_other_versions_parse_leniently() {
        let (record, _) = parse(
            r#"{"session_id":"s","timestamp":"2025-01-01T00:00:00Z","skill":"tdd","final_status":"ok","attempts":[
               {"attempt":1,"model":"m","tier":"local","duration_ms":5,"warm_start":false,"verdict":"accept"}]}"#,
        );
        let attempt = &record.entry.attempts[0];
        assert_eq!(
            (attempt.verdict, attempt.warm_start, attempt.cause),
            (Some(Verdict::Accept), Some(false), None)
        );

        let (oldest, left_out) = parse(
            r#"{"skill":"tdd","final_status":"ok","attempts":[
               {"attempt":1,"model":"ollama/x","duration_ms":5,"verified":true,"verdict":"escalate"},
               {"attempt":2,"model":"claude-sonnet-4-6","duration_ms":9,"verified":true,"verdict":"accept"}]}"#,
        );
        let read: Vec<_> = oldest
            .entry
            .attempts
            .iter()
            .map(|a| (a.tier, a.cause, a.verified))
            .collect();
        assert_eq!(
            (read, left_out),
            (
                vec![
                    (TierKind::Local, Some(Cause::Rejected), false),
                    (TierKind::Subagent, None, true)
                ],
                0
            )
        );

        let (record, left_out) = parse(
            r#"{"skill":"x","attempts":[{"tier":"local","verdict":"maybe","cause":"rejected","later":1},{"tier":"orbital"},7]}"#,
        );
        let attempts = record.entry.attempts;
        let (later, _) = parse(
            r#"{"skill":"x","final_status":"pass","top_tier":{"model":"m","cost_usd":1,"basis":"dreamt"}}"#,
        );
        assert_eq!(
            (later.outcome, later.entry.top_tier),
            (RecordedOutcome::Pass, None)
        );
        assert_eq!((attempts.len(), attempts[0].attempt, left_out), (1, 1, 2));
        assert_eq!(
            (attempts[0].verdict, attempts[0].cause),
            (None, Some(Cause::Rejected))
        );
    }
}
