//! What an edit of a manifest changes: new dependencies and nothing else, or something that must stay as it is.
//! Manifests are compared by what they say, not by their bytes. Knows formats; who may add what is for the caller to say.

use std::path::Path;

use serde_json::Value;

/// A file that says what a project depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DependencyFile {
    /// Written by people; may grow where dependencies stand.
    Manifest(ManifestFormat),
    /// Written by tools; follows its manifest.
    Lock,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManifestFormat {
    CargoToml,
    PackageJson,
    PyprojectToml,
    Requirements,
    GoMod,
    Gemfile,
    MixExs,
}

/// Why an edit of a manifest is more than new dependencies.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestChange {
    #[error("it can no longer be read")]
    Unreadable,
    #[error("`{0}` was changed, and only dependencies may be added")]
    Elsewhere(String),
    #[error("`{0}`, which was there before, was changed or removed")]
    Lost(String),
    #[error("`{0}` would come from a path, which may lead anywhere")]
    FromPath(String),
}

const LOCK_FILES: &[&str] = &[
    "Cargo.lock",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "pnpm-lock.yaml",
    "yarn.lock",
    "bun.lock",
    "bun.lockb",
    "uv.lock",
    "poetry.lock",
    "pdm.lock",
    "Pipfile.lock",
    "go.sum",
    "Gemfile.lock",
    "gems.locked",
    "mix.lock",
];

/// Where dependencies stand in manifests that are data: tables of names, or lists of requirements. `*` is any key.
const TABLES: &[(ManifestFormat, &[&str])] = &[
    (
        ManifestFormat::CargoToml,
        &[
            "dependencies",
            "dev-dependencies",
            "build-dependencies",
            "workspace.dependencies",
            "target.*.dependencies",
            "target.*.dev-dependencies",
        ],
    ),
    (
        ManifestFormat::PackageJson,
        &[
            "dependencies",
            "devDependencies",
            "peerDependencies",
            "optionalDependencies",
        ],
    ),
    (
        ManifestFormat::PyprojectToml,
        &[
            "project.dependencies",
            "project.optional-dependencies.*",
            "dependency-groups.*",
            "tool.poetry.dependencies",
            "tool.poetry.group.*.dependencies",
            "tool.pdm.dev-dependencies.*",
        ],
    ),
];

/// Is this a file of that kind, by its name?
pub fn dependency_file(path: &Path) -> Option<DependencyFile> {
    let name = path.file_name()?.to_str()?;
    if LOCK_FILES.contains(&name) {
        return Some(DependencyFile::Lock);
    }
    Some(DependencyFile::Manifest(match name {
        "Cargo.toml" => ManifestFormat::CargoToml,
        "package.json" => ManifestFormat::PackageJson,
        "pyproject.toml" => ManifestFormat::PyprojectToml,
        "go.mod" => ManifestFormat::GoMod,
        "Gemfile" | "gems.rb" => ManifestFormat::Gemfile,
        "mix.exs" => ManifestFormat::MixExs,
        _ if name.starts_with("requirements") && name.ends_with(".txt") => {
            ManifestFormat::Requirements
        }
        _ => return None,
    }))
}

impl ManifestFormat {
    /// The names of the dependencies that `after` has and `before` has not; an error if anything else differs.
    pub fn added_dependencies(
        self,
        before: &str,
        after: &str,
    ) -> Result<Vec<String>, ManifestChange> {
        match self {
            Self::CargoToml | Self::PyprojectToml => {
                let read = |text: &str| {
                    toml::from_str::<Value>(text).map_err(|_| ManifestChange::Unreadable)
                };
                self.grown(read(before)?, read(after)?)
            }
            Self::PackageJson => {
                let read = |text: &str| {
                    serde_json::from_str::<Value>(text).map_err(|_| ManifestChange::Unreadable)
                };
                self.grown(read(before)?, read(after)?)
            }
            Self::Requirements => lines_grown(before, after, |line| {
                let name = line
                    .split(['=', '<', '>', '~', '!', '[', ';', ' '])
                    .next()?;
                (!line.starts_with('-')).then(|| name.to_owned())
            }),
            Self::GoMod => lines_grown(before, after, |line| {
                let words: Vec<&str> = line
                    .trim_start_matches("require ")
                    .split_whitespace()
                    .collect();
                match words.as_slice() {
                    ["require", "("] | ["("] | [")"] => Some(String::new()),
                    [module, version, ..] if version.starts_with('v') && module.contains('.') => {
                        Some((*module).to_owned())
                    }
                    _ => None,
                }
            }),
            Self::Gemfile => lines_grown(before, after, |line| {
                let rest = line.strip_prefix("gem ")?;
                let name = rest
                    .trim()
                    .trim_start_matches(['"', '\''])
                    .split(['"', '\''])
                    .next()?;
                (!rest.contains("path:") && !rest.contains(";")).then(|| name.to_owned())
            }),
            Self::MixExs => lines_grown(before, after, |line| {
                let rest = line
                    .strip_prefix("{:")?
                    .trim_end_matches(',')
                    .strip_suffix('}')?;
                (!rest.contains("path:")).then(|| rest.split(',').next().map(str::to_owned))?
            }),
        }
    }

