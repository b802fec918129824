//! Runs a command that should reproduce an error, and checks whether it does. A different failure does not count.

use std::path::Path;

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::command;
use super::proof::Check;
use super::session::{RunEnvironment, Session, exit_code, output_of};
use super::signature::ErrorSignature;
use supervisor_process::{End, FinishedProcess};
use supervisor_text::words;

/// A command as an argument list; it never goes through a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReproCommand(Vec<String>);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`repro_cmd` is not a command: {0}; write it as words, such as `cargo run -- data.csv`; a shell is run only as `sh -c '…'`"
)]
pub struct InvalidReproCommand(String);

/// One run of the command and its result.
#[derive(Debug, Clone)]
pub struct Repro {
    command: String,
    outcome: ReproOutcome,
    exit_code: Option<i32>,
    output: String,
    notes: Vec<String>,
}

/// Whether a run reproduced the error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum ReproOutcome {
    /// It failed, and its output contains the error.
    TheError,
    /// It succeeded.
    NoFailure,
    /// It failed, but not with this error.
    AnotherFailure,
    /// It reached its time limit.
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
    pub fn new(typed: &str) -> Result<Self, InvalidReproCommand> {
        let argv = shell_words::split(typed).map_err(|e| InvalidReproCommand(e.to_string()))?;
        if argv.first().is_none_or(|program| program.is_empty()) {
            return Err(InvalidReproCommand(String::from("it is empty")));
        }
        Ok(Self(argv))
    }

    /// The command as a user would type it.
    pub fn typed(&self) -> String {
        command::to_command_line(&self.0)
    }
}

impl Repro {
    /// Runs the command in `root`. Problems are part of the outcome, so this never fails.
    pub async fn run(
        repro: &ReproCommand,
        root: &Path,
        error: &ErrorSignature,
        environment: &RunEnvironment,
        stop: &CancellationToken,
    ) -> Self {
        let command = repro.typed();
        let session = match Session::standalone(environment, root, stop) {
            Ok(session) => session,
            Err(e) => {
                let outcome = ReproOutcome::Nothing {
                    why: format!("there is no room for temporary files: {e}"),
                };
                return Self {
                    command,
                    outcome,
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
        let limit_s = environment.limit.as_secs();
        // The output can be half a megabyte. Comparing it must not block other calls.
        let compared =
            tokio::task::spawn_blocking(move || classify(&finished, &error, limit_s, &program))
                .await;
        let outcome = compared.unwrap_or_else(|e| ReproOutcome::Nothing {
            why: format!("its output could not be read: {e}"),
        });
        Self {
            command,
            outcome,
            exit_code,
            output,
            notes,
        }
    }

    pub fn command(&self) -> &str {
        &self.command
    }

    pub fn outcome(&self) -> &ReproOutcome {
        &self.outcome
    }

    /// `None` if the command did not exit by itself.
    pub fn exit_code(&self) -> Option<i32> {
        self.exit_code
    }

    /// The head and tail of the output, with the cut marked.
    pub fn output(&self) -> &str {
        &self.output
    }

    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    pub fn is_reproduced(&self) -> bool {
        self.outcome == ReproOutcome::TheError
    }

    /// One sentence for a human reader.
    pub fn sentence(&self) -> String {
        let command = words::short(&self.command, 300);
        let code = self.exit_code.map_or_else(
            || String::from("by a signal"),
            |code| format!("with exit code {code}"),
        );
        match &self.outcome {
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

    /// The run as a check.
    pub fn check(&self) -> Check {
        Check::new("reproduced", self.is_reproduced(), self.sentence())
    }
}

fn classify(
    finished: &FinishedProcess,
    error: &ErrorSignature,
    limit_s: u64,
    program: &str,
) -> ReproOutcome {
    let has_error = || {
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
        End::Exited(_) | End::Signalled(_) if has_error() => ReproOutcome::TheError,
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
    fn command_needs_at_least_one_word() {
        assert_eq!(
            ReproCommand::new("a 'b c' $(d) | e").expect("words").0,
            ["a", "b c", "$(d)", "|", "e"]
        );
        for bad in ["", "  ", "''", "a 'b"] {
            assert!(ReproCommand::new(bad).is_err(), "{bad}");
        }
    }
}
