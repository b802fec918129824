//! Full-text search over the notes: SQLite's FTS5 with BM25, titles and tags weighing more than text, newer notes a
//! little more than older ones. Disposable: made anew when it is missing, damaged or of another version, and brought up
//! to date before each query, because people edit the files.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};

use super::identity::ProjectIdentity;
use super::note::{Note, NoteKind};
use super::notes::{NoteError, NoteFolder};
use super::ranking::{self, Ranking};
use supervisor_text::words;
use supervisor_workspace::FolderEntry;

/// Moves when the tables do.
const VERSION: i64 = 1;
/// `mtime` is null while the file could still change without its time showing it.
pub(super) const TABLES: &str = "
    CREATE TABLE notes (id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, size INTEGER, mtime INTEGER, hash TEXT,
        project TEXT, kind TEXT, tags TEXT, updated TEXT);
    CREATE VIRTUAL TABLE texts USING fts5(title, tags, body, tokenize = 'porter unicode61 remove_diacritics 2');";
/// How long another server may keep the index to itself.
const PATIENCE: Duration = Duration::from_secs(10);
/// The coarsest clock of a file system: a file that was written so shortly before it was read may be written again
/// without its time showing it.
const COARSEST_CLOCK_NS: u64 = 2_000_000_000;

/// The index of one folder of notes.
#[derive(Debug)]
pub struct NoteIndex {
    connection: Connection,
}

/// What is looked for.
#[derive(Debug, Clone, Default)]
pub struct NoteQuery {
    pub words: String,
    pub kind: Option<NoteKind>,
    pub tags: Vec<String>,
    /// Only notes about this project, under whichever of these names; empty: all.
    pub projects: Vec<ProjectIdentity>,
    pub limit: usize,
}

/// One note that was found.
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
    /// The file itself is broken, so that making it anew helps. A full disk is none of that.
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

/// How a folder differs from what the index knows of it.
struct FolderDifferences {
    /// Not known, or not as they are now.
    changed: Vec<(String, FolderEntry)>,
    gone: Vec<String>,
}

impl NoteIndex {
    /// Opens the index, or makes it anew where it is of no use.
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

    /// It holds nothing that the notes do not.
    pub fn remove(path: &Path) {
        for end in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{end}", path.display()));
        }
    }

    fn try_open(path: &Path) -> rusqlite::Result<Self> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(PATIENCE)?;
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
        // A damaged file often opens well, and fails when it is read. What this look misses, the query finds: one row of
        // each table, because to count them takes as long as a query may.
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

    /// Takes in what was written, edited and deleted since. `tell` hears how far it has come.
    pub fn refresh(
        &mut self,
        notes: &NoteFolder,
        tell: &mut dyn FnMut(usize, usize),
    ) -> Result<usize, IndexError> {
        let path = notes.path().to_owned();
        let fail = |source| IndexError::Sqlite {
            path: path.clone(),
            source,
        };
        let FolderDifferences { changed, gone } = self.differences(notes.list()?).map_err(fail)?;
        if changed.is_empty() && gone.is_empty() {
            return Ok(0);
        }
        let total = changed.len();
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(fail)?;
        for name in &gone {
            forget(&transaction, name).map_err(fail)?;
        }
        for (n, (name, entry)) in changed.into_iter().enumerate() {
            if n % 500 == 0 && total > 500 {
                tell(n, total);
            }
            let mtime = settled_mtime(entry.mtime, jiff::Timestamp::now());
            // Gone or unreadable meanwhile: the next query sees it.
            let Ok(Some(text)) = notes.read(&name) else {
                continue;
            };
            // Touched, but not changed: another checkout, a restored backup.
            if is_known_text(&transaction, &name, entry.size, mtime, &text).map_err(fail)? {
                continue;
            }
            let note = Note::parse(&name, &text);
            forget(&transaction, &name).map_err(fail)?;
            learn(&transaction, &name, entry.size, mtime, &text, &note).map_err(fail)?;
        }
        transaction.commit().map_err(fail)?;
        Ok(total)
    }

    /// `files` come by name.
    fn differences(
        &self,
        files: Vec<(String, FolderEntry)>,
    ) -> rusqlite::Result<FolderDifferences> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT name, size, mtime FROM notes")?;
        let mut rows = statement.query([])?;
        let (mut is_known, mut gone) = (vec![false; files.len()], Vec::new());
        let mut next = 0;
        while let Some(row) = rows.next()? {
            let name = row.get_ref(0)?.as_str()?;
            // Notes were taken in by name: after one file nearly always comes the next, and nothing is looked up.
            let at = match files.get(next) {
                Some((file, _)) if file == name => Ok(next),
                _ => files.binary_search_by(|(file, _)| file.as_str().cmp(name)),
            };
            let Ok(at) = at else {
                gone.push(name.to_owned());
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
            gone,
        })
    }

    /// The best first; the same question over the same notes has the same answer.
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
        let words = ranking::telling_words(&query.words);
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

    /// The note that says nearly the same, if there is one.
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

