//! `recover`: does by hand what a start does, and says for each project what came of it.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::state::StateDir;
use crate::words;
use crate::workspace::{Recovery, RecoveryOutcome, recover};

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
        for Recovery { root, outcome } in found {
            let root = words::plain(&root.to_string_lossy()).into_owned();
            match outcome {
                RecoveryOutcome::Restored(restored) => {
                    write!(out, "ok    {root}: {} restored", words::count(restored.paths.len(), "path"))?;
                    if let Some(kept) = restored.kept_in {
                        write!(out, ", what was there is kept in {} for 7 days", kept.display())?;
                    }
                    if !restored.others.is_empty() {
                        write!(out, ", {} of others left alone", words::count(restored.others.len(), "edit"))?;
                    }
                    writeln!(out)?;
                }
                RecoveryOutcome::Busy => {
                    clean = false;
                    writeln!(out, "busy  {root}: a call is at work there, or is being undone right now")?;
                }
                RecoveryOutcome::Failed(error) => {
                    clean = false;
                    writeln!(out, "fail  {root}: {error}")?;
                }
            }
        }
        Ok(if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
