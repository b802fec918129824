//! An armed project: its locks, and who finishes what when the server is gone. The shim here is this test binary, so that
//! its `on_orphaned` can leave a trace: a line in the ticket with the number of processes still alive.

pub(super) mod stopped;

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::process::{Pid, Signal, kill_process};
use supervisor_process::{End, Launcher, ProcessTag, ProjectGuard, StartError, sweep_tagged};
use tokio_util::sync::CancellationToken;

use super::trees::{Leader, Shape, Tree, marked, role_command, spec, test_program};
use supervisor_test_support::process::{eventually, launcher, sh, write_program};

/// A project as far as processes are concerned: two lock files and a ticket.
struct Project {
    dir: PathBuf,
}

impl Project {
    fn new(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
        }
    }

    fn open(&self, name: &str) -> File {
        File::options()
            .create(true)
            .append(true)
            .open(self.dir.join(name))
            .unwrap()
    }

    fn guard(&self) -> ProjectGuard {
        let project = self.open("project.lock");
        project.try_lock().unwrap();
        ProjectGuard {
            project_lock: Arc::new(project.into()),
            tree_lock: Arc::new(self.open("tree.lock").into()),
            recovery_dir: Some(self.dir.join("ticket")),
            tag: ProcessTag::random(),
            project: None,
        }
    }

    fn is_locked(&self) -> bool {
        match self.open("project.lock").try_lock() {
            Ok(()) => false,
            Err(TryLockError::WouldBlock) => true,
            Err(TryLockError::Error(e)) => panic!("{e}"),
        }
    }

    /// Nobody is left to hold it. Not at once: a program that another test is just starting has a copy of every
    /// descriptor until it runs.
    fn becomes_free(&self) {
        eventually("the project is free", || !self.is_locked());
    }

    /// One line per call of `on_orphaned`.
    fn trace(&self) -> Vec<String> {
        let ticket = std::fs::read_to_string(self.dir.join("ticket")).unwrap_or_default();
        ticket.lines().map(str::to_owned).collect()
    }

    fn launcher(&self) -> Launcher {
        self.launcher_with("Shim")
    }

    /// Launches with this binary as the shim; a script stands between, because a shim is started with one fixed argument.
    fn launcher_with(&self, role: &str) -> Launcher {
        let script = self.dir.join("shim");
        if !script.exists() {
            let text = format!(
                "#!/bin/sh\nexport SUPERVISOR_TEST_ROLE={role} SUPERVISOR_TEST_DIR={}\nexec {}\n",
                self.dir.display(),
                test_program().display()
            );
            write_program(&script, &text);
        }
        Launcher::at(script)
    }
}

/// The role of the shim.
pub(super) fn act_as_shim() {
    let on_orphaned = |ticket: &Path| {
        use std::io::Write;
        let dir = ticket.parent().unwrap();
        let mut trace = File::options()
            .create(true)
            .append(true)
            .open(ticket)
            .unwrap();
        writeln!(
            trace,
            "orphaned with {} alive",
            marked(dir.to_str().unwrap()).len()
        )
        .unwrap();
    };
    supervisor_process::shim::run(|_| {}, on_orphaned).unwrap();
}

/// The role of a server with two trees in one project, one of which takes its time to end.
pub(super) fn act_as_server(dir: &Path) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let project = Project::new(dir);
    let (guard, launcher, stop) = (
        project.guard(),
        project.launcher(),
        CancellationToken::new(),
    );
    let run = |shape: &str| {
        let place = dir.join(shape);
        std::fs::create_dir(&place).unwrap();
        let mut spec = spec(shape, Leader::Stays, &place, dir.to_str().unwrap());
        spec.guard = Some(guard.clone());
        launcher.run(spec, &stop)
    };
    let _ = runtime.block_on(async {
        let _watch = launcher.watch(&guard).await.unwrap();
        tokio::join!(run("Setsid"), run("DeafLeader"))
    });
}

#[test]
fn project_stays_locked_until_orphans_are_finished() {
    let tree = Tree::new(Shape::Setsid, Leader::Stays);
    let project = Project::new(tree.dir());
    let mut server = role_command("GuardedServer", tree.dir()).spawn().unwrap();
    for shape in ["Setsid", "DeafLeader"] {
        eventually("the tree is complete", || {
            tree.dir().join(shape).join("ready").exists()
        });
    }
    assert!(project.is_locked() && project.trace().is_empty());
    server.kill().unwrap();
    server.wait().unwrap();
    eventually("the project is free", || {
        // Looked at before the lock: what is seen then was so while it was still held, or is so for good.
        let (alive, trace) = (tree.survivors(), project.trace().len());
        let free = !project.is_locked();
        assert!(!free || tree.survivors() == 0, "free with {alive} alive");
        assert!(
            !free || project.trace().len() == 3,
            "free after {trace} of 3 shims were done"
        );
        free
    });
    assert_eq!(project.trace(), vec!["orphaned with 0 alive"; 3]);
}

