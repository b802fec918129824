//! Every task of `gym/` is sound: its reference passes all tests, its stub fails a visible one (unless behaviour is to be
//! kept), and each wrong answer passes the visible tests and fails a hidden one. All answers of a language are put into
//! one project under names of their own, so that one run of its runner judges them all.

use std::collections::BTreeMap;
use std::path::Path;

use supervisor_gym::task::TaskKind;
use supervisor_gym::task_set::{TaskLanguage, TaskSet, TaskText};
use supervisor_test_support::programs::require;
use supervisor_test_support::suites::{file, run};
use supervisor_verify::TestRun;

#[test]
fn tasks_in_rust_are_sound() {
    check("rust");
}

#[test]
#[ignore = "needs pytest"]
fn tasks_in_python_are_sound() {
    check("python");
}

#[test]
#[ignore = "needs node and npm"]
fn tasks_in_javascript_are_sound() {
    check("javascript");
}

#[test]
#[ignore = "needs go"]
fn tasks_in_go_are_sound() {
    check("go");
}

#[test]
#[ignore = "needs ruby"]
fn tasks_in_ruby_are_sound() {
    check("ruby");
}

#[test]
#[ignore = "needs mix and elixir"]
fn tasks_in_elixir_are_sound() {
    check("elixir");
}

/// One answer to one task.
struct Variant<'a> {
    /// Unique, and a good name in every language.
    mark: String,
    task: &'a TaskText,
    text: String,
    /// Whether all visible tests pass, and whether all hidden ones do.
    passes: (bool, bool),
}

fn check(language: &str) {
    let set = TaskSet::own().unwrap();
    let around = &set.languages[language];
    let needs: Vec<&str> = around.needs.iter().map(String::as_str).collect();
    require(&needs);
    let variants: Vec<Variant<'_>> = set
        .texts
        .iter()
        .filter(|((l, _), _)| l == language)
        .flat_map(|((_, name), task)| variants(name, task))
        .collect();
    assert!(variants.len() >= 8 * 4, "{} answers", variants.len());
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    lay_out(language, around, &variants, &root);
    let seen = run(&root);
    let wrong: Vec<String> = variants
        .iter()
        .filter_map(|variant| variant.judge(&seen))
        .collect();
    assert!(wrong.is_empty(), "{}\n{seen:#?}", wrong.join("\n"));
}

fn variants<'a>(name: &str, task: &'a TaskText) -> Vec<Variant<'a>> {
    let keeps = task.kind == TaskKind::Refactor;
    let variant = |what: &str, text: &str, passes| Variant {
        mark: format!("{name}_{what}"),
        task,
        text: text.to_owned(),
        passes,
    };
    let mut all = vec![
        variant("stub", &task.stub, (keeps, keeps)),
        variant("reference", &task.reference, (true, true)),
    ];
    for (number, wrong) in task.wrong.iter().enumerate() {
        let text = wrong
            .apply_to(&task.reference)
            .unwrap_or_else(|n| panic!("{name}: {} stands {n} times", wrong.why));
        all.push(variant(&format!("wrong{number}"), &text, (true, false)));
    }
    all
}

impl Variant<'_> {
    /// What is not as it should be.
    fn judge(&self, seen: &TestRun) -> Option<String> {
        let found =
            [("visible", self.passes.0), ("hidden", self.passes.1)].map(|(which, should_pass)| {
                let mark = self.marked(which);
                let failed = seen
                    .failed()
                    .filter(|(name, _)| name.0.contains(&mark))
                    .count();
                let passed = seen.passed().filter(|name| name.0.contains(&mark)).count();
                if failed + passed == 0 {
                    return Some(format!("{mark}: no test was run"));
                }
                ((failed == 0) != should_pass)
                    .then(|| format!("{mark}: {failed} failed, {passed} passed"))
            });
        let told: Vec<String> = found.into_iter().flatten().collect();
        (!told.is_empty()).then(|| told.join("\n"))
    }

    fn marked(&self, which: &str) -> String {
        format!("{}_{which}__", self.mark)
    }
}

/// All answers and their tests in one project. Each language says how two files come to share a process.
fn lay_out(language: &str, around: &TaskLanguage, variants: &[Variant<'_>], root: &Path) {
    for (path, text) in &around.files {
        file(root, path, text);
    }
    let mut joined: BTreeMap<&str, String> = BTreeMap::new();
    for variant in variants {
        let name = &variant.mark;
        for (which, tests) in [
            ("visible", &variant.task.visible),
            ("hidden", &variant.task.hidden),
        ] {
            let mark = variant.marked(which);
            match language {
                "rust" => {
                    let tests = tests.replace("use task::", &format!("use task::{name}::"));
                    *joined.entry("tests/all.rs").or_default() +=
                        &format!("mod {mark} {{\n{tests}}}\n");
                }
                "python" => {
                    let tests = tests
                        .replace("from solution", &format!("from {name}"))
                        .replace("def test_", &format!("def test_{mark}"));
                    file(root, &format!("tests/test_{name}_{which}.py"), &tests);
                }
                "javascript" => {
                    let tests = tests
                        .replace("'../solution'", &format!("'../{name}'"))
                        .replace("test('", &format!("test('{mark}"));
                    file(root, &format!("test/{name}_{which}.test.js"), &tests);
                }
                "go" => {
                    let tests = tests.replace("func Test", &format!("func Test_{mark}"));
                    file(root, &format!("{name}/{which}_test.go"), &tests);
                }
                "ruby" => {
                    let tests = tests
                        .replace("lib/solution", &format!("lib/{name}"))
                        .replace("Solution.", &format!("Solution_{name}."))
                        .replace("Test <", &format!("Test_{name} <"))
                        .replace("def test_", &format!("def test_{mark}"));
                    file(root, &format!("test/{name}_{which}_test.rb"), &tests);
                }
                "elixir" => {
                    let tests = tests
                        .replace("Solution.", &format!("Solution_{name}."))
                        .replace("Test do", &format!("Test_{name} do"))
                        .replace("test \"", &format!("test \"{mark}"));
                    file(root, &format!("test/{name}_{which}_test.exs"), &tests);
                }
                other => panic!("how are two answers in {other} put into one project?"),
            }
        }
        let text = &variant.text;
        match language {
            "rust" => {
                *joined.entry("src/lib.rs").or_default() +=
                    &format!("pub mod {name} {{\n{text}}}\n");
            }
            "python" => file(root, &format!("{name}.py"), text),
            "javascript" => file(root, &format!("{name}.js"), text),
            "go" => file(root, &format!("{name}/solution.go"), text),
            "ruby" => file(
                root,
                &format!("lib/{name}.rb"),
                &text.replace("module Solution", &format!("module Solution_{name}")),
            ),
            _ => file(
                root,
                &format!("lib/{name}.ex"),
                &text.replace("defmodule Solution", &format!("defmodule Solution_{name}")),
            ),
        }
    }
    for (path, text) in joined {
        file(root, path, &text);
    }
}
