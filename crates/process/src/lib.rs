//! Starts a program with everything it may start, watches it, and ends the whole tree.
//! Knows argv, environments, pipes and signals. Does not know why a program is run.
//!
//! On Linux every command runs below a shim (see [`shim`]), which also outlives the server's death; elsewhere in a process
//! group, and the result says which of the two held.

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
mod protocol;
#[cfg(target_os = "linux")]
mod saved;
#[cfg(target_os = "linux")]
pub mod shim;
#[cfg(target_os = "linux")]
mod sweep;
#[cfg(target_os = "linux")]
mod tree;
#[cfg(target_os = "linux")]
pub mod view;
#[cfg(not(target_os = "linux"))]
#[path = "no_view.rs"]
mod view;
#[cfg(target_os = "linux")]
mod watch;
#[cfg(not(target_os = "linux"))]
#[path = "no_watch.rs"]
mod watch;

#[cfg(any(not(target_os = "linux"), test))]
mod plain;

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
pub use guard::Guard;
pub use lines::{LineSink, lines};
pub use relay::{RelayOutput, relay};
pub use resolve::which;
pub use sandbox::{
    ChildKind, Confinement, LayeredDir, NetworkReach, NetworkRule, SandboxLevel, SandboxMode,
    SandboxRecord, SandboxReport, SandboxRules, WalledProject, expand_home, explain_refusals,
};
pub use scratch::Scratch;
pub use spec::{Spec, Stdin};
pub use tag::{TAG_VARIABLE, Tag, sweep_tagged};
pub use view::{View, ViewError, ViewLayers};
pub use watch::Watch;

/// There is no shim on this system.
#[cfg(not(target_os = "linux"))]
pub fn run_if_shim() -> Option<ExitCode> {
    None
}

/// Starts programs. In the running server the shim is this very program; tests name the built one.
#[derive(Debug, Clone)]
pub struct Launcher {
    #[cfg_attr(
        not(target_os = "linux"),
        expect(dead_code, reason = "no shim without subreapers")
    )]
    shim: std::path::PathBuf,
    tending: TaskTracker,
    rules: Arc<SandboxRules>,
}

impl Launcher {
    /// This program is its own shim. `/proc/self/exe` stays right when the file is replaced or deleted meanwhile.
    pub fn this_program() -> Self {
        Self::at("/proc/self/exe")
    }

    /// Another program knows the shim's sub-command.
    pub fn at(shim: impl Into<std::path::PathBuf>) -> Self {
        Self {
            shim: shim.into(),
            tending: TaskTracker::new(),
            rules: Arc::default(),
        }
    }

