//! Fuzz targets: arbitrary text as a path, a search and a replacement.

use super::path::validate;
use super::search::{SearchOutcome, replace_once};

/// An accepted path has only plain components, none of which belongs to git.
pub(crate) fn checked_path(path: &str) {
    let Ok(bytes) = validate(path) else { return };
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

/// Text before and after the match is kept.
pub(crate) fn search(text: &[u8], wanted: &str, replacement: &str) {
    match replace_once(text, wanted, replacement) {
        SearchOutcome::Exact(new) => {
            assert_eq!(
                new.len() + wanted.len(),
                text.len() + replacement.len(),
                "more than one place was changed"
            );
        }
        SearchOutcome::Tolerant(new) => {
            assert!(new.len() <= text.len() + (replacement.len() + 2) * (text.len() + 2));
        }
        SearchOutcome::Ambiguous { lines } => {
            let max_line = text.split(|byte| *byte == b'\n').count();
            assert!(
                lines.len() > 1 && lines.iter().all(|line| (1..=max_line).contains(line)),
                "{lines:?} of {max_line}"
            );
        }
        SearchOutcome::NoMatch { nearest } => {
            assert!(nearest.is_none_or(|(line, quoted)| line >= 1 && quoted.len() < 20_000));
        }
        SearchOutcome::EmptySearch => assert!(wanted.trim().is_empty()),
    }
}
