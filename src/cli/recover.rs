//! `recover`: does by hand what a start does, and says for each project what came of it.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::state::StateDir;
use crate::workspace::{RecoveryOutcome, recover};

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
            Some(path) => StateDir::at(std::path::absolute(path)?)?,
            None => StateDir::locate()?,
        };
        let found = recover(&state)?;
        if found.is_empty() {
            writeln!(out, "ok    nothing to recover")?;
        }
        let mut clean = true;
        for recovery in found {
            let word = match recovery.outcome {
                RecoveryOutcome::Restored(_) => "ok  ",
                RecoveryOutcome::Busy => "busy",
                RecoveryOutcome::Failed(_) => "fail",
            };
            clean &= word == "ok  ";
            writeln!(out, "{word}  {recovery}")?;
        }
        Ok(if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
