//! The inner process: this program again, between the shim and the command. It applies the sandbox
//! to itself and then executes the command, so the command and everything it starts are sandboxed
//! while the shim stays free to restore.
//!
//! Single-threaded and without a runtime: only a process without threads can change its namespaces.

mod capabilities;
mod keyring;
mod landlock;
mod loopback;
mod mounts;
mod overlays;

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use nix::sched::CloneFlags;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::SocketType;
use serde::{Deserialize, Serialize};

use super::protocol::{self, StartRequest};
use super::sandbox::{NetworkReach, SandboxLevel, SandboxPlan};
use super::shim::ShimError;

pub(super) use mounts::mount_points;

/// The hidden sub-command.
pub const COMMAND: &str = "inner";

/// A report of the inner process before it exits. It sends nothing if it becomes the command: the
/// channel closes on exec.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum InnerReport {
    /// The sandbox cannot be applied on this system.
    SandboxFailed { why: String },
    /// The operating system refused to execute the program.
    ExecFailed { errno: i32 },
}

/// Why the sandbox cannot be applied. The message names the step that failed.
#[derive(Debug, thiserror::Error)]
#[error("{step}: {source}")]
pub(super) struct SandboxError {
    step: String,
    source: io::Error,
}

impl SandboxError {
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

/// Applies the sandbox of one request and executes its command. Returns only on failure, after
/// reporting it to the shim.
pub fn run() -> Result<(), ShimError> {
    let stdin = rustix::stdio::stdin();
    if rustix::net::sockopt::socket_type(stdin) != Ok(SocketType::SEQPACKET) {
        return Err(ShimError::NotStartedByServer);
    }
    let control = rustix::io::fcntl_dupfd_cloexec(stdin, 3).map_err(io::Error::from)?;
    let Some((request, descriptors)) = StartRequest::receive(&control)? else {
        return Ok(());
    };
    let Some(command) = request.command else {
        return Ok(());
    };
    match descriptors.into_iter().next() {
        Some(input) => rustix::stdio::dup2_stdin(input),
        None => rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?),
    }
    .map_err(io::Error::from)?;
    if let Some(sandbox) = &command.sandbox
        && let Err(error) = apply_sandbox(sandbox)
    {
        send_report(
            &control,
            &InnerReport::SandboxFailed {
                why: error.to_string(),
            },
        );
        return Ok(());
    }
    let mut argv = command.argv.into_iter();
    let mut program = Command::new(&command.program);
    if let Some(name) = argv.next() {
        program.arg0(name);
    }
    if !die_with_shim(&control) {
        return Ok(());
    }
    // After the mounts: a directory entered before them would bypass them.
    let changed_dir = rustix::process::chdir(&command.cwd).map_err(io::Error::from);
    let error = match changed_dir {
        Ok(()) => program.args(argv).env_clear().envs(command.env).exec(),
        Err(error) => error,
    };
    send_report(
        &control,
        &InnerReport::ExecFailed {
            errno: error.raw_os_error().unwrap_or(0),
        },
    );
    Ok(())
}

/// Makes this process die with the shim, also after it has become the command: writes after the
/// shim's death could not be told from the user's own. Set last, because a change of credentials
/// clears it. Returns false if the shim is already dead. This is reliable because nothing else
/// holds the shim's end of the channel.
fn die_with_shim(control: &OwnedFd) -> bool {
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    !is_shim_gone(control)
}

fn is_shim_gone(control: &OwnedFd) -> bool {
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

fn apply_sandbox(sandbox: &SandboxPlan) -> Result<(), SandboxError> {
    match sandbox.level {
        SandboxLevel::None => return Ok(()),
        SandboxLevel::Namespaces => {
            enter_namespaces(sandbox)?;
            let layered = mounts::set_up(sandbox)?;
            if sandbox.network == NetworkReach::Private {
                loopback::bring_up()?;
            }
            // The masks already hide secrets; Landlock adds rules that mounts cannot express.
            landlock::restrict(sandbox, &layered, landlock::Hiding::ByMasks)?;
        }
        SandboxLevel::Landlock => {
            if sandbox.network == NetworkReach::Private
                && sandbox.mode == super::SandboxMode::Require
            {
                return Err(SandboxError::new(
                    "a private network",
                    "needs a network namespace",
                ));
            }
            if sandbox.layered.is_some() {
                return Err(SandboxError::new(
                    "a layer over a directory",
                    "needs a mount namespace",
                ));
            }
            if !sandbox.replaced.is_empty() {
                return Err(SandboxError::new(
                    "a replaced file",
                    "needs a mount namespace",
                ));
            }
            landlock::restrict(sandbox, &[], landlock::Hiding::ByRules)?;
        }
    }
    if sandbox.isolates_memory {
        keyring::deny()?;
    }
    capabilities::drop_dangerous()
}

fn enter_namespaces(sandbox: &SandboxPlan) -> Result<(), SandboxError> {
    let mut flags = CloneFlags::CLONE_NEWNS;
    if sandbox.network == NetworkReach::Private {
        flags |= CloneFlags::CLONE_NEWNET;
    }
    if sandbox.isolates_memory {
        flags |= CloneFlags::CLONE_NEWIPC;
    }
    let failed = |step: &str| {
        let step = step.to_owned();
        move |errno: nix::errno::Errno| SandboxError {
            step,
            source: errno.into(),
        }
    };
    if let Some(holder) = sandbox.overlay_holder {
        super::overlay::join_namespaces(holder)?;
        return nix::sched::unshare(flags).map_err(failed("namespaces of its own"));
    }
    // Root needs no user namespace, and without one file owners stay as they are.
    if rustix::process::geteuid().is_root() && nix::sched::unshare(flags).is_ok() {
        return Ok(());
    }
    enter_user_namespace(flags)
}

/// Enters a user namespace in which this user keeps its id and all others map to `nobody`.
pub(super) fn enter_user_namespace(extra_flags: CloneFlags) -> Result<(), SandboxError> {
    let (user, group) = (
        rustix::process::geteuid().as_raw(),
        rustix::process::getegid().as_raw(),
    );
    nix::sched::unshare(extra_flags | CloneFlags::CLONE_NEWUSER).map_err(|errno| SandboxError {
        step: String::from("a user namespace"),
        source: errno.into(),
    })?;
    let write = |file: &str, text: String| {
        std::fs::write(file, text).map_err(|source| SandboxError {
            step: format!("writing {file}"),
            source,
        })
    };
    write("/proc/self/setgroups", String::from("deny"))?;
    write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    write("/proc/self/gid_map", format!("{group} {group} 1"))
}

fn send_report(control: &OwnedFd, report: &InnerReport) {
    let packet = postcard::to_stdvec(report).unwrap_or_default();
    let _ = protocol::send(control, &packet, &[]);
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketFlags, socketpair};

    use super::*;

    #[test]
    fn shim_death_closes_the_channel() {
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
        assert!(!is_shim_gone(&ours));
        protocol::send(&theirs, b"an order", &[]).expect("it is sent");
        assert!(
            !is_shim_gone(&ours),
            "unread messages do not mean that the shim is gone"
        );
        drop(theirs);
        assert!(is_shim_gone(&ours));
    }
}
