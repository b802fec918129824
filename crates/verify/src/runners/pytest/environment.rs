//! Where a Python project keeps its interpreter: found by looking at what environments leave behind, never by asking a
//! tool, which might create or fetch one.

use std::path::{Path, PathBuf};

use super::super::super::detect::{SearchPlace, is_executable};
use super::super::super::step::StepSurroundings;

/// A virtual environment of the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct PythonEnvironment {
    pub(in super::super) dir: PathBuf,
    /// The interpreter it was made with is still there.
    pub(in super::super) works: bool,
}

/// Directories that hold one environment each, or several.
const HOMES: &[(&str, bool)] = &[
    (".venv", false),
    ("venv", false),
    (".env", false),
    ("env", false),
    (".tox", true),
    (".nox", true),
];

/// The environments of a directory and of those above it within the project, likeliest first.
pub(in super::super) fn environments(place: &SearchPlace<'_>) -> Vec<PythonEnvironment> {
    let mut found = Vec::new();
    for dir in place.upwards() {
        for (name, holds_several) in HOMES {
            let home = dir.join(name);
            if *holds_several {
                let mut inside: Vec<PathBuf> = home
                    .read_dir()
                    .into_iter()
                    .flatten()
                    .flatten()
                    .map(|e| e.path())
                    .collect();
                // The newest Python is what a project is developed with; `tests` comes before `lint` and `docs`.
                inside.sort_by_key(|dir| std::cmp::Reverse(has_pytest(dir)));
                found.extend(inside.iter().filter_map(|dir| PythonEnvironment::at(dir)));
            } else {
                found.extend(PythonEnvironment::at(&home));
            }
        }
        // What pdm was told to use, wherever it is.
        let told = std::fs::read_to_string(dir.join(".pdm-python")).unwrap_or_default();
        found.extend(
            Path::new(told.trim())
                .parent()
                .and_then(Path::parent)
                .and_then(PythonEnvironment::at),
        );
        // Whatever else calls itself one.
        let named = dir
            .read_dir()
            .into_iter()
            .flatten()
            .flatten()
            .map(|e| e.path());
        let other = named.filter(|p| p.join("pyvenv.cfg").is_file());
        let mut other: Vec<PathBuf> = other.collect();
        other.sort();
        found.extend(other.iter().filter_map(|dir| PythonEnvironment::at(dir)));
    }
    let mut seen = std::collections::BTreeSet::new();
    found.retain(|one| seen.insert(one.dir.clone()));
    found
}

impl PythonEnvironment {
    fn at(dir: &Path) -> Option<Self> {
        // A link to an interpreter that is gone is there, and is not executable.
        dir.join("bin/python").symlink_metadata().ok()?;
        Some(Self {
            dir: dir.to_owned(),
            works: is_executable(&dir.join("bin/python")),
        })
    }

    pub(in super::super) fn has_pytest(&self) -> bool {
        has_pytest(&self.dir)
    }

    /// As if it had been activated.
    pub(in super::super) fn surroundings(&self) -> StepSurroundings {
        let variables = vec![(String::from("VIRTUAL_ENV"), self.dir.display().to_string())];
        StepSurroundings {
            path: vec![self.dir.join("bin")],
            variables,
        }
    }

    /// A program of it as one would type it from `dir`.
    pub(in super::super) fn program(&self, dir: &Path, name: &str) -> String {
        let whole = self.dir.join("bin").join(name);
        whole
            .strip_prefix(dir)
            .unwrap_or(&whole)
            .display()
            .to_string()
    }
}

fn has_pytest(dir: &Path) -> bool {
    let libraries = dir.join("lib").read_dir().into_iter().flatten().flatten();
    libraries
        .map(|lib| lib.path().join("site-packages/pytest"))
        .any(|p| p.is_dir())
        || is_executable(&dir.join("bin/pytest"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn environment(dir: &Path, pytest: bool) {
        std::fs::create_dir_all(dir.join("bin")).expect("made");
        std::fs::write(dir.join("bin/python"), "").expect("written");
        std::fs::set_permissions(
            dir.join("bin/python"),
            std::fs::Permissions::from_mode(0o755),
        )
        .expect("set");
        if pytest {
            std::fs::create_dir_all(dir.join("lib/python3.12/site-packages/pytest")).expect("made");
        }
    }

    #[test]
    fn every_kind_of_environment_is_found_and_one_without_its_interpreter_is_said_to_be_so() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().canonicalize().expect("there");
        environment(&root.join(".tox/lint"), false);
        environment(&root.join(".tox/py312"), true);
        environment(&root.join("my-env"), true);
        std::fs::write(root.join("my-env/pyvenv.cfg"), "").expect("written");
        std::fs::create_dir_all(root.join(".venv/bin")).expect("made");
        symlink("/gone/python3.9", root.join(".venv/bin/python")).expect("linked");
        let found = environments(&SearchPlace::for_tests(&root));
        let told: Vec<(String, bool, bool)> = found
            .iter()
            .map(|e| {
                (
                    e.dir
                        .strip_prefix(&root)
                        .expect("below")
                        .display()
                        .to_string(),
                    e.works,
                    e.has_pytest(),
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                (".venv".into(), false, false),
                (".tox/py312".into(), true, true),
                (".tox/lint".into(), true, false),
                ("my-env".into(), true, true)
            ]
        );
    }
}
