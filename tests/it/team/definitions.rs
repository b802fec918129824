//! Pipelines of one's own: a checkpoint written in TOML, run from the shell.

use std::fs;
use std::path::Path;
use std::process::Output;

use super::session::{Layout, Pipeline};
use crate::support::mcp_session::{Which, command};

const STAGES: &str = r#"
id = "CHECKPOINT-100"
name = "notes, code and tests agree"

[sources]
notes = ["notes/*.md"]
code = ["src/*.rs"]
figures = ["figures.json"]

[[check]]
id = "notes_there"
kind = "artifacts"
group = "process"
critical = true
sources = ["notes", "code"]
min_bytes = 10
front_matter = ["owner"]

[[check]]
id = "ideas_built"
kind = "trace"
from = { source = "notes", pattern = 'IDEA-\d+' }
to = [{ source = "code", pattern = 'IDEA-\d+' }]

[[check]]
id = "coverage"
kind = "numbers"
source = "figures"
pointer = "/coverage"
min = 80

[[check]]
id = "tests"
kind = "command"
critical = true
run = ["cargo", "test", "--offline", "--quiet"]
"#;

fn check(dir: &Path, words: &[&str]) -> Output {
    let state = tempfile::tempdir().unwrap();
    let mut command = command(Which::Real);
    command
        .env("SUPERVISOR_STATE_DIR", state.path())
        .env("HOME", std::env::var_os("HOME").unwrap_or_default());
    command
        .arg("check")
        .args(words)
        .current_dir(dir)
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap()
}

/// A little crate with notes about it.
fn project() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write(
        "Cargo.toml",
        "[package]\nname = \"little\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n",
    );
    write(
        "src/lib.rs",
        "// IDEA-1\npub fn one() -> u8 { 2 }\n#[test]\nfn one_is_one() { assert_eq!(one(), 1) }\n",
    );
    write(
        "notes/first.md",
        "---\nowner: Ada\n---\n# First\n\nIDEA-1: a function.\n",
    );
    write("figures.json", "{\"coverage\": 91.5}\n");
    write("stages.toml", STAGES);
    dir
}

#[test]
fn own_pipeline_blocks_until_command_passes() {
    let dir = project();
    let blocked = check(dir.path(), &["stages.toml"]);
    let text = String::from_utf8_lossy(&blocked.stdout);
    assert_eq!(
        blocked.status.code(),
        Some(1),
        "{text}{}",
        String::from_utf8_lossy(&blocked.stderr)
    );
    assert!(
        text.contains("cargo test") && text.contains("block"),
        "{text}"
    );
    fs::write(
        dir.path().join("src/lib.rs"),
        "// IDEA-1\npub fn one() -> u8 { 1 }\n#[test]\nfn one_is_one() { assert_eq!(one(), 1) }\n",
    )
    .unwrap();
    let passed = check(dir.path(), &["stages.toml"]);
    assert_eq!(
        passed.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&passed.stdout)
    );
}

/// One definition a stage, and nothing else: no line of code knows this pipeline.
const THREE: [(&str, &str); 3] = [
    (
        "1-notes.toml",
        "id = \"CHECKPOINT-201\"\nname = \"ideas are noted\"\n[sources]\nnotes = [\"notes/*.md\"]\n[[check]]\nid = \"notes_there\"\nkind = \"artifacts\"\ncritical = true\nsources = [\"notes\"]\nfront_matter = [\"owner\"]\n",
    ),
    (
        "2-code.toml",
        "id = \"CHECKPOINT-202\"\nname = \"ideas are built\"\n[sources]\nnotes = [\"notes/*.md\"]\ncode = [\"src/*.rs\"]\n[[check]]\nid = \"ideas_built\"\nkind = \"trace\"\ncritical = true\nfrom = { source = \"notes\", pattern = 'IDEA-\\d+' }\nto = [{ source = \"code\", pattern = 'IDEA-\\d+' }]\n",
    ),
    (
        "3-tests.toml",
        "id = \"CHECKPOINT-203\"\nname = \"what is built works\"\n[[check]]\nid = \"tests\"\nkind = \"command\"\ncritical = true\nrun = [\"cargo\", \"test\", \"--offline\", \"--quiet\"]\n",
    ),
];

