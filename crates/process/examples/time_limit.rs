//! Runs a command below the shim with a time limit of two seconds and prints how it ended.
//!
//! `cargo run -p supervisor-process --example time_limit -- sleep 60` prints `TimedOut after 2.0 s`.
//! Without arguments it runs a shell that leaves a process behind: `Exited(3) after …, 1 leaked`.
#![allow(clippy::print_stdout, reason = "the example prints its result")]

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use supervisor_process::{CommandSpec, Launcher, environment, run_if_shim};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    if let Some(code) = run_if_shim() {
        return Ok(code);
    }
    let mut argv: Vec<String> = std::env::args().skip(1).collect();
    if argv.is_empty() {
        argv = vec!["sh".into(), "-c".into(), "sleep 60 & exit 3".into()];
    }
    let mut spec = CommandSpec::new(argv, std::env::temp_dir());
    spec.env = environment::agent(std::env::vars_os(), &[]);
    spec.limit = Duration::from_secs(2);

    let runtime = tokio::runtime::Runtime::new()?;
    let finished = runtime.block_on(Launcher::this_program().run(spec, &Default::default()));
    print!("{}", finished.stdout.text());
    println!(
        "{:?} after {:.1} s, {} leaked, {} survivors",
        finished.end,
        finished.took.as_secs_f64(),
        finished.leaked,
        finished.survivors
    );
    Ok(ExitCode::SUCCESS)
}
