//! How large a step was: the lines, public items and dependencies that it added, and the file where most of it lies.

use std::path::Path;

use serde_json::{Value, json};

use super::additions;
use super::baseline::Ground;
use super::gates::{Text, path_texts};
use super::scope;

/// How small the step was: lines, public items, dependencies.
pub(super) fn minimality(ground: &Ground, texts: &[Text]) -> Value {
    let (mut added, mut removed, mut items) = (0, 0, Vec::new());
    for text in texts {
        let lines = additions::lines(text.was(), text.is());
        added += lines.added.len();
        removed += lines.removed.len();
        let old = additions::public_items(ground.ecosystem(), &text.path, text.was(), None);
        let new = additions::public_items(
            ground.ecosystem(),
            &text.path,
            text.is(),
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
pub(super) fn main_file(texts: &[Text]) -> Option<&Path> {
    let size = |text: &&Text| additions::lines(text.was(), text.is()).added.len();
    texts
        .iter()
        .filter(|t| t.after.is_some())
        .max_by_key(size)
        .map(|t| t.path.as_path())
}
