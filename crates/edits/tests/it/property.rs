//! No shape can place an edit outside of the rules of the workspace: whatever path is written in whatever shape, nothing
//! outside of the project, no sealed file, nothing of git and nothing behind a link is touched.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use proptest::test_runner::{Config, TestRunner};
use supervisor_edits::{EditAnswer, EditProposal, ProjectFacts, read_edit_answer};
use supervisor_workspace::Scope;

use supervisor_test_support::project::TestProject;

const PATHS: &[&str] = &[
    "src/lib.rs",
    "../outside/o.txt",
    "src/../../outside/o.txt",
    "ROOT/../outside/o.txt",
    "OUTSIDE/o.txt",
    "link/o.txt",
    "link/new.txt",
    "file-link",
    ".git/config",
    ".GIT/hooks/pre-commit",
    "ROOT/.git/config",
    "demo/.git/config",
    "src\\..\\..\\outside\\o.txt",
    "/etc/passwd",
    "~/.bashrc",
    ".claude/settings.json",
    "tests/sealed.rs",
    "TESTS/SEALED.RS",
    "./tests/sealed.rs",
    "sealed.rs",
    "ROOT/tests/sealed.rs",
    "file:///etc/passwd",
    "b/../../outside/o.txt",
    "a/./../outside",
    "secret/x",
    "src/new.rs",
    "a/../tests/sealed.rs",
    "/outside/o.txt",
    "src/lib.rs/below",
    "",
    "/",
    ".",
    "..",
];

const SHAPES: &[fn(&str, &str) -> String] = &[
    |path, text| format!("{path}\n```\n{text}\n```\n"),
    |path, text| format!("```rust {path}\n{text}\n```\n"),
    |path, text| format!("```\n// {path}\n{text}\n```\n"),
    |path, text| format!("Here is `{path}`:\n```\n{text}\n```\n"),
    |path, text| format!("### {path}\n```\n{text}\n```\n"),
    |path, text| format!("{path}\n<<<<<<< SEARCH\n=======\n{text}\n>>>>>>> REPLACE\n"),
    |path, text| format!("{path}\n<<<<<<< SEARCH\no\n=======\n{text}\n>>>>>>> REPLACE\n"),
    |path, text| format!("--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+{text}\n"),
    |path, text| format!("--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-o\n+{text}\n"),
    |path, _| format!("--- a/{path}\n+++ /dev/null\n@@ -1 +0,0 @@\n-o\n"),
    |path, text| format!("*** Begin Patch\n*** Add File: {path}\n+{text}\n*** End Patch\n"),
    |path, _| format!("*** Begin Patch\n*** Delete File: {path}\n*** End Patch\n"),
    |path, _| format!("DELETE: {path}\n"),
    |path, text| {
        serde_json::json!({"edits": [{"path": path, "action": "create", "content": text}]})
            .to_string()
    },
    |path, _| serde_json::json!({"edits": [{"path": path, "action": "delete"}]}).to_string(),
    |path, text| serde_json::json!({path: text}).to_string(),
    |path, text| {
        serde_json::json!([{"function": {"arguments": serde_json::json!({"path": path, "content": text}).to_string()}}])
            .to_string()
    },
    |path, text| format!("<file path=\"{path}\">\n{text}\n</file>"),
    |path, text| {
        format!(
            "<function=write><parameter=path>{path}</parameter><parameter=content>{text}</parameter></function>"
        )
    },
];

struct Facts {
    root: PathBuf,
    paths: Vec<String>,
}

impl ProjectFacts for Facts {
    fn root(&self) -> &Path {
        &self.root
    }

    fn paths(&self) -> &[String] {
        &self.paths
    }

    fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.root.join(path)).ok()
    }

    fn is_protected(&self, path: &str) -> bool {
        path.starts_with("tests/")
    }

    fn editable(&self) -> &[String] {
        &self.paths[..0]
    }
}

/// Everything that must stay as it is, with its bytes.
fn must_stay(bench: &TestProject) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut seen = BTreeMap::new();
    let mut dirs = vec![
        bench.dir.path().join("outside"),
        bench.root().join(".git"),
        bench.root().join("tests"),
    ];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let path = entry.path();
            match entry.file_type().unwrap().is_dir() {
                true => dirs.push(path),
                false => drop(seen.insert(path.clone(), fs::read(&path).unwrap_or_default())),
            }
        }
    }
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn no_answer_places_an_edit_outside_the_rules() {
    let bench = TestProject::with(&[
        ("src/lib.rs", "o\n"),
        ("tests/sealed.rs", "o\n"),
        (".gitignore", "secret/\n"),
        ("secret/x", "o\n"),
    ]);
    let outside = bench.dir.path().join("outside");
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("o.txt"), "o\n").unwrap();
    fs::create_dir_all(bench.root().join(".git/hooks")).unwrap();
    fs::write(bench.root().join(".git/config"), "[core]\n").unwrap();
    symlink(&outside, bench.root().join("link")).unwrap();
    symlink(outside.join("o.txt"), bench.root().join("file-link")).unwrap();
    let before = must_stay(&bench);
    let mut armed = bench.arm().await;
    let paths = armed
        .files()
        .filter_map(|(path, _)| path.to_str().map(str::to_owned))
        .collect();
    let facts = Facts {
        root: bench.root().canonicalize().unwrap(),
        paths,
    };
    let sealed = |path: &Path| {
        if path.starts_with("tests") {
            Err("it is sealed".to_owned())
        } else {
            Ok(())
        }
    };
    let mut applied = 0;
    let cases = if std::env::var("SUPERVISOR_TEST_LONG").is_ok_and(|v| v == "1") {
        5_000
    } else {
        400
    };
    let mut runner = TestRunner::new(Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    });
    let strategy = (
        proptest::sample::select(SHAPES),
        proptest::sample::select(PATHS),
        "[a-z{}\"'`<>]{1,12}",
    );
    runner
        .run(&strategy, |(shape, path, text)| {
            let path = path
                .replace("ROOT", facts.root.to_str().unwrap())
                .replace("OUTSIDE", outside.to_str().unwrap());
            let Ok(EditAnswer {
                proposal: EditProposal::Edits(edits),
                ..
            }) = read_edit_answer(&shape(&path, &text), &facts)
            else {
                return Ok(());
            };
            // The strategy's closure is `Fn`; the armed workspace is used by one case at a time.
            APPLIES.with(|waiting| {
                waiting
                    .borrow_mut()
                    .push((format!("{path}: {text}"), edits));
            });
            Ok(())
        })
        .unwrap();
    for (what, edits) in APPLIES.with(|waiting| std::mem::take(&mut *waiting.borrow_mut())) {
        if armed.apply(&edits, &sealed).is_ok() {
            applied += 1;
        }
        assert_eq!(must_stay(&bench), before, "{what}: {edits:?}");
    }
    assert!(
        applied > 5,
        "the rules let nothing through at all, so nothing was shown"
    );
    armed.restore(Scope::Applied).unwrap();
    assert_eq!(bench.read("src/lib.rs"), "o\n");
}

thread_local! {
    static APPLIES: std::cell::RefCell<Vec<(String, Vec<supervisor_workspace::Edit>)>> = const { std::cell::RefCell::new(Vec::new()) };
}
