//! Projects that are opened, locked, snapshotted, changed and restored.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says where it failed"
)]
#![allow(clippy::disallowed_methods, reason = "tests start programs themselves")]

mod attributes;
mod crash;
mod edit;
mod full_disk;
mod overlay;
mod property;
mod repository;
mod shared_packs;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use supervisor_test_support::programs::run_tests_as_nobody;
use supervisor_test_support::project::{TestProject, kinds, lease};
use supervisor_workspace::state::StateDir;
use supervisor_workspace::{
    ChangeKind, LockError, Mode, OpenError, Scope, SnapshotLimits, UnprotectedReason, Workspace,
};
use tokio_util::sync::CancellationToken;

supervisor_test_support::before_tests!(crash::act_in_role);

/// The superuser's overlays are made differently.
#[test]
#[ignore = "needs root, setpriv and user namespaces"]
fn overlays_work_for_an_ordinary_user() {
    run_tests_as_nobody(&["overlay::"]);
}

#[tokio::test]
async fn changes_of_a_worker_are_reported_and_undone() {
    let fixture = TestProject::with(&[("a.txt", "one\n"), ("b/c.txt", "two\n"), ("gone.txt", "x")]);
    fs::create_dir(fixture.root().join("empty")).unwrap();
    symlink("a.txt", fixture.root().join("link")).unwrap();
    let armed = fixture.arm().await;
    assert!(armed.changes().unwrap().is_empty());

    fixture.write("a.txt", "ONE\n");
    fixture.write("new/deep.txt", "n");
    fs::remove_file(fixture.root().join("gone.txt")).unwrap();
    fs::remove_dir(fixture.root().join("empty")).unwrap();
    fs::remove_file(fixture.root().join("link")).unwrap();
    fs::create_dir(fixture.root().join("link")).unwrap();
    fs::set_permissions(
        fixture.root().join("b/c.txt"),
        fs::Permissions::from_mode(0o600),
    )
    .unwrap();

    let changes = armed.changes().unwrap();
    assert_eq!(
        kinds(&changes),
        [
            ("a.txt".into(), ChangeKind::Modified),
            (
                "b/c.txt".into(),
                ChangeKind::ModeChanged {
                    from: 0o644,
                    to: 0o600
                }
            ),
            ("empty".into(), ChangeKind::Deleted),
            ("gone.txt".into(), ChangeKind::Deleted),
            ("link".into(), ChangeKind::TypeChanged),
            ("new".into(), ChangeKind::Added),
            ("new/deep.txt".into(), ChangeKind::Added),
        ]
    );
    let diff = armed.diff(10_000).unwrap();
    assert!(
        diff.contains("-one\n+ONE\n") && diff.contains("+++ b/new/deep.txt"),
        "{diff}"
    );
    assert!(diff.contains("mode 0644 => 0600 b/c.txt"), "{diff}");

    let (lease, restored) = armed.restore(Scope::Everything).unwrap();
    assert_eq!(restored.others, []);
    assert_eq!(
        (
            fixture.read("a.txt").as_str(),
            fixture.read("gone.txt").as_str()
        ),
        ("one\n", "x")
    );
    assert!(fixture.root().join("empty").is_dir() && !fixture.root().join("new").exists());
    assert_eq!(
        fs::read_link(fixture.root().join("link")).unwrap(),
        Path::new("a.txt")
    );
    let kept: Vec<_> = fixture
        .kept()
        .iter()
        .map(|p| fs::read_to_string(p).unwrap())
        .collect();
    assert!(
        kept.contains(&"ONE\n".into()) && kept.contains(&"n".into()),
        "{kept:?}"
    );
    assert!(lease.take_snapshot().unwrap().changes().unwrap().is_empty());
}

