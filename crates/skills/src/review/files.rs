//! Reads files given by name. Each is checked before it is read, and all problems are reported at
//! once.

use std::path::{Path, PathBuf};

use super::material::{MAX_FILE_BYTES, MAX_FILES, MAX_TOTAL_BYTES, ReviewMaterial};
use crate::common::inside;
use supervisor_text::redact::Redactor;
use supervisor_text::words;
use supervisor_workspace::{FileReadError, Workspace};

/// Max problems listed in a message.
const MAX_LISTED: usize = 10;

/// Reads all files, or returns why not. Blocking.
pub(super) fn read(
    workspace: &Workspace,
    named: &[String],
    redactor: &Redactor,
) -> Result<ReviewMaterial, String> {
    let mut refused: Vec<String> = Vec::new();
    let mut paths: Vec<PathBuf> = Vec::new();
    let mut total = 0;
    for name in named {
        match measure(workspace, name) {
            Ok((path, _)) if paths.contains(&path) => {}
            // The list is too long and is refused below, but problems in it are still collected.
            Ok((path, size)) if paths.len() < MAX_FILES => {
                total += size;
                paths.push(path);
            }
            Ok(_) => {}
            Err(why) => refused.push(why),
        }
    }
    let mut material = ReviewMaterial::default();
    if named.len() <= MAX_FILES && total <= MAX_TOTAL_BYTES {
        for path in &paths {
            let shown = || words::plain(&path.to_string_lossy()).into_owned();
            match workspace.peek(path, MAX_FILE_BYTES) {
                Ok(bytes) => {
                    if let Err(why) = material.add_file(path, &bytes, redactor) {
                        refused.push(format!("`{}` {why}", shown()));
                    }
                }
                Err(error) => refused.push(refusal(&shown(), &error)),
            }
        }
    }
    let mut problems = Vec::new();
    if named.len() > MAX_FILES {
        problems.push(format!(
            "{} files are named, and {MAX_FILES} is the most for one review; name those that belong together, or give `base`",
            named.len()
        ));
    } else if total > MAX_TOTAL_BYTES {
        problems.push(format!(
            "the files have {total} bytes together, and {MAX_TOTAL_BYTES} is the most for one review; name fewer of them"
        ));
    }
    if !refused.is_empty() {
        let more = refused.len().saturating_sub(MAX_LISTED);
        let more = if more > 0 {
            format!("; and {more} more")
        } else {
            String::new()
        };
        refused.truncate(MAX_LISTED);
        problems.push(format!("files: {}{more}", refused.join("; ")));
    }
    if problems.is_empty() {
        Ok(material)
    } else {
        Err(problems.join(". "))
    }
}

/// The path in the project and the size of the file.
fn measure(workspace: &Workspace, name: &str) -> Result<(PathBuf, u64), String> {
    let path = inside(workspace.root(), name).map_err(|why| format!("{why}; leave it out"))?;
    let shown = words::short(name, 200);
    if path.components().any(|part| part.as_os_str() == ".git") {
        return Err(format!(
            "`{shown}` belongs to the repository itself, which is not reviewed; leave it out"
        ));
    }
    if path == Path::new("") {
        return Err(refusal(&shown, &FileReadError::Directory));
    }
    let size = workspace
        .size(&path)
        .map_err(|error| refusal(&shown, &error))?;
    if size > MAX_FILE_BYTES {
        return Err(refusal(
            &shown,
            &FileReadError::TooLarge {
                size,
                limit: MAX_FILE_BYTES,
            },
        ));
    }
    Ok((path, size))
}

fn refusal(shown: &str, error: &FileReadError) -> String {
    let remedy = match error {
        FileReadError::Absent => "; give a path relative to the project",
        FileReadError::TooLarge { .. } => {
            "; leave it out, or give `base` to review what changed in it"
        }
        FileReadError::NotAFile => "; leave it out",
        FileReadError::Io(_) => "; make it readable, or leave it out",
        FileReadError::Directory => "",
    };
    format!("`{shown}` {error}{remedy}")
}
