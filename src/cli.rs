//! What did the person at the terminal ask for? One file per sub-command.
//! Knows arguments, terminals and exit codes. Does not know how anything is done.

pub mod serve;
#[cfg(target_os = "linux")]
mod shim;

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Hands engineering work to a chain of models, cheapest first, and believes only exit codes
///
/// Without a command it speaks MCP on stdin and stdout, as a client such as Claude Code starts it.
#[derive(Debug, Parser)]
#[command(name = "supervisor", version, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

// One line per sub-command here, and one in `run`.
#[derive(Debug, Subcommand)]
enum Command {
    /// Speak MCP on stdin and stdout
    Serve,
}

pub fn main() -> ExitCode {
    // Before arguments, logging and threads: a shim is one small process per command.
    #[cfg(target_os = "linux")]
    if let Some(code) = shim::dispatch() {
        return code;
    }
    crate::process::keep_inherited_descriptors();
    let arguments = Arguments::parse();
    start_logging();
    let (mut out, mut err) = (std::io::stdout(), std::io::stderr());
    match run(arguments, &mut out, &mut err) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(err, "error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: Arguments, _out: &mut dyn Write, err: &mut dyn Write) -> anyhow::Result<ExitCode> {
    match arguments.command.unwrap_or(Command::Serve) {
        Command::Serve => serve::run(err),
    }
}

/// Logs go to stderr: stdout belongs to the protocol.
fn start_logging() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("SUPERVISOR_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn,rmcp=error"));
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).try_init();
}
