//! Tests of the whole parser over a small project in memory. The table of formats in six languages
//! is an integration test.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::*;

/// A project in memory, at `/p/demo`.
pub(super) struct SampleProject {
    root: PathBuf,
    files: BTreeMap<String, String>,
    paths: Vec<String>,
    editable: Vec<String>,
    protected: Option<&'static str>,
}

impl SampleProject {
    pub(super) fn new(files: &[(&str, &str)]) -> Self {
        let files: BTreeMap<String, String> = files
            .iter()
            .map(|(p, t)| ((*p).to_owned(), (*t).to_owned()))
            .collect();
        let paths: Vec<String> = files.keys().cloned().collect();
        Self {
            root: PathBuf::from("/p/demo"),
            editable: paths.clone(),
            paths,
            files,
            protected: None,
        }
    }

    pub(super) fn protecting(mut self, below: &'static str) -> Self {
        self.protected = Some(below);
        self.editable.retain(|path| !path.starts_with(below));
        self
    }
}

impl ProjectFacts for SampleProject {
    fn root(&self) -> &Path {
        &self.root
    }

    fn paths(&self) -> &[String] {
        &self.paths
    }

    fn text(&self, path: &str) -> Option<String> {
        self.files.get(path).cloned()
    }

    fn is_protected(&self, path: &str) -> bool {
        self.protected.is_some_and(|below| path.starts_with(below))
    }

    fn editable(&self) -> &[String] {
        &self.editable
    }
}

const LIB: &str =
    "pub fn answer() -> u32 {\n    41\n}\n\npub fn twice(n: u32) -> u32 {\n    n * 2\n}\n";
const TEST: &str = "#[test]\nfn answer_is_42() {\n    assert_eq!(demo::answer(), 42);\n}\n";

fn project() -> SampleProject {
    SampleProject::new(&[
        ("src/lib.rs", LIB),
        ("tests/answer.rs", TEST),
        ("Cargo.toml", "[package]\n"),
    ])
    .protecting("tests/")
}

fn read(text: &str) -> Result<EditAnswer, EditAnswerError> {
    read_edit_answer(text, &project())
}

fn edits(text: &str) -> Vec<Edit> {
    match read(text) {
        Ok(EditAnswer {
            proposal: EditProposal::Edits(edits),
            ..
        }) => edits,
        other => panic!("{other:?}\n{text}"),
    }
}

fn error_for(text: &str) -> String {
    read(text).expect_err("unreadable").for_model()
}

#[test]
fn unchanged_file_is_not_an_edit() {
    let text = format!(
        "src/lib.rs\n```rust\npub fn answer() -> u32 {{ 42 }}\n```\n\ntests/answer.rs\n```rust\n{TEST}```\n"
    );
    assert_eq!(edits(&text).len(), 1);
    let only = format!("tests/answer.rs\n```rust\n{TEST}```\n");
    assert_eq!(read(&only).expect("read").proposal, EditProposal::Nothing);
}

#[test]
fn quoted_test_is_not_an_edit() {
    let quoted = "The test in `tests/answer.rs` says:\n```rust\n    assert_eq!(demo::answer(), 42);\n```\nSo:\nsrc/lib.rs\n```rust\npub fn answer() -> u32 { 42 }\n```\n";
    assert_eq!(edits(quoted).len(), 1);
    let changed = "tests/answer.rs\n```rust\n#[test]\nfn answer_is_42() {}\n```\n";
    assert_eq!(edits(changed)[0].path(), "tests/answer.rs");
}

#[test]
fn unclosed_block_is_skipped() {
    let cut = "src/lib.rs\n```rust\npub fn answer() -> u32 { 42 }\n```\nsrc/more.rs\n```rust\npub fn half";
    let answer = read(cut).expect("read");
    assert!(matches!(&answer.proposal, EditProposal::Edits(edits) if edits.len() == 1));
    assert_eq!(
        answer.left_out[0].to_string(),
        "the code block for `src/more.rs` that begins at line 6 has no end, so it was not applied; close it"
    );
    assert_eq!(
        error_for("src/lib.rs\n```rust\npub fn half"),
        "the code block for `src/lib.rs` that begins at line 2 has no end, so it was not applied; close it"
    );
}

