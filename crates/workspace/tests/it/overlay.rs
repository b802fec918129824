//! Work in overlays: the user's files stay as they are until it is accepted, and what the user does meanwhile stays.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use supervisor_process::{
    ChildKind, CommandSpec, Confinement, End, FinishedProcess, Launcher, ProjectGuard, SandboxMode,
    SandboxRules,
};
use supervisor_workspace::{CommitError, Edit, OverlayOpenError, OverlayProject};
use tokio_util::sync::CancellationToken;

use supervisor_test_support::process::{LONG, launcher};
use supervisor_test_support::project::TestProject;

fn sandboxed_launcher() -> Launcher {
    launcher().with_rules(SandboxRules {
        mode: SandboxMode::Auto,
        ..SandboxRules::default()
    })
}

async fn open_overlay(fixture: &TestProject) -> OverlayProject {
    let lease = fixture.lease().await;
    match OverlayProject::open(lease, &sandboxed_launcher()) {
        Ok(overlay) => overlay,
        Err(OverlayOpenError::Unavailable(_, why)) => panic!("no overlay: {why}"),
        Err(OverlayOpenError::Snapshot(error)) => panic!("{error}"),
    }
}

async fn run(
    fixture: &TestProject,
    kind: ChildKind,
    guard: ProjectGuard,
    script: &str,
) -> FinishedProcess {
    let mut spec = CommandSpec::new(["sh", "-c", script], fixture.root());
    spec.env
        .insert("PATH".into(), std::env::var_os("PATH").unwrap());
    spec.limit = LONG;
    spec.guard = Some(guard);
    spec.confine = Some(Confinement::new(kind));
    let finished = sandboxed_launcher()
        .run(spec, &CancellationToken::new())
        .await;
    assert!(matches!(finished.end, End::Exited(_)), "{finished:?}");
    finished
}

/// Everything about every name but the times of directories, which change with what git does.
fn picture(root: &Path) -> BTreeMap<PathBuf, (u64, u32, i64, i64, Vec<u8>)> {
    let (mut found, mut dirs) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).unwrap().flatten() {
            let (path, meta) = (entry.path(), entry.path().symlink_metadata().unwrap());
            let bytes = if meta.is_file() {
                fs::read(&path).unwrap()
            } else {
                Vec::new()
            };
            found.insert(
                path.clone(),
                (
                    meta.ino(),
                    meta.mode(),
                    meta.mtime(),
                    meta.mtime_nsec(),
                    bytes,
                ),
            );
            if meta.is_dir() {
                dirs.push(path);
            }
        }
    }
    found
}

#[tokio::test]
#[ignore = "needs user namespaces"]
async fn writes_in_the_overlay_leave_the_project_unchanged() {
    let fixture = TestProject::with(&[
        ("src/a.txt", "one\n"),
        ("src/b.txt", "b\n"),
        ("gone/x.txt", "x\n"),
    ]);
    let before = picture(&fixture.root());
    let mut overlay = open_overlay(&fixture).await;
    let guard = overlay.worker_guard().unwrap();
    let script = "echo two > src/a.txt; echo n > new.txt; rm -r gone; mkdir -p deep/er; echo d > deep/er/d.txt; \
                  chmod 755 src/b.txt; touch src/b.txt";
    run(&fixture, ChildKind::Agent, guard, script).await;
    overlay.take_worker_changes().unwrap();
    let changes = overlay.snapshot().changes().unwrap();
    let seen: Vec<_> = changes
        .changes
        .iter()
        .map(|c| c.path.display().to_string())
        .collect();
    assert_eq!(
        seen,
        [
            "deep",
            "deep/er",
            "deep/er/d.txt",
            "gone",
            "gone/x.txt",
            "new.txt",
            "src/a.txt",
            "src/b.txt"
        ]
    );
    // The tests see the candidate at the project's own path, and what they write is not seen outside either.
    let guard = overlay.guard().unwrap();
    let tests = run(
        &fixture,
        ChildKind::Tests,
        guard,
        "cat src/a.txt; pwd; mkdir target; echo built > target/out",
    )
    .await;
    assert_eq!(
        tests.stdout.text(),
        format!(
            "two\n{}\n",
            fixture.root().canonicalize().unwrap().display()
        )
    );
    assert_eq!(
        fs::read_to_string(overlay.path().join("src/a.txt")).unwrap(),
        "two\n"
    );
    assert_eq!(picture(&fixture.root()), before);
    let (overlay, _) = overlay.reject().unwrap();
    assert!(overlay.snapshot().changes().unwrap().is_empty());
    drop(overlay.discard());
    assert_eq!(picture(&fixture.root()), before);
}

