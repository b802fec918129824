//! Runs external programs and ends the whole process tree they start.
//!
//! [`Launcher`] starts programs; a [`CommandSpec`] describes one, and [`FinishedProcess`] is its result.
//! On Linux every command runs below a shim process (see [`shim`]) that survives the death of the
//! server. Other systems only have a process group; [`FinishedProcess::containment`] records which
//! of the two was used.
#![allow(
    clippy::disallowed_methods,
    reason = "this is the crate that starts programs"
)]

mod capture;
mod guard;
mod lines;
mod relay;
mod resolve;
mod sandbox;
mod scratch;
mod spec;
mod tag;

pub mod environment;

#[cfg(target_os = "linux")]
mod control;
#[cfg(target_os = "linux")]
mod entry;
#[cfg(target_os = "linux")]
pub mod inner;
#[cfg(target_os = "linux")]
pub mod overlay;
#[cfg(not(target_os = "linux"))]
#[path = "no_overlay.rs"]
mod overlay;
#[cfg(target_os = "linux")]
mod protocol;
#[cfg(target_os = "linux")]
mod saved_files;
#[cfg(target_os = "linux")]
pub mod shim;
#[cfg(target_os = "linux")]
mod sweep;
#[cfg(target_os = "linux")]
mod tree;
#[cfg(target_os = "linux")]
mod watchdog;
#[cfg(not(target_os = "linux"))]
#[path = "no_watchdog.rs"]
mod watchdog;

#[cfg(any(not(target_os = "linux"), test))]
mod process_group;

#[cfg(not(target_os = "linux"))]
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use capture::{CaptureLimits, CapturedOutput};
#[cfg(target_os = "linux")]
pub use entry::{run_if_shim, run_if_shim_with};
pub use guard::ProjectGuard;
pub use lines::{LineSink, lines};
pub use overlay::{OverlayError, OverlayLayers, OverlayMount};
pub use relay::{RelayOutput, relay};
pub use resolve::which;
pub use sandbox::{
    ChildKind, Confinement, LayeredDir, NetworkReach, NetworkRule, SandboxLevel, SandboxMode,
    SandboxRecord, SandboxReport, SandboxRules, SandboxedProject, expand_home, explain_refusals,
};
pub use scratch::ScratchDir;
pub use spec::{CommandSpec, Stdin};
pub use tag::{ProcessTag, TAG_VARIABLE, sweep_tagged};
pub use watchdog::Watchdog;

/// There is no shim on this system.
#[cfg(not(target_os = "linux"))]
pub fn run_if_shim() -> Option<ExitCode> {
    None
}

/// Starts programs. The server uses its own executable as the shim; tests pass the path of the
/// built binary.
#[derive(Debug, Clone)]
pub struct Launcher {
    #[cfg_attr(
        not(target_os = "linux"),
        expect(dead_code, reason = "no shim without subreapers")
    )]
    shim: std::path::PathBuf,
    tasks: TaskTracker,
    rules: Arc<SandboxRules>,
}

impl Launcher {
    /// Uses this program as the shim. `/proc/self/exe` stays valid when the file is replaced or
    /// deleted.
    pub fn this_program() -> Self {
        Self::at("/proc/self/exe")
    }

    /// Uses another executable that has the shim's sub-command.
    pub fn at(shim: impl Into<std::path::PathBuf>) -> Self {
        Self {
            shim: shim.into(),
            tasks: TaskTracker::new(),
            rules: Arc::default(),
        }
    }

    /// Returns the same launcher with these sandbox rules. They apply to programs that ask for a
    /// sandbox.
    #[must_use]
    pub fn with_rules(&self, rules: SandboxRules) -> Self {
        Self {
            rules: Arc::new(rules),
            ..self.clone()
        }
    }

    pub fn rules(&self) -> &SandboxRules {
        &self.rules
    }

    #[cfg(target_os = "linux")]
    fn shim_program(&self) -> &std::path::Path {
        &self.shim
    }

