//! Calls killed while a worker runs in an overlay: the project was never touched, and no process of the call survives.

use supervisor_process::{ChildKind, Confinement, SandboxMode, SandboxRules};
use supervisor_workspace::{OverlayOpenError, OverlayProject};

use std::process::Child;

use supervisor_process::{CommandSpec, Launcher};

use super::*;

/// In the environment of every process of the tree.
const MARK: &str = "SUPERVISOR_TEST_OVERLAY";

/// The same tree of writers; it cannot say outside that it has begun.
const WRITERS: &str =
    "for n in 1 2; do (while :; do echo dirt$n > a.txt; echo $n > added$n; done) & done
setsid sh -c 'while :; do echo dirt > c/d.txt; done' &
while :; do echo dirt > b.txt; done";

pub(super) async fn live_in_an_overlay(dir: &Path) {
    let project = dir.join("project");
    let workspace = Workspace::open(&project, SnapshotLimits::default(), &state(dir)).unwrap();
    let stop = CancellationToken::new();
    let lease = workspace
        .lock(
            Mode::Exclusive,
            "a live call",
            Duration::from_secs(20),
            &stop,
        )
        .await
        .unwrap();
    let rules = SandboxRules {
        mode: SandboxMode::Auto,
        ..SandboxRules::default()
    };
    let launcher = Launcher::this_program().with_rules(rules);
    let mut overlay = match OverlayProject::open(lease, &launcher) {
        Ok(overlay) => overlay,
        Err(OverlayOpenError::Unavailable(_, why)) => {
            return fs::write(dir.join("no-overlay"), why.to_string()).unwrap();
        }
        Err(OverlayOpenError::Snapshot(error)) => panic!("{error}"),
    };
    let mut spec = CommandSpec::new(["sh", "-c", WRITERS], &project);
    spec.env.extend([
        ("PATH".into(), std::env::var_os("PATH").unwrap()),
        (MARK.into(), dir.into()),
    ]);
    spec.guard = Some(overlay.worker_guard().unwrap());
    spec.confine = Some(Confinement::new(ChildKind::Agent));
    launcher.run(spec, &stop).await;
    overlay.reject().unwrap();
}

fn running(dir: &Path) -> usize {
    let mark = format!("{MARK}={}", dir.display());
    let is_marked = |process: &fs::DirEntry| {
        fs::read(process.path().join("environ"))
            .is_ok_and(|env| env.split(|b| *b == 0).any(|v| v == mark.as_bytes()))
    };
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(is_marked)
        .count()
}

#[tokio::test]
#[ignore = "needs user namespaces"]
async fn overlay_call_killed_at_random_leaves_no_trace() {
    let rounds: u64 = if std::env::var_os("SUPERVISOR_TEST_LONG").is_some() {
        100
    } else {
        4
    };
    let mut done = 0;
    for round in 0..rounds {
        for victim in [Victim::Server, Victim::Shim, Victim::Both] {
            let fixture = TestProject::with(FILES);
            let before = files(&fixture.root());
            let mut server = start_in_an_overlay(&fixture);
            std::thread::sleep(Duration::from_millis(round * 7 % 40));
            kill(&server, victim);
            let stop = CancellationToken::new();
            let lease = fixture
                .open()
                .lock(Mode::Exclusive, "next", Duration::from_secs(60), &stop)
                .await
                .unwrap();
            assert_eq!(files(&fixture.root()), before, "round {round}");
            assert_eq!(
                running(fixture.dir.path()),
                0,
                "round {round}: processes of the killed call live on"
            );
            drop(lease);
            let _ = server.kill();
            let _ = server.wait();
            done += 1;
        }
    }
    say(&format!("{done} calls in overlays killed"));
}

/// A server whose program has started three more.
fn start_in_an_overlay(fixture: &TestProject) -> Child {
    let dir = fixture.dir.path();
    let server = role_command(dir, "live in an overlay", None)
        .spawn()
        .unwrap();
    eventually("the programs of the call run", || {
        running(dir) >= 4 || dir.join("no-overlay").exists()
    });
    let unavailable = fs::read_to_string(dir.join("no-overlay"));
    assert!(unavailable.is_err(), "no overlay: {unavailable:?}");
    server
}

#[tokio::test]
#[ignore = "needs user namespaces"]
async fn recover_ends_programs_left_in_an_overlay() {
    let fixture = TestProject::with(FILES);
    let mut server = start_in_an_overlay(&fixture);
    kill(&server, Victim::Both);
    server.wait().unwrap();
    eventually("the program has ended", || running(fixture.dir.path()) < 4);
    assert_eq!(
        running(fixture.dir.path()),
        3,
        "what the program had started"
    );
    assert!(
        recover(&fixture.state()).unwrap().is_empty(),
        "nothing had to be undone"
    );
    assert_eq!(running(fixture.dir.path()), 0);
}

#[tokio::test]
#[ignore = "needs user namespaces"]
async fn stopped_shim_and_holder_end_with_their_server() {
    let fixture = TestProject::with(FILES);
    let mut server = start_in_an_overlay(&fixture);
    let below = shims_of(&server);
    for pid in &below {
        let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    }
    kill(&server, Victim::Server);
    server.wait().unwrap();
    eventually("shim and holder have ended", || {
        below
            .iter()
            .all(|pid| fs::read_link(format!("/proc/{pid}/exe")).is_err())
    });
    assert_eq!(running(fixture.dir.path()), 0);
}