    /// The same launcher, with these walls around what asks for them.
    #[must_use]
    pub fn under(&self, rules: SandboxRules) -> Self {
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

    /// This program as others can start it: `/proc/self/exe` would be the starting program.
    pub fn program(&self) -> std::path::PathBuf {
        if self.shim != std::path::Path::new("/proc/self/exe") {
            return self.shim.clone();
        }
        // Children inside walls may not look at this process, so the file itself is named while it is the same one.
        if let Ok(file) = std::env::current_exe()
            && identity(&file).is_some_and(|found| Some(found) == identity(&self.shim))
        {
            return file;
        }
        format!("/proc/{}/exe", std::process::id()).into()
    }

    /// Runs a program to its end, its limit or the stop token, whichever comes first; then nothing of it is left.
    ///
    /// Dropping the future ends the tree too, but does not wait for it: [`Launcher::settled`] does, and a guard's tree
    /// lock is free only then. The process that drops it keeps the charge of the project; the shim does not restore.
    pub async fn run(&self, spec: Spec, stop: &CancellationToken) -> FinishedProcess {
        let stop = stop.child_token();
        let _ends_with_us = stop.clone().drop_guard();
        let began = std::time::Instant::now();
        let (tell, told) = oneshot::channel();
        // A task of its own, because the tree must be ended also for a caller who no longer waits.
        self.tending.spawn(self.clone().tend(spec, stop, tell));
        // Not told: the runtime is going down, and the shims finish alone.
        told.await
            .unwrap_or_else(|_| FinishedProcess::cancelled(began.elapsed()))
    }

    #[cfg(target_os = "linux")]
    async fn tend(
        self,
        mut spec: Spec,
        stop: CancellationToken,
        tell: oneshot::Sender<FinishedProcess>,
    ) {
        // Private to this program, and gone with it.
        let tmp = match spec.confine {
            Some(_) => Scratch::short("t-"),
            None => Err(std::io::ErrorKind::Unsupported.into()),
        };
        let layer = spec
            .confine
            .as_ref()
            .and_then(|confine| confine.layered.as_ref());
        let layer = layer.and_then(|_| Scratch::new("l-").ok());
        let walls = match &tmp {
            Ok(tmp) => sandbox::build_walls(
                &self.rules,
                &mut spec,
                tmp.path(),
                layer.as_ref().map(Scratch::path),
            ),
            Err(_) if spec.confine.is_none() => Ok(None),
            Err(error) => Err(StartError::Other {
                program: spec.program(),
                why: format!("there is no private temporary directory for it: {error}"),
            }),
        };
        let noted = spec.confine.as_ref().map(|confine| confine.kind);
        let noted = noted.zip(
            spec.guard
                .as_ref()
                .and_then(|guard| guard.project.as_ref())
                .map(|p| p.record.clone()),
        );
        let (finished, child) = match walls {
            Ok(walls) => tree::run(&self.shim, spec, walls, stop).await,
            Err(error) => (FinishedProcess::not_started(error), None),
        };
        if let Some((kind, record)) = noted
            && !matches!(finished.end, End::CouldNotStart(_))
        {
            record.note(kind, &finished.sandbox);
        }
        // Nothing is left of it when its caller hears that it ended.
        drop(tmp);
        if let Some(layer) = layer {
            layer.remove();
        }
        let _ = tell.send(finished);
        if let Some(mut child) = child {
            let _ = child.wait().await;
        }
    }

    #[cfg(not(target_os = "linux"))]
    async fn tend(
        self,
        spec: Spec,
        stop: CancellationToken,
        tell: oneshot::Sender<FinishedProcess>,
    ) {
        let _ = tell.send(plain::run(spec, stop).await);
    }

    /// Starts a process beside an armed project that finishes what the ticket says should this server die or drop it.
    #[cfg(target_os = "linux")]
    pub async fn watch(&self, guard: &Guard) -> Result<Watch, StartError> {
        Watch::start(&self.shim, guard, &self.tending).await
    }

    #[cfg(not(target_os = "linux"))]
    pub async fn watch(&self, _: &Guard) -> Result<Watch, StartError> {
        Ok(Watch)
    }

    /// Waits until every tree has ended, also those whose caller no longer waits. No new one should be started.
    pub async fn settled(&self) {
        self.tending.close();
        self.tending.wait().await;
        self.tending.reopen();
    }
}

fn identity(file: &std::path::Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(file)
        .ok()
        .map(|meta| (meta.dev(), meta.ino()))
}

/// Every place where something is mounted now.
#[cfg(target_os = "linux")]
fn mount_points() -> Vec<std::path::PathBuf> {
    inner::mount_points()
}

/// Lets a write beyond a file-size limit fail with an error, which is handled, instead of with a signal, which is not.
pub fn survive_file_size_limits() {
    const SIGXFSZ: i32 = 25; // on every Unix; signal-hook has no name for it
    let noticed = std::sync::Arc::default();
    if let Err(e) = signal_hook::flag::register(SIGXFSZ, noticed) {
        tracing::debug!("a file-size limit will end this process: {e}");
    }
}

/// Keeps what this process was started with to itself: a client may have left descriptors open that it did not mention,
/// and no child shall hold them. Called first thing, before anything is started.
pub fn keep_inherited_descriptors() {
    close_fds::set_fds_cloexec(3, &[]);
}

/// How a program ended. A time-out is an answer, not an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    Exited(i32),
    /// By a signal not sent here; also by our kill, if the shim was lost and no more is known.
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
    NoWalls { program: String, why: String },
    #[error("`{program}` could not be started: {why}")]
    Other { program: String, why: String },
}

/// Everything seen of one run.
#[derive(Debug)]
pub struct FinishedProcess {
    pub end: End,
    pub stdout: CapturedOutput,
    pub stderr: CapturedOutput,
    pub took: Duration,
    /// Processes that were still there when the leader had ended, and were ended by us.
    pub leaked: usize,
    /// Processes that could not be ended: another user's, or stuck in the kernel.
    pub left: usize,
    /// How firmly the tree was held.
    pub containment: Containment,
    /// Which walls stood around it.
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
            left: 0,
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

/// How firmly a tree can be held on this system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Containment {
    /// Every descendant, also those that left the session (Linux).
    Tree,
    /// The process group only; what calls `setsid` escapes.
    Group,
}

impl Containment {
    /// What this system offers.
    pub const HERE: Self = if cfg!(target_os = "linux") {
        Self::Tree
    } else {
        Self::Group
    };
}
