//! Locks a project in a temporary directory, takes a snapshot, applies an edit and restores it.
//!
//! `cargo run -p supervisor-workspace --example restore_edit` prints the diff of the edit, then the
//! restored path and the file as it was before: `one = 2`.
#![allow(clippy::print_stdout, reason = "the example prints its result")]

use std::error::Error;
use std::process::ExitCode;
use std::{fs, time::Duration};

use supervisor_workspace::state::StateDir;
use supervisor_workspace::{Edit, Mode, Scope, Workspace, run_if_shim};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    if let Some(code) = run_if_shim() {
        return Ok(code);
    }
    let (project, state) = (tempfile::tempdir()?, tempfile::tempdir()?);
    fs::write(project.path().join("a.txt"), "one = 2\n")?;
    let edit = Edit::Change {
        path: "a.txt".into(),
        search: "2".into(),
        replace: "1".into(),
    };

    let state = StateDir::at(state.path().to_owned())?;
    let workspace = Workspace::open(project.path(), Default::default(), &state)?;
    let (wait, stop) = (Duration::from_secs(5), Default::default());
    let lock = workspace.lock(Mode::Exclusive, "the example", wait, &stop);
    let mut snapshot = tokio::runtime::Runtime::new()?
        .block_on(lock)?
        .take_snapshot()?;
    snapshot.apply(&[edit], &|_| Ok(()))?;
    println!("{}", snapshot.diff(1_000)?);
    let (_lease, report) = snapshot.restore(Scope::Applied)?;
    println!("restored {:?}", report.paths);
    print!("{}", fs::read_to_string(project.path().join("a.txt"))?);
    Ok(ExitCode::SUCCESS)
}
