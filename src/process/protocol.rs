//! What the server and a shim say to each other, over one SEQPACKET socket pair that is the shim's stdin.
//! Knows packets and descriptors. Does not know when which of them is right to send.
//!
//! The order travels in packets of 32 KiB, because one packet may not outgrow the socket's buffer and an environment
//! alone can; its descriptors ride on the first. Everything after it fits one packet.

use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType,
};

const CHUNK: usize = 32 * 1024;
/// Input of the command, project lock, tree lock.
const MOST_DESCRIPTORS: usize = 3;

/// What a shim is started for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Order {
    /// Nothing to run: stand by the ticket alone.
    pub(super) command: Option<Command>,
    /// Where the restore of this project is described, should the server die.
    pub(super) ticket: Option<PathBuf>,
    /// Which descriptors ride along, in this order.
    pub(super) descriptors: Vec<Descriptor>,
}

/// A program, found already; everything a `execve` needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) program: PathBuf,
    pub(super) argv: Vec<OsString>,
    pub(super) cwd: PathBuf,
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) grace: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Descriptor {
    Stdin,
    ProjectLock,
    TreeLock,
}

/// From the server, after the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    /// End the tree now.
    End,
    /// All is settled: let go of everything and leave.
    Bye,
}

/// From the shim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Report {
    /// The operating system refused the program.
    Refused { errno: i32 },
    /// The leader has ended and nothing of its tree is left, but for `left`.
    Done { status: Status, because: Because, leaked: u32, left: u32 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Exited(i32),
    Signalled(i32),
}

/// Why the leader ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Because {
    ItWasDone,
    WeAsked,
}

/// Both ends, closed on exec: an inherited server end would hide the server's death from the shim.
pub(super) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// One packet, with descriptors.
pub(super) fn send(socket: impl AsFd, packet: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !rights.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("too many descriptors for one packet"));
    }
    loop {
        match rustix::net::sendmsg(&socket, &[IoSlice::new(packet)], &mut rights, SendFlags::NOSIGNAL) {
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
        let bytes = self.to_bytes();
        let last = bytes.chunks(CHUNK).count().saturating_sub(1);
        bytes.chunks(CHUNK).enumerate().map(|(i, chunk)| [&[b'O', u8::from(i < last)], chunk].concat()).collect()
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
                let order = Self::from_bytes(&bytes).ok_or_else(garbled)?;
                return if order.descriptors.len() == descriptors.len() {
                    Ok(Some((order, descriptors)))
                } else {
                    Err(garbled())
                };
            }
        }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer(Vec::new());
        out.number(self.descriptors.len());
        for descriptor in &self.descriptors {
            out.number(match descriptor {
                Descriptor::Stdin => 0,
                Descriptor::ProjectLock => 1,
                Descriptor::TreeLock => 2,
            });
        }
        out.number(usize::from(self.ticket.is_some()));
        out.strings(self.ticket.iter().map(|t| t.as_os_str()));
        out.number(usize::from(self.command.is_some()));
        if let Some(command) = &self.command {
            out.strings([command.program.as_os_str(), command.cwd.as_os_str()]);
            out.number(usize::try_from(command.grace.as_millis()).unwrap_or(usize::MAX));
            out.number(command.argv.len());
            out.strings(command.argv.iter().map(OsString::as_os_str));
            out.number(command.env.len());
            out.strings(command.env.iter().flat_map(|(name, value)| [name.as_os_str(), value.as_os_str()]));
        }
        out.0
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader(bytes);
        let mut descriptors = Vec::new();
        for _ in 0..from.number()? {
            descriptors.push(match from.number()? {
                0 => Descriptor::Stdin,
                1 => Descriptor::ProjectLock,
                2 => Descriptor::TreeLock,
                _ => return None,
            });
        }
        let ticket = if from.number()? == 1 { Some(PathBuf::from(from.string()?)) } else { None };
        let command = if from.number()? == 1 { Some(Command::read(&mut from)?) } else { None };
        from.0.is_empty().then_some(Self { command, ticket, descriptors })
    }
}

