//! Runs the command that is said to show an error, and says whether it did. A command that fails in another way has not.

use std::path::Path;

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::command;
use super::proof::Check;
use super::session::{Bench, Session, exit_code, output_of};
use super::signature::Signature;
use supervisor_process::{End, FinishedProcess};
use supervisor_text::words;

/// A command as words, never through a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReproCommand(Vec<String>);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`repro_cmd` is not a command: {0}; write it as words, such as `cargo run -- data.csv`; a shell is run only as `sh -c '…'`"
)]
pub struct NoCommand(String);

/// One run of it, and what it showed.
#[derive(Debug, Clone)]
pub struct Repro {
    command: String,
    showed: ReproOutcome,
    exit_code: Option<i32>,
    output: String,
    notes: Vec<String>,
}

/// What a run says about the error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum ReproOutcome {
    /// It failed, and the error is in what it wrote.
    TheError,
    /// It ended well.
    NoFailure,
    /// It failed, but not with this error.
    AnotherFailure,
    /// It was ended at its limit.
    NoEnd {
        limit_s: u64,
    },
    /// It could not be run at all.
    Nothing {
        why: String,
    },
    Cancelled,
}

impl ReproCommand {
    pub fn new(typed: &str) -> Result<Self, NoCommand> {
        let argv = shell_words::split(typed).map_err(|e| NoCommand(e.to_string()))?;
        if argv.first().is_none_or(|program| program.is_empty()) {
            return Err(NoCommand(String::from("it is empty")));
        }
        Ok(Self(argv))
    }

    /// As a person would type it.
    pub fn typed(&self) -> String {
        command::typed(&self.0)
    }
}

impl Repro {
    /// Runs the command in `root`. Never fails: what went wrong is what it showed.
    pub async fn run(
        repro: &ReproCommand,
        root: &Path,
        error: &Signature,
        bench: &Bench,
        stop: &CancellationToken,
    ) -> Self {
        let command = repro.typed();
        let session = match Session::alone(bench, root, stop) {
            Ok(session) => session,
            Err(e) => {
                let showed = ReproOutcome::Nothing {
                    why: format!("there is no room for temporary files: {e}"),
                };
                return Self {
                    command,
                    showed,
                    exit_code: None,
                    output: String::new(),
                    notes: Vec::new(),
                };
            }
        };
        let finished = session.run(&repro.0, &[]).await;
        let (exit_code, output, notes) =
            (exit_code(&finished), output_of(&finished), session.notes());
        let (error, program) = (error.clone(), command::program(&repro.0).to_owned());
        let limit_s = bench.limit.as_secs();
        // Half a megabyte may have to be compared, which other calls need not wait for.
        let compared =
            tokio::task::spawn_blocking(move || showed(&finished, &error, limit_s, &program)).await;
        let showed = compared.unwrap_or_else(|e| ReproOutcome::Nothing {
            why: format!("its output could not be read: {e}"),
        });
        Self {
            command,
            showed,
            exit_code,
            output,
            notes,
        }
    }

    pub fn command(&self) -> &str {
        &self.command
    }

    pub fn showed(&self) -> &ReproOutcome {
        &self.showed
    }

    /// `None` if it did not end by itself.
    pub fn exit_code(&self) -> Option<i32> {
        self.exit_code
    }

    /// What it wrote, head and tail, the cut marked.
    pub fn output(&self) -> &str {
        &self.output
    }

    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    pub fn is_reproduced(&self) -> bool {
        self.showed == ReproOutcome::TheError
    }

    /// One sentence for people.
    pub fn sentence(&self) -> String {
        let command = words::cut_end(&words::plain(&self.command), 300).into_owned();
        let code = self.exit_code.map_or_else(
            || String::from("by a signal"),
            |code| format!("with exit code {code}"),
        );
        match &self.showed {
            ReproOutcome::TheError => {
                format!("reproduced: `{command}` ended {code}, and the error is in what it wrote")
            }
            ReproOutcome::NoFailure => format!("not reproduced: `{command}` ended {code}"),
            ReproOutcome::AnotherFailure => {
                format!(
                    "not reproduced: `{command}` ended {code}, but the error is not in what it wrote"
                )
            }
            ReproOutcome::NoEnd { limit_s } => {
                format!(
                    "not reproduced: `{command}` did not end and was ended after its limit of {limit_s} s"
                )
            }
            ReproOutcome::Nothing { why } => {
                format!("not reproduced: `{command}` could not be run: {why}")
            }
            ReproOutcome::Cancelled => format!("`{command}` was cancelled"),
        }
    }

    /// The run as a check of its own.
    pub fn check(&self) -> Check {
        Check::new("reproduced", self.is_reproduced(), self.sentence())
    }
}

fn showed(
    finished: &FinishedProcess,
    error: &Signature,
    limit_s: u64,
    program: &str,
) -> ReproOutcome {
    let is_there = || {
        [&finished.stdout, &finished.stderr]
            .iter()
            .any(|stream| error.is_in(&stream.text(), &finished.end))
    };
    match &finished.end {
        End::Cancelled => ReproOutcome::Cancelled,
        End::TimedOut => ReproOutcome::NoEnd { limit_s },
        End::CouldNotStart(why) => ReproOutcome::Nothing {
            why: why.to_string(),
        },
        End::Exited(0) => ReproOutcome::NoFailure,
        End::Exited(_) | End::Signalled(_) if is_there() => ReproOutcome::TheError,
        End::Exited(127) => ReproOutcome::Nothing {
            why: format!("`{program}`, or something it needs, was not found"),
        },
        End::Exited(126) => ReproOutcome::Nothing {
            why: format!("`{program}` may not be executed"),
        },
        End::Exited(_) | End::Signalled(_) => ReproOutcome::AnotherFailure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_words_and_at_least_one() {
        assert_eq!(
            ReproCommand::new("a 'b c' $(d) | e").expect("words").0,
            ["a", "b c", "$(d)", "|", "e"]
        );
        for bad in ["", "  ", "''", "a 'b"] {
            assert!(ReproCommand::new(bad).is_err(), "{bad}");
        }
    }
}
