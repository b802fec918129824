//! The repository of a project that is worked on in place: what steers it comes back, where it stands is never moved.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use supervisor_workspace::state::StateDir;
use supervisor_workspace::{LockError, Mode, Scope, SnapshotLimits, Workspace};
use tokio_util::sync::CancellationToken;

use supervisor_test_support::project::{TestProject, git, kinds, lease};

#[tokio::test]
async fn commits_are_reported_and_never_undone() {
    let fixture = TestProject::with(&[("a.txt", "a\n")]);
    fixture.git(&["init", "-q"]);
    fixture.git(&["add", "-A"]);
    fixture.git(&["commit", "-q", "-m", "one"]);
    let armed = fixture.arm().await;
    // Touching a tracked file makes `git status` rewrite the index.
    let index = fs::read(fixture.root().join(".git/index")).unwrap();
    let later = std::time::SystemTime::now() + Duration::from_secs(5);
    fs::File::options()
        .append(true)
        .open(fixture.root().join("a.txt"))
        .unwrap()
        .set_modified(later)
        .unwrap();
    fixture.git(&["status"]);
    assert_ne!(
        index,
        fs::read(fixture.root().join(".git/index")).unwrap(),
        "git did not refresh its index"
    );
    assert_eq!(kinds(&armed.changes().unwrap()), []);

    fixture.write("b.txt", "b\n");
    fixture.git(&["add", "-A"]);
    fixture.git(&["commit", "-q", "-m", "sneaky"]);
    let seen = armed.changes().unwrap();
    assert_eq!(
        seen.changes
            .iter()
            .map(|c| c.path.display().to_string())
            .collect::<Vec<_>>(),
        ["b.txt"]
    );
    let others: Vec<_> = seen
        .others
        .iter()
        .map(|c| c.path.display().to_string())
        .collect();
    assert_eq!(
        others,
        [".git/index", ".git/refs/heads/main"],
        "named, and held against nobody"
    );
    let head = fixture.git(&["rev-parse", "HEAD"]);
    let (_, restored) = armed.restore(Scope::Everything).unwrap();
    assert_eq!(
        fixture.git(&["rev-parse", "HEAD"]),
        head,
        "it may be the user's"
    );
    assert!(!fixture.root().join("b.txt").exists());
    let others: Vec<_> = restored
        .others
        .iter()
        .map(|c| c.path.display().to_string())
        .collect();
    assert_eq!(others, [".git/index", ".git/refs/heads/main"]);
}

#[tokio::test]
async fn deleted_repository_is_restored_where_protected() {
    let fixture = TestProject::with(&[("a.txt", "a\n")]);
    fixture.git(&["init", "-q"]);
    fixture.git(&["add", "-A"]);
    fixture.git(&["commit", "-q", "-m", "one"]);
    let config = fixture.read(".git/config");
    let armed = fixture.arm().await;
    fs::remove_dir_all(fixture.root().join(".git")).unwrap();
    symlink("/nowhere", fixture.root().join(".git")).unwrap();
    assert!(!armed.changes().unwrap().is_empty());
    armed.restore(Scope::Everything).unwrap();
    assert_eq!(fixture.read(".git/config"), config);
}

#[tokio::test]
async fn renamed_repository_is_renamed_back() {
    let fixture = TestProject::with(&[("a.txt", "a\n")]);
    fixture.git(&["init", "-q"]);
    fixture.git(&["add", "-A"]);
    fixture.git(&["commit", "-q", "-m", "one"]);
    let armed = fixture.arm().await;
    fs::rename(
        fixture.root().join(".git"),
        fixture.root().join("elsewhere"),
    )
    .unwrap();
    armed.restore(Scope::Everything).unwrap();
    assert_eq!(fixture.git(&["status", "--porcelain"]), "");
    assert_eq!(fixture.git(&["log", "--format=%s"]), "one\n");
}

#[tokio::test]
async fn linked_worktree_restores_configuration_not_refs() {
    let fixture = TestProject::with(&[("a.txt", "a\n")]);
    fixture.git(&["init", "-q"]);
    fixture.git(&["add", "-A"]);
    fixture.git(&["commit", "-q", "-m", "one"]);
    let linked = fixture.dir.path().join("linked");
    fixture.git(&[
        "worktree",
        "add",
        "-q",
        linked.to_str().unwrap(),
        "-b",
        "side",
    ]);
    let armed =
        lease(&Workspace::open(&linked, SnapshotLimits::default(), &fixture.state()).unwrap())
            .await
            .take_snapshot()
            .unwrap();
    fs::write(linked.join("b.txt"), "b\n").unwrap();
    git(&linked, &["add", "-A"]);
    git(&linked, &["commit", "-q", "-m", "sneaky"]);
    git(&linked, &["config", "core.fsmonitor", "/bin/false"]);
    let after = git(
        &linked,
        &["-c", "core.fsmonitor=false", "show-ref", "--head"],
    );
    // Somebody works in the main tree meanwhile: its index is not ours to judge.
    fixture.write("c.txt", "c\n");
    fixture.git(&["-c", "core.fsmonitor=false", "add", "c.txt"]);
    armed.restore(Scope::Everything).unwrap();
    assert_eq!(git(&linked, &["show-ref", "--head"]), after);
    assert_eq!(git(&linked, &["status", "--porcelain"]), " D b.txt\n");
    assert_eq!(
        git(&linked, &["config", "--default", "unset", "core.fsmonitor"]),
        "unset\n"
    );
    assert_eq!(fixture.git(&["status", "--porcelain"]), "A  c.txt\n");
}

