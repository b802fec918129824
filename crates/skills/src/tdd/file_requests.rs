//! Handles requests by a model to see more files before it answers, by path, name or search words.
//! The search runs when the model asks, so that it learns what was found; the files are part of
//! the next question.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use supervisor_engine::evidence::{Evidence, FollowUp, FollowUpKind};
use supervisor_text::redact::is_secret_file;
use supervisor_text::words;

/// Files shown per request.
const MAX_FILES_PER_REQUEST: usize = 3;
/// Larger files are not searched.
const MAX_SEARCHED_BYTES: u64 = 512 * 1024;

/// The follow-up question after an answer that asks for these files.
pub(super) fn follow_up(root: &Path, paths: &[String], requests: &[String]) -> FollowUp {
    let (mut found, mut missing): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for request in requests.iter().take(8) {
        let files = find_files(root, paths, request);
        if files.is_empty() {
            missing.push(format!("`{}`", words::plain(request)));
        }
        found.extend(
            files
                .into_iter()
                .filter(|file| !found.contains(file))
                .collect::<Vec<_>>(),
        );
    }
    // The names make the next question show what they define. What did not fit is said there.
    let asked: Vec<String> = requests
        .iter()
        .take(8)
        .map(|request| words::cut_end(&words::plain(request), 200).into_owned())
        .collect();
    let mut message = format!("You asked to see {}.", asked.join(", "));
    if !found.is_empty() {
        message += &format!(" Found in: `{}`.", found.join("`, `"));
    }
    if !missing.is_empty() {
        message += &format!(" Not found: {}.", missing.join(", "));
    }
    message += " Now write the code.";
    FollowUp::need(message, json!(found))
}

/// What the model was told about its requests in this attempt.
pub(super) fn request_texts(evidence: &Evidence) -> String {
    let requests = evidence
        .follow_ups()
        .iter()
        .filter(|one| one.kind == FollowUpKind::Need);
    requests.map(|one| format!("\n{}", one.message)).collect()
}

/// Files that earlier follow-ups of this attempt asked for.
pub(super) fn requested_files(evidence: &Evidence) -> Vec<PathBuf> {
    let file_requests = evidence
        .follow_ups()
        .iter()
        .filter(|one| one.kind == FollowUpKind::Need);
    let paths = file_requests.flat_map(|one| one.request.as_array().into_iter().flatten());
    paths.filter_map(Value::as_str).map(PathBuf::from).collect()
}

/// The file with this path, or the files that contain the name, those with a definition first.
fn find_files(root: &Path, paths: &[String], request: &str) -> Vec<String> {
    let path_or_name = request
        .trim()
        .trim_matches(['`', '"', '\''])
        .trim_start_matches("./");
    // Files with secrets are shown only if the caller names them. A model's request is not enough.
    let shown = || paths.iter().filter(|path| !is_secret_file(Path::new(path)));
    let matches_path =
        |path: &&String| *path == path_or_name || path.ends_with(&format!("/{path_or_name}"));
    let by_path: Vec<String> = shown()
        .filter(matches_path)
        .take(MAX_FILES_PER_REQUEST)
        .cloned()
        .collect();
    if !by_path.is_empty() {
        return by_path;
    }
    // For `search "x"`, `the function x` or `fn x()`, use the quoted text or the longest word.
    let quoted = request
        .split(['"', '`'])
        .nth(1)
        .filter(|inside| !inside.trim().is_empty());
    let words = path_or_name.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let Some(name) = quoted
        .or_else(|| words.max_by_key(|word| word.len()))
        .filter(|name| name.len() > 2)
    else {
        return Vec::new();
    };
    let mut hits: Vec<(bool, &String)> = Vec::new();
    for path in shown().take(5_000) {
        let full_path = root.join(path);
        if full_path
            .symlink_metadata()
            .is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_SEARCHED_BYTES)
            && let Ok(text) = fs::read_to_string(&full_path)
            && text.contains(name)
        {
            let defines = |line: &str| {
                let before = line.split(name).next().unwrap_or_default().trim();
                line.contains(name)
                    && [
                        "fn",
                        "def",
                        "class",
                        "struct",
                        "enum",
                        "trait",
                        "type",
                        "func",
                        "function",
                        "defmodule",
                        "module",
                        "const",
                        "impl",
                        "interface",
                    ]
                    .iter()
                    .any(|word| before.ends_with(word))
            };
            hits.push((!text.lines().any(defines), path));
        }
        if hits.len() > 200 {
            break;
        }
    }
    hits.sort();
    hits.into_iter()
        .take(MAX_FILES_PER_REQUEST)
        .map(|(_, path)| path.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requested_files_are_found_by_path_and_name() {
        let dir = tempfile::tempdir().expect("temp dir");
        let files = [
            ("src/roman.rs", "pub fn to_roman(n: u32) {}\n"),
            ("src/main.rs", "use demo::to_roman;\n"),
            ("README.md", "about VIIII\n"),
            (".env", "to_roman=VIIII\n"),
        ];
        for (path, text) in files {
            fs::create_dir_all(dir.path().join("src")).expect("mkdir");
            fs::write(dir.path().join(path), text).expect("write");
        }
        let paths: Vec<String> = files.iter().map(|(path, _)| (*path).to_owned()).collect();
        assert_eq!(
            find_files(dir.path(), &paths, "src/roman.rs"),
            ["src/roman.rs"]
        );
        assert_eq!(
            find_files(dir.path(), &paths, "`roman.rs`"),
            ["src/roman.rs"]
        );
        assert_eq!(
            find_files(dir.path(), &paths, "fn to_roman"),
            ["src/roman.rs", "src/main.rs"]
        );
        assert!(
            find_files(dir.path(), &paths, ".env").is_empty(),
            "secrets are not shown because a model asks"
        );
        assert_eq!(
            find_files(dir.path(), &paths, "search \"VIIII\""),
            ["README.md"]
        );
        let reply = follow_up(
            dir.path(),
            &paths,
            &["fn to_roman".into(), "no_such_thing".into()],
        );
        insta::assert_snapshot!(reply.message, @"You asked to see fn to_roman, no_such_thing. Found in: `src/roman.rs`, `src/main.rs`. Not found: `no_such_thing`. Now write the code.");
    }
}
