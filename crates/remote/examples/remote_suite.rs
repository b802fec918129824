//! Runs the tests of a project on an engine: `remote_suite grpc://host:port PROJECT`.
#![allow(clippy::print_stdout, reason = "the example prints its result")]

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use supervisor_process::{Launcher, environment, run_if_shim};
use supervisor_remote::{EngineAddress, RemoteConfig, RemoteExecutor, RemoteMode};
use supervisor_verify::{Execution, RunEnvironment, TestSandbox, detect, test_wrapper};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    if let Some(code) = run_if_shim().or_else(test_wrapper::run_if_witness) {
        return Ok(code);
    }
    let mut arguments = std::env::args().skip(1);
    let (Some(address), Some(project)) = (arguments.next(), arguments.next()) else {
        return Err("usage: remote_suite grpc://host:port PROJECT".into());
    };
    let suite = detect(&PathBuf::from(project).canonicalize()?, None, None)?;
    let executor = RemoteExecutor::new(RemoteConfig {
        engine: EngineAddress {
            execution: address,
            cas: None,
            instance: String::new(),
            token: None,
        },
        mode: RemoteMode::On,
        platform: Default::default(),
        hermetic: false,
        env: Vec::new(),
        queue_limit: Duration::from_secs(30),
        hashes_file: None,
    });
    let environment = RunEnvironment {
        launcher: Launcher::this_program(),
        env: environment::tests(std::env::vars_os(), &[], &[]),
        limit: Duration::from_secs(300),
        guard: None,
        sandbox: TestSandbox::default(),
        execution: Execution::with(Arc::new(executor)),
    };
    let runtime = tokio::runtime::Runtime::new()?;
    let run = runtime.block_on(suite.run(&environment, &Default::default()));
    println!("{}", run.sentence());
    for note in run.notes() {
        println!("  {note}");
    }
    Ok(ExitCode::SUCCESS)
}
