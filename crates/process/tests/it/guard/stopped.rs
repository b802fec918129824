//! Shims that are stopped: before they are dismissed, as they leave, before they have read their request, and when the server dies.

use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, getpid, kill_process};
use supervisor_process::{End, Launcher};
use tokio_util::sync::CancellationToken;

use super::super::trees::{Leader, Shape, Tree, role_command};
use super::Project;
use supervisor_test_support::process::{LONG, eventually, launcher, sh, write_program};

/// The role of a shim that is stopped when it has let go of everything and is about to end.
pub(crate) fn act_as_shim_stopped_at_its_end() {
    super::act_as_shim();
    kill_process(getpid(), Signal::STOP).unwrap();
}

/// The shims that were started by a project's own launcher.
fn shims(dir: &Path) -> Vec<Pid> {
    let wanted = format!("SUPERVISOR_TEST_DIR={}", dir.display());
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
    let is_one = |pid: &Pid| {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ
            .split(|byte| *byte == 0)
            .any(|variable| variable == wanted.as_bytes())
    };
    pids.filter(is_one).collect()
}

#[test]
fn stopped_standby_shim_ends_with_the_call() {
    let dir = tempfile::tempdir().unwrap();
    let project = Project::new(dir.path());
    let guard = project.guard();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let watch = runtime.block_on(project.launcher().watch(&guard)).unwrap();
    eventually("the shim is on standby", || shims(dir.path()).len() == 1);
    kill_process(shims(dir.path())[0], Signal::STOP).unwrap();
    // Nothing runs after that, as in a server whose client leaves with the answer: no task can do the rest.
    runtime.block_on(watch.dismiss());
    drop(guard);
    eventually("it is gone", || shims(dir.path()).is_empty());
    project.becomes_free();
    assert!(
        project.trace().is_empty(),
        "nothing was open, so nothing was restored"
    );
}

#[test]
fn shim_stopped_at_exit_ends_with_the_call() {
    let dir = tempfile::tempdir().unwrap();
    let project = Project::new(dir.path());
    let launcher = project.launcher_with("ShimStoppedAtItsEnd");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let finished = runtime.block_on(launcher.run(sh("exit 3"), &CancellationToken::new()));
    assert_eq!(finished.end, End::Exited(3));
    eventually("the shim of the command is gone", || {
        shims(dir.path()).is_empty()
    });
    let guard = project.guard();
    let watch = runtime.block_on(launcher.watch(&guard)).unwrap();
    eventually("the shim is on standby", || shims(dir.path()).len() == 1);
    runtime.block_on(watch.dismiss());
    eventually("the shim that was on standby is gone", || {
        shims(dir.path()).is_empty()
    });
}

#[tokio::test]
async fn cancel_ends_stopped_shim_and_its_tree() {
    let tree = Tree::new(Shape::Setsid, Leader::Stays);
    let (launcher, spec, stop) = (launcher(), tree.spec(), CancellationToken::new());
    let stopped = stop.clone();
    let run = tokio::spawn(async move { launcher.run(spec, &stopped).await });
    while !tree.dir().join("ready").exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let shim = tree.shim();
    kill_process(shim, Signal::STOP).unwrap();
    stop.cancel();
    assert_eq!(run.await.unwrap().end, End::Cancelled);
    assert_eq!(tree.survivors(), 0);
    eventually("the shim is gone", || {
        std::fs::read_link(format!("/proc/{shim}/exe")).is_err()
    });
}

#[tokio::test]
async fn timeout_ends_shim_stopped_before_its_request() {
    let dir = tempfile::tempdir().unwrap();
    let (script, pid) = (dir.path().join("shim"), dir.path().join("pid"));
    write_program(
        &script,
        &format!("#!/bin/sh\necho $$ > {}\nkill -STOP $$\n", pid.display()),
    );
    let mut spec = sh("true");
    for i in 0..20 {
        spec.env
            .insert(format!("LONG_{i}").into(), "x".repeat(100_000).into());
    }
    spec.limit = Duration::from_millis(500);
    let (launcher, stop) = (Launcher::at(script), CancellationToken::new());
    let finished = tokio::time::timeout(LONG, launcher.run(spec, &stop))
        .await
        .expect("it is given up");
    assert_eq!(finished.end, End::TimedOut);
    launcher.wait_for_all().await;
    let pid = std::fs::read_to_string(pid).unwrap_or_default();
    eventually("the shim is gone", || {
        std::fs::read_link(format!("/proc/{}/exe", pid.trim())).is_err()
    });
}

#[test]
fn stopped_shims_finish_open_work_after_server_death() {
    let tree = Tree::new(Shape::Setsid, Leader::Stays);
    let project = Project::new(tree.dir());
    let mut server = role_command("GuardedServer", tree.dir()).spawn().unwrap();
    for shape in ["Setsid", "DeafLeader"] {
        eventually("the tree is complete", || {
            tree.dir().join(shape).join("ready").exists()
        });
    }
    let shims = children(server.id());
    assert_eq!(
        shims.len(),
        3,
        "one for each tree, and one that is on standby"
    );
    for shim in shims {
        kill_process(shim, Signal::STOP).unwrap();
    }
    server.kill().unwrap();
    server.wait().unwrap();
    eventually("the project is free", || !project.is_locked());
    assert_eq!(tree.survivors(), 0);
    assert_eq!(project.trace(), vec!["orphaned with 0 alive"; 3]);
}

fn children(parent: u32) -> Vec<Pid> {
    let threads = std::fs::read_dir(format!("/proc/{parent}/task"))
        .unwrap()
        .flatten();
    let lists = threads
        .map(|thread| std::fs::read_to_string(thread.path().join("children")).unwrap_or_default());
    let lists: Vec<String> = lists.collect();
    lists
        .iter()
        .flat_map(|list| list.split_whitespace())
        .filter_map(|pid| Pid::from_raw(pid.parse().ok()?))
        .collect()
}
