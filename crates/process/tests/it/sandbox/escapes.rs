//! Ways out of the sandbox. Each row is a shell command, run as an agent and as a test command. Without a sandbox the
//! same command does harm, so every row can fail.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use supervisor_process::{ChildKind, SandboxLevel, SandboxMode};
use supervisor_test_support::process::sandbox_level;
use supervisor_test_support::programs::{require, run_tests_as_nobody};

use super::{SandboxFixture, require_sandbox};

/// What stops it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stops {
    /// Landlock and, beside it, read-only mounts.
    Both,
    /// Only mounts: what is no opening of a file passes Landlock.
    Mounts,
}

struct Row {
    way: &'static str,
    script: &'static str,
    stops: Stops,
    /// Does harm without a sandbox. Some ways exist only inside of one.
    harms_without: bool,
}

const fn row(way: &'static str, stops: Stops, script: &'static str) -> Row {
    Row {
        way,
        script,
        stops,
        harms_without: true,
    }
}

const fn only_inside(way: &'static str, script: &'static str) -> Row {
    Row {
        way,
        script,
        stops: Stops::Both,
        harms_without: false,
    }
}

const TABLE: &[Row] = &[
    row("absolute path", Stops::Both, "echo x > \"$OUT/victim\""),
    row("dots", Stops::Both, "echo x > ../outside/victim"),
    row("truncation", Stops::Both, ": > \"$OUT/victim\""),
    row("symbolic link", Stops::Both, "ln -s \"$OUT/victim\" link && echo x > link"),
    row("link to a directory", Stops::Both, "ln -s \"$OUT\" dir && echo x > dir/victim"),
    row("hard link", Stops::Both, "ln \"$OUT/victim\" hard && echo x > hard"),
    row("rename", Stops::Both, "mv \"$OUT/victim\" ./taken"),
    row("deletion", Stops::Both, "rm -f \"$OUT/victim\""),
    row("dot file", Stops::Both, "echo x >> \"$HOME/.profile\""),
    row("new file at home", Stops::Both, "echo x > \"$HOME/.new\""),
    row("through a process's root", Stops::Both, "echo x > /proc/$STRANGER/root\"$OUT\"/victim"),
    row("secret file", Stops::Both, "cat \"$HOME/.ssh/id\""),
    row("secret by another way", Stops::Both, "ln -s \"$HOME/.ssh\" s; cat s/id"),
    row("environment of another process", Stops::Both, "tr '\\0' '\\n' < /proc/$STRANGER/environ"),
    row("killing another process", Stops::Both, "kill -9 $STRANGER"),
    row(
        "stopping another process",
        Stops::Both,
        "kill -STOP $STRANGER; sleep 0.3; grep -q 'T (stopped)' /proc/$STRANGER/status && echo canary-stopped; kill -CONT $STRANGER",
    ),
    row(
        "memory of another process",
        Stops::Both,
        "dd if=/proc/$STRANGER/mem of=/dev/null bs=1 count=0 2>/dev/null && : < /proc/$STRANGER/mem && echo canary-memory",
    ),
    row(
        "descriptors of another process",
        Stops::Both,
        "ls /proc/$STRANGER/fd/ > /dev/null 2>&1 && : < /proc/$STRANGER/fd/0 && echo canary-descriptor",
    ),
    row("environment through a task", Stops::Both, "tr '\\0' '\\n' < /proc/$STRANGER/task/$STRANGER/environ"),
    row("appending", Stops::Both, "echo x >> \"$OUT/victim\""),
    row("a new directory outside", Stops::Both, "mkdir \"$OUT/new\" && rm \"$OUT/victim\""),
    row("exchange with a file outside", Stops::Both, "echo x > mine && mv -f mine \"$OUT/victim\""),
    row("owner of a file outside", Stops::Mounts, "chown 12345 \"$OUT/victim\" || chmod 600 \"$OUT/victim\""),
    row("mode of a file outside", Stops::Mounts, "chmod 777 \"$OUT/victim\""),
    row("time of a file outside", Stops::Mounts, "touch -d 2001-01-01 \"$OUT/victim\""),
    row(
        "attribute of a file outside",
        Stops::Mounts,
        "/usr/bin/python3 -I -c 'import os; os.setxattr(os.environ[\"OUT\"] + \"/victim\", \"user.x\", b\"x\")'",
    ),
    row(
        "tracing another process",
        Stops::Both,
        "/usr/bin/python3 -I -c 'import ctypes, os; ptrace = ctypes.CDLL(None).ptrace; pid = int(os.environ[\"STRANGER\"])
if ptrace(16, pid, 0, 0) == 0: os.waitpid(pid, 0x40000000); ptrace(17, pid, 0, 0); print(\"canary-traced\")'",
    ),
    row(
        "abstract socket",
        Stops::Both,
        "/usr/bin/python3 -I -c 'import os, socket; s = socket.socket(socket.AF_UNIX); s.connect(\"\\0\" + os.environ[\"OUT\"]); print(\"canary-abstract\")'",
    ),
    row(
        "socket in a hidden directory",
        Stops::Mounts,
        "/usr/bin/python3 -I -c 'import os, socket; s = socket.socket(socket.AF_UNIX); s.connect(os.environ[\"HOME\"] + \"/.ssh/agent\"); print(\"canary-agent\")'",
    ),
    only_inside("unmounting a mask", "umount \"$HOME/.ssh\"; umount -l \"$HOME/.ssh\"; cat \"$HOME/.ssh/id\""),
    only_inside("remounting", "mount -o remount,rw /; mount -o remount,rw,bind /; echo x > \"$OUT/victim\""),
    only_inside(
        "namespaces of its own",
        "unshare -rm sh -c 'umount -l \"$HOME/.ssh\"; mount -o remount,rw,bind /; cat \"$HOME/.ssh/id\"; echo x > \"$OUT/victim\"'",
    ),
    only_inside(
        "another process's namespace",
        "nsenter -t $STRANGER -m sh -c 'cat \"$HOME/.ssh/id\"; echo x > \"$OUT/victim\"'",
    ),
    only_inside("a root of its own", "mkdir r; chroot / sh -c 'echo x > \"$OUT/victim\"'"),
    only_inside("a device of its own", "mknod disk b 8 0 && cat disk > /dev/null && echo canary-device"),
    only_inside("another process's priority", "renice -n -5 $STRANGER && echo canary-priority"),
    only_inside("a daemon", "setsid sh -c 'echo x > \"$OUT/victim\"' & wait"),
];

/// What of the outside is not as it was; nothing if the sandbox held.
async fn harm(fixture: &mut SandboxFixture, kind: ChildKind, row: &Row) -> Option<String> {
    let victim = |fixture: &SandboxFixture| {
        fs::metadata(fixture.at("outside/victim"))
            .map(|m| (m.ino(), m.mode(), m.mtime(), m.uid()))
            .ok()
    };
    let before = victim(fixture);
    let finished = fixture.run(fixture.spec(kind, row.script)).await;
    let said = finished.stdout.text();
    if said.contains("canary") {
        return Some(format!("it read a secret: {said}"));
    }
    if victim(fixture) != before || fixture.text("outside/victim") != "kept" {
        return Some(String::from("the file outside is not as it was"));
    }
    let mut value = [0; 8];
    if rustix::fs::getxattr(fixture.at("outside/victim"), "user.x", &mut value).is_ok() {
        return Some(String::from(
            "the file outside has an attribute that it had not",
        ));
    }
    if fixture.text("home/.profile") != "kept" || fixture.at("home/.new").exists() {
        return Some(String::from("home is not as it was"));
    }
    (!fixture.stranger_is_alive()).then(|| String::from("another process was killed"))
}

#[tokio::test]
#[ignore = "needs /usr/bin/python3 and Landlock or user namespaces"]
async fn no_row_escapes_the_sandbox() {
    require(&["/usr/bin/python3"]);
    require_sandbox().await;
    let level = sandbox_level().await;
    let mut out = Vec::new();
    for kind in [ChildKind::Tests, ChildKind::Agent] {
        for row in TABLE
            .iter()
            .filter(|row| level == SandboxLevel::Namespaces || row.stops == Stops::Both)
        {
            let mut fixture = SandboxFixture::new(SandboxMode::Auto);
            if let Some(harm) = harm(&mut fixture, kind, row).await {
                out.push(format!("{kind:?}, {}: {harm}", row.way));
            }
        }
    }
    assert!(out.is_empty(), "\n{}", out.join("\n"));
}

/// The superuser's sandbox is built differently, so the tables are run by another user too.
#[test]
#[ignore = "needs root, setpriv and /usr/bin/python3"]
fn no_row_escapes_for_an_ordinary_user() {
    run_tests_as_nobody(&[
        "sandbox::escapes::no_row_escapes_the_sandbox",
        "sandbox::escapes::every_row_does_harm_without_a_sandbox",
    ]);
}

#[tokio::test]
#[ignore = "needs /usr/bin/python3"]
async fn every_row_does_harm_without_a_sandbox() {
    require(&["/usr/bin/python3"]);
    let mut held = Vec::new();
    for row in TABLE.iter().filter(|row| row.harms_without) {
        let mut fixture = SandboxFixture::new(SandboxMode::Off);
        if harm(&mut fixture, ChildKind::Agent, row).await.is_none() {
            held.push(row.way);
        }
    }
    assert!(held.is_empty(), "these rows could not fail: {held:?}");
}
