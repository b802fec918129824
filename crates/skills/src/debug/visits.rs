//! Counts how often this session has asked about the same error, from the session log.

use supervisor_engine::session::{SessionId, SessionLog};
use supervisor_text::redact::Redactor;
use supervisor_verify::ErrorSignature;
use supervisor_workspace::state::StateDir;

/// From this visit on, the advice is to question the design.
const DESIGN_ADVICE_FROM: usize = 3;

/// How often this error was asked about in this session, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct VisitNumber(pub(super) usize);

impl VisitNumber {
    pub(super) fn advice(self) -> Option<String> {
        (self.0 >= DESIGN_ADVICE_FROM).then(|| {
            format!(
                "this is visit {} of the same error in this session: question the design before the next detail, and the \
                 assumption that the earlier explanations share",
                self.0
            )
        })
    }
}

/// Counts the earlier calls of this session about the same error. Blocking.
pub(super) fn count_visits(
    state: &StateDir,
    session: &SessionId,
    root: &str,
    error: &str,
    redactor: &Redactor,
) -> VisitNumber {
    // The log is redacted, so compare with the redacted error.
    let mine = ErrorSignature::of(&redactor.redact(error));
    let earlier = SessionLog::open(state)
        .and_then(|log| log.reader(session))
        .map(|reader| {
            reader
                .filter(|record| record.entry.tool == "debug" && record.entry.project_root == root)
                // A call that ended before a model was asked does not count.
                .filter(|record| !record.entry.attempts.is_empty())
                .filter(|record| {
                    record.entry.input["error"]
                        .as_str()
                        .is_some_and(|error| ErrorSignature::of(error).is_same(&mine))
                })
                .count()
        });
    VisitNumber(earlier.unwrap_or(0) + 1)
}
