//! Tasks that no unit test decides: SQL by rows, transformations by files, configuration by a validator, documentation by
//! links and examples. Each file is complete in itself.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::task::{FileTexts, GymTask, TaskCheck, TaskKind, TaskLevel, WrongAnswer};
use super::task_set::{TaskError, WrongText};

/// One task as written in its file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckTaskText {
    pub kind: TaskKind,
    pub level: TaskLevel,
    pub spec: String,
    #[serde(default)]
    pub needs: Vec<String>,
    /// The argument `check` of `tdd_green`.
    pub check: Value,
    /// What decides about the hidden files, if it is something else.
    pub hidden_check: Option<Value>,
    /// The file that the answer changes.
    pub solution: String,
    pub stub: String,
    pub reference: String,
    pub files: FileTexts,
    /// Files in the place of others, or added, once an answer was accepted.
    pub hidden: FileTexts,
    #[serde(default)]
    pub wrong: Vec<WrongText>,
    #[serde(default)]
    pub cheat: Vec<CheatAnswer>,
}

/// A cheating answer to one task.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheatAnswer {
    pub why: String,
    pub files: FileTexts,
}

impl CheckTaskText {
    /// Whether a task file is of this kind.
    pub(super) fn is_one(text: &str) -> bool {
        text.lines().any(|line| line.starts_with("check ="))
    }

    pub(super) fn task(&self, folder: &str, name: &str) -> Result<GymTask, TaskError> {
        let solution = |text: &str| FileTexts::from([(self.solution.clone(), text.to_owned())]);
        let wrong = self.wrong.iter().map(|wrong| {
            let changed =
                wrong
                    .apply_to(&self.reference)
                    .map_err(|found| TaskError::NoSuchPlace {
                        path: format!("{folder}/{name}.toml"),
                        wrong: wrong.why.clone(),
                        found,
                    })?;
            Ok(WrongAnswer {
                why: wrong.why.clone(),
                files: solution(&changed),
            })
        });
        let mut files: BTreeMap<String, Vec<u8>> = self
            .files
            .iter()
            .map(|(path, text)| (path.clone(), text.clone().into_bytes()))
            .collect();
        files.insert(self.solution.clone(), self.stub.clone().into_bytes());
        Ok(GymTask {
            name: format!("{folder}/{name}"),
            language: folder.to_owned(),
            kind: self.kind,
            level: Some(self.level),
            spec: self.spec.trim().to_owned(),
            files,
            test_path: String::new(),
            solution_path: self.solution.clone(),
            reference: solution(&self.reference),
            hidden: self.hidden.clone(),
            wrong: wrong.collect::<Result<_, _>>()?,
            allow_dependencies: false,
            check: Some(TaskCheck {
                needs: self.needs.clone(),
                visible: self.check.clone(),
                hidden: self
                    .hidden_check
                    .clone()
                    .unwrap_or_else(|| self.check.clone()),
                cheats: self
                    .cheat
                    .iter()
                    .map(|cheat| WrongAnswer {
                        why: cheat.why.clone(),
                        files: cheat.files.clone(),
                    })
                    .collect(),
            }),
        })
    }
}
