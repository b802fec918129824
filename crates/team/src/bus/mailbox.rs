//! Reads a role's unread messages and marks them as delivered.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{BusError, TeamBus, lines, parse};
use crate::message::{DispatchStatus, TeamMessage, now};

/// Message counts of one role, by status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct MailboxCounts {
    pub pending: usize,
    pub notified: usize,
    pub delivered: usize,
    pub failed: usize,
}

impl TeamBus {
    /// The unread messages of a role, as they were before being marked as delivered.
    pub fn read_mailbox(&self, role: &str) -> Result<Vec<TeamMessage>, BusError> {
        let _lock = self.lock()?;
        loop {
            let bytes = self.bytes(0)?;
            let (at, mut unread, mut rewritten) =
                (now(), Vec::new(), Vec::with_capacity(bytes.len()));
            for (n, (_, line)) in lines(&bytes).enumerate() {
                if n > 0 {
                    rewritten.push(b'\n');
                }
                match parse(line).filter(|m| m.is_unread_by(role)) {
                    None => rewritten.extend_from_slice(line),
                    Some(message) => {
                        let mut read = message.clone();
                        read.dispatch_status = Some(DispatchStatus::Delivered);
                        read.delivered_at = Some(at.clone());
                        rewritten.extend(serde_json::to_vec(&read).expect("plain data serialises"));
                        unread.push(message);
                    }
                }
            }
            if unread.is_empty() {
                return Ok(unread);
            }
            let last = self.next_number()?.saturating_sub(1);
            // A team that takes no lock may have appended meanwhile: start over.
            let size = self
                .place
                .folder()
                .entry(&self.log())?
                .map_or(0, |entry| entry.size);
            if size != bytes.len() as u64 {
                continue;
            }
            self.place.folder().write(&self.log(), &rewritten)?;
            self.record_last_id(last)?;
            return Ok(unread);
        }
    }

    /// Counts per role, sorted by name, and the number of messages.
    pub fn mailbox_status(&self) -> Result<(BTreeMap<String, MailboxCounts>, usize), BusError> {
        let messages = self.all()?.messages;
        let mut roles: BTreeMap<String, MailboxCounts> = BTreeMap::new();
        for message in &messages {
            let counts = roles.entry(message.to.clone()).or_default();
            *match message.status() {
                DispatchStatus::Pending => &mut counts.pending,
                DispatchStatus::Notified => &mut counts.notified,
                DispatchStatus::Delivered => &mut counts.delivered,
                DispatchStatus::Failed => &mut counts.failed,
            } += 1;
        }
        Ok((roles, messages.len()))
    }
}
