//! The same damage done by a worker in a private view: the project keeps every byte, inode and time, and a rejected attempt
//! leaves the view as it was.

use std::cell::Cell;
use std::os::unix::fs::MetadataExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

use supervisor_process::{ChildKind, CommandSpec, Confinement, End, SandboxMode, SandboxRules};
use supervisor_workspace::{OverlayOpenError, OverlayProject};
use tokio_util::sync::CancellationToken;

use super::*;
use supervisor_test_support::process::{LONG, launcher};

/// Names the file with what the worker does.
const DAMAGE: &str = "SUPERVISOR_TEST_DAMAGE";

/// This test is the worker: started by the other through the same binary, inside the walls.
#[test]
fn acting_as_a_worker() {
    let Some(damage) = std::env::var_os(DAMAGE) else {
        return;
    };
    let damage: Vec<(Vec<u8>, Damage)> =
        serde_json::from_slice(&fs::read(damage).unwrap()).unwrap();
    let root = std::env::current_dir().unwrap();
    for (path, damage) in &damage {
        // What the walls forbid stays undone.
        let _ = catch_unwind(AssertUnwindSafe(|| hurt(&root, path, damage)));
    }
}

/// Inode, mode and time of every name.
fn stamps(root: &Path) -> BTreeMap<PathBuf, (u64, u32, i64, i64)> {
    let (mut found, mut dirs) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(dir) = dirs.pop() {
        for path in fs::read_dir(&dir)
            .unwrap()
            .flatten()
            .map(|entry| entry.path())
        {
            let meta = path.symlink_metadata().unwrap();
            found.insert(
                path.clone(),
                (meta.ino(), meta.mode(), meta.mtime(), meta.mtime_nsec()),
            );
            if meta.is_dir() {
                dirs.push(path);
            }
        }
    }
    found
}

/// What came of one tree: `None` if it cannot be seen through a view.
async fn damage_in_a_view(bench: &TestProject, case: &Case) -> Option<Result<(), String>> {
    let walled = launcher().with_rules(SandboxRules {
        mode: SandboxMode::Auto,
        ..SandboxRules::default()
    });
    let before = (stamps(&bench.root()), picture(&bench.root()));
    let same = |when: &str| match (stamps(&bench.root()), picture(&bench.root())) {
        now if now == before => Ok(()),
        now => Err(format!("{when}:\n{before:?}\n{now:?}")),
    };
    let mut private = match OverlayProject::open(bench.lease().await, &walled) {
        Ok(private) => private,
        Err(OverlayOpenError::Unavailable(..)) => return None,
        Err(OverlayOpenError::Snapshot(error)) => panic!("{error}"),
    };
    let damage = bench.dir.path().join("damage.json");
    fs::write(&damage, serde_json::to_vec(&case.damage).unwrap()).unwrap();
    let program = std::env::current_exe().unwrap().into_os_string();
    let arguments = ["--exact", "workspace::property::views::acting_as_a_worker"].map(Into::into);
    let mut spec = CommandSpec::new([program].into_iter().chain(arguments), bench.root());
    spec.env.extend([
        ("PATH".into(), std::env::var_os("PATH").unwrap()),
        (DAMAGE.into(), damage.into()),
    ]);
    (spec.limit, spec.guard) = (LONG, Some(private.worker_guard().unwrap()));
    spec.confine = Some(Confinement::new(ChildKind::Agent));
    let finished = walled.run(spec, &CancellationToken::new()).await;
    assert_eq!(finished.end, End::Exited(0), "{finished:?}");
    // What cannot be taken in is refused by name, and is no reason to touch anything either.
    let _refused = private.take_worker_changes();
    let seen = private.snapshot().changes().unwrap();
    let kept = same("after the work");
    let (private, _) = private.reject().unwrap();
    let left = private.snapshot().changes().unwrap();
    drop(private.discard());
    let kept = kept.and_then(|()| same("after the end"));
    Some(kept.and_then(|()| {
        if left.is_empty() {
            Ok(())
        } else {
            Err(format!("left in the view: {left:?} of {seen:?}"))
        }
    }))
}

#[test]
fn whatever_a_worker_does_in_its_view_the_project_is_the_same_to_the_inode() {
    let (served, refused) = (Cell::new(0), Cell::new(0));
    proptest!(cases(48, 1000), |(case in case())| {
        let bench = bench();
        build(&bench.root(), &case);
        match run(damage_in_a_view(&bench, &case)) {
            None => refused.set(refused.get() + 1),
            Some(kept) => {
                served.set(served.get() + 1);
                prop_assert!(kept.is_ok(), "{}", kept.unwrap_err());
            }
        }
    });
    if served.get() == 0 {
        return skip("there are no private views here");
    }
    assert!(
        served.get() > refused.get(),
        "{served:?} seen through a view, {refused:?} not"
    );
}
