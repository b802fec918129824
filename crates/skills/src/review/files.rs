//! Files by name: each is looked at before it is read, and everything that stands in the way is told at once.

use std::path::{Path, PathBuf};

use super::material::{FILE, FILES, ReviewMaterial, TOTAL};
use crate::common::inside;
use supervisor_text::redact::Redactor;
use supervisor_text::words;
use supervisor_workspace::{PeekError, Workspace};

/// Refusals that are told one by one.
const TOLD: usize = 10;

/// Reads all of them, or says why not. Blocks.
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
            // A list as long as this is refused anyway; what is wrong in it is still told.
            Ok((path, size)) if paths.len() < FILES => {
                total += size;
                paths.push(path);
            }
            Ok(_) => {}
            Err(why) => refused.push(why),
        }
    }
    let mut material = ReviewMaterial::default();
    if named.len() <= FILES && total <= TOTAL {
        for path in &paths {
            let shown = || words::plain(&path.to_string_lossy()).into_owned();
            match workspace.peek(path, FILE) {
                Ok(bytes) => {
                    if let Err(why) = material.add_file(path, &bytes, redactor) {
                        refused.push(format!("`{}` {why}", shown()));
                    }
                }
                Err(error) => refused.push(refusal(&shown(), &error)),
            }
        }
    }
    let mut told = Vec::new();
    if named.len() > FILES {
        told.push(format!(
            "{} files are named, and {FILES} is the most for one review; name those that belong together, or give `base`",
            named.len()
        ));
    } else if total > TOTAL {
        told.push(format!(
            "the files have {total} bytes together, and {TOTAL} is the most for one review; name fewer of them"
        ));
    }
    if !refused.is_empty() {
        let more = refused.len().saturating_sub(TOLD);
        let more = if more > 0 {
            format!("; and {more} more")
        } else {
            String::new()
        };
        refused.truncate(TOLD);
        told.push(format!("files: {}{more}", refused.join("; ")));
    }
    if told.is_empty() {
        Ok(material)
    } else {
        Err(told.join(". "))
    }
}

/// Where it lies in the project and how large it is.
fn measure(workspace: &Workspace, name: &str) -> Result<(PathBuf, u64), String> {
    let path = inside(workspace.root(), name).map_err(|why| format!("{why}; leave it out"))?;
    let shown = words::cut_end(&words::plain(name), 200).into_owned();
    if path.components().any(|part| part.as_os_str() == ".git") {
        return Err(format!(
            "`{shown}` belongs to the repository itself, which is not reviewed; leave it out"
        ));
    }
    if path == Path::new("") {
        return Err(refusal(&shown, &PeekError::Directory));
    }
    let size = workspace
        .size(&path)
        .map_err(|error| refusal(&shown, &error))?;
    if size > FILE {
        return Err(refusal(&shown, &PeekError::TooLarge { size, most: FILE }));
    }
    Ok((path, size))
}

fn refusal(shown: &str, error: &PeekError) -> String {
    let remedy = match error {
        PeekError::Absent => "; give a path relative to the project",
        PeekError::TooLarge { .. } => "; leave it out, or give `base` to review what changed in it",
        PeekError::NotAFile => "; leave it out",
        PeekError::Io(_) => "; make it readable, or leave it out",
        PeekError::Directory => "",
    };
    format!("`{shown}` {error}{remedy}")
}
