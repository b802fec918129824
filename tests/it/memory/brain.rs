//! Notes over stdio: written, found, edited by hand, deleted; one memory for all clones of a repository.

#![expect(
    clippy::needless_pass_by_value,
    reason = "`json!` reads best as an argument"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::mcp_session::{Session, Which, command};

/// A server with a folder of notes of its own.
struct Brain {
    home: tempfile::TempDir,
}

struct Client {
    session: Session,
    calls: usize,
}

impl Brain {
    fn new() -> Self {
        Self {
            home: tempfile::tempdir().unwrap(),
        }
    }

    fn notes(&self) -> PathBuf {
        self.home.path().join("notes")
    }

    fn client(&self) -> Client {
        self.client_with(&[])
    }

    fn client_with(&self, env: &[(&str, &str)]) -> Client {
        let mut command = command(Which::Real);
        command.envs(env.iter().copied());
        command
            .env("SUPERVISOR_STATE_DIR", self.home.path().join("state"))
            .env("SUPERVISOR_BRAIN__DIR", self.notes());
        command
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped());
        let mut process = command.spawn().unwrap();
        let (stdin, stdout) = (
            process.stdin.take().unwrap(),
            process.stdout.take().unwrap(),
        );
        let mut session = Session::with(process, Some(Box::new(stdin)), Box::new(stdout));
        session.initialize("2025-11-25");
        Client { session, calls: 0 }
    }
}

impl Client {
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.calls += 1;
        let id = format!("c{}", self.calls);
        self.session.call(id.clone(), tool, arguments.clone());
        self.session.reply(id)["result"]["structuredContent"].clone()
    }

    fn write(&mut self, arguments: Value) -> Value {
        self.call("brain_write", &arguments)
    }

    fn hits(&mut self, arguments: Value) -> Vec<Value> {
        let answer = self.call("brain_query", &arguments);
        assert_eq!(answer["status"], "pass", "{answer}");
        answer["details"]["hits"].as_array().unwrap().clone()
    }

    fn paths(&mut self, arguments: Value) -> Vec<String> {
        self.hits(arguments)
            .iter()
            .map(|hit| hit["path"].as_str().unwrap().to_owned())
            .collect()
    }
}