#[tokio::test]
async fn hidden_and_ignored_files_are_protected() {
    let fixture = TestProject::with(&[
        (".gitignore", "*.log\n/target/\n/data/\n.env\nforced.log\n"),
        (".env", "SECRET=1\n"),
        ("forced.log", "tracked though ignored\n"),
        ("target/debug/big.o", "built\n"),
        ("data/small.db", "rows\n"),
        ("node_modules/x/index.js", "x\n"),
    ]);
    fs::write(fixture.root().join("huge.log"), vec![1; (1 << 20) + 1]).unwrap();
    fixture.git(&["init", "-q"]);
    fixture.git(&["add", "-f", "forced.log", ".gitignore"]);
    let armed = fixture.arm().await;
    let mut left_out: Vec<_> = armed
        .unprotected()
        .into_iter()
        .map(|u| (u.path, u.why))
        .collect();
    left_out.sort();
    assert_eq!(
        left_out,
        [
            (".git/objects".into(), UnprotectedReason::GitObjects),
            ("huge.log".into(), UnprotectedReason::LargeIgnored),
            ("node_modules".into(), UnprotectedReason::BuildOrCache),
            ("target".into(), UnprotectedReason::BuildOrCache),
        ]
    );
    for path in [".env", "forced.log", "data/small.db"] {
        fixture.write(path, "overwritten\n");
    }
    fixture.write("target/debug/big.o", "built again\n");
    // A worker that hides its own files behind an ignore file is seen all the same.
    fixture.write(".gitignore", "*\n");
    fs::write(fixture.root().join("hidden.bin"), vec![1; (1 << 20) + 1]).unwrap();
    let changes = armed.changes().unwrap();
    let seen: Vec<_> = changes
        .changes
        .iter()
        .map(|c| c.path.to_str().unwrap())
        .collect();
    assert_eq!(
        seen,
        [
            ".env",
            ".gitignore",
            "data/small.db",
            "forced.log",
            "hidden.bin"
        ]
    );
    armed.restore(Scope::Everything).unwrap();
    assert_eq!(
        (
            fixture.read(".env").as_str(),
            fixture.read("data/small.db").as_str()
        ),
        ("SECRET=1\n", "rows\n")
    );
    assert_eq!(fixture.read("target/debug/big.o"), "built again\n");
    assert!(!fixture.root().join("hidden.bin").exists());
}

#[tokio::test]
async fn by_products_are_restored_but_not_blamed() {
    let fixture = TestProject::with(&[("Cargo.lock", "old\n"), ("src.rs", "x\n")]);
    let mut armed = fixture.arm().await;
    fixture.write("Cargo.lock", "new\n");
    fixture.write("snapshots/a.snap", "s\n");
    let marked = armed.mark_by_products().unwrap();
    assert_eq!(
        marked,
        [
            Path::new("Cargo.lock"),
            Path::new("snapshots"),
            Path::new("snapshots/a.snap")
        ]
    );
    fixture.write("src.rs", "y\n");
    fixture.write("Cargo.lock", "newer\n");
    let changes = armed.changes().unwrap();
    assert_eq!(kinds(&changes), [("src.rs".into(), ChangeKind::Modified)]);
    let since: Vec<_> = changes
        .by_products
        .iter()
        .map(|b| (b.path.to_str().unwrap(), b.changed_since))
        .collect();
    assert_eq!(
        since,
        [
            ("Cargo.lock", true),
            ("snapshots", false),
            ("snapshots/a.snap", false)
        ]
    );
    let (lease, restored) = armed.restore(Scope::Applied).unwrap();
    assert_eq!(
        (
            fixture.read("Cargo.lock").as_str(),
            fixture.read("src.rs").as_str()
        ),
        ("old\n", "y\n")
    );
    assert!(!fixture.root().join("snapshots").exists());
    assert_eq!(
        restored.others.len(),
        1,
        "somebody else's edit is kept and reported"
    );
    // The next tier's tests write the same things again: still no fault of the worker.
    let armed = lease.take_snapshot().unwrap();
    fixture.write("Cargo.lock", "new\n");
    assert!(armed.changes().unwrap().is_empty());
}

#[tokio::test]
async fn unprotectable_project_is_refused_by_file() {
    let fixture = TestProject::with(&[("big.txt", "0123456789"), ("b.txt", "x")]);
    let try_with = async |caps: SnapshotLimits| {
        let workspace = Workspace::open(&fixture.root(), caps, &fixture.state()).unwrap();
        lease(&workspace)
            .await
            .take_snapshot()
            .map(|_| ())
            .map_err(|e| e.to_string())
    };
    let error = try_with(SnapshotLimits {
        max_file_bytes: 9,
        ..SnapshotLimits::default()
    })
    .await
    .unwrap_err();
    assert!(
        error.contains("big.txt") && error.contains("max_file_bytes") && error.contains("exclude"),
        "{error}"
    );
    let error = try_with(SnapshotLimits {
        max_files: 1,
        ..SnapshotLimits::default()
    })
    .await
    .unwrap_err();
    assert!(error.contains("max_files"), "{error}");
    let error = try_with(SnapshotLimits {
        max_total_bytes: 10,
        ..SnapshotLimits::default()
    })
    .await
    .unwrap_err();
    assert!(error.contains("max_total_bytes"), "{error}");
    try_with(SnapshotLimits {
        max_file_bytes: 9,
        exclude: vec!["big.*".into()],
        ..SnapshotLimits::default()
    })
    .await
    .unwrap();
}

