//! Has this error been looked into before, in this session? The log knows.

use supervisor_engine::session::{SessionId, SessionLog};
use supervisor_text::redact::Redactor;
use supervisor_verify::Signature;
use supervisor_workspace::state::StateDir;

/// From this visit on, the next detail is not what is missing.
const QUESTION_THE_DESIGN: usize = 3;

/// This visit of an error, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Visit(pub(super) usize);

impl Visit {
    pub(super) fn advice(self) -> Option<String> {
        (self.0 >= QUESTION_THE_DESIGN).then(|| {
            format!(
                "this is visit {} of the same error in this session: question the design before the next detail, and the \
                 assumption that the earlier explanations share",
                self.0
            )
        })
    }
}

/// Counts the earlier calls of this session that asked about the same error. Blocking.
pub(super) fn visit(
    state: &StateDir,
    session: &SessionId,
    root: &str,
    error: &str,
    redactor: &Redactor,
) -> Visit {
    // As the log has it: keys taken out.
    let mine = Signature::of(&redactor.redact(error));
    let earlier = SessionLog::open(state)
        .and_then(|log| log.reader(session))
        .map(|reader| {
            reader
                .filter(|record| record.entry.skill == "debug" && record.entry.project_root == root)
                // A call that ended before anybody was asked is no visit.
                .filter(|record| !record.entry.attempts.is_empty())
                .filter(|record| {
                    record.entry.input["error"]
                        .as_str()
                        .is_some_and(|error| Signature::of(error).is_same(&mine))
                })
                .count()
        });
    Visit(earlier.unwrap_or(0) + 1)
}
