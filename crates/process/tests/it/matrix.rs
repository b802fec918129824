//! Every shape of a tree × every way to end it: nothing is left.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use supervisor_process::{End, FinishedProcess};
use tokio_util::sync::CancellationToken;

use super::trees::{Leader, SHAPES, Shape, Tree, role_command, spec};
use supervisor_test_support::process::{LONG, eventually, launcher, say};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Normal,
    Timeout,
    Cancel,
    /// The caller no longer waits for the answer.
    Dropped,
    ServerKilled,
}

const WAYS: [Way; 5] = [
    Way::Normal,
    Way::Timeout,
    Way::Cancel,
    Way::Dropped,
    Way::ServerKilled,
];

#[test]
fn every_end_removes_every_tree() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let row = &|shape: Shape| {
        WAYS.map(|way| {
            let tree = Tree::new(
                shape,
                if way == Way::Normal {
                    Leader::Leaves
                } else {
                    Leader::Stays
                },
            );
            let cell = match way {
                Way::ServerKilled => Ok(killed(&tree, shape)),
                _ => runtime.block_on(ended(&tree, shape, way)),
            };
            cell.map_err(|why| format!("{shape:?} {way:?}: {why}"))
        })
    };
    // All shapes at once: the machine is under load, as it will be.
    let rows = std::thread::scope(|scope| {
        let rows: Vec<_> = SHAPES
            .map(|shape| (shape, scope.spawn(move || row(shape))))
            .into_iter()
            .collect();
        rows.into_iter()
            .map(|(shape, row)| (shape, row.join().unwrap()))
            .collect::<Vec<_>>()
    });
    let mut table = format!("{:<16}", "ms to the end");
    WAYS.iter()
        .for_each(|way| table += &format!("{:>14}", format!("{way:?}")));
    let mut wrong = Vec::new();
    for (shape, cells) in rows {
        table += &format!("\n{:<16}", format!("{shape:?}"));
        for cell in cells {
            table += &format!(
                "{:>14}",
                cell.as_ref()
                    .map_or("WRONG".into(), |took| took.as_millis().to_string())
            );
            wrong.extend(cell.err());
        }
    }
    say(&table);
    assert!(wrong.is_empty(), "{table}\n{}", wrong.join("\n"));
}

/// The matrix would mean nothing if survivors were not seen.
#[test]
fn survivors_of_group_kill_are_detected() {
    use std::os::unix::process::CommandExt;
    for shape in [Shape::Setsid, Shape::Daemon, Shape::HoldsThePipe] {
        let tree = Tree::new(shape, Leader::Stays);
        let spec = tree.spec();
        let mut command = Command::new(&spec.argv[0]);
        command
            .args(&spec.argv[1..])
            .env_clear()
            .envs(&spec.env)
            .stdout(Stdio::null())
            .process_group(0);
        let mut leader = command.spawn().unwrap();
        tree.wait_until_ready();
        let group = rustix::process::Pid::from_child(&leader);
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
        leader.wait().unwrap();
        assert!(tree.survivors() > 0, "{shape:?}");
    }
}

/// By us; afterwards there must be no survivor at once. Returns the time from the request, or since the tree was complete.
async fn ended(tree: &Tree, shape: Shape, way: Way) -> Result<Duration, String> {
    let stop = CancellationToken::new();
    let mut spec = tree.spec();
    if way == Way::Timeout {
        // Long enough for the tree to be complete on a loaded machine; if it does not, that is only a smaller tree.
        spec.limit = Duration::from_secs(2);
    }
    let launcher = launcher();
    let run = tokio::spawn({
        let (launcher, stop) = (launcher.clone(), stop.clone());
        async move { launcher.run(spec, &stop).await }
    });
    let wait_until_ready = || {
        eventually("the tree is complete or has ended", || {
            tree.dir().join("ready").exists() || run.is_finished()
        })
    };
    tokio::task::block_in_place(wait_until_ready);
    let began = std::time::Instant::now();
    match way {
        Way::Cancel => stop.cancel(),
        Way::Dropped => run.abort(),
        Way::Normal | Way::Timeout | Way::ServerKilled => {}
    }
    let finished: Option<FinishedProcess> = tokio::time::timeout(LONG * 2, run)
        .await
        .expect("the run hangs")
        .ok();
    launcher.wait_for_all().await;
    let took = began.elapsed();
    let survivors = tree.survivors();
    let said = finished
        .as_ref()
        .map(|f| (f.end.clone(), f.leaked > 0, f.survivors));
    let right = match way {
        // What forks while it is counted can be missed by the count, which is a note; never by the end, which is the promise.
        Way::Normal if shape == Shape::Forker => matches!(said, Some((End::Exited(0), _, 0))),
        Way::Normal => said == Some((End::Exited(0), true, 0)),
        Way::Timeout => said == Some((End::TimedOut, false, 0)),
        Way::Cancel => said == Some((End::Cancelled, false, 0)),
        Way::Dropped | Way::ServerKilled => said.is_none(),
    };
    if survivors > 0 || !right {
        Err(format!("{survivors} survivors, {said:?}"))
    } else {
        Ok(took)
    }
}

/// A server of its own, killed with -9 while the tree runs. The shim is alone then, so the end is waited for.
fn killed(tree: &Tree, shape: Shape) -> Duration {
    let mut server = role_command(&format!("Server{shape:?}"), tree.dir())
        .spawn()
        .unwrap();
    tree.wait_until_ready();
    server.kill().unwrap();
    server.wait().unwrap();
    eventually("the orphaned tree has ended", || tree.survivors() == 0)
}

/// The role of a server: runs one tree until killed.
pub(super) fn act_as_server(shape: &str, dir: &Path) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let spec = spec(shape, Leader::Stays, dir, dir.to_str().unwrap());
    runtime.block_on(async { launcher().run(spec, &CancellationToken::new()).await });
}
