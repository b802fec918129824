//! Which packages `cargo test` runs from a directory, so that it can be said, and so that a test in a member is found.

use std::path::Path;

use toml::Value;

use super::super::super::detect::{FoundSuite, SearchPlace, read_small};
use super::super::super::step::SuiteStep;
use super::super::{Runner, nextest};

pub(super) fn find(runner: &'static Runner, place: &SearchPlace<'_>) -> Option<FoundSuite> {
    place.has("Cargo.toml").then_some(())?;
    let manifest = read_manifest(place.dir);
    let above = place
        .upwards()
        .skip(1)
        .map(|d| (d, read_manifest(d)))
        .find(|(_, m)| m.get("workspace").is_some());
    let nextest = uses_nextest(place, above.as_ref().map(|(dir, _)| *dir));
    let (runner, mut argv) = if nextest {
        (&nextest::RUNNER, nextest::RUNNER.argv())
    } else {
        (runner, runner.argv())
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
        let own = name(&manifest);
        if (own.is_some() && lists("members")) || lists("default-members") {
            argv.push(String::from("--workspace"));
            let alone = own
                .map(|own| format!("; without `--workspace` it would be `{own}` alone"))
                .unwrap_or_default();
            notes.push(format!("every package of the workspace is run{alone}"));
        }
    } else if let (Some((dir, _)), Some(own)) = (above, name(&manifest)) {
        let dir = dir
            .strip_prefix(place.root)
            .ok()
            .filter(|d| !d.as_os_str().is_empty());
        let dir = dir.map_or_else(
            || String::from("the project"),
            |d| format!("`{}`", d.display()),
        );
        notes.push(format!(
            "package `{own}` alone is run, of the workspace in {dir}; what depends on it is not"
        ));
    }
    if nextest {
        notes.push(String::from("nextest is configured, and runs no doctests"));
    }
    Some(FoundSuite {
        notes,
        ..FoundSuite::of(SuiteStep::new(argv, place.dir).run_by(runner), "Cargo.toml")
    })
}

fn uses_nextest(place: &SearchPlace<'_>, workspace: Option<&Path>) -> bool {
    let configured = |dir: &Path| dir.join(".config/nextest.toml").is_file();
    (configured(place.dir) || workspace.is_some_and(configured))
        && place.has_program("cargo-nextest")
}

fn read_manifest(dir: &Path) -> Value {
    let text = read_small(&dir.join("Cargo.toml")).unwrap_or_default();
    toml::from_str(&text).unwrap_or(Value::Boolean(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_run_of_a_workspace_is_said() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().canonicalize().expect("there");
        let package = |name: &str| format!("[package]\nname = \"{name}\"\n");
        std::fs::create_dir_all(root.join("crates/cli")).expect("made");
        std::fs::write(root.join("crates/cli/Cargo.toml"), package("grep-cli")).expect("written");
        let found = |text: &str, below: &str| {
            std::fs::write(root.join("Cargo.toml"), text).expect("written");
            let whole = root.join(below);
            let suite = find(
                &super::super::RUNNER,
                &SearchPlace {
                    dir: &whole,
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
