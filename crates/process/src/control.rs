//! The server's end of one shim: started, given its order, heard, dismissed.

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

use super::protocol::{self, Descriptor, Order, Request, ShimReport};
use super::{Guard, environment, shim};

/// A started shim. Dropped without [`Control::dismiss`], it takes the server for dead and finishes alone.
///
/// A shim can be stopped at any moment, also while it leaves; and this process may end as soon as a call is answered. So
/// what ends or wakes a shim is done here and at once, never left to a task that may not be reached any more.
#[derive(Debug)]
pub(super) struct Control {
    // A SEQPACKET socket in the type for datagrams: only its readiness is used, packets go through `protocol`.
    socket: UnixDatagram,
    /// Names the shim for good, also after it has been reaped.
    process: OwnedFd,
    /// Its number, and that of its session, until it is reaped.
    pub(super) shim: Pid,
}

impl Control {
    /// Starts a shim; its stdout and stderr are what the command will write to.
    pub(super) fn start(shim: &Path, output: impl Fn() -> Stdio) -> io::Result<(Self, Child)> {
        let (ours, theirs) = protocol::pair()?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        let socket = UnixDatagram::from_std(ours.into())?;
        // No `pre_exec`: a fork of a large server takes 20 ms where posix_spawn takes less than one.
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

    pub(super) async fn order(
        &self,
        order: &Order,
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        for (i, packet) in order.packets().iter().enumerate() {
            self.send(packet, if i == 0 { descriptors } else { &[] })
                .await?;
        }
        Ok(())
    }

    pub(super) async fn ask(&self, request: Request) -> io::Result<()> {
        self.send(&request.packet(), &[]).await
    }

    /// What the shim says next; `None` when it is gone.
    pub(super) async fn report(&self) -> Option<ShimReport> {
        let received = self
            .socket
            .async_io(Interest::READABLE, || protocol::receive(&self.socket))
            .await;
        ShimReport::parse(&received.ok()?.0)
    }

    /// Sends the shim away. Returns when it has let go of its locks; it is killed then, because it has nothing left to do,
    /// and may have been stopped before it left or as it did.
    pub(super) async fn dismiss(&self) {
        /// It has nothing left to do but to leave.
        const LEAVE: Duration = Duration::from_secs(2);
        let gone = async {
            // If it cannot be told, it is gone.
            let _ = self.ask(Request::Bye).await;
            self.closed().await;
        };
        let _ = timeout(LEAVE, gone).await;
        self.kill();
        let _ = timeout(LEAVE, self.closed()).await;
    }

    /// Ends a shim that has nothing to finish, or does not answer.
    pub(super) fn kill(&self) {
        let _ = pidfd_send_signal(&self.process, Signal::KILL);
    }

    async fn closed(&self) {
        while self.report().await.is_some() {}
    }

    async fn send(&self, packet: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        self.socket
            .async_io(Interest::WRITABLE, || {
                protocol::send(&self.socket, packet, descriptors)
            })
            .await
    }
}

/// What was not dismissed has work to do, for which it must not be stopped.
impl Drop for Control {
    fn drop(&mut self) {
        let _ = pidfd_send_signal(&self.process, Signal::CONT);
    }
}

/// What a guard adds to an order.
#[derive(Debug, Default)]
pub(super) struct Pledge {
    descriptors: Vec<(Descriptor, Holding)>,
}

#[derive(Debug)]
enum Holding {
    Shared(std::sync::Arc<OwnedFd>),
    Own(OwnedFd),
}

impl AsFd for Holding {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Shared(fd) => fd.as_fd(),
            Self::Own(fd) => fd.as_fd(),
        }
    }
}

/// Whether a shim counts as a living tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Share {
    Tree,
    None,
}

impl Pledge {
    /// The locks of a guard. The tree lock is opened anew, because a lock belongs to an open file: with a shared one, the
    /// first shim that wants it alone would get it while others still have living trees.
    pub(super) fn of(guard: &Guard, share: Share) -> io::Result<Self> {
        let own = reopen(&guard.tree_lock)?;
        if share == Share::Tree {
            flock(&own, FlockOperation::NonBlockingLockShared).map_err(|e| match e {
                rustix::io::Errno::WOULDBLOCK => io::Error::other("the project is being restored"),
                e => e.into(),
            })?;
        }
        Ok(Self {
            descriptors: vec![
                (
                    Descriptor::ProjectLock,
                    Holding::Shared(guard.project_lock.clone()),
                ),
                (Descriptor::TreeLock, Holding::Own(own)),
            ],
        })
    }

    pub(super) fn add_stdin(&mut self, fd: OwnedFd) {
        self.descriptors.push((Descriptor::Stdin, Holding::Own(fd)));
    }

    pub(super) fn names(&self) -> Vec<Descriptor> {
        self.descriptors.iter().map(|(which, _)| *which).collect()
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
