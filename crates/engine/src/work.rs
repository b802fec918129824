//! An answer on its way through the checks: handed in, then accepted or refused. These three types are all there is to
//! say about "did it work?"; only [`supervisor_verify`] can make the proof inside an acceptance.

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::author::TestAuthor;
use super::event::{ChainPlace, Event, Teller};
use super::evidence::FollowUp;
use super::site::Site;
use super::{Cause, Gate, Status};
use supervisor_models::{Edits, Reply};
use supervisor_verify::{Flags, Proof};
use supervisor_workspace::ChangeSet;

/// One tier's answer to all its questions, and the project in which it is checked.
pub struct SubmittedWork<'a> {
    /// One for each question, in their order; never empty.
    pub replies: &'a [Reply],
    pub edits: Edits,
    /// What an agent changed in place, taken when nothing of it was left; empty for edits that come as data.
    pub changed: &'a ChangeSet,
    pub site: &'a mut Site,
    pub stop: &'a CancellationToken,
    /// Who writes further tests, where they are wanted.
    pub author: Option<&'a TestAuthor<'a>>,
    pub(super) teller: &'a Teller<'a>,
    pub(super) at: &'a ChainPlace,
}

impl SubmittedWork<'_> {
    /// The answer to the first question, which is the only one in most skills.
    pub fn reply(&self) -> &Reply {
        self.replies
            .first()
            .expect("the engine checks only what was answered")
    }

    /// Says what is being checked: `running tests`.
    pub fn checking(&self, what: impl Into<String>) {
        self.teller.tell(Event::Checking {
            at: self.at.clone(),
            what: what.into(),
        });
    }

    /// No tier comes after this one.
    pub fn is_last(&self) -> bool {
        self.at.tier == self.at.of
    }
}

/// Work that holds.
#[derive(Debug, Clone)]
pub struct AcceptedWork {
    pub verification: Verification,
    pub keeps: KeepPolicy,
    /// `Fail` where the discipline defines a no as an answer; `Error` where the answer is that there can be none yet,
    /// such as questions about a task that is too vague.
    pub status: Status,
    /// One sentence for the reader.
    pub message: String,
    pub file_path: String,
    pub runner_output: String,
    pub gates: Vec<Gate>,
    /// What code noticed and could not decide. It stands in the result, and the verifier answers each.
    pub flags: Flags,
    pub details: Value,
    /// The call that usually follows.
    pub next: Value,
    pub exhibit: Exhibit,
}

/// What the checks amount to.
#[derive(Debug, Clone)]
pub enum Verification {
    /// It is so, and here is the proof.
    Proven(Proof),
    /// It is an answer, with everything in it that an answer needs. That it is true was not shown, and why not.
    Unproven { why: String },
}

/// What becomes of the project when the work is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepPolicy {
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

/// Work that does not hold, or that never came.
#[derive(Debug, Clone)]
pub struct RefusedWork {
    /// A check finds rejected, tampered, contradiction, cannot_verify, unreadable or cancelled; the rest is the engine's.
    pub cause: Cause,
    pub feedback: String,
    pub runner_output: String,
    pub gates: Vec<Gate>,
    /// Tests that ended differently in two runs of the same files.
    pub flaky: Vec<String>,
    pub reach: RefusalReach,
    /// The model was at work when the time of an ask was over.
    pub unfinished: bool,
    /// Asks the same tier once more before the refusal counts; see [`FollowUp`]. When the engine's bounds leave no room
    /// for it, the refusal stands as it is.
    pub follow_up: Option<FollowUp>,
}

/// How far a refusal reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalReach {
    /// This answer alone: another one may hold.
    Answer,
    /// Everything behind the same backend is out of reach for now, not only this model.
    Backend,
    /// It ends the call with status `fail`, whatever other tiers would say.
    Call,
}

impl RefusedWork {
    pub fn new(cause: Cause, feedback: impl Into<String>) -> Self {
        Self {
            cause,
            feedback: feedback.into(),
            runner_output: String::new(),
            gates: Vec::new(),
            flaky: Vec::new(),
            reach: RefusalReach::Answer,
            unfinished: false,
            follow_up: None,
        }
    }

    pub(super) fn cancelled() -> Self {
        Self::new(Cause::Cancelled, "the call was cancelled")
    }
}