#[tokio::test]
#[ignore = "needs user namespaces"]
async fn accepted_work_is_written_and_user_work_stays() {
    let fixture = TestProject::with(&[
        ("a.txt", "one\n"),
        ("user.txt", "u\n"),
        ("gone/x.txt", "x\n"),
        ("log", "1\n"),
    ]);
    let mut overlay = open_overlay(&fixture).await;
    let guard = overlay.worker_guard().unwrap();
    // The user saves while the worker is at it.
    fixture.write("user.txt", "saved by the user\n");
    fixture.write("notes.txt", "new from the user\n");
    let script = "echo two > a.txt; echo '#!/bin/sh' > run.sh; chmod 755 run.sh; rm -r gone";
    run(&fixture, ChildKind::Agent, guard, script).await;
    overlay.take_worker_changes().unwrap();
    fixture.write("log", "1\n2\n");
    let guard = overlay.guard().unwrap();
    run(
        &fixture,
        ChildKind::Tests,
        guard,
        "echo made by tests > by-product.txt",
    )
    .await;
    overlay.snapshot_mut().mark_by_products().unwrap();
    overlay.commit().unwrap().write("").unwrap();
    assert_eq!(fixture.read("a.txt"), "two\n");
    assert_eq!(
        fs::metadata(fixture.root().join("run.sh"))
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o755
    );
    assert!(
        !fixture.root().join("gone").exists() && !fixture.root().join("by-product.txt").exists()
    );
    assert_eq!(fixture.read("user.txt"), "saved by the user\n");
    assert_eq!(fixture.read("notes.txt"), "new from the user\n");
    assert_eq!(fixture.read("log"), "1\n2\n");
    // And the project is free again.
    drop(fixture.lease().await);
}

#[tokio::test]
#[ignore = "needs user namespaces"]
async fn file_changed_by_the_user_is_not_overwritten() {
    let fixture = TestProject::with(&[("a.txt", "one\n"), ("b.txt", "b\n")]);
    let mut overlay = open_overlay(&fixture).await;
    overlay
        .snapshot_mut()
        .apply(
            &[
                Edit::Replace {
                    path: "a.txt".into(),
                    contents: b"theirs\n".to_vec(),
                },
                Edit::Create {
                    path: "c.txt".into(),
                    contents: b"c\n".to_vec(),
                },
            ],
            &|_| Ok(()),
        )
        .unwrap();
    fixture.write("a.txt", "the user's\n");
    let Err(CommitError::Conflict { paths, kept }) = overlay.commit() else {
        panic!("it was written")
    };
    assert_eq!(paths, [Path::new("a.txt")]);
    assert_eq!(fixture.read("a.txt"), "the user's\n");
    assert!(
        !fixture.root().join("c.txt").exists(),
        "all of it or nothing"
    );
    assert_eq!(fs::read_to_string(kept.join("a.txt")).unwrap(), "theirs\n");
    drop(fixture.lease().await);
}

#[tokio::test]
#[ignore = "needs user namespaces"]
async fn work_is_merged_with_user_changes() {
    let lines = |second: &str, ninth: &str| format!("1\n{second}\n3\n4\n5\n6\n7\n8\n{ninth}\n");
    let fixture = TestProject::with(&[
        ("a.txt", &lines("2", "9")),
        ("b.txt", "b\n"),
        ("gone.txt", "g\n"),
    ]);
    let mut overlay = open_overlay(&fixture).await;
    let guard = overlay.worker_guard().unwrap();
    run(
        &fixture,
        ChildKind::Agent,
        guard,
        "sed -i s/9/nine/ a.txt; rm gone.txt; echo n > new.txt",
    )
    .await;
    overlay.take_worker_changes().unwrap();
    assert!(overlay.drift().unwrap().is_empty());
    fixture.write("a.txt", &lines("two", "9"));
    fixture.write("b.txt", "the user's\n");
    let drift: Vec<_> = overlay
        .drift()
        .unwrap()
        .paths()
        .map(|p| p.display().to_string())
        .collect();
    assert_eq!(drift, ["a.txt", "b.txt"]);
    let seen: Vec<_> = overlay
        .snapshot()
        .changes()
        .unwrap()
        .changes
        .into_iter()
        .map(|c| c.path.display().to_string())
        .collect();
    assert_eq!(
        seen,
        ["a.txt", "gone.txt", "new.txt"],
        "what the user does is not held against the worker"
    );
    let mut overlay = overlay.rebase().unwrap();
    let guard = overlay.guard().unwrap();
    let tests = run(
        &fixture,
        ChildKind::Tests,
        guard,
        "sed -n '2p;9p' a.txt; cat b.txt new.txt; ls gone.txt",
    )
    .await;
    assert_eq!(tests.stdout.text(), "two\nnine\nthe user's\nn\n");
    assert!(overlay.drift().unwrap().is_empty());
    drop(overlay.commit().unwrap().write("").unwrap());
    assert_eq!(fixture.read("a.txt"), lines("two", "nine"));
    assert_eq!(fixture.read("b.txt"), "the user's\n");
    assert!(!fixture.root().join("gone.txt").exists());

    let mut again = open_overlay(&fixture).await;
    let guard = again.worker_guard().unwrap();
    run(
        &fixture,
        ChildKind::Agent,
        guard,
        "sed -i s/nine/IX/ a.txt; rm new.txt",
    )
    .await;
    again.take_worker_changes().unwrap();
    fixture.write("a.txt", &lines("two", "neun"));
    fixture.write("new.txt", "the user's\n");
    let Err(CommitError::Conflict { paths, kept }) = again.rebase() else {
        panic!("it was merged")
    };
    assert_eq!(paths, [Path::new("a.txt"), Path::new("new.txt")]);
    assert_eq!(
        fs::read_to_string(kept.join("a.txt")).unwrap(),
        lines("two", "IX")
    );
    assert_eq!(
        (fixture.read("a.txt"), fixture.read("new.txt")),
        (lines("two", "neun"), "the user's\n".into())
    );
    drop(fixture.lease().await);
}