#[test]
fn pathless_block_goes_to_the_only_candidate() {
    assert_eq!(
        edits("```rust\npub fn answer() -> u32 { 42 }\n```")[0].path(),
        "src/lib.rs"
    );
    let two = SampleProject::new(&[("src/a.rs", "fn a() {}\n"), ("src/b.rs", "fn b() {}\n")]);
    let refused = read_edit_answer("```rust\nfn c() {}\n```", &two).expect_err("two files");
    insta::assert_snapshot!(refused.for_model(), @"the code block names no file, and it could be meant for `src/a.rs` or `src/b.rs`; put the path of its file on the line before each code block");
    let alike =
        read_edit_answer("```rust\nfn a() {}\nfn c() {}\n```", &two).expect("like one of them");
    assert!(matches!(&alike.proposal, EditProposal::Edits(edits) if edits[0].path() == "src/a.rs"));
}

#[test]
fn directives_are_parsed() {
    let answer = read("DELETE: src/lib.rs\nNOTES: not needed any more\n").expect("read");
    assert_eq!(
        answer.proposal,
        EditProposal::Edits(vec![Edit::Delete {
            path: "src/lib.rs".into()
        }])
    );
    assert_eq!(answer.notes, "not needed any more");
    let need = read("NEED: src/roman.rs, fn parse\nNEED: search \"VIIII\"")
        .expect("read")
        .proposal;
    assert_eq!(
        need,
        EditProposal::FileRequest(vec![
            "src/roman.rs".into(),
            "fn parse".into(),
            "search \"VIIII".into()
        ])
    );
    let why = read("**CONTRADICTION:** the test wants 41\nand the spec 42")
        .expect("read")
        .proposal;
    assert_eq!(
        why,
        EditProposal::Contradiction("the test wants 41 and the spec 42".into())
    );
    assert_eq!(
        read(r#"{"need": {"files": ["a.rs"], "symbols": ["f"]}}"#)
            .expect("read")
            .proposal,
        EditProposal::FileRequest(vec!["a.rs".into(), "f".into()])
    );
}

#[test]
fn empty_contradiction_is_ignored() {
    let text = r#"{"edits": [{"path": "src/lib.rs", "action": "replace", "content": "x"}], "contradiction": "none"}"#;
    assert_eq!(edits(text).len(), 1);
    assert_eq!(
        read(r#"{"edits": [], "contradiction": "N/A"}"#)
            .expect("read")
            .proposal,
        EditProposal::Nothing
    );
}

#[test]
fn unreadable_answers_have_precise_errors() {
    let broken = "{\"edits\": [{\"path\": \"src/lib.rs\", \"content\": \"pub fn";
    let cases = [
        error_for(" \n"),
        error_for("<think>hm</think>"),
        error_for("I would change the constant to 42."),
        error_for(broken),
        error_for("{\"foo\": 1}"),
        error_for("src/lib.rs\n<<<<<<< SEARCH\n41\n>>>>>>> REPLACE\n"),
        error_for("src/lib.rs\n```\n<<<<<<< SEARCH\n41\n=======\n42\n```\n"),
        error_for("src/lib.rs\n```rust\n// ... existing code ...\nfn new() {}\n```\n"),
        error_for("src/lib.rs\n```rust\n\n```\n"),
        error_for(
            "{\"edits\": [{\"path\": \"src/lib.rs\", \"action\": \"change\", \"search\": \"41\"}]}",
        ),
        error_for("src/lib.rs\n```rust\nfn a() { \"\u{1b}[31m\" }\n```\n"),
        error_for("src/A.rs\n```rust\nfn a() {}\n```\nsrc/a.rs\n```rust\nfn b() {}\n```\n"),
        error_for(&"```\n".repeat(101)),
        error_for(&"x".repeat(MAX_ANSWER_BYTES + 1)),
    ];
    insta::assert_snapshot!(cases.join("\n"));
}

#[test]
fn last_edit_of_one_place_counts() {
    let twice = "src/lib.rs\n```rust\nfn draft() {}\n```\nBetter:\nsrc/lib.rs\n```rust\nfn last() {}\n```\n";
    assert_eq!(
        edits(twice),
        [Edit::Replace {
            path: "src/lib.rs".into(),
            contents: b"fn last() {}\n".to_vec()
        }]
    );
    let places = "src/lib.rs\n<<<<<<< SEARCH\n    41\n=======\n    40\n>>>>>>> REPLACE\nsrc/lib.rs\n<<<<<<< SEARCH\n    41\n=======\n    42\n>>>>>>> REPLACE\n";
    assert!(matches!(&edits(places)[..], [Edit::Change { replace, .. }] if replace == "    42\n"));
}

#[test]
fn repeated_lines_are_located_by_number() {
    let file = "fn a() {\n    one();\n}\nfn b() {\n    one();\n}\n";
    let facts = SampleProject::new(&[("src/x.rs", file)]);
    let diff =
        "```diff\n--- a/src/x.rs\n+++ b/src/x.rs\n@@ -5,1 +5,1 @@\n-    one();\n+    two();\n```\n";
    let Ok(EditAnswer {
        proposal: EditProposal::Edits(edits),
        ..
    }) = read_edit_answer(diff, &facts)
    else {
        panic!()
    };
    let [
        Edit::Change {
            search, replace, ..
        },
    ] = &edits[..]
    else {
        panic!("{edits:?}")
    };
    assert_eq!(file.matches(search.as_str()).count(), 1);
    assert_eq!(
        file.replace(search, replace),
        "fn a() {\n    one();\n}\nfn b() {\n    two();\n}\n"
    );
}

#[test]
fn line_endings_follow_the_file() {
    let facts = SampleProject::new(&[("a.py", "x = 1\r\ny = 2\r\n"), ("b.py", "x = 1\n")]);
    let read = |text| match read_edit_answer(text, &facts) {
        Ok(EditAnswer {
            proposal: EditProposal::Edits(mut edits),
            ..
        }) => match edits.remove(0) {
            Edit::Replace { contents, .. } => String::from_utf8(contents).expect("text"),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    assert_eq!(read("a.py\n```\nx = 3\n```\n"), "x = 3\r\n");
    assert_eq!(
        read(r#"{"path": "b.py", "content": "x = 1\r\ny = 3"}"#),
        "x = 1\ny = 3\n"
    );
}

#[test]
fn hostile_answers_end_quickly() {
    let many = |unit: &str| unit.repeat(100_000 / unit.len());
    for unit in [
        "```\n",
        "```rust\n",
        "<file path=\"a.rs\">\n",
        "{\"edits\":[",
        "<<<<<<< SEARCH\n",
        "<think>",
        "</think>\n",
        "@@ -1 +1 @@\n+x\n",
        "--- a/x\n+++ b/x\n",
        "src/lib.rs\n```\nx\n```\n",
        "{\"path\":\"a.rs\",\"content\":\"x\"}",
        "DELETE: a.rs\n",
        "~~~\n```\n",
        "\"",
        "<a>",
        "NEED: x\n",
        "\u{0}\u{1b}[",
    ] {
        let started = std::time::Instant::now();
        let _ = read(&many(unit));
        // Quadratic parsing would take minutes; the limit leaves room for a slow machine.
        assert!(
            started.elapsed().as_secs() < 120,
            "{unit:?} took {:?}",
            started.elapsed()
        );
    }
    let edits: String = (0..10_000)
        .map(|n| format!("f{n}.rs\n```rust\nfn a() {{}}\n```\n"))
        .collect();
    assert!(
        error_for(&edits).contains("50 are the most"),
        "{}",
        error_for(&edits)
    );
    let edits: Vec<_> = (0..10_000)
        .map(|n| serde_json::json!({"path": format!("f{n}.rs"), "content": "x"}))
        .collect();
    assert!(
        error_for(&serde_json::json!({"edits": edits}).to_string()).contains("50 are the most")
    );
}

const MARKS: &[&str] = &[
    "```",
    "```rust",
    "\n",
    "src/lib.rs",
    "<<<<<<< SEARCH",
    "=======",
    ">>>>>>> REPLACE",
    "--- a/src/lib.rs",
    "+++ b/src/lib.rs",
    "@@ -1,2 +1,2 @@",
    "+x",
    "-    41",
    "{\"edits\": [",
    "{\"path\": \"src/lib.rs\"",
    "\"content\": \"",
    "}",
    "]",
    "\"",
    "'",
    ",",
    "<think>",
    "</think>",
    "<file path=\"src/lib.rs\">",
    "</file>",
    "<tool_call>",
    "DELETE: src/lib.rs",
    "CONTRADICTION: x",
    "...",
    "1| fn",
    "é",
    "    41",
    "\\",
    "\u{0}",
    "*** Begin Patch",
    "*** Update File: src/lib.rs",
    "// src/lib.rs",
    "{",
    "[",
    "\"\"\"",
];

proptest! {
    #[test]
    fn mixed_markers_do_not_panic(parts in proptest::collection::vec(proptest::sample::select(MARKS), 0..40)) {
        let _ = read(&parts.concat());
        let _ = read(&parts.join("\n"));
    }
}
