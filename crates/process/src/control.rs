//! The server's connection to one shim: starts it, sends its request, reads its reports and
//! dismisses it.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::io::Interest;
use tokio::net::UnixDatagram;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::protocol::{self, Descriptor, Request, ShimReport, StartRequest};
use super::{ProjectGuard, environment, shim};

/// A running shim. If this is dropped without [`Control::dismiss`], the shim assumes that the
/// server died and finishes on its own.
///
/// A shim can be stopped (SIGSTOP) at any moment, even while it exits, and this process may exit as
/// soon as a call is answered. So killing or waking a shim happens here, synchronously, and is
/// never left to a task that may not get to run.
#[derive(Debug)]
pub(super) struct Control {
    // A SEQPACKET socket wrapped in the datagram type: only its readiness is used, packets go
    // through `protocol`.
    socket: UnixDatagram,
    /// A pidfd: it refers to the shim even after the shim has been reaped.
    process: OwnedFd,
    /// The pid and session id of the shim. Valid until it is reaped.
    pub(super) shim: Pid,
}

impl Control {
    /// Starts a shim. The command inherits the shim's stdout and stderr.
    pub(super) fn start(shim: &Path, output: impl Fn() -> Stdio) -> io::Result<(Self, Child)> {
        let (ours, theirs) = protocol::pair()?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        let socket = UnixDatagram::from_std(ours.into())?;
        // No `pre_exec`: forking a large server takes 20 ms, posix_spawn less than one.
        let mut command = Command::new(shim);
        command
            .arg0("supervisor")
            .arg(shim::COMMAND)
            .env_clear()
            .envs(environment::shim(std::env::vars_os()));
        command
            .stdin(Stdio::from(theirs))
            .stdout(output())
            .stderr(output());
        let mut child = command.spawn()?;
        let pid = child
            .id()
            .and_then(|pid| Pid::from_raw(pid.cast_signed()))
            .ok_or(rustix::io::Errno::SRCH);
        match pid.and_then(|pid| Ok((pid, pidfd_open(pid, PidfdFlags::empty())?))) {
            Ok((shim, process)) => Ok((
                Self {
                    socket,
                    process,
                    shim,
                },
                child,
            )),
            Err(e) => {
                let _ = child.start_kill();
                Err(e.into())
            }
        }
    }

    pub(super) async fn send_start(
        &self,
        request: &StartRequest,
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        for (i, packet) in request.packets().iter().enumerate() {
            self.send(packet, if i == 0 { descriptors } else { &[] })
                .await?;
        }
        Ok(())
    }

    pub(super) async fn send_request(&self, request: Request) -> io::Result<()> {
        self.send(&request.packet(), &[]).await
    }

    /// Waits for the next report. Returns `None` when the shim is gone.
    pub(super) async fn next_report(&self) -> Option<ShimReport> {
        let received = self
            .socket
            .async_io(Interest::READABLE, || protocol::receive(&self.socket))
            .await;
        ShimReport::parse(&received.ok()?.0)
    }

    /// Tells the shim to exit and returns when it has released its locks. It is killed afterwards
    /// in any case, because it may have been stopped before or during its exit.
    pub(super) async fn dismiss(&self) {
        /// Enough for a process that only has to exit.
        const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
        let released = async {
            // A failed send means that the shim is gone.
            let _ = self.send_request(Request::Release).await;
            self.wait_until_closed().await;
        };
        let _ = timeout(EXIT_TIMEOUT, released).await;
        self.kill();
        let _ = timeout(EXIT_TIMEOUT, self.wait_until_closed()).await;
    }

    /// Kills a shim that has nothing left to finish or does not answer.
    pub(super) fn kill(&self) {
        let _ = pidfd_send_signal(&self.process, Signal::KILL);
    }

    async fn wait_until_closed(&self) {
        while self.next_report().await.is_some() {}
    }

    async fn send(&self, packet: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        self.socket
            .async_io(Interest::WRITABLE, || {
                protocol::send(&self.socket, packet, descriptors)
            })
            .await
    }
}

/// A shim that was not dismissed has to finish on its own, so wake it in case it was stopped.
impl Drop for Control {
    fn drop(&mut self) {
        let _ = pidfd_send_signal(&self.process, Signal::CONT);
    }
}

/// The descriptors that a shim inherits with its start request.
#[derive(Debug, Default)]
pub(super) struct InheritedFds {
    descriptors: Vec<(Descriptor, InheritedFd)>,
}

#[derive(Debug)]
enum InheritedFd {
    Shared(std::sync::Arc<OwnedFd>),
    Owned(OwnedFd),
}

impl AsFd for InheritedFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Shared(fd) => fd.as_fd(),
            Self::Owned(fd) => fd.as_fd(),
        }
    }
}

/// Whether a shim takes a shared lock on the tree lock, that is, whether it counts as a running
/// tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TreeLockMode {
    Shared,
    Unlocked,
}

impl InheritedFds {
    /// Returns the locks of a guard. The tree lock is opened again, because a `flock` belongs to
    /// the open file description: with a shared one, the first shim that asks for an exclusive lock
    /// would get it while other trees are still running.
    pub(super) fn for_guard(guard: &ProjectGuard, share: TreeLockMode) -> io::Result<Self> {
        let tree_lock = reopen(&guard.tree_lock)?;
        if share == TreeLockMode::Shared {
            flock(&tree_lock, FlockOperation::NonBlockingLockShared).map_err(|e| match e {
                rustix::io::Errno::WOULDBLOCK => io::Error::other("the project is being restored"),
                e => e.into(),
            })?;
        }
        Ok(Self {
            descriptors: vec![
                (
                    Descriptor::ProjectLock,
                    InheritedFd::Shared(guard.project_lock.clone()),
                ),
                (Descriptor::TreeLock, InheritedFd::Owned(tree_lock)),
            ],
        })
    }

    pub(super) fn add_stdin(&mut self, fd: OwnedFd) {
        self.descriptors
            .push((Descriptor::Stdin, InheritedFd::Owned(fd)));
    }

    pub(super) fn kinds(&self) -> Vec<Descriptor> {
        self.descriptors.iter().map(|(kind, _)| *kind).collect()
    }

    pub(super) fn fds(&self) -> Vec<BorrowedFd<'_>> {
        self.descriptors.iter().map(|(_, fd)| fd.as_fd()).collect()
    }
}

fn reopen(fd: &OwnedFd) -> io::Result<OwnedFd> {
    use std::os::fd::AsRawFd;
    let path = OsString::from(format!("/proc/self/fd/{}", fd.as_raw_fd()));
    Ok(rustix::fs::open(
        path,
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
}
