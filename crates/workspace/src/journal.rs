//! What was begun and what was closed, per project: one line per step, each on disk before the step is taken.
//! Knows states and their order. Does not know how anything is undone.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Caps;
use super::manifest::Area;
use super::name::Name;

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub(super) enum JournalRecord {
    /// A snapshot is on disk; from here on the project may be written to.
    Armed(Box<ArmedAs>),
    /// These paths are about to be edited by us.
    Editing {
        paths: Vec<Name>,
    },
    /// Programs are about to run: whatever differs from now on may be their doing.
    Exposed,
    /// What the project's own tests write. Whatever differed up to here is accounted for.
    ByProducts {
        paths: Vec<Name>,
    },
    RollingBack {
        scope: Scope,
    },
    /// A later process begins to undo it. These were changed after the call's processes had died, so they are not its
    /// doing; what changes while the undoing lasts is.
    Recovering {
        later: Vec<(Area, Name)>,
    },
    RolledBack {
        by: Who,
    },
    /// The work stays: the commit point.
    Accepted {
        /// The call whose work it is, as its log entry names it; empty where nothing of a call was written.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        call: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ArmedAs {
    /// Unguessable; also the mark on our temporary files.
    pub id: String,
    /// The mark in the environment of every program started meanwhile.
    pub tag: String,
    /// RFC 3339.
    pub since: String,
    pub root: Name,
    pub root_device: u64,
    pub root_inode: u64,
    /// The directory with pack and manifest, below the project's own.
    pub store: String,
    pub manifest: String,
    pub caps: Caps,
}

/// Which differences a restore undoes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The paths that were edited through [`super::ArmedSnapshot::apply`], and by-products. Whatever else
    /// differs is an edit by another process: it is kept and reported.
    Applied,
    /// All that differs: an agent had the run of the project.
    Everything,
}

/// Who finished a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Who {
    /// The call itself.
    Call,
    /// The parent of a command, after the server had died.
    Shim,
    /// A later start, or a user by hand.
    Recovery,
}

/// An armed snapshot that was never closed.
#[derive(Debug, Clone)]
pub(super) struct Open {
    pub armed: ArmedAs,
    pub edited: BTreeSet<Vec<u8>>,
    pub by_products: BTreeSet<Vec<u8>>,
    pub exposed: bool,
    pub rolling_back: Option<Scope>,
    /// The work of others, as far as recoveries have met it.
    pub later: BTreeSet<(Area, Vec<u8>)>,
}

impl Open {
    /// What has to be undone if no process is left to say: with programs about, everything could be theirs.
    pub(super) fn scope(&self) -> Scope {
        match self.rolling_back {
            Some(scope) => scope,
            None if self.exposed => Scope::Everything,
            None => Scope::Applied,
        }
    }
}

#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    path: PathBuf,
}

/// A journal with nothing open and more than this starts anew.
const LONG: u64 = 1 << 20;

impl Journal {
    pub(super) fn open(project: &Path) -> io::Result<Self> {
        let path = project.join("journal");
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&path)?;
        Ok(Self { file, path })
    }

    /// Writes one line and waits until it is on disk. A line torn by a crash before us stays alone on its own.
    pub(super) fn write(&mut self, record: &JournalRecord) -> io::Result<()> {
        let json = serde_json::to_string(record).map_err(io::Error::other)?;
        let glue = if self.is_torn()? { "\n" } else { "" };
        let line = format!("{glue}{} {json}\n", sum(json.as_bytes()));
        self.file.write_all(line.as_bytes())?;
        self.file.sync_data()
    }

    /// The snapshot that is armed now, if any.
    pub(super) fn open_snapshot(&mut self) -> io::Result<Option<Open>> {
        let mut open: Option<Open> = None;
        for record in self.records()? {
            match (record, &mut open) {
                (JournalRecord::Armed(armed), _) => {
                    let (edited, by_products, later) = Default::default();
                    let (exposed, rolling_back) = (false, None);
                    open = Some(Open {
                        armed: *armed,
                        edited,
                        by_products,
                        exposed,
                        rolling_back,
                        later,
                    });
                }
                (JournalRecord::RolledBack { .. } | JournalRecord::Accepted { .. }, _) => {
                    open = None
                }
                (_, None) => {}
                (JournalRecord::Editing { paths }, Some(open)) => {
                    open.edited.extend(paths.into_iter().map(|p| p.0))
                }
                (JournalRecord::Exposed, Some(open)) => open.exposed = true,
                (JournalRecord::ByProducts { paths }, Some(open)) => {
                    open.by_products.extend(paths.into_iter().map(|p| p.0));
                    open.exposed = false;
                }
                (JournalRecord::RollingBack { scope }, Some(open)) => {
                    open.rolling_back = Some(scope)
                }
                (JournalRecord::Recovering { later }, Some(open)) => {
                    open.later
                        .extend(later.into_iter().map(|(area, path)| (area, path.0)));
                }
            }
        }
        Ok(open)
    }

    /// Starts anew if the journal has become long. Only when nothing is open.
    pub(super) fn turn_over(&mut self, project: &Path) -> io::Result<()> {
        if self.file.metadata()?.len() > LONG {
            std::fs::rename(&self.path, project.join("journal.old"))?;
            *self = Self::open(project)?;
        }
        Ok(())
    }

    pub(super) fn records(&mut self) -> io::Result<Vec<JournalRecord>> {
        let mut text = Vec::new();
        self.file.seek(SeekFrom::Start(0))?;
        self.file.read_to_end(&mut text)?;
        Ok(text.split(|b| *b == b'\n').filter_map(parse).collect())
    }

    fn is_torn(&mut self) -> io::Result<bool> {
        let length = self.file.metadata()?.len();
        if length == 0 {
            return Ok(false);
        }
        let mut last = [0];
        std::os::unix::fs::FileExt::read_exact_at(&self.file, &mut last, length - 1)?;
        Ok(last != [b'\n'])
    }
}

