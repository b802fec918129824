//! What a skill hands to the walk: the question for each tier, and the check of each answer.
//! The walk knows nothing else about what is asked, so that any skill plugs in.

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::event::{Event, Place, Teller};
use super::evidence::Evidence;
use super::site::Site;
use super::{Cause, Gate, Status};
use crate::backend::{Edits, Power, Reply};
use crate::routing::Tier;
use crate::verify::Proof;
use crate::workspace::ChangeSet;

/// One phase of one skill, ready to be asked.
pub trait Job: Send + Sync {
    /// The rules, as the worker and the verifier are told them.
    fn discipline(&self) -> &str;

    /// What is to be done, in words.
    fn task(&self) -> &str;

    /// The question for this tier, packed to its window. What was tried before is to be appended to the prompt.
    fn question(&self, tier: &Tier, edits: Edits, evidence: &Evidence) -> Question;

    /// What this tier is asked for one answer: one question, or several in turn where not all of it fits the window.
    /// The answers are checked together. `Err` says why the tier cannot take it on at all.
    fn questions(&self, tier: &Tier, edits: Edits, evidence: &Evidence) -> Result<Vec<Question>, String> {
        Ok(vec![self.question(tier, edits, evidence)])
    }

    /// Deterministic checks, cheapest first, with the server's own test runs last. Applies the edits of an answer that
    /// carries them; does not clean up: the walk restores whatever is not accepted.
    fn check<'a>(&'a self, work: Work<'a>) -> BoxFuture<'a, Checked>;

    /// What the server itself found before anybody was asked; told also when no tier gave an answer.
    fn found(&self) -> Option<Found> {
        None
    }
}

/// What is known whatever models say.
#[derive(Debug, Clone)]
pub struct Found {
    /// Reads after a colon.
    pub sentence: String,
    /// An object.
    pub details: Value,
}

/// What one tier is asked.
#[derive(Debug, Clone)]
pub struct Question {
    pub prompt: String,
    /// What the answer looks like: a JSON schema whose root is an object.
    pub schema: Value,
    pub power: Power,
}

/// An answer to be checked, and where.
pub struct Work<'a> {
    /// The answer, or the first of several.
    pub reply: &'a Reply,
    /// One answer for each question, in their order.
    pub replies: &'a [Reply],
    pub edits: Edits,
    /// What an agent changed in place, taken when nothing of it was left; empty for edits that come as data.
    pub changed: &'a ChangeSet,
    pub site: &'a mut Site,
    pub stop: &'a CancellationToken,
    pub(super) teller: &'a Teller<'a>,
    pub(super) at: &'a Place,
}

impl Work<'_> {
    /// Says what is being checked: `running tests`.
    pub fn checking(&self, what: impl Into<String>) {
        self.teller.tell(Event::Checking { at: self.at.clone(), what: what.into() });
    }

    /// No tier comes after this one.
    pub fn is_last(&self) -> bool {
        self.at.tier == self.at.of
    }
}

/// What the server's own checks said.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one per answer, and it is moved once")]
pub enum Checked {
    /// Everything holds, and here is the proof.
    Holds(Held),
    /// Something does not hold; the next tier is told why.
    Fails(Failed),
}

/// Work that holds.
#[derive(Debug, Clone)]
pub struct Held {
    pub shown: Shown,
    pub keeps: Keeps,
    /// `Fail` where the discipline defines a no as an answer; `Error` where the answer is that there can be none yet,
    /// such as questions about a task that is too vague.
    pub status: Status,
    /// One sentence for the reader.
    pub message: String,
    pub file_path: String,
    pub runner_output: String,
    pub gates: Vec<Gate>,
    pub details: Value,
    /// The call that usually follows.
    pub next: Value,
    pub exhibit: Exhibit,
}

/// What the checks amount to.
#[derive(Debug, Clone)]
pub enum Shown {
    /// It is so, and here is the proof.
    Proven(Proof),
    /// It is an answer, with everything in it that an answer needs. That it is true was not shown, and why not.
    Unproven { why: String },
}

/// What becomes of the project when the work is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeps {
    /// The change is the answer.
    Changes,
    /// The answer is in words: whatever was written on the way to it goes.
    Nothing,
}

/// What a verifier judges.
#[derive(Debug, Clone)]
pub enum Exhibit {
    /// The change, and what the server saw when it ran the tests.
    Change,
    /// An answer in words, and what it speaks about as the server read it.
    Words { answer: String, material: String },
}

/// Work that does not hold.
#[derive(Debug, Clone)]
pub struct Failed {
    /// One of those that a check can find: rejected, tampered, contradiction, cannot_verify, cancelled.
    pub cause: Cause,
    pub feedback: String,
    pub runner_output: String,
    pub gates: Vec<Gate>,
    /// Some answers end the call with status `fail`, whatever other tiers would say.
    pub is_final: bool,
    /// Everything behind this backend is out of reach for now, not only this model.
    pub backend_is_dry: bool,
}

impl Failed {
    pub fn new(cause: Cause, feedback: impl Into<String>) -> Self {
        Self {
            cause,
            feedback: feedback.into(),
            runner_output: String::new(),
            gates: Vec::new(),
            is_final: false,
            backend_is_dry: false,
        }
    }
}
