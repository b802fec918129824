//! `supervisor recover`: runs the recovery that every server start does, and reports the result for
//! each project.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;

use supervisor_engine::session::{SessionLog, recover_open_calls};
use supervisor_text::words;
use supervisor_workspace::state::StateDir;
use supervisor_workspace::{RecoveryOutcome, recover};

/// Undo what killed calls left behind in projects
///
/// Exits with 0 if every project is clean, with 1 if one is busy or could not be restored.
#[derive(Debug, clap::Args)]
pub(super) struct Recover {
    /// Look here instead of in the platform's state directory
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
}

impl Recover {
    pub(super) fn run(self, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
        let state = match self.state_dir {
            Some(path) => {
                // The default state directory may not exist yet; one that was named must.
                anyhow::ensure!(
                    path.is_dir(),
                    "--state-dir `{}` is not a directory",
                    words::plain(&path.to_string_lossy())
                );
                StateDir::at(std::path::absolute(path)?)?
            }
            None => crate::commands::state_dir()?,
        };
        let found = recover(&state)
            .with_context(|| format!("looking for killed calls in `{}`", state.path().display()))?;
        let logged = recover_open_calls(&SessionLog::to_read(&state));
        let mut text = match logged {
            0 if found.is_empty() => String::from("ok    nothing to recover\n"),
            0 => String::new(),
            n => format!(
                "ok    {} of servers that died: written to the session log\n",
                words::count(n, "call")
            ),
        };
        let mut clean = true;
        for recovery in found {
            let word = match recovery.outcome {
                RecoveryOutcome::Restored(_) => "ok  ",
                RecoveryOutcome::Busy => "busy",
                RecoveryOutcome::Failed(_) => "fail",
            };
            clean &= word == "ok  ";
            text += &format!("{word}  {recovery}\n");
        }
        super::print(out, &text)?;
        Ok(if clean {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}
