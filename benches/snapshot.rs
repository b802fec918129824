//! `snapshot`: takes, compares and restores a snapshot, relative to a plain walk of the same tree
//! in the same run. The cache is warm.

use std::path::Path;
use std::time::{Duration, Instant};

use supervisor_workspace::state::StateDir;
use supervisor_workspace::{Lease, Mode, Scope, SnapshotLimits, Workspace};
use tokio_util::sync::CancellationToken;

pub(crate) fn run() {
    println!(
        "files     MB | walk+stat | first arm |  next arm |   compare | restore 12 | ms, best of the rounds; in brackets × walk"
    );
    for (files, bytes) in [(100, 10_000), (10_000, 10_000), (100_000, 1_000)] {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("project");
        create_tree(&root, files, bytes);
        // Files modified within the last two seconds are read again because their times are not
        // trusted; wait so that this is not measured.
        std::thread::sleep(Duration::from_millis(2500));
        measure(dir.path(), &root, files, files * bytes / 1_000_000);
    }
}

/// Creates the tree: a hundred files per directory, all different.
fn create_tree(root: &Path, files: usize, bytes: usize) {
    for n in 0..files {
        let dir = root.join(format!("d{}/e{}", n / 1000, n / 100 % 10));
        if n % 100 == 0 {
            std::fs::create_dir_all(&dir).unwrap();
        }
        let mut contents = format!("{n}\n").repeat(bytes / 6 + 1).into_bytes();
        contents.truncate(bytes);
        std::fs::write(dir.join(format!("f{n}.txt")), contents).unwrap();
    }
}

fn measure(dir: &Path, root: &Path, files: usize, megabytes: usize) {
    const ROUNDS: usize = 5;
    let walk = best(ROUNDS, || plain_walk(root));
    let mut first = Duration::MAX;
    for round in 0..3 {
        let lease = lease(root, &dir.join(format!("state{round}")));
        let (took, armed) = timed(|| lease.take_snapshot().unwrap());
        first = first.min(took);
        armed.accept().unwrap();
        std::thread::sleep(Duration::from_millis(2500));
    }
    let mut lease = lease(root, &dir.join("state0"));
    let (mut next, mut compare, mut restore) = (Duration::MAX, Duration::MAX, Duration::MAX);
    for round in 0..ROUNDS {
        let (took, armed) = timed(|| lease.take_snapshot().unwrap());
        next = next.min(took);
        let (took, changes) = timed(|| armed.changes().unwrap());
        assert!(changes.is_empty());
        compare = compare.min(took);
        for n in 0..12 {
            let n = n * files / 12;
            let file = root.join(format!("d{}/e{}/f{n}.txt", n / 1000, n / 100 % 10));
            std::fs::write(file, format!("damage {round}")).unwrap();
        }
        let (took, (free, restored)) = timed(|| armed.restore(Scope::Everything).unwrap());
        assert_eq!(restored.paths.len(), 12);
        restore = restore.min(took);
        lease = free;
        // Restored files have a modification time up to a second in the future.
        std::thread::sleep(Duration::from_millis(3500));
    }
    let show = |took: Duration| {
        format!(
            "{:5.1} ({:.1})",
            took.as_secs_f64() * 1e3,
            took.as_secs_f64() / walk.as_secs_f64()
        )
    };
    println!(
        "{files:6} {megabytes:5} | {:9.1} | {} | {} | {} | {}",
        walk.as_secs_f64() * 1e3,
        show(first),
        show(next),
        show(compare),
        show(restore)
    );
}

fn lease(root: &Path, state: &Path) -> Lease {
    let workspace = Workspace::open(
        root,
        SnapshotLimits::default(),
        &StateDir::at(state.to_owned()).unwrap(),
    )
    .unwrap();
    let stop = CancellationToken::new();
    let run = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    run.block_on(workspace.lock(Mode::Exclusive, "a bench", Duration::ZERO, &stop))
        .unwrap()
}

/// The floor: the walk that ripgrep does, with a stat per file.
fn plain_walk(root: &Path) {
    let walk = ignore::WalkBuilder::new(root)
        .standard_filters(false)
        .threads(2)
        .build_parallel();
    walk.run(|| {
        Box::new(|entry| {
            std::hint::black_box(entry.unwrap().metadata().unwrap().len());
            ignore::WalkState::Continue
        })
    });
}

fn best(rounds: usize, mut run: impl FnMut()) -> Duration {
    (0..rounds)
        .map(|_| timed(&mut run).0)
        .min()
        .unwrap_or_default()
}

fn timed<T>(run: impl FnOnce() -> T) -> (Duration, T) {
    let began = Instant::now();
    let done = run();
    (began.elapsed(), done)
}
