//! The check `prompts`: whose words the models are told, and whether they can be used as they stand.

use std::path::{Path, PathBuf};

use super::{Case, Finding};
use crate::built_in::PROMPTS;
use supervisor_text::prompts::{Prompt, PromptOrigin, Prompts};
use supervisor_text::words;

/// Says nothing where there is no folder of prompts.
pub(super) async fn prompts(case: &Case) -> Vec<Finding> {
    let Some(folder) = case
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
                "{} is no directory, so the built-in prompts are used",
                folder.display()
            ),
            "create it, or correct `prompts_dir`",
        )];
    }
    let mut found = Vec::new();
    let mut own = 0;
    let prompts = Prompts::new(PROMPTS, Some(folder.to_owned()));
    for prompt in PROMPTS {
        match prompts.load(prompt.name) {
            Ok(text) => own += usize::from(*text.origin() != PromptOrigin::BuiltIn),
            Err(error) => found.push(Finding::warn(error.to_string(), "")),
        }
    }
    found.extend(strays(folder).iter().map(|stray| stranger(folder, stray)));
    let all = words::count(PROMPTS.len(), "prompt");
    found.insert(
        0,
        Finding::ok(format!("{own} of {all} from {}", folder.display())),
    );
    found
}

/// Markdown files, as far down as prompts lie, that no prompt has the name of.
fn strays(folder: &Path) -> Vec<PathBuf> {
    let inside = |dir: &Path| {
        dir.read_dir()
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
    };
    let nested = inside(folder)
        .filter(|path| path.is_dir())
        .flat_map(|dir| inside(&dir).collect::<Vec<_>>());
    let known = |path: &PathBuf| {
        PROMPTS
            .iter()
            .any(|prompt| *path == folder.join(file(prompt)))
    };
    let mut strays: Vec<PathBuf> = inside(folder)
        .chain(nested)
        .filter(|path| path.extension().is_some_and(|end| end == "md") && !known(path))
        .collect();
    strays.sort();
    strays
}

fn stranger(folder: &Path, stray: &Path) -> Finding {
    let names: Vec<String> = PROMPTS.iter().map(file).collect();
    let name = stray
        .strip_prefix(folder)
        .unwrap_or(stray)
        .to_string_lossy();
    let known = || names.iter().map(String::as_str);
    let hint = match words::did_you_mean(&name, known()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("prompts are {}", words::one_of(known())),
    };
    Finding::warn(
        format!("{} is not used: no prompt has that name", stray.display()),
        hint,
    )
}

fn file(prompt: &Prompt) -> String {
    format!("{}.md", prompt.name)
}
