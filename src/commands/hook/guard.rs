//! The TDD guard: production code waits for a red test that the session log knows. Reads the log and runs nothing.

use std::path::Path;

use serde_json::Value;

use supervisor_engine::session::SessionLog;
use supervisor_engine::{Entry, Status};
use supervisor_languages::Language;
use supervisor_verify::sealed::{FileRole, role};
use supervisor_workspace::state::StateDir;

/// Why this edit is refused; `None` if it may be made.
pub(super) fn refusal(project: &Path, tool_input: &Value) -> anyhow::Result<Option<String>> {
    let Some(path) = tool_input["file_path"]
        .as_str()
        .or_else(|| tool_input["notebook_path"].as_str())
    else {
        return Ok(None);
    };
    let root = project.canonicalize()?;
    let whole = root.join(path);
    // The file may not be there yet; its directory, as a rule, is.
    let folder = whole.parent().and_then(|dir| dir.canonicalize().ok());
    let whole = match (folder, whole.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => whole,
    };
    let Ok(inside) = whole.strip_prefix(&root) else {
        return Ok(None);
    };
    let Some(language) = Language::of_path(inside) else {
        return Ok(None);
    };
    if role(Some(language), inside) != FileRole::Source
        || (language.tests_beside_code && adds_test(tool_input))
    {
        return Ok(None);
    }
    if red_is_known(&SessionLog::to_read(&StateDir::locate()?), &root) {
        return Ok(None);
    }
    Ok(Some(format!(
        "`{}` is production code, and no failing test is known for this project. Write one first: call `tdd_red` with \
         {{\"project_root\": \"{}\", \"spec\": \"<the behaviour>\"}}, or `tdd` to have the whole cycle done.",
        inside.display(),
        root.display(),
    )))
}

/// Does what is written hold a test of its own?
fn adds_test(tool_input: &Value) -> bool {
    ["new_string", "content"].iter().any(|field| {
        tool_input[*field]
            .as_str()
            .is_some_and(|text| text.contains("#[test]"))
    })
}

/// Is the latest accepted red of this project still waiting for its green?
fn red_is_known(log: &SessionLog, root: &Path) -> bool {
    let entries = log
        .sessions()
        .unwrap_or_default()
        .into_iter()
        .filter_map(|id| log.read(&id).ok());
    let of_project = |entry: &Entry| {
        Path::new(&entry.project_root) == root && entry.final_status == Status::Pass
    };
    let phases = entries
        .flat_map(|history| history.records)
        .map(|record| record.entry)
        .filter(of_project);
    let latest = phases
        .filter(|entry| ["red", "green"].contains(&entry.phase.as_str()))
        .max_by(|a, b| a.timestamp.cmp(&b.timestamp));
    latest.is_some_and(|entry| entry.phase == "red")
}
