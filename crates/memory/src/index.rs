//! Full-text index over the notes, with SQLite's FTS5. The index is disposable: it is rebuilt when
//! missing, damaged or of another version, and refreshed before each query, because people edit the
//! files.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};

use super::identity::ProjectIdentity;
use super::note::{Note, NoteKind};
use super::notes::{NoteError, NoteFolder};
use super::ranking::{self, Ranking};
use supervisor_text::words;
use supervisor_workspace::FolderEntry;

/// Increase when the tables change.
const VERSION: i64 = 1;
/// `mtime` is null while the file could still change without a new mtime.
pub(super) const TABLES: &str = "
    CREATE TABLE notes (id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, size INTEGER, mtime INTEGER, hash TEXT,
        project TEXT, kind TEXT, tags TEXT, updated TEXT);
    CREATE VIRTUAL TABLE texts USING fts5(title, tags, body, tokenize = 'porter unicode61 remove_diacritics 2');";
/// How long to wait for another server that has locked the index.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// The coarsest mtime resolution of a file system. A file written this shortly before it was read
/// may be written again with the same mtime.
const COARSEST_CLOCK_NS: u64 = 2_000_000_000;

/// The index of one notes folder.
#[derive(Debug)]
pub struct NoteIndex {
    connection: Connection,
}

/// A search query.
#[derive(Debug, Clone, Default)]
pub struct NoteQuery {
    pub words: String,
    pub kind: Option<NoteKind>,
    pub tags: Vec<String>,
    /// Only notes about this project, under any of these names; empty means all projects.
    pub projects: Vec<ProjectIdentity>,
    pub limit: usize,
}

/// One search result.
#[derive(Debug, Clone, PartialEq)]
pub struct NoteHit {
    pub name: String,
    pub title: String,
    pub ranking: Ranking,
    pub excerpt: String,
    pub line: usize,
    pub note: Note,
}

#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    #[error(
        "the index of notes `{path}` cannot be used: {source}; remove the file, it is made anew"
    )]
    Sqlite {
        path: PathBuf,
        source: rusqlite::Error,
    },
    #[error(transparent)]
    Notes(#[from] NoteError),
    #[error("`query` has no word to look for")]
    NoWords,
}

impl IndexError {
    /// True if the file itself is damaged, so that rebuilding it helps. A full disk does not count.
    pub fn is_damage(&self) -> bool {
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
        match self {
            Self::Sqlite { source, .. } => {
                matches!(
                    source.sqlite_error_code(),
                    Some(DatabaseCorrupt | NotADatabase)
                )
            }
            Self::Notes(_) | Self::NoWords => false,
        }
    }
}

/// Differences between the folder and the index.
struct FolderDifferences {
    /// New or modified files.
    changed: Vec<(String, FolderEntry)>,
    removed: Vec<String>,
}

impl NoteIndex {
    /// Opens the index, and rebuilds it if it is unusable.
    pub fn open(path: &Path) -> Result<Self, IndexError> {
        match Self::try_open(path) {
            Ok(index) => Ok(index),
            Err(_) => {
                Self::remove(path);
                Self::try_open(path).map_err(|source| IndexError::Sqlite {
                    path: path.to_owned(),
                    source,
                })
            }
        }
    }

