//! Ranks notes for a query: SQLite's BM25, with titles and tags weighted higher than text, and a
//! small boost for newer notes. A word may occur in every note, so a note's metadata is read only
//! while it can still be among the best.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};

use rusqlite::{Connection, OptionalExtension as _};

use super::identity::ProjectIdentity;
use super::index::NoteQuery;

/// Boost of a new note. It halves after this many days.
const MAX_NEWNESS_BOOST: f64 = 0.25;
const HALF_LIFE_DAYS: f64 = 60.0;
/// Maximum number of words used from a query.
const MAX_QUERY_WORDS: usize = 32;

/// How a note's rank was computed.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Ranking {
    /// `bm25 × newness`; higher is better.
    pub score: f64,
    pub bm25: f64,
    pub newness: f64,
    pub age_days: f64,
}

impl Ranking {
    fn of(bm25: f64, updated: &str, now: jiff::Timestamp) -> Self {
        let age_days = updated.parse::<jiff::Timestamp>().map_or(f64::MAX, |at| {
            #[expect(clippy::cast_precision_loss, reason = "days")]
            let seconds = (now.as_second() - at.as_second()).max(0) as f64;
            seconds / 86_400.0
        });
        let newness =
            1.0 + MAX_NEWNESS_BOOST * (-age_days / HALF_LIFE_DAYS * std::f64::consts::LN_2).exp();
        let shown_age = if age_days == f64::MAX {
            -1.0
        } else {
            round(age_days)
        };
        Self {
            score: round(bm25 * newness),
            bm25: round(bm25),
            newness: round(newness),
            age_days: shown_age,
        }
    }
}

fn round(x: f64) -> f64 {
    (x * 10_000.0).round() / 10_000.0
}

/// A note that contains a word of the query.
struct WordMatch {
    bm25: f64,
    id: i64,
}

impl WordMatch {
    /// The score it would have if written right now.
    fn max_score(&self) -> f64 {
        round(self.bm25 * (1.0 + MAX_NEWNESS_BOOST))
    }
}

impl Ord for WordMatch {
    fn cmp(&self, other: &Self) -> Ordering {
        self.bm25
            .total_cmp(&other.bm25)
            .then_with(|| self.id.cmp(&other.id))
    }
}

impl PartialOrd for WordMatch {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for WordMatch {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for WordMatch {}

/// The best notes, best first. Ties are ordered by name, so that the order does not depend on the
/// index.
pub(super) fn best(
    connection: &Connection,
    expression: &str,
    query: &NoteQuery,
    now: jiff::Timestamp,
) -> rusqlite::Result<Vec<(String, Ranking)>> {
    let mut matches = matches(connection, expression)?;
    let mut metadata = connection
        .prepare_cached("SELECT name, project, kind, tags, updated FROM notes WHERE id = ?1")?;
    let mut filter = NoteFilter::new(query);
    let mut best: Vec<(String, Ranking)> = Vec::new();
    // In order of BM25: once even a brand-new note could not reach the last place, the rest cannot
    // either.
    while let Some(found) = matches.pop() {
        if best.len() >= query.limit
            && best
                .last()
                .is_none_or(|(_, last)| found.max_score() < last.score)
        {
            break;
        }
        let note = metadata.query_row([found.id], |row| {
            let is_wanted = filter.accepts(
                row.get_ref(1)?.as_str()?,
                row.get_ref(2)?.as_str()?,
                row.get_ref(3)?.as_str()?,
            );
            let ranked = || {
                Ok((
                    row.get(0)?,
                    Ranking::of(found.bm25, row.get_ref(4)?.as_str()?, now),
                ))
            };
            is_wanted.then(ranked).transpose()
        });
        let Some(note) = note.optional()?.flatten() else {
            continue;
        };
        let at = best
            .binary_search_by(|other| compare(other, &note))
            .unwrap_or_else(|at| at);
        best.insert(at, note);
        best.truncate(query.limit);
    }
    Ok(best)
}

fn compare(one: &(String, Ranking), other: &(String, Ranking)) -> Ordering {
    other
        .1
        .score
        .total_cmp(&one.1.score)
        .then_with(|| one.0.cmp(&other.0))
}

fn matches(connection: &Connection, expression: &str) -> rusqlite::Result<BinaryHeap<WordMatch>> {
    let mut statement = connection.prepare_cached(
        "SELECT rowid, bm25(texts, 6.0, 4.0, 1.0) FROM texts WHERE texts MATCH ?1",
    )?;
    let rows = statement.query_map([expression], |row| {
        Ok(WordMatch {
            id: row.get(0)?,
            bm25: -row.get::<_, f64>(1)?,
        })
    })?;
    // Building a heap is linear, and only its first few entries are taken.
    rows.collect::<rusqlite::Result<Vec<_>>>()
        .map(BinaryHeap::from)
}

/// The filter conditions of a query.
struct NoteFilter<'q> {
    query: &'q NoteQuery,
    /// Cached per project: there are few projects and many notes.
    projects: HashMap<String, bool>,
}

impl<'q> NoteFilter<'q> {
    fn new(query: &'q NoteQuery) -> Self {
        Self {
            query,
            projects: HashMap::new(),
        }
    }

    fn accepts(&mut self, project: &str, kind: &str, tags: &str) -> bool {
        self.query.kind.is_none_or(|wanted| wanted.word() == kind)
            && self
                .query
                .tags
                .iter()
                .all(|tag| tags.split('\n').any(|t| t.eq_ignore_ascii_case(tag)))
            && (self.query.projects.is_empty() || self.is_wanted_project(project))
    }

