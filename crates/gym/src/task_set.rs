//! The built-in tasks of `gym/`, and any other directory in the same layout: `languages.toml`
//! describes a project of each language, `<language>/<name>.toml` is one task. `docs/gym.md`
//! explains how to add one.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use include_dir::{Dir, include_dir};
use serde::Deserialize;

use super::check_task::CheckTaskText;
use super::task::{FileTexts, GymTask, TaskKind, TaskLevel, WrongAnswer};

static OWN: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/tasks");

/// What all projects of a language share.
const LANGUAGES_FILE: &str = "languages.toml";
/// Cheating answers, beside the tasks of a language.
const CHEATS_FILE: &str = "cheats.toml";
/// A task is a few screens of text.
const MAX_TASK_BYTES: u64 = 1 << 20;

/// Why a directory of tasks cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    #[error(
        "`{dir}` holds no tasks: neither `languages.toml` with a folder for each language, nor `exercises` of an Exercism \
         track"
    )]
    NoTasks { dir: String },
    #[error("`{path}` cannot be read: {why}")]
    Unreadable { path: String, why: String },
    #[error("`{path}` is not a task: {why}")]
    NoTask { path: String, why: String },
    #[error(
        "`{path}`: `from` of the wrong answer \"{wrong}\" stands {found} times in the reference, and must stand there once"
    )]
    NoSuchPlace {
        path: String,
        wrong: String,
        found: usize,
    },
}

/// What all projects of one language share.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskLanguage {
    /// Programs that must be on the PATH.
    pub needs: Vec<String>,
    /// Paths of the parts of a task.
    pub solution: String,
    pub visible: String,
    pub hidden: String,
    /// A pattern whose first group is what a test expects.
    pub expected: String,
    pub files: FileTexts,
}

/// One task as written in its file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskText {
    pub kind: TaskKind,
    pub level: TaskLevel,
    /// The function it is about.
    pub name: String,
    pub spec: String,
    pub stub: String,
    pub visible: String,
    pub hidden: String,
    pub reference: String,
    #[serde(default)]
    pub wrong: Vec<WrongText>,
}

/// A wrong answer: the reference with one change.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrongText {
    pub why: String,
    pub from: String,
    pub to: String,
}

/// A cheating answer that needs only the stub, the tests and the function name of a task.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheatText {
    pub why: String,
    /// With placeholders for the parts of the task: `{{stub}}`, `{{name}}`, `{{visible}}` and, for
    /// Go, `{{package}}`.
    pub files: FileTexts,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct CheatFile {
    #[serde(default)]
    cheat: Vec<CheatText>,
}

/// Tasks by language and name, with their project files.
#[derive(Debug, Clone, Default)]
pub struct TaskSet {
    pub languages: BTreeMap<String, TaskLanguage>,
    /// By language and file name.
    pub texts: BTreeMap<(String, String), TaskText>,
    /// Tasks that a check decides.
    pub checks: BTreeMap<(String, String), CheckTaskText>,
    pub cheats: BTreeMap<String, Vec<CheatText>>,
}

impl TaskSet {
    /// The built-in tasks.
    pub fn own() -> Result<Self, TaskError> {
        let mut files = BTreeMap::new();
        collect_embedded(&OWN, &mut files);
        Self::parse(files)
    }

    /// Reads a directory in the layout of `gym/`.
    pub fn read(dir: &Path) -> Result<Self, TaskError> {
        let mut files = BTreeMap::new();
        if dir.join(LANGUAGES_FILE).is_file() {
            collect_toml(dir, "", 2, &mut files)?;
        }
        if files.len() < 2 {
            return Err(TaskError::NoTasks {
                dir: dir.display().to_string(),
            });
        }
        Self::parse(files)
    }

    fn parse(files: BTreeMap<String, String>) -> Result<Self, TaskError> {
        let mut set = Self::default();
        for (path, text) in files {
            let no_task = |why: toml::de::Error| TaskError::NoTask {
                path: path.clone(),
                why: why.to_string(),
            };
            match path.split_once('/') {
                None if path == LANGUAGES_FILE => {
                    set.languages = toml::from_str(&text).map_err(no_task)?;
                }
                None => {}
                Some((language, CHEATS_FILE)) => {
                    let cheats: CheatFile = toml::from_str(&text).map_err(no_task)?;
                    set.cheats.insert(language.to_owned(), cheats.cheat);
                }
                Some((language, file)) => {
                    let key = (
                        language.to_owned(),
                        file.trim_end_matches(".toml").to_owned(),
                    );
                    if CheckTaskText::is_one(&text) {
                        let task = toml::from_str(&text).map_err(no_task)?;
                        set.checks.insert(key, task);
                    } else {
                        set.texts
                            .insert(key, toml::from_str(&text).map_err(no_task)?);
                    }
                }
            }
        }
        Ok(set)
    }

