//! The engine tells its story once, as events; progress, console and tracing each retell it.
//! Telling never waits: a listener that cannot keep up misses events, the call does not.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Cause;
use crate::redact::Redactor;
use crate::words;

/// One step of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The project is locked and its snapshot armed.
    Armed {
        files: usize,
        unprotected: usize,
    },
    /// A skill says what it is doing, such as the baseline test run.
    Doing {
        what: String,
    },
    /// A model is being asked.
    Asking {
        at: Place,
    },
    /// The model is at work: a tool it uses, a retry it makes.
    Working {
        at: Place,
        what: String,
    },
    /// The server runs its own gates.
    Checking {
        at: Place,
        what: String,
    },
    /// The verifier is asked for its opinion.
    Judging {
        at: Place,
        verifier: String,
    },
    /// An attempt ended without acceptance.
    Ended {
        at: Place,
        cause: Cause,
        because: String,
    },
    Accepted {
        at: Place,
        because: String,
    },
}

impl Event {
    /// What somebody else may have said.
    fn text(&mut self) -> Option<&mut String> {
        match self {
            Self::Doing { what } | Self::Working { what, .. } | Self::Checking { what, .. } => Some(what),
            Self::Ended { because, .. } | Self::Accepted { because, .. } => Some(because),
            Self::Armed { .. } | Self::Asking { .. } | Self::Judging { .. } => None,
        }
    }
}

/// Where in the chain: tier 2 of 3, and its model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub tier: usize,
    pub of: usize,
    pub model: String,
}

/// Somebody who wants to hear the story.
pub trait Listener: Send + Sync {
    /// Must not block.
    fn hear(&self, line: &Told);
}

/// Nobody listens.
impl Listener for () {
    fn hear(&self, _: &Told) {}
}

/// An event with its moment and the sentence for people.
#[derive(Debug, Clone)]
pub struct Told {
    pub event: Event,
    pub after: Duration,
    pub line: String,
}

/// Tells one call's events to one listener.
pub struct Teller<'a> {
    skill: String,
    began: Instant,
    listener: &'a dyn Listener,
    redactor: Option<Arc<Redactor>>,
}

/// Longest progress line; clients show one row.
const LINE: usize = 200;

impl<'a> Teller<'a> {
    pub fn new(skill: impl Into<String>, listener: &'a dyn Listener) -> Self {
        Self { skill: skill.into(), began: Instant::now(), listener, redactor: None }
    }

    /// Takes secrets out of what models, tools and tests said.
    #[must_use]
    pub fn redacting(self, redactor: Arc<Redactor>) -> Self {
        Self { redactor: Some(redactor), ..self }
    }

    pub fn tell(&self, mut event: Event) {
        if let (Some(redactor), Some(text)) = (&self.redactor, event.text())
            && let Cow::Owned(clean) = redactor.redact(text)
        {
            *text = clean;
        }
        let after = self.began.elapsed();
        let line = sentence(&self.skill, &event, after);
        tracing::info!(target: "supervisor::story", "{line}");
        self.listener.hear(&Told { event, after, line });
    }
}

/// `tdd_green · tier 1/3 qwen3-coder rejected: answer_is_42 still fails · 12 s`
fn sentence(skill: &str, event: &Event, after: Duration) -> String {
    let tier = |at: &Place| format!("tier {}/{} {}", at.tier, at.of, at.model);
    let middle = match event {
        Event::Armed { files, unprotected: 0 } => format!("{} protected", words::count(*files, "file")),
        Event::Armed { files, unprotected } => {
            format!("{} protected, {unprotected} not", words::count(*files, "file"))
        }
        Event::Doing { what } => what.clone(),
        Event::Asking { at } => format!("{} · asking", tier(at)),
        Event::Working { at, what } | Event::Checking { at, what } => format!("{} · {what}", tier(at)),
        Event::Judging { at, verifier } => format!("{} · {verifier} judges", tier(at)),
        Event::Ended { at, cause, because } => format!("{} {}: {because}", tier(at), cause.word()),
        Event::Accepted { at, because } => format!("{} accepted: {because}", tier(at)),
    };
    let tail = format!(" · {} s", after.as_secs());
    let head = format!("{skill} · {middle}").replace(['\n', '\r'], " ");
    let head = words::plain(&head).into_owned();
    format!("{}{tail}", words::cut_end(&head, LINE - tail.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place {
        Place { tier: 1, of: 3, model: "qwen3-coder".into() }
    }

    #[test]
    fn a_rejection_reads_as_one_line() {
        let event = Event::Ended { at: place(), cause: Cause::Rejected, because: "answer_is_42 still fails".into() };
        assert_eq!(
            sentence("tdd_green", &event, Duration::from_secs(12)),
            "tdd_green · tier 1/3 qwen3-coder rejected: answer_is_42 still fails · 12 s"
        );
    }

    #[test]
    fn no_line_is_longer_than_a_row_nor_breaks_it() {
        let event = Event::Working { at: place(), what: format!("a\nb\u{1b}[31m{}", "é".repeat(500)) };
        let line = sentence("review", &event, Duration::from_secs(3));
        assert!(line.len() <= LINE && !line.contains('\n') && !line.contains('\u{1b}'), "{line}");
        assert!(line.ends_with(" · 3 s"));
    }
}
