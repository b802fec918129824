//! Any text as a path, a search and a replacement.

use super::path::checked;
use super::search::{SearchOutcome, find};

/// A path that is let through has plain parts only, and none that belongs to git.
pub fn checked_path(path: &str) {
    let Ok(bytes) = checked(path) else { return };
    let text = String::from_utf8(bytes).expect("it was text");
    assert!(!text.starts_with('/') && !text.is_empty());
    for part in text.split('/') {
        assert!(
            !part.is_empty() && part != "." && part != ".." && part.len() <= 255,
            "{text:?}"
        );
        assert!(
            !part.to_lowercase().trim_end_matches(['.', ' ']).eq(".git"),
            "{text:?}"
        );
        assert!(!part.contains('\0') && !part.contains('\n'), "{text:?}");
    }
}

/// What stands before and after the place that was found is kept.
pub fn search(text: &[u8], wanted: &str, replacement: &str) {
    match find(text, wanted, replacement) {
        SearchOutcome::Exact(new) => {
            assert_eq!(
                new.len() + wanted.len(),
                text.len() + replacement.len(),
                "more than one place was changed"
            );
        }
        SearchOutcome::Tolerant(new) => {
            assert!(new.len() <= text.len() + (replacement.len() + 2) * (text.len() + 2))
        }
        SearchOutcome::Several { lines } => {
            let most = text.split(|byte| *byte == b'\n').count();
            assert!(
                lines.len() > 1 && lines.iter().all(|line| (1..=most).contains(line)),
                "{lines:?} of {most}"
            );
        }
        SearchOutcome::Nothing { nearest } => {
            assert!(nearest.is_none_or(|(line, quoted)| line >= 1 && quoted.len() < 20_000));
        }
        SearchOutcome::EmptySearch => assert!(wanted.trim().is_empty()),
    }
}
