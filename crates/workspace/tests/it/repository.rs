//! The repository of a project that is worked on in place: what steers it comes back, where it stands is never moved.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use supervisor_workspace::state::StateDir;
use supervisor_workspace::{LockError, Mode, Scope, SnapshotLimits, Workspace};
use tokio_util::sync::CancellationToken;

use supervisor_test_support::project::{TestProject, git, kinds, lease};

#[tokio::test]
async fn what_git_itself_refreshes_is_no_change_and_a_commit_is_reported_but_never_moved_back() {
    let bench = TestProject::with(&[("a.txt", "a\n")]);
    bench.git(&["init", "-q"]);
    bench.git(&["add", "-A"]);
    bench.git(&["commit", "-q", "-m", "one"]);
    let armed = bench.arm().await;
    // Touching a tracked file makes `git status` rewrite the index.
    let index = fs::read(bench.root().join(".git/index")).unwrap();
    let later = std::time::SystemTime::now() + Duration::from_secs(5);
    fs::File::options()
        .append(true)
        .open(bench.root().join("a.txt"))
        .unwrap()
        .set_modified(later)
        .unwrap();
    bench.git(&["status"]);
    assert_ne!(
        index,
        fs::read(bench.root().join(".git/index")).unwrap(),
        "git did not refresh its index"
    );
    assert_eq!(kinds(&armed.changes().unwrap()), []);

    bench.write("b.txt", "b\n");
    bench.git(&["add", "-A"]);
    bench.git(&["commit", "-q", "-m", "sneaky"]);
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
    let head = bench.git(&["rev-parse", "HEAD"]);
    let (_, restored) = armed.restore(Scope::Everything).unwrap();
    assert_eq!(
        bench.git(&["rev-parse", "HEAD"]),
        head,
        "it may be the user's"
    );
    assert!(!bench.root().join("b.txt").exists());
    let others: Vec<_> = restored
        .others
        .iter()
        .map(|c| c.path.display().to_string())
        .collect();
    assert_eq!(others, [".git/index", ".git/refs/heads/main"]);
}

#[tokio::test]
async fn a_deleted_repository_comes_back_as_far_as_it_was_protected() {
    let bench = TestProject::with(&[("a.txt", "a\n")]);
    bench.git(&["init", "-q"]);
    bench.git(&["add", "-A"]);
    bench.git(&["commit", "-q", "-m", "one"]);
    let config = bench.read(".git/config");
    let armed = bench.arm().await;
    fs::remove_dir_all(bench.root().join(".git")).unwrap();
    symlink("/nowhere", bench.root().join(".git")).unwrap();
    assert!(!armed.changes().unwrap().is_empty());
    armed.restore(Scope::Everything).unwrap();
    assert_eq!(bench.read(".git/config"), config);
}

#[tokio::test]
async fn a_renamed_repository_gets_its_name_back_with_all_its_objects() {
    let bench = TestProject::with(&[("a.txt", "a\n")]);
    bench.git(&["init", "-q"]);
    bench.git(&["add", "-A"]);
    bench.git(&["commit", "-q", "-m", "one"]);
    let armed = bench.arm().await;
    fs::rename(bench.root().join(".git"), bench.root().join("elsewhere")).unwrap();
    armed.restore(Scope::Everything).unwrap();
    assert_eq!(bench.git(&["status", "--porcelain"]), "");
    assert_eq!(bench.git(&["log", "--format=%s"]), "one\n");
}

#[tokio::test]
async fn in_a_linked_working_tree_the_shared_configuration_comes_back_and_no_ref_is_moved() {
    let bench = TestProject::with(&[("a.txt", "a\n")]);
    bench.git(&["init", "-q"]);
    bench.git(&["add", "-A"]);
    bench.git(&["commit", "-q", "-m", "one"]);
    let linked = bench.dir.path().join("linked");
    bench.git(&[
        "worktree",
        "add",
        "-q",
        linked.to_str().unwrap(),
        "-b",
        "side",
    ]);
    let armed =
        lease(&Workspace::open(&linked, SnapshotLimits::default(), &bench.state()).unwrap())
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
    bench.write("c.txt", "c\n");
    bench.git(&["-c", "core.fsmonitor=false", "add", "c.txt"]);
    armed.restore(Scope::Everything).unwrap();
    assert_eq!(git(&linked, &["show-ref", "--head"]), after);
    assert_eq!(git(&linked, &["status", "--porcelain"]), " D b.txt\n");
    assert_eq!(
        git(&linked, &["config", "--default", "unset", "core.fsmonitor"]),
        "unset\n"
    );
    assert_eq!(bench.git(&["status", "--porcelain"]), "A  c.txt\n");
}