#[tokio::test]
#[ignore = "needs user namespaces"]
async fn stale_build_output_is_never_reused() {
    // A build tool in three lines: it believes times, as cargo and make do.
    let build = "mkdir -p target; touch target/CACHEDIR.TAG; \
                 if [ ! -e target/out ] || [ src.txt -nt target/out ]; then sleep 0.02; cp src.txt target/out; fi; cat target/out";
    let fixture = TestProject::with(&[("Cargo.toml", ""), ("src.txt", "right\n")]);
    let built = async |overlay: &mut OverlayProject| {
        let guard = overlay.guard().unwrap();
        run(&fixture, ChildKind::Tests, guard, build)
            .await
            .stdout
            .text()
            .into_owned()
    };
    let mut first = open_overlay(&fixture).await;
    assert_eq!(built(&mut first).await, "right\n");
    let edit = Edit::Replace {
        path: "src.txt".into(),
        contents: b"wrong\n".to_vec(),
    };
    first
        .snapshot_mut()
        .apply(std::slice::from_ref(&edit), &|_| Ok(()))
        .unwrap();
    assert_eq!(built(&mut first).await, "wrong\n");
    let (first, _) = first.reject().unwrap();
    drop(first.discard());
    let mut second = open_overlay(&fixture).await;
    assert_eq!(built(&mut second).await, "right\n", "after a refusal");
    second.snapshot_mut().apply(&[edit], &|_| Ok(())).unwrap();
    assert_eq!(built(&mut second).await, "wrong\n");
    // As if the server had been killed: nothing is closed.
    drop(second);
    let mut third = open_overlay(&fixture).await;
    assert_eq!(
        built(&mut third).await,
        "right\n",
        "after a call that nobody closed"
    );
    assert!(third.snapshot().changes().unwrap().is_empty());
}

#[tokio::test]
#[ignore = "needs user namespaces"]
async fn build_cache_survives_between_calls() {
    let fixture = TestProject::with(&[("Cargo.toml", ""), ("a.txt", "one\n")]);
    let mut first = open_overlay(&fixture).await;
    let guard = first.guard().unwrap();
    run(
        &fixture,
        ChildKind::Tests,
        guard,
        "mkdir target; echo built > target/out; touch target/CACHEDIR.TAG; echo x > stray",
    )
    .await;
    drop(first.discard());
    let mut second = open_overlay(&fixture).await;
    let guard = second.guard().unwrap();
    let seen = run(
        &fixture,
        ChildKind::Tests,
        guard,
        "cat target/out; ls stray",
    )
    .await;
    assert_eq!(seen.stdout.text(), "built\n");
    let guard = second.worker_guard().unwrap();
    let worker = run(&fixture, ChildKind::Agent, guard, "ls target").await;
    assert_eq!(
        worker.stdout.text(),
        "",
        "no worker sees the server's cache"
    );
    drop(second.discard());
    fixture.write("target/out", "the user's own\n");
    let mut third = open_overlay(&fixture).await;
    let guard = third.guard().unwrap();
    assert_eq!(
        run(&fixture, ChildKind::Tests, guard, "cat target/out")
            .await
            .stdout
            .text(),
        "the user's own\n"
    );
}