#[test]
fn three_toml_stages_block_until_command_passes() {
    let dir = project();
    for (file, text) in THREE {
        fs::write(dir.path().join(file), text).unwrap();
    }
    let codes = || THREE.map(|(file, _)| check(dir.path(), &[file]).status.code());
    assert_eq!(codes(), [Some(0), Some(0), Some(1)]);
    let code = fs::read_to_string(dir.path().join("src/lib.rs")).unwrap();
    fs::write(
        dir.path().join("src/lib.rs"),
        code.replace("u8 { 2 }", "u8 { 1 }"),
    )
    .unwrap();
    assert_eq!(codes(), [Some(0), Some(0), Some(0)]);
    fs::write(
        dir.path().join("notes/second.md"),
        "---\nowner: Bo\n---\nIDEA-2: not yet.\n",
    )
    .unwrap();
    assert_eq!(codes(), [Some(0), Some(1), Some(0)]);
}

#[test]
fn each_kind_of_check_can_fail() {
    for (path, text, said) in [
        (
            "notes/first.md",
            "---\nowner: A\n---\nIDEA-1 and IDEA-2\n",
            "IDEA-2",
        ),
        ("notes/first.md", "# no owner\nIDEA-1\n", "owner"),
        ("figures.json", "{\"coverage\": 12}", "outside 80"),
    ] {
        let dir = project();
        fs::write(dir.path().join(path), text).unwrap();
        let output = check(dir.path(), &["stages.toml", "--json"]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains(said), "{said}: {text}");
    }
}

#[test]
fn broken_definition_is_reported_with_its_file() {
    let dir = project();
    for (text, said) in [
        ("id = 1", "stages.toml"),
        ("nonsense", "stages.toml"),
        (
            "id=\"X\"\nname=\"x\"\n[[check]]\nid=\"a\"\nkind=\"code\"\nname=\"no\"",
            "no code called `no`",
        ),
    ] {
        fs::write(dir.path().join("stages.toml"), text).unwrap();
        let output = check(dir.path(), &["stages.toml"]);
        assert_eq!(output.status.code(), Some(2));
        assert!(
            String::from_utf8_lossy(&output.stderr).contains(said),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let missing = check(dir.path(), &["nowhere.toml"]);
    assert_eq!(missing.status.code(), Some(2));
}

#[test]
fn definition_in_the_project_runs_no_command() {
    let pipeline = Pipeline::sound(Layout::Older);
    let definition = "id = \"CHECKPOINT-001\"\nname = \"mine\"\n[[check]]\nid = \"run\"\nkind = \"command\"\ncritical = true\nrun = [\"touch\", \"ran\"]\n";
    fs::write(pipeline.root().join("mine.toml"), definition).unwrap();
    let mut client = pipeline.client();
    let ready = client.supervise("init", serde_json::json!({"role_spec": "mine.toml"}));
    assert_eq!(ready["status"], "pass", "{ready}");
    let answer = client.checkpoint("CHECKPOINT-001");
    assert!(answer.to_string().contains("was not run"), "{answer}");
    assert!(!pipeline.root().join("ran").exists());
}

#[test]
fn checkpoint_can_require_a_proven_change() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let write = |path: &str, text: &str| {
        fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        fs::write(root.join(path), text).unwrap();
    };
    write(
        "Cargo.toml",
        "[package]\nname = \"demo\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n",
    );
    write(".gitignore", "target\nCargo.lock\n");
    write("src/lib.rs", "pub fn one() -> i32 {\n    1\n}\n");
    write(
        "done.toml",
        "id = \"CHECKPOINT-301\"\nname = \"what was built is proven\"\n[[check]]\nid = \"proof\"\nkind = \"proven\"\ncritical = true\n",
    );
    supervisor_test_support::project::git(root, &["init", "-q"]);
    supervisor_test_support::project::git(root, &["add", "-A"]);
    supervisor_test_support::project::git(root, &["commit", "-qm", "Base"]);
    write(
        "src/lib.rs",
        "pub fn one() -> i32 {\n    1\n}\n\npub fn two() -> i32 {\n    2\n}\n",
    );
    let without_test = check(root, &["done.toml"]);
    assert_eq!(without_test.status.code(), Some(1), "{without_test:?}");
    write(
        "tests/two.rs",
        "#[test]\nfn two() {\n    assert_eq!(demo::two(), 2);\n}\n",
    );
    let with_test = check(root, &["done.toml"]);
    assert_eq!(with_test.status.code(), Some(0), "{with_test:?}");
}
