//! The tasks whose work a checkpoint is about: those of the request, or else those of the definition.
//! The `ref`s that they published are followed and read. Files that only other tasks published are
//! left out of a source that has files in scope. A source without any is what the work in scope is
//! compared with, so it stays whole: `CHECKPOINT-001` of `[DRAFT-002]` needs the brief of `DRAFT-001`.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::bus::TeamMeta;
use super::definition::CheckpointDefinition;
use super::document::{DocumentStore, SessionDocuments};
use super::team_dirs::{TeamDirs, join_path};
use super::verdict::{CheckFinding, CheckGroup, CheckOutcome, EvidenceLocation};
use supervisor_text::words;
use supervisor_workspace::FolderError;

/// The tasks of a checkpoint, and the files that they refer to in vain.
#[derive(Debug)]
pub(super) struct CheckpointScope {
    /// Empty for all tasks.
    pub(super) tasks: Vec<String>,
    missing: Vec<MissingRef>,
}

/// A file that a task in scope published and that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
struct MissingRef {
    task: String,
    path: String,
}

impl CheckpointScope {
    /// Adds the files that tasks in scope refer to, and removes those of other tasks.
    pub(super) fn apply(
        place: &TeamDirs,
        requested: &[String],
        definition: &CheckpointDefinition,
        meta: &TeamMeta,
        documents: &mut SessionDocuments,
        store: &mut DocumentStore,
    ) -> Result<Self, FolderError> {
        let tasks = if requested.is_empty() {
            &definition.scope
        } else {
            requested
        };
        let (mut missing, mut inside, mut outside) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        for (role, task, state) in meta.tasks() {
            if role == "supervisor" {
                continue;
            }
            let is_in_scope = tasks.is_empty() || tasks.contains(&task);
            for path in refs(&state) {
                if !is_in_scope {
                    outside.extend(candidates(place, &path));
                } else if let Some(found) = locate(place, &path) {
                    inside.insert(found);
                } else {
                    missing.push(MissingRef {
                        task: task.clone(),
                        path,
                    });
                }
            }
        }
        for path in &inside {
            store.add_ref(place, path, &definition.sources, documents)?;
        }
        let is_of = |paths: &BTreeSet<String>, file: &str| {
            let mut folders = file.match_indices('/').map(|(at, _)| &file[..at]);
            paths.contains(file) || folders.any(|folder| paths.contains(folder))
        };
        for documents in documents.by_source.values_mut() {
            let is_kept = |path: &str| is_of(&inside, path) || !is_of(&outside, path);
            if documents
                .iter()
                .any(|document| is_of(&inside, &document.path))
            {
                documents.retain(|document| is_kept(&document.path));
            }
        }
        Ok(Self {
            tasks: tasks.to_vec(),
            missing,
        })
    }

    /// For the hash of the inputs.
    pub(super) fn describe(&self) -> Value {
        let missing = self.missing.iter().map(|one| one.path.as_str());
        serde_json::json!([self.tasks, missing.collect::<Vec<_>>()])
    }

    /// The finding about missing files; `None` if there are none.
    pub(super) fn finding(&self) -> Option<CheckFinding> {
        let told = self
            .missing
            .iter()
            .map(|one| format!("{}: `{}`", one.task, one.path));
        let place = |one: &MissingRef| EvidenceLocation {
            file: one.path.clone(),
            line: 0,
            text: String::from("missing"),
        };
        (!self.missing.is_empty()).then(|| CheckFinding {
            id: String::from("refs"),
            title: String::from("Files that tasks refer to"),
            group: CheckGroup::Process,
            critical: false,
            outcome: CheckOutcome::Warn,
            details: format!("not there: {}", words::series(told, 5)),
            evidence: self.missing.iter().map(place).collect(),
        })
    }
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

fn locate(place: &TeamDirs, path: &str) -> Option<String> {
    // A path that leaves the project is not there.
    let is_there = |candidate: &String| place.folder().entry(candidate).ok().flatten().is_some();
    candidates(place, path).into_iter().find(is_there)
}
