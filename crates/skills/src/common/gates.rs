//! The gates that one answer went through, in order. Every gate is recorded, passed or failed, so
//! that the result shows what was checked.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use supervisor_engine::evidence::FollowUp;
use supervisor_engine::project_access::SiteError;
use supervisor_engine::work::{AcceptedWork, RefusedWork};
use supervisor_engine::{Cause, Gate};
use supervisor_models::Reply;
use supervisor_text::words;
use supervisor_verify::Check;

/// Checks that the answer has the form asked for.
pub(crate) const SHAPE: &str = "shape";

/// The gates recorded so far.
#[derive(Debug, Default)]
pub(crate) struct Gates(pub Vec<Gate>);

impl Gates {
    pub(crate) fn pass(&mut self, id: &str, detail: impl Into<String>) {
        self.0.push(Gate {
            id: id.into(),
            pass: true,
            detail: detail.into(),
        });
    }

    /// Records a failed gate and returns the refusal.
    pub(crate) fn refuse(
        &mut self,
        id: &str,
        cause: Cause,
        feedback: impl Into<String>,
    ) -> RefusedWork {
        let feedback = feedback.into();
        let detail = words::cut_end(&feedback, 600).into_owned();
        self.0.push(Gate {
            id: id.into(),
            pass: false,
            detail,
        });
        RefusedWork::new(cause, feedback)
    }

    /// Like [`Gates::refuse`], with the output the server saw, such as test output or failed
    /// claims.
    pub(crate) fn refuse_with(
        &mut self,
        id: &str,
        cause: Cause,
        feedback: impl Into<String>,
        output: impl Into<String>,
    ) -> RefusedWork {
        RefusedWork {
            runner_output: output.into(),
            ..self.refuse(id, cause, feedback)
        }
    }

    /// Records a [`Check`] as a gate. A failed check is a refusal.
    pub(crate) fn check(&mut self, check: &Check) -> Result<(), RefusedWork> {
        if check.passed() {
            self.pass(check.id(), check.detail());
            return Ok(());
        }
        let refused = self.refuse(check.id(), Cause::Rejected, check.detail());
        Err(RefusedWork {
            reason: Some(problem_of(check.detail()).to_owned()),
            ..refused
        })
    }

    /// Records all checks. The refusal lists every failure, so that the next tier can fix all of
    /// them at once.
    pub(crate) fn check_all(&mut self, checks: &[Check]) -> Result<(), RefusedWork> {
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
        let output = checks.iter().filter(|check| !check.passed());
        let output: String = output
            .map(|check| format!("{}: {}\n", check.id(), check.detail()))
            .collect();
        Err(RefusedWork {
            feedback: words::cut_middle(&feedback.join("; "), 3_000).into_owned(),
            runner_output: words::cut_middle(&output, 6_000).into_owned(),
            ..first
        })
    }

    /// Attaches the recorded gates to the outcome.
    pub(crate) fn close(
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

    /// Like [`Gates::close`], for a skill whose answer is text: a refusal keeps the answer, and one
    /// that does not have the form asked for is asked for again.
    pub(crate) fn close_text(
        self,
        judged: Result<AcceptedWork, RefusedWork>,
        replies: &[Reply],
    ) -> Result<AcceptedWork, RefusedWork> {
        let judged = judged.map_err(|mut refused| {
            let bodies: Vec<&Value> = replies.iter().map(|reply| &reply.body).collect();
            let answer = match bodies.as_slice() {
                [one] => (*one).clone(),
                many => json!(many),
            };
            let is_malformed = self
                .0
                .last()
                .is_some_and(|gate| gate.id == SHAPE && !gate.pass);
            if is_malformed {
                let repair = FollowUp::repair(&refused.feedback, &answer.to_string());
                refused.follow_up = Some(repair);
            }
            refused.answer = Some(Box::new(answer));
            refused
        });
        self.close(judged)
    }

    /// The value, or a refusal because the project cannot be accessed.
    pub(crate) fn site<T>(&mut self, result: Result<T, SiteError>) -> Result<T, RefusedWork> {
        result.map_err(|error| self.refuse("workspace", Cause::CannotVerify, error.to_string()))
    }
}

/// The first problem in the detail of a check of a text answer. The detail is written for the model
/// that answered: `problem; what to write instead; further problems`.
fn problem_of(detail: &str) -> &str {
    detail.split("; ").next().unwrap_or(detail)
}

/// Formats a path for a message.
pub(crate) fn named(path: &Path) -> String {
    format!("`{}`", words::plain(&path.to_string_lossy()))
}

/// Paths as text for a JSON result. Bytes that are not UTF-8 are replaced.
pub(crate) fn path_texts<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Vec<String> {
    paths
        .into_iter()
        .map(|path| path.to_string_lossy().into_owned())
        .collect()
}