    fn grown(self, mut before: Value, mut after: Value) -> Result<Vec<String>, ManifestChange> {
        let mut added = Vec::new();
        let tables = TABLES
            .iter()
            .find(|(format, _)| *format == self)
            .map(|(_, tables)| *tables)
            .unwrap_or_default();
        for table in tables {
            let keys: Vec<&str> = table.split('.').collect();
            let new = taken(&mut after, &keys);
            let old = taken(&mut before, &keys);
            added.extend(compare_tables(&old, &new)?);
        }
        drop_empty(&mut before);
        drop_empty(&mut after);
        if before != after {
            return Err(ManifestChange::Elsewhere(first_difference(&before, &after)));
        }
        added.sort();
        added.dedup();
        Ok(added)
    }
}

/// Takes everything that stands at these keys out of a document: whole names and what they say.
fn taken(value: &mut Value, keys: &[&str]) -> Vec<(String, Value)> {
    let Some((first, rest)) = keys.split_first() else {
        return Vec::new();
    };
    let Some(map) = value.as_object_mut() else {
        return Vec::new();
    };
    let names: Vec<String> = if *first == "*" {
        map.keys().cloned().collect()
    } else {
        vec![(*first).to_owned()]
    };
    let mut found = Vec::new();
    for name in names {
        if !rest.is_empty() {
            found.extend(
                map.get_mut(&name)
                    .map(|inner| taken(inner, rest))
                    .unwrap_or_default(),
            );
        } else {
            match map.remove(&name) {
                Some(Value::Object(entries)) => found.extend(entries),
                Some(Value::Array(list)) => {
                    found.extend(
                        list.into_iter()
                            .map(|entry| (requirement_name(&entry), entry)),
                    );
                }
                Some(other) => drop(map.insert(name, other)),
                None => {}
            }
        }
    }
    found
}

fn requirement_name(entry: &Value) -> String {
    let text = entry
        .as_str()
        .map_or_else(|| entry.to_string(), str::to_owned);
    text.split(['=', '<', '>', '~', '!', '[', ';', ' ', '@'])
        .next()
        .unwrap_or_default()
        .to_owned()
}

fn compare_tables(
    old: &[(String, Value)],
    new: &[(String, Value)],
) -> Result<Vec<String>, ManifestChange> {
    if let Some((name, _)) = old.iter().find(|entry| !new.contains(entry)) {
        return Err(ManifestChange::Lost(name.clone()));
    }
    let added: Vec<&(String, Value)> = new.iter().filter(|entry| !old.contains(entry)).collect();
    let from_path = |value: &Value| {
        value.get("path").is_some()
            || value.as_str().is_some_and(|v| {
                v.starts_with("file:") || v.starts_with("link:") || v.contains("@ file:")
            })
    };
    match added.iter().find(|(_, value)| from_path(value)) {
        Some((name, _)) => Err(ManifestChange::FromPath(name.clone())),
        None => Ok(added.into_iter().map(|(name, _)| name.clone()).collect()),
    }
}

/// A table that was made for dependencies alone is nothing by itself.
fn drop_empty(value: &mut Value) {
    if let Some(map) = value.as_object_mut() {
        map.values_mut().for_each(drop_empty);
        map.retain(|_, inner| !inner.as_object().is_some_and(serde_json::Map::is_empty));
    }
}

fn first_difference(before: &Value, after: &Value) -> String {
    let (Some(was), Some(is)) = (before.as_object(), after.as_object()) else {
        return String::from("the manifest");
    };
    let keys = was.keys().chain(is.keys());
    let key = keys
        .into_iter()
        .find(|key| was.get(*key) != is.get(*key))
        .cloned()
        .unwrap_or_default();
    match (was.get(&key), is.get(&key)) {
        (Some(Value::Object(_)), Some(Value::Object(_))) => {
            format!("{key}.{}", first_difference(&was[&key], &is[&key]))
        }
        _ => key,
    }
}

