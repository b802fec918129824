//! Non-blocking stdin and stdout for pipes and sockets, which clients use. Terminals, files and
//! everything else go through the runtime's blocking pool.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::net::{RecvFlags, SendFlags};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, Ready};

use super::outbox::OutboxSink;

/// Stdin and stdout of this process. Needs a running tokio runtime.
pub fn stdio() -> (ServerStdin, Stdout) {
    let input = Channel::open(std::io::stdin().as_fd(), OFlags::RDONLY, Interest::READABLE);
    let output = Channel::open(
        std::io::stdout().as_fd(),
        OFlags::WRONLY,
        Interest::WRITABLE,
    );
    (
        input.map_or_else(
            || ServerStdin::Blocking(tokio::io::stdin()),
            ServerStdin::Channel,
        ),
        output.map_or_else(|| Stdout::Blocking(tokio::io::stdout()), Stdout::Channel),
    )
}

#[derive(Debug)]
pub enum ServerStdin {
    Channel(Channel),
    Blocking(tokio::io::Stdin),
}

#[derive(Debug)]
pub enum Stdout {
    Channel(Channel),
    Blocking(tokio::io::Stdout),
}

/// A pipe or socket, read and written without blocking.
#[derive(Debug)]
pub struct Channel {
    fd: AsyncFd<OwnedFd>,
    kind: Kind,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Pipe,
    Socket,
}

impl Channel {
    /// `O_NONBLOCK` belongs to the open file description, so it would affect every process that
    /// shares it, such as the shell that started us. Pipes are therefore opened again. Sockets
    /// cannot be, but accept a non-blocking flag per call.
    fn open(fd: BorrowedFd<'_>, mode: OFlags, interest: Interest) -> Option<Self> {
        let (own, kind) = match FileType::from_raw_mode(rustix::fs::fstat(fd).ok()?.st_mode) {
            FileType::Fifo => {
                use std::os::fd::AsRawFd as _;
                let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
                let flags = mode | OFlags::NONBLOCK | OFlags::CLOEXEC;
                (
                    rustix::fs::open(path, flags, Mode::empty()).ok()?,
                    Kind::Pipe,
                )
            }
            FileType::Socket => (rustix::io::fcntl_dupfd_cloexec(fd, 3).ok()?, Kind::Socket),
            _ => return None,
        };
        #[expect(
            deprecated,
            reason = "its successor is `unsafe`, which matters only for types that give their fd away"
        )]
        let fd = AsyncFd::with_interest(own, interest).ok()?;
        Some(Self { fd, kind })
    }

    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let fd = self.fd.get_ref().as_fd();
        Ok(match self.kind {
            Kind::Pipe => rustix::io::read(fd, buffer)?,
            Kind::Socket => rustix::net::recv(fd, buffer, RecvFlags::DONTWAIT)?.0,
        })
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let fd = self.fd.get_ref().as_fd();
        Ok(match self.kind {
            Kind::Pipe => rustix::io::write(fd, bytes)?,
            Kind::Socket => {
                rustix::net::send(fd, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?
            }
        })
    }

    fn poll_read(&self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            match self.read(buffer.initialize_unfilled()) {
                Ok(count) => {
                    buffer.advance(count);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    ready!(self.fd.poll_read_ready(cx))?.clear_ready();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            // Try before asking for readiness, because `closed` consumes readiness.
            match self.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    ready!(self.fd.poll_write_ready(cx))?.clear_ready();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return Poll::Ready(done),
            }
        }
    }

    /// The hang-up is reported as its own event, even while nothing is written.
    async fn closed(&self) {
        loop {
            match self.fd.ready(Interest::WRITABLE).await {
                Ok(guard) if guard.ready().is_write_closed() => return,
                Ok(mut guard) => guard.clear_ready_matching(Ready::WRITABLE),
                Err(_) => return std::future::pending().await,
            }
        }
    }
}

impl AsyncRead for ServerStdin {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Channel(channel) => channel.poll_read(cx, buffer),
            Self::Blocking(stdin) => Pin::new(stdin).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Stdout {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Channel(channel) => channel.poll_write(cx, bytes),
            Self::Blocking(stdout) => Pin::new(stdout).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Channel(_) => Poll::Ready(Ok(())),
            Self::Blocking(stdout) => Pin::new(stdout).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Channel(_) => Poll::Ready(Ok(())),
            Self::Blocking(stdout) => Pin::new(stdout).poll_shutdown(cx),
        }
    }
}

impl OutboxSink for Stdout {
    async fn closed(&mut self) {
        match self {
            Self::Channel(channel) => channel.closed().await,
            Self::Blocking(_) => std::future::pending().await,
        }
    }
}
