//! The protocol between the server and a shim, over one SEQPACKET socket pair that is the shim's
//! stdin.
//!
//! The start request is sent in packets of 32 KiB, because a packet cannot exceed the socket buffer
//! and an environment alone can. Its descriptors travel with the first packet. Every later message
//! fits into one packet.

use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use super::sandbox::{SandboxPlan, SandboxReport};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

const CHUNK_BYTES: usize = 32 * 1024;
/// The command's stdin, the project lock and the tree lock.
const MAX_DESCRIPTORS: usize = 3;

/// The first message to a shim: what to run and what to recover.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StartRequest {
    /// `None`: run nothing, only watch over `recovery_dir`.
    pub(super) command: Option<Command>,
    /// Path that `on_orphaned` gets if the server dies.
    #[serde(with = "optional_path")]
    pub(super) recovery_dir: Option<PathBuf>,
    /// The descriptors sent along, in this order.
    pub(super) descriptors: Vec<Descriptor>,
}

/// A resolved program with everything that `execve` needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Command {
    #[serde(with = "path")]
    pub(super) program: PathBuf,
    pub(super) argv: Vec<OsString>,
    #[serde(with = "path")]
    pub(super) cwd: PathBuf,
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) grace: Duration,
    /// `None`: no sandbox.
    pub(super) sandbox: Option<SandboxPlan>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Descriptor {
    Stdin,
    ProjectLock,
    TreeLock,
}

/// From the server, after the start request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Request {
    /// End the process tree now.
    Stop,
    /// Nothing is left to do: release the locks and exit.
    Release,
}

/// From the shim to the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ShimReport {
    /// The command is running, in this sandbox.
    Started { sandbox: SandboxReport },
    /// The required sandbox is not available, so nothing was started.
    NoSandbox { why: String },
    /// The operating system refused to execute the program.
    ExecFailed { errno: i32 },
    /// The leader has ended and its tree is gone, except for `survivors` processes.
    Done {
        status: ChildStatus,
        cause: EndCause,
        leaked: u32,
        survivors: u32,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ChildStatus {
    Exited(i32),
    Signalled(i32),
}

/// Why the leader ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum EndCause {
    Exited,
    Requested,
}

/// Returns both ends, close-on-exec: an inherited server end would hide the server's death from the
/// shim.
pub(super) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

/// Sends one packet with descriptors.
pub(super) fn send(
    socket: impl AsFd,
    packet: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !rights.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("too many descriptors for one packet"));
    }
    loop {
        match rustix::net::sendmsg(
            &socket,
            &[IoSlice::new(packet)],
            &mut rights,
            SendFlags::NOSIGNAL,
        ) {
            Err(rustix::io::Errno::INTR) => {}
            other => return other.map(drop).map_err(Into::into),
        }
    }
}

/// Receives one packet. An empty one means that the other side is gone.
pub(super) fn receive(socket: impl AsFd) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut packet = vec![0; CHUNK_BYTES + 2];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut rights = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        let mut into = [IoSliceMut::new(&mut packet)];
        match rustix::net::recvmsg(&socket, &mut into, &mut rights, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            // The other side closed with unread packets; it is gone all the same.
            Err(rustix::io::Errno::CONNRESET) => return Ok((Vec::new(), Vec::new())),
            other => break other?,
        }
    };
    packet.truncate(received.bytes);
    let mut descriptors = Vec::new();
    for message in rights.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            descriptors.extend(fds);
        }
    }
    Ok((packet, descriptors))
}

impl StartRequest {
    /// Returns the packets to send. The descriptors belong to the first.
    pub(super) fn packets(&self) -> Vec<Vec<u8>> {
        let bytes = encode(self);
        let last = bytes.chunks(CHUNK_BYTES).count().saturating_sub(1);
        bytes
            .chunks(CHUNK_BYTES)
            .enumerate()
            .map(|(i, chunk)| [&[b'O', u8::from(i < last)], chunk].concat())
            .collect()
    }

    /// Receives a whole request. Returns `None` if the server went away first.
    pub(super) fn receive(socket: impl AsFd) -> io::Result<Option<(Self, Vec<OwnedFd>)>> {
        let (mut bytes, mut descriptors) = (Vec::new(), Vec::new());
        loop {
            let (packet, fds) = receive(&socket)?;
            descriptors.extend(fds);
            let (more, chunk) = match packet.as_slice() {
                [] => return Ok(None),
                [b'O', more, chunk @ ..] => (*more == 1, chunk),
                _ => return Err(malformed()),
            };
            bytes.extend_from_slice(chunk);
            if !more {
                let request = decode::<Self>(&bytes).ok_or_else(malformed)?;
                return if request.descriptors.len() == descriptors.len() {
                    Ok(Some((request, descriptors)))
                } else {
                    Err(malformed())
                };
            }
        }
    }
}

