//! What the server and a shim say to each other, over one SEQPACKET socket pair that is the shim's stdin.
//! Knows packets and descriptors. Does not know when which of them is right to send.
//!
//! The order travels in packets of 32 KiB, because one packet may not outgrow the socket's buffer and an environment
//! alone can; its descriptors ride on the first. Everything after it fits one packet.

use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use super::sandbox::{SandboxReport, Walls};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

const CHUNK: usize = 32 * 1024;
/// Input of the command, project lock, tree lock.
const MOST_DESCRIPTORS: usize = 3;

/// What a shim is started for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Order {
    /// Nothing to run: stand by the ticket alone.
    pub(super) command: Option<Command>,
    /// Where the restore of this project is described, should the server die.
    #[serde(with = "optional_path")]
    pub(super) ticket: Option<PathBuf>,
    /// Which descriptors ride along, in this order.
    pub(super) descriptors: Vec<Descriptor>,
}

/// A program, found already; everything a `execve` needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Command {
    #[serde(with = "path")]
    pub(super) program: PathBuf,
    pub(super) argv: Vec<OsString>,
    #[serde(with = "path")]
    pub(super) cwd: PathBuf,
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) grace: Duration,
    /// `None`: it runs free.
    pub(super) walls: Option<Walls>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Descriptor {
    Stdin,
    ProjectLock,
    TreeLock,
}

/// From the server, after the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Request {
    /// End the tree now.
    End,
    /// All is settled: let go of everything and leave.
    Bye,
}

/// From the shim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ShimReport {
    /// The command runs, inside these walls.
    Started { walls: SandboxReport },
    /// The walls that were demanded cannot be put up, so nothing was started.
    NoWalls { why: String },
    /// The operating system refused the program.
    Refused { errno: i32 },
    /// The leader has ended and nothing of its tree is left, but for `left`.
    Done {
        status: ChildStatus,
        because: Because,
        leaked: u32,
        left: u32,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ChildStatus {
    Exited(i32),
    Signalled(i32),
}

/// Why the leader ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Because {
    ItWasDone,
    WeAsked,
}

/// Both ends, closed on exec: an inherited server end would hide the server's death from the shim.
pub(super) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

/// One packet, with descriptors.
pub(super) fn send(
    socket: impl AsFd,
    packet: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
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

/// One packet. Empty: the other side is gone.
pub(super) fn receive(socket: impl AsFd) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut packet = vec![0; CHUNK + 2];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut rights = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        let mut into = [IoSliceMut::new(&mut packet)];
        match rustix::net::recvmsg(&socket, &mut into, &mut rights, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            // Unread packets when the other side went away: it is gone all the same.
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

impl Order {
    /// The packets to send; the descriptors belong to the first.
    pub(super) fn packets(&self) -> Vec<Vec<u8>> {
        let bytes = encode(self);
        let last = bytes.chunks(CHUNK).count().saturating_sub(1);
        bytes
            .chunks(CHUNK)
            .enumerate()
            .map(|(i, chunk)| [&[b'O', u8::from(i < last)], chunk].concat())
            .collect()
    }

    /// Waits for the whole order. `None`: the server went away first, so there is nothing to do.
    pub(super) fn receive(socket: impl AsFd) -> io::Result<Option<(Self, Vec<OwnedFd>)>> {
        let (mut bytes, mut descriptors) = (Vec::new(), Vec::new());
        loop {
            let (packet, fds) = receive(&socket)?;
            descriptors.extend(fds);
            let (more, chunk) = match packet.as_slice() {
                [] => return Ok(None),
                [b'O', more, chunk @ ..] => (*more == 1, chunk),
                _ => return Err(garbled()),
            };
            bytes.extend_from_slice(chunk);
            if !more {
                let order = decode::<Self>(&bytes).ok_or_else(garbled)?;
                return if order.descriptors.len() == descriptors.len() {
                    Ok(Some((order, descriptors)))
                } else {
                    Err(garbled())
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

fn garbled() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the control channel carried something else than an order",
    )
}

fn encode(message: &impl Serialize) -> Vec<u8> {
    postcard::to_stdvec(message).expect("messages are plain data, and a vector grows as needed")
}

/// `None` unless the bytes are exactly one message: both sides are the same binary, so anything else is garbled.
fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let (message, rest) = postcard::take_from_bytes(bytes).ok()?;
    rest.is_empty().then_some(message)
}

/// Serde writes paths as UTF-8 and refuses the others; names on Unix are bytes, as `OsString` knows.
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

    fn order(env: usize) -> Order {
        Order {
            command: Some(Command {
                program: "/bin/true".into(),
                argv: vec!["true".into(), OsString::from_vec(vec![0xff, b'\n'])],
                cwd: "/".into(),
                env: (0..env)
                    .map(|i| (format!("V{i}").into(), "x".repeat(1000).into()))
                    .collect(),
                grace: Duration::from_millis(1234),
                walls: None,
            }),
            ticket: Some(OsString::from_vec(b"/state/\xff/7".to_vec()).into()),
            descriptors: vec![Descriptor::Stdin, Descriptor::TreeLock],
        }
    }

    #[test]
    fn an_order_larger_than_any_packet_arrives_whole_with_its_descriptors() {
        let (ours, theirs) = pair().unwrap();
        let sent = order(2000);
        let (a, b) = rustix::pipe::pipe().unwrap();
        let reader = std::thread::spawn(move || Order::receive(theirs).unwrap().unwrap());
        for (i, packet) in sent.packets().iter().enumerate() {
            let fds: &[_] = if i == 0 { &[a.as_fd(), b.as_fd()] } else { &[] };
            send(&ours, packet, fds).unwrap();
        }
        let (received, fds) = reader.join().unwrap();
        assert_eq!(received, sent);
        assert_eq!(fds.len(), 2);
    }

    #[test]
    fn an_order_that_breaks_off_is_no_order() {
        let (ours, theirs) = pair().unwrap();
        send(&ours, &order(100).packets()[0], &[]).unwrap();
        drop(ours);
        assert!(Order::receive(theirs).unwrap().is_none());
    }

    #[test]
    fn every_truncation_of_an_order_is_refused() {
        let bytes = encode(&order(3));
        for cut in 0..bytes.len() {
            assert_eq!(decode::<Order>(&bytes[..cut]), None, "cut at {cut}");
        }
    }

    #[test]
    fn reports_survive_the_way() {
        for report in [
            ShimReport::Refused { errno: 7 },
            ShimReport::Done {
                status: ChildStatus::Exited(-3),
                because: Because::ItWasDone,
                leaked: 3,
                left: 0,
            },
            ShimReport::Done {
                status: ChildStatus::Signalled(9),
                because: Because::WeAsked,
                leaked: 0,
                left: 2,
            },
        ] {
            assert_eq!(ShimReport::parse(&report.clone().packet()), Some(report));
        }
        assert_eq!(ShimReport::parse(b""), None);
        let longer = [ShimReport::Refused { errno: 7 }.packet(), vec![0]].concat();
        assert_eq!(ShimReport::parse(&longer), None, "more than one message");
        for request in [Request::End, Request::Bye] {
            assert_eq!(Request::parse(&request.packet()), Some(request));
        }
    }
}
