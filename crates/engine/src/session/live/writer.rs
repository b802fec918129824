//! The thread that writes live files. A call queues its events and continues; the thread collects
//! them for a moment and writes them in one batch. There is only one thread, so each file gets its
//! events in order and is never recreated after its removal. A call that ends before the thread
//! wakes up leaves no file at all. If no thread can be started, calls are not shown.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::file::{self, LiveFile};
use super::{LiveEvent, event_of};
use crate::event::{Listener, ProgressLine};
use crate::services::{LiveHeader, LiveRecord};
use supervisor_workspace::state::StateDir;

/// The name of the thread.
pub const THREAD: &str = "live-writer";
/// How long the thread collects events before it writes; too short for an observer to notice. While
/// a call runs it polls at this interval, because waking it for each event would slow the call
/// down.
const BATCH_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum bytes queued, over all calls. Beyond this, events are dropped.
const MAX_QUEUED_BYTES: usize = 4 << 20;
/// How long the process waits at its end for a disk that does not respond.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

static WRITER: LiveWriter = LiveWriter {
    queue: Mutex::new(WriterQueue {
        messages: Vec::new(),
        bytes: 0,
        next_call: 0,
        state: ThreadState::Missing,
        flushes_requested: 0,
        flushes_done: 0,
    }),
    wake: Condvar::new(),
    written: Condvar::new(),
};

/// Starts showing a call. Shows nothing if that is not possible.
pub(crate) fn show(state: &StateDir, header: &LiveHeader) -> Box<dyn LiveRecord> {
    match file::choose_path(state).and_then(|path| WRITER.begin(state, path, header)) {
        Ok(call) => Box::new(call),
        Err(error) => {
            tracing::debug!("the call cannot be watched: {error}");
            Box::new(())
        }
    }
}

/// Waits until all queued events are written and the files of finished calls are removed.
pub fn settle() {
    let mut queue = WRITER.lock();
    if queue.state == ThreadState::Missing {
        return;
    }
    queue.flushes_requested += 1;
    let flushes_requested = queue.flushes_requested;
    WRITER.wake.notify_one();
    drop(
        WRITER
            .written
            .wait_timeout_while(queue, FLUSH_TIMEOUT, |queue| {
                queue.flushes_done < flushes_requested
            }),
    );
}

struct LiveWriter {
    queue: Mutex<WriterQueue>,
    /// Signals new messages or a flush request.
    wake: Condvar,
    /// Signals that a flush is done.
    written: Condvar,
}

struct WriterQueue {
    messages: Vec<LiveMessage>,
    bytes: usize,
    next_call: u64,
    state: ThreadState,
    /// Number of flush requests so far, and how many of them are done.
    flushes_requested: u64,
    flushes_done: u64,
}

