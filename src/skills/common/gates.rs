//! The gates of one answer, in the order they were tried. Each leaves a line behind, so that a reader sees what was
//! looked at.

use std::path::Path;

use crate::engine::job::Failed;
use crate::engine::site::SiteError;
use crate::engine::{Cause, Gate};
use crate::verify::Check;
use crate::words;

/// What was looked at so far.
#[derive(Debug, Default)]
pub(in crate::skills) struct Gates(pub(in crate::skills) Vec<Gate>);

impl Gates {
    pub(in crate::skills) fn pass(&mut self, id: &str, detail: impl Into<String>) {
        self.0.push(Gate { id: id.into(), pass: true, detail: detail.into() });
    }

    /// Notes the gate that did not hold, and makes the refusal.
    pub(in crate::skills) fn refuse(&mut self, id: &str, cause: Cause, feedback: impl Into<String>) -> Failed {
        let feedback = feedback.into();
        let detail = words::cut_end(&feedback, 600).into_owned();
        self.0.push(Gate { id: id.into(), pass: false, detail });
        Failed::new(cause, feedback)
    }

    /// The same, with what the server saw: what the tests printed, which claims did not hold.
    pub(in crate::skills) fn refuse_with(
        &mut self,
        id: &str,
        cause: Cause,
        feedback: impl Into<String>,
        seen: impl Into<String>,
    ) -> Failed {
        Failed { runner_output: seen.into(), ..self.refuse(id, cause, feedback) }
    }

    /// A check made in `verify`: a gate if it held, a refusal if not.
    pub(in crate::skills) fn check(&mut self, check: &Check) -> Result<(), Failed> {
        if check.passed() {
            self.pass(check.id(), check.detail());
            return Ok(());
        }
        Err(self.refuse(check.id(), Cause::Rejected, check.detail()))
    }

    pub(in crate::skills) fn broken(&mut self, error: &SiteError) -> Failed {
        self.refuse("workspace", Cause::CannotVerify, error.to_string())
    }
}

/// A path in a sentence.
pub(in crate::skills) fn named(path: &Path) -> String {
    format!("`{}`", words::plain(&path.to_string_lossy()))
}
