//! What waits to be written, and which requests wait for it. Queueing never blocks: one task writes, in order.
//! After a cancel or a reply nothing more is queued for that request. Knows bytes and ids, not what they mean.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;
use serde::Serialize;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Above this much unwritten output no further input is read: a client that only talks cannot fill our memory.
const PAUSE_READING_AT: usize = 16 * 1024 * 1024;

/// Above this much unwritten output progress is dropped: the reader is behind, and a reply must not wait longer.
const DROP_PROGRESS_AT: usize = 32 * 1024;

/// Shared by the transport, which queues replies, and by running calls, which queue progress.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    state: Mutex<State>,
    /// Something was queued, or nothing more will be.
    queued: Notify,
    /// Bytes were written, or a request was settled.
    settled: Notify,
    /// The reader is gone.
    broken: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<u8>,
    /// Bytes taken by the writer but not yet written.
    writing: usize,
    /// Requests that were read and have neither been answered nor cancelled.
    open: HashSet<RequestId>,
    finished: bool,
}

impl State {
    fn unwritten(&self) -> usize {
        self.waiting.len() + self.writing
    }
}

impl Outbox {
    /// A request was read: from now on its reply is awaited.
    pub(super) fn open(&self, id: RequestId) {
        self.lock().open.insert(id);
    }

    /// The client cancelled: nothing is sent for this request any more.
    pub(super) fn cancel(&self, id: &RequestId) {
        self.lock().open.remove(id);
        self.settled.notify_waiters();
    }

    /// Queues the reply to an open request; the reply to any other is dropped.
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

    /// Queues progress of an open request if the reader keeps up; else it is lost, and nothing waits for it.
    pub(super) fn progress(&self, id: &RequestId, message: &impl Serialize) {
        let mut state = self.lock();
        if state.open.contains(id) && state.unwritten() < DROP_PROGRESS_AT {
            state.waiting.extend_from_slice(&line(message));
            drop(state);
            self.queued.notify_one();
        }
    }

    /// Resolves when there is room for more input to be read.
    pub(super) async fn room(&self) {
        self.until(|state| state.unwritten() < PAUSE_READING_AT)
            .await;
    }

    /// Resolves when every request that was read has been answered or cancelled.
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
            // Registered before looking, so that no change falls between.
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
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the bytes go, and how one learns early that they will not be read.
pub trait OutboxSink: AsyncWrite + Unpin + Send + 'static {
    /// Resolves when the reader is gone; may wait for ever where that cannot be known.
    fn closed(&mut self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }
}

impl OutboxSink for tokio::io::DuplexStream {}
impl OutboxSink for tokio::io::Stdout {}

/// Writes what is queued until the outbox is finished or the reader is gone.
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

/// One message on one line: JSON text has no raw newline.
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
    fn only_an_open_request_is_answered_and_only_once() {
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
    fn progress_is_dropped_when_the_reader_is_behind_and_replies_are_not() {
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
