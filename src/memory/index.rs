//! Full-text search over the notes: SQLite's FTS5 with BM25, titles and tags weighing more than text, newer notes a
//! little more than older ones. Disposable: made anew when it is missing, damaged or of another version, and brought up
//! to date before each query, because people edit the files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};

use super::identity::ProjectIdentity;
use super::note::{Note, NoteKind};
use super::notes::{NoteError, NoteFolder};
use crate::words;
use crate::workspace::FolderEntry;

/// Moves when the tables do.
const VERSION: i64 = 1;
/// How long another server may keep the index to itself.
const PATIENCE: Duration = Duration::from_secs(10);
/// A note counts for up to so much more when it is new, and half of that after this many days.
const NEWNESS: f64 = 0.25;
const HALF_LIFE_DAYS: f64 = 60.0;
/// Words of a question that are looked for.
const MOST_WORDS: usize = 32;

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

/// Why a note stands where it stands.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Ranking {
    /// What counts: `bm25 × newness`, larger is better.
    pub score: f64,
    pub bm25: f64,
    pub newness: f64,
    pub age_days: f64,
}

#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    #[error("the index of notes `{path}` cannot be used: {source}; remove the file, it is made anew")]
    Sqlite { path: PathBuf, source: rusqlite::Error },
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
                matches!(source.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase))
            }
            Self::Notes(_) | Self::NoWords => false,
        }
    }
}

impl NoteIndex {
    /// Opens the index, or makes it anew where it is of no use.
    pub fn open(path: &Path) -> Result<Self, IndexError> {
        match Self::try_open(path) {
            Ok(index) => Ok(index),
            Err(_) => {
                Self::remove(path);
                Self::try_open(path).map_err(|source| IndexError::Sqlite { path: path.to_owned(), source })
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
                "BEGIN IMMEDIATE;
                 DROP TABLE IF EXISTS notes; DROP TABLE IF EXISTS texts;
                 CREATE TABLE notes (id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, size INTEGER, mtime INTEGER,
                   hash TEXT, project TEXT, kind TEXT, tags TEXT, updated TEXT);
                 CREATE VIRTUAL TABLE texts USING fts5(title, tags, body, tokenize = 'porter unicode61 remove_diacritics 2');",
            )?;
            connection.pragma_update(None, "user_version", VERSION)?;
            connection.execute_batch("COMMIT;")?;
        }
        // A damaged file often opens well, and fails when it is read. What this look misses, the query finds: one row of
        // each table, because to count them takes as long as a query may.
        for table in ["notes", "texts"] {
            connection.query_row(&format!("SELECT rowid FROM {table} LIMIT 1"), [], |_| Ok(())).optional()?;
        }
        Ok(Self { connection })
    }

