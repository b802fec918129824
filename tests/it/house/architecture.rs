//! Checks `docs/architecture.md`: the files and tests it names exist, and it lists every crate.

use std::fs;
use std::path::Path;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The texts between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn is_path(quoted: &str) -> bool {
    ["src/", "crates/", "tests/", "prompts/", "docs/"]
        .iter()
        .any(|folder| quoted.starts_with(folder))
}

#[test]
fn every_file_it_names_exists() {
    // Skip the code blocks.
    let text = read("docs/architecture.md");
    let text = text.split("```").step_by(2).collect::<String>();
    let named: Vec<&str> = quoted(&text).filter(|quoted| is_path(quoted)).collect();
    assert!(named.len() > 40, "only {} files are named", named.len());
    let gone: Vec<_> = named
        .into_iter()
        .filter(|path| !root().join(path).exists())
        .collect();
    assert!(
        gone.is_empty(),
        "docs/architecture.md names files that do not exist: {gone:?}"
    );
}

#[test]
fn every_invariant_names_a_test_that_exists() {
    let text = read("docs/architecture.md");
    let rows = text
        .split("## Invariants")
        .nth(1)
        .unwrap()
        .split("\n## ")
        .next()
        .unwrap()
        .lines();
    let mut kept = 0;
    for row in rows.filter(|row| row.contains(".rs`: `")) {
        let mut names = quoted(row).skip_while(|quoted| !quoted.ends_with(".rs"));
        let (file, test) = (names.next().unwrap(), names.next().unwrap());
        assert!(
            read(file).contains(&format!("fn {test}(")),
            "{file} has no test `{test}`"
        );
        kept += 1;
    }
    assert!(kept >= 12, "only {kept} invariants name their test");
}

#[test]
fn every_crate_is_listed_and_has_a_readme() {
    let text = read("docs/architecture.md");
    let mut crates = 0;
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            text.contains(&format!("\n| `crates/{name}` | ")),
            "docs/architecture.md has no row for `crates/{name}`"
        );
        let readme = read(&format!("crates/{name}/README.md"));
        assert!(
            readme.starts_with(&format!("# supervisor-{name}\n")),
            "crates/{name}/README.md has another title"
        );
        let lib = read(&format!("crates/{name}/src/lib.rs"));
        assert!(
            lib.contains("#[doc = include_str!(\"../README.md\")]"),
            "the example in crates/{name}/README.md is not compiled"
        );
        crates += 1;
    }
    assert!(crates > 10, "only {crates} crates");
}

/// `skills::review::range::a_sentence` in a document is the test of that name in `tests/it/skills/review/range.rs`.
#[test]
fn every_test_that_docs_reliability_names_exists() {
    let text = read("docs/reliability.md");
    let text = text.split("```").step_by(2).collect::<String>();
    let mut named = 0;
    for path in quoted(&text).filter(|quoted| quoted.contains("::")) {
        let (module, test) = path.rsplit_once("::").unwrap();
        let file = format!("tests/it/{}.rs", module.replace("::", "/"));
        let crates = fs::read_dir(root().join("crates")).unwrap();
        let found = crates
            .map(|entry| entry.unwrap().path())
            .chain([root().to_owned()])
            .filter_map(|package| fs::read_to_string(package.join(&file)).ok())
            .any(|text| text.contains(&format!("fn {test}")));
        assert!(found, "no package has a test `{test}` in {file}");
        named += 1;
    }
    assert!(named >= 8, "only {named} tests are named");
}
