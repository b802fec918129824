//! The shim: this program again, as the parent of one command. It outlives the server when that is killed, so there is
//! always a process to end the tree and to finish what the server could not.
//! Knows one order and its own descendants. Does not know what a project is: the restore is handed to it.
//!
//! One thread, no runtime, and nothing it could leak: the command gets three descriptors and the order's environment.

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
    self, Because, ChildStatus, Command, Descriptor, Order, Request, ShimReport,
};
use super::sandbox::{NetworkReach, SandboxLevel, SandboxMode, SandboxReport, Walls};
use super::saved::SavedFiles;
use super::sweep::{self, SweepReport};

/// The hidden sub-command.
pub const COMMAND: &str = "shim";

/// Between interrupt and kill when the server is gone: a caller may be waiting for the project.
const ORPHANED_GRACE: Duration = Duration::from_millis(300);
/// Between two signs of life of a tree.
const ALIVE: Duration = Duration::from_millis(500);
/// How long the sweep may take before what is left is reported as left.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, thiserror::Error)]
pub enum ShimError {
    #[error(
        "`{COMMAND}` is started by the server alone; run `supervisor --help` for the commands meant for people"
    )]
    NotForPeople,
    #[error("the shim could not take charge: {0}")]
    System(#[from] io::Error),
}

/// Runs one order to its end. `on_alive` is called with the order's ticket every now and then as long as the tree lives;
/// `on_orphaned` when the server went away without a word, after the tree has ended and while the project's lock is still
/// held.
pub fn run(
    mut on_alive: impl FnMut(&Path),
    on_orphaned: impl FnOnce(&Path),
) -> Result<(), ShimError> {
    let control = take_charge()?;
    let Some((order, descriptors)) = Order::receive(&control)? else {
        return Ok(());
    };
    let mut held = HeldDescriptors::default();
    for (which, fd) in order.descriptors.iter().zip(descriptors) {
        match which {
            Descriptor::Stdin => held.stdin = Some(fd),
            Descriptor::ProjectLock => held._project_lock = Some(fd),
            Descriptor::TreeLock => held.tree_lock = Some(fd),
        }
    }
    let stdin = held.stdin.take();
    let parting = match order.command {
        None => {
            forget_output()?;
            wait_for_parting(&control)
        }
        Some(command) => {
            let mut tell_alive = || order.ticket.iter().for_each(|ticket| on_alive(ticket));
            tend(&control, command, stdin, &mut tell_alive)
        }
    };
    if let (Parting::Deserted, Some(ticket)) = (parting, &order.ticket) {
        // Other shims of this project may still be ending their trees; each holds its share until it has.
        if let Some(lock) = &held.tree_lock {
            while flock(lock, FlockOperation::LockExclusive) == Err(rustix::io::Errno::INTR) {}
        }
        on_orphaned(ticket);
    }
    // Closed, never unlocked: an unlock would take the lock from the server too. The server waits for the control
    // channel to close, so the locks go first.
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

/// How the server took its leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parting {
    Dismissed,
    Deserted,
}

