//! Killed anywhere: at every journal step by name, and at random with a tree of writers at work. Afterwards nothing is dirty,
//! nothing is lost, nobody survives, and every armed snapshot was closed exactly once.

mod views;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use supervisor_process::{CommandSpec, Launcher};
use supervisor_workspace::state::StateDir;
use supervisor_workspace::{
    Edit, FaultPoint, Mode, RecoveryOutcome, Scope, SnapshotLimits, Workspace, recover,
};
use tokio_util::sync::CancellationToken;

use supervisor_test_support::project::TestProject;

/// Tells the child what to act as; the project and the state directory lie below the directory named.
const ACT: &str = "SUPERVISOR_TEST_ACT";
const DIR: &str = "SUPERVISOR_TEST_DIR";

const FILES: &[(&str, &str)] = &[
    ("a.txt", "a\n"),
    ("b.txt", "b\n"),
    ("c/d.txt", "d\n"),
    ("user.txt", "u\n"),
];

/// This test is the child: started by the others through the same binary, it does nothing by itself.
#[test]
fn acting_as_a_server() {
    let (Ok(act), Some(dir)) = (std::env::var(ACT), std::env::var_os(DIR)) else {
        return;
    };
    let run = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let dir = PathBuf::from(dir);
    match act.as_str() {
        "script" => run.block_on(script(&dir)),
        "recover" => drop(recover(&state(&dir)).unwrap()),
        "live" => run.block_on(live(&dir)),
        "live in a view" => run.block_on(views::live_in_a_view(&dir)),
        other => panic!("{other}"),
    }
}

fn state(dir: &Path) -> StateDir {
    StateDir::at(dir.join("state")).unwrap()
}

pub(crate) fn act(dir: &Path, what: &str, fault: Option<FaultPoint>) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([
        "--exact",
        "workspace::crash::acting_as_a_server",
        "--test-threads=1",
    ]);
    command
        .env(ACT, what)
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

fn assert_clean(bench: &TestProject, at: &str, accepted: bool) {
    let now = files(&bench.root());
    let mut expected: BTreeMap<String, String> = FILES
        .iter()
        .map(|(p, t)| ((*p).into(), (*t).into()))
        .collect();
    expected.insert("c".into(), String::new());
    // The user's own edit either stays or is kept aside; which of them depends on how far the call had come.
    let user = now.get("user.txt").cloned().unwrap_or_default();
    let kept = bench
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
    let (opened, closed) = opened_and_closed(bench.dir.path());
    assert_eq!(
        opened, closed,
        "{at}: each armed snapshot is closed exactly once"
    );
}

pub(crate) fn tell(text: &str) {
    #[allow(clippy::print_stdout, reason = "counts are part of what is shown")]
    {
        println!("{text}");
    }
}

#[test]
fn a_crash_at_any_step_leaves_the_project_as_it_was() {
    if !cfg!(debug_assertions) {
        return skip("fault points are only compiled in with debug assertions");
    }
    let mut hit = 0;
    for point in FaultPoint::ALL {
        let bench = TestProject::with(FILES);
        let status = act(bench.dir.path(), "script", Some(*point))
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
            let found = recover(&bench.state()).unwrap();
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
            assert_clean(&bench, point.name(), *point == FaultPoint::Accepted);
        }
    }
    tell(&format!(
        "{hit} of {} fault points hit",
        FaultPoint::ALL.len()
    ));
    assert_eq!(hit, FaultPoint::ALL.len());
    // And without a fault it ends with the edits accepted.
    let bench = TestProject::with(FILES);
    assert!(
        act(bench.dir.path(), "script", None)
            .status()
            .unwrap()
            .success()
    );
    assert_clean(&bench, "end", true);
}

#[test]
fn a_crash_in_the_midst_of_a_recovery_is_just_another_one() {
    if !cfg!(debug_assertions) {
        return skip("fault points are only compiled in with debug assertions");
    }
    for point in [
        FaultPoint::KeptAside,
        FaultPoint::FirstRestored,
        FaultPoint::Restored,
        FaultPoint::RolledBack,
    ] {
        let bench = TestProject::with(FILES);
        let status = act(bench.dir.path(), "script", Some(FaultPoint::RollingBack))
            .status()
            .unwrap();
        assert_eq!(status.signal(), Some(9));
        for again in 0..3 {
            let status = act(bench.dir.path(), "recover", Some(point))
                .status()
                .unwrap();
            assert!(
                status.signal() == Some(9) || again > 0,
                "{} was never reached",
                point.name()
            );
        }
        recover(&bench.state()).unwrap();
        assert!(recover(&bench.state()).unwrap().is_empty());
        assert_clean(&bench, point.name(), false);
    }
}

