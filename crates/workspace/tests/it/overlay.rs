//! Work in private views: the user's files stay as they are until it is accepted, and what the user does meanwhile stays.

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

fn walled() -> Launcher {
    launcher().with_rules(SandboxRules {
        mode: SandboxMode::Auto,
        ..SandboxRules::default()
    })
}

/// `None`, said aloud, where there are no views.
async fn private(bench: &TestProject) -> Option<OverlayProject> {
    let lease = bench.lease().await;
    match OverlayProject::open(lease, &walled()) {
        Ok(private) => Some(private),
        Err(OverlayOpenError::Unavailable(_, why)) => {
            skip(&why.to_string());
            None
        }
        Err(OverlayOpenError::Snapshot(error)) => panic!("{error}"),
    }
}

async fn run(bench: &TestProject, kind: ChildKind, guard: ProjectGuard, script: &str) -> FinishedProcess {
    let mut spec = CommandSpec::new(["sh", "-c", script], bench.root());
    spec.env
        .insert("PATH".into(), std::env::var_os("PATH").unwrap());
    spec.limit = LONG;
    spec.guard = Some(guard);
    spec.confine = Some(Confinement::new(kind));
    let finished = walled().run(spec, &CancellationToken::new()).await;
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
async fn a_worker_and_the_tests_write_and_the_project_is_the_same_to_the_inode() {
    let bench = TestProject::with(&[
        ("src/a.txt", "one\n"),
        ("src/b.txt", "b\n"),
        ("gone/x.txt", "x\n"),
    ]);
    let before = picture(&bench.root());
    let Some(mut private) = private(&bench).await else {
        return;
    };
    let guard = private.worker_guard().unwrap();
    let script = "echo two > src/a.txt; echo n > new.txt; rm -r gone; mkdir -p deep/er; echo d > deep/er/d.txt; \
                  chmod 755 src/b.txt; touch src/b.txt";
    run(&bench, ChildKind::Agent, guard, script).await;
    private.take_worker_changes().unwrap();
    let changes = private.snapshot().changes().unwrap();
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
    let guard = private.guard().unwrap();
    let tests = run(
        &bench,
        ChildKind::Tests,
        guard,
        "cat src/a.txt; pwd; mkdir target; echo built > target/out",
    )
    .await;
    assert_eq!(
        tests.stdout.text(),
        format!("two\n{}\n", bench.root().canonicalize().unwrap().display())
    );
    assert_eq!(
        fs::read_to_string(private.path().join("src/a.txt")).unwrap(),
        "two\n"
    );
    assert_eq!(picture(&bench.root()), before);
    let (private, _) = private.reject().unwrap();
    assert!(private.snapshot().changes().unwrap().is_empty());
    drop(private.discard());
    assert_eq!(picture(&bench.root()), before);
}

#[tokio::test]
async fn accepted_work_is_written_with_its_modes_and_the_users_own_work_stays() {
    let bench = TestProject::with(&[
        ("a.txt", "one\n"),
        ("user.txt", "u\n"),
        ("gone/x.txt", "x\n"),
        ("log", "1\n"),
    ]);
    let Some(mut private) = private(&bench).await else {
        return;
    };
    let guard = private.worker_guard().unwrap();
    // The user saves while the worker is at it.
    bench.write("user.txt", "saved by the user\n");
    bench.write("notes.txt", "new from the user\n");
    let script = "echo two > a.txt; echo '#!/bin/sh' > run.sh; chmod 755 run.sh; rm -r gone";
    run(&bench, ChildKind::Agent, guard, script).await;
    private.take_worker_changes().unwrap();
    bench.write("log", "1\n2\n");
    let guard = private.guard().unwrap();
    run(
        &bench,
        ChildKind::Tests,
        guard,
        "echo made by tests > by-product.txt",
    )
    .await;
    private.snapshot_mut().mark_by_products().unwrap();
    private.commit().unwrap().write("").unwrap();
    assert_eq!(bench.read("a.txt"), "two\n");
    assert_eq!(
        fs::metadata(bench.root().join("run.sh"))
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o755
    );
    assert!(!bench.root().join("gone").exists() && !bench.root().join("by-product.txt").exists());
    assert_eq!(bench.read("user.txt"), "saved by the user\n");
    assert_eq!(bench.read("notes.txt"), "new from the user\n");
    assert_eq!(bench.read("log"), "1\n2\n");
    // And the project is free again.
    drop(bench.lease().await);
}

#[tokio::test]
async fn a_file_that_the_user_changed_too_is_not_overwritten_and_the_work_is_kept() {
    let bench = TestProject::with(&[("a.txt", "one\n"), ("b.txt", "b\n")]);
    let Some(mut private) = private(&bench).await else {
        return;
    };
    private
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
    bench.write("a.txt", "the user's\n");
    let Err(CommitError::Conflict { paths, kept }) = private.commit() else {
        panic!("it was written")
    };
    assert_eq!(paths, [Path::new("a.txt")]);
    assert_eq!(bench.read("a.txt"), "the user's\n");
    assert!(!bench.root().join("c.txt").exists(), "all of it or nothing");
    assert_eq!(fs::read_to_string(kept.join("a.txt")).unwrap(), "theirs\n");
    drop(bench.lease().await);
}

#[tokio::test]
async fn work_follows_the_user_where_both_changed_other_lines_and_is_refused_where_they_did_not() {
    let lines = |second: &str, ninth: &str| format!("1\n{second}\n3\n4\n5\n6\n7\n8\n{ninth}\n");
    let bench = TestProject::with(&[
        ("a.txt", &lines("2", "9")),
        ("b.txt", "b\n"),
        ("gone.txt", "g\n"),
    ]);
    let Some(mut private) = private(&bench).await else {
        return;
    };
    let guard = private.worker_guard().unwrap();
    run(
        &bench,
        ChildKind::Agent,
        guard,
        "sed -i s/9/nine/ a.txt; rm gone.txt; echo n > new.txt",
    )
    .await;
    private.take_worker_changes().unwrap();
    assert!(private.drift().unwrap().is_empty());
    bench.write("a.txt", &lines("two", "9"));
    bench.write("b.txt", "the user's\n");
    let drift: Vec<_> = private
        .drift()
        .unwrap()
        .paths()
        .map(|p| p.display().to_string())
        .collect();
    assert_eq!(drift, ["a.txt", "b.txt"]);
    let seen: Vec<_> = private
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
    let mut private = private.rebase().unwrap();
    let guard = private.guard().unwrap();
    let tests = run(
        &bench,
        ChildKind::Tests,
        guard,
        "sed -n '2p;9p' a.txt; cat b.txt new.txt; ls gone.txt",
    )
    .await;
    assert_eq!(tests.stdout.text(), "two\nnine\nthe user's\nn\n");
    assert!(private.drift().unwrap().is_empty());
    drop(private.commit().unwrap().write("").unwrap());
    assert_eq!(bench.read("a.txt"), lines("two", "nine"));
    assert_eq!(bench.read("b.txt"), "the user's\n");
    assert!(!bench.root().join("gone.txt").exists());

    let mut again = self::private(&bench).await.unwrap();
    let guard = again.worker_guard().unwrap();
    run(
        &bench,
        ChildKind::Agent,
        guard,
        "sed -i s/nine/IX/ a.txt; rm new.txt",
    )
    .await;
    again.take_worker_changes().unwrap();
    bench.write("a.txt", &lines("two", "neun"));
    bench.write("new.txt", "the user's\n");
    let Err(CommitError::Conflict { paths, kept }) = again.rebase() else {
        panic!("it was merged")
    };
    assert_eq!(paths, [Path::new("a.txt"), Path::new("new.txt")]);
    assert_eq!(
        fs::read_to_string(kept.join("a.txt")).unwrap(),
        lines("two", "IX")
    );
    assert_eq!(
        (bench.read("a.txt"), bench.read("new.txt")),
        (lines("two", "neun"), "the user's\n".into())
    );
    drop(bench.lease().await);
}

#[tokio::test]
async fn what_is_left_of_a_build_is_never_taken_for_the_build_of_another_state() {
    // A build tool in three lines: it believes times, as cargo and make do.
    let build = "mkdir -p target; touch target/CACHEDIR.TAG; \
                 if [ ! -e target/out ] || [ src.txt -nt target/out ]; then sleep 0.02; cp src.txt target/out; fi; cat target/out";
    let bench = TestProject::with(&[("Cargo.toml", ""), ("src.txt", "right\n")]);
    let built = async |private: &mut OverlayProject| {
        let guard = private.guard().unwrap();
        run(&bench, ChildKind::Tests, guard, build)
            .await
            .stdout
            .text()
            .into_owned()
    };
    let Some(mut first) = private(&bench).await else {
        return;
    };
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
    let mut second = private(&bench).await.unwrap();
    assert_eq!(built(&mut second).await, "right\n", "after a refusal");
    second.snapshot_mut().apply(&[edit], &|_| Ok(())).unwrap();
    assert_eq!(built(&mut second).await, "wrong\n");
    // As if the server had been killed: nothing is closed.
    drop(second);
    let mut third = private(&bench).await.unwrap();
    assert_eq!(
        built(&mut third).await,
        "right\n",
        "after a call that nobody closed"
    );
    assert!(third.snapshot().changes().unwrap().is_empty());
}

#[tokio::test]
async fn a_build_cache_lives_on_between_calls_until_the_project_has_its_own() {
    let bench = TestProject::with(&[("Cargo.toml", ""), ("a.txt", "one\n")]);
    let Some(mut first) = private(&bench).await else {
        return;
    };
    let guard = first.guard().unwrap();
    run(
        &bench,
        ChildKind::Tests,
        guard,
        "mkdir target; echo built > target/out; touch target/CACHEDIR.TAG; echo x > stray",
    )
    .await;
    drop(first.discard());
    let mut second = private(&bench).await.unwrap();
    let guard = second.guard().unwrap();
    let seen = run(&bench, ChildKind::Tests, guard, "cat target/out; ls stray").await;
    assert_eq!(seen.stdout.text(), "built\n");
    let guard = second.worker_guard().unwrap();
    let worker = run(&bench, ChildKind::Agent, guard, "ls target").await;
    assert_eq!(
        worker.stdout.text(),
        "",
        "no worker sees the server's cache"
    );
    drop(second.discard());
    bench.write("target/out", "the user's own\n");
    let mut third = private(&bench).await.unwrap();
    let guard = third.guard().unwrap();
    assert_eq!(
        run(&bench, ChildKind::Tests, guard, "cat target/out")
            .await
            .stdout
            .text(),
        "the user's own\n"
    );
}

#[tokio::test]
async fn commits_branches_and_a_stash_made_during_the_call_are_the_users() {
    let bench = TestProject::with(&[("a.txt", "one\n"), ("b.txt", "b\n")]);
    for arguments in [
        &["init", "-q"][..],
        &["add", "-A"],
        &["commit", "-q", "-m", "one"],
    ] {
        bench.git(arguments);
    }
    let Some(mut private) = private(&bench).await else {
        return;
    };
    let guard = private.worker_guard().unwrap();
    bench.write("b.txt", "the user's\n");
    bench.git(&["commit", "-q", "-am", "by the user"]);
    bench.git(&["branch", "by-the-user"]);
    let script = "echo two > a.txt; echo x > .git/hooks/post-commit; git branch by-the-worker";
    run(&bench, ChildKind::Agent, guard, script).await;
    private.take_worker_changes().unwrap();
    let seen: Vec<_> = private
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
    let (private, _) = private.reject().unwrap();
    drop(private.discard());
    assert_eq!(bench.git(&["log", "--format=%s"]), "by the user\none\n");
    assert_eq!(
        bench.git(&["branch", "--format=%(refname:short)"]),
        "by-the-user\nmain\n"
    );
    assert_eq!(
        (bench.read("a.txt"), bench.read("b.txt")),
        ("one\n".into(), "the user's\n".into())
    );
    assert!(!bench.root().join(".git/hooks/post-commit").exists());
}

#[tokio::test]
async fn a_file_of_many_gigabytes_is_refused_and_never_read() {
    let bench = TestProject::with(&[("a.txt", "one\n")]);
    let Some(mut private) = private(&bench).await else {
        return;
    };
    let guard = private.worker_guard().unwrap();
    run(
        &bench,
        ChildKind::Agent,
        guard,
        "truncate -s 64G huge.bin; echo two > a.txt",
    )
    .await;
    let refused = private.take_worker_changes().unwrap_err().to_string();
    assert!(
        refused.contains("`huge.bin`") && refused.contains("max_file_bytes"),
        "{refused}"
    );
    drop(private.discard());
    assert_eq!(picture(&bench.root()).len(), 1);
}

#[tokio::test]
async fn a_view_that_nobody_closed_leaves_nothing_behind() {
    let bench = TestProject::with(&[("a.txt", "one\n")]);
    let before = picture(&bench.root());
    let Some(mut private) = private(&bench).await else {
        return;
    };
    private
        .snapshot_mut()
        .apply(
            &[Edit::Delete {
                path: "a.txt".into(),
            }],
            &|_| Ok(()),
        )
        .unwrap();
    drop(private);
    assert_eq!(picture(&bench.root()), before);
    assert!(bench.arm().await.changes().unwrap().is_empty());
}