    /// Takes in what was written, edited and deleted since. `tell` hears how far it has come.
    pub fn refresh(&mut self, notes: &NoteFolder, tell: &mut dyn FnMut(usize, usize)) -> Result<usize, IndexError> {
        let path = notes.path().to_owned();
        let fail = |source| IndexError::Sqlite { path: path.clone(), source };
        let files = notes.list()?;
        let mut known = self.known().map_err(fail)?;
        let mut changed = Vec::new();
        for (name, entry) in files {
            let same = known
                .remove(&name)
                .is_some_and(|(size, mtime)| size == entry.size.cast_signed() && mtime == entry.mtime);
            if !same {
                changed.push((name, entry));
            }
        }
        if changed.is_empty() && known.is_empty() {
            return Ok(0);
        }
        let total = changed.len();
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fail)?;
        for name in known.keys() {
            forget(&transaction, name).map_err(fail)?;
        }
        for (n, (name, entry)) in changed.into_iter().enumerate() {
            if n % 500 == 0 && total > 500 {
                tell(n, total);
            }
            // Gone or unreadable meanwhile: the next query sees it.
            let Ok(Some(text)) = notes.read(&name) else { continue };
            // Touched, but not changed: another checkout, a restored backup.
            if is_known_text(&transaction, &name, &entry, &text).map_err(fail)? {
                continue;
            }
            let note = Note::parse(&name, &text);
            forget(&transaction, &name).map_err(fail)?;
            learn(&transaction, &name, entry.size.cast_signed(), entry.mtime, &text, &note).map_err(fail)?;
        }
        transaction.commit().map_err(fail)?;
        Ok(total)
    }

    fn known(&self) -> rusqlite::Result<HashMap<String, (i64, i64)>> {
        let mut statement = self.connection.prepare_cached("SELECT name, size, mtime FROM notes")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?;
        rows.collect()
    }

    /// The best first; the same question over the same notes has the same answer.
    pub fn query(
        &self,
        notes: &NoteFolder,
        query: &NoteQuery,
        now: jiff::Timestamp,
    ) -> Result<Vec<NoteHit>, IndexError> {
        let expression = match_expression(&query.words).ok_or(IndexError::NoWords)?;
        let fail = |source| IndexError::Sqlite { path: notes.path().to_owned(), source };
        let found = self.matches(&expression, query, now).map_err(fail)?;
        let words = telling_words(&query.words);
        let mut hits = Vec::new();
        for (name, ranking) in found.into_iter().take(query.limit) {
            let Some(text) = notes.read(&name)? else { continue };
            let note = Note::parse(&name, &text);
            let (line, excerpt) = excerpt_of(&text, &words);
            hits.push(NoteHit { title: note.title.clone(), name, ranking, excerpt, line, note });
        }
        Ok(hits)
    }

    fn matches(
        &self,
        expression: &str,
        query: &NoteQuery,
        now: jiff::Timestamp,
    ) -> rusqlite::Result<Vec<(String, Ranking)>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT notes.name, bm25(texts, 6.0, 4.0, 1.0), notes.project, notes.kind, notes.tags, notes.updated
             FROM texts JOIN notes ON notes.id = texts.rowid WHERE texts MATCH ?1",
        )?;
        let mut projects: HashMap<String, bool> = HashMap::new();
        let mut rows = statement.query([expression])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let (project, kind, tags): (String, String, String) = (row.get(2)?, row.get(3)?, row.get(4)?);
            if !query.projects.is_empty() {
                let is_ours = projects.entry(project.clone()).or_insert_with(|| {
                    let mut names = project.split('\n').map(ProjectIdentity::parse);
                    names.any(|name| query.projects.iter().any(|wanted| name.is_same(wanted)))
                });
                if !*is_ours {
                    continue;
                }
            }
            let has_tags = query.tags.iter().all(|tag| tags.split('\n').any(|t| t.eq_ignore_ascii_case(tag)));
            if query.kind.is_some_and(|wanted| wanted.word() != kind) || !has_tags {
                continue;
            }
            let updated: String = row.get(5)?;
            found.push((row.get(0)?, rank(-row.get::<_, f64>(1)?, &updated, now)));
        }
        // On a tie by name, so that the order never depends on the index.
        found.sort_by(|a: &(String, Ranking), b| b.1.score.total_cmp(&a.1.score).then_with(|| a.0.cmp(&b.0)));
        Ok(found)
    }

    /// The note that says nearly the same, if there is one.
    pub fn find_similar(&self, notes: &NoteFolder, note: &Note, except: &str) -> Result<Option<String>, IndexError> {
        let words = format!("{} {}", note.title, note.body);
        let Some(expression) = match_expression(&words) else { return Ok(None) };
        let fail = |source| IndexError::Sqlite { path: notes.path().to_owned(), source };
        let query = NoteQuery { limit: 10, ..NoteQuery::default() };
        let found = self.matches(&expression, &query, jiff::Timestamp::now()).map_err(fail)?;
        for (name, _) in found.into_iter().take(query.limit).filter(|(name, _)| name != except) {
            let Some(text) = notes.read(&name)? else { continue };
            if similarity(&Note::parse(&name, &text).body, &note.body) >= 0.8 {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }
}

/// Notes the new size and time of a text that is in the index already.
fn is_known_text(
    transaction: &rusqlite::Transaction<'_>,
    name: &str,
    entry: &FolderEntry,
    text: &str,
) -> rusqlite::Result<bool> {
    let hash = blake3::hash(text.as_bytes()).to_hex().to_string();
    let updated = transaction.execute(
        "UPDATE notes SET size = ?1, mtime = ?2 WHERE name = ?3 AND hash = ?4",
        params![entry.size.cast_signed(), entry.mtime, name, hash],
    )?;
    Ok(updated > 0)
}

fn forget(transaction: &rusqlite::Transaction<'_>, name: &str) -> rusqlite::Result<()> {
    let id: Option<i64> =
        transaction.query_row("SELECT id FROM notes WHERE name = ?1", [name], |row| row.get(0)).optional()?;
    if let Some(id) = id {
        transaction.execute("DELETE FROM texts WHERE rowid = ?1", [id])?;
        transaction.execute("DELETE FROM notes WHERE id = ?1", [id])?;
    }
    Ok(())
}

fn learn(
    transaction: &rusqlite::Transaction<'_>,
    name: &str,
    size: i64,
    mtime: i64,
    text: &str,
    note: &Note,
) -> rusqlite::Result<()> {
    let hash = blake3::hash(text.as_bytes()).to_hex().to_string();
    let project = std::iter::once(&note.project).chain(&note.aliases).cloned().collect::<Vec<_>>().join("\n");
    transaction.execute(
        "INSERT INTO notes (name, size, mtime, hash, project, kind, tags, updated) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![name, size, mtime, hash, project, note.kind.word(), note.tags.join("\n"), note.updated],
    )?;
    let id = transaction.last_insert_rowid();
    transaction.execute(
        "INSERT INTO texts (rowid, title, tags, body) VALUES (?1, ?2, ?3, ?4)",
        params![id, note.title, note.tags.join(" "), note.body],
    )?;
    Ok(())
}

fn rank(bm25: f64, updated: &str, now: jiff::Timestamp) -> Ranking {
    let age_days = updated.parse::<jiff::Timestamp>().map_or(f64::MAX, |at| {
        #[expect(clippy::cast_precision_loss, reason = "days")]
        let seconds = (now.as_second() - at.as_second()).max(0) as f64;
        seconds / 86_400.0
    });
    let newness = 1.0 + NEWNESS * (-age_days / HALF_LIFE_DAYS * std::f64::consts::LN_2).exp();
    let round = |x: f64| (x * 10_000.0).round() / 10_000.0;
    let shown_age = if age_days == f64::MAX { -1.0 } else { round(age_days) };
    Ranking { score: round(bm25 * newness), bm25: round(bm25), newness: round(newness), age_days: shown_age }
}

fn telling_words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty()).take(MOST_WORDS);
    words.map(str::to_lowercase).collect()
}