    /// Returns a path of this program that other processes can execute. In another process
    /// `/proc/self/exe` would name that process's own executable.
    pub fn executable(&self) -> std::path::PathBuf {
        if self.shim != std::path::Path::new("/proc/self/exe") {
            return self.shim.clone();
        }
        // Sandboxed children cannot inspect this process, so return the path of the file while it
        // is still the same file.
        if let Ok(file) = std::env::current_exe()
            && file_identity(&file).is_some_and(|id| Some(id) == file_identity(&self.shim))
        {
            return file;
        }
        format!("/proc/{}/exe", std::process::id()).into()
    }

    /// Runs a program until it exits, its time limit passes or `stop` is cancelled. No process of
    /// its tree is left when this returns.
    ///
    /// Dropping the future also ends the tree but does not wait for it; [`Launcher::wait_for_all`]
    /// does. A guard's tree lock is free only after that. The process that drops the future stays
    /// responsible for the project: the shim does not restore it.
    pub async fn run(&self, spec: CommandSpec, stop: &CancellationToken) -> FinishedProcess {
        let stop = stop.child_token();
        let _cancel_on_drop = stop.clone().drop_guard();
        let began = std::time::Instant::now();
        let (send_result, result) = oneshot::channel();
        // A separate task, because the tree must be ended even if the caller stops waiting.
        self.tasks
            .spawn(self.clone().supervise(spec, stop, send_result));
        // The sender is dropped when the runtime shuts down; the shims then finish on their own.
        result
            .await
            .unwrap_or_else(|_| FinishedProcess::cancelled(began.elapsed()))
    }

    #[cfg(target_os = "linux")]
    async fn supervise(
        self,
        mut spec: CommandSpec,
        stop: CancellationToken,
        send_result: oneshot::Sender<FinishedProcess>,
    ) {
        // A temporary directory for this program alone, removed when it ends.
        let tmp = match spec.confine {
            Some(_) => ScratchDir::short("t-"),
            None => Err(std::io::ErrorKind::Unsupported.into()),
        };
        let project = spec.guard.as_ref().and_then(|guard| guard.project.as_ref());
        if let (Some(confine), Some(caches), true) = (
            &mut spec.confine,
            &self.rules.private_caches,
            project.is_some_and(|project| project.is_single_run),
        ) && caches.is_dir()
        {
            confine.layered.get_or_insert_with(|| LayeredDir {
                dir: caches.clone(),
                saved: Vec::new(),
            });
        }
        let layer = spec
            .confine
            .as_ref()
            .and_then(|confine| confine.layered.as_ref());
        let layer = layer.and_then(|_| ScratchDir::new("l-").ok());
        let plan = match &tmp {
            Ok(tmp) => sandbox::plan_sandbox(
                &self.rules,
                &mut spec,
                tmp.path(),
                layer.as_ref().map(ScratchDir::path),
            ),
            Err(_) if spec.confine.is_none() => Ok(None),
            Err(error) => Err(StartError::Other {
                program: spec.program(),
                why: format!("there is no private temporary directory for it: {error}"),
            }),
        };
        let kind = spec.confine.as_ref().map(|confine| confine.kind);
        let record = kind.zip(
            spec.guard
                .as_ref()
                .and_then(|guard| guard.project.as_ref())
                .map(|p| p.record.clone()),
        );
        let (finished, child) = match plan {
            Ok(plan) => tree::run(&self.shim, spec, plan, stop).await,
            Err(error) => (FinishedProcess::not_started(error), None),
        };
        if let Some((kind, record)) = record
            && !matches!(finished.end, End::CouldNotStart(_))
        {
            record.note(kind, &finished.sandbox);
        }
        // Remove the directories before the caller learns that the program has ended.
        drop(tmp);
        if let Some(layer) = layer {
            layer.remove();
        }
        let _ = send_result.send(finished);
        if let Some(mut child) = child {
            let _ = child.wait().await;
        }
    }

    #[cfg(not(target_os = "linux"))]
    async fn supervise(
        self,
        spec: CommandSpec,
        stop: CancellationToken,
        send_result: oneshot::Sender<FinishedProcess>,
    ) {
        let _ = send_result.send(process_group::run(spec, stop).await);
    }

