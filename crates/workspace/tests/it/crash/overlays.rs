//! Killed while a worker is at work in a private view: the project was never touched, and no process of the call is left.

use supervisor_process::{ChildKind, Confinement, SandboxMode, SandboxRules};
use supervisor_workspace::{OverlayOpenError, OverlayProject};

use super::*;

/// In the environment of every process of the tree.
const MARK: &str = "SUPERVISOR_TEST_VIEW";

/// The same tree of writers; it cannot say outside that it has begun.
const WRITERS: &str =
    "for n in 1 2; do (while :; do echo dirt$n > a.txt; echo $n > added$n; done) & done
setsid sh -c 'while :; do echo dirt > c/d.txt; done' &
while :; do echo dirt > b.txt; done";

pub(super) async fn live_in_a_view(dir: &Path) {
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
    let mut private = match OverlayProject::open(lease, &launcher) {
        Ok(private) => private,
        Err(OverlayOpenError::Unavailable(_, why)) => {
            return fs::write(dir.join("no-view"), why.to_string()).unwrap();
        }
        Err(OverlayOpenError::Snapshot(error)) => panic!("{error}"),
    };
    let mut spec = CommandSpec::new(["sh", "-c", WRITERS], &project);
    spec.env.extend([
        ("PATH".into(), std::env::var_os("PATH").unwrap()),
        (MARK.into(), dir.into()),
    ]);
    spec.guard = Some(private.worker_guard().unwrap());
    spec.confine = Some(Confinement::new(ChildKind::Agent));
    launcher.run(spec, &stop).await;
    private.reject().unwrap();
}

fn at_work(dir: &Path) -> usize {
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
async fn a_call_in_a_view_killed_at_random_leaves_no_trace_and_no_survivors() {
    let rounds: u64 = if std::env::var_os("SUPERVISOR_TEST_LONG").is_some() {
        100
    } else {
        4
    };
    let mut done = 0;
    for round in 0..rounds {
        for victim in [Victim::Server, Victim::Shim, Victim::Both] {
            let bench = TestProject::with(FILES);
            let before = files(&bench.root());
            let mut server = act(bench.dir.path(), "live in a view", None)
                .spawn()
                .unwrap();
            wait_for(|| {
                at_work(bench.dir.path()) >= 4 || bench.dir.path().join("no-view").exists()
            });
            if let Ok(why) = fs::read_to_string(bench.dir.path().join("no-view")) {
                server.wait().unwrap();
                return skip(&why);
            }
            std::thread::sleep(Duration::from_millis(round * 7 % 40));
            kill(&mut server, &victim);
            let stop = CancellationToken::new();
            let lease = bench
                .open()
                .lock(Mode::Exclusive, "next", Duration::from_secs(60), &stop)
                .await
                .unwrap();
            assert_eq!(files(&bench.root()), before, "round {round}");
            assert_eq!(
                at_work(bench.dir.path()),
                0,
                "round {round}: processes of the killed call live on"
            );
            drop(lease);
            let _ = server.kill();
            let _ = server.wait();
            done += 1;
        }
    }
    tell(&format!("{done} calls in views killed"));
}

/// A server whose program has started three more; `None` where there are no views, which is said.
fn start_in_a_view(bench: &TestProject) -> Option<std::process::Child> {
    let mut server = act(bench.dir.path(), "live in a view", None)
        .spawn()
        .unwrap();
    wait_for(|| at_work(bench.dir.path()) >= 4 || bench.dir.path().join("no-view").exists());
    let Ok(why) = fs::read_to_string(bench.dir.path().join("no-view")) else {
        return Some(server);
    };
    server.wait().unwrap();
    skip(&why);
    None
}

#[tokio::test]
async fn the_program_of_a_shim_ends_with_it_and_what_that_left_behind_with_the_next_look() {
    let bench = TestProject::with(FILES);
    let Some(mut server) = start_in_a_view(&bench) else {
        return;
    };
    kill(&mut server, &Victim::Both);
    server.wait().unwrap();
    wait_for(|| at_work(bench.dir.path()) < 4);
    assert_eq!(at_work(bench.dir.path()), 3, "what the program had started");
    assert!(
        recover(&bench.state()).unwrap().is_empty(),
        "nothing had to be undone"
    );
    assert_eq!(at_work(bench.dir.path()), 0);
}

#[tokio::test]
async fn shim_and_holder_that_are_stopped_when_their_server_dies_are_woken_and_leave() {
    let bench = TestProject::with(FILES);
    let Some(mut server) = start_in_a_view(&bench) else {
        return;
    };
    let below = shims_of(&server);
    for pid in &below {
        let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    }
    kill(&mut server, &Victim::Server);
    server.wait().unwrap();
    wait_for(|| {
        below
            .iter()
            .all(|pid| fs::read_link(format!("/proc/{pid}/exe")).is_err())
    });
    assert_eq!(at_work(bench.dir.path()), 0);
}