/// A session of our own, every orphan of the tree ours, and signals that do not end us.
fn take_charge() -> Result<OwnedFd, ShimError> {
    let stdin = rustix::stdio::stdin();
    if rustix::net::sockopt::socket_type(stdin) != Ok(SocketType::SEQPACKET) {
        return Err(ShimError::NotForPeople);
    }
    super::keep_inherited_descriptors();
    // Handlers, not SIG_IGN: what is ignored here would be ignored by the command too. A shell that starts us in the
    // background has us ignore SIGINT and SIGQUIT; with a handler the command gets the default back.
    for signal in [SIGINT, SIGQUIT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    // Should the server die while we are stopped: there is work to do. Without this the project would stay locked.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::CONT));
    let _ = rustix::process::setsid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(io::Error::from)?;
    // No directory is kept busy by us.
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

/// The output pipes belong to the command: their end is the end of the tree, not ours.
fn forget_output() -> io::Result<()> {
    let null = null()?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(())
}

/// Runs the command, ends its tree in any case, reports, and waits to be sent away.
fn tend(
    control: &OwnedFd,
    command: Command,
    stdin: Option<OwnedFd>,
    tell_alive: &mut dyn FnMut(),
) -> Parting {
    let grace = command.grace;
    let layer = command
        .walls
        .as_ref()
        .and_then(|walls| walls.layered.as_ref());
    let saved = layer.map(SavedFiles::remember);
    let leader = spawn(command, stdin);
    // Failing here is harmless: the server then waits for its drain to time out.
    let _ = forget_output();
    let leader = match leader {
        Ok((leader, walls)) => {
            report(control, ShimReport::Started { walls });
            leader
        }
        Err(NotStarted::Refused(e)) => {
            report(
                control,
                ShimReport::Refused {
                    errno: e.raw_os_error().unwrap_or(0),
                },
            );
            return wait_for_parting(control);
        }
        Err(NotStarted::NoWalls(why)) => {
            report(control, ShimReport::NoWalls { why });
            return wait_for_parting(control);
        }
    };
    let watched = match pidfd_open(leader, PidfdFlags::empty()) {
        Ok(watched) => watched,
        Err(e) => {
            sweep::end_all(leader, PATIENCE);
            report(
                control,
                ShimReport::Refused {
                    errno: e.raw_os_error(),
                },
            );
            return wait_for_parting(control);
        }
    };
    let (because, deserted) = match wait_for_leader(Some(control), &watched, None, tell_alive) {
        WaitOutcome::LeaderEnded => (Because::ItWasDone, false),
        WaitOutcome::Heard(request) => (
            Because::WeAsked,
            interrupt(
                control,
                leader,
                &watched,
                grace,
                request.is_none(),
                tell_alive,
            ),
        ),
        WaitOutcome::TimeUp => unreachable!("no time was set"),
    };
    tell_alive();
    let swept = sweep::end_all(leader, PATIENCE);
    if let Some(saved) = saved {
        saved.save();
    }
    report(control, done(swept, because));
    if deserted {
        Parting::Deserted
    } else {
        wait_for_parting(control)
    }
}

enum NotStarted {
    Refused(io::Error),
    NoWalls(String),
}

impl From<io::Error> for NotStarted {
    fn from(error: io::Error) -> Self {
        Self::Refused(error)
    }
}

/// Starts the command inside the strongest walls that can be put up, or free if none are wanted.
fn spawn(command: Command, stdin: Option<OwnedFd>) -> Result<(Pid, SandboxReport), NotStarted> {
    let Some(walls) = command.walls.clone() else {
        return Ok((spawn_free(command, stdin)?, SandboxReport::off()));
    };
    // With less, the child would work on something else than the server believes.
    let needs_namespaces = walls.view.is_some() || !walls.replaced.is_empty();
    let lesser = walls.without_layer();
    let mut rungs = vec![(SandboxLevel::Namespaces, &walls)];
    rungs.extend(
        lesser
            .as_ref()
            .map(|lesser| (SandboxLevel::Namespaces, lesser)),
    );
    if !needs_namespaces {
        rungs.push((SandboxLevel::Landlock, lesser.as_ref().unwrap_or(&walls)));
    }
    if walls.demand == SandboxMode::Require {
        rungs.truncate(1);
    }
    let mut obstacles: Vec<String> = Vec::new();
    for (level, walls) in rungs {
        let command = Command {
            walls: Some(Walls {
                level,
                ..walls.clone()
            }),
            ..command.clone()
        };
        let network = if level == SandboxLevel::Namespaces {
            walls.network
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
                        why: obstacles.join("; "),
                    },
                ));
            }
            // The same step may stand in the way of each.
            Err(obstacle) if obstacles.contains(&obstacle) => {}
            Err(obstacle) => obstacles.push(obstacle),
        }
    }
    if walls.demand == SandboxMode::Require || needs_namespaces {
        return Err(NotStarted::NoWalls(obstacles.join("; ")));
    }
    let (level, network, why) = (SandboxLevel::None, NetworkReach::Host, obstacles.join("; "));
    Ok((
        spawn_free(command, stdin)?,
        SandboxReport {
            level,
            network,
            why,
        },
    ))
}

fn spawn_free(command: Command, stdin: Option<OwnedFd>) -> io::Result<Pid> {
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
    // Its own group, so that an interrupt reaches what belongs to it and not us. No `pre_exec`: this stays posix_spawn.
    let child = child.process_group(0).spawn()?;
    Ok(Pid::from_child(&child))
}

/// An inner process is told once what to become; this long may pass until it is.
const BECOMING: Duration = Duration::from_secs(30);

/// Starts the inner process and waits until it has become the command. The inner error says why it could not.
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
    // It keeps our copy of the other end, and we would never see that one close.
    drop(child);
    let descriptors = stdin.map(|_| Descriptor::Stdin).into_iter().collect();
    let order = Order {
        command: Some(command),
        ticket: None,
        descriptors,
    };
    let handed: Vec<BorrowedFd<'_>> = stdin.iter().map(|fd| fd.as_fd()).collect();
    for (i, packet) in order.packets().iter().enumerate() {
        protocol::send(&ours, packet, if i == 0 { &handed } else { &[] })?;
    }
    let [answered] = ready([ours.as_fd()], Some(BECOMING));
    let said = if answered {
        protocol::receive(&ours)?.0
    } else {
        Vec::new()
    };
    let ended = |started: &mut std::process::Child| {
        let _ = started.kill();
        let _ = started.wait();
    };
    if !answered {
        ended(&mut started);
        return Ok(Err(String::from(
            "the process that puts up the walls does not answer",
        )));
    }
    match postcard::from_bytes(&said) {
        _ if said.is_empty() => Ok(Ok(Pid::from_child(&started))),
        Ok(InnerReport::Obstacle { why }) => {
            ended(&mut started);
            Ok(Err(why))
        }
        Ok(InnerReport::Refused { errno }) => {
            ended(&mut started);
            Err(io::Error::from_raw_os_error(errno))
        }
        Err(_) => {
            ended(&mut started);
            Ok(Err(String::from(
                "the process that puts up the walls said something unclear",
            )))
        }
    }
}