impl Request {
    pub(super) fn packet(self) -> Vec<u8> {
        encode(&self)
    }

    pub(super) fn parse(packet: &[u8]) -> Option<Self> {
        decode(packet)
    }
}

impl ShimReport {
    pub(super) fn packet(self) -> Vec<u8> {
        encode(&self)
    }

    pub(super) fn parse(packet: &[u8]) -> Option<Self> {
        decode(packet)
    }
}

fn malformed() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the control channel carried something else than an order",
    )
}

fn encode(message: &impl Serialize) -> Vec<u8> {
    postcard::to_stdvec(message).expect("messages are plain data, and a vector grows as needed")
}

/// Returns `None` unless the bytes are exactly one message. Both sides are the same binary, so
/// anything else is corrupt.
fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let (message, rest) = postcard::take_from_bytes(bytes).ok()?;
    rest.is_empty().then_some(message)
}

/// Serialises paths as `OsString`: serde's own implementation refuses paths that are not UTF-8.
mod path {
    use std::ffi::OsString;
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        path.as_os_str().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        OsString::deserialize(from).map(PathBuf::from)
    }
}

mod optional_path {
    use std::ffi::OsString;
    use std::path::PathBuf;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(
        clippy::ref_option,
        reason = "the signature that serde's `with` asks for"
    )]
    pub(super) fn serialize<S: Serializer>(
        path: &Option<PathBuf>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        path.as_ref().map(|path| path.as_os_str()).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<PathBuf>, D::Error> {
        Ok(Option::<OsString>::deserialize(from)?.map(PathBuf::from))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    fn request(env: usize) -> StartRequest {
        StartRequest {
            command: Some(Command {
                program: "/bin/true".into(),
                argv: vec!["true".into(), OsString::from_vec(vec![0xff, b'\n'])],
                cwd: "/".into(),
                env: (0..env)
                    .map(|i| (format!("V{i}").into(), "x".repeat(1000).into()))
                    .collect(),
                grace: Duration::from_millis(1234),
                sandbox: None,
            }),
            recovery_dir: Some(OsString::from_vec(b"/state/\xff/7".to_vec()).into()),
            descriptors: vec![Descriptor::Stdin, Descriptor::TreeLock],
        }
    }

    #[test]
    fn large_request_arrives_whole_with_descriptors() {
        let (ours, theirs) = pair().unwrap();
        let sent = request(2000);
        let (a, b) = rustix::pipe::pipe().unwrap();
        let reader = std::thread::spawn(move || StartRequest::receive(theirs).unwrap().unwrap());
        for (i, packet) in sent.packets().iter().enumerate() {
            let fds: &[_] = if i == 0 { &[a.as_fd(), b.as_fd()] } else { &[] };
            send(&ours, packet, fds).unwrap();
        }
        let (received, fds) = reader.join().unwrap();
        assert_eq!(received, sent);
        assert_eq!(fds.len(), 2);
    }

    #[test]
    fn incomplete_request_is_ignored() {
        let (ours, theirs) = pair().unwrap();
        send(&ours, &request(100).packets()[0], &[]).unwrap();
        drop(ours);
        assert!(StartRequest::receive(theirs).unwrap().is_none());
    }

    #[test]
    fn truncated_request_is_refused() {
        let bytes = encode(&request(3));
        for cut in 0..bytes.len() {
            assert_eq!(decode::<StartRequest>(&bytes[..cut]), None, "cut at {cut}");
        }
    }

    #[test]
    fn messages_round_trip() {
        for report in [
            ShimReport::ExecFailed { errno: 7 },
            ShimReport::Done {
                status: ChildStatus::Exited(-3),
                cause: EndCause::Exited,
                leaked: 3,
                survivors: 0,
            },
            ShimReport::Done {
                status: ChildStatus::Signalled(9),
                cause: EndCause::Requested,
                leaked: 0,
                survivors: 2,
            },
        ] {
            assert_eq!(ShimReport::parse(&report.clone().packet()), Some(report));
        }
        assert_eq!(ShimReport::parse(b""), None);
        let longer = [ShimReport::ExecFailed { errno: 7 }.packet(), vec![0]].concat();
        assert_eq!(ShimReport::parse(&longer), None, "more than one message");
        for request in [Request::Stop, Request::Release] {
            assert_eq!(Request::parse(&request.packet()), Some(request));
        }
    }
}
