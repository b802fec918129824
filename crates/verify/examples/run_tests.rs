//! Detects and runs the tests of a small cargo project in a temporary directory.
//!
//! `cargo run -p supervisor-verify --example run_tests` prints the detected command, the counts
//! (`1 passed, 1 failed, 0 skipped`) and why there is no proof.
#![allow(clippy::print_stdout, reason = "the example prints its result")]

use std::process::ExitCode;
use std::{error::Error, fs, time::Duration};

use supervisor_process::{Launcher, environment, run_if_shim};
use supervisor_verify::{Execution, Proof, RunEnvironment, TestSandbox, detect, test_wrapper};

const MANIFEST: &str =
    "[package]\nname = \"small\"\nversion = \"0.1.0\"\n[lib]\npath = \"lib.rs\"\n";
const SOURCE: &str = "#[test] fn adds() {}\n#[test] fn is_wrong() { assert_eq!(1, 2) }\n";

fn main() -> Result<ExitCode, Box<dyn Error>> {
    // This program is also the shim of each command, and a wrapper around the test programs.
    if let Some(code) = run_if_shim().or_else(test_wrapper::run_if_witness) {
        return Ok(code);
    }
    let project = tempfile::tempdir()?;
    fs::write(project.path().join("Cargo.toml"), MANIFEST)?;
    fs::write(project.path().join("lib.rs"), SOURCE)?;
    let suite = detect(project.path(), None, None)?;
    println!("`{}`, found by {}", suite.command(), suite.found_by());
    let environment = RunEnvironment {
        launcher: Launcher::this_program(),
        env: environment::tests(std::env::vars_os(), &[], &[]),
        limit: Duration::from_secs(300),
        guard: None,
        sandbox: TestSandbox::default(),
        execution: Execution::default(),
    };
    let runtime = tokio::runtime::Runtime::new()?;
    let run = runtime.block_on(suite.run(&environment, &Default::default()));
    let proof = Proof::of_tests(&run).map(|proof| proof.sentence());
    println!("{}\nproof: {proof:?}", run.counts());
    Ok(ExitCode::SUCCESS)
}
