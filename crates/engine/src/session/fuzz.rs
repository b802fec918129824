//! Fuzz target: arbitrary bytes as a session log.

use std::io::{Seek as _, SeekFrom, Write as _};

use super::SessionId;
use super::read::LogReader;

/// Every line is either an entry or counted as damage; no line hides another.
pub fn log_reader(data: &[u8]) {
    let mut file = tempfile::tempfile().expect("a temporary file");
    file.write_all(data)
        .and_then(|()| file.seek(SeekFrom::Start(0)))
        .expect("written");
    let id: SessionId = "s".parse().expect("a name");
    let history = LogReader::new(&id, Some(file)).into_history();
    let lines = data
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.trim_ascii().is_empty())
        .count();
    assert_eq!(
        history.records.len() + history.damage.lines(),
        lines,
        "{:?}",
        history.damage
    );
    assert!(
        history
            .damage
            .first_faults
            .iter()
            .all(|fault| fault.why.len() < 1_000)
    );
    assert!(history.damage.tampered <= history.records.len());
}
