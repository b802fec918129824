//! The thread that writes what calls tell. A call hands over what happened and goes on; the thread gathers for a moment
//! and writes what has come together at once. It is one thread, so each file sees its call's story in order and is never
//! made again after it was removed; a call that is over before the thread looks leaves no trace at all.
//! Where no thread can be had, calls write for themselves.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::file::{self, LiveFile};
use super::{LiveEvent, event_of};
use crate::event::{Listener, StoryLine};
use crate::means::{LiveHeader, LiveRecord};
use supervisor_workspace::state::StateDir;

/// The name of the thread.
pub const THREAD: &str = "live-writer";
/// How long the thread gathers before it writes; less than an observer can see. While a call runs it looks that often by
/// itself: to be woken for each step would cost the call more than the step.
const GATHER: Duration = Duration::from_millis(50);
/// Bytes that may wait to be written, of all calls; above it, steps are left out.
const MOST_WAITING: usize = 4 << 20;
/// How long the end of the process waits for a disk that does not answer.
const PATIENCE: Duration = Duration::from_secs(1);

static WRITER: LiveWriter = LiveWriter {
    queue: Mutex::new(WriterQueue {
        messages: Vec::new(),
        bytes: 0,
        next_call: 0,
        state: ThreadState::Missing,
        wanted: 0,
        done: 0,
    }),
    wake: Condvar::new(),
    written: Condvar::new(),
};

/// Begins to show a call; silently shows nothing where that is not possible.
pub fn show(state: &StateDir, header: &LiveHeader) -> Box<dyn LiveRecord> {
    let shown = file::choose_path(state).and_then(|path| -> io::Result<Box<dyn LiveRecord>> {
        if let Some(call) = WRITER.begin(state, &path, header) {
            return Ok(Box::new(QueuedCall { call, path }));
        }
        let file = LiveFile::create(state, path.clone(), header)?;
        Ok(Box::new(DirectCall {
            path,
            file: Mutex::new(file),
        }))
    });
    shown.unwrap_or_else(|error| {
        tracing::debug!("the call cannot be watched: {error}");
        Box::new(())
    })
}

/// Returns when all that was told so far can be seen, and the files of calls that are over are gone.
pub fn settle() {
    let mut queue = WRITER.lock();
    if queue.state == ThreadState::Missing {
        return;
    }
    queue.wanted += 1;
    let wanted = queue.wanted;
    WRITER.wake.notify_one();
    drop(
        WRITER
            .written
            .wait_timeout_while(queue, PATIENCE, |queue| queue.done < wanted),
    );
}

struct LiveWriter {
    queue: Mutex<WriterQueue>,
    /// There is something to write, or it is wanted at once.
    wake: Condvar,
    /// What was wanted at once is written.
    written: Condvar,
}

struct WriterQueue {
    messages: Vec<LiveMessage>,
    bytes: usize,
    next_call: u64,
    state: ThreadState,
    /// How often all that was told so far was wanted at once, and how many of these wishes are met.
    wanted: u64,
    done: u64,
}

