//! The message bus of a team: one line a message, appended under a lock, ids never reused, and one damaged line costs
//! one line. Teams that write the files without a lock keep working beside us.

mod mailbox;
mod state;

use serde::{Deserialize, Serialize};

use super::message::{MessageDraft, TeamMessage, now};
use super::place::{TeamLayout, TeamPlace, below};
use supervisor_workspace::{FolderError, FolderLock};

pub use state::TeamMeta;

/// More than this in one file is no team's history.
const MOST: u64 = 256 << 20;
/// One message, with its data.
const LONGEST: usize = 4 << 20;

/// An opened bus.
#[derive(Debug, Clone)]
pub struct TeamBus {
    place: TeamPlace,
}

/// Messages as they were read, and what reading them took.
#[derive(Debug, Default)]
pub struct BusReading {
    pub messages: Vec<TeamMessage>,
    /// The line of each message, from 1.
    pub places: Vec<usize>,
    /// Lines that are no message.
    pub damaged: usize,
    /// What had to be read for it.
    pub bytes: u64,
    pub cursor: BusCursor,
}

/// A place in the log: everything up to this message is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BusCursor {
    /// Empty: nothing is known yet.
    pub last_id: String,
    /// Where the line after that message begins, and how long its own line was.
    pub offset: u64,
    pub line: u64,
    /// How many lines there are up to here.
    #[serde(default)]
    pub lines: usize,
}

/// Which messages are wanted.
#[derive(Debug, Clone, Default)]
pub struct MessageFilter {
    pub from: Option<String>,
    pub to: Option<String>,
    pub kind: Option<String>,
    /// Only what came after this message.
    pub since_id: Option<String>,
}

/// What one member was last seen doing.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MemberActivity {
    pub member: String,
    pub last_seen: String,
    pub last_action: String,
    pub message_count: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum BusError {
    #[error("the bus lies in `{0}`, the oldest layout, which is only read; begin a new team")]
    ReadOnly(String),
    #[error(
        "there is no message `{id}` on the bus of this team; operation `list` shows what is there"
    )]
    NoMessage { id: String },
    #[error(
        "a message of {size} bytes is too long for the bus, which takes {LONGEST}; put the content into a file and send its path"
    )]
    TooLong { size: usize },
    #[error(transparent)]
    Folder(#[from] FolderError),
}

/// The highest number given out so far, and the size of the log when that was so.
#[derive(Debug, Default, Serialize, Deserialize)]
struct IdCounter {
    last: u64,
    size: u64,
}

impl TeamBus {
    pub fn new(place: &TeamPlace) -> Self {
        Self {
            place: place.clone(),
        }
    }

    /// Appends a message; a `state_update` also becomes part of the state.
    pub fn log_message(&self, draft: MessageDraft) -> Result<TeamMessage, BusError> {
        let _lock = self.lock()?;
        self.append(draft)
    }

    pub fn all(&self) -> Result<BusReading, BusError> {
        self.scan(0, 0)
    }

    /// What came after the cursor, read from there if the log still looks as it did.
    pub fn since(&self, cursor: &BusCursor) -> Result<BusReading, BusError> {
        if cursor.last_id.is_empty() {
            return self.all();
        }
        let from = cursor.offset.saturating_sub(cursor.line);
        let mut reading = self.scan(from, cursor.lines.saturating_sub(1))?;
        if reading
            .messages
            .first()
            .is_some_and(|m| m.id == cursor.last_id)
        {
            reading.messages.remove(0);
            reading.places.remove(0);
        } else {
            // The log was rewritten by another tool: find the place by its id.
            let bytes = reading.bytes;
            reading = self.all()?;
            reading.bytes += bytes;
            reading.keep_after(&cursor.last_id);
        }
        if reading.cursor.last_id.is_empty() {
            reading.cursor = cursor.clone();
        }
        Ok(reading)
    }

    pub fn read(&self, id: &str) -> Result<TeamMessage, BusError> {
        let found = self.all()?.messages.into_iter().find(|m| m.id == id);
        found.ok_or_else(|| BusError::NoMessage { id: id.to_owned() })
    }