/// Does a journal of this project say that the work of this call stays? Also the one before it, and makes neither.
pub(super) fn has_accepted(project: &Path, call: &str) -> bool {
    let texts = ["journal", "journal.old"]
        .map(|name| std::fs::read(project.join(name)).unwrap_or_default());
    let mut records = texts
        .iter()
        .flat_map(|text| text.split(|byte| *byte == b'\n'))
        .filter_map(parse);
    records.any(|record| matches!(record, JournalRecord::Accepted { call: of } if of == call))
}

/// A line that does not match its sum was never finished, so its step was never taken.
fn parse(line: &[u8]) -> Option<JournalRecord> {
    let (head, json) = line.split_at_checked(17)?;
    (head == format!("{} ", sum(json)).as_bytes())
        .then(|| serde_json::from_slice(json).ok())
        .flatten()
}

fn sum(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..16].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn armed(id: &str) -> JournalRecord {
        JournalRecord::Armed(Box::new(ArmedAs {
            id: id.into(),
            tag: "t".into(),
            since: "now".into(),
            root: Name(b"/p\xff".to_vec()),
            root_device: 1,
            root_inode: 2,
            store: "s".into(),
            manifest: "m".into(),
            caps: Caps::default(),
        }))
    }

    #[test]
    fn the_journal_knows_what_is_open_and_forgets_a_torn_line() {
        let dir = tempfile::tempdir().expect("temp dir");
        let mut journal = Journal::open(dir.path()).expect("opened");
        assert!(journal.open_snapshot().expect("read").is_none());
        journal.write(&armed("1")).expect("written");
        journal
            .write(&JournalRecord::Editing {
                paths: vec![Name(b"a\nb".to_vec())],
            })
            .expect("written");
        journal
            .file
            .write_all(b"0123456789abcdef {\"state\":\"accepted\"")
            .expect("torn");
        let open = journal.open_snapshot().expect("read").expect("still open");
        assert_eq!(
            (open.armed.root.0.as_slice(), open.scope()),
            (&b"/p\xff"[..], Scope::Applied)
        );
        assert!(open.edited.contains(&b"a\nb"[..]));
        journal.write(&JournalRecord::Exposed).expect("written");
        assert_eq!(
            journal
                .open_snapshot()
                .expect("read")
                .expect("open")
                .scope(),
            Scope::Everything
        );
        journal
            .write(&JournalRecord::Accepted {
                call: String::new(),
            })
            .expect("written");
        assert!(journal.open_snapshot().expect("read").is_none());
        assert!(!has_accepted(dir.path(), "c1"));
        journal
            .write(&JournalRecord::Accepted { call: "c1".into() })
            .expect("written");
        assert!(has_accepted(dir.path(), "c1") && !has_accepted(dir.path(), "c2"));
        assert!(
            serde_json::from_str::<JournalRecord>(r#"{"state":"accepted"}"#).is_ok(),
            "as older servers wrote it"
        );
    }
}
