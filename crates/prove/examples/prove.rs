//! Proves the uncommitted change of a project: `cargo run -p supervisor-prove --example prove -- DIR`.
#![allow(clippy::print_stdout, reason = "it prints the report")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use supervisor_process::{Launcher, SandboxMode, SandboxRules};
use supervisor_prove::{Comparand, MutantMode, ProveRequest, prove};
use supervisor_verify::{RunEnvironment, TestSandbox};
use supervisor_workspace::state::StateDir;
use tokio_util::sync::CancellationToken;

#[tokio::main(flavor = "current_thread")]
async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let root = PathBuf::from(std::env::args().nth(1).unwrap_or(".".into())).canonicalize()?;
    let rules = SandboxRules {
        mode: SandboxMode::Auto,
        ..SandboxRules::default()
    };
    let environment = RunEnvironment {
        launcher: Launcher::this_program().with_rules(rules),
        env: std::env::vars_os().collect(),
        limit: Duration::from_secs(600),
        guard: None,
        sandbox: TestSandbox::default(),
    };
    let (state, on_step) = (StateDir::locate()?, |step: &str| println!("{step} …"));
    let request = ProveRequest {
        root: &root,
        base: "HEAD",
        comparand: Comparand::WorkingTree,
        test_cmd: None,
        test_report: None,
        allow_test_change: &[],
        fast: false,
        mutants: MutantMode::default(),
        environment,
        state: &state,
        on_step: &on_step,
    };
    println!(
        "{}",
        prove(&request, &CancellationToken::new()).await?.to_text()
    );
    Ok(())
}

fn main() -> ExitCode {
    if let Some(code) = supervisor_workspace::run_if_shim() {
        return code;
    }
    run().map_or_else(
        |error| {
            println!("{error}");
            ExitCode::FAILURE
        },
        |()| ExitCode::SUCCESS,
    )
}
