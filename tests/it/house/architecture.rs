//! `docs/architecture.md` is held to what is there: files and tests exist, and the modules stand in the map's order.

use std::fs;
use std::path::Path;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// What stands between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn is_path(quoted: &str) -> bool {
    ["src/", "tests/", "queries/", "prompts/", "docs/"]
        .iter()
        .any(|folder| quoted.starts_with(folder))
}

#[test]
fn every_file_it_names_exists() {
    // The map and its like are quoted in blocks of their own.
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
        "docs/architecture.md names files that are not there: {gone:?}"
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
fn its_map_is_that_of_the_library_and_its_modules_stand_in_that_order() {
    let (text, lib, map) = (
        read("docs/architecture.md"),
        read("src/lib.rs"),
        read("tests/it/house/map.rs"),
    );
    let drawn = text
        .split("```text\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    for line in drawn.lines() {
        assert!(
            lib.contains(line.trim_end()),
            "src/lib.rs draws the map without this line: {line}"
        );
    }
    let table = text
        .split("| --- | --- | --- |\n")
        .nth(1)
        .unwrap()
        .split("\n\n")
        .next()
        .unwrap();
    let rows: Vec<&str> = table
        .lines()
        .flat_map(|row| quoted(row.split(" | ").next().unwrap()))
        .collect();
    let order = map
        .split("const MAY_USE")
        .nth(1)
        .unwrap()
        .split("];")
        .next()
        .unwrap();
    let at = |module: &str| {
        order
            .find(&format!("(\"{module}\","))
            .or_else(|| order.find(&format!("\n        \"{module}\",")))
    };
    let places: Vec<usize> = rows
        .iter()
        .map(|row| at(row).unwrap_or_else(|| panic!("`{row}` is not in MAY_USE")))
        .collect();
    assert!(
        places.is_sorted(),
        "the rows are not in the order of tests/it/house/map.rs: {rows:?}"
    );
    for module in lib
        .lines()
        .filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod "))
        .map(|line| line.trim_end_matches(';'))
    {
        assert!(
            rows.contains(&module),
            "`{module}` is missing in the table of docs/architecture.md"
        );
    }
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
        assert!(
            read(&file).contains(&format!("fn {test}")),
            "{file} has no test `{test}`"
        );
        named += 1;
    }
    assert!(named >= 8, "only {named} tests are named");
}