    /// Starts a process that restores the project if this server dies or drops the returned handle.
    #[cfg(target_os = "linux")]
    pub async fn watch(&self, guard: &ProjectGuard) -> Result<Watchdog, StartError> {
        Watchdog::start(&self.shim, guard, &self.tasks).await
    }

    #[cfg(not(target_os = "linux"))]
    pub async fn watch(&self, _: &ProjectGuard) -> Result<Watchdog, StartError> {
        Ok(Watchdog)
    }

    /// Waits until every tree has ended, including those whose caller no longer waits. The caller
    /// must not start new programs meanwhile.
    pub async fn wait_for_all(&self) {
        self.tasks.close();
        self.tasks.wait().await;
        self.tasks.reopen();
    }
}

fn file_identity(file: &std::path::Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(file)
        .ok()
        .map(|meta| (meta.dev(), meta.ino()))
}

/// Returns every mount point.
#[cfg(target_os = "linux")]
fn mount_points() -> Vec<std::path::PathBuf> {
    inner::mount_points()
}

/// Makes a write beyond the file-size limit fail with an error instead of killing the process with
/// a signal.
pub fn ignore_file_size_signal() {
    const SIGXFSZ: i32 = 25; // the same on every Unix; signal-hook has no constant for it
    let flag = std::sync::Arc::default();
    if let Err(e) = signal_hook::flag::register(SIGXFSZ, flag) {
        tracing::debug!("a file-size limit will end this process: {e}");
    }
}

/// Marks inherited descriptors close-on-exec, so that no child gets descriptors the client left
/// open. Must be called before anything is started.
pub fn close_inherited_fds_on_exec() {
    close_fds::set_fds_cloexec(3, &[]);
}

/// How a program ended. A time-out is a normal result, not an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    Exited(i32),
    /// Ended by a signal that we did not send, or by our kill if the shim was lost and its report
    /// with it.
    Signalled(i32),
    TimedOut,
    Cancelled,
    CouldNotStart(StartError),
}

/// Why a program could not be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    #[error("`{0}` was not found; install it, or put it on the PATH")]
    NotFound(String),
    #[error("`{0}` may not be executed")]
    NotExecutable(String),
    #[error("`{0}` is not a directory that a program can be started in")]
    NoDirectory(String),
    #[error(
        "`{program}` was not started, because the sandbox it must run in cannot be had here: {why}; set `mode = \"auto\"` \
         under [sandbox] to run it with less"
    )]
    NoSandbox { program: String, why: String },
    #[error("`{program}` could not be started: {why}")]
    Other { program: String, why: String },
}

/// The result of one run.
#[derive(Debug)]
pub struct FinishedProcess {
    pub end: End,
    pub stdout: CapturedOutput,
    pub stderr: CapturedOutput,
    pub took: Duration,
    /// Processes that were still alive when the leader exited, and that we killed.
    pub leaked: usize,
    /// Processes that could not be killed: another user's, or stuck in the kernel.
    pub survivors: usize,
    /// How the tree was contained.
    pub containment: Containment,
    /// The sandbox that was applied.
    pub sandbox: SandboxReport,
}

impl FinishedProcess {
    fn cancelled(took: Duration) -> Self {
        let (stdout, stderr) = (CapturedOutput::default(), CapturedOutput::default());
        let (containment, sandbox) = (Containment::HERE, SandboxReport::off());
        Self {
            end: End::Cancelled,
            stdout,
            stderr,
            took,
            leaked: 0,
            survivors: 0,
            containment,
            sandbox,
        }
    }

    #[cfg(target_os = "linux")]
    fn not_started(error: StartError) -> Self {
        Self {
            end: End::CouldNotStart(error),
            ..Self::cancelled(Duration::ZERO)
        }
    }
}

/// How completely a process tree can be contained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Containment {
    /// Every descendant, including those that started a new session (Linux).
    Tree,
    /// The process group only; a process that calls `setsid` escapes.
    Group,
}

impl Containment {
    /// The containment available on this system.
    pub const HERE: Self = if cfg!(target_os = "linux") {
        Self::Tree
    } else {
        Self::Group
    };
}

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