/// A project with one commit.
fn committed() -> TestProject {
    let bench = TestProject::with(&[("a.txt", "a\n")]);
    for arguments in [
        &["init", "-q"][..],
        &["add", "-A"],
        &["commit", "-q", "-m", "one"],
    ] {
        bench.git(arguments);
    }
    bench
}

#[tokio::test]
async fn branches_and_fetched_refs_of_the_user_survive_a_rejected_agent() {
    let bench = committed();
    let mut armed = bench.arm().await;
    drop(armed.guard().unwrap());
    bench.git(&["branch", "by-the-user"]);
    bench.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
    bench.git(&["checkout", "-q", "by-the-user"]);
    fs::write(bench.root().join(".git/hooks/post-commit"), "planted").unwrap();
    bench.write("a.txt", "by the agent\n");
    let (_, restored) = armed.restore(Scope::Everything).unwrap();
    assert_eq!(bench.git(&["branch", "--show-current"]), "by-the-user\n");
    assert_eq!(
        bench.git(&["rev-parse", "origin/main"]),
        bench.git(&["rev-parse", "main"])
    );
    assert!(!bench.root().join(".git/hooks/post-commit").exists());
    assert_eq!(bench.read("a.txt"), "a\n");
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
async fn another_repository_at_the_path_of_a_renamed_project_is_not_touched() {
    let bench = committed();
    let mut armed = bench.arm().await;
    drop(armed.guard().unwrap());
    bench.write("a.txt", "by the agent\n");
    let moved = bench.dir.path().join("moved");
    fs::rename(bench.root(), &moved).unwrap();
    fs::create_dir(bench.root()).unwrap();
    bench.git(&["init", "-q"]);
    bench.write("mine.txt", "m\n");
    bench.git(&["add", "-A"]);
    bench.git(&["commit", "-q", "-m", "another project"]);
    fs::write(bench.root().join(".git/hooks/pre-commit"), "mine").unwrap();
    bench.git(&["config", "mine.key", "mine"]);
    armed.restore(Scope::Everything).unwrap();
    assert_eq!(bench.git(&["log", "--format=%s"]), "another project\n");
    assert_eq!(bench.git(&["config", "mine.key"]), "mine\n");
    assert_eq!(bench.read(".git/hooks/pre-commit"), "mine");
    assert_eq!(
        fs::read_to_string(moved.join("a.txt")).unwrap(),
        "a\n",
        "the directory itself is still ours"
    );
}

#[tokio::test]
async fn no_ghost_of_a_renamed_project_appears() {
    let bench = committed();
    let mut armed = bench.arm().await;
    drop(armed.guard().unwrap());
    fs::remove_file(bench.root().join(".git/config")).unwrap();
    fs::rename(bench.root(), bench.dir.path().join("moved")).unwrap();
    armed.restore(Scope::Everything).unwrap();
    assert!(!bench.root().exists());
}

#[tokio::test]
async fn servers_with_different_state_directories_exclude_each_other() {
    let bench = TestProject::with(&[("a.txt", "a\n")]);
    let other = tempfile::tempdir().unwrap();
    let state = StateDir::at(other.path().join("state")).unwrap();
    let elsewhere = Workspace::open(&bench.root(), SnapshotLimits::default(), &state).unwrap();
    let held = bench.lease().await;
    let stop = CancellationToken::new();
    let refused = elsewhere
        .lock(Mode::Exclusive, "a test", Duration::from_millis(50), &stop)
        .await
        .unwrap_err();
    assert!(matches!(refused, LockError::OtherStateDir), "{refused}");
    drop(held);
    drop(lease(&elsewhere).await);
}