enum WaitOutcome {
    LeaderEnded,
    /// `None`: the server is gone.
    Heard(Option<Request>),
    TimeUp,
}

/// Until the leader has ended, the server says something, or the time is up. The leader's end is looked at first:
/// a request that comes too late does not change what happened.
fn wait_for_leader(
    control: Option<&OwnedFd>,
    leader: &OwnedFd,
    until: Option<Instant>,
    tell_alive: &mut dyn FnMut(),
) -> WaitOutcome {
    loop {
        tell_alive();
        let left = until.map(|at| at.saturating_duration_since(Instant::now()));
        let moment = Some(left.map_or(ALIVE, |left| left.min(ALIVE)));
        let (heard, ended) = match control {
            Some(control) => {
                let [heard, ended] = ready([control.as_fd(), leader.as_fd()], moment);
                (heard, ended)
            }
            None => (false, ready([leader.as_fd()], moment)[0]),
        };
        match (ended, control) {
            (true, _) => return WaitOutcome::LeaderEnded,
            (false, Some(control)) if heard => return WaitOutcome::Heard(hear(control)),
            _ if left.is_some_and(|left| left.is_zero()) => return WaitOutcome::TimeUp,
            _ => {}
        }
    }
}

/// Asks the leader's group to end and waits for the leader, for the grace at most. True if the server has gone away,
/// before or meanwhile.
///
/// Half of the grace is for the interrupt. It can get lost: a shell that was just starting a program has caught it, and the
/// program never saw it. The other half is for a SIGTERM. What is stopped is woken each time, to hear it.
fn interrupt(
    control: &OwnedFd,
    leader: Pid,
    watched: &OwnedFd,
    grace: Duration,
    mut deserted: bool,
    tell_alive: &mut dyn FnMut(),
) -> bool {
    let began = Instant::now();
    for (signal, share) in [(Signal::INT, 2), (Signal::TERM, 1)] {
        let _ = kill_process_group(leader, signal);
        let _ = kill_process_group(leader, Signal::CONT);
        loop {
            let grace = if deserted {
                grace.min(ORPHANED_GRACE)
            } else {
                grace
            } / share;
            // Once deserted, nothing more will be said, and a closed channel is always ready.
            let heard_from = (!deserted).then_some(control);
            match wait_for_leader(heard_from, watched, began.checked_add(grace), tell_alive) {
                WaitOutcome::LeaderEnded => return deserted,
                WaitOutcome::Heard(Some(_)) => {}
                WaitOutcome::Heard(None) => deserted = true,
                WaitOutcome::TimeUp => break,
            }
        }
    }
    deserted
}

fn wait_for_parting(control: &OwnedFd) -> Parting {
    loop {
        match hear(control) {
            Some(Request::Bye) => return Parting::Dismissed,
            Some(Request::End) => {}
            None => return Parting::Deserted,
        }
    }
}

/// What the server says next; `None` when it is gone. Nonsense counts as gone: the tree must not outlive a broken channel.
fn hear(control: &OwnedFd) -> Option<Request> {
    let (packet, _) = protocol::receive(control).ok()?;
    Request::parse(&packet)
}

fn report(control: &OwnedFd, report: ShimReport) {
    // A server that is gone cannot be told; the channel's end says so too.
    let _ = protocol::send(control, &report.packet(), &[]);
}

fn done(swept: SweepReport, because: Because) -> ShimReport {
    let status = match swept.leader {
        Some(status) => told(status),
        None => ChildStatus::Signalled(Signal::KILL.as_raw()),
    };
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let leaked = if because == Because::ItWasDone {
        count(swept.ended)
    } else {
        0
    };
    ShimReport::Done {
        status,
        because,
        leaked,
        left: count(swept.left),
    }
}

fn told(status: WaitStatus) -> ChildStatus {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => ChildStatus::Exited(code),
        (None, signal) => ChildStatus::Signalled(signal.unwrap_or(Signal::KILL.as_raw())),
    }
}

/// Which of these can be read or has ended, after at most `limit`. A signal only wakes us.
fn ready<const N: usize>(fds: [BorrowedFd<'_>; N], limit: Option<Duration>) -> [bool; N] {
    let mut fds = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
    let woken = poll(&mut fds, limit.as_ref());
    fds.map(|fd| woken.is_ok() && !fd.revents().is_empty())
}
