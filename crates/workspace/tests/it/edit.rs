//! Edits that came as data: all or none, never outside, never through a link.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use supervisor_workspace::{Edit, EditError, Scope};

use supervisor_test_support::project::TestProject;

fn create(path: &str) -> Edit {
    Edit::Create {
        path: path.into(),
        contents: b"new\n".to_vec(),
    }
}

fn replace(path: &str) -> Edit {
    Edit::Replace {
        path: path.into(),
        contents: b"new\n".to_vec(),
    }
}

fn anything(_: &Path) -> Result<(), String> {
    Ok(())
}

#[tokio::test]
async fn edits_are_applied_all_or_none() {
    let fixture = TestProject::with(&[
        ("a.txt", "one\ntwo\n"),
        ("b.txt", "x\n"),
        ("run.sh", "#!/bin/sh\n"),
    ]);
    fs::set_permissions(
        fixture.root().join("run.sh"),
        fs::Permissions::from_mode(0o750),
    )
    .unwrap();
    let mut armed = fixture.arm().await;
    let change = |search: &str| Edit::Change {
        path: "a.txt".into(),
        search: search.into(),
        replace: "2\n".into(),
    };
    let refused = armed.apply(
        &[
            create("new/c.txt"),
            Edit::Delete {
                path: "b.txt".into(),
            },
            change("three\n"),
        ],
        &anything,
    );
    let error = refused.unwrap_err();
    assert!(
        matches!(&error, EditError::NoMatch { path, .. } if path == "a.txt"),
        "{error}"
    );
    assert!(armed.changes().unwrap().is_empty() && !fixture.root().join("new").exists());

    let applied = armed
        .apply(
            &[
                create("new/c.txt"),
                Edit::Delete {
                    path: "b.txt".into(),
                },
                change("two\n"),
                replace("run.sh"),
            ],
            &anything,
        )
        .unwrap();
    assert_eq!(applied.paths.len(), 4);
    assert_eq!(
        (
            fixture.read("a.txt").as_str(),
            fixture.read("new/c.txt").as_str()
        ),
        ("one\n2\n", "new\n")
    );
    assert_eq!(
        fs::metadata(fixture.root().join("run.sh"))
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o750
    );
    let error = armed
        .apply(&[replace("a.txt")], &|_| Err("it is a test".into()))
        .unwrap_err();
    assert!(error.to_string().contains("it is a test"), "{error}");
    armed.restore(Scope::Applied).unwrap();
    assert_eq!(
        (
            fixture.read("a.txt").as_str(),
            fixture.read("b.txt").as_str()
        ),
        ("one\ntwo\n", "x\n")
    );
    assert!(!fixture.root().join("new").exists());
}