/// A call with a tree of writers: plain, in the background, and in a session of its own.
const WRITERS: &str =
    "for n in 1 2; do (while :; do echo dirt$n > a.txt; echo $n > added$n; done) & done
setsid sh -c 'while :; do echo dirt > c/d.txt; done' &
echo > ../started
while :; do echo dirt > b.txt; done";

async fn live(dir: &Path) {
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
    let mut armed = lease.take_snapshot().unwrap();
    let mut spec = CommandSpec::new(["sh", "-c", WRITERS], &project);
    spec.env
        .insert("PATH".into(), std::env::var_os("PATH").unwrap());
    spec.guard = Some(armed.guard().unwrap());
    Launcher::this_program()
        .run(spec, &stop)
        .await;
    armed.restore(Scope::Everything).unwrap();
}

enum Victim {
    Server,
    Shim,
    Both,
}

#[tokio::test]
async fn a_call_killed_at_random_leaves_a_clean_project_and_no_survivors() {
    let rounds: u64 = if std::env::var_os("SUPERVISOR_TEST_LONG").is_some() {
        100
    } else {
        4
    };
    let (mut done, mut survivors) = (0, 0);
    for round in 0..rounds {
        for victim in [Victim::Server, Victim::Shim, Victim::Both] {
            let bench = TestProject::with(FILES);
            let mut server = act(bench.dir.path(), "live", None).spawn().unwrap();
            wait_for(|| bench.dir.path().join("started").exists());
            std::thread::sleep(Duration::from_millis(round * 7 % 40));
            kill(&mut server, &victim);
            // A new server waits for whoever is putting things right, and then sees a clean tree.
            let stop = CancellationToken::new();
            let workspace = bench.open();
            let lease = workspace
                .lock(Mode::Exclusive, "next", Duration::from_secs(60), &stop)
                .await
                .unwrap();
            survivors += marked(bench.dir.path());
            let expected: BTreeMap<String, String> = FILES
                .iter()
                .map(|(p, t)| ((*p).into(), (*t).into()))
                .chain([("c".into(), String::new())])
                .collect();
            for _ in 0..20 {
                assert_eq!(files(&bench.root()), expected, "round {round}");
                std::thread::yield_now();
            }
            let (opened, closed) = opened_and_closed(bench.dir.path());
            assert_eq!((opened, closed), (1, 1), "closed exactly once");
            drop(lease);
            let _ = server.kill();
            let _ = server.wait();
            done += 1;
        }
    }
    tell(&format!("{done} calls killed, {survivors} survivors"));
    assert_eq!(survivors, 0);
}

fn shims_of(server: &Child) -> Vec<u32> {
    let children =
        fs::read_to_string(format!("/proc/{0}/task/{0}/children", server.id())).unwrap_or_default();
    let mut all: Vec<u32> = children
        .split_whitespace()
        .filter_map(|p| p.parse().ok())
        .collect();
    for task in fs::read_dir(format!("/proc/{}/task", server.id()))
        .into_iter()
        .flatten()
        .flatten()
    {
        let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        all.extend(
            children
                .split_whitespace()
                .filter_map(|p| p.parse::<u32>().ok()),
        );
    }
    all
}

