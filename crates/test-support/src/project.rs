//! A project directory with a state directory beside it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use supervisor_workspace::state::StateDir;
use supervisor_workspace::{
    ActiveSnapshot, ChangeKind, ChangeSet, Lease, Mode, SnapshotLimits, Workspace,
};
use tokio_util::sync::CancellationToken;

/// A project with a state directory beside it.
pub struct TestProject {
    pub dir: tempfile::TempDir,
}

impl TestProject {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("project")).unwrap();
        Self { dir }
    }

    /// In memory where that is possible: thousands of cases would wait for the disk most of the time.
    pub fn quick() -> Self {
        let Ok(dir) = tempfile::tempdir_in("/dev/shm") else {
            return Self::new();
        };
        fs::create_dir(dir.path().join("project")).unwrap();
        Self { dir }
    }

    pub fn with(files: &[(&str, &str)]) -> Self {
        let project = Self::new();
        for (path, text) in files {
            project.write(path, text);
        }
        project
    }

    pub fn root(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    pub fn state(&self) -> StateDir {
        StateDir::at(self.dir.path().join("state")).unwrap()
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root().join(path)).unwrap()
    }

    pub fn open(&self) -> Workspace {
        Workspace::open(&self.root(), SnapshotLimits::default(), &self.state()).unwrap()
    }

    pub async fn lease(&self) -> Lease {
        lease(&self.open()).await
    }

    pub async fn arm(&self) -> ActiveSnapshot {
        self.lease().await.take_snapshot().unwrap()
    }

    /// Runs git as a user would, without that user's own settings.
    pub fn git(&self, arguments: &[&str]) -> String {
        git(&self.root(), arguments)
    }

    /// Everything that was kept aside, by its last component.
    pub fn kept(&self) -> Vec<PathBuf> {
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

pub async fn lease(workspace: &Workspace) -> Lease {
    let stop = CancellationToken::new();
    workspace
        .lock(Mode::Exclusive, "a test", Duration::from_secs(20), &stop)
        .await
        .unwrap()
}

pub fn git(dir: &Path, arguments: &[&str]) -> String {
    let output = std::process::Command::new("git")
        .args([
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@t",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(arguments)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn kinds(changes: &ChangeSet) -> Vec<(String, ChangeKind)> {
    changes
        .changes
        .iter()
        .map(|c| (c.path.to_string_lossy().into_owned(), c.kind))
        .collect()
}
