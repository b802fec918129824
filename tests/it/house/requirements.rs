//! docs/requirements.md names a test for every requirement, and the tests exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const COUNT: usize = 225;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The names of all test functions below a directory.
fn tests_below(directory: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("target") {
            tests_below(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let mut is_test = false;
            for line in text.lines().map(str::trim) {
                is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
                let name = line
                    .trim_start_matches("async ")
                    .strip_prefix("fn ")
                    .and_then(|rest| rest.split('(').next());
                if let (true, Some(name)) = (is_test, name) {
                    names.insert(name.to_owned());
                    is_test = false;
                }
            }
        }
    }
}

#[test]
fn every_requirement_names_tests_that_exist() {
    let mut tests = BTreeSet::new();
    for directory in ["crates", "src", "tests"] {
        tests_below(&root().join(directory), &mut tests);
    }
    let page = fs::read_to_string(root().join("docs/requirements.md")).unwrap();
    let mut numbers = Vec::new();
    for line in page.lines().filter(|line| line.starts_with("| R")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let (number, kept_by) = (cells[0], cells.last().unwrap());
        numbers.push(number[1..].parse::<usize>().unwrap());
        let named: Vec<&str> = kept_by.split('`').skip(1).step_by(2).collect();
        let is_test = |name: &&&str| tests.contains(**name);
        assert!(
            named.iter().any(|name| tests.contains(*name)),
            "{number} names no test"
        );
        // What looks like the name of a test is one.
        let looks_like_a_test =
            |name: &&&str| name.matches('_').count() >= 2 && !name.contains(' ');
        let missing: Vec<_> = named
            .iter()
            .filter(looks_like_a_test)
            .filter(|name| !is_test(name))
            .collect();
        assert!(missing.is_empty(), "{number}: there is no test {missing:?}");
    }
    assert_eq!(numbers, (1..=COUNT).collect::<Vec<_>>());
}

/// The text of all Rust files below a directory.
fn code_below(directory: &Path, code: &mut String) {
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            code_below(&path, code);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            *code += &fs::read_to_string(&path).unwrap();
        }
    }
}

#[test]
fn product_is_rust_and_uses_the_named_packages() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let manifest: toml::Table = manifest.parse().unwrap();
    let programs = manifest["package"]["name"].as_str();
    assert_eq!(programs, Some("supervisor"));
    let mut code = String::new();
    code_below(&root().join("src"), &mut code);
    for entry in fs::read_dir(root().join("crates")).unwrap().flatten() {
        let source = entry.path().join("src");
        assert!(source.join("lib.rs").is_file(), "{}", source.display());
        code_below(&source, &mut code);
    }
    let packages = "rmcp tokio serde serde_json schemars figment reqwest anyhow tracing";
    for package in packages.split(' ') {
        assert!(
            manifest["workspace"]["dependencies"].get(package).is_some(),
            "{package} is not a dependency"
        );
        assert!(
            code.contains(&format!("{package}::")),
            "{package} is unused"
        );
    }
}

#[test]
fn just_recipes_exist() {
    let justfile = fs::read_to_string(root().join("justfile")).unwrap();
    for recipe in ["dev:", "build:", "smoke:", "check:", "ci "] {
        assert!(
            justfile.lines().any(|line| line.starts_with(recipe)),
            "there is no recipe `{recipe}`"
        );
    }
    assert!(justfile.contains("cargo run"), "`just dev` runs the server");
}
