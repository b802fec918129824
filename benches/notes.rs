//! `notes`: with 10,000 notes of 2 KB, measures the first indexing, and a query relative to a plain
//! `SELECT` of every row in the same file. Also compares the memory of a server that has these
//! notes but was never asked for one with a server that has none.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use supervisor_memory::{Note, NoteFolder, NoteIndex, NoteQuery};

const NOTES: usize = 10_000;
const ROUNDS: usize = 31;
const SERVER_STARTS: usize = 15;

pub(super) fn run() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("notes");
    std::fs::create_dir_all(&folder).unwrap();
    for n in 0..NOTES {
        let now = jiff::Timestamp::now().to_string();
        let mut body = format!("Note number {n} about caching.\n");
        while body.len() < 2_000 {
            body += &format!(
                "word{} of topic{} beside item{}\n",
                n * 7 % 5_003,
                n % 97,
                body.len() * n % 9_973
            );
        }
        let note = Note {
            title: format!("Topic {n}"),
            body,
            created: now.clone(),
            updated: now,
            ..Note::default()
        };
        std::fs::write(folder.join(format!("n{n}.md")), note.render()).unwrap();
    }
    let notes = NoteFolder::open(&folder).unwrap();
    let path = dir.path().join("index.sqlite");
    let began = Instant::now();
    let mut progress_calls = 0;
    let mut index = NoteIndex::open(&path).unwrap();
    index
        .refresh(&notes, &mut |_, _| progress_calls += 1)
        .unwrap();
    let built = began.elapsed();
    drop(index);

    let plain = median(|| {
        let connection = rusqlite::Connection::open(&path).unwrap();
        let mut statement = connection
            .prepare("SELECT name, size, mtime FROM notes")
            .unwrap();
        let rows = statement
            .query_map([], |row| row.get::<_, String>(0))
            .unwrap()
            .count();
        assert_eq!(rows, NOTES);
    });
    let query = NoteQuery {
        words: "word77 topic5 caching".into(),
        limit: 5,
        ..NoteQuery::default()
    };
    let warm = median(|| {
        let mut index = NoteIndex::open(&path).unwrap();
        index.refresh(&notes, &mut |_, _| {}).unwrap();
        assert_eq!(
            index
                .query(&notes, &query, jiff::Timestamp::now())
                .unwrap()
                .len(),
            5
        );
    });
    println!("first look at {NOTES} notes: {built:.1?}, told {progress_calls} times");
    println!(
        "plain SELECT p50 {plain:.1?}; warm question p50 {warm:.1?}: {:.1} ×",
        warm.as_secs_f64() / plain.as_secs_f64()
    );
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..SERVER_STARTS {
        with.push(super::start::idle_kb(server(dir.path(), &folder)));
        without.push(super::start::idle_kb(server(
            dir.path(),
            &dir.path().join("none"),
        )));
    }
    let (with, without) = (
        super::start::median(with.into_iter()),
        super::start::median(without.into_iter()),
    );
    println!(
        "never asked: {with} kB idle with these notes, {without} kB without any: {:+} kB",
        with - without
    );
}

/// A server whose notes are in this folder.
fn server(home: &Path, notes: &Path) -> Command {
    let mut command = Command::new(super::program());
    command
        .env("HOME", home)
        .env("SUPERVISOR_STATE_DIR", home.join("state"))
        .env("SUPERVISOR_BRAIN__DIR", notes);
    command
}

fn median(mut once: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let began = Instant::now();
            once();
            began.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[ROUNDS / 2]
}
