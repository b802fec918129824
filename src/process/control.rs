//! The server's end of one shim: started, given its order, heard, dismissed.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use tokio::io::Interest;
use tokio::net::UnixDatagram;
use tokio::process::{Child, Command};

use super::protocol::{self, Descriptor, Order, Request, ShimReport};
use super::{Guard, environment, shim};

/// A started shim. Dropped without [`Control::dismiss`], it takes the server for dead and finishes alone.
#[derive(Debug)]
pub(super) struct Control {
    // A SEQPACKET socket in the type for datagrams: only its readiness is used, packets go through `protocol`.
    socket: UnixDatagram,
}

impl Control {
    /// Starts a shim; its stdout and stderr are what the command will write to.
    pub(super) fn start(shim: &Path, output: impl Fn() -> Stdio) -> io::Result<(Self, Child)> {
        let (ours, theirs) = protocol::pair()?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        let socket = UnixDatagram::from_std(ours.into())?;
        // No `pre_exec`: a fork of a large server takes 20 ms where posix_spawn takes less than one.
        let mut command = Command::new(shim);
        command.arg0("supervisor").arg(shim::COMMAND).env_clear().envs(environment::shim(std::env::vars_os()));
        command.stdin(Stdio::from(theirs)).stdout(output()).stderr(output());
        let child = command.spawn()?;
        Ok((Self { socket }, child))
    }

    pub(super) async fn order(&self, order: &Order, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        for (i, packet) in order.packets().iter().enumerate() {
            self.send(packet, if i == 0 { descriptors } else { &[] }).await?;
        }
        Ok(())
    }

    pub(super) async fn ask(&self, request: Request) -> io::Result<()> {
        self.send(&request.packet(), &[]).await
    }

    /// What the shim says next; `None` when it is gone.
    pub(super) async fn report(&self) -> Option<ShimReport> {
        let received = self.socket.async_io(Interest::READABLE, || protocol::receive(&self.socket)).await;
        ShimReport::parse(&received.ok()?.0)
    }

    /// Sends the shim away and waits until it has let go of its locks. False if it does not leave: it is stopped or stuck.
    pub(super) async fn dismiss(&self) -> bool {
        /// It has nothing left to do but to leave.
        const LEAVE: Duration = Duration::from_secs(2);
        if self.ask(Request::Bye).await.is_err() {
            return true;
        }
        let gone = async { while self.report().await.is_some() {} };
        tokio::time::timeout(LEAVE, gone).await.is_ok()
    }

    async fn send(&self, packet: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        self.socket.async_io(Interest::WRITABLE, || protocol::send(&self.socket, packet, descriptors)).await
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
                (Descriptor::ProjectLock, Holding::Shared(guard.project_lock.clone())),
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
    Ok(rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}