fn kill(server: &mut Child, victim: &Victim) {
    let pids = match victim {
        Victim::Server => vec![server.id()],
        Victim::Shim => shims_of(server),
        Victim::Both => [shims_of(server), vec![server.id()]].concat(),
    };
    assert!(!pids.is_empty(), "nobody to kill");
    for pid in pids {
        let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
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

pub(crate) fn wait_for(mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "it never came");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[tokio::test]
async fn recover_says_for_each_project_what_came_of_it() {
    let bench = TestProject::with(FILES);
    let by_hand = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_supervisor"));
        command
            .arg("recover")
            .arg("--state-dir")
            .arg(bench.dir.path().join("state"));
        let output = command.output().unwrap();
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    };
    fs::create_dir(bench.dir.path().join("state")).unwrap();
    let (code, said) = by_hand();
    assert_eq!(
        (code, said.as_str()),
        (Some(0), "ok    nothing to recover\n")
    );

    let mut server = act(bench.dir.path(), "live", None).spawn().unwrap();
    wait_for(|| bench.dir.path().join("started").exists());
    let (code, said) = by_hand();
    assert!(
        code == Some(1) && said.starts_with("busy  "),
        "{code:?} {said}"
    );

    kill(&mut server, &Victim::Both);
    server.wait().unwrap();
    let (code, said) = by_hand();
    assert!(
        code == Some(0) && said.starts_with("ok    ") && said.contains("restored"),
        "{code:?} {said}"
    );
    assert!(
        said.contains(bench.root().to_str().unwrap()) && said.contains("rejected"),
        "{said}"
    );
    assert!(
        said.contains("programs of the call had outlived it"),
        "{said}"
    );
    assert_eq!(by_hand().1, "ok    nothing to recover\n");
}

/// Everybody is dead, the next start comes hours later, and the user has worked meanwhile.
#[test]
fn what_was_done_long_after_the_crash_stays() {
    if !cfg!(debug_assertions) {
        return skip("fault points are only compiled in with debug assertions");
    }
    let dir = crash_with_damage();
    let project = dir.path().join("project");
    // Hours later: the last sign of life is made that old.
    let entry = fs::read_dir(dir.path().join("state/projects"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let pulse = fs::File::options()
        .write(true)
        .open(entry.path().join("pulse"))
        .unwrap();
    pulse
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
fn what_was_done_before_the_crash_is_undone() {
    if !cfg!(debug_assertions) {
        return skip("fault points are only compiled in with debug assertions");
    }
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
    let status = act(dir.path(), "script", Some(FaultPoint::RollingBack))
        .status()
        .unwrap();
    assert_eq!(status.signal(), Some(9));
    dir
}

/// The process that holds the server up, whatever it is, does not hold up the programs that the server has started.
#[test]
fn what_programs_did_while_the_server_gave_no_sign_of_life_is_undone_and_what_came_after_them_stays()
 {
    let bench = TestProject::with(FILES);
    let mut server = act(bench.dir.path(), "live", None).spawn().unwrap();
    wait_for(|| bench.dir.path().join("started").exists());
    let signal = |pid: rustix::process::Pid, signal| {
        let _ = rustix::process::kill_process(pid, signal);
    };
    signal(
        rustix::process::Pid::from_child(&server),
        rustix::process::Signal::STOP,
    );
    // Its last sign of life was an hour ago, and the programs write on.
    let entry = fs::read_dir(bench.dir.path().join("state/projects"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let pulse = fs::File::options()
        .write(true)
        .open(entry.path().join("pulse"))
        .unwrap();
    let stopped = std::time::SystemTime::now();
    pulse
        .set_modified(stopped - Duration::from_secs(3600))
        .unwrap();
    wait_for(|| {
        fs::metadata(bench.root().join("b.txt"))
            .is_ok_and(|meta| meta.modified().unwrap() > stopped)
    });
    wait_for(|| pulse.metadata().unwrap().modified().unwrap() > stopped);
    // Everything dies at once.
    let all = marked_processes(bench.dir.path());
    assert!(all.len() > 3, "{all:?}");
    for pid in all.iter().copied().chain(shims_of(&server)) {
        signal(
            rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(),
            rustix::process::Signal::KILL,
        );
    }
    server.kill().unwrap();
    server.wait().unwrap();
    wait_for(|| marked(bench.dir.path()) == 0);
    // And the user comes later than all of it.
    let promised = pulse.metadata().unwrap().modified().unwrap();
    wait_for(|| {
        fs::write(bench.root().join("user.txt"), "by the user\n").unwrap();
        fs::metadata(bench.root().join("user.txt"))
            .unwrap()
            .modified()
            .unwrap()
            > promised
    });
    recover(&bench.state()).unwrap();
    let mut expected: BTreeMap<String, String> = FILES
        .iter()
        .map(|(p, t)| ((*p).into(), (*t).into()))
        .chain([("c".into(), String::new())])
        .collect();
    expected.insert("user.txt".into(), "by the user\n".into());
    assert_eq!(files(&bench.root()), expected);
}
