//! The engine tells its story once, as events; progress, console and tracing each retell it.
//! Telling never waits: a listener that cannot keep up misses events, the call does not.

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Cause;
use supervisor_text::redact::Redactor;
use supervisor_text::words;

/// One step of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The project is locked and its snapshot armed.
    Armed { files: usize, unprotected: usize },
    /// A skill says what it is doing, such as the baseline test run.
    Doing { what: String },
    /// A skill says what it has seen, such as how the baseline test run ended.
    Noted { what: String },
    /// What was told last still goes on.
    Still(Box<Event>),
    /// A model is being asked.
    Asking { at: ChainPlace },
    /// The model is at work: a tool it uses, a retry it makes.
    Working { at: ChainPlace, what: String },
    /// The server runs its own gates.
    Checking { at: ChainPlace, what: String },
    /// The verifier is asked for its opinion.
    Judging { at: ChainPlace, verifier: String },
    /// An attempt ended without acceptance.
    Ended {
        at: ChainPlace,
        cause: Cause,
        because: String,
        left: AttemptTraces,
    },
    Accepted {
        at: ChainPlace,
        because: String,
        left: AttemptTraces,
    },
}

/// What an attempt that is over leaves, for a person who follows the call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AttemptTraces {
    pub cost_usd: Option<f64>,
    /// Without secrets already.
    pub diff: String,
}

impl Event {
    /// Does it go on until something else is told?
    fn lasts(&self) -> bool {
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

    /// Words that came from outside.
    fn text(&mut self) -> Option<&mut String> {
        match self {
            Self::Doing { what }
            | Self::Noted { what }
            | Self::Working { what, .. }
            | Self::Checking { what, .. } => Some(what),
            Self::Still(event) => event.text(),
            Self::Ended { because, .. } | Self::Accepted { because, .. } => Some(because),
            Self::Armed { .. } | Self::Asking { .. } | Self::Judging { .. } => None,
        }
    }
}

/// Where in the chain: tier 2 of 3, and its model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainPlace {
    pub tier: usize,
    pub of: usize,
    pub model: String,
}

/// Where the log has a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallKey {
    pub session_id: String,
    /// The `call` of its entry.
    pub call: String,
}

/// A listener to the events of a call.
pub trait Listener: Send + Sync {
    /// Must not block.
    fn hear(&self, line: &StoryLine);

    /// The call is set apart: from here to its end it leaves the files of the project alone, because it edits nothing or
    /// works in a private view. A caller need not wait for such a call.
    fn on_set_apart(&self, _: &CallKey) {}
}

/// No listener.
impl Listener for () {
    fn hear(&self, _: &StoryLine) {}
}

/// An event with its moment and the sentence for people.
#[derive(Debug, Clone)]
pub struct StoryLine {
    pub event: Event,
    pub after: Duration,
    pub line: String,
}

/// Tells one call's events to one listener.
pub struct Teller<'a> {
    skill: String,
    began: Instant,
    listener: &'a dyn Listener,
    /// Who follows the call from outside this process.
    watcher: Option<&'a dyn Listener>,
    redactor: Option<Arc<Redactor>>,
    /// When something was told last, and what goes on since.
    last: Mutex<(Instant, Option<Event>)>,
}

/// A client that hears nothing for longer believes that nothing happens.
const HEARTBEAT: Duration = Duration::from_secs(3);

/// Longest progress line; clients show one row.
const LINE: usize = 200;

impl<'a> Teller<'a> {
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

    /// Takes secrets out of what models, tools and tests said.
    #[must_use]
    pub fn redacting(self, redactor: Arc<Redactor>) -> Self {
        Self {
            redactor: Some(redactor),
            ..self
        }
    }

    /// Tells the same to another listener, heartbeats aside.
    #[must_use]
    pub fn watched(self, watcher: &'a dyn Listener) -> Self {
        Self {
            watcher: Some(watcher),
            ..self
        }
    }

    pub fn tell(&self, mut event: Event) {
        if let (Some(redactor), Some(text)) = (&self.redactor, event.text())
            && let Cow::Owned(clean) = redactor.redact(text)
        {
            *text = clean;
        }
        *self.last() = (Instant::now(), event.lasts().then(|| event.clone()));
        let line = self.line(event);
        tracing::info!(target: "supervisor::story", "{}", line.line);
        self.listener.hear(&line);
        if let Some(watcher) = self.watcher {
            watcher.hear(&line);
        }
    }

