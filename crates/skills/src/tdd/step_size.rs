//! Measures a change: the lines, public items and dependencies it added, and the file that changed
//! most.

use std::path::Path;

use serde_json::{Value, json};

use super::additions;
use super::baseline::TestBaseline;
use super::gates::{ChangedText, path_texts};
use super::scope;

/// Size of the change, for the details of a result.
pub(super) fn size_details(baseline: &TestBaseline, texts: &[ChangedText]) -> Value {
    let (mut added, mut removed, mut items) = (0, 0, Vec::new());
    for text in texts {
        let lines = additions::changed_lines(text.old_text(), text.new_text());
        added += lines.added.len();
        removed += lines.removed.len();
        let old = additions::public_items(baseline.ecosystem(), &text.path, text.old_text(), None);
        let new = additions::public_items(
            baseline.ecosystem(),
            &text.path,
            text.new_text(),
            Some(&lines.added),
        );
        items.extend(new.into_iter().filter(|item| !old.contains(item)));
    }
    json!({
        "files_changed": path_texts(texts.iter().map(|t| &t.path)),
        "lines_added": added,
        "lines_removed": removed,
        "new_public_items": items,
        "new_dependencies": scope::new_dependencies(texts),
    })
}

/// The file with the most new lines.
pub(super) fn main_file(texts: &[ChangedText]) -> Option<&Path> {
    let size = |text: &&ChangedText| {
        additions::changed_lines(text.old_text(), text.new_text())
            .added
            .len()
    };
    texts
        .iter()
        .filter(|t| t.after.is_some())
        .max_by_key(size)
        .map(|t| t.path.as_path())
}
