//! A bus message in the format that running teams read and write. Unknown fields are kept.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A line of `messages.jsonl`. Fields are in the order in which teams write them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TeamMessage {
    pub id: String,
    #[serde(default)]
    pub ts: String,
    #[serde(default)]
    pub from: String,
    #[serde(default)]
    pub to: String,
    #[serde(default = "default_kind", rename = "type")]
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

/// Delivery status of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DispatchStatus {
    Pending,
    Notified,
    Delivered,
    Failed,
}

/// A message without id and time.
#[derive(Debug, Clone, Default)]
pub struct MessageDraft {
    pub from: String,
    /// Default: the coordinator.
    pub to: Option<String>,
    /// Default: `message`.
    pub kind: Option<String>,
    pub summary: Option<String>,
    pub data: Option<Map<String, Value>>,
    /// If set, the message waits in a mailbox until it is read.
    pub delivery_method: Option<String>,
}

fn default_kind() -> String {
    String::from("message")
}

impl MessageDraft {
    /// Adds id and time.
    pub fn stamp(self, number: u64, ts: &str) -> TeamMessage {
        let to = self.to.unwrap_or_else(|| String::from("coordinator"));
        let kind = self.kind.unwrap_or_else(default_kind);
        let summary = self
            .summary
            .unwrap_or_else(|| format!("[{}] {kind} → {to}", self.from));
        // Without a delivery method the message is not tracked and counts as read.
        let is_tracked = self.delivery_method.is_some();
        TeamMessage {
            id: format!("MSG-{number:03}"),
            ts: ts.to_owned(),
            from: self.from,
            to,
            kind,
            summary,
            dispatch_status: Some(if is_tracked {
                DispatchStatus::Pending
            } else {
                DispatchStatus::Delivered
            }),
            data: self.data,
            delivery_method: self.delivery_method,
            notified_at: None,
            delivered_at: (!is_tracked).then(|| ts.to_owned()),
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

/// The current time in the teams' format: UTC with milliseconds and `+00:00`.
pub fn now() -> String {
    let now = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC);
    now.strftime("%Y-%m-%dT%H:%M:%S%.3f+00:00").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_round_trips_with_unknown_fields() {
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
    fn timestamps_use_the_teams_format() {
        let ts = now();
        assert_eq!(
            (ts.len(), &ts[23..], &ts[10..11]),
            (29, "+00:00", "T"),
            "{ts}"
        );
    }
}