    /// Passes on that the call is set apart.
    pub fn set_apart(&self, key: &CallKey) {
        self.listener.on_set_apart(key);
    }

    /// Tells again what goes on, with the time it has taken, whenever nothing was told for three seconds. Never ends: it
    /// is to be dropped with the work it accompanies.
    pub async fn keep_telling(&self) -> Infallible {
        loop {
            let (told, _) = *self.last();
            tokio::time::sleep((told + HEARTBEAT).saturating_duration_since(Instant::now())).await;
            let mut last = self.last();
            if last.0.elapsed() < HEARTBEAT {
                continue;
            }
            last.0 = Instant::now();
            let event = last.1.clone();
            drop(last);
            if let Some(event) = event {
                self.listener
                    .hear(&self.line(Event::Still(Box::new(event))));
            }
        }
    }

    fn line(&self, event: Event) -> StoryLine {
        let after = self.began.elapsed();
        StoryLine {
            line: sentence(&self.skill, &event, after),
            event,
            after,
        }
    }

    fn last(&self) -> MutexGuard<'_, (Instant, Option<Event>)> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `tdd_green · tier 1/3 qwen3-coder rejected: answer_is_42 still fails · 12 s`
fn sentence(skill: &str, event: &Event, after: Duration) -> String {
    let tier = |at: &ChainPlace| format!("tier {}/{} {}", at.tier, at.of, at.model);
    let middle = match event {
        Event::Armed {
            files,
            unprotected: 0,
        } => format!("{} protected", words::count(*files, "file")),
        Event::Armed { files, unprotected } => {
            format!(
                "{} protected, {unprotected} not",
                words::count(*files, "file")
            )
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
    format!("{}{tail}", words::cut_end(&head, LINE - tail.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> ChainPlace {
        ChainPlace {
            tier: 1,
            of: 3,
            model: "qwen3-coder".into(),
        }
    }

    #[test]
    fn a_rejection_reads_as_one_line() {
        let event = Event::Ended {
            at: place(),
            cause: Cause::Rejected,
            because: "answer_is_42 still fails".into(),
            left: AttemptTraces::default(),
        };
        assert_eq!(
            sentence("tdd_green", &event, Duration::from_secs(12)),
            "tdd_green · tier 1/3 qwen3-coder rejected: answer_is_42 still fails · 12 s"
        );
    }

    #[tokio::test]
    async fn what_takes_long_is_told_again_every_three_seconds_and_what_is_over_is_not() {
        #[derive(Default)]
        struct Lines(Mutex<Vec<String>>);
        impl Listener for Lines {
            fn hear(&self, line: &StoryLine) {
                self.0
                    .lock()
                    .expect("no thread panicked")
                    .push(line.line.clone());
            }
        }
        let lines = Lines::default();
        let heard = || lines.0.lock().expect("no thread panicked").len();
        let teller = Teller::new("tdd_green", &lines);
        teller.tell(Event::Asking { at: place() });
        let _ = tokio::time::timeout(Duration::from_millis(10), teller.keep_telling()).await;
        assert_eq!(heard(), 1, "not before its time");
        teller.last().0 -= HEARTBEAT;
        let _ = tokio::time::timeout(Duration::from_millis(10), teller.keep_telling()).await;
        assert_eq!(heard(), 2);
        assert!(
            lines.0.lock().expect("no thread panicked")[1]
                .starts_with("tdd_green · tier 1/3 qwen3-coder · asking · ")
        );
        teller.tell(Event::Ended {
            at: place(),
            cause: Cause::Rejected,
            because: "no".into(),
            left: AttemptTraces::default(),
        });
        teller.last().0 -= HEARTBEAT;
        let _ = tokio::time::timeout(Duration::from_millis(10), teller.keep_telling()).await;
        assert_eq!(heard(), 3, "what is over is told once");
    }

    #[test]
    fn no_line_is_longer_than_a_row_nor_breaks_it() {
        let event = Event::Working {
            at: place(),
            what: format!("a\nb\u{1b}[31m{}", "é".repeat(500)),
        };
        let line = sentence("review", &event, Duration::from_secs(3));
        assert!(
            line.len() <= LINE && !line.contains('\n') && !line.contains('\u{1b}'),
            "{line}"
        );
        assert!(line.ends_with(" · 3 s"));
    }
}
