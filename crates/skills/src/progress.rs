//! What a running call tells the client on the way. Saying something costs a queue entry at most:
//! it never waits, is dropped when the reader is behind, and falls silent with the reply or a cancel.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::RoleServer;
use rmcp::model::{
    ProgressNotification, ProgressNotificationParam, ProgressToken, ServerJsonRpcMessage,
};
use rmcp::service::RequestContext;
use tokio::sync::Notify;

use supervisor_engine::event::{CallKey, Listener, StoryLine};
use supervisor_text::words;

/// The longest message, in characters.
pub const MAX_PROGRESS: usize = 200;

/// Reports progress of one call. Cheap to clone; silent when the client did not ask for progress.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    line: Option<Arc<Line>>,
    job: Option<Arc<JobStory>>,
}

/// Rides along with a request whose client takes a handle for an answer.
#[derive(Debug, Default)]
pub struct JobStory {
    /// Raised when the call is set apart.
    pub apart: Notify,
    /// The call that was set apart.
    first: Mutex<CallKey>,
    /// What was told last, for a client that asks how the job is going.
    last: Mutex<String>,
}

impl JobStory {
    pub fn first_call(&self) -> CallKey {
        self.first
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub fn last(&self) -> String {
        self.last
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
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
struct Line {
    sender: NotificationSender,
    token: ProgressToken,
    /// Must grow with every notification of a call.
    steps: AtomicU64,
}

impl Progress {
    pub fn of(cx: &RequestContext<RoleServer>) -> Self {
        let line = cx
            .meta
            .get_progress_token()
            .zip(cx.extensions.get::<NotificationSender>());
        let line = line.map(|(token, sender)| Line {
            sender: sender.clone(),
            token,
            steps: AtomicU64::new(0),
        });
        Self {
            line: line.map(Arc::new),
            job: cx.extensions.get::<Arc<JobStory>>().cloned(),
        }
    }

    /// Sends one line, cut at [`MAX_PROGRESS`] characters.
    pub fn say(&self, message: &str) {
        let Some(line) = &self.line else { return };
        let step = line.steps.fetch_add(1, Ordering::Relaxed) + 1;
        #[expect(
            clippy::cast_precision_loss,
            reason = "a call does not take 2^53 steps"
        )]
        let params = ProgressNotificationParam::new(line.token.clone(), step as f64)
            .with_message(cut(message));
        let message = ServerJsonRpcMessage::notification(ProgressNotification::new(params).into());
        (line.sender.0)(&message);
    }
}

/// A call's story, as the client sees it.
impl Listener for Progress {
    fn hear(&self, told: &StoryLine) {
        self.say(&told.line);
        if let Some(job) = &self.job {
            *job.last.lock().unwrap_or_else(PoisonError::into_inner) = cut(&told.line);
        }
    }

    fn on_set_apart(&self, key: &CallKey) {
        if let Some(job) = &self.job {
            *job.first.lock().unwrap_or_else(PoisonError::into_inner) = key.clone();
            job.apart.notify_one();
        }
    }
}

fn cut(message: &str) -> String {
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
    fn a_message_is_one_line_of_at_most_200_characters() {
        assert_eq!(
            cut("tier 1/3\nrunning\u{1b}[2J"),
            "tier 1/3 running\\u{1b}[2J"
        );
        let long = cut(&"é".repeat(500));
        assert_eq!(long.chars().count(), MAX_PROGRESS);
        assert!(long.ends_with('…'));
    }
}