    /// The tasks, each with its complete project.
    pub fn tasks(&self) -> Result<Vec<GymTask>, TaskError> {
        let tests = self
            .texts
            .iter()
            .map(|((language, name), text)| self.task(language, name, text));
        let checks = self
            .checks
            .iter()
            .map(|((language, name), text)| text.task(language, name));
        tests.chain(checks).collect()
    }

    fn task(&self, language: &str, name: &str, text: &TaskText) -> Result<GymTask, TaskError> {
        let path = format!("{language}/{name}.toml");
        let project = self
            .languages
            .get(language)
            .ok_or_else(|| TaskError::NoTask {
                path: path.clone(),
                why: format!("`{LANGUAGES_FILE}` knows no language `{language}`"),
            })?;
        let mut files: BTreeMap<String, Vec<u8>> = project
            .files
            .iter()
            .map(|(path, text)| (path.clone(), text.clone().into_bytes()))
            .collect();
        files.insert(project.solution.clone(), text.stub.clone().into_bytes());
        files.insert(project.visible.clone(), text.visible.clone().into_bytes());
        let solution = |text: String| FileTexts::from([(project.solution.clone(), text)]);
        let wrong = text.wrong.iter().map(|wrong| {
            let changed =
                wrong
                    .apply_to(&text.reference)
                    .map_err(|found| TaskError::NoSuchPlace {
                        path: path.clone(),
                        wrong: wrong.why.clone(),
                        found,
                    })?;
            Ok(WrongAnswer {
                why: wrong.why.clone(),
                files: solution(changed),
            })
        });
        Ok(GymTask {
            name: format!("{language}/{name}"),
            language: language.to_owned(),
            kind: text.kind,
            level: Some(text.level),
            spec: text.spec.trim().to_owned(),
            files,
            test_path: project.visible.clone(),
            solution_path: project.solution.clone(),
            reference: solution(text.reference.clone()),
            hidden: FileTexts::from([(project.hidden.clone(), text.hidden.clone())]),
            wrong: wrong.collect::<Result<_, _>>()?,
            allow_dependencies: false,
            check: None,
        })
    }

    /// The cheats of a task's language, adapted to the task. Third-party tasks have other paths and
    /// no known function name, so cheats that need the name are left out.
    pub fn cheats_for(&self, task: &GymTask) -> Vec<WrongAnswer> {
        if let Some(check) = &task.check {
            return check.cheats.clone();
        }
        let Some(project) = self.languages.get(&task.language) else {
            return Vec::new();
        };
        let short = task.name.rsplit('/').next().unwrap_or_default();
        let own = self.texts.get(&(task.language.clone(), short.to_owned()));
        let name = own
            .filter(|_| task.solution_path == project.solution)
            .map(|text| text.name.as_str());
        let read = |path: &str| {
            String::from_utf8_lossy(task.files.get(path).map_or(&[], Vec::as_slice)).into_owned()
        };
        let (stub, visible) = (read(&task.solution_path), read(&task.test_path));
        let package = stub
            .lines()
            .find_map(|line| line.strip_prefix("package "))
            .unwrap_or_default();
        let replace_paths = |text: &str| {
            text.replace(&project.visible, &task.test_path)
                .replace(&project.solution, &task.solution_path)
        };
        let fill = |template: &str| {
            replace_paths(template)
                .replace("{{stub}}", &stub)
                .replace("{{name}}", name.unwrap_or_default())
                .replace("{{visible}}", &visible)
                .replace("{{package}}", package.trim())
        };
        let is_applicable = |cheat: &&CheatText| {
            name.is_some() || !cheat.files.values().any(|text| text.contains("{{name}}"))
        };
        let make = |cheat: &CheatText| WrongAnswer {
            why: cheat.why.clone(),
            files: cheat
                .files
                .iter()
                .map(|(path, text)| (replace_paths(path), fill(text)))
                .collect(),
        };
        self.cheats
            .get(&task.language)
            .into_iter()
            .flatten()
            .filter(is_applicable)
            .map(make)
            .collect()
    }
}

impl WrongText {
    /// The reference with the change applied. The error is how often `from` was found, if not once.
    pub fn apply_to(&self, reference: &str) -> Result<String, usize> {
        match reference.matches(&self.from).count() {
            1 => Ok(reference.replacen(&self.from, &self.to, 1)),
            found => Err(found),
        }
    }
}

fn collect_embedded(dir: &Dir<'static>, into: &mut BTreeMap<String, String>) {
    for file in dir
        .files()
        .filter(|file| file.path().extension().is_some_and(|e| e == "toml"))
    {
        let text = file.contents_utf8().expect("the tasks in `gym/` are text");
        into.insert(file.path().to_string_lossy().into_owned(), text.to_owned());
    }
    dir.dirs().for_each(|dir| collect_embedded(dir, into));
}

