//! Progress notifications of a running call. Sending one never waits: it is dropped if the reader
//! is slow, and ignored after the reply or a cancel.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use parking_lot::Mutex;

use rmcp::RoleServer;
use rmcp::model::{
    ProgressNotification, ProgressNotificationParam, ProgressToken, ServerJsonRpcMessage,
};
use rmcp::service::RequestContext;
use tokio::sync::Notify;

use supervisor_engine::event::{CallKey, Listener, ProgressLine};
use supervisor_text::words;

/// Maximum message length in characters.
pub const MAX_PROGRESS: usize = 200;

/// Reports progress of one call. Cheap to clone; does nothing if the client did not ask for
/// progress.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    line: Option<Arc<ProgressChannel>>,
    job: Option<Arc<JobProgress>>,
}

/// Added to requests of clients that accept a task handle.
#[derive(Debug, Default)]
pub struct JobProgress {
    /// Notified when the call is detached.
    pub detached: Notify,
    /// The call that was detached.
    first: Mutex<CallKey>,
    /// The latest progress message, for a client that polls the job.
    last: Mutex<String>,
    /// Since when the client has a task in place of the answer.
    pub background_since: OnceLock<Instant>,
}

impl JobProgress {
    pub fn first_call(&self) -> CallKey {
        self.first.lock().clone()
    }

    pub fn last(&self) -> String {
        self.last.lock().clone()
    }
}

/// Sends a notification past the SDK's queue. The transport adds one to the extensions of each request.
#[derive(Clone)]
pub struct NotificationSender(Arc<dyn Fn(&ServerJsonRpcMessage) + Send + Sync>);

impl NotificationSender {
    pub fn new(send: impl Fn(&ServerJsonRpcMessage) + Send + Sync + 'static) -> Self {
        Self(Arc::new(send))
    }
}

impl std::fmt::Debug for NotificationSender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NotificationSender")
    }
}

#[derive(Debug)]
struct ProgressChannel {
    sender: NotificationSender,
    token: ProgressToken,
    /// Must increase with every notification of a call.
    steps: AtomicU64,
}

impl Progress {
    pub fn of(cx: &RequestContext<RoleServer>) -> Self {
        let line = cx
            .meta
            .get_progress_token()
            .zip(cx.extensions.get::<NotificationSender>());
        let line = line.map(|(token, sender)| ProgressChannel {
            sender: sender.clone(),
            token,
            steps: AtomicU64::new(0),
        });
        Self {
            line: line.map(Arc::new),
            job: cx.extensions.get::<Arc<JobProgress>>().cloned(),
        }
    }

    /// Sends one line, truncated to [`MAX_PROGRESS`] characters.
    pub fn say(&self, message: &str) {
        let Some(line) = &self.line else { return };
        let step = line.steps.fetch_add(1, Ordering::Relaxed) + 1;
        #[expect(
            clippy::cast_precision_loss,
            reason = "a call does not take 2^53 steps"
        )]
        let params = ProgressNotificationParam::new(line.token.clone(), step as f64)
            .with_message(truncate(message));
        let message = ServerJsonRpcMessage::notification(ProgressNotification::new(params).into());
        (line.sender.0)(&message);
    }
}

/// Forwards a call's progress to the client.
impl Listener for Progress {
    fn on_event(&self, event: &ProgressLine) {
        self.say(&event.line);
        if let Some(job) = &self.job {
            *job.last.lock() = truncate(&event.line);
        }
    }

    fn on_detached(&self, key: &CallKey) {
        if let Some(job) = &self.job {
            *job.first.lock() = key.clone();
            job.detached.notify_one();
        }
    }

    fn background_since(&self) -> Option<Instant> {
        self.job.as_ref()?.background_since.get().copied()
    }
}

fn truncate(message: &str) -> String {
    let one_line = words::plain(message).replace(['\n', '\t'], " ");
    if one_line.chars().count() <= MAX_PROGRESS {
        return one_line;
    }
    let mut short: String = one_line.chars().take(MAX_PROGRESS - 1).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_is_one_truncated_line() {
        assert_eq!(
            truncate("tier 1/3\nrunning\u{1b}[2J"),
            "tier 1/3 running\\u{1b}[2J"
        );
        let long = truncate(&"é".repeat(500));
        assert_eq!(long.chars().count(), MAX_PROGRESS);
        assert!(long.ends_with('…'));
    }
}
