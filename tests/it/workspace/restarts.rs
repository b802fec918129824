//! Repeated restarts: a project waits for recovery, and every server that begins it is killed.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, UNIX_EPOCH};

use serde_json::json;
use supervisor_workspace::state::StateDir;
use supervisor_workspace::{Mode, SnapshotLimits, Workspace, recover};
use tokio_util::sync::CancellationToken;

use crate::support::mcp_session::{Which, command, initialize};
use crate::support::role;
use supervisor_test_support::process::{eventually, say};
use supervisor_test_support::project::TestProject;

const DIR: &str = "SUPERVISOR_TEST_KILLED_CALL";
const DAMAGE: &str = "damage\n";
const FILES: usize = 300;
const ROUNDS: u64 = 20;

const TEST: &str = "workspace::restarts::killed_call_leaves_project_damaged";

#[test]
fn killed_call_leaves_project_damaged() {
    if role::is_asked_of(TEST) {
        damage_and_die();
    }
    let scenario = TestProject::with(&[("file", "contents\n")]);
    kill_a_call(&scenario);
    let left = files(&scenario.root());
    assert_eq!(left.values().collect::<Vec<_>>(), [DAMAGE, DAMAGE]);
    assert!(!journal(&scenario).contains("rolled_back"));
}

/// The call that is killed: it arms a project, damages everything in it, and dies.
fn damage_and_die() -> ! {
    let dir = PathBuf::from(std::env::var_os(DIR).expect("a project is named"));
    let run = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let state = StateDir::at(dir.join("state")).unwrap();
    let workspace =
        Workspace::open(&dir.join("project"), SnapshotLimits::default(), &state).unwrap();
    let stop = CancellationToken::new();
    let lease = run
        .block_on(workspace.lock(Mode::Exclusive, "a call", Duration::ZERO, &stop))
        .unwrap();
    let mut armed = lease.take_snapshot().unwrap();
    let _guard = armed.guard().unwrap();
    for entry in fs::read_dir(dir.join("project")).unwrap().flatten() {
        fs::write(entry.path(), DAMAGE).unwrap();
        fs::write(
            dir.join("project")
                .join(format!("added-{}", entry.file_name().display())),
            DAMAGE,
        )
        .unwrap();
    }
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    unreachable!("SIGKILL is not survived")
}

/// Leaves a project whose snapshot is open and whose files are all damaged.
pub(crate) fn kill_a_call(scenario: &TestProject) {
    let mut call = role::command(TEST);
    call.env(DIR, scenario.dir.path());
    let status = call.stdout(Stdio::null()).status().unwrap();
    assert_eq!(status.signal(), Some(9), "{status:?}");
}

pub(crate) fn files(root: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(root).unwrap().flatten();
    entries
        .map(|e| {
            (
                e.file_name().into_string().unwrap(),
                fs::read_to_string(e.path()).unwrap_or_default(),
            )
        })
        .collect()
}

/// A server that was asked for its tools, which is when it looks for what killed calls have left.
fn server(state: &Path) -> Child {
    let mut command = command(Which::Real);
    command
        .env("SUPERVISOR_STATE_DIR", state)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut server = command.spawn().unwrap();
    let said = [
        initialize("2025-11-25"),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
    ];
    let text: String = said.iter().map(|message| format!("{message}\n")).collect();
    server
        .stdin
        .as_mut()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    server
}

/// As if the call had died so long ago that whatever is written from now on counts as later.
fn long_ago(scenario: &TestProject) {
    let entries = fs::read_dir(scenario.root())
        .unwrap()
        .flatten()
        .map(|entry| entry.metadata().unwrap());
    let (seconds, nanoseconds) = entries
        .map(|meta| (meta.ctime(), meta.ctime_nsec()))
        .max()
        .unwrap();
    let last = UNIX_EPOCH
        + Duration::new(
            u64::try_from(seconds).unwrap(),
            u32::try_from(nanoseconds).unwrap(),
        );
    let project = fs::read_dir(scenario.state().path().join("projects"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let pulse = fs::File::options()
        .write(true)
        .open(project.join("pulse"))
        .unwrap();
    pulse.set_modified(last).unwrap();
    // File times move in steps.
    let probe = scenario.dir.path().join("probe");
    eventually("a later file time", || {
        fs::write(&probe, "x").unwrap();
        let meta = fs::metadata(&probe).unwrap();
        (meta.ctime(), meta.ctime_nsec()) > (seconds, nanoseconds)
    });
}

/// Files that are not as they were, by the length of what the killed call wrote.
fn damaged(root: &Path) -> usize {
    let lengths = fs::read_dir(root)
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.metadata().ok())
        .map(|meta| meta.len());
    lengths
        .filter(|length| *length == DAMAGE.len() as u64)
        .count()
}

fn journal(scenario: &TestProject) -> String {
    let project = fs::read_dir(scenario.state().path().join("projects"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    fs::read_to_string(project.path().join("journal")).unwrap()
}

#[tokio::test]
async fn killed_servers_leave_recovery_to_the_next() {
    let scenario = TestProject::new();
    for n in 0..FILES {
        scenario.write(&format!("file-{n}"), &format!("contents of {n}\n"));
    }
    let before = files(&scenario.root());
    kill_a_call(&scenario);
    assert_ne!(
        files(&scenario.root()),
        before,
        "nothing has to be put right"
    );
    let kept = scenario.root().join("file-7");
    long_ago(&scenario);
    fs::write(&kept, "written by the user after the crash\n").unwrap();
    let before: BTreeMap<_, _> = before
        .into_iter()
        .chain(
            files(&scenario.root())
                .into_iter()
                .filter(|f| f.0 == "file-7"),
        )
        .collect();

    // Every other pair is killed at any moment, of its start or later; the rest once a part is as it was.
    let (mut servers, mut cut_short) = (0, 0);
    for round in 0..ROUNDS {
        let left = damaged(&scenario.root());
        let mut pair = [
            server(scenario.state().path()),
            server(scenario.state().path()),
        ];
        servers += pair.len();
        if round % 2 == 0 {
            std::thread::sleep(Duration::from_millis(round * 37 % 90));
        } else {
            eventually("a part is restored", || {
                damaged(&scenario.root()) < left || journal(&scenario).contains("rolled_back")
            });
        }
        for server in &mut pair {
            server.kill().unwrap();
            server.wait().unwrap();
        }
        let still = damaged(&scenario.root());
        cut_short += usize::from(0 < still && still < left);
        if still == 0 {
            break;
        }
    }
    assert!(
        cut_short > 0,
        "no server was killed in the midst of its work"
    );

    let stop = CancellationToken::new();
    let next = scenario
        .open()
        .lock(
            Mode::Exclusive,
            "the next call",
            Duration::from_secs(60),
            &stop,
        )
        .await
        .unwrap();
    assert_eq!(files(&scenario.root()), before);
    drop(next);
    assert!(recover(&scenario.state()).unwrap().is_empty());
    assert_eq!(
        journal(&scenario).matches("rolled_back").count(),
        1,
        "closed exactly once"
    );
    say(&format!(
        "{servers} servers killed, {cut_short} times with a part of the project as it was"
    ));
}
