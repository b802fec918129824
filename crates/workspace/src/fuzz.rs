//! Fuzz targets: arbitrary bytes as a journal and as edits.

use std::fs;

use super::edit::fuzz::{checked_path, search};
use super::journal::{Journal, JournalRecord};

/// Whatever the journal contains, new records can be read back, and a closed snapshot is no longer
/// open.
pub fn journal(data: &[u8]) {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("journal"), data).expect("written");
    let mut journal = Journal::open(dir.path()).expect("opened");
    let before = journal.records().expect("read");
    let was_open = journal.open_snapshot().expect("read").is_some();
    assert!(
        !was_open
            || before
                .iter()
                .any(|record| matches!(record, JournalRecord::Armed(_)))
    );
    journal.write(&JournalRecord::Exposed).expect("written");
    let after = journal.records().expect("read");
    assert_eq!(
        after.len(),
        before.len() + 1,
        "a record was lost, or one was glued to another"
    );
    let open = journal.open_snapshot().expect("read");
    assert!(open.as_ref().is_none_or(|open| open.exposed) && open.is_some() == was_open);
    journal
        .write(&JournalRecord::Accepted {
            call: String::new(),
        })
        .expect("written");
    assert!(
        journal.open_snapshot().expect("read").is_none(),
        "what was accepted is open"
    );
}

/// Input: path, file, search and replacement, separated by zero bytes. An accepted path stays
/// inside the project, and a search changes one place.
pub fn edits(data: &[u8]) {
    let mut parts = data.splitn(4, |byte| *byte == 0);
    let path = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    checked_path(&path);
    let text = parts.next().unwrap_or_default();
    let wanted = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let replacement = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    search(text, &wanted, &replacement);
}
