//! The shim: this program again, as the parent of one command. It survives when the server is
//! killed, so there is always a process that ends the tree and finishes what the server could not.
//! It knows nothing about projects: the restore is passed in as a callback.
//!
//! Single-threaded, without a runtime. The command gets only three descriptors and the requested
//! environment, so the shim has nothing to leak.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, flock};
use rustix::net::SocketType;
use rustix::process::{Pid, PidfdFlags, Signal, WaitStatus, kill_process_group, pidfd_open};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use super::inner::{self, InnerReport};
use super::protocol::{
    self, ChildStatus, Command, Descriptor, EndCause, Request, ShimReport, StartRequest,
};
use super::sandbox::{NetworkReach, SandboxLevel, SandboxMode, SandboxPlan, SandboxReport};
use super::saved_files::SavedFiles;
use super::sweep::{self, SweepReport};

/// The hidden sub-command.
pub const COMMAND: &str = "shim";

/// Grace period between interrupt and kill when the server is gone: another caller may be waiting
/// for the project.
const ORPHANED_GRACE: Duration = Duration::from_millis(300);
/// Interval between heartbeats while the tree is alive.
const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(500);
/// Time limit for killing the tree; processes alive after it are reported as survivors.
const SWEEP_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, thiserror::Error)]
pub enum ShimError {
    #[error(
        "`{COMMAND}` is started by the server alone; run `supervisor --help` for the commands meant for people"
    )]
    NotStartedByServer,
    #[error("the shim could not take charge: {0}")]
    System(#[from] io::Error),
}

/// Handles one start request. `on_alive` is called regularly with the request's recovery path while
/// the tree is alive. `on_orphaned` is called if the server disappeared without a message, after
/// the tree has ended and while the project lock is still held.
pub fn run(
    mut on_alive: impl FnMut(&Path),
    on_orphaned: impl FnOnce(&Path),
) -> Result<(), ShimError> {
    let control = set_up_process()?;
    let Some((request, descriptors)) = StartRequest::receive(&control)? else {
        return Ok(());
    };
    let mut held = HeldDescriptors::default();
    for (kind, fd) in request.descriptors.iter().zip(descriptors) {
        match kind {
            Descriptor::Stdin => held.stdin = Some(fd),
            Descriptor::ProjectLock => held._project_lock = Some(fd),
            Descriptor::TreeLock => held.tree_lock = Some(fd),
        }
    }
    let stdin = held.stdin.take();
    let shutdown = match request.command {
        None => {
            detach_output()?;
            wait_for_shutdown(&control)
        }
        Some(command) => {
            let mut heartbeat = || {
                request
                    .recovery_dir
                    .iter()
                    .for_each(|recovery_dir| on_alive(recovery_dir));
            };
            supervise(&control, command, stdin, &mut heartbeat)
        }
    };
    if let (Shutdown::ServerGone, Some(recovery_dir)) = (shutdown, &request.recovery_dir) {
        // Other shims of this project may still be ending their trees; each holds a shared lock
        // until it is done.
        if let Some(lock) = &held.tree_lock {
            while flock(lock, FlockOperation::LockExclusive) == Err(rustix::io::Errno::INTR) {}
        }
        on_orphaned(recovery_dir);
    }
    // Close, never unlock: an unlock would release the lock for the server too. The server waits
    // for the control channel to close, so the locks go first.
    drop(held);
    drop(control);
    Ok(())
}

#[derive(Default)]
struct HeldDescriptors {
    stdin: Option<OwnedFd>,
    _project_lock: Option<OwnedFd>,
    tree_lock: Option<OwnedFd>,
}

/// How the connection to the server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shutdown {
    Dismissed,
    ServerGone,
}

