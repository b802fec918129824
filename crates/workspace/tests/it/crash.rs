//! Calls killed at every journal step by name, and at random while a tree of writers runs. Afterwards the project is
//! clean, no work is lost, no process survives, and every snapshot was closed exactly once.

mod overlays;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use supervisor_workspace::state::StateDir;
use supervisor_workspace::{
    Edit, FaultPoint, Mode, RecoveryOutcome, Scope, SnapshotLimits, Workspace, recover,
};
use tokio_util::sync::CancellationToken;

use supervisor_test_support::live_call::{self, Victim, kill, shims_of};
use supervisor_test_support::process::{eventually, say};
use supervisor_test_support::project::TestProject;

/// What a child acts as; the project and the state directory are below `DIR`.
pub(crate) const ROLE: &str = "SUPERVISOR_TEST_ROLE";
pub(crate) const DIR: &str = "SUPERVISOR_TEST_DIR";

const FILES: &[(&str, &str)] = &[
    ("a.txt", "a\n"),
    ("b.txt", "b\n"),
    ("c/d.txt", "d\n"),
    ("user.txt", "u\n"),
];

/// Acts in the role that the environment names, and exits. Does nothing in a usual test run, nor in a shim, which has
/// arguments.
pub(crate) fn act_in_role() {
    let (Ok(role), Some(dir)) = (std::env::var(ROLE), std::env::var_os(DIR)) else {
        return;
    };
    if std::env::args_os().len() > 1 {
        return;
    }
    let run = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let dir = PathBuf::from(dir);
    match role.as_str() {
        "script" => run.block_on(script(&dir)),
        "recover" => drop(recover(&state(&dir)).unwrap()),
        "live in an overlay" => run.block_on(overlays::live_in_an_overlay(&dir)),
        "damage" => super::property::overlays::act_as_worker(&dir),
        other => panic!("{other}"),
    }
    std::process::exit(0);
}

fn state(dir: &Path) -> StateDir {
    StateDir::at(dir.join("state")).unwrap()
}

pub(crate) fn role_command(dir: &Path, role: &str, fault: Option<FaultPoint>) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .env(ROLE, role)
        .env(DIR, dir)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    match fault {
        Some(point) => command.env("SUPERVISOR_FAULT", point.name()),
        None => command.env_remove("SUPERVISOR_FAULT"),
    };
    command
}

/// Comes past every point once.
async fn script(dir: &Path) {
    let project = dir.join("project");
    let workspace = Workspace::open(&project, SnapshotLimits::default(), &state(dir)).unwrap();
    let stop = CancellationToken::new();
    let lease = workspace
        .lock(Mode::Exclusive, "a script", Duration::from_secs(20), &stop)
        .await
        .unwrap();
    let mut armed = lease.take_snapshot().unwrap();
    fs::write(project.join("user.txt"), "USER EDIT\n").unwrap();
    fs::write(project.join("by-product"), "made by tests\n").unwrap();
    armed.mark_by_products().unwrap();
    armed.apply(&edits(), &|_| Ok(())).unwrap();
    let guard = armed.guard().unwrap();
    fs::write(project.join("c/d.txt"), "damage\n").unwrap();
    fs::write(project.join("added"), "damage\n").unwrap();
    drop(guard);
    let (lease, _) = armed.restore(Scope::Everything).unwrap();
    let mut armed = lease.take_snapshot().unwrap();
    armed.apply(&edits(), &|_| Ok(())).unwrap();
    armed.accept().unwrap();
}

fn edits() -> [Edit; 3] {
    [
        Edit::Replace {
            path: "a.txt".into(),
            contents: b"edited\n".to_vec(),
        },
        Edit::Delete {
            path: "b.txt".into(),
        },
        Edit::Create {
            path: "n/new.txt".into(),
            contents: b"new\n".to_vec(),
        },
    ]
}

