//! Finds the virtual environments of a Python project by their files. Never asks a tool, which might create or download
//! one.

use std::path::{Path, PathBuf};

use super::super::super::detect::{SearchPlace, is_executable};
use super::super::super::step::StepEnvironment;

/// A virtual environment of the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct PythonEnvironment {
    pub(in super::super) dir: PathBuf,
    /// Whether its interpreter still exists.
    pub(in super::super) is_usable: bool,
}

/// The usual directories of environments, and whether each contains several.
const ENVIRONMENT_DIRS: &[(&str, bool)] = &[
    (".venv", false),
    ("venv", false),
    (".env", false),
    ("env", false),
    (".tox", true),
    (".nox", true),
];

/// The environments of a directory and its ancestors within the project, likeliest first.
pub(in super::super) fn environments(place: &SearchPlace<'_>) -> Vec<PythonEnvironment> {
    let mut found = Vec::new();
    for dir in place.ancestors() {
        for (name, contains_several) in ENVIRONMENT_DIRS {
            let path = dir.join(name);
            if *contains_several {
                let mut dirs: Vec<PathBuf> = path
                    .read_dir()
                    .into_iter()
                    .flatten()
                    .flatten()
                    .map(|e| e.path())
                    .collect();
                // Environments with pytest come before others, such as `lint` and `docs`.
                dirs.sort_by_key(|dir| std::cmp::Reverse(has_pytest(dir)));
                found.extend(dirs.iter().filter_map(|dir| PythonEnvironment::at(dir)));
            } else {
                found.extend(PythonEnvironment::at(&path));
            }
        }
        // The interpreter that pdm is configured to use, wherever it is.
        let pdm_python = std::fs::read_to_string(dir.join(".pdm-python")).unwrap_or_default();
        found.extend(
            Path::new(pdm_python.trim())
                .parent()
                .and_then(Path::parent)
                .and_then(PythonEnvironment::at),
        );
        // Any other directory with a `pyvenv.cfg`.
        let entries = dir
            .read_dir()
            .into_iter()
            .flatten()
            .flatten()
            .map(|e| e.path());
        let other = entries.filter(|p| p.join("pyvenv.cfg").is_file());
        let mut other: Vec<PathBuf> = other.collect();
        other.sort();
        found.extend(other.iter().filter_map(|dir| PythonEnvironment::at(dir)));
    }
    let mut seen = std::collections::BTreeSet::new();
    found.retain(|environment| seen.insert(environment.dir.clone()));
    found
}

impl PythonEnvironment {
    fn at(dir: &Path) -> Option<Self> {
        // Accept a dangling link: the environment exists but its interpreter is gone.
        dir.join("bin/python").symlink_metadata().ok()?;
        Some(Self {
            dir: dir.to_owned(),
            is_usable: is_executable(&dir.join("bin/python")),
        })
    }

    pub(in super::super) fn has_pytest(&self) -> bool {
        has_pytest(&self.dir)
    }

    /// The same variables as if the environment were activated.
    pub(in super::super) fn step_environment(&self) -> StepEnvironment {
        let variables = vec![(String::from("VIRTUAL_ENV"), self.dir.display().to_string())];
        StepEnvironment {
            path: vec![self.dir.join("bin")],
            variables,
        }
    }

    /// The path of one of its programs, relative to `dir` if possible.
    pub(in super::super) fn program(&self, dir: &Path, name: &str) -> String {
        let path = self.dir.join("bin").join(name);
        path.strip_prefix(dir)
            .unwrap_or(&path)
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
        std::fs::create_dir_all(dir.join("bin")).expect("the directory is created");
        std::fs::write(dir.join("bin/python"), "").expect("the file is written");
        std::fs::set_permissions(
            dir.join("bin/python"),
            std::fs::Permissions::from_mode(0o755),
        )
        .expect("the permission is set");
        if pytest {
            std::fs::create_dir_all(dir.join("lib/python3.12/site-packages/pytest"))
                .expect("the directory is created");
        }
    }

    #[test]
    fn all_kinds_of_environments_are_found() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let root = dir.path().canonicalize().expect("the path exists");
        environment(&root.join(".tox/lint"), false);
        environment(&root.join(".tox/py312"), true);
        environment(&root.join("my-env"), true);
        std::fs::write(root.join("my-env/pyvenv.cfg"), "").expect("the file is written");
        std::fs::create_dir_all(root.join(".venv/bin")).expect("the directory is created");
        symlink("/gone/python3.9", root.join(".venv/bin/python")).expect("the link is created");
        let found = environments(&SearchPlace::for_tests(&root));
        let summary: Vec<(String, bool, bool)> = found
            .iter()
            .map(|e| {
                (
                    e.dir
                        .strip_prefix(&root)
                        .expect("inside the root")
                        .display()
                        .to_string(),
                    e.is_usable,
                    e.has_pytest(),
                )
            })
            .collect();
        assert_eq!(
            summary,
            [
                (".venv".into(), false, false),
                (".tox/py312".into(), true, true),
                (".tox/lint".into(), true, false),
                ("my-env".into(), true, true)
            ]
        );
    }
}
