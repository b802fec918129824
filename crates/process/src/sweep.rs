//! Kills all descendants of this process. Must run in a child subreaper, which adopts orphans of
//! its tree: there, `waitpid` returning "no children" proves that nothing is left.

use std::collections::HashSet;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, kill_process_group, pidfd_open,
    pidfd_send_signal, wait,
};

/// The result of killing a tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct SweepReport {
    /// How the leader ended; `None` if it did not end in time.
    pub(super) leader: Option<WaitStatus>,
    /// Processes besides the leader that were still alive.
    pub(super) ended: usize,
    /// Processes that could not be killed: another user's, or stuck in the kernel.
    pub(super) survivors: usize,
}

/// Kills the leader's group and every descendant until none is left or `timeout` passes. The leader
/// must not have been reaped: only until then does its pid denote the same group.
pub(super) fn kill_all(leader: Pid, timeout: Duration) -> SweepReport {
    let deadline = Instant::now() + timeout;
    let mut ended: HashSet<Pid> = descendants().into_iter().collect();
    let _ = kill_process_group(leader, Signal::KILL);
    let mut status = None;
    loop {
        match wait(WaitOptions::NOHANG | INCLUDE_CLONES) {
            Ok(Some((pid, exit_status))) => {
                if pid == leader {
                    status = Some(exit_status);
                }
                continue;
            }
            Err(Errno::INTR) => continue,
            Err(_) => return sweep_report(status, ended, leader, 0),
            Ok(None) => {}
        }
        let alive = descendants();
        if Instant::now() >= deadline {
            return sweep_report(status, ended, leader, alive.len());
        }
        let killed: Vec<OwnedFd> = alive.iter().filter_map(|pid| kill(*pid)).collect();
        ended.extend(alive);
        wait_for_one(&killed);
    }
}

fn sweep_report(
    leader: Option<WaitStatus>,
    mut ended: HashSet<Pid>,
    leader_pid: Pid,
    survivors: usize,
) -> SweepReport {
    ended.remove(&leader_pid);
    SweepReport {
        leader,
        ended: ended.len().saturating_sub(survivors),
        survivors,
    }
}

/// `__WALL`: also waits for children created by `clone` without an exit signal.
const INCLUDE_CLONES: WaitOptions = WaitOptions::from_bits_retain(0x4000_0000);

/// Returns all live descendants of this process, without zombies.
pub(super) fn descendants() -> Vec<Pid> {
    descendants_of(getpid())
}

/// Returns all live descendants of `root`, without zombies.
pub(super) fn descendants_of(root: Pid) -> Vec<Pid> {
    let (mut found, mut queue, mut seen) = (Vec::new(), vec![root], HashSet::from([root]));
    while let Some(parent) = queue.pop() {
        for child in children(parent) {
            if seen.insert(child) {
                queue.push(child);
                if is_alive(child) {
                    found.push(child);
                }
            }
        }
    }
    found
}

/// Returns the children of all threads of a process. Falls back to scanning `/proc` on kernels
/// without the `children` file.
fn children(parent: Pid) -> Vec<Pid> {
    let Ok(threads) = fs::read_dir(format!("/proc/{parent}/task")) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for thread in threads.flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(pids) => found.extend(pids.split_ascii_whitespace().filter_map(parse_pid)),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound && thread.path().exists() => {
                return children_by_scan(parent);
            }
            Err(_) => {}
        }
    }
    found
}

fn children_by_scan(parent: Pid) -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries
        .flatten()
        .filter_map(|e| parse_pid(e.file_name().to_str()?));
    pids.filter(|pid| stat(*pid).is_some_and(|stat| stat.parent == Some(parent)))
        .collect()
}

fn is_alive(pid: Pid) -> bool {
    stat(pid).is_some_and(|stat| stat.is_alive())
}

pub(super) fn is_alive_in_session(pid: Pid, session: Pid) -> bool {
    stat(pid).is_some_and(|stat| stat.is_alive() && stat.session == Some(session))
}

/// Fields of `/proc/<pid>/stat`.
struct ProcessStat {
    state: char,
    parent: Option<Pid>,
    session: Option<Pid>,
}

impl ProcessStat {
    fn is_alive(&self) -> bool {
        !matches!(self.state, 'Z' | 'X')
    }
}

/// The process name may contain spaces and parentheses, so parsing starts after the last `)`.
fn stat(pid: Pid) -> Option<ProcessStat> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let after = stat.iter().rposition(|b| *b == b')')?;
    let mut words = std::str::from_utf8(stat.get(after + 1..)?)
        .ok()?
        .split_ascii_whitespace();
    let (state, parent, _group, session) =
        (words.next()?, words.next()?, words.next()?, words.next()?);
    Some(ProcessStat {
        state: state.chars().next()?,
        parent: parse_pid(parent),
        session: parse_pid(session),
    })
}

pub(super) fn parse_pid(pid: &str) -> Option<Pid> {
    pid.parse().ok().and_then(Pid::from_raw)
}

/// Kills one descendant. Its pid may have been reused between listing and opening, so this checks
/// again, after opening the pidfd, that the process is a descendant.
fn kill(pid: Pid) -> Option<OwnedFd> {
    let process = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    if !is_descendant(pid) {
        return None;
    }
    pidfd_send_signal(&process, Signal::KILL).ok()?;
    Some(process)
}

fn is_descendant(pid: Pid) -> bool {
    let us = getpid();
    let mut at = pid;
    // Deeper than any real tree; bounds the loop if parents change meanwhile.
    for _ in 0..4096 {
        match stat(at).and_then(|stat| stat.parent) {
            Some(parent) if parent == us => return true,
            Some(parent) => at = parent,
            None => return false,
        }
    }
    false
}

/// Waits until one of them has ended, or for a moment: more may have been forked meanwhile.
pub(super) fn wait_for_one(killed: &[OwnedFd]) {
    let mut fds: Vec<_> = killed
        .iter()
        .map(|fd| PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN))
        .collect();
    let moment = if fds.is_empty() { 1 } else { 10 };
    let _ = poll(
        &mut fds,
        Some(&Timespec {
            tv_sec: 0,
            tv_nsec: moment * 1_000_000,
        }),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zombies_are_not_descendants() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let pid = Pid::from_child(&child);
        assert!(descendants().contains(&pid));
        assert!(
            children_by_scan(getpid()).contains(&pid),
            "the scan finds it too"
        );
        let process = kill(pid).unwrap();
        wait_for_one(&[process]);
        let deadline = Instant::now() + Duration::from_secs(20);
        while descendants().contains(&pid) {
            assert!(Instant::now() < deadline, "still there");
            std::thread::yield_now();
        }
        child.wait().unwrap();
    }

    #[test]
    fn unrelated_processes_are_never_killed() {
        assert!(!is_descendant(Pid::INIT));
        assert!(kill(Pid::INIT).is_none());
    }
}