#[tokio::test]
async fn no_path_writes_outside_the_project() {
    let fixture = TestProject::with(&[
        ("d/in.txt", "in\n"),
        (".gitignore", "secret/\n"),
        ("node_modules/m.js", "m"),
    ]);
    let outside = fixture.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("o.txt"), "o\n").unwrap();
    symlink(&outside, fixture.root().join("link")).unwrap();
    symlink(outside.join("o.txt"), fixture.root().join("file-link")).unwrap();
    fs::hard_link(outside.join("o.txt"), fixture.root().join("hard")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        fixture.root().join("fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let mut armed = fixture.arm().await;
    let absolute = outside.join("o.txt").to_str().unwrap().to_owned();
    let paths = [
        "../outside/o.txt",
        "d/../../outside/o.txt",
        absolute.as_str(),
        "link/o.txt",
        "link/new.txt",
        "file-link",
        "hard",
        "fifo",
        "d",
        "d/in.txt/below",
        "d\0/x",
        "",
        "/",
        ".git/config",
        ".GIT/config",
        "d/.Git/hooks/x",
        ".claude/settings.json",
        ".MCP.json",
        ".vscode/tasks.json",
        "secret/x",
        "node_modules/m.js",
        "node_modules/new.js",
        "..",
        "d/..",
        "~/x/../../../o",
    ];
    for path in paths {
        for edit in [
            create(path),
            replace(path),
            Edit::Delete { path: path.into() },
        ] {
            let refused = armed.apply(&[create("fine.txt"), edit], &anything);
            assert!(refused.is_err(), "{path:?} was accepted");
        }
    }
    assert!(armed.changes().unwrap().is_empty(), "{:?}", armed.changes());
    assert_eq!(fs::read_to_string(outside.join("o.txt")).unwrap(), "o\n");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
}

#[tokio::test]
async fn directory_swapped_for_a_link_is_refused() {
    let fixture = TestProject::with(&[("d/f.txt", "in\n")]);
    let outside = fixture.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("f.txt"), "o\n").unwrap();
    let mut armed = fixture.arm().await;
    let (done, root) = (AtomicBool::new(false), fixture.root());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let _ = fs::rename(root.join("d"), root.join("real"));
                let _ = symlink(&outside, root.join("d"));
                std::thread::yield_now();
                let _ = fs::remove_file(root.join("d"));
                let _ = fs::rename(root.join("real"), root.join("d"));
            }
        });
        for n in 0..300 {
            let contents = format!("{n}\n").into_bytes();
            let _ = armed.apply(
                &[Edit::Replace {
                    path: "d/f.txt".into(),
                    contents,
                }],
                &anything,
            );
            let _ = armed.apply(
                &[Edit::Create {
                    path: format!("d/new{n}"),
                    contents: vec![],
                }],
                &anything,
            );
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(fs::read_to_string(outside.join("f.txt")).unwrap(), "o\n");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
}

#[tokio::test]
async fn every_write_has_a_later_second() {
    let fixture = TestProject::with(&[("a.txt", "0\n")]);
    let mut armed = fixture.arm().await;
    let second = || fs::metadata(fixture.root().join("a.txt")).unwrap().mtime();
    let mut last = second();
    for n in 0..4 {
        let edit = if n == 2 {
            Edit::Delete {
                path: "a.txt".into(),
            }
        } else {
            replace_or_create(&fixture, n)
        };
        armed.apply(&[edit], &anything).unwrap();
        if n != 2 {
            assert!(second() > last, "write {n}");
            last = second();
        }
    }
    let (lease, _) = armed.restore(Scope::Applied).unwrap();
    assert!(second() > last, "the restore too");
    last = second();
    let mut armed = lease.take_snapshot().unwrap();
    armed.apply(&[replace("a.txt")], &anything).unwrap();
    assert!(second() > last, "and the next tier's edit");
}

fn replace_or_create(fixture: &TestProject, n: u8) -> Edit {
    let (path, contents) = ("a.txt".to_owned(), format!("w{n}\n").into_bytes());
    if fixture.root().join("a.txt").exists() {
        Edit::Replace { path, contents }
    } else {
        Edit::Create { path, contents }
    }
}

#[tokio::test]
async fn concurrent_writes_by_others_are_kept() {
    let fixture = TestProject::with(&[("a.txt", "a\n"), ("b.txt", "b\n")]);
    let mut armed = fixture.arm().await;
    // Before our edit, and on top of it.
    fixture.write("a.txt", "theirs, before\n");
    armed
        .apply(&[replace("a.txt"), replace("b.txt")], &anything)
        .unwrap();
    fixture.write("b.txt", "theirs, after\n");
    let (_, restored) = armed.restore(Scope::Applied).unwrap();
    assert_eq!(
        (
            fixture.read("a.txt").as_str(),
            fixture.read("b.txt").as_str()
        ),
        ("a\n", "b\n")
    );
    assert_eq!(restored.overwritten, [Path::new("b.txt")]);
    let kept: Vec<_> = fixture
        .kept()
        .iter()
        .map(|p| fs::read_to_string(p).unwrap())
        .collect();
    assert!(
        kept.contains(&"theirs, before\n".into()) && kept.contains(&"theirs, after\n".into()),
        "{kept:?}"
    );
}
