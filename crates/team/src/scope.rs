//! The tasks whose work a checkpoint is about. The `ref`s that they published are followed. If the
//! definition has no scope of its own, files that other tasks published are left out.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::bus::TeamMeta;
use super::definition::CheckpointDefinition;
use super::document::SessionDocuments;
use super::team_dirs::{TeamDirs, join_path};
use super::verdict::{CheckFinding, CheckGroup, CheckOutcome, EvidenceLocation};
use supervisor_text::words;
use supervisor_workspace::FolderError;

/// A file that a task in scope published and that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MissingRef {
    task: String,
    path: String,
}

/// Removes what is not in scope from the documents. Returns the files that are missing.
pub(super) fn apply(
    place: &TeamDirs,
    requested: &[String],
    definition: &CheckpointDefinition,
    meta: &TeamMeta,
    documents: &mut SessionDocuments,
) -> Result<Vec<MissingRef>, FolderError> {
    let scope: BTreeSet<&String> = requested.iter().chain(&definition.scope).collect();
    let (mut missing, mut inside, mut outside) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    for (role, task, state) in meta.tasks() {
        if role == "supervisor" {
            continue;
        }
        for path in refs(&state) {
            match locate(place, &path)? {
                _ if !scope.contains(&task) && !scope.is_empty() => {
                    outside.extend(candidates(place, &path));
                }
                Some(found) => {
                    inside.insert(found);
                }
                None => missing.push(MissingRef {
                    task: task.clone(),
                    path,
                }),
            }
        }
    }
    if definition.scope.is_empty() {
        let is_outside = |path: &String| outside.contains(path) && !inside.contains(path);
        for documents in documents.by_source.values_mut() {
            documents.retain(|document| !is_outside(&document.path));
        }
    }
    Ok(missing)
}

/// The finding about missing files; `None` if there are none.
pub(super) fn finding(missing: &[MissingRef]) -> Option<CheckFinding> {
    let told = missing
        .iter()
        .map(|one| format!("{}: `{}`", one.task, one.path));
    (!missing.is_empty()).then(|| CheckFinding {
        id: String::from("refs"),
        title: String::from("Files that tasks refer to"),
        group: CheckGroup::Process,
        critical: false,
        outcome: CheckOutcome::Warn,
        details: format!("not there: {}", words::series(told, 5)),
        evidence: missing
            .iter()
            .map(|one| EvidenceLocation {
                file: one.path.clone(),
                line: 0,
                text: String::from("missing"),
            })
            .collect(),
    })
}

/// For the hash of the inputs.
pub(super) fn describe(missing: &[MissingRef]) -> Vec<String> {
    missing.iter().map(|one| one.path.clone()).collect()
}

fn refs(state: &Map<String, Value>) -> Vec<String> {
    let texts = |value: &Value| match value {
        Value::String(path) => vec![path.clone()],
        Value::Array(paths) => paths
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        _ => Vec::new(),
    };
    let all = state.get("ref").map(texts).unwrap_or_default();
    let is_path = |path: &String| !path.trim().is_empty() && !path.contains("://");
    all.into_iter().filter(is_path).collect()
}

/// Where a path may be, relative to the project: paths are written from the project or from the
/// session folder.
fn candidates(place: &TeamDirs, path: &str) -> Vec<String> {
    let root = place.folder().path().to_string_lossy().into_owned();
    let path = path.strip_prefix(&root).unwrap_or(path);
    let path = path.trim_start_matches("./").trim_matches('/');
    let path = path.strip_prefix("<session>/").unwrap_or(path);
    let mut all = vec![path.to_owned()];
    all.extend(
        place
            .artifact_roots()
            .iter()
            .map(|dir| join_path(dir, path)),
    );
    all
}

fn locate(place: &TeamDirs, path: &str) -> Result<Option<String>, FolderError> {
    for candidate in candidates(place, path) {
        // A path that leaves the project is not there.
        if place.folder().entry(&candidate).ok().flatten().is_some() {
            return Ok(Some(candidate));
        }
    }
    Ok(None)
}
