//! Process trees of awkward shapes. The test program starts itself again in a role to build them.
//! Every process of a tree has a mark in its environment, by which survivors are found.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use supervisor_process::CommandSpec;

use supervisor_test_support::process::{LONG, eventually, sh};

const ROLE: &str = "SUPERVISOR_TEST_ROLE";
const DIR: &str = "SUPERVISOR_TEST_DIR";
const MARK: &str = "SUPERVISOR_TEST_MARK";
const LEADER: &str = "SUPERVISOR_TEST_LEADER";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    PlainChild,
    IgnoresSignals,
    Setsid,
    Daemon,
    Forker,
    Stopped,
    HoldsThePipe,
    Floods,
    DeafLeader,
    StoppedLeader,
}

pub(crate) const SHAPES: [Shape; 10] = [
    Shape::PlainChild,
    Shape::IgnoresSignals,
    Shape::Setsid,
    Shape::Daemon,
    Shape::Forker,
    Shape::Stopped,
    Shape::HoldsThePipe,
    Shape::Floods,
    Shape::DeafLeader,
    Shape::StoppedLeader,
];

/// What the leader does when its tree is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leader {
    Leaves,
    Stays,
}

/// One tree: its command, its mark, and a directory where it reports that it is complete.
pub(crate) struct Tree {
    dir: tempfile::TempDir,
    mark: String,
    shape: Shape,
    leader: Leader,
}