    pub fn list(&self, filter: &MessageFilter) -> Result<BusReading, BusError> {
        let mut reading = self.all()?;
        if let Some(id) = &filter.since_id {
            reading.keep_after(id);
        }
        let is = |wanted: &Option<String>, value: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == value)
        };
        reading.messages.retain(|m| {
            is(&filter.from, &m.from) && is(&filter.to, &m.to) && is(&filter.kind, &m.kind)
        });
        reading.places.clear();
        Ok(reading)
    }

    /// Newest first.
    pub fn activity(&self) -> Result<(Vec<MemberActivity>, usize), BusError> {
        let messages = self.all()?.messages;
        let mut members: Vec<MemberActivity> = Vec::new();
        for message in &messages {
            for name in [&message.from, &message.to] {
                if !members.iter().any(|m| m.member == *name) {
                    members.push(MemberActivity {
                        member: name.clone(),
                        last_seen: message.ts.clone(),
                        last_action: String::new(),
                        message_count: 0,
                    });
                }
            }
            if let Some(sender) = members.iter_mut().find(|m| m.member == message.from) {
                sender.last_seen.clone_from(&message.ts);
                sender.last_action = format!("sent {} → {}", message.kind, message.to);
                sender.message_count += 1;
            }
        }
        members.sort_by(|a, b| b.last_seen.cmp(&a.last_seen));
        Ok((members, messages.len()))
    }

    /// Takes a message out. Its line is blanked where it stands, so that nothing else moves and an append that happens
    /// at the same moment is not lost; what it said is kept in `deleted.jsonl`.
    pub fn delete(&self, id: &str) -> Result<TeamMessage, BusError> {
        let _lock = self.lock()?;
        let bytes = self.bytes(0)?;
        for (offset, line) in lines(&bytes) {
            let Some(message) = parse(line).filter(|m| m.id == id) else {
                continue;
            };
            self.note_highest(self.next_number()?.saturating_sub(1))?;
            self.place
                .folder()
                .append(&self.file("deleted.jsonl"), &[line, b"\n"].concat())?;
            self.place
                .folder()
                .overwrite(&self.log(), offset, &vec![b' '; line.len()])?;
            return Ok(message);
        }
        Err(BusError::NoMessage { id: id.to_owned() })
    }

    /// Puts all messages aside. The state of the roles stays, and ids go on where they were.
    pub fn clear(&self) -> Result<(usize, Option<String>), BusError> {
        let _lock = self.lock()?;
        let count = self.all()?.messages.len();
        if self
            .place
            .folder()
            .entry(&self.log())?
            .is_none_or(|entry| entry.size == 0)
        {
            return Ok((0, None));
        }
        // What is on the log and not yet in the state would be gone with it.
        let meta = self.meta()?;
        self.write_meta(&meta)?;
        let last = self.next_number()?.saturating_sub(1);
        let archive = self.file(&format!(
            "archive/messages-{}.jsonl",
            now().replace([':', '+'], "-")
        ));
        self.place.folder().rename(&self.log(), &archive)?;
        self.place.folder().append(&self.log(), b"")?;
        self.write_counter(&IdCounter { last, size: 0 })?;
        Ok((count, Some(archive)))
    }

    /// Who writes to this bus is alone until this is dropped.
    fn lock(&self) -> Result<FolderLock, BusError> {
        if self.place.layout() == TeamLayout::Oldest {
            return Err(BusError::ReadOnly(self.place.bus_dir()));
        }
        Ok(self.place.folder().lock(&self.file(".lock"))?)
    }

    fn append(&self, draft: MessageDraft) -> Result<TeamMessage, BusError> {
        let number = self.next_number()?;
        let message = draft.stamp(number, &now());
        let line = serde_json::to_string(&message).expect("plain data serialises");
        if line.len() > LONGEST {
            return Err(BusError::TooLong { size: line.len() });
        }
        let folder = self.place.folder();
        let size = folder.entry(&self.log())?.map_or(0, |entry| entry.size);
        // A writer that died in the middle of a line costs that line only.
        let torn = size > 0 && folder.read_from(&self.log(), size - 1, 1)? != b"\n";
        let line = format!("{}{line}\n", if torn { "\n" } else { "" });
        folder.append(&self.log(), line.as_bytes())?;
        self.write_counter(&IdCounter {
            last: number,
            size: size + line.len() as u64,
        })?;
        if message.kind == "state_update" && message.data.is_some() {
            let meta = self.meta()?;
            self.write_meta(&meta)?;
        }
        Ok(message)
    }

    /// One more than any id that was ever given out. Only what others appended since our last write is read.
    fn next_number(&self) -> Result<u64, BusError> {
        let folder = self.place.folder();
        let size = folder.entry(&self.log())?.map_or(0, |entry| entry.size);
        let counter: IdCounter = match folder.read(&self.file(".ids"), 4096)? {
            Some(bytes) => serde_json::from_slice(&bytes).unwrap_or_default(),
            None => IdCounter::default(),
        };
        if counter.size == size {
            return Ok(counter.last + 1);
        }
        let from = if counter.size < size { counter.size } else { 0 };
        let highest = self
            .scan(from, 0)?
            .messages
            .iter()
            .filter_map(TeamMessage::number)
            .max()
            .unwrap_or(0);
        Ok(highest.max(counter.last) + 1)
    }

    fn note_highest(&self, last: u64) -> Result<(), BusError> {
        let size = self
            .place
            .folder()
            .entry(&self.log())?
            .map_or(0, |entry| entry.size);
        self.write_counter(&IdCounter { last, size })
    }

    fn write_counter(&self, counter: &IdCounter) -> Result<(), BusError> {
        let json = serde_json::to_vec(counter).expect("plain data serialises");
        Ok(self.place.folder().write(&self.file(".ids"), &json)?)
    }

    fn scan(&self, from: u64, lines_before: usize) -> Result<BusReading, BusError> {
        let bytes = self.bytes(from)?;
        let mut reading = BusReading {
            bytes: bytes.len() as u64,
            ..BusReading::default()
        };
        for (n, (offset, line)) in lines(&bytes).enumerate() {
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let Some(message) = parse(line) else {
                reading.damaged += 1;
                continue;
            };
            let length = line.len() as u64 + 1;
            let end = (from + offset + length).min(from + bytes.len() as u64);
            reading.cursor = BusCursor {
                last_id: message.id.clone(),
                offset: end,
                line: end - from - offset,
                lines: lines_before + n + 1,
            };
            reading.messages.push(message);
            reading.places.push(lines_before + n + 1);
        }
        Ok(reading)
    }

    fn bytes(&self, from: u64) -> Result<Vec<u8>, BusError> {
        let folder = self.place.folder();
        let size = folder.entry(&self.log())?.map_or(0, |entry| entry.size);
        if size.saturating_sub(from) > MOST {
            return Err(FolderError::TooLarge {
                path: folder.locate(&self.log()),
                size,
                limit: MOST,
            }
            .into());
        }
        Ok(folder.read_from(&self.log(), from, MOST)?)
    }

    fn log(&self) -> String {
        self.file("messages.jsonl")
    }

    fn file(&self, name: &str) -> String {
        below(&self.place.bus_dir(), name)
    }
}

/// Where each line begins, and the line without its end.
fn lines(bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let mut offset = 0;
    bytes.split(|b| *b == b'\n').map(move |line| {
        let at = offset;
        offset += line.len() as u64 + 1;
        (at, line)
    })
}

fn parse(line: &[u8]) -> Option<TeamMessage> {
    serde_json::from_slice(line).ok()
}

impl BusReading {
    /// Keeps what follows a message in the order of the log; by number if the message itself is gone.
    fn keep_after(&mut self, id: &str) {
        let number = id.strip_prefix("MSG-").and_then(|n| n.parse::<u64>().ok());
        let at = self.messages.iter().rposition(|m| m.id == id);
        let keep: Vec<bool> = self
            .messages
            .iter()
            .enumerate()
            .map(|(n, m)| at.map_or_else(|| m.number() > number, |at| n > at))
            .collect();
        let mut flags = keep.iter();
        self.messages
            .retain(|_| *flags.next().expect("one flag a message"));
        let mut flags = keep.iter();
        self.places
            .retain(|_| *flags.next().expect("one flag a message"));
    }
}
