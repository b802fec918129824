//! `supervisor serve`, also the default command: speaks MCP on stdin and stdout until the client
//! disconnects or a signal arrives. Owns the runtime and the signals. The exit code is 0 at the end
//! of input, 128 + n after signal n, and 1 if the settings cannot be used: otherwise every call
//! would fail.

use crate::built_in::{self, PLUGIN_SKILLS, PROMPTS};
use std::io::{IsTerminal as _, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use super::observers::Observers;
use super::signals::Signals;
use supervisor_mcp as server;
use supervisor_mcp::{CommandPages, Server};
use supervisor_text::prompts::Prompts;

/// Speak MCP on stdin and stdout; the default
#[derive(Debug, Default, clap::Args)]
pub(super) struct ServeCommand {
    /// Check settings and prompts, then exit: 1 if no call could start
    #[arg(long)]
    check: bool,
    /// Speak streamable HTTP instead, at /mcp of this address (127.0.0.1 and $SUPERVISOR_PORT or 3200 by default); elsewhere
    /// than on loopback callers need tokens: docs/team.md
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "")]
    http: Option<String>,
}

impl ServeCommand {
    pub(super) fn run(
        &self,
        config: Option<PathBuf>,
        err: &mut dyn Write,
    ) -> anyhow::Result<ExitCode> {
        run(config, self.check, self.http.as_deref(), err)
    }
}

fn run(
    config: Option<PathBuf>,
    only_check: bool,
    http: Option<&str>,
    err: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    if std::io::stdin().is_terminal() && !only_check && http.is_none() {
        print_hint(err);
    }
    let app = built_in::app(config.clone());
    match app.settings() {
        Ok(loaded) => {
            loaded
                .warnings
                .iter()
                .for_each(|warning| tracing::warn!("{warning}"));
            let prompts = Prompts::new(PROMPTS, loaded.routing.prompts_dir);
            let problems = prompts.problems();
            if only_check {
                for problem in &problems {
                    writeln!(err, "error: {problem}")?;
                }
                return Ok(ExitCode::from(u8::from(!problems.is_empty())));
            }
            // Calls that need the prompt are refused with the same words.
            problems
                .iter()
                .for_each(|problem| tracing::warn!("{problem}"));
        }
        Err(error) => {
            writeln!(
                err,
                "error: the settings cannot be used: {error}\nhint: `supervisor doctor` shows what is read"
            )?;
            return Ok(ExitCode::from(1));
        }
    }
    if let Some(address) = http {
        return serve_http(config, address, err);
    }
    tracing::info!(target: super::logging::START, version = env!("CARGO_PKG_VERSION"), "supervisor starting");
    let pages = CommandPages {
        report: super::report::render_text,
        routing: super::explain::explain_as_json,
    };
    let runtime = super::runtime::build_runtime()?;
    let observers = Observers::start(&app, &runtime)?;
    let app = observers.attach(app);
    serve_on(runtime, observers, || {
        Server::new(app)
            .with_pages(pages)
            .with_plugin_skills(offered_skills())
            .with_notice(version_mismatch())
    })
}

#[cfg(not(feature = "http"))]
fn serve_http(
    _config: Option<PathBuf>,
    _address: &str,
    err: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    writeln!(
        err,
        "error: this program was built without HTTP; nothing was started\nhint: build it with `cargo build --release --features http`"
    )?;
    Ok(ExitCode::from(2))
}

#[cfg(feature = "http")]
use super::serve_http::serve_http;

/// The version of the plugin that started this server, if one did: its launcher passes it.
fn plugin_version() -> Option<String> {
    let version = std::env::var("SUPERVISOR_PLUGIN_VERSION").ok()?;
    (!version.is_empty()).then_some(version)
}

/// The skills to offer as prompts. A client with the plugin has them already, and would show each
/// slash command twice.
fn offered_skills() -> &'static [&'static str] {
    match plugin_version() {
        Some(_) => &[],
        None => PLUGIN_SKILLS,
    }
}

/// The plugin and the program are installed separately.
fn version_mismatch() -> Option<String> {
    let ours = env!("CARGO_PKG_VERSION");
    let plugin = plugin_version().filter(|plugin| plugin != ours)?;
    let notice = format!(
        "The plugin is version {plugin} and the program {ours}: update the older one (`claude plugin update supervisor@supervisor`, \
         or `cargo install --path . --locked` in a clone)."
    );
    tracing::warn!("{notice}");
    Some(notice)
}

/// Serves on stdin and stdout. `make` is called inside the runtime.
pub fn serve(make: impl FnOnce() -> Server) -> anyhow::Result<ExitCode> {
    let runtime = super::runtime::build_runtime()?;
    serve_on(runtime, Observers::default(), make)
}

fn serve_on(
    runtime: Runtime,
    observers: Observers,
    make: impl FnOnce() -> Server,
) -> anyhow::Result<ExitCode> {
    let code = runtime.block_on(async {
        let stop = CancellationToken::new();
        // Registered first, so that an early signal is not missed.
        let mut signals = Signals::new()?;
        let (input, output) = server::stdio();
        let session = server::serve(make(), input, output, stop.clone());
        tokio::pin!(session);
        let number = tokio::select! {
            _ended = &mut session => return anyhow::Ok(ExitCode::SUCCESS),
            number = signals.next() => number,
        };
        stop.cancel();
        tokio::select! {
            _ended = session => {}
            _impatient = signals.second_interrupt() => {}
        }
        Ok(ExitCode::from(128 + number))
    });
    observers.finish(&runtime);
    // A thread may still be blocked reading from a terminal; do not wait for it.
    runtime.shutdown_background();
    code
}

/// Explains the server to a user who started it by hand.
fn print_hint(err: &mut dyn Write) {
    let program = std::env::current_exe().map_or_else(
        |_| String::from("supervisor"),
        |path| path.display().to_string(),
    );
    let _ = writeln!(
        err,
        "supervisor {version} speaks MCP on stdin and stdout; it is meant to be started by a client.\n\
         Register it with Claude Code:\n\n    \
         claude mcp add supervisor -- {program}\n\n\
         Waiting for JSON-RPC, one message per line. Ctrl-D ends it; `supervisor --help` shows the other commands.",
        version = env!("CARGO_PKG_VERSION"),
        program = shell_words::quote(&program),
    );
}
