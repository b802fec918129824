//! The message bus of a team: one message per line, appended under a lock. Ids are never reused,
//! and a damaged line loses only that line. Teams that write the files without a lock can keep
//! running beside us.

mod mailbox;
mod state;

use serde::{Deserialize, Serialize};

use super::message::{MessageDraft, TeamMessage, now};
use super::team_dirs::{TeamDirs, TeamLayout, join_path};
use supervisor_workspace::{FolderError, FolderLock};

pub use state::TeamMeta;

/// Maximum size of the log file.
const MAX_LOG_BYTES: u64 = 256 << 20;
/// Maximum size of one message with its data.
const MAX_MESSAGE_BYTES: usize = 4 << 20;

/// An opened bus.
#[derive(Debug, Clone)]
pub struct TeamBus {
    place: TeamDirs,
}

/// Messages read from the log.
#[derive(Debug, Default)]
pub struct BusMessages {
    pub messages: Vec<TeamMessage>,
    /// The line number of each message, from 1.
    pub line_numbers: Vec<usize>,
    /// Lines that are not a message.
    pub damaged: usize,
    /// Bytes read from the log.
    pub bytes: u64,
    pub cursor: BusCursor,
}

/// A position in the log: everything up to this message has been read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BusCursor {
    /// Empty if nothing has been read yet.
    pub last_id: String,
    /// Offset of the line after that message. `line` is the length of the message's own line.
    pub offset: u64,
    pub line: u64,
    /// Number of lines up to here.
    #[serde(default)]
    pub lines: usize,
}

/// Selects messages.
#[derive(Debug, Clone, Default)]
pub struct MessageFilter {
    pub from: Option<String>,
    pub to: Option<String>,
    pub kind: Option<String>,
    /// Only messages after this one.
    pub since_id: Option<String>,
}

/// The last known activity of one member.
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
        "a message of {size} bytes is too long for the bus, which takes {MAX_MESSAGE_BYTES}; put the content into a file and send its path"
    )]
    TooLong { size: usize },
    #[error(transparent)]
    Folder(#[from] FolderError),
}

/// The highest id given out so far, and the size of the log at that time.
#[derive(Debug, Default, Serialize, Deserialize)]
struct IdCounter {
    last: u64,
    size: u64,
}

impl TeamBus {
    pub fn new(place: &TeamDirs) -> Self {
        Self {
            place: place.clone(),
        }
    }

    /// Appends a message. A `state_update` is also merged into the state.
    pub fn log_message(&self, draft: MessageDraft) -> Result<TeamMessage, BusError> {
        let _lock = self.lock()?;
        self.append(draft)
    }

    pub fn all(&self) -> Result<BusMessages, BusError> {
        self.scan(0, 0)
    }

    /// Messages after the cursor. Reads from there if the log still matches it.
    pub fn since(&self, cursor: &BusCursor) -> Result<BusMessages, BusError> {
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
            reading.line_numbers.remove(0);
        } else {
            // Another tool rewrote the log: find the position by id.
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

    pub fn list(&self, filter: &MessageFilter) -> Result<BusMessages, BusError> {
        let mut reading = self.all()?;
        if let Some(id) = &filter.since_id {
            reading.keep_after(id);
        }
        let matches = |wanted: &Option<String>, value: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == value)
        };
        reading.messages.retain(|m| {
            matches(&filter.from, &m.from)
                && matches(&filter.to, &m.to)
                && matches(&filter.kind, &m.kind)
        });
        reading.line_numbers.clear();
        Ok(reading)
    }

    /// Activity per member, newest first, and the number of messages.
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

    /// Deletes a message. Its line is overwritten with blanks, so that nothing else moves and a
    /// concurrent append is not lost. The message is kept in `deleted.jsonl`.
    pub fn delete(&self, id: &str) -> Result<TeamMessage, BusError> {
        let _lock = self.lock()?;
        let bytes = self.bytes(0)?;
        for (offset, line) in lines(&bytes) {
            let Some(message) = parse(line).filter(|m| m.id == id) else {
                continue;
            };
            self.record_last_id(self.next_number()?.saturating_sub(1))?;
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

    /// Archives all messages. The state of the roles stays, and ids continue.
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
        // Merge messages that are not yet in the state before the log is moved away.
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

    /// Locks the bus for writing.
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
        if line.len() > MAX_MESSAGE_BYTES {
            return Err(BusError::TooLong { size: line.len() });
        }
        let folder = self.place.folder();
        let size = folder.entry(&self.log())?.map_or(0, |entry| entry.size);
        // If a writer died in the middle of a line, only that line is lost.
        let is_torn = size > 0 && folder.read_from(&self.log(), size - 1, 1)? != b"\n";
        let line = format!("{}{line}\n", if is_torn { "\n" } else { "" });
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

    /// One more than any id ever given out. Reads only what others appended since our last write.
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

    fn record_last_id(&self, last: u64) -> Result<(), BusError> {
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

    fn scan(&self, from: u64, lines_before: usize) -> Result<BusMessages, BusError> {
        let bytes = self.bytes(from)?;
        let mut reading = BusMessages {
            bytes: bytes.len() as u64,
            ..BusMessages::default()
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
            reading.line_numbers.push(lines_before + n + 1);
        }
        Ok(reading)
    }

    fn bytes(&self, from: u64) -> Result<Vec<u8>, BusError> {
        let folder = self.place.folder();
        let size = folder.entry(&self.log())?.map_or(0, |entry| entry.size);
        if size.saturating_sub(from) > MAX_LOG_BYTES {
            return Err(FolderError::TooLarge {
                path: folder.locate(&self.log()),
                size,
                limit: MAX_LOG_BYTES,
            }
            .into());
        }
        Ok(folder.read_from(&self.log(), from, MAX_LOG_BYTES)?)
    }

    fn log(&self) -> String {
        self.file("messages.jsonl")
    }

    fn file(&self, name: &str) -> String {
        join_path(&self.place.bus_dir(), name)
    }
}

/// Yields the offset of each line, and the line without its newline.
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

impl BusMessages {
    /// Keeps the messages after this one in log order; compares ids if the message itself is gone.
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
        self.line_numbers
            .retain(|_| *flags.next().expect("one flag a message"));
    }
}