fn git(dir: &Path, words: &[&str]) {
    let done = Command::new("git")
        .args([
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(words)
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{words:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
}

fn repository(dir: &Path, text: &str) {
    fs::create_dir_all(dir).unwrap();
    fs::write(dir.join("a.txt"), text).unwrap();
    git(dir, &["init", "-q"]);
    git(dir, &["add", "."]);
    git(dir, &["commit", "-qm", text]);
}

#[test]
fn note_is_found_and_gone_when_deleted() {
    let brain = Brain::new();
    let mut client = brain.client();
    let written = client.write(
        json!({"content": "The linker is slow here.", "title": "Slow build", "tags": ["build"]}),
    );
    assert_eq!(
        (&written["status"], &written["details"]["path"]),
        (&json!("pass"), &json!("slow-build.md")),
        "{written}"
    );
    let hit = &client.hits(json!({"query": "linker"}))[0];
    assert_eq!(
        (&hit["path"], &hit["unproven"], &hit["kind"]),
        (&json!("slow-build.md"), &json!(true), &json!("fact"))
    );
    let path = brain.notes().join("slow-build.md");
    fs::write(
        &path,
        fs::read_to_string(&path)
            .unwrap()
            .replace("linker", "proc macro"),
    )
    .unwrap();
    assert_eq!(client.paths(json!({"query": "macro"})), ["slow-build.md"]);
    assert!(client.paths(json!({"query": "linker"})).is_empty());
    client.write(json!({"filename": "slow-build.md", "delete": true}));
    assert!(client.paths(json!({"query": "macro"})).is_empty());
}

#[test]
fn damaged_index_is_rebuilt() {
    let brain = Brain::new();
    let mut client = brain.client();
    for n in 0..20 {
        let content = format!(
            "Number {n} tells of caching, and of {} that no other tells of.",
            ["ants", "bees", "cats"][n % 3].repeat(n)
        );
        client.write(json!({"content": content, "title": format!("N{n}"), "overwrite": true}));
    }
    let before = client.hits(json!({"query": "caching", "limit": 50}));
    assert_eq!(before.len(), 20);
    for damage in [None, Some(""), Some("this is not a database"), Some("cut")] {
        for entry in fs::read_dir(brain.home.path().join("state/brain"))
            .unwrap()
            .flatten()
        {
            match damage {
                None => fs::remove_file(entry.path()).unwrap(),
                // The head is sound, and half of the pages are gone.
                Some("cut") => {
                    let file = fs::OpenOptions::new()
                        .write(true)
                        .open(entry.path())
                        .unwrap();
                    file.set_len(file.metadata().unwrap().len() / 2).unwrap();
                }
                Some(text) => fs::write(entry.path(), text).unwrap(),
            }
        }
        assert_eq!(
            brain
                .client()
                .hits(json!({"query": "caching", "limit": 50})),
            before,
            "{damage:?}"
        );
    }
}

#[test]
fn note_with_changed_proof_is_stale() {
    let brain = Brain::new();
    let project = tempfile::tempdir().unwrap();
    repository(&project.path().join("p"), "one");
    let root = project.path().join("p");
    let mut client = brain.client();
    let written = client.write(
        json!({"content": "a.txt says one", "title": "A", "project_root": root, "evidence": {"files": ["a.txt"]}}),
    );
    assert_eq!(written["status"], "pass", "{written}");
    let hit = client
        .hits(json!({"query": "says", "project_root": root}))
        .remove(0);
    assert!(hit["stale"].is_null() && hit["unproven"].is_null(), "{hit}");
    fs::write(root.join("a.txt"), "two").unwrap();
    let hit = client
        .hits(json!({"query": "says", "project_root": root}))
        .remove(0);
    assert_eq!(
        (&hit["stale"], &hit["why_stale"]),
        (&json!(true), &json!("`a.txt` has changed"))
    );
    let missing = client.write(
        json!({"content": "x y z", "project_root": root, "evidence": {"files": ["nowhere.txt"]}}),
    );
    assert_eq!(missing["status"], "error", "{missing}");
}

#[test]
fn clones_share_one_memory_and_namesakes_do_not() {
    let brain = Brain::new();
    let dir = tempfile::tempdir().unwrap();
    let (original, clone, other) = (
        dir.path().join("a/shop"),
        dir.path().join("b/elsewhere"),
        dir.path().join("c/shop"),
    );
    repository(&original, "first");
    git(
        dir.path(),
        &[
            "clone",
            "-q",
            original.to_str().unwrap(),
            clone.to_str().unwrap(),
        ],
    );
    repository(&other, "another beginning");
    let mut client = brain.client();
    client.write(json!({"content": "Orders are kept for ten years.", "title": "Orders", "project_root": original}));
    assert_eq!(
        client.paths(json!({"query": "orders", "project_root": clone})),
        ["orders.md"]
    );
    assert!(
        client
            .paths(json!({"query": "orders", "project_root": other}))
            .is_empty()
    );
    assert_eq!(
        client.paths(json!({"query": "orders", "project_root": other, "project": "all"})),
        ["orders.md"]
    );
}

#[test]
fn forbidden_note_is_refused_with_a_sentence() {
    let brain = Brain::new();
    let mut client = brain.client();
    client.write(
        json!({"content": "The cache is warmed by the first call of the day and by nothing else.", "title": "Cache"}),
    );
    let long = "x".repeat(300);
    fs::create_dir_all(brain.notes().join("sub.md")).unwrap();
    for (arguments, said) in [
        (json!({"content": ""}), "content is required"),
        (json!({"content": "x", "filename": "../x"}), "names no note"),
        (json!({"content": "x", "filename": long}), "names no note"),
        (
            json!({"content": "x", "filename": "a\u{0}b"}),
            "names no note",
        ),
        (
            json!({"content": "other", "filename": "cache"}),
            "overwrite",
        ),
        (
            json!({"content": "key sk-ant-api03-abcdefghijklmnop"}),
            "an Anthropic key (`sk-ant-…`)",
        ),
        (
            json!({"content": "x", "title": "AKIAABCDEFGHIJKLMNOP"}),
            "an AWS key",
        ),
        (
            json!({"content": "export DB_PASSWORD=hunter2hunter2"}),
            "behind its name",
        ),
        (json!({"content": "x", "filename": "sub"}), "cannot be used"),
        (
            json!({"content": "the cache is warmed by the first call of the day, and by nothing else!", "title": "B"}),
            "nearly the same",
        ),
        (json!({"filename": "none.md", "delete": true}), "no note"),
        (
            json!({"content": "y".repeat(2 << 20), "title": "Long"}),
            "too long",
        ),
    ] {
        let answer = client.write(arguments.clone());
        assert_ne!(answer["status"], "pass", "{answer}");
        assert!(
            answer["message"].as_str().unwrap().contains(said),
            "{said}: {answer}"
        );
    }
    assert_eq!(
        fs::read_dir(brain.notes())
            .unwrap()
            .flatten()
            .filter(|e| e.path().is_file() && e.path().extension().is_some())
            .count(),
        1
    );
}

#[test]
fn broken_front_matter_is_shown_and_not_rewritten() {
    let brain = Brain::new();
    fs::create_dir_all(brain.notes()).unwrap();
    let text = "---\ntitle: [broken\n---\nabout penguins\n";
    fs::write(brain.notes().join("b.md"), text).unwrap();
    let mut client = brain.client();
    let hit = client.hits(json!({"query": "penguins"})).remove(0);
    assert!(hit["warning"].is_string(), "{hit}");
    let answer = client
        .write(json!({"content": "new words entirely", "filename": "b.md", "overwrite": true}));
    assert_eq!(answer["status"], "error");
    assert_eq!(
        fs::read_to_string(brain.notes().join("b.md")).unwrap(),
        text
    );
}

#[test]
fn ordinary_answer_is_small_and_explains_on_request() {
    let brain = Brain::new();
    let mut client = brain.client();
    for n in 0..12 {
        let content = format!("Penguins {n} {}", format!("word{n} ").repeat(400));
        client.write(json!({"content": content, "title": format!("A rather long title about penguins, number {n}, {}", "t".repeat(80))}));
    }
    let answer = client.call("brain_query", &json!({"query": "penguins"}));
    assert!(
        answer.to_string().len() < 2_000,
        "{} bytes",
        answer.to_string().len()
    );
    let why = client
        .hits(json!({"query": "penguins", "explain": true, "limit": 1}))
        .remove(0);
    assert!(why["ranking"]["bm25"].is_number(), "{why}");
}

#[test]
fn killed_writers_lose_no_acknowledged_note() {
    let brain = Brain::new();
    // Where time is no matter, as many as the promise says.
    let each = if std::env::var("SUPERVISOR_TEST_LONG").is_ok_and(|v| v == "1") {
        200
    } else {
        15
    };
    std::thread::scope(|scope| {
        for n in 0..8 {
            let brain = &brain;
            scope.spawn(move || {
                let mut client = brain.client();
                for m in 0..each {
                    // Every other server is killed in the middle of its work, between two notes or during one.
                    if n % 2 == 0 && m == each / 2 {
                        client.session.call(
                            "lost",
                            "brain_write",
                            json!({"content": format!("lost{n} only perhaps"), "title": format!("Lost {n}")}),
                        );
                        client.session.process.kill().unwrap();
                        client = brain.client();
                    }
                    let content = format!("writer{n} {}", format!("w{n}x{m} ").repeat(20));
                    let answer = client.write(json!({"content": content, "title": format!("N {n} {m}")}));
                    assert_eq!(answer["status"], "pass", "{answer}");
                }
            });
        }
    });
    assert_eq!(
        brain.client().call(
            "brain_query",
            &json!({"query": "writer0 writer1 writer2 writer3 writer4 writer5 writer6 writer7", "limit": 50})
        )["details"]["hits"]
            .as_array()
            .unwrap()
            .len(),
        50
    );
    let files = fs::read_dir(brain.notes())
        .unwrap()
        .flatten()
        .filter(|e| e.path().extension().is_some_and(|x| x == "md"));
    let acknowledged = files.filter(|file| !file.file_name().to_string_lossy().starts_with("lost"));
    assert_eq!(acknowledged.count(), 8 * each);
}

#[test]
fn callers_log_entries_are_returned() {
    let brain = Brain::new();
    let mut client = brain.client();
    let empty = client.call(
        "session_log",
        &json!({"operation": "read", "session_id": "none-yet"}),
    );
    assert_eq!(
        (&empty["status"], &empty["details"]["total"]),
        (&json!("pass"), &json!(0)),
        "{empty}"
    );
    for (status, skill) in [("pass", "mine"), ("skip", "mine"), ("fail", "other")] {
        let entry = json!({"operation": "append", "session_id": "s-1", "skill": skill, "final_status": status, "entry": {"message": "m", "duration_ms": 5, "session_id": "forged"}});
        assert_eq!(client.call("session_log", &entry)["status"], "pass");
    }
    let read = client.call(
        "session_log",
        &json!({"operation": "read", "session_id": "s-1", "skill": "mine"}),
    );
    let statuses: Vec<_> = read["details"]["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["final_status"].clone())
        .collect();
    assert_eq!(statuses, ["pass", "skip"]);
    let log = fs::read_to_string(read["details"]["path"].as_str().unwrap()).unwrap();
    assert!(
        !log.contains("forged") && log.lines().all(|line| line.contains("\"attempts\":[]")),
        "{log}"
    );
    let listed = client.call("session_log", &json!({"operation": "list"}));
    assert_eq!(listed["details"]["sessions"], json!(["s-1"]));
    let stats = client.call("session_log", &json!({"operation": "stats"}));
    assert_eq!(stats["details"]["total"]["calls"], 3, "{stats}");
    for (arguments, said) in [
        (
            json!({"operation": "append", "session_id": "s-1", "skill": "x"}),
            "final_status",
        ),
        (
            json!({"operation": "append", "session_id": "../x", "skill": "x", "final_status": "pass"}),
            "session",
        ),
        (json!({"operation": "read"}), "session_id"),
        (
            json!({"operation": "read", "session_id": "s-1", "last": 0}),
            "last",
        ),
        (json!({"operation": "stats", "since": "yesterday"}), "since"),
    ] {
        let answer = client.call("session_log", &arguments);
        assert!(
            answer["status"] == "error" && answer["message"].as_str().unwrap().contains(said),
            "{said}: {answer}"
        );
    }
}

#[test]
fn failing_service_never_falls_back_silently() {
    use supervisor_test_support::loopback::{Do, Server};
    let service = Server::start(|path| match path {
        "/query" => Do::Json(
            200,
            json!({"results": [{"path": "a.md", "title": "A", "content": "text", "score": 2.0}]})
                .to_string(),
        ),
        "/write" => Do::Json(201, json!({"path": "a.md"}).to_string()),
        _ => Do::Close,
    });
    let brain = Brain::new();
    let mut client = brain.client_with(&[("INGEST_BASE_URL", &service.url)]);
    let written = client.write(json!({"content": "The cache is cold.", "filename": "a"}));
    assert_eq!(
        (&written["status"], &written["details"]["path"]),
        (&json!("pass"), &json!("a.md")),
        "{written}"
    );
    assert_eq!(client.hits(json!({"query": "cache"}))[0]["excerpt"], "text");
    assert_eq!(
        service
            .asked()
            .iter()
            .map(|asked| asked.path.as_str())
            .collect::<Vec<_>>(),
        ["/write", "/query"]
    );
    assert!(!brain.notes().exists(), "nothing is written here");
    let secret = client.write(json!({"content": "key sk-ant-api03-abcdefghijklmnop"}));
    assert_eq!(
        (&secret["status"], service.asked().len()),
        (&json!("error"), 2),
        "{secret}"
    );
    let gone = service.url.clone();
    drop(service);
    let mut client = brain.client_with(&[("INGEST_BASE_URL", &gone)]);
    for answer in [
        client.write(json!({"content": "x y"})),
        client.call("brain_query", &json!({"query": "x"})),
    ] {
        let said = answer["message"].as_str().unwrap();
        assert!(
            answer["status"] == "error"
                && said.contains("cannot be reached")
                && said.contains("ingest_url"),
            "{answer}"
        );
    }
    assert!(!brain.notes().exists());
}
