//! An answer on its way through the checks: submitted, then accepted or refused. Only
//! [`supervisor_verify`] can create the proof inside an [`AcceptedWork`].

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::event::{ChainPosition, Event, EventReporter};
use super::evidence::FollowUp;
use super::project_access::Site;
use super::test_author::TestAuthor;
use super::{Cause, Gate, Status};
use supervisor_models::{Edits, Reply};
use supervisor_text::redact::Redactor;
use supervisor_verify::{Flags, Proof};
use supervisor_workspace::ChangeSet;

/// One tier's answer to all its questions, and the project in which it is checked.
pub struct SubmittedWork<'a> {
    /// One per question, in order; never empty.
    pub replies: &'a [Reply],
    pub edits: Edits,
    /// What an agent changed in place, recorded after it had ended; empty for edits that come as
    /// data.
    pub changed: &'a ChangeSet,
    pub site: &'a mut Site,
    pub stop: &'a CancellationToken,
    /// Took secrets out of the question.
    pub redactor: &'a Redactor,
    /// Number of the candidate, if there are several, from 0. Its target tests have run already
    /// when all checks are made.
    pub candidate: Option<usize>,
    /// Writes hidden tests, if they are requested.
    pub author: Option<&'a TestAuthor<'a>>,
    pub(super) reporter: &'a EventReporter<'a>,
    pub(super) at: &'a ChainPosition,
}

impl SubmittedWork<'_> {
    /// The answer to the first question; most skills ask only one.
    pub fn reply(&self) -> &Reply {
        self.replies
            .first()
            .expect("the engine checks only what was answered")
    }

    /// Reports what is being checked: `running tests`.
    pub fn checking(&self, what: impl Into<String>) {
        self.reporter.report(Event::Checking {
            at: self.at.clone(),
            what: what.into(),
        });
    }

    /// Whether this is the last tier of the chain.
    pub fn is_last(&self) -> bool {
        self.at.tier == self.at.of
    }
}

/// Work that passed its checks.
#[derive(Debug, Clone)]
pub struct AcceptedWork {
    pub verification: Verification,
    pub keeps: KeepPolicy,
    /// `Fail` if the discipline defines a refusal as an answer; `Error` if the answer is that there
    /// can be none yet, such as questions about a task that is too vague.
    pub status: Status,
    /// One sentence for the reader.
    pub message: String,
    pub file_path: String,
    pub runner_output: String,
    pub gates: Vec<Gate>,
    /// Suspicions that code cannot decide. They appear in the result, and the verifier replies to
    /// each.
    pub flags: Flags,
    pub details: Value,
    /// The call that usually follows.
    pub next: Value,
    pub exhibit: VerifierMaterial,
}

/// How far the checks prove the answer.
#[derive(Debug, Clone)]
pub enum Verification {
    /// Proven by the server's own checks.
    Proven(Proof),
    /// The answer is complete, but it is not proven to be true; `why` says why not.
    Unproven { why: String },
}

/// What happens to the project when the work is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepPolicy {
    /// The change is the answer and is kept.
    Changes,
    /// The answer is text: everything written on the way is undone.
    Nothing,
}

/// What a verifier judges.
#[derive(Debug, Clone)]
pub enum VerifierMaterial {
    /// The change and the output of the server's test run.
    Change,
    /// A text answer and the material it is about, as the server read it.
    Text { answer: String, material: String },
}

/// Work that failed a check, or an answer that never came.
#[derive(Debug, Clone)]
pub struct RefusedWork {
    /// Checks use rejected, tampered, contradiction, cannot_verify, unreadable or cancelled; the
    /// engine sets the others.
    pub cause: Cause,
    /// What the next worker is told.
    pub feedback: String,
    /// What the caller is told, if it differs: without instructions for workers, and without the
    /// remedy.
    pub reason: Option<String>,
    /// What the user can do about it.
    pub hint: Option<String>,
    pub runner_output: String,
    pub gates: Vec<Gate>,
    /// Tests with different results in two runs of the same files.
    pub flaky: Vec<String>,
    pub reach: RefusalScope,
    /// The model was still working when the time limit was reached.
    pub unfinished: bool,
    /// The answer of a skill whose answer is text.
    pub answer: Option<Box<Value>>,
    /// Asks the same tier once more before the refusal counts; see [`FollowUp`]. If no follow-up is
    /// left, the refusal is final.
    pub follow_up: Option<FollowUp>,
    /// What the answer did to the failing tests, if they ran.
    pub failing: Option<FailingTests>,
}

/// What an answer did to the failing tests, as far as they ran.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FailingTests {
    /// They pass now.
    pub fixed: Vec<String>,
    /// They fail as before.
    pub still: Vec<String>,
    /// They passed before.
    pub broken: Vec<String>,
    /// What the first failing test says, with its values; empty if it says nothing.
    pub assertion: String,
}

impl FailingTests {
    /// Number of tests that fail now.
    pub fn count(&self) -> usize {
        self.still.len() + self.broken.len()
    }
}

/// Result of the cheap checks of one of several candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Screening {
    /// It is worth all checks.
    Passed,
    /// It makes the same edits as the candidate with this number.
    SameAs(usize),
}

impl Screening {
    /// From a check that found an earlier candidate with the same edits, or went on.
    pub fn of<T>(applied: Result<T, usize>) -> Self {
        applied.map_or_else(Self::SameAs, |_| Self::Passed)
    }
}

/// The edits of the candidates screened so far.
#[derive(Debug, Default)]
pub struct SeenEdits(BTreeMap<[u8; 32], usize>);

impl SeenEdits {
    /// Notes the edits of the next candidate, as bytes that are equal for the same files with the
    /// same contents. Returns the earlier candidate with the same ones.
    pub fn note(&mut self, number: usize, edits: &[u8]) -> Option<usize> {
        match self.0.entry(*blake3::hash(edits).as_bytes()) {
            Entry::Occupied(seen) => Some(*seen.get()),
            Entry::Vacant(new) => {
                new.insert(number);
                None
            }
        }
    }
}

/// Scope of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalScope {
    /// This answer only: another one may be accepted.
    Answer,
    /// The whole backend is unavailable for now, not only this model.
    Backend,
    /// Ends the call with status `fail`, whatever other tiers would answer.
    Call,
}

impl RefusedWork {
    pub fn new(cause: Cause, feedback: impl Into<String>) -> Self {
        Self {
            cause,
            feedback: feedback.into(),
            reason: None,
            hint: None,
            runner_output: String::new(),
            gates: Vec::new(),
            flaky: Vec::new(),
            reach: RefusalScope::Answer,
            unfinished: false,
            answer: None,
            follow_up: None,
            failing: None,
        }
    }

    /// The refusal in words for the caller.
    pub fn reason(&self) -> &str {
        self.reason.as_deref().unwrap_or(&self.feedback)
    }

    /// Adds a clause that says where the answer is kept.
    pub(super) fn add_location(&mut self, clause: &str) {
        self.feedback += clause;
        let clause = clause.trim_start_matches([';', ' ']);
        // Without a reason of its own the caller is shown the feedback.
        if !clause.is_empty() && self.reason.is_some() {
            let hint = self.hint.take();
            self.hint =
                Some(hint.map_or_else(|| clause.to_owned(), |hint| format!("{hint}; {clause}")));
        }
    }

    pub(super) fn cancelled() -> Self {
        Self::new(Cause::Cancelled, "the call was cancelled")
    }
}
