//! The same damage done by a worker in an overlay: the project keeps every byte, inode and time, and a rejected attempt
//! leaves the overlay as it was.

use std::cell::Cell;
use std::os::unix::fs::MetadataExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

use supervisor_process::{ChildKind, CommandSpec, Confinement, End, SandboxMode, SandboxRules};
use supervisor_workspace::{OverlayOpenError, OverlayProject};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::crash::{DIR, ROLE};
use supervisor_test_support::process::{LONG, launcher};

/// Applies the damage that is written down in `dir`, in the current directory, which is a project in a sandbox.
pub(crate) fn act_as_worker(dir: &Path) {
    let damage: Vec<(Vec<u8>, Damage)> =
        serde_json::from_slice(&fs::read(dir.join(DAMAGE)).unwrap()).unwrap();
    let root = std::env::current_dir().unwrap();
    for (path, damage) in &damage {
        // What the sandbox forbids is not done.
        let _ = catch_unwind(AssertUnwindSafe(|| apply_damage(&root, path, damage)));
    }
}

const DAMAGE: &str = "damage.json";

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

/// What came of one tree: `None` if it cannot be opened in an overlay.
async fn damage_in_an_overlay(fixture: &TestProject, case: &Case) -> Option<Result<(), String>> {
    let sandboxed = launcher().with_rules(SandboxRules {
        mode: SandboxMode::Auto,
        ..SandboxRules::default()
    });
    let before = (stamps(&fixture.root()), picture(&fixture.root()));
    let same = |when: &str| match (stamps(&fixture.root()), picture(&fixture.root())) {
        now if now == before => Ok(()),
        now => Err(format!("{when}:\n{before:?}\n{now:?}")),
    };
    let mut overlay = match OverlayProject::open(fixture.lease().await, &sandboxed) {
        Ok(overlay) => overlay,
        Err(OverlayOpenError::Unavailable(..)) => return None,
        Err(OverlayOpenError::Snapshot(error)) => panic!("{error}"),
    };
    let damage = serde_json::to_vec(&case.damage).unwrap();
    fs::write(fixture.dir.path().join(DAMAGE), damage).unwrap();
    let program = std::env::current_exe().unwrap();
    let mut spec = CommandSpec::new([program], fixture.root());
    spec.env.extend([
        ("PATH".into(), std::env::var_os("PATH").unwrap()),
        (ROLE.into(), "damage".into()),
        (DIR.into(), fixture.dir.path().into()),
    ]);
    (spec.limit, spec.guard) = (LONG, Some(overlay.worker_guard().unwrap()));
    spec.confine = Some(Confinement::new(ChildKind::Agent));
    let finished = sandboxed.run(spec, &CancellationToken::new()).await;
    assert_eq!(finished.end, End::Exited(0), "{finished:?}");
    // What cannot be taken in is refused by name, and is no reason to touch anything either.
    let _refused = overlay.take_worker_changes();
    let seen = overlay.snapshot().changes().unwrap();
    let kept = same("after the work");
    let (overlay, _) = overlay.reject().unwrap();
    let left = overlay.snapshot().changes().unwrap();
    drop(overlay.discard());
    let kept = kept.and_then(|()| same("after the end"));
    Some(kept.and_then(|()| {
        if left.is_empty() {
            Ok(())
        } else {
            Err(format!("left in the overlay: {left:?} of {seen:?}"))
        }
    }))
}

#[test]
#[ignore = "needs user namespaces"]
fn work_in_an_overlay_leaves_the_project_unchanged() {
    let (served, refused) = (Cell::new(0), Cell::new(0));
    proptest!(cases(48, 1000), |(case in case())| {
        let fixture = test_project();
        build(&fixture.root(), &case);
        match run(damage_in_an_overlay(&fixture, &case)) {
            None => refused.set(refused.get() + 1),
            Some(kept) => {
                served.set(served.get() + 1);
                prop_assert!(kept.is_ok(), "{}", kept.unwrap_err());
            }
        }
    });
    assert!(
        served.get() > refused.get(),
        "{served:?} opened in an overlay, {refused:?} not"
    );
}