#[tokio::test]
#[ignore = "needs user namespaces"]
async fn git_work_during_the_call_is_kept() {
    let fixture = TestProject::with(&[("a.txt", "one\n"), ("b.txt", "b\n")]);
    for arguments in [
        &["init", "-q"][..],
        &["add", "-A"],
        &["commit", "-q", "-m", "one"],
    ] {
        fixture.git(arguments);
    }
    let mut overlay = open_overlay(&fixture).await;
    let guard = overlay.worker_guard().unwrap();
    fixture.write("b.txt", "the user's\n");
    fixture.git(&["commit", "-q", "-am", "by the user"]);
    fixture.git(&["branch", "by-the-user"]);
    let script = "echo two > a.txt; echo x > .git/hooks/post-commit; git branch by-the-worker";
    run(&fixture, ChildKind::Agent, guard, script).await;
    overlay.take_worker_changes().unwrap();
    let seen: Vec<_> = overlay
        .snapshot()
        .changes()
        .unwrap()
        .changes
        .into_iter()
        .map(|c| c.path.display().to_string())
        .collect();
    assert!(
        !seen.iter().any(|path| path.starts_with(".git")),
        "{seen:?}"
    );
    let (overlay, _) = overlay.reject().unwrap();
    drop(overlay.discard());
    assert_eq!(fixture.git(&["log", "--format=%s"]), "by the user\none\n");
    assert_eq!(
        fixture.git(&["branch", "--format=%(refname:short)"]),
        "by-the-user\nmain\n"
    );
    assert_eq!(
        (fixture.read("a.txt"), fixture.read("b.txt")),
        ("one\n".into(), "the user's\n".into())
    );
    assert!(!fixture.root().join(".git/hooks/post-commit").exists());
}

#[tokio::test]
#[ignore = "needs user namespaces"]
async fn huge_file_is_refused_without_reading_it() {
    let fixture = TestProject::with(&[("a.txt", "one\n")]);
    let mut overlay = open_overlay(&fixture).await;
    let guard = overlay.worker_guard().unwrap();
    run(
        &fixture,
        ChildKind::Agent,
        guard,
        "truncate -s 64G huge.bin; echo two > a.txt",
    )
    .await;
    let refused = overlay.take_worker_changes().unwrap_err().to_string();
    assert!(
        refused.contains("`huge.bin`") && refused.contains("max_file_bytes"),
        "{refused}"
    );
    drop(overlay.discard());
    assert_eq!(picture(&fixture.root()).len(), 1);
}

#[tokio::test]
#[ignore = "needs user namespaces"]
async fn dropped_overlay_leaves_nothing_behind() {
    let fixture = TestProject::with(&[("a.txt", "one\n")]);
    let before = picture(&fixture.root());
    let mut overlay = open_overlay(&fixture).await;
    overlay
        .snapshot_mut()
        .apply(
            &[Edit::Delete {
                path: "a.txt".into(),
            }],
            &|_| Ok(()),
        )
        .unwrap();
    drop(overlay);
    assert_eq!(picture(&fixture.root()), before);
    assert!(fixture.arm().await.changes().unwrap().is_empty());
}

#[tokio::test]
#[ignore = "needs user namespaces"]
async fn what_a_run_builds_is_thrown_away() {
    let fixture = TestProject::with(&[
        ("Cargo.toml", ""),
        (".gitignore", "target/\n"),
        ("src/a.txt", "one\n"),
    ]);
    let mut overlay = open_overlay(&fixture).await;
    let guard = overlay.guard().unwrap();
    let build = "mkdir target; echo old > target/out";
    run(&fixture, ChildKind::Tests, guard, build).await;
    let edit = Edit::Replace {
        path: String::from("src/a.txt"),
        contents: b"two\n".to_vec(),
    };
    overlay.snapshot_mut().apply(&[edit], &|_| Ok(())).unwrap();
    let script = "cat src/a.txt target/*; echo new > target/out; echo x > target/left; echo n > made.txt; \
                  cp src/a.txt src/a.bak; echo three > src/a.txt; cat src/a.bak > src/a.txt; rm src/a.bak";
    for _ in 0..2 {
        let guard = overlay.run_guard().unwrap();
        let seen = run(&fixture, ChildKind::Tests, guard, script).await;
        assert_eq!(seen.stdout.text(), "two\nold\n", "{}", seen.stderr.text());
        assert_eq!(overlay.files_written_by_run(), [PathBuf::from("src/a.txt")]);
        overlay.drop_worker();
    }
    let guard = overlay.run_guard().unwrap();
    run(&fixture, ChildKind::Tests, guard, script).await;
    overlay.take_worker_changes().unwrap();
    let changes = overlay.snapshot().changes().unwrap();
    let seen: Vec<_> = changes.changes.iter().map(|c| c.path.as_path()).collect();
    assert_eq!(seen, [Path::new("made.txt"), Path::new("src/a.txt")]);
    assert!(!overlay.path().join("target/left").exists());
}
