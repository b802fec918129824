//! Which files a model is shown: the definitions a test needs, within the window, whatever the project looks like.

mod generate;
mod generated_language;
mod large_tree;
mod real_repositories;
mod small;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use supervisor_languages as languages;
use supervisor_pack as pack;
use supervisor_pack::{PackRequest, PackedFiles};
use supervisor_text::redact::Redactor;

use generate::Generated;

/// 8,192 tokens of three bytes, less what task, schema and evidence take.
const WINDOW: usize = 8_192 * 3 - 4_096;

fn pack(project: &Generated, window_bytes: usize) -> PackedFiles {
    pack::files(&PackRequest {
        co_changed: &[],
        redactor: &Redactor::patterns_only(),
        project: &pack::ProjectIndex::of(project.root.path()),
        ecosystem: Some(project.language.language()),
        test_path: &project.test_path,
        test_source: &project.test_source,
        failing_output: "",
        failing: &[],
        caller_text: "",
        extra_files: &[],
        window_bytes,
    })
}

/// The lines shown of one file, without their numbers.
fn shown_of(text: &str, path: &str) -> Vec<String> {
    let head =
        |line: &str| line == format!("## {path}") || line.starts_with(&format!("## {path} ("));
    let lines = text
        .lines()
        .skip_while(|l| !head(l))
        .skip(1)
        .take_while(|l| !l.starts_with("## "));
    lines
        .filter_map(|l| l.split_once("| "))
        .map(|(_, code)| code.to_owned())
        .collect()
}

#[test]
#[expect(clippy::print_stderr, reason = "the count is the point")]
fn small_window_holds_every_imported_definition() {
    let mut hits = 0;
    let mut report = Vec::new();
    for seed in 0..20 {
        let project = generate::project(seed);
        assert_eq!(project.files, 300, "seed {seed}");
        let began = Instant::now();
        let packed = pack(&project, WINDOW);
        let took = began.elapsed();
        assert!(
            packed.text.len() <= WINDOW,
            "seed {seed}: {} bytes",
            packed.text.len()
        );
        assert!(took < Duration::from_secs(30), "seed {seed}: {took:?}");
        let missing: Vec<_> = project
            .definitions
            .iter()
            .filter(|d| {
                let shown = shown_of(&packed.text, &d.path);
                !d.lines.iter().all(|line| shown.contains(line))
            })
            .map(|d| format!("{} in {}", d.name, d.path))
            .collect();
        hits += usize::from(missing.is_empty());
        report.push(format!(
            "seed {seed:2} {:?}: {took:?} missing {missing:?}",
            project.language
        ));
    }
    eprintln!("{}\npacking: {hits} of 20", report.join("\n"));
    assert!(hits >= 18, "{hits} of 20\n{}", report.join("\n"));
}

#[test]
fn window_is_never_exceeded() {
    let projects: Vec<_> = (0..6).map(generate::project).collect();
    for project in &projects {
        for window in [0, 700, 6_000, 96 << 10] {
            let packed = pack(project, window);
            assert!(
                packed.text.len() <= window,
                "{window}: {}",
                packed.text.len()
            );
            let known = packed.shown.len() + packed.outlined.len() + packed.left_out;
            assert!(
                (298..=300).contains(&known),
                "every source is accounted for: {known}"
            );
        }
    }
}

