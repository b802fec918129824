//! Decides which packages of a workspace `cargo test` runs from a directory, and describes that in the suite's notes.

use std::path::Path;

use toml::Value;

use super::super::super::detect::{FoundSuite, SearchPlace, read_small_file};
use super::super::super::step::SuiteStep;
use super::super::{Runner, nextest};

pub(super) fn find(runner: &'static Runner, place: &SearchPlace<'_>) -> Option<FoundSuite> {
    place.has("Cargo.toml").then_some(())?;
    let manifest = read_manifest(place.dir);
    let above = place
        .ancestors()
        .skip(1)
        .map(|d| (d, read_manifest(d)))
        .find(|(_, m)| m.get("workspace").is_some());
    let nextest = uses_nextest(place, above.as_ref().map(|(dir, _)| *dir));
    let (runner, mut argv) = if nextest {
        (&nextest::RUNNER, nextest::RUNNER.default_argv())
    } else {
        (runner, runner.default_argv())
    };
    let mut notes = Vec::new();
    let name = |manifest: &Value| {
        manifest
            .get("package")
            .and_then(|p| p.get("name"))
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    if let Some(workspace) = manifest.get("workspace") {
        let lists = |key: &str| {
            workspace
                .get(key)
                .and_then(Value::as_array)
                .is_some_and(|l| !l.is_empty())
        };
        let package_name = name(&manifest);
        if (package_name.is_some() && lists("members")) || lists("default-members") {
            argv.push(String::from("--workspace"));
            let otherwise = package_name
                .map(|package_name| {
                    format!("; without `--workspace` it would be `{package_name}` alone")
                })
                .unwrap_or_default();
            notes.push(format!("every package of the workspace is run{otherwise}"));
        }
    } else if let (Some((dir, _)), Some(package_name)) = (above, name(&manifest)) {
        let dir = dir
            .strip_prefix(place.root)
            .ok()
            .filter(|d| !d.as_os_str().is_empty());
        let dir = dir.map_or_else(
            || String::from("the project"),
            |d| format!("`{}`", d.display()),
        );
        notes.push(format!(
            "package `{package_name}` alone is run, of the workspace in {dir}; what depends on it is not"
        ));
    }
    if nextest {
        notes.push(String::from("nextest is configured, and runs no doctests"));
    }
    Some(FoundSuite {
        notes,
        ..FoundSuite::new(
            SuiteStep::new(argv, place.dir).with_runner(runner),
            "Cargo.toml",
        )
    })
}

fn uses_nextest(place: &SearchPlace<'_>, workspace: Option<&Path>) -> bool {
    let configured = |dir: &Path| dir.join(".config/nextest.toml").is_file();
    (configured(place.dir) || workspace.is_some_and(configured))
        && place.has_program("cargo-nextest")
}

fn read_manifest(dir: &Path) -> Value {
    let text = read_small_file(&dir.join("Cargo.toml")).unwrap_or_default();
    toml::from_str(&text).unwrap_or(Value::Boolean(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_name_the_packages_that_run() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let root = dir.path().canonicalize().expect("the path exists");
        let package = |name: &str| format!("[package]\nname = \"{name}\"\n");
        std::fs::create_dir_all(root.join("crates/cli")).expect("the directory is created");
        std::fs::write(root.join("crates/cli/Cargo.toml"), package("grep-cli"))
            .expect("the file is written");
        let found = |text: &str, below: &str| {
            std::fs::write(root.join("Cargo.toml"), text).expect("the file is written");
            let dir = root.join(below);
            let suite = find(
                &super::super::RUNNER,
                &SearchPlace {
                    dir: &dir,
                    ..SearchPlace::for_tests(&root)
                },
            )
            .expect("found");
            (suite.argv.join(" "), suite.notes.join("; "))
        };
        let (command, notes) = found(
            &format!("{}[workspace]\nmembers = [\"crates/*\"]\n", package("rg")),
            "",
        );
        assert_eq!(command, "cargo test --workspace");
        assert_eq!(
            notes,
            "every package of the workspace is run; without `--workspace` it would be `rg` alone"
        );
        assert_eq!(
            found("[workspace]\nmembers = [\"crates/*\"]\n", ""),
            ("cargo test".into(), String::new())
        );
        let (command, notes) = found("[workspace]\nmembers = [\"crates/*\"]\n", "crates/cli");
        assert_eq!(command, "cargo test");
        assert_eq!(
            notes,
            "package `grep-cli` alone is run, of the workspace in the project; what depends on it is not"
        );
        assert_eq!(
            found(&format!("{}[workspace]\n", package("x")), "").0,
            "cargo test"
        );
    }
}
