//! Proves the uncommitted change of a project: `cargo run -p supervisor-prove --example prove -- DIR`.
#![allow(clippy::print_stdout, reason = "it prints the report")]

use std::path::PathBuf;
use std::process::ExitCode;

use supervisor_prove::{ProveRequest, prove};
use supervisor_workspace::state::StateDir;
use tokio_util::sync::CancellationToken;

#[tokio::main(flavor = "current_thread")]
async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let root = PathBuf::from(std::env::args().nth(1).unwrap_or(".".into())).canonicalize()?;
    let state = StateDir::locate()?;
    let request = ProveRequest::new(&root, &state);
    let report = prove(&request, &CancellationToken::new()).await?;
    println!("{}", report.to_text());
    Ok(())
}

fn main() -> ExitCode {
    // Test programs are started by this program, as a shim that sets up their sandbox.
    if let Some(code) = supervisor_workspace::run_if_shim() {
        return code;
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}
