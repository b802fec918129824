//! A full disk: a restore either succeeds with what was set aside for it, or says what helps and stays armed.

use std::fs;
use std::path::Path;
use std::time::Duration;

use supervisor_test_support::small_disk::SmallDisk;
use supervisor_workspace::state::StateDir;
use supervisor_workspace::{
    Mode, RecoveryOutcome, RestoreError, Scope, SnapshotLimits, Workspace, recover,
};
use tokio_util::sync::CancellationToken;

#[tokio::test]
#[ignore = "needs root"]
async fn restore_survives_a_full_disk() {
    let small = SmallDisk::new("24m");
    let (project, place) = (
        small.dir.path().join("project"),
        small.dir.path().join("state"),
    );
    fs::create_dir(&project).unwrap();
    fs::write(project.join("a.txt"), "a".repeat(10_000)).unwrap();
    fs::write(project.join("large.bin"), vec![7; 6 << 20]).unwrap();
    let state = StateDir::at(place).unwrap();
    let workspace = Workspace::open(&project, SnapshotLimits::default(), &state).unwrap();
    let stop = CancellationToken::new();
    let lease = workspace
        .lock(Mode::Exclusive, "a test", Duration::ZERO, &stop)
        .await
        .unwrap();
    let armed = lease.take_snapshot().unwrap();
    // Small damage on a full disk: what was set aside is enough.
    fs::write(project.join("a.txt"), "damage").unwrap();
    small.fill(Path::new("filler"));
    let (lease, _) = armed.restore(Scope::Everything).unwrap();
    assert_eq!(
        fs::read_to_string(project.join("a.txt")).unwrap(),
        "a".repeat(10_000)
    );
    fs::remove_file(small.dir.path().join("filler")).unwrap();

    // More than that: it stays armed and says so; with space it can be finished.
    let armed = lease.take_snapshot().unwrap();
    fs::write(project.join("large.bin"), vec![8; 6 << 20]).unwrap();
    small.fill(Path::new("filler"));
    let error = armed.restore(Scope::Everything).unwrap_err();
    assert!(matches!(error, RestoreError::DiskFull { .. }), "{error}");
    assert!(error.to_string().contains("supervisor recover"), "{error}");
    fs::remove_file(small.dir.path().join("filler")).unwrap();
    let found = recover(&state).unwrap();
    assert!(
        matches!(found.as_slice(), [r] if matches!(r.outcome, RecoveryOutcome::Restored(_))),
        "{found:?}"
    );
    assert_eq!(
        fs::read(project.join("large.bin")).unwrap(),
        vec![7; 6 << 20]
    );
    assert!(recover(&state).unwrap().is_empty());
}

#[tokio::test]
#[ignore = "needs root"]
async fn restore_survives_a_full_state_disk() {
    let small = SmallDisk::new("16m");
    let project = tempfile::tempdir().unwrap();
    fs::write(project.path().join("a.txt"), "a".repeat(10_000)).unwrap();
    let state = StateDir::at(small.dir.path().join("state")).unwrap();
    let workspace = Workspace::open(project.path(), SnapshotLimits::default(), &state).unwrap();
    let stop = CancellationToken::new();
    let lease = workspace
        .lock(Mode::Exclusive, "a test", Duration::ZERO, &stop)
        .await
        .unwrap();
    // Another project has the same reserve, and needs it no more.
    let other = tempfile::tempdir().unwrap();
    let beside = Workspace::open(other.path(), SnapshotLimits::default(), &state).unwrap();
    let beside = beside
        .lock(Mode::Exclusive, "a test", Duration::ZERO, &stop)
        .await
        .unwrap();
    beside.take_snapshot().unwrap().accept().unwrap();

    let armed = lease.take_snapshot().unwrap();
    fs::write(project.path().join("a.txt"), vec![7; 2 << 20]).unwrap();
    fs::write(project.path().join("made.txt"), "made").unwrap();
    small.fill(Path::new("filler"));
    let (_, restored) = armed.restore(Scope::Everything).unwrap();
    assert_eq!(
        fs::read_to_string(project.path().join("a.txt")).unwrap(),
        "a".repeat(10_000)
    );
    assert!(!project.path().join("made.txt").exists());
    let kept = restored
        .kept_in
        .expect("rejected work is kept aside on the full disk");
    assert_eq!(
        fs::metadata(kept.join("files/a.txt")).unwrap().len(),
        2 << 20
    );
}
