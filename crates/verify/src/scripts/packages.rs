//! JavaScript package manifests: their scripts, workspace members and package manager.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::super::detect::{SearchPlace, read_small_file};
use super::script_name_matches;

/// A parsed `package.json`.
#[derive(Debug, Clone)]
pub(crate) struct Package {
    pub dir: PathBuf,
    manifest: Value,
}

/// The program that installs packages and runs their scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PackageManager {
    Npm,
    Pnpm,
    Yarn,
    Bun,
}

/// The lock file of each package manager.
const LOCK_FILES: &[(&str, PackageManager)] = &[
    ("pnpm-lock.yaml", PackageManager::Pnpm),
    ("yarn.lock", PackageManager::Yarn),
    ("bun.lock", PackageManager::Bun),
    ("bun.lockb", PackageManager::Bun),
    ("package-lock.json", PackageManager::Npm),
];

impl PackageManager {
    /// The package manager named by the nearest manifest or lock file; `npm` if there is none.
    pub(crate) fn detect(place: &SearchPlace<'_>) -> Self {
        for dir in place.ancestors() {
            let named = Package::read(dir)
                .and_then(|p| p.text("/packageManager").and_then(Self::from_name));
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

    fn from_name(text: &str) -> Option<Self> {
        let all = [Self::Npm, Self::Pnpm, Self::Yarn, Self::Bun];
        all.into_iter()
            .find(|m| text.split('@').next() == Some(m.program()))
    }

    pub(crate) fn program(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pnpm => "pnpm",
            Self::Yarn => "yarn",
            Self::Bun => "bun",
        }
    }

    /// The command that runs the `test` script.
    pub(crate) fn test_command(self) -> Vec<String> {
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
    pub(crate) fn read(dir: &Path) -> Option<Self> {
        let manifest = serde_json::from_str(&read_small_file(&dir.join("package.json"))?).ok()?;
        Some(Self {
            dir: dir.to_owned(),
            manifest,
        })
    }

    pub(crate) fn script(&self, name: &str) -> Option<&str> {
        self.manifest
            .get("scripts")?
            .get(name)?
            .as_str()
            .filter(|s| !s.trim().is_empty())
    }

    /// The scripts that match this name or pattern, in the order of the manifest.
    pub(crate) fn scripts_matching(&self, wanted: &str) -> Vec<String> {
        let scripts = self.manifest.get("scripts").and_then(Value::as_object);
        scripts
            .into_iter()
            .flatten()
            .map(|(name, _)| name)
            .filter(|name| script_name_matches(wanted, name))
            .cloned()
            .collect()
    }

    /// Whether this package is a dependency of any kind.
    pub(crate) fn depends_on(&self, name: &str) -> bool {
        ["devDependencies", "dependencies"].iter().any(|kind| {
            self.manifest
                .get(kind)
                .is_some_and(|d| d.get(name).is_some())
        })
    }

    /// The environment variables that a package manager sets for a script.
    pub(crate) fn variables(&self, script: &str) -> Vec<(String, String)> {
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

    /// The packages of this workspace, sorted by directory. `None` if this is not a workspace or has more than `max`.
    pub(crate) fn members(&self, max: usize) -> Option<Vec<Self>> {
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
        let patterns: Vec<String> = listed.or_else(|| {
            read_small_file(&self.dir.join("pnpm-workspace.yaml")).map(|t| parse_pnpm_packages(&t))
        })?;
        let (excluded, included): (Vec<&String>, Vec<&String>) =
            patterns.iter().partition(|p| p.starts_with('!'));
        let escaped = glob::Pattern::escape(&self.dir.to_string_lossy());
        let is_excluded = |dir: &Path| {
            let below = dir.strip_prefix(&self.dir).unwrap_or(dir);
            excluded.iter().any(|p| {
                glob::Pattern::new(p[1..].trim_end_matches('/'))
                    .is_ok_and(|p| p.matches_path(below))
            })
        };
        let mut dirs: Vec<PathBuf> = Vec::new();
        for pattern in included {
            let full_pattern = format!(
                "{escaped}/{}/package.json",
                pattern.trim_start_matches("./").trim_end_matches('/')
            );
            let found = glob::glob(&full_pattern).into_iter().flatten().flatten();
            dirs.extend(
                found
                    .filter_map(|file| Some(file.parent()?.to_owned()))
                    .take(max + 1),
            );
            if dirs.len() > max {
                return None;
            }
        }
        dirs.retain(|dir| {
            !is_excluded(dir) && !dir.components().any(|c| c.as_os_str() == "node_modules")
        });
        dirs.sort();
        dirs.dedup();
        Some(dirs.iter().filter_map(|dir| Self::read(dir)).collect())
    }

    fn text(&self, pointer: &str) -> Option<&str> {
        self.manifest.pointer(pointer)?.as_str()
    }
}

/// The entries of `packages` in a `pnpm-workspace.yaml`, which is a plain list with one entry per line.
fn parse_pnpm_packages(yaml: &str) -> Vec<String> {
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
    fn pnpm_workspace_list_is_parsed() {
        let yaml = "catalog:\n  a: 1\npackages:\n  # all\n  - 'packages/*' # here\n  - \"!x\"\n\n  - site\nonlyBuiltDependencies:\n  - y\n";
        assert_eq!(parse_pnpm_packages(yaml), ["packages/*", "!x", "site"]);
    }

    #[test]
    fn nearest_lock_file_or_manifest_names_the_manager() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let root = dir.path().canonicalize().expect("the path exists");
        assert_eq!(
            PackageManager::detect(&SearchPlace::for_tests(&root)),
            PackageManager::Npm
        );
        std::fs::write(root.join("yarn.lock"), "").expect("the file is written");
        assert_eq!(
            PackageManager::detect(&SearchPlace::for_tests(&root)),
            PackageManager::Yarn
        );
        std::fs::write(
            root.join("package.json"),
            r#"{"packageManager": "pnpm@9.1.0+sha512.x"}"#,
        )
        .expect("the file is written");
        assert_eq!(
            PackageManager::detect(&SearchPlace::for_tests(&root)),
            PackageManager::Pnpm
        );
    }
}