/// Each word in quotes, so that nothing in it is an operator; the beginning of a word is enough.
fn match_expression(text: &str) -> Option<String> {
    let words = telling_words(text);
    let quoted: Vec<String> = words.iter().map(|word| format!("\"{}\"*", word.replace('"', ""))).collect();
    (!quoted.is_empty()).then(|| quoted.join(" OR "))
}

/// The line that has most of the words, and its number.
fn excerpt_of(text: &str, words: &[String]) -> (usize, String) {
    let body = crate::words::front_matter::split(text).map_or(1, |front| front.body_line);
    let lines = text.lines().enumerate().skip(body - 1).filter(|(_, line)| !line.trim().is_empty());
    let score = |line: &str| {
        let line = line.to_lowercase();
        words.iter().filter(|word| line.contains(word.as_str())).count()
    };
    let best = lines.max_by_key(|(n, line)| (score(line), std::cmp::Reverse(*n)));
    best.map_or((1, String::new()), |(n, line)| (n + 1, words::cut_end(line.trim(), 160).into_owned()))
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
    text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::notes::NoteDraft;

    fn noted(notes: &NoteFolder, title: &str, body: &str) {
        let now = jiff::Timestamp::now().to_string();
        let note =
            Note { title: title.into(), body: body.into(), created: now.clone(), updated: now, ..Note::default() };
        notes.write(NoteDraft { note, filename: None, overwrite: true }).expect("written");
    }

    fn names(index: &mut NoteIndex, notes: &NoteFolder, words: &str) -> Vec<String> {
        index.refresh(notes, &mut |_, _| {}).expect("fresh");
        let query = NoteQuery { words: words.into(), limit: 10, ..NoteQuery::default() };
        index.query(notes, &query, jiff::Timestamp::now()).expect("asked").into_iter().map(|hit| hit.name).collect()
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
        std::fs::write(notes.path().join("slow-build.md"), "# Slow build\n\nNow it is the compiler.\n")
            .expect("edited");
        assert_eq!(names(&mut index, &notes, "compiler"), ["slow-build.md"]);
        assert!(names(&mut index, &notes, "linker").is_empty());
        notes.delete("slow-build.md").expect("deleted");
        assert!(names(&mut index, &notes, "compiler").is_empty());
        drop(index);
        for damage in ["", "not a database at all, but long enough to be taken for one".repeat(100).as_str()] {
            std::fs::write(&path, damage).expect("damaged");
            let mut index = NoteIndex::open(&path).expect("made anew");
            assert_eq!(names(&mut index, &notes, "clock"), ["flaky-test.md"]);
        }
    }

    #[test]
    fn no_word_of_a_question_is_an_operator() {
        let dir = tempfile::tempdir().expect("temp dir");
        let notes = NoteFolder::open(&dir.path().join("notes")).expect("opened");
        let mut index = NoteIndex::open(&dir.path().join("index.sqlite")).expect("opened");
        noted(&notes, "One", "near and or not");
        for words in ["NEAR(a b)", "a\" OR \"b", "title: x", "*", "^one", "a AND", "(", "one -two"] {
            index.refresh(&notes, &mut |_, _| {}).expect("fresh");
            let query = NoteQuery { words: words.into(), limit: 5, ..NoteQuery::default() };
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
        noted(&notes, "Other", "something about caching that goes on for a while and mentions caching once more");
        noted(&notes, "Caching", "a short text about something else that is as long as the other one is here");
        assert_eq!(names(&mut index, &notes, "caching")[0], "caching.md");
        let copy = Note {
            title: "New".into(),
            body: "Something about caching that goes on for a while and mentions caching once more.".into(),
            ..Note::default()
        };
        assert_eq!(index.find_similar(&notes, &copy, "new.md").expect("asked").as_deref(), Some("other.md"));
    }
}