impl Tree {
    pub(crate) fn new(shape: Shape, leader: Leader) -> Self {
        let dir = tempfile::tempdir().unwrap();
        // The directory's name is random, which makes it a good mark.
        let mark = dir.path().to_str().unwrap().to_owned();
        Self {
            dir,
            mark,
            shape,
            leader,
        }
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn spec(&self) -> CommandSpec {
        spec(
            &format!("{:?}", self.shape),
            self.leader,
            self.dir(),
            &self.mark,
        )
    }

    /// Waits until every process of the tree is there.
    pub(crate) fn wait_until_ready(&self) {
        eventually("the tree is complete", || self.dir().join("ready").exists());
    }

    /// The parent of the leader.
    pub(crate) fn shim(&self) -> rustix::process::Pid {
        let is_shim = |pid: rustix::process::Pid| {
            let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
            command.split(|byte| *byte == 0).nth(1) == Some(b"shim")
        };
        let parent = |pid: rustix::process::Pid| {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
            let line = status
                .lines()
                .find_map(|l| l.strip_prefix("PPid:"))
                .unwrap();
            rustix::process::Pid::from_raw(line.trim().parse().unwrap()).unwrap()
        };
        let parents = marked(&self.mark).into_iter().map(parent);
        let mut shims: Vec<_> = parents.filter(|pid| is_shim(*pid)).collect();
        shims.dedup();
        assert_eq!(shims.len(), 1);
        shims[0]
    }

    pub(crate) fn survivors(&self) -> usize {
        marked(&self.mark).len()
    }
}

/// A tree of the named shape that reports in `dir` when it is complete.
pub(crate) fn spec(shape: &str, leader: Leader, dir: &Path, mark: &str) -> CommandSpec {
    let mut spec = CommandSpec::new([test_program()], "/");
    spec.env = sh("").env;
    spec.env.insert(ROLE.into(), shape.into());
    spec.env.insert(DIR.into(), dir.into());
    spec.env.insert(MARK.into(), mark.into());
    spec.env.insert(LEADER.into(), format!("{leader:?}").into());
    spec.limit = LONG * 4;
    spec.grace = Duration::from_millis(200);
    spec
}

/// This program in another role, outside of any tree.
pub(crate) fn role_command(role: &str, dir: &Path) -> Command {
    let mut command = member_command(role);
    command.env(DIR, dir).env_remove(MARK).stdout(Stdio::null());
    command
}

impl Drop for Tree {
    fn drop(&mut self) {
        // A failing test must not leave a forker behind.
        for _ in 0..1000 {
            let left = marked(&self.mark);
            if left.is_empty() {
                break;
            }
            for pid in left {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
}

/// Living processes with this mark in their environment; a zombie shows none.
pub(crate) fn marked(mark: &str) -> Vec<rustix::process::Pid> {
    let wanted = format!("{MARK}={mark}");
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries
        .filter_map(|e| rustix::process::Pid::from_raw(e.file_name().to_str()?.parse().ok()?));
    pids.filter(|pid| *pid != rustix::process::getpid())
        .filter(|pid| {
            let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ
                .split(|b| *b == 0)
                .any(|variable| variable == wanted.as_bytes())
        })
        .collect()
}

/// Without arguments it acts in the role that the environment names.
pub(crate) fn test_program() -> OsString {
    std::env::current_exe().unwrap().into_os_string()
}

/// Acts in the role that the environment names, and exits. Does nothing in a usual test run, nor in a shim, which has
/// arguments.
pub(crate) fn act_in_role() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    if std::env::args_os().len() > 1 {
        return;
    }
    let dir = PathBuf::from(std::env::var_os(DIR).unwrap());
    act_as(&role, &dir);
    std::process::exit(0);
}

fn act_as(role: &str, dir: &Path) {
    match role {
        "PlainChild" => lead(dir, &["Idle"]),
        "IgnoresSignals" => lead(dir, &["Deaf"]),
        "Setsid" => lead(dir, &["OwnSession"]),
        "Daemon" => lead(dir, &["Forgets"]),
        "Forker" => lead(dir, &["ForksOn"]),
        "Stopped" => lead(dir, &["Stops"]),
        "HoldsThePipe" => lead(dir, &["OwnSession", "Deaf"]),
        "Floods" => lead(dir, &["Writes"]),
        "DeafLeader" => exec_sh(
            dir,
            &format!("trap '' INT TERM HUP; {SCRIPTED_LEADER} while :; do sleep 1; done"),
        ),
        "StoppedLeader" => exec_sh(
            dir,
            &format!("{SCRIPTED_LEADER} while :; do kill -STOP $$; done"),
        ),
        "Idle" => idle(dir),
        "Deaf" => exec_sh(
            dir,
            "trap '' INT TERM HUP; : > \"$1/up.$$\"; while :; do sleep 1; done",
        ),
        "OwnSession" => {
            rustix::process::setsid().unwrap();
            idle(dir);
        }
        // Leaves an orphan without any of our descriptors.
        #[expect(clippy::zombie_processes, reason = "that is the role")]
        "Forgets" => {
            rustix::process::setsid().unwrap();
            member_command("OwnSession")
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
        }
        // Each generation is a grandchild of the last, whose parent has gone. It ends by itself after a while, so that
        // a failing test does not exhaust the machine.
        "ForksOn" => exec_sh(
            dir,
            "dir=$1; on() { [ $1 -lt 20000 ] || exit 0; [ $1 != 3 ] || : > \"$dir/up.forker\"; ( on $(($1 + 1)) & ) ; exit 0; }; on 0",
        ),
        "Stops" => exec_sh(
            dir,
            ": > \"$1/up.$$\"; kill -STOP $$; while :; do sleep 1; done",
        ),
        "Writes" => {
            std::fs::write(dir.join("up.writer"), "").unwrap();
            let mut out = std::io::stdout();
            while out.write_all(&[b'x'; 64 * 1024]).is_ok() {}
        }
        "Shim" => super::guard::act_as_shim(),
        "ShimStoppedAtItsEnd" => super::guard::stopped::act_as_shim_stopped_at_its_end(),
        "Flooded" => super::act_as_flooded(),
        "GuardedServer" => super::guard::act_as_server(dir),
        other => super::matrix::act_as_server(other.strip_prefix("Server").unwrap(), dir),
    }
}

const SCRIPTED_LEADER: &str =
    "sleep 600 & : > \"$1/ready\"; [ \"$SUPERVISOR_TEST_LEADER\" != Leaves ] || exit 0;";

fn lead(dir: &Path, members: &[&str]) {
    // Not waited for: the leader does not tidy up behind itself.
    let _members: Vec<_> = members
        .iter()
        .map(|member| member_command(member).spawn().unwrap())
        .collect();
    let ups = || {
        std::fs::read_dir(dir)
            .unwrap()
            .flatten()
            .filter(|e| e.file_name().to_string_lossy().starts_with("up."))
            .count()
    };
    eventually("the members are up", || ups() >= members.len());
    std::fs::write(dir.join("ready"), "").unwrap();
    if std::env::var(LEADER).unwrap() == "Stays" {
        std::thread::sleep(LONG * 10);
    }
}

fn member_command(role: &str) -> Command {
    let mut command = Command::new(test_program());
    command.env(ROLE, role).stdin(Stdio::null());
    command
}

fn idle(dir: &Path) {
    std::fs::write(dir.join(format!("up.{}", std::process::id())), "").unwrap();
    std::thread::sleep(LONG * 10);
}

fn exec_sh(dir: &Path, script: &str) {
    use std::os::unix::process::CommandExt;
    let why = Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(dir)
        .exec();
    panic!("sh: {why}");
}
