//! Contents that several projects have are kept once, and no project depends on another for its own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use supervisor_workspace::state::{StateDir, allocated_bytes};
use supervisor_workspace::{
    ActiveSnapshot, FaultPoint, Mode, RecoveryOutcome, Scope, SnapshotLimits, StateBounds,
    Workspace, find_garbage, recover, remove_garbage,
};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::crash::role_command;
use supervisor_test_support::process::say;
use supervisor_test_support::project::git;

const FILES: usize = 40;
const SIZE: usize = 20_000;

/// Clones of one repository, and one state directory.
struct Clones {
    dir: TempDir,
    state: StateDir,
}

impl Clones {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::at(dir.path().join("state")).unwrap();
        let this = Self { dir, state };
        let origin = this.path("origin");
        fs::create_dir(&origin).unwrap();
        let mut dice = fastrand::Rng::with_seed(5);
        for n in 0..FILES {
            let text: String = std::iter::repeat_with(|| dice.alphanumeric())
                .take(SIZE)
                .collect();
            fs::write(origin.join(format!("file-{n}.txt")), text).unwrap();
        }
        // What the script of the crash tests works on.
        fs::create_dir(origin.join("c")).unwrap();
        for name in ["a.txt", "b.txt", "c/d.txt", "user.txt"] {
            fs::write(origin.join(name), name).unwrap();
        }
        for arguments in [
            &["init", "-q"][..],
            &["add", "-A"],
            &["commit", "-q", "-m", "one"],
        ] {
            git(&origin, arguments);
        }
        this
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn clone(&self, name: &str) -> PathBuf {
        git(
            self.dir.path(),
            &["clone", "-q", "--no-hardlinks", "origin", name],
        );
        self.path(name)
    }

    async fn arm(&self, name: &str) -> ActiveSnapshot {
        let workspace =
            Workspace::open(&self.path(name), SnapshotLimits::default(), &self.state).unwrap();
        let stop = CancellationToken::new();
        workspace
            .lock(Mode::Exclusive, "a test", Duration::from_secs(20), &stop)
            .await
            .unwrap()
            .take_snapshot()
            .unwrap()
    }

    /// Everything that is at rest goes, as by a bound of no time at all.
    fn collect(&self) -> usize {
        let bounds = StateBounds {
            age: Duration::ZERO,
            bytes: 0,
        };
        remove_garbage(find_garbage(&self.state, bounds)).len()
    }

    fn packs(&self) -> Vec<PathBuf> {
        let (mut found, mut dirs) = (Vec::new(), vec![self.state.path().join("projects")]);
        while let Some(dir) = dirs.pop() {
            for path in fs::read_dir(dir)
                .into_iter()
                .flatten()
                .flatten()
                .map(|entry| entry.path())
            {
                if path.is_dir() {
                    dirs.push(path);
                } else if path
                    .file_name()
                    .unwrap()
                    .as_encoded_bytes()
                    .starts_with(b"pack.")
                {
                    found.push(path);
                }
            }
        }
        found
    }
}

/// Names and contents, the repository apart.
fn tree(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut found, mut dirs) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(dir) = dirs.pop() {
        for path in fs::read_dir(dir)
            .unwrap()
            .flatten()
            .map(|entry| entry.path())
        {
            match path.is_dir() {
                true if path.ends_with(".git") => {}
                true => dirs.push(path),
                false => drop(found.insert(
                    path.strip_prefix(root).unwrap().to_owned(),
                    fs::read(&path).unwrap(),
                )),
            }
        }
    }
    found
}

fn wreck(root: &Path) {
    for path in tree(root).keys() {
        fs::write(root.join(path), "wrecked").unwrap();
    }
}

