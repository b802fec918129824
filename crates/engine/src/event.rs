//! Progress events of a call. The engine reports each event once; progress notifications, the
//! console and tracing all use the same report. Reporting never waits: a slow listener misses
//! events, the call is not delayed.

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::Cause;
use supervisor_text::redact::Redactor;
use supervisor_text::words;

/// One step of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The project is locked and its snapshot taken.
    Armed {
        files: usize,
        /// Paths that are not in the snapshot.
        uncovered: Vec<String>,
    },
    /// A skill reports what it is doing, such as the baseline test run.
    Doing { what: String },
    /// A skill reports what it has seen, such as the result of the baseline test run.
    Noted { what: String },
    /// The last reported activity is still running.
    Still(Box<Event>),
    /// A model is being asked.
    Asking { at: ChainPosition },
    /// The model is at work: it uses a tool or retries.
    Working { at: ChainPosition, what: String },
    /// The server runs its own checks.
    Checking { at: ChainPosition, what: String },
    /// The verifier is asked for its opinion.
    Judging { at: ChainPosition, verifier: String },
    /// An attempt ended without acceptance.
    Ended {
        at: ChainPosition,
        cause: Cause,
        because: String,
        left: AttemptSummary,
    },
    Accepted {
        at: ChainPosition,
        because: String,
        left: AttemptSummary,
    },
}

/// Cost and diff of a finished attempt, for a person who follows the call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AttemptSummary {
    pub cost_usd: Option<f64>,
    /// Already redacted.
    pub diff: String,
}

impl Event {
    /// Whether the activity continues until the next event.
    fn is_ongoing(&self) -> bool {
        match self {
            Self::Doing { .. }
            | Self::Asking { .. }
            | Self::Working { .. }
            | Self::Checking { .. }
            | Self::Judging { .. } => true,
            Self::Armed { .. }
            | Self::Noted { .. }
            | Self::Still(_)
            | Self::Ended { .. }
            | Self::Accepted { .. } => false,
        }
    }

    /// Text that may come from outside and needs redaction.
    fn text_mut(&mut self) -> Option<&mut String> {
        match self {
            Self::Doing { what }
            | Self::Noted { what }
            | Self::Working { what, .. }
            | Self::Checking { what, .. } => Some(what),
            Self::Still(event) => event.text_mut(),
            Self::Ended { because, .. } | Self::Accepted { because, .. } => Some(because),
            Self::Armed { .. } | Self::Asking { .. } | Self::Judging { .. } => None,
        }
    }
}

/// Position in the chain: tier 2 of 3, and its model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainPosition {
    pub tier: usize,
    pub of: usize,
    pub model: String,
}

/// Identifies a call in the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallKey {
    pub session_id: String,
    /// The `call` field of its entry.
    pub call: String,
}

/// Receives the events of a call.
pub trait Listener: Send + Sync {
    /// Must not block.
    fn on_event(&self, line: &ProgressLine);

    /// From now to its end the call leaves the files of the project alone, because it edits nothing
    /// or works in an overlay. The caller need not wait for such a call.
    fn on_detached(&self, _: &CallKey) {}

    /// Since when the caller does not wait for the call any more.
    fn background_since(&self) -> Option<Instant> {
        None
    }
}

/// Ignores all events.
impl Listener for () {
    fn on_event(&self, _: &ProgressLine) {}
}

/// An event with its time and its sentence for people.
#[derive(Debug, Clone)]
pub struct ProgressLine {
    pub event: Event,
    pub after: Duration,
    pub line: String,
}

/// Reports the events of one call to its listeners.
pub struct EventReporter<'a> {
    skill: String,
    began: Instant,
    listener: &'a dyn Listener,
    /// Follows the call for other processes.
    watcher: Option<&'a dyn Listener>,
    redactor: Option<Arc<Redactor>>,
    /// When the last event was reported, and the activity that is still running.
    last: Mutex<(Instant, Option<Event>)>,
}

/// Clients that get no progress for longer assume that the call hangs.
const HEARTBEAT: Duration = Duration::from_secs(3);

/// Maximum length of a progress line; clients show one row.
const MAX_LINE_LEN: usize = 200;

impl<'a> EventReporter<'a> {
    pub fn new(skill: impl Into<String>, listener: &'a dyn Listener) -> Self {
        let began = Instant::now();
        Self {
            skill: skill.into(),
            began,
            listener,
            watcher: None,
            redactor: None,
            last: Mutex::new((began, None)),
        }
    }

    /// Redacts text from models, tools and tests.
    #[must_use]
    pub fn with_redactor(self, redactor: Arc<Redactor>) -> Self {
        Self {
            redactor: Some(redactor),
            ..self
        }
    }

    /// Adds a second listener, which gets everything except heartbeats.
    #[must_use]
    pub fn with_watcher(self, watcher: &'a dyn Listener) -> Self {
        Self {
            watcher: Some(watcher),
            ..self
        }
    }

    pub fn report(&self, mut event: Event) {
        if let (Some(redactor), Some(text)) = (&self.redactor, event.text_mut())
            && let Cow::Owned(clean) = redactor.redact(text)
        {
            *text = clean;
        }
        *self.last() = (Instant::now(), event.is_ongoing().then(|| event.clone()));
        let line = self.line(event);
        tracing::info!(target: "supervisor::story", "{}", line.line);
        self.listener.on_event(&line);
        if let Some(watcher) = self.watcher {
            watcher.on_event(&line);
        }
    }