    /// Removes the index files. They contain nothing that the notes do not.
    pub fn remove(path: &Path) {
        for end in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{end}", path.display()));
        }
    }

    fn try_open(path: &Path) -> rusqlite::Result<Self> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "off")?;
        let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if version != VERSION {
            connection.execute_batch(
                "BEGIN IMMEDIATE; DROP TABLE IF EXISTS notes; DROP TABLE IF EXISTS texts;",
            )?;
            connection.execute_batch(TABLES)?;
            connection.pragma_update(None, "user_version", VERSION)?;
            connection.execute_batch("COMMIT;")?;
        }
        // A damaged file often opens and fails only when it is read, so one row of each table is
        // read here. Counting the rows would take as long as a query. A query finds the damage that
        // this check misses.
        for table in ["notes", "texts"] {
            connection
                .query_row(
                    &format!("SELECT rowid FROM {table} LIMIT 1"),
                    [],
                    |_| Ok(()),
                )
                .optional()?;
        }
        Ok(Self { connection })
    }

    /// Updates the index with written, edited and deleted notes. `on_progress` is called with the
    /// progress.
    pub fn refresh(
        &mut self,
        notes: &NoteFolder,
        on_progress: &mut dyn FnMut(usize, usize),
    ) -> Result<usize, IndexError> {
        let path = notes.path().to_owned();
        let fail = |source| IndexError::Sqlite {
            path: path.clone(),
            source,
        };
        let FolderDifferences { changed, removed } =
            self.differences(notes.list()?).map_err(fail)?;
        if changed.is_empty() && removed.is_empty() {
            return Ok(0);
        }
        let total = changed.len();
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(fail)?;
        for name in &removed {
            delete(&transaction, name).map_err(fail)?;
        }
        for (n, (name, entry)) in changed.into_iter().enumerate() {
            if n % 500 == 0 && total > 500 {
                on_progress(n, total);
            }
            let mtime = reliable_mtime(entry.mtime, jiff::Timestamp::now());
            // Removed or unreadable meanwhile: the next refresh handles it.
            let Ok(Some(text)) = notes.read(&name) else {
                continue;
            };
            // Touched but not changed: another checkout, a restored backup.
            if update_unchanged(&transaction, &name, entry.size, mtime, &text).map_err(fail)? {
                continue;
            }
            let note = Note::parse(&name, &text);
            delete(&transaction, &name).map_err(fail)?;
            insert(&transaction, &name, entry.size, mtime, &text, &note).map_err(fail)?;
        }
        transaction.commit().map_err(fail)?;
        Ok(total)
    }

    /// `files` must be sorted by name.
    fn differences(
        &self,
        files: Vec<(String, FolderEntry)>,
    ) -> rusqlite::Result<FolderDifferences> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT name, size, mtime FROM notes")?;
        let mut rows = statement.query([])?;
        let (mut is_known, mut removed) = (vec![false; files.len()], Vec::new());
        let mut next = 0;
        while let Some(row) = rows.next()? {
            let name = row.get_ref(0)?.as_str()?;
            // Rows were mostly inserted in name order, so the next file is usually the right one
            // and no search is needed.
            let at = match files.get(next) {
                Some((file, _)) if file == name => Ok(next),
                _ => files.binary_search_by(|(file, _)| file.as_str().cmp(name)),
            };
            let Ok(at) = at else {
                removed.push(name.to_owned());
                continue;
            };
            next = at + 1;
            let entry = &files[at].1;
            is_known[at] = row.get::<_, i64>(1)? == entry.size.cast_signed()
                && row.get::<_, Option<i64>>(2)? == Some(entry.mtime);
        }
        let mut is_known = is_known.into_iter();
        Ok(FolderDifferences {
            changed: files
                .into_iter()
                .filter(|_| !is_known.next().unwrap_or(false))
                .collect(),
            removed,
        })
    }

    /// Best first. Deterministic for the same notes.
    pub fn query(
        &self,
        notes: &NoteFolder,
        query: &NoteQuery,
        now: jiff::Timestamp,
    ) -> Result<Vec<NoteHit>, IndexError> {
        let expression = ranking::match_expression(&query.words).ok_or(IndexError::NoWords)?;
        let fail = |source| IndexError::Sqlite {
            path: notes.path().to_owned(),
            source,
        };
        let found = ranking::best(&self.connection, &expression, query, now).map_err(fail)?;
        let words = ranking::query_words(&query.words);
        let mut hits = Vec::new();
        for (name, ranking) in found {
            let Some(text) = notes.read(&name)? else {
                continue;
            };
            let note = Note::parse(&name, &text);
            let (line, excerpt) = excerpt_of(&text, &words);
            hits.push(NoteHit {
                title: note.title.clone(),
                name,
                ranking,
                excerpt,
                line,
                note,
            });
        }
        Ok(hits)
    }

    /// A note with nearly the same text, if there is one.
    pub fn find_similar(
        &self,
        notes: &NoteFolder,
        note: &Note,
        except: &str,
    ) -> Result<Option<String>, IndexError> {
        let words = format!("{} {}", note.title, note.body);
        let Some(expression) = ranking::match_expression(&words) else {
            return Ok(None);
        };
        let fail = |source| IndexError::Sqlite {
            path: notes.path().to_owned(),
            source,
        };
        let query = NoteQuery {
            limit: 10,
            ..NoteQuery::default()
        };
        let found = ranking::best(
            &self.connection,
            &expression,
            &query,
            jiff::Timestamp::now(),
        )
        .map_err(fail)?;
        for (name, _) in found.into_iter().filter(|(name, _)| name != except) {
            let Some(text) = notes.read(&name)? else {
                continue;
            };
            if similarity(&Note::parse(&name, &text).body, &note.body) >= 0.8 {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }
}

/// The mtime to store; `None` while the file could still be written without a new mtime.
fn reliable_mtime(mtime: i64, read_at: jiff::Timestamp) -> Option<i64> {
    let read_at = i64::try_from(read_at.as_nanosecond()).unwrap_or(i64::MAX);
    (read_at.abs_diff(mtime) > COARSEST_CLOCK_NS).then_some(mtime)
}

/// Updates size and mtime if the text is already in the index. Returns whether it is.
fn update_unchanged(
    transaction: &rusqlite::Transaction<'_>,
    name: &str,
    size: u64,
    mtime: Option<i64>,
    text: &str,
) -> rusqlite::Result<bool> {
    let hash = blake3::hash(text.as_bytes()).to_hex().to_string();
    let updated = transaction.execute(
        "UPDATE notes SET size = ?1, mtime = ?2 WHERE name = ?3 AND hash = ?4",
        params![size.cast_signed(), mtime, name, hash],
    )?;
    Ok(updated > 0)
}

fn delete(transaction: &rusqlite::Transaction<'_>, name: &str) -> rusqlite::Result<()> {
    let id: Option<i64> = transaction
        .query_row("SELECT id FROM notes WHERE name = ?1", [name], |row| {
            row.get(0)
        })
        .optional()?;
    if let Some(id) = id {
        transaction.execute("DELETE FROM texts WHERE rowid = ?1", [id])?;
        transaction.execute("DELETE FROM notes WHERE id = ?1", [id])?;
    }
    Ok(())
}

fn insert(
    transaction: &rusqlite::Transaction<'_>,
    name: &str,
    size: u64,
    mtime: Option<i64>,
    text: &str,
    note: &Note,
) -> rusqlite::Result<()> {
    let hash = blake3::hash(text.as_bytes()).to_hex().to_string();
    let project = std::iter::once(&note.project)
        .chain(&note.aliases)
        .cloned()
        .collect::<Vec<_>>()
        .join("\n");
    transaction.execute(
        "INSERT INTO notes (name, size, mtime, hash, project, kind, tags, updated) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![name, size.cast_signed(), mtime, hash, project, note.kind.word(), note.tags.join("\n"), note.updated],
    )?;
    let id = transaction.last_insert_rowid();
    transaction.execute(
        "INSERT INTO texts (rowid, title, tags, body) VALUES (?1, ?2, ?3, ?4)",
        params![id, note.title, note.tags.join(" "), note.body],
    )?;
    Ok(())
}

/// The line that contains most of the words, and its number.
fn excerpt_of(text: &str, words: &[String]) -> (usize, String) {
    let body = supervisor_text::words::front_matter::split(text).map_or(1, |front| front.body_line);
    let lines = text
        .lines()
        .enumerate()
        .skip(body - 1)
        .filter(|(_, line)| !line.trim().is_empty());
    let score = |line: &str| {
        let line = line.to_lowercase();
        words
            .iter()
            .filter(|word| line.contains(word.as_str()))
            .count()
    };
    let best = lines.max_by_key(|(n, line)| (score(line), std::cmp::Reverse(*n)));
    best.map_or((1, String::new()), |(n, line)| {
        (n + 1, words::cut_end(line.trim(), 160).into_owned())
    })
}

/// Similarity of two texts, by their three-word sequences.
fn similarity(one: &str, other: &str) -> f64 {
    let word_triples = |text: &str| -> std::collections::HashSet<String> {
        let words = all_words(text);
        if words.len() < 3 {
            return words.into_iter().collect();
        }
        words.windows(3).map(|run| run.join(" ")).collect()
    };
    let (a, b) = (word_triples(one), word_triples(other));
    if a.is_empty() || b.is_empty() {
        return 0.0;
    }
    #[expect(clippy::cast_precision_loss, reason = "counts of words")]
    let share = a.intersection(&b).count() as f64 / a.union(&b).count() as f64;
    share
}

fn all_words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|w| !w.is_empty())
        .map(str::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notes::NoteDraft;

    fn write_note(notes: &NoteFolder, title: &str, body: &str) {
        let now = jiff::Timestamp::now().to_string();
        let note = Note {
            title: title.into(),
            body: body.into(),
            created: now.clone(),
            updated: now,
            ..Note::default()
        };
        notes
            .write(NoteDraft {
                note,
                filename: None,
                overwrite: true,
            })
            .expect("written");
    }

    fn names(index: &mut NoteIndex, notes: &NoteFolder, words: &str) -> Vec<String> {
        index.refresh(notes, &mut |_, _| {}).expect("fresh");
        let query = NoteQuery {
            words: words.into(),
            limit: 10,
            ..NoteQuery::default()
        };
        index
            .query(notes, &query, jiff::Timestamp::now())
            .expect("asked")
            .into_iter()
            .map(|hit| hit.name)
            .collect()
    }

    #[test]
    fn index_follows_writes_edits_and_deletes() {
        let dir = tempfile::tempdir().expect("temp dir");
        let notes = NoteFolder::open(&dir.path().join("notes")).expect("opened");
        let path = dir.path().join("index.sqlite");
        let mut index = NoteIndex::open(&path).expect("opened");
        write_note(&notes, "Slow build", "The linker takes most of the time.");
        write_note(&notes, "Flaky test", "It fails when the clock jumps.");
        assert_eq!(names(&mut index, &notes, "linker"), ["slow-build.md"]);
        std::fs::write(
            notes.path().join("slow-build.md"),
            "# Slow build\n\nNow it is the compiler.\n",
        )
        .expect("edited");
        assert_eq!(names(&mut index, &notes, "compiler"), ["slow-build.md"]);
        assert!(names(&mut index, &notes, "linker").is_empty());
        notes.delete("slow-build.md").expect("deleted");
        assert!(names(&mut index, &notes, "compiler").is_empty());
        drop(index);
        for damage in [
            "",
            "not a database at all, but long enough to be taken for one"
                .repeat(100)
                .as_str(),
        ] {
            std::fs::write(&path, damage).expect("damaged");
            let mut index = NoteIndex::open(&path).expect("made anew");
            assert_eq!(names(&mut index, &notes, "clock"), ["flaky-test.md"]);
        }
    }

    #[test]
    fn edit_with_same_size_and_mtime_is_found() {
        let dir = tempfile::tempdir().expect("temp dir");
        let notes = NoteFolder::open(&dir.path().join("notes")).expect("opened");
        let mut index = NoteIndex::open(&dir.path().join("index.sqlite")).expect("opened");
        let path = notes.path().join("n.md");
        // One clock tick, in the future so that a slow machine has time for the rest.
        let tick = std::time::SystemTime::now() + Duration::from_secs(1);
        let write = |text: &str| {
            std::fs::write(&path, text).expect("written");
            std::fs::File::options()
                .append(true)
                .open(&path)
                .and_then(|file| file.set_modified(tick))
                .expect("set");
        };
        write("about linkers");
        assert_eq!(names(&mut index, &notes, "linkers"), ["n.md"]);
        write("about kernels");
        assert_eq!(names(&mut index, &notes, "kernels"), ["n.md"]);
        assert!(names(&mut index, &notes, "linkers").is_empty());
        let ns = |text: &str| {
            i64::try_from(
                text.parse::<jiff::Timestamp>()
                    .expect("a time")
                    .as_nanosecond(),
            )
            .expect("near")
        };
        let read_at: jiff::Timestamp = "2026-06-01T12:00:00Z".parse().expect("a time");
        let (before, long_before) = (ns("2026-06-01T11:59:59Z"), ns("2026-06-01T11:59:57Z"));
        assert_eq!(
            (
                reliable_mtime(before, read_at),
                reliable_mtime(long_before, read_at)
            ),
            (None, Some(long_before))
        );
    }

    #[test]
    fn notes_in_folders_are_tracked() {
        let dir = tempfile::tempdir().expect("temp dir");
        let notes = NoteFolder::open(&dir.path().join("notes")).expect("opened");
        let mut index = NoteIndex::open(&dir.path().join("index.sqlite")).expect("opened");
        std::fs::create_dir_all(notes.path().join("a")).expect("made");
        let files = ["a/b.md", "a-b.md", "a.md", "0.md", "z.md"];
        let long_ago = std::time::SystemTime::now() - Duration::from_secs(60);
        for (n, name) in files.iter().enumerate() {
            let path = notes.path().join(name);
            std::fs::write(&path, format!("shared words and own{n}")).expect("written");
            std::fs::File::options()
                .append(true)
                .open(&path)
                .and_then(|file| file.set_modified(long_ago))
                .expect("set");
            // One at a time, so that the index and the folder have different orders.
            assert_eq!(
                index.refresh(&notes, &mut |_, _| {}).expect("fresh"),
                1,
                "{name}"
            );
        }
        assert_eq!(
            index.refresh(&notes, &mut |_, _| {}).expect("fresh"),
            0,
            "all are known"
        );
        std::fs::remove_file(notes.path().join("a.md")).expect("removed");
        std::fs::rename(notes.path().join("0.md"), notes.path().join("m.md")).expect("renamed");
        assert_eq!(names(&mut index, &notes, "own2"), [""; 0]);
        assert_eq!(names(&mut index, &notes, "own3"), ["m.md"]);
        assert_eq!(
            names(&mut index, &notes, "shared"),
            ["a-b.md", "a/b.md", "m.md", "z.md"]
        );
        assert_eq!(
            index.refresh(&notes, &mut |_, _| {}).expect("fresh"),
            0,
            "all are known"
        );
    }

    #[test]
    fn query_words_are_not_operators() {
        let dir = tempfile::tempdir().expect("temp dir");
        let notes = NoteFolder::open(&dir.path().join("notes")).expect("opened");
        let mut index = NoteIndex::open(&dir.path().join("index.sqlite")).expect("opened");
        write_note(&notes, "One", "near and or not");
        for words in [
            "NEAR(a b)",
            "a\" OR \"b",
            "title: x",
            "*",
            "^one",
            "a AND",
            "(",
            "one -two",
        ] {
            index.refresh(&notes, &mut |_, _| {}).expect("fresh");
            let query = NoteQuery {
                words: words.into(),
                limit: 5,
                ..NoteQuery::default()
            };
            match index.query(&notes, &query, jiff::Timestamp::now()) {
                Ok(_) | Err(IndexError::NoWords) => {}
                Err(other) => panic!("{words}: {other}"),
            }
        }
    }

    #[test]
    fn titles_rank_higher_and_near_copies_are_found() {
        let dir = tempfile::tempdir().expect("temp dir");
        let notes = NoteFolder::open(&dir.path().join("notes")).expect("opened");
        let mut index = NoteIndex::open(&dir.path().join("index.sqlite")).expect("opened");
        write_note(
            &notes,
            "Other",
            "something about caching that goes on for a while and mentions caching once more",
        );
        write_note(
            &notes,
            "Caching",
            "a short text about something else that is as long as the other one is here",
        );
        assert_eq!(names(&mut index, &notes, "caching")[0], "caching.md");
        let copy = Note {
            title: "New".into(),
            body:
                "Something about caching that goes on for a while and mentions caching once more."
                    .into(),
            ..Note::default()
        };
        assert_eq!(
            index
                .find_similar(&notes, &copy, "new.md")
                .expect("asked")
                .as_deref(),
            Some("other.md")
        );
    }
}
