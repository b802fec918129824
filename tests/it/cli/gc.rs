//! The state directory stays within bounds: one reserve for all projects, and what was not used for long goes.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, SystemTime};

use supervisor_workspace::state::{StateDir, allocated_bytes};
use supervisor_workspace::{Lease, Mode, SnapshotLimits, Workspace};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

struct Place {
    dir: TempDir,
    state: StateDir,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::at(dir.path().join("state")).unwrap();
        Self { dir, state }
    }

    fn workspace(&self, name: &str) -> Workspace {
        let project = self.dir.path().join(name);
        fs::create_dir_all(&project).unwrap();
        fs::write(project.join("a.txt"), name.repeat(1_000)).unwrap();
        Workspace::open(&project, SnapshotLimits::default(), &self.state).unwrap()
    }

    async fn lease(&self, name: &str) -> Lease {
        let stop = CancellationToken::new();
        self.workspace(name)
            .lock(Mode::Exclusive, "a test", Duration::ZERO, &stop)
            .await
            .unwrap()
    }

    /// A project in which a call was accepted, `days` ago. Gives its directory in the state directory.
    async fn used(&self, name: &str, days: u32) -> PathBuf {
        let before = self.projects();
        self.lease(name)
            .await
            .take_snapshot()
            .unwrap()
            .accept()
            .unwrap();
        let made = self
            .projects()
            .into_iter()
            .find(|path| !before.contains(path))
            .unwrap();
        age(&made, days);
        made
    }

    fn projects(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.state.path().join("projects"))
            .into_iter()
            .flatten()
            .flatten();
        entries.map(|entry| entry.path()).collect()
    }

    fn gc(&self, words: &[&str], settings: &str) -> Output {
        let file = self.dir.path().join("models.toml");
        fs::write(&file, settings).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_supervisor"));
        command
            .env("SUPERVISOR_STATE_DIR", self.state.path())
            .arg("--config")
            .arg(file)
            .arg("gc")
            .args(words);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        output
    }
}

/// As if it had been written so many days ago.
fn age(path: &Path, days: u32) {
    let then = SystemTime::now() - DAY * days;
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap().flatten() {
            age(&entry.path(), days);
        }
    }
    File::open(path).unwrap().set_modified(then).unwrap();
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[tokio::test]
async fn fifty_small_projects_share_one_reserve() {
    let place = Place::new();
    for n in 0..50 {
        place.used(&format!("project-{n}"), 0).await;
    }
    let held = allocated_bytes(place.state.path());
    assert!(
        held < 12_000_000,
        "{held} bytes for fifty projects of a few kilobytes"
    );
}

#[tokio::test]
async fn unused_state_is_removed_and_needed_state_stays() {
    let place = Place::new();
    let (old, recent) = (place.used("old", 40).await, place.used("recent", 10).await);
    // Killed in mid-call: its journal is open, and the snapshot is all that can bring the project back.
    let open = place.used("open", 40).await;
    std::mem::forget(place.lease("open").await.take_snapshot().unwrap());
    age(&open, 40);
    // At work now, however long its last word is ago.
    let at_work = place.used("at-work", 40).await;
    let held = place.lease("at-work").await;
    age(&at_work, 40);
    for (name, days) in [
        ("rejected/six", 6),
        ("rejected/eight", 8),
        ("undo/aa.json", 40),
        ("undo/bb.json", 1),
    ] {
        let path = place.state.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if name.starts_with("undo") {
            fs::write(&path, "{}").unwrap();
        } else {
            fs::create_dir(&path).unwrap();
        }
        age(&path, days);
    }
    let log = place.state.path().join("sessions/s.jsonl");
    fs::create_dir_all(log.parent().unwrap()).unwrap();
    fs::write(&log, "{}\n").unwrap();
    age(&log, 400);

    let dry = place.gc(&["--dry-run"], "");
    assert!(said(&dry).contains("would free"), "{}", said(&dry));
    assert!(old.exists(), "a dry run removes nothing");
    let output = place.gc(&[], "");
    assert!(
        said(&output).contains("1 × project at rest"),
        "{}",
        said(&output)
    );
    let there = |name: &str| place.state.path().join(name).exists();
    assert_eq!(
        (
            old.exists(),
            recent.exists(),
            open.exists(),
            at_work.exists()
        ),
        (false, true, true, true),
        "{}",
        said(&output)
    );
    assert_eq!(
        [
            there("rejected/six"),
            there("rejected/eight"),
            there("undo/aa.json"),
            there("undo/bb.json"),
            log.exists()
        ],
        [true, false, false, true, true]
    );
    drop(held);
    let again = place.gc(&[], "");
    assert!(!at_work.exists() && open.exists(), "{}", said(&again));
    assert!(said(&place.gc(&[], "")).contains("nothing to remove"));
    // A project that was forgotten is worked on like a new one.
    place.used("old", 0).await;
}

#[tokio::test]
async fn over_the_limit_the_least_recently_used_goes() {
    let place = Place::new();
    let mut made = Vec::new();
    for (name, days) in [("a", 3), ("b", 9), ("c", 0), ("d", 6)] {
        let project = place.dir.path().join(name);
        fs::create_dir_all(&project).unwrap();
        // Bytes that nothing can make smaller.
        let bytes: Vec<u8> = (0..900_000_u32)
            .flat_map(|n| (n.wrapping_mul(2_654_435_761)).to_le_bytes())
            .collect();
        fs::write(project.join("large.bin"), bytes).unwrap();
        made.push(place.used(name, days).await);
    }
    place.gc(&[], "[state]\nmb = 8\n");
    let left: Vec<bool> = made.iter().map(|path| path.exists()).collect();
    assert_eq!(
        left,
        [true, false, true, false],
        "the oldest two of four projects with 3.6 MB each go"
    );
    place.gc(&[], "[state]\nmb = 1\n");
    assert!(
        !made[0].exists() && made[2].exists(),
        "what was used just now stays"
    );
}