#[test]
fn unreasonable_roots_are_refused() {
    let fixture = TestProject::with(&[("file", "x")]);
    let open = |root: &Path| {
        Workspace::open(root, SnapshotLimits::default(), &fixture.state())
            .map(|_| ())
            .unwrap_err()
    };
    assert!(matches!(
        open(Path::new("relative")),
        OpenError::Relative(_)
    ));
    assert!(matches!(open(Path::new("/")), OpenError::FileSystemRoot(_)));
    assert!(matches!(
        open(&fixture.root().join("missing")),
        OpenError::Missing(_)
    ));
    assert!(matches!(
        open(&fixture.root().join("file")),
        OpenError::NotADirectory(_)
    ));
    assert!(matches!(
        open(&etcetera::home_dir().unwrap()),
        OpenError::Home(_)
    ));
    assert!(matches!(
        open(fixture.dir.path()),
        OpenError::ContainsState { .. }
    ));
    // A link to the root of the file system is the root of the file system.
    symlink("/", fixture.dir.path().join("innocent")).unwrap();
    assert!(matches!(
        open(&fixture.dir.path().join("innocent")),
        OpenError::FileSystemRoot(_)
    ));
    for error in [open(Path::new("/")), open(&fixture.root().join("missing"))] {
        assert!(
            error.to_string().contains("give"),
            "a remedy is missing: {error}"
        );
    }
}

/// Set in the child that has dropped its privileges.
const AS_NOBODY: &str = "SUPERVISOR_TEST_AS_NOBODY";

#[test]
fn inaccessible_files_are_refused() {
    if let Some(dir) = std::env::var_os(AS_NOBODY) {
        return refused_for_nobody(Path::new(&dir));
    }
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = std::process::Command::new(dir.path().join("test"));
    for (name, mode) in [
        ("locked", 0o755),
        ("closed", 0o000),
        ("open", 0o777),
        ("home", 0o777),
        ("state", 0o777),
    ] {
        fs::create_dir(dir.path().join(name)).unwrap();
        fs::set_permissions(dir.path().join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::write(dir.path().join("open/secret"), "s").unwrap();
    fs::set_permissions(
        dir.path().join("open/secret"),
        fs::Permissions::from_mode(0o000),
    )
    .unwrap();
    fs::copy(std::env::current_exe().unwrap(), dir.path().join("test")).unwrap();
    if rustix::process::geteuid().is_root() {
        std::os::unix::process::CommandExt::uid(&mut command, 65534);
    } else {
        fs::set_permissions(dir.path().join("locked"), fs::Permissions::from_mode(0o555)).unwrap();
    }
    command.args(["--exact", "inaccessible_files_are_refused"]);
    command
        .env(AS_NOBODY, dir.path())
        .env("HOME", dir.path().join("home"));
    // A child forked by another thread may hold the copy open for writing until it has exec'd.
    let output = loop {
        match command.output() {
            Err(e) if e.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                std::thread::yield_now();
            }
            done => break done.unwrap(),
        }
    };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
}

fn refused_for_nobody(dir: &Path) {
    assert!(
        !rustix::process::geteuid().is_root(),
        "privileges were not dropped"
    );
    let state = StateDir::at(dir.join("state/own")).unwrap();
    let error =
        Workspace::open(&dir.join("locked"), SnapshotLimits::default(), &state).unwrap_err();
    assert!(matches!(error, OpenError::Unwritable(_)), "{error}");
    // Who only reads needs no more than that.
    Workspace::open_read_only(&dir.join("locked"), SnapshotLimits::default(), &state).unwrap();
    for open in [Workspace::open, Workspace::open_read_only] {
        let error = open(&dir.join("closed"), SnapshotLimits::default(), &state).unwrap_err();
        assert!(matches!(error, OpenError::Unreadable(_)), "{error}");
    }
    let run = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    run.block_on(async {
        let workspace =
            Workspace::open(&dir.join("open"), SnapshotLimits::default(), &state).unwrap();
        let error = lease(&workspace)
            .await
            .take_snapshot()
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("open/secret") && error.contains("exclude"),
            "{error}"
        );
        // A worker may take rights away from itself; a restore gives them back.
        let workspace = Workspace::open(
            &dir.join("open"),
            SnapshotLimits {
                exclude: vec!["secret".into()],
                ..SnapshotLimits::default()
            },
            &state,
        );
        fs::create_dir(dir.join("open/d")).unwrap();
        fs::write(dir.join("open/d/f"), "f").unwrap();
        let armed = lease(&workspace.unwrap()).await.take_snapshot().unwrap();
        fs::write(dir.join("open/d/new"), "n").unwrap();
        fs::write(dir.join("open/d/f"), "changed").unwrap();
        fs::set_permissions(dir.join("open/d"), fs::Permissions::from_mode(0o000)).unwrap();
        armed.restore(Scope::Everything).unwrap();
        assert_eq!(fs::read_to_string(dir.join("open/d/f")).unwrap(), "f");
        assert!(!dir.join("open/d/new").exists());
        // The root itself is no exception.
        let own = dir.join("home/project");
        fs::create_dir(&own).unwrap();
        fs::write(own.join("f"), "f").unwrap();
        let armed = lease(&Workspace::open(&own, SnapshotLimits::default(), &state).unwrap())
            .await
            .take_snapshot()
            .unwrap();
        fs::remove_file(own.join("f")).unwrap();
        fs::set_permissions(&own, fs::Permissions::from_mode(0o000)).unwrap();
        armed.restore(Scope::Everything).unwrap();
        assert_eq!(fs::read_to_string(own.join("f")).unwrap(), "f");
    });
}