/// A project with one commit.
fn committed() -> TestProject {
    let fixture = TestProject::with(&[("a.txt", "a\n")]);
    for arguments in [
        &["init", "-q"][..],
        &["add", "-A"],
        &["commit", "-q", "-m", "one"],
    ] {
        fixture.git(arguments);
    }
    fixture
}

#[tokio::test]
async fn user_branches_and_refs_survive_a_restore() {
    let fixture = committed();
    let mut armed = fixture.arm().await;
    drop(armed.guard().unwrap());
    fixture.git(&["branch", "by-the-user"]);
    fixture.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
    fixture.git(&["checkout", "-q", "by-the-user"]);
    fs::write(fixture.root().join(".git/hooks/post-commit"), "planted").unwrap();
    fixture.write("a.txt", "by the agent\n");
    let (_, restored) = armed.restore(Scope::Everything).unwrap();
    assert_eq!(fixture.git(&["branch", "--show-current"]), "by-the-user\n");
    assert_eq!(
        fixture.git(&["rev-parse", "origin/main"]),
        fixture.git(&["rev-parse", "main"])
    );
    assert!(!fixture.root().join(".git/hooks/post-commit").exists());
    assert_eq!(fixture.read("a.txt"), "a\n");
    let told: Vec<_> = restored
        .others
        .iter()
        .map(|c| c.path.display().to_string())
        .collect();
    assert!(
        told.contains(&".git/refs/heads/by-the-user".into()),
        "what is left alone is named: {told:?}"
    );
}

#[tokio::test]
async fn repository_at_a_renamed_projects_path_is_untouched() {
    let fixture = committed();
    let mut armed = fixture.arm().await;
    drop(armed.guard().unwrap());
    fixture.write("a.txt", "by the agent\n");
    let moved = fixture.dir.path().join("moved");
    fs::rename(fixture.root(), &moved).unwrap();
    fs::create_dir(fixture.root()).unwrap();
    fixture.git(&["init", "-q"]);
    fixture.write("mine.txt", "m\n");
    fixture.git(&["add", "-A"]);
    fixture.git(&["commit", "-q", "-m", "another project"]);
    fs::write(fixture.root().join(".git/hooks/pre-commit"), "mine").unwrap();
    fixture.git(&["config", "mine.key", "mine"]);
    armed.restore(Scope::Everything).unwrap();
    assert_eq!(fixture.git(&["log", "--format=%s"]), "another project\n");
    assert_eq!(fixture.git(&["config", "mine.key"]), "mine\n");
    assert_eq!(fixture.read(".git/hooks/pre-commit"), "mine");
    assert_eq!(
        fs::read_to_string(moved.join("a.txt")).unwrap(),
        "a\n",
        "the directory itself is still ours"
    );
}

#[tokio::test]
async fn renamed_project_is_not_recreated() {
    let fixture = committed();
    let mut armed = fixture.arm().await;
    drop(armed.guard().unwrap());
    fs::remove_file(fixture.root().join(".git/config")).unwrap();
    fs::rename(fixture.root(), fixture.dir.path().join("moved")).unwrap();
    armed.restore(Scope::Everything).unwrap();
    assert!(!fixture.root().exists());
}

#[tokio::test]
async fn servers_with_different_states_exclude_each_other() {
    let fixture = TestProject::with(&[("a.txt", "a\n")]);
    let other = tempfile::tempdir().unwrap();
    let state = StateDir::at(other.path().join("state")).unwrap();
    let elsewhere = Workspace::open(&fixture.root(), SnapshotLimits::default(), &state).unwrap();
    let held = fixture.lease().await;
    let stop = CancellationToken::new();
    let refused = elsewhere
        .lock(Mode::Exclusive, "a test", Duration::from_millis(50), &stop)
        .await
        .unwrap_err();
    assert!(matches!(refused, LockError::OtherStateDir), "{refused}");
    drop(held);
    drop(lease(&elsewhere).await);
}
