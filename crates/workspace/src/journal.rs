//! The journal of a project: one line per step, on disk before the step is taken. Records which
//! snapshot is open and what was done to the project since.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::SnapshotLimits;
use super::encoded_path::EncodedPath;
use super::manifest::Area;

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub(super) enum JournalRecord {
    /// A snapshot is on disk; the project may be written from now on.
    Armed(Box<SnapshotRecord>),
    /// We are about to edit these paths.
    Editing {
        paths: Vec<EncodedPath>,
    },
    /// Programs are about to run: any difference from now on may be theirs.
    Exposed,
    /// Paths that the project's own tests write. All differences so far are accounted for.
    ByProducts {
        paths: Vec<EncodedPath>,
    },
    RollingBack {
        scope: Scope,
    },
    /// A later process starts to undo the call. These paths were changed after the call's processes
    /// had died, so they are not its work. Changes made while the recovery runs are.
    Recovering {
        later: Vec<(Area, EncodedPath)>,
    },
    RolledBack {
        by: RestoredBy,
    },
    /// The work is kept: the commit point.
    Accepted {
        /// The id of the call in the log; empty if no work of a call was written.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        call: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SnapshotRecord {
    /// Unguessable; also part of the names of our temporary files.
    pub id: String,
    /// The tag in the environment of every program started meanwhile.
    pub tag: String,
    /// RFC 3339.
    pub since: String,
    pub root: EncodedPath,
    pub root_device: u64,
    pub root_inode: u64,
    /// The directory with pack and manifest, inside the project's state directory.
    pub store: String,
    pub manifest: String,
    pub caps: SnapshotLimits,
}

/// Which differences a restore undoes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Paths edited through [`super::ActiveSnapshot::apply`], and by-products. All other differences
    /// are edits by other processes: they are kept and reported.
    Applied,
    /// All differences, because an agent could write anywhere in the project.
    Everything,
}

/// Who finished a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RestoredBy {
    /// The call itself.
    Call,
    /// The shim of a command, after the server had died.
    Shim,
    /// A later start of the server, or `supervisor recover`.
    Recovery,
}

/// A snapshot that was not closed.
#[derive(Debug, Clone)]
pub(super) struct OpenSnapshot {
    pub armed: SnapshotRecord,
    pub edited: BTreeSet<Vec<u8>>,
    pub by_products: BTreeSet<Vec<u8>>,
    pub exposed: bool,
    pub rolling_back: Option<Scope>,
    /// Changes by others, as found by recoveries so far.
    pub later: BTreeSet<(Area, Vec<u8>)>,
}

impl OpenSnapshot {
    /// Returns what recovery has to undo. If programs were running, everything could be theirs.
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

/// A longer journal is rotated when no snapshot is open.
const ROTATE_ABOVE_BYTES: u64 = 1 << 20;

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

    /// Writes one line and waits until it is on disk. Starts a new line if a crash left an
    /// incomplete one.
    pub(super) fn write(&mut self, record: &JournalRecord) -> io::Result<()> {
        let json = serde_json::to_string(record).map_err(io::Error::other)?;
        let separator = if self.has_incomplete_line()? {
            "\n"
        } else {
            ""
        };
        let line = format!("{separator}{} {json}\n", checksum(json.as_bytes()));
        self.file.write_all(line.as_bytes())?;
        self.file.sync_data()
    }

    /// Returns the open snapshot, if any.
    pub(super) fn open_snapshot(&mut self) -> io::Result<Option<OpenSnapshot>> {
        let mut open: Option<OpenSnapshot> = None;
        for record in self.records()? {
            match (record, &mut open) {
                (JournalRecord::Armed(armed), _) => {
                    let (edited, by_products, later) = Default::default();
                    let (exposed, rolling_back) = (false, None);
                    open = Some(OpenSnapshot {
                        armed: *armed,
                        edited,
                        by_products,
                        exposed,
                        rolling_back,
                        later,
                    });
                }
                (JournalRecord::RolledBack { .. } | JournalRecord::Accepted { .. }, _) => {
                    open = None;
                }
                (_, None) => {}
                (JournalRecord::Editing { paths }, Some(open)) => {
                    open.edited.extend(paths.into_iter().map(|p| p.0));
                }
                (JournalRecord::Exposed, Some(open)) => open.exposed = true,
                (JournalRecord::ByProducts { paths }, Some(open)) => {
                    open.by_products.extend(paths.into_iter().map(|p| p.0));
                    open.exposed = false;
                }
                (JournalRecord::RollingBack { scope }, Some(open)) => {
                    open.rolling_back = Some(scope);
                }
                (JournalRecord::Recovering { later }, Some(open)) => {
                    open.later
                        .extend(later.into_iter().map(|(area, path)| (area, path.0)));
                }
            }
        }
        Ok(open)
    }

    /// Rotates a long journal. Must only be called when no snapshot is open.
    pub(super) fn rotate(&mut self, project: &Path) -> io::Result<()> {
        if self.file.metadata()?.len() > ROTATE_ABOVE_BYTES {
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

    fn has_incomplete_line(&mut self) -> io::Result<bool> {
        let length = self.file.metadata()?.len();
        if length == 0 {
            return Ok(false);
        }
        let mut last = [0];
        std::os::unix::fs::FileExt::read_exact_at(&self.file, &mut last, length - 1)?;
        Ok(last != [b'\n'])
    }
}

/// Returns true if a journal of this project, current or rotated, records that the work of this
/// call was accepted. Creates neither file.
pub(super) fn has_accepted(project: &Path, call: &str) -> bool {
    let texts = ["journal", "journal.old"]
        .map(|name| std::fs::read(project.join(name)).unwrap_or_default());
    let mut records = texts
        .iter()
        .flat_map(|text| text.split(|byte| *byte == b'\n'))
        .filter_map(parse);
    records.any(
        |record| matches!(record, JournalRecord::Accepted { call: accepted } if accepted == call),
    )
}

/// A line that does not match its checksum was not completed, so its step was never taken.
fn parse(line: &[u8]) -> Option<JournalRecord> {
    let (head, json) = line.split_at_checked(17)?;
    (head == format!("{} ", checksum(json)).as_bytes())
        .then(|| serde_json::from_slice(json).ok())
        .flatten()
}

fn checksum(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..16].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn armed(id: &str) -> JournalRecord {
        JournalRecord::Armed(Box::new(SnapshotRecord {
            id: id.into(),
            tag: "t".into(),
            since: "now".into(),
            root: EncodedPath(b"/p\xff".to_vec()),
            root_device: 1,
            root_inode: 2,
            store: "s".into(),
            manifest: "m".into(),
            caps: SnapshotLimits::default(),
        }))
    }

    #[test]
    fn incomplete_lines_are_ignored() {
        let dir = tempfile::tempdir().expect("temp dir");
        let mut journal = Journal::open(dir.path()).expect("opened");
        assert!(journal.open_snapshot().expect("read").is_none());
        journal.write(&armed("1")).expect("written");
        journal
            .write(&JournalRecord::Editing {
                paths: vec![EncodedPath(b"a\nb".to_vec())],
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
