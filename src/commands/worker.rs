//! `supervisor worker`: runs test suites and other Actions that an engine hands out.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use supervisor_process::{Launcher, SandboxMode};
use supervisor_remote::{EngineAddress, WorkerConfig, work};
use supervisor_workspace::state::StateDir;
use tokio_util::sync::CancellationToken;

use super::remote::parse_property;
use super::signals::Signals;

/// Run test suites for others: take Actions from a BuildGrid server and run them in the sandbox
///
/// Stops at Ctrl-C or SIGTERM; the server then gives unfinished work to other workers. See docs/remote.md.
#[derive(Debug, Args)]
pub(super) struct WorkerCommand {
    /// The server: grpc://host:port, or grpcs://host:port for TLS
    #[arg(long, value_name = "URL")]
    connect: String,
    /// Where files are stored, if not there
    #[arg(long, value_name = "URL")]
    cas: Option<String>,
    /// Name of the instance on the server
    #[arg(long, default_value = "", hide_default_value = true)]
    instance: String,
    /// A property of this worker that runs may ask for; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_property)]
    platform: Vec<(String, String)>,
    /// Name of this worker, the same after a restart; the host's name if not given
    #[arg(long, value_name = "NAME")]
    id: Option<String>,
    /// Runs at once
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    slots: u32,
    /// Directory for inputs and caches; one worker at a time uses it
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Variable that holds the token for the server
    #[arg(long, value_name = "VARIABLE")]
    token_env: Option<String>,
    /// Sandbox of the tests: auto, require or off
    #[arg(long, default_value = "auto", value_parser = parse_sandbox)]
    sandbox: SandboxMode,
}

fn parse_sandbox(word: &str) -> Result<SandboxMode, String> {
    match word {
        "auto" => Ok(SandboxMode::Auto),
        "require" => Ok(SandboxMode::Require),
        "off" => Ok(SandboxMode::Off),
        _ => Err(String::from("write auto, require or off")),
    }
}

impl WorkerCommand {
    pub(super) fn run(self, err: &mut dyn Write) -> anyhow::Result<ExitCode> {
        let token = match &self.token_env {
            None => None,
            Some(name) => Some(std::env::var(name).with_context(|| {
                format!("`{name}` is not set; set it to the token of the server")
            })?),
        };
        let id = self.id.unwrap_or_else(|| {
            rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned()
        });
        let dir = match self.dir {
            Some(dir) => std::path::absolute(dir)?,
            None => StateDir::locate()?.sub("worker")?.join(&id),
        };
        std::fs::create_dir_all(&dir)
            .with_context(|| format!("`{}` cannot be created", dir.display()))?;
        let lock = std::fs::File::create(dir.join("lock"))?;
        lock.try_lock().with_context(|| {
            format!(
                "another worker uses `{}`; give this one another --dir",
                dir.display()
            )
        })?;
        let config = WorkerConfig {
            engine: EngineAddress {
                execution: self.connect.clone(),
                cas: self.cas,
                instance: self.instance,
                token,
            },
            platform: self.platform,
            id,
            slots: self.slots,
            dir,
            sandbox: self.sandbox,
            launcher: Launcher::this_program(),
        };
        let address = self.connect;
        let on_ready = move |slot: &str| {
            let _ = writeln!(std::io::stderr(), "`{slot}` waits for work from {address}");
        };
        let runtime = tokio::runtime::Runtime::new()?;
        let stop = CancellationToken::new();
        writeln!(
            err,
            "worker `{}` connects to {}",
            config.id, config.engine.execution
        )?;
        runtime.block_on(async {
            let (mut signals, stopping) = (Signals::new()?, stop.clone());
            tokio::spawn(async move {
                signals.next().await;
                stopping.cancel();
            });
            anyhow::Ok(work(config, on_ready, stop).await?)
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