/// Manifests that are programs or lists: lines may be added that name a dependency, and none may go.
fn lines_grown(
    before: &str,
    after: &str,
    named: impl Fn(&str) -> Option<String>,
) -> Result<Vec<String>, ManifestChange> {
    // A comma behind the last entry comes and goes with what follows it.
    let lines = |text: &str| {
        text.lines()
            .map(|l| l.trim().trim_end_matches(',').to_owned())
            .filter(|l| !l.is_empty())
            .collect::<Vec<_>>()
    };
    let (was, mut is) = (lines(before), lines(after));
    for line in &was {
        match is.iter().position(|l| l == line) {
            Some(at) => drop(is.remove(at)),
            None => return Err(ManifestChange::Lost(line.clone())),
        }
    }
    let mut added = Vec::new();
    for line in is {
        added.push(named(&line).ok_or(ManifestChange::Elsewhere(line))?);
    }
    added.retain(|name| !name.is_empty());
    Ok(added)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(name: &str, before: &str, after: &str) -> Result<Vec<String>, ManifestChange> {
        let Some(DependencyFile::Manifest(format)) = dependency_file(Path::new(name)) else {
            panic!("{name}")
        };
        format.added_dependencies(before, after)
    }

    #[test]
    fn new_dependencies_are_told_from_every_other_change() {
        let cargo = "[package]\nname = \"x\"\n\n[dependencies]\nserde = \"1\"\n";
        assert_eq!(
            added("Cargo.toml", cargo, &format!("{cargo}regex = \"1\"\n")),
            Ok(vec!["regex".into()])
        );
        assert_eq!(
            added("Cargo.toml", "[package]\nname = \"x\"\n", cargo),
            Ok(vec!["serde".into()])
        );
        assert_eq!(
            added("Cargo.toml", cargo, &cargo.replace("\"1\"", "\"2\"")),
            Err(ManifestChange::Lost("serde".into()))
        );
        assert_eq!(
            added("Cargo.toml", cargo, &cargo.replace("\"x\"", "\"y\"")),
            Err(ManifestChange::Elsewhere("package.name".into()))
        );
        let harness = format!("{cargo}[[test]]\nname = \"a\"\nharness = false\n");
        assert_eq!(
            added("Cargo.toml", cargo, &harness),
            Err(ManifestChange::Elsewhere("test".into()))
        );
        let path = format!("{cargo}evil = {{ path = \"../evil\" }}\n");
        assert_eq!(
            added("Cargo.toml", cargo, &path),
            Err(ManifestChange::FromPath("evil".into()))
        );
        assert_eq!(
            added("Cargo.toml", cargo, "["),
            Err(ManifestChange::Unreadable)
        );

        let json = r#"{"scripts": {"test": "jest"}, "dependencies": {"a": "1"}}"#;
        assert_eq!(
            added(
                "package.json",
                json,
                &json.replace("\"a\": \"1\"", "\"a\": \"1\", \"b\": \"2\"")
            ),
            Ok(vec!["b".into()])
        );
        let scripts = json.replace("jest", "true");
        assert_eq!(
            added("package.json", json, &scripts),
            Err(ManifestChange::Elsewhere("scripts.test".into()))
        );

        let python = "[project]\nname = \"x\"\ndependencies = [\"a>=1\"]\n";
        assert_eq!(
            added(
                "pyproject.toml",
                python,
                &python.replace("[\"a>=1\"]", "[\"a>=1\", \"b[c]==2\"]")
            ),
            Ok(vec!["b".into()])
        );
        assert!(
            added(
                "pyproject.toml",
                python,
                &format!("{python}[tool.pytest.ini_options]\naddopts = \"-k x\"\n")
            )
            .is_err()
        );
        assert_eq!(
            added("requirements.txt", "a\n", "a\nb==1\n"),
            Ok(vec!["b".into()])
        );
        assert!(added("requirements.txt", "a\n", "a\n-e ../b\n").is_err());
    }

    #[test]
    fn manifests_that_are_programs_may_only_gain_lines_that_name_a_dependency() {
        let go = "module x\n\ngo 1.22\n";
        let grown = "module x\n\ngo 1.22\n\nrequire (\n\tgithub.com/a/b v1.2.3 // indirect\n)\n";
        assert_eq!(
            added("go.mod", go, grown),
            Ok(vec!["github.com/a/b".into()])
        );
        assert!(added("go.mod", go, &format!("{go}replace x => ../y\n")).is_err());
        assert_eq!(
            added("Gemfile", "gem \"a\"\n", "gem \"a\"\ngem 'b', '~> 1'\n"),
            Ok(vec!["b".into()])
        );
        assert!(added("Gemfile", "gem \"a\"\n", "gem \"a\"\nsystem(\"x\")\n").is_err());
        let mix = "defp deps do\n  [\n    {:a, \"~> 1\"}\n  ]\nend\n";
        assert_eq!(
            added(
                "mix.exs",
                mix,
                &mix.replace("1\"}", "1\"},\n    {:b, \"~> 2\"}")
            ),
            Ok(vec!["b".into()])
        );
        assert!(added("mix.exs", mix, &mix.replace("end", "System.halt(0)\nend")).is_err());
        assert_eq!(
            dependency_file(Path::new("sub/Cargo.lock")),
            Some(DependencyFile::Lock)
        );
        assert_eq!(dependency_file(Path::new("src/lib.rs")), None);
    }
}