impl WriterQueue {
    fn is_flush_requested(&self) -> bool {
        self.flushes_requested > self.flushes_done
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ThreadState {
    Missing,
    /// Must be woken when a message arrives.
    Asleep,
    AtWork,
}

struct LiveMessage {
    call: u64,
    update: LiveUpdate,
}

enum LiveUpdate {
    Began(Box<(StateDir, PathBuf, LiveHeader)>),
    Event(LiveEvent),
    Ended,
}

impl LiveWriter {
    fn lock(&self) -> MutexGuard<'_, WriterQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues the start of a call. Fails if no thread can be started.
    fn begin(
        &'static self,
        state: &StateDir,
        path: PathBuf,
        header: &LiveHeader,
    ) -> io::Result<QueuedCall> {
        let mut queue = self.lock();
        if queue.state == ThreadState::Missing {
            let thread = std::thread::Builder::new().name(String::from(THREAD));
            thread.spawn(|| self.run())?;
            queue.state = ThreadState::AtWork;
        }
        queue.next_call += 1;
        let call = queue.next_call;
        self.send(
            queue,
            call,
            LiveUpdate::Began(Box::new((state.clone(), path.clone(), header.clone()))),
        );
        Ok(QueuedCall { call, path })
    }

    fn send(&self, mut queue: MutexGuard<'_, WriterQueue>, call: u64, update: LiveUpdate) {
        queue.bytes += update.bytes();
        // Never drop the start or end of a call: its file would be missing, or never be removed.
        if queue.bytes > MAX_QUEUED_BYTES && matches!(update, LiveUpdate::Event(_)) {
            queue.bytes -= update.bytes();
            return;
        }
        queue.messages.push(LiveMessage { call, update });
        if queue.state == ThreadState::Asleep {
            queue.state = ThreadState::AtWork;
            drop(queue);
            self.wake.notify_one();
        }
    }

    fn run(&self) {
        let mut files = HashMap::new();
        let mut queue = self.lock();
        loop {
            while files.is_empty() && queue.messages.is_empty() && !queue.is_flush_requested() {
                queue.state = ThreadState::Asleep;
                queue = self
                    .wake
                    .wait(queue)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            queue.state = ThreadState::AtWork;
            let waited = self
                .wake
                .wait_timeout_while(queue, BATCH_INTERVAL, |queue| !queue.is_flush_requested());
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
            let (messages, flushes_requested) =
                (std::mem::take(&mut queue.messages), queue.flushes_requested);
            queue.bytes = 0;
            drop(queue);
            write(messages, &mut files);
            queue = self.lock();
            if queue.flushes_done < flushes_requested {
                queue.flushes_done = flushes_requested;
                self.written.notify_all();
            }
        }
    }
}

/// Writes a batch of messages, call by call.
fn write(messages: Vec<LiveMessage>, files: &mut HashMap<u64, LiveFile>) {
    let ended: HashSet<u64> = messages
        .iter()
        .filter(|message| matches!(message.update, LiveUpdate::Ended))
        .map(|message| message.call)
        .collect();
    let mut batches: Vec<(u64, Vec<LiveEvent>)> = Vec::new();
    for LiveMessage { call, update } in messages {
        match update {
            // The call is over, so nothing more is shown of it.
            _ if ended.contains(&call) => drop(files.remove(&call)),
            LiveUpdate::Began(begun) => {
                let (state, path, header) = *begun;
                match LiveFile::create(&state, path, &header) {
                    Ok(file) => drop(files.insert(call, file)),
                    Err(error) => tracing::debug!("the call cannot be watched: {error}"),
                }
            }
            LiveUpdate::Event(event) => match batches.iter_mut().find(|(of, _)| *of == call) {
                Some((_, events)) => events.push(event),
                None => batches.push((call, vec![event])),
            },
            LiveUpdate::Ended => {}
        }
    }
    for (call, events) in batches {
        if let Some(file) = files.get_mut(&call) {
            let _ = file.append(&events);
        }
    }
}

impl LiveUpdate {
    fn bytes(&self) -> usize {
        match self {
            Self::Event(event) => {
                size_of::<LiveMessage>() + event.model.len() + event.text.len() + event.diff.len()
            }
            Self::Began(_) | Self::Ended => 0,
        }
    }
}

/// A call whose events are written by the thread.
struct QueuedCall {
    call: u64,
    path: PathBuf,
}

impl Listener for QueuedCall {
    fn on_event(&self, line: &ProgressLine) {
        if let Some(event) = event_of(line) {
            WRITER.send(WRITER.lock(), self.call, LiveUpdate::Event(event));
        }
    }
}

impl LiveRecord for QueuedCall {
    fn is_stop_requested(&self) -> bool {
        file::is_stop_requested(&self.path)
    }
}

impl Drop for QueuedCall {
    fn drop(&mut self) {
        WRITER.send(WRITER.lock(), self.call, LiveUpdate::Ended);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::event::Event;
    use crate::session::live::live_calls;

    fn header() -> LiveHeader {
        serde_json::from_str(r#"{"session_id": "s", "skill": "debug", "began": ""}"#)
            .expect("a header")
    }

    fn step(n: usize) -> ProgressLine {
        ProgressLine {
            event: Event::Doing {
                what: format!("{n}"),
            },
            after: Duration::ZERO,
            line: String::new(),
        }
    }

    #[test]
    fn events_of_concurrent_calls_keep_their_order() {
        let dir = tempfile::tempdir().expect("temp dir");
        let state = StateDir::at(dir.path().join("s")).expect("absolute");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let call = show(&state, &header());
                    for n in 0..200 {
                        call.on_event(&step(n));
                        if n % 50 == 0 {
                            settle();
                        }
                    }
                    settle();
                    let expected: Vec<String> = (0..200).map(|n| n.to_string()).collect();
                    let calls = live_calls(&state);
                    let is_whole = |call: &super::super::LiveCall| {
                        call.events.iter().map(|e| &e.text).eq(&expected)
                    };
                    assert!(calls.iter().any(is_whole), "{} calls", calls.len());
                });
            }
        });
        settle();
        assert_eq!(live_calls(&state), []);
    }

    #[test]
    fn events_appear_without_flush() {
        let dir = tempfile::tempdir().expect("temp dir");
        let state = StateDir::at(dir.path().join("s")).expect("absolute");
        let call = show(&state, &header());
        call.on_event(&step(1));
        let began = Instant::now();
        while live_calls(&state)
            .first()
            .is_none_or(|call| call.events.len() != 1)
        {
            assert!(began.elapsed() < Duration::from_secs(30), "never seen");
            std::thread::yield_now();
        }
    }

    #[test]
    fn ended_calls_leave_no_file() {
        let dir = tempfile::tempdir().expect("temp dir");
        let state = StateDir::at(dir.path().join("s")).expect("absolute");
        let path = file::choose_path(&state).expect("chosen");
        let mut files = HashMap::new();
        let began_message = || LiveMessage {
            call: 1,
            update: LiveUpdate::Began(Box::new((state.clone(), path.clone(), header()))),
        };
        let event_message = |n| LiveMessage {
            call: 1,
            update: LiveUpdate::Event(event_of(&step(n)).expect("shown")),
        };
        let ended_message = || LiveMessage {
            call: 1,
            update: LiveUpdate::Ended,
        };
        write(
            vec![began_message(), event_message(1), ended_message()],
            &mut files,
        );
        assert!(!state.path().exists());
        write(vec![began_message(), event_message(1)], &mut files);
        assert!(path.exists());
        write(vec![event_message(2), ended_message()], &mut files);
        write(vec![event_message(3)], &mut files);
        assert!(!path.exists() && files.is_empty());
    }
}