#[tokio::test]
async fn living_server_restores_its_project_itself() {
    let tree = Tree::new(Shape::Setsid, Leader::Stays);
    let project = Project::new(tree.dir());
    let (guard, launcher) = (project.guard(), project.launcher());
    let mut guarded = sh("exit 3");
    guarded.guard = Some(guard.clone());
    let stop = CancellationToken::new();
    assert_eq!(
        launcher.run(guarded.clone(), &stop).await.end,
        End::Exited(3)
    );
    let watch = launcher.watch(&guard).await.unwrap();
    // A caller who no longer waits.
    let mut spec = tree.spec();
    spec.guard = Some(guard.clone());
    let run = tokio::spawn({
        let launcher = launcher.clone();
        async move { launcher.run(spec, &CancellationToken::new()).await }
    });
    let standing = tree.dir().join("ready");
    while !standing.exists() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let alone = project.open("tree.lock");
    assert!(
        matches!(alone.try_lock(), Err(TryLockError::WouldBlock)),
        "a tree has its share"
    );
    run.abort();
    tokio::task::spawn_blocking(move || alone.lock().unwrap())
        .await
        .unwrap();
    assert_eq!(
        tree.survivors(),
        0,
        "the tree lock alone means that nothing runs"
    );
    watch.dismiss().await;
    launcher.wait_for_all().await;
    assert_eq!(
        project.trace(),
        Vec::<String>::new(),
        "nobody else restored"
    );

    assert!(project.is_locked());
    drop((guard, guarded));
    project.becomes_free();
}

#[tokio::test]
async fn dropped_watch_finishes_open_work() {
    let tree = Tree::new(Shape::DeafLeader, Leader::Stays);
    let project = Project::new(tree.dir());
    let (guard, launcher) = (project.guard(), project.launcher());
    let watch = launcher.watch(&guard).await.unwrap();
    let mut spec = tree.spec();
    spec.guard = Some(guard.clone());
    let run = tokio::spawn({
        let launcher = launcher.clone();
        async move { launcher.run(spec, &CancellationToken::new()).await }
    });
    while !tree.dir().join("ready").exists() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    drop(guard);
    drop(watch);
    run.abort();
    launcher.wait_for_all().await;
    assert_eq!(project.trace(), ["orphaned with 0 alive"]);
    project.becomes_free();
}

#[tokio::test]
async fn no_tree_starts_during_restore() {
    let dir = tempfile::tempdir().unwrap();
    let project = Project::new(dir.path());
    let guard = project.guard();
    let alone = project.open("tree.lock");
    alone.try_lock().unwrap();
    let mut spec = sh("true");
    spec.guard = Some(guard);
    let stop = CancellationToken::new();
    let end = project.launcher().run(spec.clone(), &stop).await.end;
    assert!(
        matches!(&end, End::CouldNotStart(StartError::Other { why, .. }) if why.contains("restored")),
        "{end:?}"
    );
    drop(alone);
    eventually("nobody has the trees", || {
        project.open("tree.lock").try_lock_shared().is_ok()
    });
    assert_eq!(
        project.launcher().run(spec, &stop).await.end,
        End::Exited(0)
    );
}

#[tokio::test]
async fn tree_of_killed_shim_is_found_by_tag() {
    let tree = Tree::new(Shape::Setsid, Leader::Stays);
    let launcher = launcher();
    let spec = tree.spec();
    let run = tokio::spawn(async move { launcher.run(spec, &CancellationToken::new()).await });
    while !tree.dir().join("ready").exists() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    kill_process(tree.shim(), Signal::KILL).unwrap();
    assert_eq!(run.await.unwrap().end, End::Signalled(9));
    assert_eq!(tree.survivors(), 0);
}

/// Such as what a shim has forked and what has not become the command yet, which has the shim's locks.
#[tokio::test(flavor = "multi_thread")]
async fn untagged_tree_is_found_by_session() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pid");
    let spec = sh(&format!(
        "echo $$ > {}; exec env -i sleep 1000",
        file.display()
    ));
    let launcher = launcher();
    let run = tokio::spawn(async move { launcher.run(spec, &CancellationToken::new()).await });
    let command = || {
        std::fs::read_to_string(&file)
            .ok()?
            .trim()
            .parse()
            .ok()
            .and_then(Pid::from_raw)
    };
    let seen = |name: &str| std::fs::read_to_string(format!("/proc/{}/{name}", command()?)).ok();
    eventually("the command has no environment", || {
        seen("comm").is_some_and(|name| name == "sleep\n")
            && seen("environ").is_some_and(|all| all.is_empty())
    });
    let stat = seen("stat").unwrap();
    let shim = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| Pid::from_raw(rest.split(' ').nth(1)?.parse().ok()?));
    kill_process(shim.unwrap(), Signal::KILL).unwrap();
    assert_eq!(run.await.unwrap().end, End::Signalled(9));
    let is_over = |stat: String| stat.contains(") Z ") || stat.contains(") X ");
    eventually("the command is gone", || seen("stat").is_none_or(is_over));
}

#[test]
fn next_start_finds_trees_by_tag() {
    let tree = Tree::new(Shape::Daemon, Leader::Stays);
    // The same tree without a shim.
    let tag = ProcessTag::random();
    let spec = tree.spec();
    let mut command = std::process::Command::new(&spec.argv[0]);
    command
        .args(&spec.argv[1..])
        .env_clear()
        .envs(&spec.env)
        .env(supervisor_process::TAG_VARIABLE, tag.as_str());
    let mut leader = command.stdout(std::process::Stdio::null()).spawn().unwrap();
    tree.wait_until_ready();
    assert!(sweep_tagged(&tag) >= 2, "leader and daemon");
    leader.wait().unwrap();
    assert_eq!((tree.survivors(), sweep_tagged(&tag)), (0, 0));
}
