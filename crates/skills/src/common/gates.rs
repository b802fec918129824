//! The gates of one answer, in the order they were tried. Each leaves a line behind, so that a reader sees what was
//! looked at.

use std::path::{Path, PathBuf};

use supervisor_engine::site::SiteError;
use supervisor_engine::work::{AcceptedWork, RefusedWork};
use supervisor_engine::{Cause, Gate};
use supervisor_text::words;
use supervisor_verify::Check;

/// What was looked at so far.
#[derive(Debug, Default)]
pub struct Gates(pub Vec<Gate>);

impl Gates {
    pub fn pass(&mut self, id: &str, detail: impl Into<String>) {
        self.0.push(Gate {
            id: id.into(),
            pass: true,
            detail: detail.into(),
        });
    }

    /// Notes the gate that did not hold, and makes the refusal.
    pub fn refuse(&mut self, id: &str, cause: Cause, feedback: impl Into<String>) -> RefusedWork {
        let feedback = feedback.into();
        let detail = words::cut_end(&feedback, 600).into_owned();
        self.0.push(Gate {
            id: id.into(),
            pass: false,
            detail,
        });
        RefusedWork::new(cause, feedback)
    }

    /// The same, with what the server saw: what the tests printed, which claims did not hold.
    pub fn refuse_with(
        &mut self,
        id: &str,
        cause: Cause,
        feedback: impl Into<String>,
        seen: impl Into<String>,
    ) -> RefusedWork {
        RefusedWork {
            runner_output: seen.into(),
            ..self.refuse(id, cause, feedback)
        }
    }

    /// A check made in `verify`: a gate if it held, a refusal if not.
    pub fn check(&mut self, check: &Check) -> Result<(), RefusedWork> {
        if check.passed() {
            self.pass(check.id(), check.detail());
            return Ok(());
        }
        Err(self.refuse(check.id(), Cause::Rejected, check.detail()))
    }

    /// Every check leaves its gate; the refusal tells all that failed, so that the next tier fixes all of it.
    pub fn all(&mut self, checks: &[Check]) -> Result<(), RefusedWork> {
        let failed: Vec<RefusedWork> = checks
            .iter()
            .filter_map(|check| self.check(check).err())
            .collect();
        let Some(first) = failed.first().cloned() else {
            return Ok(());
        };
        let feedback: Vec<&str> = failed
            .iter()
            .map(|failed| failed.feedback.as_str())
            .collect();
        let seen = checks.iter().filter(|check| !check.passed());
        let seen: String = seen
            .map(|check| format!("{}: {}\n", check.id(), check.detail()))
            .collect();
        Err(RefusedWork {
            feedback: words::cut_middle(&feedback.join("; "), 3_000).into_owned(),
            runner_output: words::cut_middle(&seen, 6_000).into_owned(),
            ..first
        })
    }

    /// What was judged, with the gates it went through.
    pub fn close(
        self,
        judged: Result<AcceptedWork, RefusedWork>,
    ) -> Result<AcceptedWork, RefusedWork> {
        match judged {
            Ok(work) => Ok(AcceptedWork {
                gates: self.0,
                ..work
            }),
            Err(refused) => Err(RefusedWork {
                gates: self.0,
                ..refused
            }),
        }
    }

    pub fn refuse_for_site(&mut self, error: &SiteError) -> RefusedWork {
        self.refuse("workspace", Cause::CannotVerify, error.to_string())
    }
}

/// A path in a sentence.
pub fn named(path: &Path) -> String {
    format!("`{}`", words::plain(&path.to_string_lossy()))
}

/// Paths in a result, where a name that is not UTF-8 would be no text: those bytes are replaced.
pub fn path_texts<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Vec<String> {
    paths
        .into_iter()
        .map(|path| path.to_string_lossy().into_owned())
        .collect()
}
