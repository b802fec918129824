//! The inner process: this program once more, between the shim and the command. It puts up the walls around itself and
//! becomes the command, so that the command and all it starts stand inside them, and the shim stays free to restore.
//! Knows one set of walls. Does not know why they are as they are.
//!
//! One thread, no runtime: namespaces can be left only by a process without threads.

mod capabilities;
mod landlock;
mod layers;
mod loopback;
mod mounts;

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use nix::sched::CloneFlags;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::SocketType;
use serde::{Deserialize, Serialize};

use super::protocol::{self, Order};
use super::sandbox::{NetworkReach, SandboxLevel, Walls};
use super::shim::ShimError;

pub(super) use mounts::mount_points;

/// The hidden sub-command.
pub const COMMAND: &str = "inner";

/// What the inner process says before it ends. If it becomes the command it says nothing: the channel closes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum InnerReport {
    /// These walls cannot be put up here.
    Obstacle { why: String },
    /// The operating system refused the program.
    Refused { errno: i32 },
}

/// Why a wall cannot be put up. The message names the step.
#[derive(Debug, thiserror::Error)]
#[error("{step}: {source}")]
pub(super) struct Obstacle {
    step: String,
    source: io::Error,
}

impl Obstacle {
    pub(super) fn at(step: impl Into<String>) -> impl FnOnce(rustix::io::Errno) -> Self {
        let step = step.into();
        move |errno| Self {
            step,
            source: errno.into(),
        }
    }

    pub(super) fn new(
        step: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self {
            step: step.into(),
            source: io::Error::other(source),
        }
    }
}

/// Puts up the walls of one order and becomes its command. Returns only if that failed, which the shim has been told.
pub fn run() -> Result<(), ShimError> {
    let stdin = rustix::stdio::stdin();
    if rustix::net::sockopt::socket_type(stdin) != Ok(SocketType::SEQPACKET) {
        return Err(ShimError::NotForPeople);
    }
    let control = rustix::io::fcntl_dupfd_cloexec(stdin, 3).map_err(io::Error::from)?;
    let Some((order, descriptors)) = Order::receive(&control)? else {
        return Ok(());
    };
    let Some(command) = order.command else {
        return Ok(());
    };
    match descriptors.into_iter().next() {
        Some(input) => rustix::stdio::dup2_stdin(input),
        None => rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?),
    }
    .map_err(io::Error::from)?;
    if let Some(walls) = &command.walls
        && let Err(obstacle) = confine(walls)
    {
        tell(
            &control,
            &InnerReport::Obstacle {
                why: obstacle.to_string(),
            },
        );
        return Ok(());
    }
    let mut argv = command.argv.into_iter();
    let mut program = Command::new(&command.program);
    if let Some(name) = argv.next() {
        program.arg0(name);
    }
    if !end_with_shim(&control) {
        return Ok(());
    }
    // After the mounts: a directory that was entered before them would lead past them.
    let entered = rustix::process::chdir(&command.cwd).map_err(io::Error::from);
    let error = match entered {
        Ok(()) => program.args(argv).env_clear().envs(command.env).exec(),
        Err(error) => error,
    };
    tell(
        &control,
        &InnerReport::Refused {
            errno: error.raw_os_error().unwrap_or(0),
        },
    );
    Ok(())
}

/// From here on this process, also as the command, ends with the shim: what writes on after the shim's death could not be told
/// from the user. It is set last, since a change of rights takes it away. False if the shim has died already, however early:
/// its end of the channel is held by nothing else.
fn end_with_shim(control: &OwnedFd) -> bool {
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    !is_deserted(control)
}

fn is_deserted(control: &OwnedFd) -> bool {
    let mut watched = [PollFd::new(control, PollFlags::HUP)];
    let polled = rustix::event::poll(
        &mut watched,
        Some(&Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        }),
    );
    polled.is_ok() && watched[0].revents().contains(PollFlags::HUP)
}

fn confine(walls: &Walls) -> Result<(), Obstacle> {
    match walls.level {
        SandboxLevel::None => return Ok(()),
        SandboxLevel::Namespaces => {
            enter_namespaces(walls)?;
            let layered = mounts::arrange(walls)?;
            if walls.network == NetworkReach::Private {
                loopback::bring_up()?;
            }
            // The masks hide already; Landlock adds what mounts cannot hold.
            landlock::restrict(walls, &layered, landlock::Hiding::ByMasks)?;
        }
        SandboxLevel::Landlock => {
            if walls.network == NetworkReach::Private && walls.demand == super::SandboxMode::Require
            {
                return Err(Obstacle::new(
                    "a private network",
                    "needs a network namespace",
                ));
            }
            if walls.layered.is_some() {
                return Err(Obstacle::new(
                    "a layer over a directory",
                    "needs a mount namespace",
                ));
            }
            if !walls.replaced.is_empty() {
                return Err(Obstacle::new("a replaced file", "needs a mount namespace"));
            }
            landlock::restrict(walls, &[], landlock::Hiding::ByRules)?;
        }
    }
    capabilities::drop_dangerous()
}

fn enter_namespaces(walls: &Walls) -> Result<(), Obstacle> {
    let mut wanted = CloneFlags::CLONE_NEWNS;
    if walls.network == NetworkReach::Private {
        wanted |= CloneFlags::CLONE_NEWNET;
    }
    let refused = |step: &str| {
        let step = step.to_owned();
        move |errno: nix::errno::Errno| Obstacle {
            step,
            source: errno.into(),
        }
    };
    if let Some(view) = walls.view {
        super::view::enter(view)?;
        return nix::sched::unshare(wanted).map_err(refused("namespaces of its own"));
    }
    // The superuser needs no user namespace, and without one all owners of files stay what they are.
    if rustix::process::geteuid().is_root() && nix::sched::unshare(wanted).is_ok() {
        return Ok(());
    }
    enter_user_namespace(wanted)
}

/// A user namespace in which this user is the same as outside, and all others map to `nobody`.
pub(super) fn enter_user_namespace(besides: CloneFlags) -> Result<(), Obstacle> {
    let (user, group) = (
        rustix::process::geteuid().as_raw(),
        rustix::process::getegid().as_raw(),
    );
    nix::sched::unshare(besides | CloneFlags::CLONE_NEWUSER).map_err(|errno| Obstacle {
        step: String::from("a user namespace"),
        source: errno.into(),
    })?;
    let write = |file: &str, text: String| {
        std::fs::write(file, text).map_err(|source| Obstacle {
            step: format!("writing {file}"),
            source,
        })
    };
    write("/proc/self/setgroups", String::from("deny"))?;
    write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    write("/proc/self/gid_map", format!("{group} {group} 1"))
}

fn tell(control: &OwnedFd, report: &InnerReport) {
    let packet = postcard::to_stdvec(report).unwrap_or_default();
    let _ = protocol::send(control, &packet, &[]);
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketFlags, socketpair};

    use super::*;

    #[test]
    fn a_shim_that_died_at_any_time_is_noticed_by_its_end_of_the_channel() {
        let pair = || {
            socketpair(
                AddressFamily::UNIX,
                SocketType::SEQPACKET,
                SocketFlags::CLOEXEC,
                None,
            )
            .expect("a pair")
        };
        let (ours, theirs) = pair();
        assert!(!is_deserted(&ours));
        protocol::send(&theirs, b"an order", &[]).expect("it is sent");
        assert!(!is_deserted(&ours), "words that wait are no desertion");
        drop(theirs);
        assert!(is_deserted(&ours));
    }
}
