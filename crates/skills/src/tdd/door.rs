//! Where an answer comes in: read in whatever shape it has, or asked about. What it is worth is decided later.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use super::gates::Gates;
use super::need;
use supervisor_edits::{
    EditAnswer, EditProposal, ProjectFacts as _, UnreadableAnswer, read_edit_answer, says_nothing,
};
use supervisor_engine::Cause;
use supervisor_engine::evidence::FollowUp;
use supervisor_engine::proposal::SiteFacts;
use supervisor_engine::work::{RefusedWork, SubmittedWork};
use supervisor_models::Edits;
use supervisor_text::words;
use supervisor_workspace::Edit;

/// Reads the answers of one call.
#[derive(Debug, Default)]
pub(super) struct AnswerDoor {
    /// The files that the tier at hand was shown; written by its question, read with its answer.
    shown: Mutex<Vec<String>>,
}

impl AnswerDoor {
    pub(super) fn note_shown(&self, files: Vec<String>) {
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = files;
    }

    /// The edits of an answer that carries them; none for an agent, which has made them already.
    pub(super) fn read(
        &self,
        work: &mut SubmittedWork<'_>,
        gates: &mut Gates,
        sealed: &dyn Fn(&Path) -> Result<(), String>,
    ) -> Result<Vec<Edit>, RefusedWork> {
        let body = &work.reply().body;
        if work.edits == Edits::InPlace {
            let reason = body["contradiction"]
                .as_str()
                .map(str::trim)
                .filter(|reason| !says_nothing(reason));
            return match reason {
                Some(reason) => Err(gates.refuse("contradiction", Cause::Contradiction, reason)),
                None => Ok(Vec::new()),
            };
        }
        let text = match body {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let shown = self
            .shown
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let facts = SiteFacts::of(work.site, &shown, sealed)
            .map_err(|error| gates.refuse_for_site(&error))?;
        match read_edit_answer(&text, &facts) {
            Ok(answer) => take(answer, &facts, gates),
            Err(complaint) => Err(Self::refuse_unreadable(&complaint, &text, gates)),
        }
    }

    /// The engine keeps every answer, and says where.
    fn refuse_unreadable(
        complaint: &UnreadableAnswer,
        text: &str,
        gates: &mut Gates,
    ) -> RefusedWork {
        let refused = gates.refuse("shape", Cause::Unreadable, complaint.to_string());
        RefusedWork {
            follow_up: Some(FollowUp::repair(&complaint.to_string(), text)),
            ..refused
        }
    }
}

fn take(
    answer: EditAnswer,
    facts: &SiteFacts<'_>,
    gates: &mut Gates,
) -> Result<Vec<Edit>, RefusedWork> {
    match answer.proposal {
        EditProposal::Edits(edits) => {
            let mut detail = words::count(edits.len(), "edit");
            for part in &answer.left_out {
                detail += &format!("; left out: {part}");
            }
            gates.pass("shape", detail);
            Ok(edits)
        }
        EditProposal::Contradiction(why) => {
            Err(gates.refuse("contradiction", Cause::Contradiction, why))
        }
        // What that means is for the phase to say: an unfinished green, or a refactoring that does nothing.
        EditProposal::Nothing => {
            gates.pass("shape", "no edit that changes anything");
            Ok(Vec::new())
        }
        EditProposal::Need(wanted) => {
            let named: Vec<String> = wanted
                .iter()
                .map(|want| format!("`{}`", words::plain(want)))
                .collect();
            let refused = gates.refuse(
                "need",
                Cause::Rejected,
                format!("no edits: it asks to see {} first", named.join(", ")),
            );
            Err(RefusedWork {
                follow_up: Some(need::follow_up(facts.root(), facts.paths(), &wanted)),
                ..refused
            })
        }
    }
}
