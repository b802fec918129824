//! Command-line interface: parses the arguments and runs one sub-command. Each sub-command has its
//! own file, which handles its arguments, output and exit code.

mod call;
mod check;
mod claude_code;
mod client;
mod console;
mod demo;
pub mod doctor;
mod explain;
mod gc;
mod gym;
mod hook;
mod init;
mod jobs;
mod log;
mod logging;
mod observers;
mod pages;
mod prove;
mod recover;
pub(crate) mod remote;
mod report;
mod runtime;
pub mod serve;
#[cfg(feature = "http")]
mod serve_http;
mod settings_file;
mod shadow;
mod signals;
mod simulate;
mod stats;
mod statusline;
mod undo;
mod uninstall;
mod verify;
mod watch;
#[cfg(feature = "remote")]
mod worker;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Parser, Subcommand};

use supervisor_workspace::state::{StateDir, StateError};

/// Delegate engineering work to models, cheapest first, and accept only what your tests prove
///
/// Without a command it speaks MCP on stdin and stdout, as a client such as Claude Code starts it.
#[derive(Debug, Parser)]
#[command(name = "supervisor", version, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,

    /// Read this models.toml instead of the one in your config directory
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
}

// A new sub-command needs a variant here and an arm in `run`.
#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::ServeCommand),
    Demo(demo::Demo),
    Init(init::Init),
    Doctor(doctor::Arguments),
    /// Show the chain and limits in effect, and where each value comes from
    Explain(explain::Explain),
    Call(call::CallCommand),
    Verify(verify::Verify),
    Prove(prove::ProveCommand),
    Check(check::CheckCommand),
    Recover(recover::Recover),
    Undo(undo::Undo),
    Gc(gc::GcCommand),
    Uninstall(uninstall::Uninstall),
    Stats(stats::StatsCommand),
    #[command(name = "statusline")]
    StatusLine(statusline::StatusLine),
    Completions(pages::Completions),
    /// Print the manual page
    #[command(hide = true)]
    Man,
    #[command(hide = true)]
    Hook(hook::Hook),
    Report(report::ReportCommand),
    Shadow(shadow::ShadowCommand),
    Watch(watch::WatchCommand),
    #[cfg(feature = "remote")]
    Worker(worker::WorkerCommand),
    Jobs(jobs::JobsCommand),
    Gym(gym::GymCommand),
    Simulate(simulate::SimulateCommand),
    Log(log::LogCommand),
}

pub fn main() -> ExitCode {
    // Must come before argument parsing, logging and threads: a shim is started for every command
    // and has to stay small.
    if let Some(code) =
        supervisor_workspace::run_if_shim().or_else(supervisor_verify::test_wrapper::run_if_witness)
    {
        return code;
    }
    #[cfg(feature = "remote")]
    if let Some(code) = supervisor_remote::run_if_suite_runner() {
        return code;
    }
    supervisor_process::close_inherited_fds_on_exec();
    supervisor_process::ignore_file_size_signal();
    let arguments = match std::env::args_os().len() {
        // MCP clients pass no arguments. Skipping clap keeps its code from being paged in at
        // startup.
        ..=1 => Arguments {
            command: None,
            config: None,
        },
        _ => Arguments::try_parse().unwrap_or_else(|error| with_tip(error).exit()),
    };
    logging::start();
    let (mut out, mut err) = (std::io::stdout(), std::io::stderr());
    let code = run(arguments, &mut out, &mut err).unwrap_or_else(|error| {
        let _ = writeln!(err, "error: {}", format_error_chain(&error));
        ExitCode::from(2)
    });
    // No call is running any more. Without this, unfinished ones would look as if their server had
    // died.
    supervisor_engine::session::live::settle();
    code
}

