//! Projects that can be worked on and brought back: open, lock, arm, change, restore.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use supervisor::state::StateDir;
use supervisor::workspace::{
    Armed, Caps, ChangeKind, ChangeSet, Lease, LockError, Mode, OpenError, Scope, Why, Workspace,
};
use tokio_util::sync::CancellationToken;

/// A project with a state directory beside it.
pub(crate) struct Bench {
    pub(crate) dir: tempfile::TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("project")).unwrap();
        Self { dir }
    }

    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let bench = Self::new();
        for (path, text) in files {
            bench.write(path, text);
        }
        bench
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    pub(crate) fn state(&self) -> StateDir {
        StateDir::at(self.dir.path().join("state")).unwrap()
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root().join(path)).unwrap()
    }

    pub(crate) fn open(&self) -> Workspace {
        Workspace::open(&self.root(), Caps::default(), &self.state()).unwrap()
    }

    pub(crate) async fn lease(&self) -> Lease {
        lease(&self.open()).await
    }

    pub(crate) async fn arm(&self) -> Armed {
        self.lease().await.arm().unwrap()
    }

    /// Runs git as a user would, without that user's own settings.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        git(&self.root(), arguments)
    }

    /// Everything that was kept aside, by its last component.
    pub(crate) fn kept(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut dirs = vec![self.dir.path().join("state/rejected")];
        while let Some(dir) = dirs.pop() {
            for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
                if entry.file_type().unwrap().is_dir() {
                    dirs.push(entry.path());
                } else {
                    found.push(entry.path());
                }
            }
        }
        found
    }
}

pub(crate) async fn lease(workspace: &Workspace) -> Lease {
    let stop = CancellationToken::new();
    workspace.lock(Mode::Exclusive, "a test", Duration::from_secs(20), &stop).await.unwrap()
}

pub(crate) fn git(dir: &Path, arguments: &[&str]) -> String {
    let output = std::process::Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"])
        .args(arguments)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn kinds(changes: &ChangeSet) -> Vec<(String, ChangeKind)> {
    changes.changes.iter().map(|c| (c.path.to_string_lossy().into_owned(), c.kind)).collect()
}

#[tokio::test]
async fn what_a_worker_did_is_seen_and_undone() {
    let bench = Bench::with(&[("a.txt", "one\n"), ("b/c.txt", "two\n"), ("gone.txt", "x")]);
    fs::create_dir(bench.root().join("empty")).unwrap();
    symlink("a.txt", bench.root().join("link")).unwrap();
    let armed = bench.arm().await;
    assert!(armed.changes().unwrap().is_empty());

    bench.write("a.txt", "ONE\n");
    bench.write("new/deep.txt", "n");
    fs::remove_file(bench.root().join("gone.txt")).unwrap();
    fs::remove_dir(bench.root().join("empty")).unwrap();
    fs::remove_file(bench.root().join("link")).unwrap();
    fs::create_dir(bench.root().join("link")).unwrap();
    fs::set_permissions(bench.root().join("b/c.txt"), fs::Permissions::from_mode(0o600)).unwrap();

    let changes = armed.changes().unwrap();
    assert_eq!(
        kinds(&changes),
        [
            ("a.txt".into(), ChangeKind::Modified),
            ("b/c.txt".into(), ChangeKind::ModeChanged { from: 0o644, to: 0o600 }),
            ("empty".into(), ChangeKind::Deleted),
            ("gone.txt".into(), ChangeKind::Deleted),
            ("link".into(), ChangeKind::TypeChanged),
            ("new".into(), ChangeKind::Added),
            ("new/deep.txt".into(), ChangeKind::Added),
        ]
    );
    let diff = armed.diff(10_000).unwrap();
    assert!(diff.contains("-one\n+ONE\n") && diff.contains("+++ b/new/deep.txt"), "{diff}");
    assert!(diff.contains("mode 0644 => 0600 b/c.txt"), "{diff}");

    let (lease, restored) = armed.restore(Scope::Everything).unwrap();
    assert_eq!(restored.others, []);
    assert_eq!((bench.read("a.txt").as_str(), bench.read("gone.txt").as_str()), ("one\n", "x"));
    assert!(bench.root().join("empty").is_dir() && !bench.root().join("new").exists());
    assert_eq!(fs::read_link(bench.root().join("link")).unwrap(), Path::new("a.txt"));
    let kept: Vec<_> = bench.kept().iter().map(|p| fs::read_to_string(p).unwrap()).collect();
    assert!(kept.contains(&"ONE\n".into()) && kept.contains(&"n".into()), "{kept:?}");
    assert!(lease.arm().unwrap().changes().unwrap().is_empty());
}