fn collect_toml(
    dir: &Path,
    below: &str,
    depth: usize,
    into: &mut BTreeMap<String, String>,
) -> Result<(), TaskError> {
    let unreadable = |path: &Path, why: String| TaskError::Unreadable {
        path: path.display().to_string(),
        why,
    };
    let entries = fs::read_dir(dir).map_err(|e| unreadable(dir, e.to_string()))?;
    for entry in entries.flatten() {
        let (path, name) = (
            entry.path(),
            entry.file_name().to_string_lossy().into_owned(),
        );
        let key = if below.is_empty() {
            name.clone()
        } else {
            format!("{below}/{name}")
        };
        if path.is_dir() && depth > 1 {
            collect_toml(&path, &key, depth - 1, into)?;
        } else if name.ends_with(".toml") && path.is_file() {
            let length = entry
                .metadata()
                .map_err(|e| unreadable(&path, e.to_string()))?
                .len();
            if length > MAX_TASK_BYTES {
                return Err(unreadable(
                    &path,
                    format!("it has {length} bytes, and a task at most {MAX_TASK_BYTES}"),
                ));
            }
            into.insert(
                key,
                fs::read_to_string(&path).map_err(|e| unreadable(&path, e.to_string()))?,
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_every_kind_and_level() {
        let tasks = TaskSet::own()
            .and_then(|set| set.tasks())
            .expect("our own tasks");
        assert!(tasks.len() >= 48, "{} tasks", tasks.len());
        for language in ["rust", "python", "javascript", "go", "ruby", "elixir"] {
            let of_it: Vec<_> = tasks
                .iter()
                .filter(|task| task.language == language)
                .collect();
            for level in [TaskLevel::Easy, TaskLevel::Medium, TaskLevel::Hard] {
                assert!(
                    of_it.iter().any(|task| task.level == Some(level)),
                    "{language}: {level:?}"
                );
            }
            for kind in [TaskKind::Write, TaskKind::Fix, TaskKind::Refactor] {
                assert!(
                    of_it.iter().any(|task| task.kind == kind),
                    "{language}: {kind:?}"
                );
            }
        }
        for task in &tasks {
            assert!(
                task.wrong.len() >= 2 && !task.spec.is_empty() && !task.hidden.is_empty(),
                "{}",
                task.name
            );
            assert!(
                task.wrong.iter().all(|wrong| wrong.files != task.reference),
                "{}",
                task.name
            );
        }
    }

    #[test]
    fn cheats_are_adapted_to_other_tasks() {
        let set = TaskSet::own().expect("our own tasks");
        let own = set
            .tasks()
            .expect("our own tasks")
            .into_iter()
            .find(|task| task.language == "go")
            .expect("one in Go");
        let mut other = GymTask {
            name: String::from("go/of-others"),
            ..own.clone()
        };
        for (at, to) in [
            (&own.solution_path, "two_sums.go"),
            (&own.test_path, "two_sums_test.go"),
        ] {
            let text = other.files.remove(at).expect("laid out");
            let text = String::from_utf8_lossy(&text).replace("package task", "package twosums");
            other.files.insert(to.to_owned(), text.into_bytes());
        }
        (other.solution_path, other.test_path) = (
            String::from("two_sums.go"),
            String::from("two_sums_test.go"),
        );
        let adapted = set.cheats_for(&other);
        assert_eq!(adapted.len(), set.cheats_for(&own).len());
        assert!(
            adapted
                .iter()
                .any(|cheat| cheat.files.contains_key("two_sums_test.go"))
        );
        assert!(
            adapted
                .iter()
                .flat_map(|cheat| cheat.files.values())
                .all(|text| text.starts_with("package twosums\n"))
        );
        let python = set
            .tasks()
            .expect("our own tasks")
            .into_iter()
            .find(|task| task.language == "python");
        let python = GymTask {
            name: String::from("python/of-others"),
            ..python.expect("one in Python")
        };
        let without_name = set.cheats_for(&python);
        assert!(!without_name.is_empty() && without_name.len() < set.cheats["python"].len());
    }

    #[test]
    fn directory_without_tasks_is_rejected() {
        let dir = tempfile::tempdir().expect("a directory");
        assert!(matches!(
            TaskSet::read(dir.path()),
            Err(TaskError::NoTasks { .. })
        ));
        fs::write(dir.path().join(LANGUAGES_FILE), "").expect("written");
        fs::create_dir(dir.path().join("rust")).expect("made");
        fs::write(dir.path().join("rust/a.toml"), "kind = \"writing\"").expect("written");
        let error = TaskSet::read(dir.path()).expect_err("no task").to_string();
        assert!(
            error.contains("rust/a.toml") && error.contains("writing"),
            "{error}"
        );
    }
}