#[tokio::test]
async fn lock_error_names_the_holder() {
    let fixture = TestProject::with(&[("pkg/a.txt", "a")]);
    fixture.git(&["init", "-q"]);
    let stop = CancellationToken::new();
    let whole = fixture.open();
    let part = Workspace::open(
        &fixture.root().join("pkg"),
        SnapshotLimits::default(),
        &fixture.state(),
    )
    .unwrap();
    let held = whole
        .lock(Mode::Exclusive, "tdd_green", Duration::ZERO, &stop)
        .await
        .unwrap();
    for mode in [Mode::Exclusive, Mode::Shared] {
        match part.lock(mode, "review", Duration::ZERO, &stop).await {
            Err(LockError::Busy { holder }) => {
                assert_eq!(
                    (holder.pid, holder.what.as_str()),
                    (std::process::id(), "tdd_green")
                );
                assert!(
                    holder.to_string().contains(&std::process::id().to_string()),
                    "{holder}"
                );
            }
            other => panic!("{other:?}"),
        }
    }
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    let waited = part
        .lock(Mode::Shared, "review", Duration::from_secs(60), &cancelled)
        .await;
    assert!(matches!(waited, Err(LockError::Cancelled)), "{waited:?}");
    drop(held);
    // A program that another test is just starting has a copy of every descriptor until it runs, locks included.
    let soon = Duration::from_secs(20);
    let first = part
        .lock(Mode::Shared, "review", soon, &stop)
        .await
        .unwrap();
    let second = whole
        .lock(Mode::Shared, "debug", soon, &stop)
        .await
        .unwrap();
    assert!(
        whole
            .lock(Mode::Exclusive, "tdd_red", Duration::ZERO, &stop)
            .await
            .is_err()
    );
    drop((first, second));
    whole
        .lock(Mode::Exclusive, "tdd_red", soon, &stop)
        .await
        .unwrap();
}

#[tokio::test]
async fn dropped_snapshot_is_restored() {
    let fixture = TestProject::with(&[("a.txt", "a\n")]);
    let mut armed = fixture.arm().await;
    let edit = supervisor_workspace::Edit::Replace {
        path: "a.txt".into(),
        contents: b"b\n".to_vec(),
    };
    armed.apply(&[edit], &|_| Ok(())).unwrap();
    drop(armed);
    assert_eq!(fixture.read("a.txt"), "a\n");
}

#[tokio::test]
#[ignore = "needs a second file system at /dev/shm"]
async fn rejected_work_is_kept_across_file_systems() {
    use std::os::unix::fs::MetadataExt;
    let other = Path::new("/dev/shm");
    let state = tempfile::tempdir().unwrap();
    let device = |p: &Path| fs::metadata(p).map(|m| m.dev()).ok();
    let project = tempfile::tempdir_in(other).unwrap();
    assert_ne!(device(project.path()), device(state.path()));
    fs::write(project.path().join("a"), "a").unwrap();
    let caps = SnapshotLimits {
        exclude: vec!["sock".into()],
        ..SnapshotLimits::default()
    };
    let place = StateDir::at(state.path().join("s")).unwrap();
    let armed = lease(&Workspace::open(project.path(), caps, &place).unwrap())
        .await
        .take_snapshot()
        .unwrap();
    fs::write(project.path().join("a"), "changed").unwrap();
    fs::create_dir(project.path().join("d")).unwrap();
    fs::write(project.path().join("d/new"), "new").unwrap();
    fs::set_permissions(
        project.path().join("d/new"),
        fs::Permissions::from_mode(0o000),
    )
    .unwrap();
    symlink("new", project.path().join("d/link")).unwrap();
    let (_, restored) = armed.restore(Scope::Everything).unwrap();
    assert_eq!(fs::read_to_string(project.path().join("a")).unwrap(), "a");
    assert!(!project.path().join("d").exists());
    let kept = restored.kept_in.unwrap().join("files");
    assert_eq!(fs::read_to_string(kept.join("a")).unwrap(), "changed");
    assert_eq!(fs::read_to_string(kept.join("d/new")).unwrap(), "new");
    assert_eq!(
        fs::read_link(kept.join("d/link")).unwrap(),
        Path::new("new")
    );
}
