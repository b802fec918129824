//! The TDD guard: refuses edits of production code unless the session log has a red test for the
//! project. Only reads the log.

use std::path::Path;

use serde_json::Value;

use supervisor_engine::session::SessionLog;
use supervisor_engine::{Entry, Status};
use supervisor_languages::Language;
use supervisor_verify::protected::{FileRole, role};

/// Returns why this edit is refused, or `None` if it is allowed.
pub(super) fn refusal(project: &Path, tool_input: &Value) -> anyhow::Result<Option<String>> {
    let Some(path) = tool_input["file_path"]
        .as_str()
        .or_else(|| tool_input["notebook_path"].as_str())
    else {
        return Ok(None);
    };
    let root = project.canonicalize()?;
    let target = root.join(path);
    // The file may not exist yet, so canonicalize its directory.
    let folder = target.parent().and_then(|dir| dir.canonicalize().ok());
    let target = match (folder, target.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => target,
    };
    let Ok(relative) = target.strip_prefix(&root) else {
        return Ok(None);
    };
    let Some(language) = Language::of_path(relative) else {
        return Ok(None);
    };
    if role(Some(language), relative) != FileRole::Source
        || (language.has_inline_tests && adds_test(tool_input))
    {
        return Ok(None);
    }
    if has_open_red(&SessionLog::to_read(&crate::commands::state_dir()?), &root) {
        return Ok(None);
    }
    Ok(Some(format!(
        "`{}` is production code, and no failing test is known for this project. Write one first: call `tdd_red` with \
         {{\"project_root\": \"{}\", \"spec\": \"<the behaviour>\"}}, or `tdd` to have the whole cycle done.",
        relative.display(),
        root.display(),
    )))
}

/// Whether the new text contains a test.
fn adds_test(tool_input: &Value) -> bool {
    ["new_string", "content"].iter().any(|field| {
        tool_input[*field]
            .as_str()
            .is_some_and(|text| text.contains("#[test]"))
    })
}

/// Whether the latest accepted red of this project has no green yet.
fn has_open_red(log: &SessionLog, root: &Path) -> bool {
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
