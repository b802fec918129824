//! Manifests of JavaScript packages: their scripts, the packages of their workspace, and who manages them.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::super::detect::{SearchPlace, read_small};
use super::is_called;

/// A `package.json` that could be read.
#[derive(Debug, Clone)]
pub struct Package {
    pub dir: PathBuf,
    manifest: Value,
}

/// The program that installs packages and runs their scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manager {
    Npm,
    Pnpm,
    Yarn,
    Bun,
}

/// What each leaves in a project.
const LOCK_FILES: &[(&str, Manager)] = &[
    ("pnpm-lock.yaml", Manager::Pnpm),
    ("yarn.lock", Manager::Yarn),
    ("bun.lock", Manager::Bun),
    ("bun.lockb", Manager::Bun),
    ("package-lock.json", Manager::Npm),
];

impl Manager {
    /// As the nearest manifest or lock file says; `npm`, if none does.
    pub fn of(place: &SearchPlace<'_>) -> Self {
        for dir in place.upwards() {
            let named =
                Package::read(dir).and_then(|p| p.text("/packageManager").and_then(Self::named));
            let locked = || {
                LOCK_FILES
                    .iter()
                    .find(|(file, _)| dir.join(file).is_file())
                    .map(|(_, manager)| *manager)
            };
            if let Some(manager) = named.or_else(locked) {
                return manager;
            }
        }
        Self::Npm
    }

    fn named(words: &str) -> Option<Self> {
        let all = [Self::Npm, Self::Pnpm, Self::Yarn, Self::Bun];
        all.into_iter()
            .find(|m| words.split('@').next() == Some(m.program()))
    }

    pub fn program(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pnpm => "pnpm",
            Self::Yarn => "yarn",
            Self::Bun => "bun",
        }
    }

    /// The words that run the script `test`.
    pub fn test_command(self) -> Vec<String> {
        let words: &[&str] = match self {
            Self::Bun => &["bun", "run", "test"],
            Self::Npm => &["npm", "test"],
            Self::Pnpm => &["pnpm", "test"],
            Self::Yarn => &["yarn", "test"],
        };
        words.iter().map(|w| (*w).to_owned()).collect()
    }
}

impl Package {
    pub fn read(dir: &Path) -> Option<Self> {
        let manifest = serde_json::from_str(&read_small(&dir.join("package.json"))?).ok()?;
        Some(Self {
            dir: dir.to_owned(),
            manifest,
        })
    }

    pub fn script(&self, name: &str) -> Option<&str> {
        self.manifest
            .get("scripts")?
            .get(name)?
            .as_str()
            .filter(|s| !s.trim().is_empty())
    }

    /// The scripts of this name or pattern, in the order of the manifest.
    pub fn matching(&self, wanted: &str) -> Vec<String> {
        let scripts = self.manifest.get("scripts").and_then(Value::as_object);
        scripts
            .into_iter()
            .flatten()
            .map(|(name, _)| name)
            .filter(|name| is_called(wanted, name))
            .cloned()
            .collect()
    }

    /// Is this package needed, for whatever?
    pub fn depends_on(&self, name: &str) -> bool {
        ["devDependencies", "dependencies"].iter().any(|kind| {
            self.manifest
                .get(kind)
                .is_some_and(|d| d.get(name).is_some())
        })
    }

    /// What a package manager tells its scripts.
    pub fn variables(&self, script: &str) -> Vec<(String, String)> {
        let mut set = vec![
            (String::from("npm_lifecycle_event"), script.to_owned()),
            (
                String::from("npm_package_json"),
                self.dir.join("package.json").display().to_string(),
            ),
            (String::from("INIT_CWD"), self.dir.display().to_string()),
        ];
        for (variable, pointer) in [
            ("npm_package_name", "/name"),
            ("npm_package_version", "/version"),
        ] {
            set.extend(
                self.text(pointer)
                    .map(|value| (variable.to_owned(), value.to_owned())),
            );
        }
        set
    }

    /// The packages of this workspace, by name of their directories; `None` if it is none, or one of more than `most`.
    pub fn members(&self, most: usize) -> Option<Vec<Self>> {
        let listed = self
            .manifest
            .pointer("/workspaces/packages")
            .or_else(|| self.manifest.get("workspaces"));
        let listed = listed.and_then(Value::as_array).map(|list| {
            list.iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect()
        });
        let patterns: Vec<String> = listed
            .or_else(|| read_small(&self.dir.join("pnpm-workspace.yaml")).map(|t| listed_in(&t)))?;
        let (out, within): (Vec<&String>, Vec<&String>) =
            patterns.iter().partition(|p| p.starts_with('!'));
        let escaped = glob::Pattern::escape(&self.dir.to_string_lossy());
        let is_out = |dir: &Path| {
            let below = dir.strip_prefix(&self.dir).unwrap_or(dir);
            out.iter().any(|p| {
                glob::Pattern::new(p[1..].trim_end_matches('/'))
                    .is_ok_and(|p| p.matches_path(below))
            })
        };
        let mut dirs: Vec<PathBuf> = Vec::new();
        for pattern in within {
            let whole = format!(
                "{escaped}/{}/package.json",
                pattern.trim_start_matches("./").trim_end_matches('/')
            );
            let found = glob::glob(&whole).into_iter().flatten().flatten();
            dirs.extend(
                found
                    .filter_map(|file| Some(file.parent()?.to_owned()))
                    .take(most + 1),
            );
            if dirs.len() > most {
                return None;
            }
        }
        dirs.retain(|dir| {
            !is_out(dir) && !dir.components().any(|c| c.as_os_str() == "node_modules")
        });
        dirs.sort();
        dirs.dedup();
        Some(dirs.iter().filter_map(|dir| Self::read(dir)).collect())
    }

    fn text(&self, pointer: &str) -> Option<&str> {
        self.manifest.pointer(pointer)?.as_str()
    }
}

/// The entries of `packages` in a `pnpm-workspace.yaml`: a plain list, one per line.
fn listed_in(yaml: &str) -> Vec<String> {
    let lines = yaml
        .lines()
        .skip_while(|l| !l.starts_with("packages:"))
        .skip(1);
    let entries = lines.take_while(|l| l.trim().is_empty() || l.starts_with([' ', '-', '#', '\t']));
    entries
        .filter_map(|l| l.trim().strip_prefix("- "))
        .map(|e| {
            e.split(" #")
                .next()
                .unwrap_or(e)
                .trim()
                .trim_matches(['"', '\''])
                .to_owned()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_a_pnpm_workspace_is_read() {
        let yaml = "catalog:\n  a: 1\npackages:\n  # all\n  - 'packages/*' # here\n  - \"!x\"\n\n  - site\nonlyBuiltDependencies:\n  - y\n";
        assert_eq!(listed_in(yaml), ["packages/*", "!x", "site"]);
    }

    #[test]
    fn the_manager_is_the_one_whose_traces_are_nearest() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().canonicalize().expect("there");
        assert_eq!(Manager::of(&SearchPlace::for_tests(&root)), Manager::Npm);
        std::fs::write(root.join("yarn.lock"), "").expect("written");
        assert_eq!(Manager::of(&SearchPlace::for_tests(&root)), Manager::Yarn);
        std::fs::write(
            root.join("package.json"),
            r#"{"packageManager": "pnpm@9.1.0+sha512.x"}"#,
        )
        .expect("written");
        assert_eq!(Manager::of(&SearchPlace::for_tests(&root)), Manager::Pnpm);
    }
}