impl WriterQueue {
    fn is_hurried(&self) -> bool {
        self.wanted > self.done
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ThreadState {
    Missing,
    /// To be woken when something comes.
    Asleep,
    AtWork,
}

struct LiveMessage {
    call: u64,
    news: LiveNews,
}

enum LiveNews {
    Begins(Box<(StateDir, PathBuf, LiveHeader)>),
    Happened(LiveEvent),
    Ends,
}

impl LiveWriter {
    fn lock(&self) -> MutexGuard<'_, WriterQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the call; `None` where no thread can be had.
    fn begin(
        &'static self,
        state: &StateDir,
        path: &std::path::Path,
        header: &LiveHeader,
    ) -> Option<u64> {
        let mut queue = self.lock();
        if queue.state == ThreadState::Missing {
            let thread = std::thread::Builder::new().name(String::from(THREAD));
            if let Err(error) = thread.spawn(|| self.work()) {
                tracing::debug!("no thread for what can be watched: {error}");
                return None;
            }
            queue.state = ThreadState::AtWork;
        }
        queue.next_call += 1;
        let call = queue.next_call;
        self.send(
            queue,
            call,
            LiveNews::Begins(Box::new((state.clone(), path.to_owned(), header.clone()))),
        );
        Some(call)
    }

    fn send(&self, mut queue: MutexGuard<'_, WriterQueue>, call: u64, news: LiveNews) {
        queue.bytes += news.bytes();
        // That a call begins and ends is never left out: the file would be missing, or stay.
        if queue.bytes > MOST_WAITING && matches!(news, LiveNews::Happened(_)) {
            queue.bytes -= news.bytes();
            return;
        }
        queue.messages.push(LiveMessage { call, news });
        if queue.state == ThreadState::Asleep {
            queue.state = ThreadState::AtWork;
            drop(queue);
            self.wake.notify_one();
        }
    }

    fn work(&self) {
        let mut files = HashMap::new();
        let mut queue = self.lock();
        loop {
            while files.is_empty() && queue.messages.is_empty() && !queue.is_hurried() {
                queue.state = ThreadState::Asleep;
                queue = self
                    .wake
                    .wait(queue)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            queue.state = ThreadState::AtWork;
            let gathered = self
                .wake
                .wait_timeout_while(queue, GATHER, |queue| !queue.is_hurried());
            queue = gathered.unwrap_or_else(PoisonError::into_inner).0;
            let (messages, wanted) = (std::mem::take(&mut queue.messages), queue.wanted);
            queue.bytes = 0;
            drop(queue);
            write(messages, &mut files);
            queue = self.lock();
            if queue.done < wanted {
                queue.done = wanted;
                self.written.notify_all();
            }
        }
    }
}

/// What came together, call by call.
fn write(messages: Vec<LiveMessage>, files: &mut HashMap<u64, LiveFile>) {
    let over: HashSet<u64> = messages
        .iter()
        .filter(|message| matches!(message.news, LiveNews::Ends))
        .map(|message| message.call)
        .collect();
    let mut stories: Vec<(u64, Vec<LiveEvent>)> = Vec::new();
    for LiveMessage { call, news } in messages {
        match news {
            // Nothing more can be seen of it.
            _ if over.contains(&call) => drop(files.remove(&call)),
            LiveNews::Begins(begun) => {
                let (state, path, header) = *begun;
                match LiveFile::create(&state, path, &header) {
                    Ok(file) => drop(files.insert(call, file)),
                    Err(error) => tracing::debug!("the call cannot be watched: {error}"),
                }
            }
            LiveNews::Happened(event) => match stories.iter_mut().find(|(of, _)| *of == call) {
                Some((_, events)) => events.push(event),
                None => stories.push((call, vec![event])),
            },
            LiveNews::Ends => {}
        }
    }
    for (call, events) in stories {
        if let Some(file) = files.get_mut(&call) {
            let _ = file.append(&events);
        }
    }
}

impl LiveNews {
    fn bytes(&self) -> usize {
        match self {
            Self::Happened(event) => {
                size_of::<LiveMessage>() + event.model.len() + event.text.len() + event.diff.len()
            }
            Self::Begins(_) | Self::Ends => 0,
        }
    }
}

/// A call whose story the thread writes.
struct QueuedCall {
    call: u64,
    path: PathBuf,
}

impl Listener for QueuedCall {
    fn hear(&self, line: &StoryLine) {
        if let Some(event) = event_of(line) {
            WRITER.send(WRITER.lock(), self.call, LiveNews::Happened(event));
        }
    }
}

impl LiveRecord for QueuedCall {
    fn is_stop_wanted(&self) -> bool {
        file::is_stop_wanted(&self.path)
    }
}

impl Drop for QueuedCall {
    fn drop(&mut self) {
        WRITER.send(WRITER.lock(), self.call, LiveNews::Ends);
    }
}

/// A call that writes for itself.
struct DirectCall {
    path: PathBuf,
    file: Mutex<LiveFile>,
}

impl Listener for DirectCall {
    fn hear(&self, line: &StoryLine) {
        if let Some(event) = event_of(line) {
            let _ = self
                .file
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .append(&[event]);
        }
    }
}

impl LiveRecord for DirectCall {
    fn is_stop_wanted(&self) -> bool {
        file::is_stop_wanted(&self.path)
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

    fn step(n: usize) -> StoryLine {
        StoryLine {
            event: Event::Doing {
                what: format!("{n}"),
            },
            after: Duration::ZERO,
            line: String::new(),
        }
    }

    #[test]
    fn the_steps_of_many_calls_at_once_are_all_seen_each_in_its_order() {
        let dir = tempfile::tempdir().expect("temp dir");
        let state = StateDir::at(dir.path().join("s")).expect("absolute");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let call = show(&state, &header());
                    for n in 0..200 {
                        call.hear(&step(n));
                        if n % 50 == 0 {
                            settle();
                        }
                    }
                    settle();
                    let wanted: Vec<String> = (0..200).map(|n| n.to_string()).collect();
                    let calls = live_calls(&state);
                    let is_whole = |call: &super::super::LiveCall| {
                        call.events.iter().map(|e| &e.text).eq(&wanted)
                    };
                    assert!(calls.iter().any(is_whole), "{} calls", calls.len());
                });
            }
        });
        settle();
        assert_eq!(live_calls(&state), []);
    }

    #[test]
    fn without_being_asked_for_a_step_is_seen_soon() {
        let dir = tempfile::tempdir().expect("temp dir");
        let state = StateDir::at(dir.path().join("s")).expect("absolute");
        let call = show(&state, &header());
        call.hear(&step(1));
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
    fn a_call_that_is_over_at_once_makes_no_file_and_one_that_was_seen_is_never_seen_again() {
        let dir = tempfile::tempdir().expect("temp dir");
        let state = StateDir::at(dir.path().join("s")).expect("absolute");
        let path = file::choose_path(&state).expect("chosen");
        let mut files = HashMap::new();
        let begins = || LiveMessage {
            call: 1,
            news: LiveNews::Begins(Box::new((state.clone(), path.clone(), header()))),
        };
        let happened = |n| LiveMessage {
            call: 1,
            news: LiveNews::Happened(event_of(&step(n)).expect("shown")),
        };
        let ends = || LiveMessage {
            call: 1,
            news: LiveNews::Ends,
        };
        write(vec![begins(), happened(1), ends()], &mut files);
        assert!(!state.path().exists());
        write(vec![begins(), happened(1)], &mut files);
        assert!(path.exists());
        write(vec![happened(2), ends()], &mut files);
        write(vec![happened(3)], &mut files);
        assert!(!path.exists() && files.is_empty());
    }

    #[test]
    fn a_call_that_writes_for_itself_is_seen_in_the_same_way() {
        let dir = tempfile::tempdir().expect("temp dir");
        let state = StateDir::at(dir.path().join("s")).expect("absolute");
        let path = file::choose_path(&state).expect("chosen");
        let file = LiveFile::create(&state, path.clone(), &header()).expect("made");
        let call = DirectCall {
            path,
            file: Mutex::new(file),
        };
        call.hear(&step(1));
        assert_eq!(live_calls(&state)[0].events.len(), 1);
        drop(call);
        assert_eq!(live_calls(&state), []);
    }
}