fn run(arguments: Arguments, out: &mut dyn Write, err: &mut dyn Write) -> anyhow::Result<ExitCode> {
    match arguments
        .command
        .unwrap_or(Command::Serve(serve::ServeCommand::default()))
    {
        Command::Serve(serve) => serve.run(arguments.config, err),
        Command::StatusLine(line) => line.run(out),
        #[cfg(feature = "remote")]
        Command::Worker(worker) => worker.run(err),
        Command::Demo(demo) => demo.run(arguments.config.as_ref()),
        Command::Explain(explain) => explain.run(arguments.config, out, err),
        Command::Init(init) => init.run(arguments.config, out),
        Command::Doctor(doctor) => doctor::run(&doctor, arguments.config.as_ref(), out),
        Command::Call(call) => call.run(arguments.config, out, err),
        Command::Verify(verify) => verify.run(arguments.config, out),
        Command::Prove(prove) => prove.run(arguments.config, out, err),
        Command::Check(check) => check.run(arguments.config, out),
        Command::Recover(recover) => recover.run(out),
        Command::Undo(undo) => undo.run(arguments.config, out),
        Command::Gc(gc) => gc.run(arguments.config, out),
        Command::Uninstall(uninstall) => uninstall.run(arguments.config, out),
        Command::Stats(stats) => stats.run(arguments.config, out),
        Command::Completions(completions) => completions.run(out),
        Command::Man => pages::manual(out),
        Command::Hook(hook) => hook.run(arguments.config, err),
        Command::Report(report) => report.run(arguments.config, out),
        Command::Shadow(shadow) => shadow.run(arguments.config, out),
        Command::Watch(watch) => watch.run(out),
        Command::Jobs(jobs) => jobs.run(out),
        Command::Gym(gym) => gym.run(arguments.config, out),
        Command::Simulate(simulate) => simulate.run(arguments.config, out),
        Command::Log(log) => log.run(out),
    }
}

/// Adds a tip for two common mistakes: a tool name used as a sub-command, and a tool argument
/// written as an option.
fn with_tip(mut error: clap::Error) -> clap::Error {
    use clap::error::{ContextKind, ContextValue, ErrorKind};

    let Some(ContextValue::String(written)) = error
        .get(ContextKind::InvalidArg)
        .or_else(|| error.get(ContextKind::InvalidSubcommand))
    else {
        return error;
    };
    let is_call = std::env::args_os().skip(1).any(|word| word == "call");
    let tip = match error.kind() {
        ErrorKind::UnknownArgument if is_call && error.get(ContextKind::SuggestedArg).is_none() => {
            let (name, value) = written
                .trim_start_matches('-')
                .split_once('=')
                .unwrap_or((written, "…"));
            format!(
                "an argument of the tool is written as '--arg {}={value}'",
                name.trim_start_matches('-')
            )
        }
        ErrorKind::InvalidSubcommand if supervisor_skills::router().has_route(written) => {
            format!("a tool is called with 'supervisor call {written}'")
        }
        _ => return error,
    };
    error.insert(
        ContextKind::Suggested,
        ContextValue::StyledStrs(vec![tip.into()]),
    );
    error
}

/// Joins the error and its causes into one line. A cause whose text the message already contains is
/// skipped.
fn format_error_chain(error: &anyhow::Error) -> String {
    error
        .chain()
        .map(ToString::to_string)
        .fold(String::new(), |message, cause| match message.as_str() {
            "" => cause,
            before if before.contains(&cause) => message,
            _ => format!("{message}: {cause}"),
        })
}

/// Writes a command's output. A reader that stops early (`| head`) is not an error; the exit code
/// still reports the outcome.
fn print(out: &mut dyn Write, text: &str) -> anyhow::Result<()> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("writing to stdout"),
    }
}

/// The state directory, with the session logs where the settings say. Settings that cannot be read
/// must not keep a command from looking at what is there.
fn state_dir() -> Result<StateDir, StateError> {
    let settings = supervisor_settings::load(&crate::built_in::sources(None));
    let sessions = settings.ok().and_then(|loaded| loaded.routing.sessions_dir);
    Ok(StateDir::locate()?.with_sessions(sessions))
}