    fn is_wanted_project(&mut self, project: &str) -> bool {
        if let Some(known) = self.projects.get(project) {
            return *known;
        }
        let mut names = project.split('\n').map(ProjectIdentity::parse);
        let is_wanted_project = names.any(|name| {
            self.query
                .projects
                .iter()
                .any(|wanted| name.is_same(wanted))
        });
        self.projects.insert(project.to_owned(), is_wanted_project);
        is_wanted_project
    }
}

/// The words of a query, in lower case.
pub(super) fn query_words(text: &str) -> Vec<String> {
    let words = text
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|w| !w.is_empty())
        .take(MAX_QUERY_WORDS);
    words.map(str::to_lowercase).collect()
}

/// Quotes each word, so that nothing in it is an operator. Words match by prefix.
pub(super) fn match_expression(text: &str) -> Option<String> {
    let words = query_words(text);
    let quoted: Vec<String> = words
        .iter()
        .map(|word| format!("\"{}\"*", word.replace('"', "")))
        .collect();
    (!quoted.is_empty()).then(|| quoted.join(" OR "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NoteKind;
    use crate::index::TABLES;

    const WORDS: &[&str] = &["cache", "build", "linker", "clock", "test", "slow", "note"];

    /// Random notes: rare, common and ubiquitous words, any age, and some that differ only in name.
    fn connection_with_notes(rng: &mut fastrand::Rng, now: jiff::Timestamp) -> Connection {
        let connection = Connection::open_in_memory().expect("opened");
        connection.execute_batch(TABLES).expect("made");
        for n in 0..rng.u32(1..60) {
            let body: Vec<&str> = (0..rng.usize(1..12))
                .map(|_| WORDS[rng.usize(..WORDS.len()).min(rng.usize(..9))])
                .collect();
            let updated = match rng.u8(..4) {
                0 => String::from("some day"),
                1 => now.to_string(),
                _ => jiff::Timestamp::from_second(now.as_second() - rng.i64(0..20_000_000))
                    .expect("a time")
                    .to_string(),
            };
            let (kind, tags) = (
                ["fact", "failure"][rng.usize(..2)],
                ["", "ci", "ci\nslow"][rng.usize(..3)],
            );
            // Names are not in insertion order.
            let name = format!("{}-{n}.md", rng.alphabetic());
            connection
                .execute(
                    "INSERT INTO notes (id, name, project, kind, tags, updated) VALUES (?1, ?2, 'path:/p', ?3, ?4, ?5)",
                    rusqlite::params![n, name, kind, tags, updated],
                )
                .expect("kept");
            connection
                .execute(
                    "INSERT INTO texts (rowid, title, tags, body) VALUES (?1, ?2, ?3, ?4)",
                    rusqlite::params![
                        n,
                        WORDS[rng.usize(..WORDS.len())],
                        tags,
                        format!("note {}", body.join(" "))
                    ],
                )
                .expect("kept");
        }
        connection
    }

    /// Reference implementation: ranks all matches, sorts and truncates.
    fn all_ranked(
        connection: &Connection,
        expression: &str,
        query: &NoteQuery,
        now: jiff::Timestamp,
    ) -> Vec<(String, Ranking)> {
        let mut statement = connection
            .prepare(
                "SELECT notes.name, bm25(texts, 6.0, 4.0, 1.0), notes.project, notes.kind, notes.tags, notes.updated
                 FROM texts JOIN notes ON notes.id = texts.rowid WHERE texts MATCH ?1",
            )
            .expect("understood");
        let mut filter = NoteFilter::new(query);
        let mut rows = statement.query([expression]).expect("asked");
        let mut found: Vec<(String, Ranking)> = Vec::new();
        while let Some(row) = rows.next().expect("read") {
            let text = |n: usize| row.get::<_, String>(n).expect("text");
            if filter.accepts(&text(2), &text(3), &text(4)) {
                found.push((
                    text(0),
                    Ranking::of(-row.get::<_, f64>(1).expect("a number"), &text(5), now),
                ));
            }
        }
        found.sort_by(|one, other| {
            other
                .1
                .score
                .total_cmp(&one.1.score)
                .then_with(|| one.0.cmp(&other.0))
        });
        found.truncate(query.limit);
        found
    }

    #[test]
    fn best_equals_the_reference_ranking() {
        let now: jiff::Timestamp = "2026-06-01T12:00:00Z".parse().expect("a time");
        let mut ties = 0;
        for seed in 0..300 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let connection = connection_with_notes(&mut rng, now);
            for words in [
                "note",
                "linker",
                "linker note",
                "slow build cache",
                "ca te li",
                "nothing",
            ] {
                let query = NoteQuery {
                    words: words.into(),
                    kind: rng.bool().then_some(NoteKind::Failure),
                    tags: if rng.u8(..4) == 0 {
                        vec!["CI".into()]
                    } else {
                        Vec::new()
                    },
                    projects: Vec::new(),
                    limit: rng.usize(..12),
                };
                let expression = match_expression(words).expect("words");
                let expected = all_ranked(&connection, &expression, &query, now);
                assert_eq!(
                    best(&connection, &expression, &query, now).expect("asked"),
                    expected,
                    "seed {seed}: {words}"
                );
                ties += expected
                    .windows(2)
                    .filter(|two| two[0].1.score == two[1].1.score)
                    .count();
            }
        }
        assert!(
            ties > 100,
            "only {ties} ties: the order by name was hardly asked for"
        );
    }
}
