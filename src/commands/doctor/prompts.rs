//! The check `prompts`: which prompts the user has replaced, and whether these files can be used.

use std::path::{Path, PathBuf};

use super::{DoctorContext, Finding};
use crate::built_in::PROMPTS;
use supervisor_text::prompts::{Prompt, PromptOrigin, Prompts};
use supervisor_text::words;

/// Returns nothing if no prompt directory is configured.
pub(super) async fn prompts(context: &DoctorContext) -> Vec<Finding> {
    let Some(folder) = context
        .settings
        .as_ref()
        .ok()
        .and_then(|loaded| loaded.routing.prompts_dir.as_deref())
    else {
        return vec![];
    };
    if !folder.is_dir() {
        return vec![Finding::warn(
            format!(
                "{} is not a directory, so every call that needs a prompt is refused",
                folder.display()
            ),
            "create it, or correct `prompts_dir`",
        )];
    }
    let mut found = Vec::new();
    let mut overridden = 0;
    let prompts = Prompts::new(PROMPTS, Some(folder.to_owned()));
    for prompt in PROMPTS {
        match prompts.load(prompt.name) {
            Ok(text) => overridden += usize::from(*text.origin() != PromptOrigin::BuiltIn),
            Err(error) => found.push(Finding::warn(error.to_string(), "")),
        }
    }
    found.extend(
        unknown_files(folder)
            .iter()
            .map(|unknown_file| unknown_file_finding(folder, unknown_file)),
    );
    let all = words::count(PROMPTS.len(), "prompt");
    found.insert(
        0,
        Finding::ok(format!("{overridden} of {all} from {}", folder.display())),
    );
    found
}

/// Finds Markdown files in the prompt directory and its direct sub-directories that do not belong
/// to a prompt.
fn unknown_files(folder: &Path) -> Vec<PathBuf> {
    let entries = |dir: &Path| {
        dir.read_dir()
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
    };
    let nested = entries(folder)
        .filter(|path| path.is_dir())
        .flat_map(|dir| entries(&dir).collect::<Vec<_>>());
    let known = |path: &PathBuf| {
        PROMPTS
            .iter()
            .any(|prompt| *path == folder.join(prompt_file_name(prompt)))
    };
    let mut unknown_files: Vec<PathBuf> = entries(folder)
        .chain(nested)
        .filter(|path| path.extension().is_some_and(|end| end == "md") && !known(path))
        .collect();
    unknown_files.sort();
    unknown_files
}

fn unknown_file_finding(folder: &Path, unknown_file: &Path) -> Finding {
    let names: Vec<String> = PROMPTS.iter().map(prompt_file_name).collect();
    let name = unknown_file
        .strip_prefix(folder)
        .unwrap_or(unknown_file)
        .to_string_lossy();
    let known = || names.iter().map(String::as_str);
    let hint = match words::did_you_mean(&name, known()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("prompts are {}", words::one_of(known())),
    };
    Finding::warn(
        format!(
            "{} is not used: no prompt has that name",
            unknown_file.display()
        ),
        hint,
    )
}

fn prompt_file_name(prompt: &Prompt) -> String {
    format!("{}.md", prompt.name)
}
