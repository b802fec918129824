//! One message on the bus, in the layout that running teams write and read. Unknown fields are kept.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A line of `messages.jsonl`. The order of the fields is the order in which teams write them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TeamMessage {
    pub id: String,
    #[serde(default)]
    pub ts: String,
    #[serde(default)]
    pub from: String,
    #[serde(default)]
    pub to: String,
    #[serde(default = "plain_kind", rename = "type")]
    pub kind: String,
    #[serde(default)]
    pub summary: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatch_status: Option<DispatchStatus>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery_method: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notified_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_at: Option<String>,
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// How far a message has come to its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DispatchStatus {
    Pending,
    Notified,
    Delivered,
    Failed,
}

/// A message before it has an id and a time.
#[derive(Debug, Clone, Default)]
pub struct MessageDraft {
    pub from: String,
    /// The coordinator, if left out.
    pub to: Option<String>,
    /// `message`, if left out.
    pub kind: Option<String>,
    pub summary: Option<String>,
    pub data: Option<Map<String, Value>>,
    /// With one, the message waits in a mailbox until it is read.
    pub delivery_method: Option<String>,
}

fn plain_kind() -> String {
    String::from("message")
}

impl MessageDraft {
    /// The message as it will be written.
    pub fn stamp(self, number: u64, ts: &str) -> TeamMessage {
        let to = self.to.unwrap_or_else(|| String::from("coordinator"));
        let kind = self.kind.unwrap_or_else(plain_kind);
        let summary = self
            .summary
            .unwrap_or_else(|| format!("[{}] {kind} → {to}", self.from));
        // Without a delivery method it is not tracked: it counts as read.
        let waits = self.delivery_method.is_some();
        TeamMessage {
            id: format!("MSG-{number:03}"),
            ts: ts.to_owned(),
            from: self.from,
            to,
            kind,
            summary,
            dispatch_status: Some(if waits {
                DispatchStatus::Pending
            } else {
                DispatchStatus::Delivered
            }),
            data: self.data,
            delivery_method: self.delivery_method,
            notified_at: None,
            delivered_at: (!waits).then(|| ts.to_owned()),
            failed_at: None,
            unknown: Map::new(),
        }
    }
}

impl TeamMessage {
    /// The number in `MSG-007`.
    pub fn number(&self) -> Option<u64> {
        self.id.strip_prefix("MSG-")?.parse().ok()
    }

    /// Older messages have no status and were never tracked.
    pub fn status(&self) -> DispatchStatus {
        self.dispatch_status.unwrap_or(DispatchStatus::Delivered)
    }

    pub fn is_unread_by(&self, role: &str) -> bool {
        self.to == role
            && matches!(
                self.status(),
                DispatchStatus::Pending | DispatchStatus::Notified
            )
    }

    /// A field of `data` as text.
    pub fn text(&self, field: &str) -> Option<&str> {
        self.data.as_ref()?.get(field)?.as_str()
    }

    /// `MSG-007 [12:30:01] writer → coordinator (state_update) …`
    pub fn line(&self) -> String {
        let clock = self.ts.get(11..19).unwrap_or(&self.ts);
        format!(
            "{} [{clock}] {} → {} ({}) {}",
            self.id, self.from, self.to, self.kind, self.summary
        )
    }
}

/// Now, as teams write it: UTC with milliseconds and `+00:00`.
pub fn now() -> String {
    let now = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC);
    now.strftime("%Y-%m-%dT%H:%M:%S%.3f+00:00").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_survives_reading_and_writing_with_all_it_carries() {
        let line = r#"{"id":"MSG-007","ts":"2026-11-01T10:00:00.000+00:00","from":"writer","to":"coordinator","type":"state_update","summary":"s","dispatch_status":"delivered","data":{"task_id":"DRAFT-001"},"delivered_at":"x","colour":"blue"}"#;
        let message: TeamMessage = serde_json::from_str(line).expect("read");
        assert_eq!(message.number(), Some(7));
        assert_eq!(serde_json::to_string(&message).expect("written"), line);
        let old: TeamMessage =
            serde_json::from_str(r#"{"id":"MSG-1","from":"a","to":"b"}"#).expect("read");
        assert_eq!(
            (old.status(), old.kind.as_str()),
            (DispatchStatus::Delivered, "message")
        );
    }

    #[test]
    fn times_are_written_as_teams_write_them() {
        let ts = now();
        assert_eq!(
            (ts.len(), &ts[23..], &ts[10..11]),
            (29, "+00:00", "T"),
            "{ts}"
        );
    }
}