    /// Tells the listener that the call is detached.
    pub fn notify_detached(&self, key: &CallKey) {
        self.listener.on_detached(key);
    }

    /// Repeats the current activity, with the elapsed time, whenever nothing was reported for three
    /// seconds. Never returns; drop it with the work it accompanies.
    pub async fn send_heartbeats(&self) -> Infallible {
        loop {
            let (reported, _) = *self.last();
            tokio::time::sleep((reported + HEARTBEAT).saturating_duration_since(Instant::now()))
                .await;
            let mut last = self.last();
            if last.0.elapsed() < HEARTBEAT {
                continue;
            }
            last.0 = Instant::now();
            let event = last.1.clone();
            drop(last);
            if let Some(event) = event {
                self.listener
                    .on_event(&self.line(Event::Still(Box::new(event))));
            }
        }
    }

    fn line(&self, event: Event) -> ProgressLine {
        let after = self.began.elapsed();
        ProgressLine {
            line: sentence(&self.skill, &event, after),
            event,
            after,
        }
    }

    fn last(&self) -> MutexGuard<'_, (Instant, Option<Event>)> {
        self.last.lock()
    }
}

/// `tdd_green · tier 1/3 qwen3-coder rejected: answer_is_42 still fails · 12 s`
fn sentence(skill: &str, event: &Event, after: Duration) -> String {
    let tier = |at: &ChainPosition| format!("tier {}/{} {}", at.tier, at.of, at.model);
    let middle = match event {
        Event::Armed { files, uncovered } => {
            let covered = format!("snapshot of {}", words::count(*files, "file"));
            match uncovered.as_slice() {
                [] => covered,
                paths => format!("{covered} (not covered: {})", words::list(paths, 3)),
            }
        }
        Event::Doing { what } | Event::Noted { what } => what.clone(),
        Event::Still(event) => return sentence(skill, event, after),
        Event::Asking { at } => format!("{} · asking", tier(at)),
        Event::Working { at, what } | Event::Checking { at, what } => {
            format!("{} · {what}", tier(at))
        }
        Event::Judging { at, verifier } => format!("{} · {verifier} judges", tier(at)),
        Event::Ended {
            at, cause, because, ..
        } => format!("{} {}: {because}", tier(at), cause.word()),
        Event::Accepted { at, because, .. } => format!("{} accepted: {because}", tier(at)),
    };
    let tail = format!(" · {} s", after.as_secs());
    let head = format!("{skill} · {middle}").replace(['\n', '\r'], " ");
    let head = words::plain(&head).into_owned();
    format!("{}{tail}", words::cut_end(&head, MAX_LINE_LEN - tail.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> ChainPosition {
        ChainPosition {
            tier: 1,
            of: 3,
            model: "qwen3-coder".into(),
        }
    }

    #[test]
    fn rejection_is_one_line() {
        let event = Event::Ended {
            at: place(),
            cause: Cause::Rejected,
            because: "answer_is_42 still fails".into(),
            left: AttemptSummary::default(),
        };
        assert_eq!(
            sentence("tdd_green", &event, Duration::from_secs(12)),
            "tdd_green · tier 1/3 qwen3-coder rejected: answer_is_42 still fails · 12 s"
        );
    }

    #[tokio::test]
    async fn only_ongoing_activity_is_repeated() {
        #[derive(Default)]
        struct Lines(Mutex<Vec<String>>);
        impl Listener for Lines {
            fn on_event(&self, line: &ProgressLine) {
                self.0.lock().push(line.line.clone());
            }
        }
        let lines = Lines::default();
        let line_count = || lines.0.lock().len();
        let reporter = EventReporter::new("tdd_green", &lines);
        reporter.report(Event::Asking { at: place() });
        let _ = tokio::time::timeout(Duration::from_millis(10), reporter.send_heartbeats()).await;
        assert_eq!(line_count(), 1, "not before its time");
        reporter.last().0 -= HEARTBEAT;
        let _ = tokio::time::timeout(Duration::from_millis(10), reporter.send_heartbeats()).await;
        assert_eq!(line_count(), 2);
        assert!(lines.0.lock()[1].starts_with("tdd_green · tier 1/3 qwen3-coder · asking · "));
        reporter.report(Event::Ended {
            at: place(),
            cause: Cause::Rejected,
            because: "no".into(),
            left: AttemptSummary::default(),
        });
        reporter.last().0 -= HEARTBEAT;
        let _ = tokio::time::timeout(Duration::from_millis(10), reporter.send_heartbeats()).await;
        assert_eq!(line_count(), 3, "what is over is told once");
    }

    #[test]
    fn lines_are_short_and_without_control_characters() {
        let event = Event::Working {
            at: place(),
            what: format!("a\nb\u{1b}[31m{}", "é".repeat(500)),
        };
        let line = sentence("review", &event, Duration::from_secs(3));
        assert!(
            line.len() <= MAX_LINE_LEN && !line.contains('\n') && !line.contains('\u{1b}'),
            "{line}"
        );
        assert!(line.ends_with(" · 3 s"));
    }
}
