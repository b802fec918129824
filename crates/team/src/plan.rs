//! The plan of a pipeline: its tasks, their dependencies, and the requirements they cover.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::document::TeamDocument;
use super::verdict::EvidenceLocation;

/// A plan, read from one file or from one file per task.
#[derive(Debug, Default)]
pub struct PipelinePlan {
    pub tasks: Vec<PlanTask>,
    pub complexity: Option<String>,
    pub execution: Option<String>,
    /// Where complexity and execution are stated.
    pub place: Option<EvidenceLocation>,
    /// Files that are not JSON.
    pub broken: Vec<EvidenceLocation>,
}

#[derive(Debug, Clone)]
pub struct PlanTask {
    pub id: String,
    pub depends_on: Vec<String>,
    pub modules: BTreeSet<String>,
    pub place: EvidenceLocation,
}

impl PipelinePlan {
    pub fn of(documents: &[Arc<TeamDocument>]) -> Self {
        let mut plan = Self::default();
        for document in documents {
            let at = |words: &str| EvidenceLocation {
                file: document.path.clone(),
                line: document.line_with(words),
                text: words.to_owned(),
            };
            // Where the task itself is defined, not where another task names it.
            let at_id = |id: &str| {
                let is_own = |line: &str| {
                    line.replace(": ", ":")
                        .contains(&format!("\"id\":\"{id}\""))
                };
                let own = document.lines().find(|(_, line)| is_own(line));
                EvidenceLocation {
                    line: own.map_or_else(|| document.line_with(id), |(n, _)| n),
                    ..at(id)
                }
            };
            let Some(json) = document.json() else {
                plan.broken.push(EvidenceLocation {
                    line: 1,
                    ..at("is not JSON")
                });
                continue;
            };
            if json.get("tasks").is_some() || json.get("complexity").is_some() {
                plan.complexity = text_of(&json, "complexity").or(plan.complexity);
                plan.execution = text_of(&json, "recommended_execution").or(plan.execution);
                plan.place = Some(at("complexity"));
            }
            let listed = json
                .get("tasks")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default();
            let own = json.get("id").is_some().then(|| json.clone());
            for task in listed.iter().chain(&own) {
                // A task may be only named here and defined in its own file.
                let Some(id) = task
                    .as_str()
                    .map(str::to_owned)
                    .or_else(|| text_of(task, "id"))
                else {
                    continue;
                };
                let new = PlanTask {
                    depends_on: ["depends_on", "dependencies", "blockedBy", "deps"]
                        .iter()
                        .flat_map(|key| strings(task.get(key)))
                        .collect(),
                    modules: ["modules", "module", "files", "scope"]
                        .iter()
                        .flat_map(|key| strings(task.get(key)))
                        .map(|f| module_of(&f))
                        .collect(),
                    place: at_id(&id),
                    id,
                };
                match plan.tasks.iter_mut().find(|known| known.id == new.id) {
                    Some(known) => {
                        known.depends_on.extend(new.depends_on);
                        known.modules.extend(new.modules);
                    }
                    None => plan.tasks.push(new),
                }
            }
        }
        plan
    }

    pub fn modules(&self) -> BTreeSet<&str> {
        self.tasks
            .iter()
            .flat_map(|task| task.modules.iter().map(String::as_str))
            .collect()
    }

    /// Dependencies on tasks that are not in the plan.
    pub fn dangling(&self) -> Vec<(&PlanTask, &str)> {
        let known: BTreeSet<&str> = self.tasks.iter().map(|task| task.id.as_str()).collect();
        let wanted = self
            .tasks
            .iter()
            .flat_map(|task| task.depends_on.iter().map(move |d| (task, d.as_str())));
        wanted.filter(|(_, on)| !known.contains(on)).collect()
    }

    /// The tasks of a cycle in order, if there is one.
    pub fn cycle(&self) -> Option<Vec<&str>> {
        let by_id: BTreeMap<&str, &PlanTask> = self
            .tasks
            .iter()
            .map(|task| (task.id.as_str(), task))
            .collect();
        let mut done = BTreeSet::new();
        for task in &self.tasks {
            let mut path: Vec<(&str, usize)> = vec![(&task.id, 0)];
            while let Some((id, next)) = path.pop() {
                let Some(dependency) = by_id.get(id).and_then(|t| t.depends_on.get(next)) else {
                    done.insert(id);
                    continue;
                };
                path.push((id, next + 1));
                if let Some(at) = path.iter().position(|(on_path, _)| on_path == dependency) {
                    return Some(path[at..].iter().map(|(id, _)| *id).collect());
                }
                if !done.contains(dependency.as_str()) && by_id.contains_key(dependency.as_str()) {
                    path.push((dependency, 0));
                }
            }
        }
        None
    }
}

fn text_of(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(str::to_owned)
}

fn strings(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(items)) => {
            let path = |item: &Value| {
                item.as_str()
                    .map(str::to_owned)
                    .or_else(|| text_of(item, "path"))
                    .or_else(|| text_of(item, "id"))
            };
            items.iter().filter_map(path).collect()
        }
        _ => Vec::new(),
    }
}

/// `src/auth/login.rs` belongs to `src/auth`.
fn module_of(file: &str) -> String {
    match file.rsplit_once('/') {
        Some((dir, name)) if name.contains('.') => dir.to_owned(),
        _ => file.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(json: &str) -> PipelinePlan {
        PipelinePlan::of(&[Arc::new(TeamDocument::new(
            "plan.json",
            "plan.json",
            json.as_bytes(),
        ))])
    }

    #[test]
    fn cycles_and_dangling_dependencies_are_found() {
        let ok = plan(
            r#"{"tasks":[{"id":"A"},{"id":"B","depends_on":["A"]},{"id":"C","depends_on":["A","B"]}]}"#,
        );
        assert_eq!((ok.cycle(), ok.dangling().len()), (None, 0));
        let bad = plan(
            r#"{"tasks":[{"id":"A","depends_on":["C"]},{"id":"B","depends_on":["A"]},{"id":"C","depends_on":["B","X"]}]}"#,
        );
        assert_eq!(bad.cycle().map(|c| c.len()), Some(3));
        assert_eq!(bad.dangling()[0].1, "X");
        assert_eq!(
            plan(r#"{"tasks":[{"id":"A","depends_on":["A"]}]}"#).cycle(),
            Some(vec!["A"])
        );
        assert_eq!(plan("no json").broken.len(), 1);
    }
}