/// The time by which a file is known again; `None` while it could still be written without its time showing it.
fn settled_mtime(mtime: i64, read_at: jiff::Timestamp) -> Option<i64> {
    let read_at = i64::try_from(read_at.as_nanosecond()).unwrap_or(i64::MAX);
    (read_at.abs_diff(mtime) > COARSEST_CLOCK_NS).then_some(mtime)
}

/// Notes the new size and time of a text that is in the index already.
fn is_known_text(
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

fn forget(transaction: &rusqlite::Transaction<'_>, name: &str) -> rusqlite::Result<()> {
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

fn learn(
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

/// The line that has most of the words, and its number.
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

/// How much two texts share: their runs of three words.
fn similarity(one: &str, other: &str) -> f64 {
    let runs = |text: &str| -> std::collections::HashSet<String> {
        let words = telling_words_all(text);
        if words.len() < 3 {
            return words.into_iter().collect();
        }
        words.windows(3).map(|run| run.join(" ")).collect()
    };
    let (a, b) = (runs(one), runs(other));
    if a.is_empty() || b.is_empty() {
        return 0.0;
    }
    #[expect(clippy::cast_precision_loss, reason = "counts of words")]
    let share = a.intersection(&b).count() as f64 / a.union(&b).count() as f64;
    share
}

fn telling_words_all(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|w| !w.is_empty())
        .map(str::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notes::NoteDraft;

    fn noted(notes: &NoteFolder, title: &str, body: &str) {
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
    fn what_is_written_edited_and_deleted_is_found_as_it_is() {
        let dir = tempfile::tempdir().expect("temp dir");
        let notes = NoteFolder::open(&dir.path().join("notes")).expect("opened");
        let path = dir.path().join("index.sqlite");
        let mut index = NoteIndex::open(&path).expect("opened");
        noted(&notes, "Slow build", "The linker takes most of the time.");
        noted(&notes, "Flaky test", "It fails when the clock jumps.");
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
    fn an_edit_that_neither_size_nor_time_shows_is_found_all_the_same() {
        let dir = tempfile::tempdir().expect("temp dir");
        let notes = NoteFolder::open(&dir.path().join("notes")).expect("opened");
        let mut index = NoteIndex::open(&dir.path().join("index.sqlite")).expect("opened");
        let path = notes.path().join("n.md");
        // One tick of the clock; in the future, so that a busy machine has time for the rest.
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
                settled_mtime(before, read_at),
                settled_mtime(long_before, read_at)
            ),
            (None, Some(long_before))
        );
    }

    #[test]
    fn notes_in_folders_are_known_again_and_gone_when_they_are_deleted() {
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
            // One at a time, so that the index has them in another order than the folder.
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
    fn no_word_of_a_question_is_an_operator() {
        let dir = tempfile::tempdir().expect("temp dir");
        let notes = NoteFolder::open(&dir.path().join("notes")).expect("opened");
        let mut index = NoteIndex::open(&dir.path().join("index.sqlite")).expect("opened");
        noted(&notes, "One", "near and or not");
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
    fn titles_weigh_more_than_text_and_near_copies_are_known() {
        let dir = tempfile::tempdir().expect("temp dir");
        let notes = NoteFolder::open(&dir.path().join("notes")).expect("opened");
        let mut index = NoteIndex::open(&dir.path().join("index.sqlite")).expect("opened");
        noted(
            &notes,
            "Other",
            "something about caching that goes on for a while and mentions caching once more",
        );
        noted(
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
