//! Which test command is found for a project.

use std::path::Path;

use supervisor_test_support::suites::file;
use supervisor_verify::detect;

fn command(root: &Path, near: Option<&str>) -> String {
    detect(root, near.map(Path::new), None).map_or_else(|e| e.to_string(), |s| s.command())
}

#[test]
fn manifests_have_a_fixed_order() {
    // With one test each, so that none has more to show for it than another.
    let order = [
        ("mix.exs", "", "test/a_test.exs", "mix test"),
        ("Gemfile", "", "spec/a_spec.rb", "bundle exec rspec"),
        ("Cargo.toml", "", "tests/a.rs", "cargo test"),
        ("pytest.ini", "", "tests/test_a.py", "pytest"),
        (
            "package.json",
            r#"{"scripts": {"test": "x"}}"#,
            "a.test.js",
            "npm test",
        ),
        ("go.mod", "", "a_test.go", "go test ./..."),
    ];
    let dir = tempfile::tempdir().unwrap();
    // From the last to the first: each one that is added wins over those before.
    for (manifest, text, test, expected) in order {
        file(dir.path(), manifest, text);
        file(dir.path(), test, "");
        assert_eq!(command(dir.path(), None), expected, "{manifest}");
    }
    let suite = detect(dir.path(), None, None).unwrap();
    assert_eq!(suite.found_by(), "go.mod");
    let others: Vec<_> = suite
        .alternatives()
        .iter()
        .map(|a| a.manifest.to_str().unwrap())
        .collect();
    assert_eq!(
        others,
        [
            "package.json",
            "pytest.ini",
            "Cargo.toml",
            "Gemfile",
            "mix.exs"
        ]
    );
}

#[test]
fn nearest_manifest_wins() {
    let dir = tempfile::tempdir().unwrap();
    file(dir.path(), "go.mod", "");
    file(dir.path(), "web/package.json", "{}");
    file(dir.path(), "web/api/pyproject.toml", "");
    assert_eq!(command(dir.path(), None), "go test ./...");
    assert_eq!(command(dir.path(), Some("cmd/main.go")), "go test ./...");
    assert_eq!(
        command(dir.path(), Some("web/src/not/there/yet.js")),
        "npm test"
    );
    let suite = detect(dir.path(), Some(Path::new("web/api/test_a.py")), None).unwrap();
    assert_eq!(
        (suite.command().as_str(), suite.found_by()),
        ("pytest", "web/api/pyproject.toml")
    );
    assert!(suite.root().ends_with("web/api"));
    let others: Vec<_> = suite
        .alternatives()
        .iter()
        .map(|a| a.manifest.to_str().unwrap())
        .collect();
    assert_eq!(others, ["web/package.json", "go.mod"]);
    assert!(command(dir.path(), Some("../elsewhere/a.go")).contains("outside the project"));
}

#[test]
fn error_names_the_manifests_and_a_remedy() {
    let dir = tempfile::tempdir().unwrap();
    file(dir.path(), "README.md", "");
    // One alone would be taken.
    file(dir.path(), "sub/Cargo.toml", "");
    file(dir.path(), "web/go.mod", "");
    let said = command(dir.path(), None);
    for word in [
        "go.mod",
        "package.json",
        "pyproject.toml",
        "pytest.ini",
        "Cargo.toml",
        "Gemfile",
        "mix.exs",
        "test_cmd",
    ] {
        assert!(said.contains(word), "`{word}` is missing in: {said}");
    }
    assert!(said.contains("sub/Cargo.toml"), "{said}");
    assert!(command(&dir.path().join("not-there"), None).contains("is not a directory"));
}

#[test]
fn command_changes_directory_and_variables_without_a_shell() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    file(&root, "api/Cargo.toml", "");
    file(&root, "web/a.txt", "");
    let words = "cd api && RUST_LOG=debug cargo test -q";
    let suite = detect(&root, None, Some(words)).unwrap();
    assert_eq!(
        (suite.runner(), suite.root()),
        ("cargo", &*root.join("api"))
    );
    assert_eq!(suite.command(), "cargo test -q");
    for (wrong, why) in [
        ("cd .. && cargo test", "does not stay in the project"),
        ("cd nowhere && cargo test", "`cd nowhere`"),
        ("cd api", "runs no program"),
    ] {
        let said = detect(&root, None, Some(wrong)).unwrap_err().to_string();
        assert!(said.contains(why), "{wrong}: {said}");
    }
}

#[test]
fn runner_of_a_given_command_is_recognised() {
    let dir = tempfile::tempdir().unwrap();
    file(dir.path(), "go.mod", "");
    for (words, runner) in [
        ("cargo test -p x", "cargo"),
        ("python -m pytest 'a b'", "pytest"),
        ("go test ./pkg", "go"),
        ("npx jest", "jest"),
        ("npx vitest run", "vitest"),
        ("npx mocha", "mocha"),
        ("node --test", "node_test"),
        ("bundle exec rspec spec/a_spec.rb", "rspec"),
        ("mix test", "mix"),
        ("npm test", "npm"),
        ("make check", "generic"),
        ("sh -c 'cargo test'", "generic"),
    ] {
        let suite = detect(dir.path(), None, Some(words)).unwrap();
        assert_eq!(
            (suite.runner(), suite.found_by()),
            (runner, "test_cmd"),
            "{words}"
        );
    }
    assert_eq!(
        detect(dir.path(), None, Some("a 'b c'")).unwrap().argv(),
        ["a", "b c"]
    );
    for wrong in ["", "  ", "a 'b"] {
        let said = detect(dir.path(), None, Some(wrong))
            .unwrap_err()
            .to_string();
        assert!(said.contains("test_cmd"), "{said}");
    }
}
