//! Output queue and open requests. Queueing never blocks; one task writes in order. After a cancel
//! or a reply nothing more is queued for that request.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use rmcp::model::RequestId;
use serde::Serialize;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// With more unwritten output than this, no input is read, so that a client that does not read
/// cannot fill our memory.
const PAUSE_READING_AT: usize = 16 * 1024 * 1024;

/// With more unwritten output than this, progress is dropped, so that it does not delay replies to
/// a slow reader.
const DROP_PROGRESS_AT: usize = 32 * 1024;

/// Shared by the transport, which queues replies, and running calls, which queue progress.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    state: Mutex<State>,
    /// Signals that something was queued, or that the outbox is finished.
    queued: Notify,
    /// Signals that bytes were written, or that a request was settled.
    settled: Notify,
    /// Cancelled when the reader is gone.
    broken: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<u8>,
    /// Bytes taken by the writer but not yet written.
    writing: usize,
    /// Requests that are neither answered nor cancelled.
    open: HashSet<RequestId>,
    finished: bool,
}

impl State {
    fn unwritten(&self) -> usize {
        self.waiting.len() + self.writing
    }
}

impl Outbox {
    /// Registers a request whose reply is awaited.
    pub(super) fn open(&self, id: RequestId) {
        self.lock().open.insert(id);
    }

    /// Drops the request: nothing more is sent for it.
    pub(super) fn cancel(&self, id: &RequestId) {
        self.lock().open.remove(id);
        self.settled.notify_waiters();
    }

    /// Queues the reply to an open request; replies to other requests are dropped.
    pub(super) fn reply(&self, id: &RequestId, message: &impl Serialize) {
        let line = line(message);
        let mut state = self.lock();
        if state.open.remove(id) {
            state.waiting.extend_from_slice(&line);
        }
        drop(state);
        self.queued.notify_one();
        self.settled.notify_waiters();
    }

    /// Queues a message that belongs to no request.
    pub(super) fn send(&self, message: &impl Serialize) {
        let line = line(message);
        self.lock().waiting.extend_from_slice(&line);
        self.queued.notify_one();
    }

    /// Queues progress of an open request, or drops it if the reader is slow.
    pub(super) fn progress(&self, id: &RequestId, message: &impl Serialize) {
        let mut state = self.lock();
        if state.open.contains(id) && state.unwritten() < DROP_PROGRESS_AT {
            state.waiting.extend_from_slice(&line(message));
            drop(state);
            self.queued.notify_one();
        }
    }

    /// Resolves when more input may be read.
    pub(super) async fn wait_for_capacity(&self) {
        self.until(|state| state.unwritten() < PAUSE_READING_AT)
            .await;
    }

    /// Resolves when every request has been answered or cancelled.
    pub(super) async fn all_answered(&self) {
        self.until(|state| state.open.is_empty()).await;
    }

    /// Resolves when everything queued is written, or cannot be.
    pub(super) async fn flushed(&self) {
        tokio::select! {
            () = self.until(|state| state.unwritten() == 0) => {}
            () = self.broken.cancelled() => {}
        }
    }

    /// Resolves when the reader of our output is gone.
    pub(super) async fn broken(&self) {
        self.broken.cancelled().await;
    }

    /// Lets the writer end once everything is written.
    pub(super) fn finish(&self) {
        self.lock().finished = true;
        self.queued.notify_one();
    }

    async fn until(&self, done: impl Fn(&State) -> bool) {
        loop {
            let changed = self.settled.notified();
            tokio::pin!(changed);
            // Register before checking, so that no change is missed in between.
            changed.as_mut().enable();
            if done(&self.lock()) {
                return;
            }
            changed.await;
        }
    }

    /// The next bytes to write; `None` when finished.
    async fn next(&self) -> Option<Vec<u8>> {
        loop {
            {
                let mut state = self.lock();
                if !state.waiting.is_empty() {
                    let chunk = std::mem::take(&mut state.waiting);
                    state.writing = chunk.len();
                    return Some(chunk);
                }
                if state.finished {
                    return None;
                }
            }
            self.queued.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs under the lock.
        self.state.lock()
    }
}

/// The output stream, and how to detect early that the reader is gone.
pub trait OutboxSink: AsyncWrite + Unpin + Send + 'static {
    /// Resolves when the reader is gone. Waits forever if that cannot be detected.
    fn closed(&mut self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }
}

impl OutboxSink for tokio::io::DuplexStream {}
impl OutboxSink for tokio::io::Stdout {}

/// Writes queued messages until the outbox is finished or the reader is gone.
pub(super) async fn write_all(outbox: Arc<Outbox>, mut output: impl OutboxSink) {
    loop {
        let chunk = tokio::select! {
            chunk = outbox.next() => chunk,
            () = output.closed() => break,
        };
        let Some(chunk) = chunk else { return };
        let written: io::Result<()> = async {
            output.write_all(&chunk).await?;
            output.flush().await
        }
        .await;
        if let Err(error) = written {
            tracing::debug!(%error, "the client no longer reads our output");
            break;
        }
        outbox.lock().writing = 0;
        outbox.settled.notify_waiters();
    }
    outbox.broken.cancel();
}

/// One message per line: JSON text contains no raw newline.
fn line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("messages have string keys and serialise");
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: i64) -> RequestId {
        RequestId::Number(n)
    }

    #[test]
    fn only_open_requests_are_answered_once() {
        let outbox = Outbox::default();
        outbox.open(id(1));
        outbox.open(id(2));
        outbox.cancel(&id(2));
        outbox.progress(&id(1), &"p1");
        outbox.reply(&id(1), &"r1");
        outbox.reply(&id(1), &"again");
        outbox.progress(&id(1), &"late");
        outbox.progress(&id(2), &"cancelled");
        outbox.reply(&id(2), &"cancelled");
        assert_eq!(
            String::from_utf8_lossy(&outbox.lock().waiting),
            "\"p1\"\n\"r1\"\n"
        );
    }

    #[test]
    fn slow_reader_loses_progress_but_no_replies() {
        let outbox = Outbox::default();
        outbox.open(id(1));
        for _ in 0..10_000 {
            outbox.progress(&id(1), &"0123456789");
        }
        assert!(outbox.lock().waiting.len() < DROP_PROGRESS_AT + 100);
        outbox.reply(&id(1), &"the reply");
        assert!(outbox.lock().waiting.ends_with(b"\"the reply\"\n"));
    }
}
