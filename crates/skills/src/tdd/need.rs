//! What a model asks to see before it answers: files by path, or whatever a name or some words lead to.
//! Searched when the model asks, so that it is told what was found; shown when it is asked again.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use supervisor_engine::evidence::{Evidence, FollowUp, FollowUpKind};
use supervisor_text::redact::is_secret_file;
use supervisor_text::words;

/// Files shown for one name.
const FILES_FOR_A_NAME: usize = 3;
/// Larger files are not searched.
const LARGEST: u64 = 512 * 1024;

/// The follow-up to an answer that asks for these.
pub(super) fn follow_up(root: &Path, paths: &[String], wanted: &[String]) -> FollowUp {
    let (mut found, mut missing): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for want in wanted.iter().take(8) {
        let files = find(root, paths, want);
        if files.is_empty() {
            missing.push(format!("`{}`", words::plain(want)));
        }
        found.extend(
            files
                .into_iter()
                .filter(|file| !found.contains(file))
                .collect::<Vec<_>>(),
        );
    }
    let mut said = match found.as_slice() {
        [] => String::from("You asked to see more of the project."),
        found => format!(
            "You asked to see more of the project. Now among the files: `{}`.",
            found.join("`, `")
        ),
    };
    if !missing.is_empty() {
        said += &format!(" Not found: {}.", missing.join(", "));
    }
    said += " Now write the code.";
    FollowUp::need(said, json!(found))
}

/// The files that earlier follow-ups of this attempt asked for.
pub(super) fn needed_files(evidence: &Evidence) -> Vec<PathBuf> {
    let needs = evidence
        .follow_ups()
        .iter()
        .filter(|one| one.kind == FollowUpKind::Need);
    let paths = needs.flat_map(|one| one.request.as_array().into_iter().flatten());
    paths.filter_map(Value::as_str).map(PathBuf::from).collect()
}

/// The file of this name, or those in which the words stand, the nearest to a definition first.
fn find(root: &Path, paths: &[String], want: &str) -> Vec<String> {
    let bare = want
        .trim()
        .trim_matches(['`', '"', '\''])
        .trim_start_matches("./");
    // A file with secrets is in no brief unless the caller names it, and a model is not the caller.
    let shown = || paths.iter().filter(|path| !is_secret_file(Path::new(path)));
    let named = |path: &&String| *path == bare || path.ends_with(&format!("/{bare}"));
    let by_path: Vec<String> = shown()
        .filter(named)
        .take(FILES_FOR_A_NAME)
        .cloned()
        .collect();
    if !by_path.is_empty() {
        return by_path;
    }
    // `search "x"`, `the function x`, `fn x()`: the longest word that is a name says most.
    let quoted = want
        .split(['"', '`'])
        .nth(1)
        .filter(|inside| !inside.trim().is_empty());
    let words = bare.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let Some(name) = quoted
        .or_else(|| words.max_by_key(|word| word.len()))
        .filter(|name| name.len() > 2)
    else {
        return Vec::new();
    };
    let mut hits: Vec<(bool, &String)> = Vec::new();
    for path in shown().take(5_000) {
        let whole = root.join(path);
        if whole
            .symlink_metadata()
            .is_ok_and(|meta| meta.is_file() && meta.len() <= LARGEST)
            && let Ok(text) = fs::read_to_string(&whole)
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
        .take(FILES_FOR_A_NAME)
        .map(|(_, path)| path.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_found_by_path_by_name_and_by_words() {
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
        assert_eq!(find(dir.path(), &paths, "src/roman.rs"), ["src/roman.rs"]);
        assert_eq!(find(dir.path(), &paths, "`roman.rs`"), ["src/roman.rs"]);
        assert_eq!(
            find(dir.path(), &paths, "fn to_roman"),
            ["src/roman.rs", "src/main.rs"]
        );
        assert!(
            find(dir.path(), &paths, ".env").is_empty(),
            "secrets are not shown because a model asks"
        );
        assert_eq!(find(dir.path(), &paths, "search \"VIIII\""), ["README.md"]);
        let asked = follow_up(
            dir.path(),
            &paths,
            &["fn to_roman".into(), "no_such_thing".into()],
        );
        insta::assert_snapshot!(asked.said, @"You asked to see more of the project. Now among the files: `src/roman.rs`, `src/main.rs`. Not found: `no_such_thing`. Now write the code.");
    }
}