impl Command {
    fn read(from: &mut Reader<'_>) -> Option<Self> {
        let (program, cwd) = (from.string()?.into(), from.string()?.into());
        let grace = Duration::from_millis(from.number()? as u64);
        let argv = (0..from.number()?).map(|_| from.string()).collect::<Option<_>>()?;
        let env = (0..from.number()?).map(|_| Some((from.string()?, from.string()?))).collect::<Option<_>>()?;
        Some(Self { program, argv, cwd, env, grace })
    }
}

impl Request {
    pub(super) fn packet(self) -> &'static [u8] {
        match self {
            Self::End => b"E",
            Self::Bye => b"B",
        }
    }

    pub(super) fn parse(packet: &[u8]) -> Option<Self> {
        match packet {
            b"E" => Some(Self::End),
            b"B" => Some(Self::Bye),
            _ => None,
        }
    }
}

impl Report {
    pub(super) fn packet(self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Refused { errno } => {
                out.push(b'R');
                out.extend(errno.to_le_bytes());
            }
            Self::Done { status, because, leaked, left } => {
                let (kind, code) = match status {
                    Status::Exited(code) => (b'x', code),
                    Status::Signalled(signal) => (b's', signal),
                };
                out.extend([b'D', kind, u8::from(because == Because::WeAsked)]);
                out.extend(code.to_le_bytes());
                out.extend(leaked.to_le_bytes());
                out.extend(left.to_le_bytes());
            }
        }
        out
    }

    pub(super) fn parse(packet: &[u8]) -> Option<Self> {
        let four = |at: usize| packet.get(at..at + 4)?.try_into().ok();
        match packet {
            [b'R', ..] => Some(Self::Refused { errno: i32::from_le_bytes(four(1)?) }),
            [b'D', kind, asked, ..] => {
                let code = i32::from_le_bytes(four(3)?);
                Some(Self::Done {
                    status: if *kind == b'x' { Status::Exited(code) } else { Status::Signalled(code) },
                    because: if *asked == 1 { Because::WeAsked } else { Because::ItWasDone },
                    leaked: u32::from_le_bytes(four(7)?),
                    left: u32::from_le_bytes(four(11)?),
                })
            }
            _ => None,
        }
    }
}

fn garbled() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the control channel carried something else than an order")
}

struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, n: usize) {
        self.0.extend((n as u64).to_le_bytes());
    }

    fn strings<'a>(&mut self, strings: impl IntoIterator<Item = &'a OsStr>) {
        for string in strings {
            self.number(string.len());
            self.0.extend(string.as_bytes());
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn number(&mut self) -> Option<usize> {
        let (number, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        usize::try_from(u64::from_le_bytes(*number)).ok()
    }

    fn string(&mut self) -> Option<OsString> {
        let length = self.number()?;
        let (string, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(OsString::from_vec(string.to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(env: usize) -> Order {
        Order {
            command: Some(Command {
                program: "/bin/true".into(),
                argv: vec!["true".into(), OsString::from_vec(vec![0xff, b'\n'])],
                cwd: "/".into(),
                env: (0..env).map(|i| (format!("V{i}").into(), "x".repeat(1000).into())).collect(),
                grace: Duration::from_millis(1234),
            }),
            ticket: Some("/state/journal/7".into()),
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
        let bytes = order(3).to_bytes();
        for cut in 0..bytes.len() {
            assert_eq!(Order::from_bytes(&bytes[..cut]), None, "cut at {cut}");
        }
    }

    #[test]
    fn reports_survive_the_way() {
        for report in [
            Report::Refused { errno: 7 },
            Report::Done { status: Status::Exited(-3), because: Because::ItWasDone, leaked: 3, left: 0 },
            Report::Done { status: Status::Signalled(9), because: Because::WeAsked, leaked: 0, left: 2 },
        ] {
            assert_eq!(Report::parse(&report.packet()), Some(report));
        }
        assert_eq!(Report::parse(b"D"), None);
    }
}