#[test]
fn hidden_ignored_and_binary_files_are_not_shown() {
    let root = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &[u8]| {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    std::fs::write(
        outside.path().join("secret.py"),
        "def total():\n    return 'SECRET outside'\n",
    )
    .unwrap();
    std::os::unix::fs::symlink(
        outside.path().join("secret.py"),
        root.path().join("linked.py"),
    )
    .unwrap();
    std::os::unix::fs::symlink(outside.path(), root.path().join("folder")).unwrap();
    write(".hidden.py", b"def total():\n    return 'SECRET hidden'\n");
    write(".gitignore", b"private.py\n");
    write("private.py", b"def total():\n    return 'SECRET ignored'\n");
    write("binary.py", b"def total():\0\n    return 'SECRET binary'\n");
    write(
        "huge.py",
        "def total():\n    return 'SECRET huge'\n"
            .repeat(50_000)
            .as_bytes(),
    );
    write("total.py", b"def total():\n    return 1\n");
    let test = "from linked import total\nfrom folder.secret import total\nfrom private import total\nfrom total import total\n";
    let also = [
        "linked.py",
        "../x.py",
        "/etc/passwd",
        "private.py",
        "folder/secret.py",
    ]
    .map(PathBuf::from);
    let packed = pack::files(&PackRequest {
        co_changed: &[],
        redactor: &Redactor::patterns_only(),
        project: &pack::ProjectIndex::of(root.path()),
        ecosystem: Some(&languages::PYTHON),
        test_path: "test_total.py".as_ref(),
        test_source: test,
        failing_output: "private.py:1: error\nFile \"linked.py\", line 1\n/etc/passwd:1: no",
        failing: &[],
        caller_text: "private.py",
        extra_files: &also,
        window_bytes: WINDOW,
    });
    assert!(!packed.text.contains("SECRET"), "{}", packed.text);
    assert!(
        packed
            .text
            .contains("## total.py\n1| def total():\n2|     return 1\n"),
        "{}",
        packed.text
    );
    assert_eq!(
        packed.shown,
        ["test_total.py", "total.py"].map(PathBuf::from)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn odd_sources_are_packed(
        texts in prop::collection::vec(odd(), 1..6),
        test in odd(),
        said in odd(),
        window in 0usize..6_000,
    ) {
        let root = tempfile::tempdir().unwrap();
        for (language, ending) in [
            (&languages::RUST, "rs"), (&languages::PYTHON, "py"), (&languages::JAVASCRIPT, "ts"),
            (&languages::GO, "go"), (&languages::RUBY, "rb"), (&languages::ELIXIR, "ex"),
        ] {
            for (n, text) in texts.iter().enumerate() {
                let name = ["lib", "a", "b", "main", "index", "mod"][n];
                std::fs::write(root.path().join(format!("{name}.{ending}")), text).unwrap();
            }
            let test_path = PathBuf::from(format!("t_test.{ending}"));
            let request = PackRequest {
                co_changed: &[],
                redactor: &Redactor::patterns_only(),
                project: &pack::ProjectIndex::of(root.path()), ecosystem: Some(language), test_path: &test_path, test_source: &test,
                failing_output: &said, caller_text: &said, extra_files: &[PathBuf::from(format!("a.{ending}"))], window_bytes: window,
                failing: &[],
            };
            let packed = pack::files(&request);
            prop_assert!(packed.text.len() <= window);
            prop_assert_eq!(&packed, &pack::files(&request), "the same question has the same answer");
        }
    }
}

/// Pieces of six languages in no order, and anything else.
fn odd() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "use crate::a::{self, b::{C as D, *}};\n",
        "pub use self::a::*;\n",
        "use super::super::x;",
        "mod a {",
        "impl<T> X for Y<T> {",
        "fn f<'a>(",
        "from . import a\n",
        "from .a import (b,\n",
        "import a.b as c, d\n",
        "class A(",
        "def f(self):\n    ",
        "\"\"\"",
        "'''",
        "import { a as b } from './a'\n",
        "export * from './b';",
        "export default ",
        "module.exports = { a: b }\n",
        "require('./a')",
        "`${",
        "/[{/",
        "import (\n\"m/a\"\n",
        "func (t *T) F() {",
        "package a\n",
        "require_relative '../a'\n",
        "module A\n",
        "=begin\n",
        "end\n",
        "alias A.{B,\n",
        "defmodule A.B do\n",
        "defdelegate f(x), to: B\n",
        "%B{",
        "A.B.f(",
        "{",
        "}",
        "(",
        ")",
        "r#\"",
        "'",
        "\"",
        "é",
        "\u{202e}",
        "\n",
        "\r\n",
        "\t",
        "  ",
        "#",
        "//",
        "/*",
        "*/",
        "::",
        "a.rs:3:1 ",
        "lib.py:99999999999999999999",
        "cannot find function `f`",
        "\\",
    ]);
    let mixed = prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat());
    prop_oneof![6 => mixed, 1 => any::<String>()]
}

#[test]
fn files_without_a_grammar_and_asked_for_are_shown_as_text() {
    let root = tempfile::tempdir().unwrap();
    let test = "<?php\nclass CartTest { function testSum() { $cart = new Cart; } }\n";
    let notes: String = (0..400).map(|n| format!("note {n}\n")).collect();
    for (path, text) in [
        ("test/CartTest.php", test),
        (
            "lib/Cart.php",
            "<?php\nclass Cart { function sum() { return 0; } }\n",
        ),
        ("notes.txt", &notes),
        ("other.txt", "nobody asked\n"),
    ] {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let packed = pack::files(&PackRequest {
        co_changed: &[],
        redactor: &Redactor::patterns_only(),
        project: &pack::ProjectIndex::of(root.path()),
        ecosystem: None,
        test_path: "test/CartTest.php".as_ref(),
        test_source: test,
        failing_output: "",
        failing: &[],
        caller_text: "",
        extra_files: &[PathBuf::from("notes.txt")],
        window_bytes: WINDOW,
    });
    assert_eq!(shown_of(&packed.text, "notes.txt").len(), 400);
    let code = shown_of(&packed.text, "lib/Cart.php").join("\n");
    assert!(code.contains("function sum()"), "{}", packed.text);
    assert!(!packed.text.contains("nobody asked"));
}