fn files(root: &Path) -> BTreeMap<String, String> {
    let (mut found, mut dirs) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path
                .strip_prefix(root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            if path.is_dir() {
                found.insert(name, String::new());
                dirs.push(path);
            } else {
                found.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

/// How often a snapshot was armed and closed, from the journal's own lines.
fn opened_and_closed(dir: &Path) -> (usize, usize) {
    let (mut opened, mut closed) = (0, 0);
    for project in fs::read_dir(dir.join("state/projects")).unwrap() {
        let journal =
            fs::read_to_string(project.unwrap().path().join("journal")).unwrap_or_default();
        opened += journal.matches("\"state\":\"armed\"").count();
        closed += journal.matches("\"state\":\"rolled_back\"").count()
            + journal.matches("\"state\":\"accepted\"").count();
    }
    (opened, closed)
}

fn assert_clean(fixture: &TestProject, at: &str, accepted: bool) {
    let now = files(&fixture.root());
    let mut expected: BTreeMap<String, String> = FILES
        .iter()
        .map(|(p, t)| ((*p).into(), (*t).into()))
        .collect();
    expected.insert("c".into(), String::new());
    // The user's own edit either stays or is kept aside; which of them depends on how far the call had come.
    let user = now.get("user.txt").cloned().unwrap_or_default();
    let kept = fixture
        .kept()
        .iter()
        .any(|p| fs::read_to_string(p).is_ok_and(|t| t == "USER EDIT\n"));
    let never_made = matches!(at, "PackWritten" | "ManifestWritten" | "Armed");
    assert!(
        user == "USER EDIT\n" || kept || never_made,
        "{at}: the user's edit is lost"
    );
    assert!(user == "USER EDIT\n" || user == "u\n", "{at}: {user}");
    expected.insert("user.txt".into(), user);
    if now.get("by-product").is_some_and(|_| at == "ByProducts") {
        expected.insert("by-product".into(), "made by tests\n".into());
    }
    if accepted {
        expected.insert("a.txt".into(), "edited\n".into());
        expected.remove("b.txt");
        expected.insert("n".into(), String::new());
        expected.insert("n/new.txt".into(), "new\n".into());
    }
    assert_eq!(now, expected, "{at}");
    let (opened, closed) = opened_and_closed(fixture.dir.path());
    assert_eq!(
        opened, closed,
        "{at}: each armed snapshot is closed exactly once"
    );
}

#[test]
#[cfg_attr(not(debug_assertions), ignore = "needs debug assertions")]
fn crash_at_any_step_is_undone() {
    let mut hit = 0;
    for point in FaultPoint::ALL {
        let fixture = TestProject::with(FILES);
        let status = role_command(fixture.dir.path(), "script", Some(*point))
            .status()
            .unwrap();
        assert_eq!(
            status.signal(),
            Some(9),
            "the point {} was never reached",
            point.name()
        );
        hit += 1;
        for round in 0..2 {
            let found = recover(&fixture.state()).unwrap();
            assert!(
                round == 0 || found.is_empty(),
                "{}: the second recovery finds nothing",
                point.name()
            );
            for recovery in found {
                assert!(
                    matches!(recovery.outcome, RecoveryOutcome::Restored(_)),
                    "{}: {recovery:?}",
                    point.name()
                );
            }
            assert_clean(&fixture, point.name(), *point == FaultPoint::Accepted);
        }
    }
    say(&format!(
        "{hit} of {} fault points hit",
        FaultPoint::ALL.len()
    ));
    assert_eq!(hit, FaultPoint::ALL.len());
    // And without a fault it ends with the edits accepted.
    let fixture = TestProject::with(FILES);
    assert!(
        role_command(fixture.dir.path(), "script", None)
            .status()
            .unwrap()
            .success()
    );
    assert_clean(&fixture, "end", true);
}

#[test]
#[cfg_attr(not(debug_assertions), ignore = "needs debug assertions")]
fn crash_during_recovery_is_undone() {
    for point in [
        FaultPoint::KeptAside,
        FaultPoint::FirstRestored,
        FaultPoint::Restored,
        FaultPoint::RolledBack,
    ] {
        let fixture = TestProject::with(FILES);
        let status = role_command(fixture.dir.path(), "script", Some(FaultPoint::RollingBack))
            .status()
            .unwrap();
        assert_eq!(status.signal(), Some(9));
        for again in 0..3 {
            let status = role_command(fixture.dir.path(), "recover", Some(point))
                .status()
                .unwrap();
            assert!(
                status.signal() == Some(9) || again > 0,
                "{} was never reached",
                point.name()
            );
        }
        recover(&fixture.state()).unwrap();
        assert!(recover(&fixture.state()).unwrap().is_empty());
        assert_clean(&fixture, point.name(), false);
    }
}

#[tokio::test]
async fn call_killed_at_random_leaves_project_clean() {
    let rounds: u64 = if std::env::var_os("SUPERVISOR_TEST_LONG").is_some() {
        100
    } else {
        4
    };
    let (mut done, mut survivors) = (0, 0);
    for round in 0..rounds {
        for victim in [Victim::Server, Victim::Shim, Victim::Both] {
            let fixture = TestProject::with(FILES);
            let mut server = live_call::start(fixture.dir.path());
            std::thread::sleep(Duration::from_millis(round * 7 % 40));
            kill(&server, victim);
            // A new server waits for whoever is putting things right, and then sees a clean tree.
            let stop = CancellationToken::new();
            let workspace = fixture.open();
            let lease = workspace
                .lock(Mode::Exclusive, "next", Duration::from_secs(60), &stop)
                .await
                .unwrap();
            survivors += marked(fixture.dir.path());
            let expected: BTreeMap<String, String> = FILES
                .iter()
                .map(|(p, t)| ((*p).into(), (*t).into()))
                .chain([("c".into(), String::new())])
                .collect();
            for _ in 0..20 {
                assert_eq!(files(&fixture.root()), expected, "round {round}");
                std::thread::yield_now();
            }
            let (opened, closed) = opened_and_closed(fixture.dir.path());
            assert_eq!((opened, closed), (1, 1), "closed exactly once");
            drop(lease);
            let _ = server.kill();
            let _ = server.wait();
            done += 1;
        }
    }
    say(&format!("{done} calls killed, {survivors} survivors"));
    assert_eq!(survivors, 0);
}

/// Living processes that carry the mark of this call.
fn marked_processes(dir: &Path) -> Vec<u32> {
    let project = fs::read_dir(dir.join("state/projects"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let journal = fs::read_to_string(project.join("journal")).unwrap();
    let tag = journal
        .split("\"tag\":\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap()
        .to_owned();
    let is_marked = |p: &fs::DirEntry| {
        fs::read(p.path().join("environ"))
            .is_ok_and(|e| e.windows(tag.len()).any(|w| w == tag.as_bytes()))
    };
    let processes = fs::read_dir("/proc").unwrap().flatten().filter(is_marked);
    processes
        .filter_map(|p| p.file_name().to_str()?.parse().ok())
        .collect()
}

fn marked(dir: &Path) -> usize {
    marked_processes(dir).len()
}

/// Everybody is dead, the next start comes hours later, and the user has worked meanwhile.
#[test]
#[cfg_attr(not(debug_assertions), ignore = "needs debug assertions")]
fn changes_long_after_the_crash_stay() {
    let dir = crash_with_damage();
    let project = dir.path().join("project");
    // Hours later: the last sign of life is made that old.
    let entry = fs::read_dir(dir.path().join("state/projects"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let heartbeat = fs::File::options()
        .write(true)
        .open(entry.path().join("pulse"))
        .unwrap();
    heartbeat
        .set_modified(std::time::SystemTime::now() - Duration::from_secs(7200))
        .unwrap();
    fs::write(
        project.join("user.txt"),
        "written by the user after the crash\n",
    )
    .unwrap();
    fs::write(project.join("notes.txt"), "new from the user\n").unwrap();
    recover(&state(dir.path())).unwrap();
    assert_eq!(
        fs::read_to_string(project.join("user.txt")).unwrap(),
        "written by the user after the crash\n"
    );
    assert_eq!(
        fs::read_to_string(project.join("notes.txt")).unwrap(),
        "new from the user\n"
    );
}

/// The same with the next start at once: what the dead call did is undone.
#[test]
#[cfg_attr(not(debug_assertions), ignore = "needs debug assertions")]
fn changes_before_the_crash_are_undone() {
    let dir = crash_with_damage();
    recover(&state(dir.path())).unwrap();
    let project = dir.path().join("project");
    assert_eq!(fs::read_to_string(project.join("c/d.txt")).unwrap(), "d\n");
    assert!(!project.join("added").exists());
}

/// A project whose server was killed after its programs had written.
fn crash_with_damage() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in FILES {
        let whole = dir.path().join("project").join(path);
        fs::create_dir_all(whole.parent().unwrap()).unwrap();
        fs::write(whole, text).unwrap();
    }
    // At the first step of its restore, when all damage is done and none undone.
    let status = role_command(dir.path(), "script", Some(FaultPoint::RollingBack))
        .status()
        .unwrap();
    assert_eq!(status.signal(), Some(9));
    dir
}

/// A stopped server does not stop the programs that it has started.
#[test]
fn changes_during_a_stalled_server_are_undone() {
    let fixture = TestProject::with(FILES);
    let mut server = live_call::start(fixture.dir.path());
    let signal = |pid: rustix::process::Pid, signal| {
        let _ = rustix::process::kill_process(pid, signal);
    };
    signal(
        rustix::process::Pid::from_child(&server),
        rustix::process::Signal::STOP,
    );
    // Its last sign of life was an hour ago, and the programs write on.
    let entry = fs::read_dir(fixture.dir.path().join("state/projects"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let heartbeat = fs::File::options()
        .write(true)
        .open(entry.path().join("pulse"))
        .unwrap();
    let stopped = std::time::SystemTime::now();
    heartbeat
        .set_modified(stopped - Duration::from_secs(3600))
        .unwrap();
    eventually("the programs have written", || {
        fs::metadata(fixture.root().join("b.txt"))
            .is_ok_and(|meta| meta.modified().unwrap() > stopped)
    });
    eventually("there is a heartbeat", || {
        heartbeat.metadata().unwrap().modified().unwrap() > stopped
    });
    // Everything dies at once.
    let all = marked_processes(fixture.dir.path());
    assert!(all.len() > 3, "{all:?}");
    for pid in all.iter().copied().chain(shims_of(&server)) {
        signal(
            rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(),
            rustix::process::Signal::KILL,
        );
    }
    server.kill().unwrap();
    server.wait().unwrap();
    eventually("the programs have ended", || {
        marked(fixture.dir.path()) == 0
    });
    // And the user comes later than all of it.
    let promised = heartbeat.metadata().unwrap().modified().unwrap();
    eventually("the user's file is newer", || {
        fs::write(fixture.root().join("user.txt"), "by the user\n").unwrap();
        fs::metadata(fixture.root().join("user.txt"))
            .unwrap()
            .modified()
            .unwrap()
            > promised
    });
    recover(&fixture.state()).unwrap();
    let mut expected: BTreeMap<String, String> = FILES
        .iter()
        .map(|(p, t)| ((*p).into(), (*t).into()))
        .chain([("c".into(), String::new())])
        .collect();
    expected.insert("user.txt".into(), "by the user\n".into());
    assert_eq!(files(&fixture.root()), expected);
}
