//! A server in the middle of a call: a process with a project whose programs keep writing, for tests that kill it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use supervisor_process::{CommandSpec, Launcher};
use supervisor_workspace::state::StateDir;
use supervisor_workspace::{Mode, Scope, SnapshotLimits, Workspace};
use tokio_util::sync::CancellationToken;

use crate::process::eventually;

/// Names the directory with `project` and `state`.
const DIR: &str = "SUPERVISOR_TEST_LIVE_CALL";

/// Writers of three kinds: plain, in the background, and in a session of their own.
const WRITERS: &str =
    "for n in 1 2; do (while :; do echo dirt$n > a.txt; echo $n > added$n; done) & done
setsid sh -c 'while :; do echo dirt > c/d.txt; done' &
echo > ../started
while :; do echo dirt > b.txt; done";

/// Starts the call and waits until its programs write.
pub fn start(dir: &Path) -> Child {
    let server = Command::new(std::env::current_exe().unwrap())
        .env(DIR, dir)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the programs of the call run", || {
        dir.join("started").exists()
    });
    server
}

/// The shim of a call inherits the variable and has an argument.
pub(crate) fn act_if_asked() {
    let Some(dir) = std::env::var_os(DIR).map(PathBuf::from) else {
        return;
    };
    if std::env::args_os().len() > 1 {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(run(&dir));
    std::process::exit(0);
}

async fn run(dir: &Path) {
    let project = dir.join("project");
    let state = StateDir::at(dir.join("state")).unwrap();
    let workspace = Workspace::open(&project, SnapshotLimits::default(), &state).unwrap();
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
    let mut snapshot = lease.take_snapshot().unwrap();
    let mut spec = CommandSpec::new(["sh", "-c", WRITERS], &project);
    spec.env
        .insert("PATH".into(), std::env::var_os("PATH").unwrap());
    spec.guard = Some(snapshot.guard().unwrap());
    Launcher::this_program().run(spec, &stop).await;
    snapshot.restore(Scope::Everything).unwrap();
}

#[derive(Clone, Copy)]
pub enum Victim {
    Server,
    Shim,
    Both,
}

/// Kills the server of a call, its shims, or both.
pub fn kill(server: &Child, victim: Victim) {
    let pids = match victim {
        Victim::Server => vec![server.id()],
        Victim::Shim => shims_of(server),
        Victim::Both => [shims_of(server), vec![server.id()]].concat(),
    };
    assert!(!pids.is_empty(), "no process to kill");
    for pid in pids {
        let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

/// The children of a server.
pub fn shims_of(server: &Child) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{}/task", server.id()))
        .into_iter()
        .flatten()
        .flatten();
    let children =
        tasks.map(|task| fs::read_to_string(task.path().join("children")).unwrap_or_default());
    children
        .flat_map(|list| {
            list.split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<u32>>()
        })
        .collect()
}