#[tokio::test]
async fn clones_share_their_contents() {
    let clones = Clones::new();
    let count = 50;
    let (mut reserve, mut first) = (0, 0);
    for n in 0..count {
        let name = format!("clone-{n}");
        clones.clone(&name);
        clones.arm(&name).await.accept().unwrap();
        if n == 0 {
            reserve = allocated_bytes(&clones.state.path().join("reserve"));
            first = allocated_bytes(clones.state.path()) - reserve;
        }
    }
    let all = allocated_bytes(clones.state.path()) - reserve;
    say(&format!(
        "one clone takes {} KB, {count} take {} KB",
        first / 1000,
        all / 1000
    ));
    // Journal, lock, manifest and the repository's own index are each project's own.
    assert!(
        all < first + count * 150_000,
        "{all} bytes for {count} clones, {first} for one"
    );
    assert!(first > (FILES * SIZE) as u64);
}

#[tokio::test]
async fn shared_contents_survive_their_first_project() {
    let clones = Clones::new();
    clones.clone("first");
    clones.arm("first").await.accept().unwrap();
    let second = clones.clone("second");
    let before = tree(&second);
    let mut armed = clones.arm("second").await;
    assert!(
        clones.packs().len() > 2,
        "nothing is shared: {:?}",
        clones.packs()
    );
    assert!(clones.collect() > 0);
    let guard = armed.guard().unwrap();
    wreck(&second);
    drop(guard);
    let (lease, _) = armed.restore(Scope::Everything).unwrap();
    assert_eq!(tree(&second), before);
    drop(lease);

    // A third finds what the second holds, although the first is gone; and a change in the second is the second's own.
    fs::write(second.join("file-3.txt"), "changed by its user").unwrap();
    clones.arm("second").await.accept().unwrap();
    let third = clones.clone("third");
    let held = allocated_bytes(clones.state.path());
    let mut armed = clones.arm("third").await;
    assert!(
        allocated_bytes(clones.state.path()) < held + (FILES * SIZE / 4) as u64,
        "kept a second time"
    );
    assert!(fs::remove_dir_all(clones.path("second")).is_ok() && clones.collect() > 0);
    let guard = armed.guard().unwrap();
    wreck(&third);
    drop(guard);
    drop(armed.restore(Scope::Everything).unwrap());
    assert_eq!(tree(&third), before);
}

#[tokio::test]
async fn damaged_shared_contents_are_not_used() {
    let clones = Clones::new();
    clones.clone("first");
    clones.arm("first").await.accept().unwrap();
    let [pack] = clones.packs().try_into().unwrap();
    let length = fs::metadata(&pack).unwrap().len();
    fs::write(&pack, vec![7; usize::try_from(length).unwrap()]).unwrap();
    let second = clones.clone("second");
    let before = tree(&second);
    let mut armed = clones.arm("second").await;
    let guard = armed.guard().unwrap();
    wreck(&second);
    drop(guard);
    drop(armed.restore(Scope::Everything).unwrap());
    assert_eq!(tree(&second), before);
}

#[tokio::test]
#[cfg_attr(not(debug_assertions), ignore = "needs debug assertions")]
async fn crash_is_undone_from_shared_contents() {
    for point in FaultPoint::ALL
        .iter()
        .filter(|point| **point != FaultPoint::Accepted)
    {
        let clones = Clones::new();
        clones.clone("first");
        clones.arm("first").await.accept().unwrap();
        let project = clones.clone("project");
        let before = tree(&project);
        let status = role_command(clones.dir.path(), "script", Some(*point))
            .status()
            .unwrap();
        assert!(!status.success(), "{} was never reached", point.name());
        clones.collect();
        for recovery in recover(&clones.state).unwrap() {
            assert!(
                matches!(recovery.outcome, RecoveryOutcome::Restored(_)),
                "{}: {recovery:?}",
                point.name()
            );
        }
        let mut after = tree(&project);
        // The user's own, and what the tests of the script leave beside it.
        for path in ["user.txt", "by-product"] {
            after.remove(Path::new(path));
        }
        let expected: BTreeMap<_, _> = before
            .into_iter()
            .filter(|(path, _)| path != Path::new("user.txt"))
            .collect();
        assert_eq!(
            after.keys().collect::<Vec<_>>(),
            expected.keys().collect::<Vec<_>>(),
            "{}",
            point.name()
        );
        assert!(after == expected, "{}: contents differ", point.name());
    }
}
