//! Shims that are stopped: before they are dismissed, as they leave, before they have their order, and when the server dies.

use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, getpid, kill_process};
use supervisor_process::{End, Launcher};
use tokio_util::sync::CancellationToken;

use super::super::shapes::{Leader, Shape, Tree, part_beside};
use super::super::{LONG, eventually, launcher, sh, write_program};
use super::Project;

/// The part of a shim that is stopped when it has let go of everything and is about to end.
pub(in crate::process) fn play_shim_stopped_at_its_end() {
    super::play_shim();
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
fn a_stopped_shim_that_stood_by_does_not_outlive_the_call() {
    let dir = tempfile::tempdir().unwrap();
    let project = Project::new(dir.path());
    let guard = project.guard();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let watch = runtime.block_on(project.launcher().watch(&guard)).unwrap();
    eventually("the shim stands by", || shims(dir.path()).len() == 1);
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
fn a_shim_that_is_stopped_as_it_leaves_does_not_outlive_the_call() {
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
    eventually("the shim stands by", || shims(dir.path()).len() == 1);
    runtime.block_on(watch.dismiss());
    eventually("the shim that stood by is gone", || {
        shims(dir.path()).is_empty()
    });
}

#[tokio::test]
async fn a_stopped_shim_and_its_tree_are_ended_when_the_call_is_cancelled() {
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
async fn a_shim_that_is_stopped_before_it_has_taken_a_long_order_is_ended_with_the_limit() {
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
fn shims_that_are_stopped_when_their_server_dies_finish_what_is_open() {
    let tree = Tree::new(Shape::Setsid, Leader::Stays);
    let project = Project::new(tree.dir());
    let mut server = part_beside("GuardedServer", tree.dir()).spawn().unwrap();
    for shape in ["Setsid", "DeafLeader"] {
        eventually("the tree stands", || {
            tree.dir().join(shape).join("ready").exists()
        });
    }
    let shims = children(server.id());
    assert_eq!(shims.len(), 3, "one for each tree, and one that stands by");
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
