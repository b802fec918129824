//! Reads a worker's answer into edits, whatever format it uses, or asks for a repair. Whether the
//! edits are correct is checked later.

use std::path::Path;

use parking_lot::Mutex;

use serde_json::Value;

use super::file_requests;
use super::gates::Gates;
use supervisor_edits::{
    EditAnswer, EditAnswerError, EditProposal, ProjectFacts as _, means_none, read_edit_answer,
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
pub(super) struct AnswerReader {
    /// Files shown to the current tier: set by its question, used to read its answer.
    shown: Mutex<Vec<String>>,
}

impl AnswerReader {
    pub(super) fn note_shown(&self, files: Vec<String>) {
        *self.shown.lock() = files;
    }

    /// The edits in the answer; empty for an agent, which has already edited in place.
    pub(super) fn read(
        &self,
        work: &mut SubmittedWork<'_>,
        gates: &mut Gates,
        check_editable: &dyn Fn(&Path) -> Result<(), String>,
    ) -> Result<Vec<Edit>, RefusedWork> {
        let body = &work.reply().body;
        if work.edits == Edits::InPlace {
            let reason = body["contradiction"]
                .as_str()
                .map(str::trim)
                .filter(|reason| !means_none(reason));
            return match reason {
                Some(reason) => Err(gates.refuse("contradiction", Cause::Contradiction, reason)),
                None => Ok(Vec::new()),
            };
        }
        let text = match body {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let shown = self.shown.lock().clone();
        let facts = gates.site(SiteFacts::of(
            work.site,
            &shown,
            check_editable,
            work.redactor,
        ))?;
        match read_edit_answer(&text, &facts) {
            Ok(answer) => accept_proposal(answer, &facts, gates),
            Err(error) => Err(Self::refuse_unreadable(&error, &text, gates)),
        }
    }

    /// The engine stores every answer and reports where.
    fn refuse_unreadable(error: &EditAnswerError, text: &str, gates: &mut Gates) -> RefusedWork {
        let feedback = error.for_model();
        let refused = gates.refuse("shape", Cause::Unreadable, error.to_string());
        RefusedWork {
            reason: Some(error.to_string()),
            follow_up: Some(FollowUp::repair(&feedback, text)),
            feedback,
            ..refused
        }
    }
}

fn accept_proposal(
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
            let edits = facts
                .restore_secrets(edits)
                .map_err(|why| gates.refuse("secrets", Cause::Rejected, why))?;
            gates.pass("shape", detail);
            Ok(edits)
        }
        EditProposal::Contradiction(why) => {
            Err(gates.refuse("contradiction", Cause::Contradiction, why))
        }
        // The phase decides what an empty answer means: an unfinished green or a refactoring
        // without effect.
        EditProposal::Nothing => {
            gates.pass("shape", "no edit that changes anything");
            Ok(Vec::new())
        }
        EditProposal::FileRequest(names) => {
            let requested: Vec<String> = names
                .iter()
                .map(|name| format!("`{}`", words::plain(name)))
                .collect();
            let refused = gates.refuse(
                "need",
                Cause::Rejected,
                format!("no edits: it asks to see {} first", requested.join(", ")),
            );
            Err(RefusedWork {
                follow_up: Some(file_requests::follow_up(
                    facts.root(),
                    facts.paths(),
                    &names,
                )),
                ..refused
            })
        }
    }
}