/// Starts a session, becomes the subreaper of the tree and handles signals. Returns the control
/// channel.
fn set_up_process() -> Result<OwnedFd, ShimError> {
    let stdin = rustix::stdio::stdin();
    if rustix::net::sockopt::socket_type(stdin) != Ok(SocketType::SEQPACKET) {
        return Err(ShimError::NotStartedByServer);
    }
    super::close_inherited_fds_on_exec();
    // Handlers instead of SIG_IGN, because the command would inherit ignored signals. A shell that
    // starts us in the background makes us ignore SIGINT and SIGQUIT; with a handler the command
    // gets the default back.
    for signal in [SIGINT, SIGQUIT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    // Wakes us if the server dies while we are stopped. Otherwise the project would stay locked.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::CONT));
    let _ = rustix::process::setsid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(io::Error::from)?;
    // Do not keep any directory busy.
    let _ = rustix::process::chdir("/");
    let control = rustix::io::fcntl_dupfd_cloexec(stdin, 3).map_err(io::Error::from)?;
    rustix::stdio::dup2_stdin(null()?).map_err(io::Error::from)?;
    Ok(control)
}

fn null() -> io::Result<std::fs::File> {
    std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/null")
}

/// Closes our copies of the output pipes: they must close when the tree ends, not when we do.
fn detach_output() -> io::Result<()> {
    let null = null()?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(())
}

/// Runs the command, ends its whole tree, reports, and waits until the server lets us go.
fn supervise(
    control: &OwnedFd,
    command: Command,
    stdin: Option<OwnedFd>,
    heartbeat: &mut dyn FnMut(),
) -> Shutdown {
    let grace = command.grace;
    let layer = command
        .sandbox
        .as_ref()
        .and_then(|sandbox| sandbox.layered.as_ref());
    let saved = layer.map(SavedFiles::remember);
    let leader = spawn(command, stdin);
    // A failure is harmless: the server then waits for its drain timeout.
    let _ = detach_output();
    let leader = match leader {
        Ok((leader, sandbox)) => {
            send_report(control, ShimReport::Started { sandbox });
            leader
        }
        Err(NotStarted::ExecFailed(e)) => {
            send_report(
                control,
                ShimReport::ExecFailed {
                    errno: e.raw_os_error().unwrap_or(0),
                },
            );
            return wait_for_shutdown(control);
        }
        Err(NotStarted::NoSandbox(why)) => {
            send_report(control, ShimReport::NoSandbox { why });
            return wait_for_shutdown(control);
        }
    };
    let watched = match pidfd_open(leader, PidfdFlags::empty()) {
        Ok(watched) => watched,
        Err(e) => {
            sweep::kill_all(leader, SWEEP_TIMEOUT);
            send_report(
                control,
                ShimReport::ExecFailed {
                    errno: e.raw_os_error(),
                },
            );
            return wait_for_shutdown(control);
        }
    };
    let (cause, server_gone) = match wait_for_leader(Some(control), &watched, None, heartbeat) {
        WaitOutcome::LeaderEnded => (EndCause::Exited, false),
        WaitOutcome::Message(request) => (
            EndCause::Requested,
            interrupt(
                control,
                leader,
                &watched,
                grace,
                request.is_none(),
                heartbeat,
            ),
        ),
        WaitOutcome::TimedOut => unreachable!("no deadline was set"),
    };
    heartbeat();
    let swept = sweep::kill_all(leader, SWEEP_TIMEOUT);
    if let Some(saved) = saved {
        saved.save();
    }
    send_report(control, done_report(swept, cause));
    if server_gone {
        Shutdown::ServerGone
    } else {
        wait_for_shutdown(control)
    }
}

enum NotStarted {
    ExecFailed(io::Error),
    NoSandbox(String),
}

impl From<io::Error> for NotStarted {
    fn from(error: io::Error) -> Self {
        Self::ExecFailed(error)
    }
}

/// Starts the command in the strongest sandbox available, or without one if none is asked for.
fn spawn(command: Command, stdin: Option<OwnedFd>) -> Result<(Pid, SandboxReport), NotStarted> {
    let Some(sandbox) = command.sandbox.clone() else {
        return Ok((spawn_unsandboxed(command, stdin)?, SandboxReport::off()));
    };
    // With a weaker sandbox the child would work on other files than the server expects.
    let needs_namespaces = sandbox.overlay_holder.is_some()
        || !sandbox.replaced.is_empty()
        || sandbox.requires_network;
    let without_layer = sandbox.without_layer();
    let mut attempts = vec![(SandboxLevel::Namespaces, &sandbox)];
    attempts.extend(
        without_layer
            .as_ref()
            .map(|without_layer| (SandboxLevel::Namespaces, without_layer)),
    );
    if !needs_namespaces {
        attempts.push((
            SandboxLevel::Landlock,
            without_layer.as_ref().unwrap_or(&sandbox),
        ));
    }
    if sandbox.mode == SandboxMode::Require {
        attempts.truncate(1);
    }
    let mut errors: Vec<String> = Vec::new();
    for (level, sandbox) in attempts {
        let command = Command {
            sandbox: Some(SandboxPlan {
                level,
                ..sandbox.clone()
            }),
            ..command.clone()
        };
        let network = if level == SandboxLevel::Namespaces {
            sandbox.network
        } else {
            NetworkReach::Host
        };
        match spawn_inner(command, stdin.as_ref())? {
            Ok(leader) => {
                return Ok((
                    leader,
                    SandboxReport {
                        level,
                        network,
                        why: errors.join("; "),
                    },
                ));
            }
            // The same step may fail at every level.
            Err(error) if errors.contains(&error) => {}
            Err(error) => errors.push(error),
        }
    }
    if sandbox.mode == SandboxMode::Require || needs_namespaces {
        return Err(NotStarted::NoSandbox(errors.join("; ")));
    }
    let (level, network, why) = (SandboxLevel::None, NetworkReach::Host, errors.join("; "));
    Ok((
        spawn_unsandboxed(command, stdin)?,
        SandboxReport {
            level,
            network,
            why,
        },
    ))
}

fn spawn_unsandboxed(command: Command, stdin: Option<OwnedFd>) -> io::Result<Pid> {
    let mut argv = command.argv.into_iter();
    let mut child = std::process::Command::new(&command.program);
    if let Some(name) = argv.next() {
        child.arg0(name);
    }
    child
        .args(argv)
        .env_clear()
        .envs(command.env)
        .current_dir(&command.cwd);
    child
        .stdin(stdin.map_or_else(Stdio::null, Stdio::from))
        .stdout(Stdio::inherit())
        .stderr(Stdio::inherit());
    // Its own group, so that an interrupt reaches the command but not us. No `pre_exec`, to keep
    // using posix_spawn.
    let child = child.process_group(0).spawn()?;
    Ok(Pid::from_child(&child))
}

/// How long the inner process may take to become the command.
const INNER_TIMEOUT: Duration = Duration::from_secs(30);

/// Starts the inner process and waits until it has become the command. The inner `Err` says why the
/// sandbox failed.
fn spawn_inner(command: Command, stdin: Option<&OwnedFd>) -> io::Result<Result<Pid, String>> {
    let (ours, theirs) = protocol::pair()?;
    let mut child = std::process::Command::new("/proc/self/exe");
    child
        .arg0("supervisor")
        .arg(inner::COMMAND)
        .env_clear()
        .stdin(theirs);
    child
        .stdout(Stdio::inherit())
        .stderr(Stdio::inherit())
        .process_group(0);
    let mut started = child.spawn()?;
    // It holds a copy of the other end, which would keep the channel open.
    drop(child);
    let descriptors = stdin.map(|_| Descriptor::Stdin).into_iter().collect();
    let request = StartRequest {
        command: Some(command),
        recovery_dir: None,
        descriptors,
    };
    let fds: Vec<BorrowedFd<'_>> = stdin.iter().map(|fd| fd.as_fd()).collect();
    for (i, packet) in request.packets().iter().enumerate() {
        protocol::send(&ours, packet, if i == 0 { &fds } else { &[] })?;
    }
    let [answered] = poll_readable([ours.as_fd()], Some(INNER_TIMEOUT));
    let reply = if answered {
        protocol::receive(&ours)?.0
    } else {
        Vec::new()
    };
    let kill_and_reap = |started: &mut std::process::Child| {
        let _ = started.kill();
        let _ = started.wait();
    };
    if !answered {
        kill_and_reap(&mut started);
        return Ok(Err(String::from(
            "the process that puts up the walls does not answer",
        )));
    }
    match postcard::from_bytes(&reply) {
        _ if reply.is_empty() => Ok(Ok(Pid::from_child(&started))),
        Ok(InnerReport::SandboxFailed { why }) => {
            kill_and_reap(&mut started);
            Ok(Err(why))
        }
        Ok(InnerReport::ExecFailed { errno }) => {
            kill_and_reap(&mut started);
            Err(io::Error::from_raw_os_error(errno))
        }
        Err(_) => {
            kill_and_reap(&mut started);
            Ok(Err(String::from(
                "the process that puts up the walls said something unclear",
            )))
        }
    }
}

enum WaitOutcome {
    LeaderEnded,
    /// `None`: the server is gone.
    Message(Option<Request>),
    TimedOut,
}

/// Waits until the leader has ended, the server sends a message, or the time is up. Checks the
/// leader first: a request that comes too late does not change the result.
fn wait_for_leader(
    control: Option<&OwnedFd>,
    leader: &OwnedFd,
    until: Option<Instant>,
    heartbeat: &mut dyn FnMut(),
) -> WaitOutcome {
    loop {
        heartbeat();
        let remaining = until.map(|at| at.saturating_duration_since(Instant::now()));
        let timeout = Some(remaining.map_or(HEARTBEAT_INTERVAL, |remaining| {
            remaining.min(HEARTBEAT_INTERVAL)
        }));
        let (has_message, has_ended) = match control {
            Some(control) => {
                let [has_message, has_ended] =
                    poll_readable([control.as_fd(), leader.as_fd()], timeout);
                (has_message, has_ended)
            }
            None => (false, poll_readable([leader.as_fd()], timeout)[0]),
        };
        match (has_ended, control) {
            (true, _) => return WaitOutcome::LeaderEnded,
            (false, Some(control)) if has_message => {
                return WaitOutcome::Message(receive_request(control));
            }
            _ if remaining.is_some_and(|remaining| remaining.is_zero()) => {
                return WaitOutcome::TimedOut;
            }
            _ => {}
        }
    }
}

/// Asks the leader's group to end and waits for the leader, at most for the grace period. Returns
/// true if the server has gone away before or meanwhile.
///
/// The first half of the grace period is for SIGINT. It can get lost when a shell that is just
/// starting a program catches it. The second half is for SIGTERM. SIGCONT wakes stopped processes
/// each time so that they receive the signal.
fn interrupt(
    control: &OwnedFd,
    leader: Pid,
    watched: &OwnedFd,
    grace: Duration,
    mut server_gone: bool,
    heartbeat: &mut dyn FnMut(),
) -> bool {
    let began = Instant::now();
    for (signal, share) in [(Signal::INT, 2), (Signal::TERM, 1)] {
        let _ = kill_process_group(leader, signal);
        let _ = kill_process_group(leader, Signal::CONT);
        loop {
            let grace = if server_gone {
                grace.min(ORPHANED_GRACE)
            } else {
                grace
            } / share;
            // A closed channel is always ready, so stop polling it.
            let polled = (!server_gone).then_some(control);
            match wait_for_leader(polled, watched, began.checked_add(grace), heartbeat) {
                WaitOutcome::LeaderEnded => return server_gone,
                WaitOutcome::Message(Some(_)) => {}
                WaitOutcome::Message(None) => server_gone = true,
                WaitOutcome::TimedOut => break,
            }
        }
    }
    server_gone
}

fn wait_for_shutdown(control: &OwnedFd) -> Shutdown {
    loop {
        match receive_request(control) {
            Some(Request::Release) => return Shutdown::Dismissed,
            Some(Request::Stop) => {}
            None => return Shutdown::ServerGone,
        }
    }
}

/// Receives the next request; `None` when the server is gone. A malformed message counts as gone:
/// the tree must not outlive a broken channel.
fn receive_request(control: &OwnedFd) -> Option<Request> {
    let (packet, _) = protocol::receive(control).ok()?;
    Request::parse(&packet)
}

fn send_report(control: &OwnedFd, report: ShimReport) {
    // If the server is gone, the closed channel shows that too.
    let _ = protocol::send(control, &report.packet(), &[]);
}

fn done_report(swept: SweepReport, cause: EndCause) -> ShimReport {
    let status = match swept.leader {
        Some(status) => child_status(status),
        None => ChildStatus::Signalled(Signal::KILL.as_raw()),
    };
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let leaked = if cause == EndCause::Exited {
        count(swept.ended)
    } else {
        0
    };
    ShimReport::Done {
        status,
        cause,
        leaked,
        survivors: count(swept.survivors),
    }
}

fn child_status(status: WaitStatus) -> ChildStatus {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => ChildStatus::Exited(code),
        (None, signal) => ChildStatus::Signalled(signal.unwrap_or(Signal::KILL.as_raw())),
    }
}

/// Returns which descriptors are readable or closed, after at most `limit`. A signal ends the wait
/// early.
fn poll_readable<const N: usize>(fds: [BorrowedFd<'_>; N], limit: Option<Duration>) -> [bool; N] {
    let mut fds = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
    let woken = poll(&mut fds, limit.as_ref());
    fds.map(|fd| woken.is_ok() && !fd.revents().is_empty())
}
