//! Ends everything below this process. Only meaningful in a child subreaper, which adopts what its tree abandons:
//! there `waitpid` saying "no children" is proof that nothing is left.

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

/// What the end of a tree looked like.
#[derive(Debug, Clone, Copy)]
pub(super) struct SweepReport {
    /// How the leader ended; `None` if it could not be ended in time.
    pub(super) leader: Option<WaitStatus>,
    /// Processes beside the leader that were still alive.
    pub(super) ended: usize,
    /// Processes that withstood: another user's, or stuck in the kernel.
    pub(super) left: usize,
}

/// Kills the leader's group and every descendant until the kernel says there is none, or patience ends.
/// The leader must not have been reaped: only so long can its number not mean another group.
pub(super) fn end_all(leader: Pid, patience: Duration) -> SweepReport {
    let deadline = Instant::now() + patience;
    let mut ended: HashSet<Pid> = descendants().into_iter().collect();
    let _ = kill_process_group(leader, Signal::KILL);
    let mut status = None;
    loop {
        match wait(WaitOptions::NOHANG | ALSO_CLONES) {
            Ok(Some((pid, how))) => {
                if pid == leader {
                    status = Some(how);
                }
                continue;
            }
            Err(Errno::INTR) => continue,
            Err(_) => return swept(status, ended, leader, 0),
            Ok(None) => {}
        }
        let alive = descendants();
        if Instant::now() >= deadline {
            return swept(status, ended, leader, alive.len());
        }
        let killed: Vec<OwnedFd> = alive.iter().filter_map(|pid| kill(*pid)).collect();
        ended.extend(alive);
        wait_for_one(&killed);
    }
}

fn swept(
    leader: Option<WaitStatus>,
    mut ended: HashSet<Pid>,
    leader_pid: Pid,
    left: usize,
) -> SweepReport {
    ended.remove(&leader_pid);
    SweepReport {
        leader,
        ended: ended.len().saturating_sub(left),
        left,
    }
}

/// `__WALL`: children made by `clone` without a signal are children too.
const ALSO_CLONES: WaitOptions = WaitOptions::from_bits_retain(0x4000_0000);

/// All living processes below this one, zombies left out.
pub(super) fn descendants() -> Vec<Pid> {
    below(getpid())
}

/// All living processes below `root`, zombies left out.
pub(super) fn below(root: Pid) -> Vec<Pid> {
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

/// The children of all its threads. Kernels without that file are asked the long way.
fn children(parent: Pid) -> Vec<Pid> {
    let Ok(threads) = fs::read_dir(format!("/proc/{parent}/task")) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for thread in threads.flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(pids) => found.extend(pids.split_ascii_whitespace().filter_map(parse)),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound && thread.path().exists() => {
                return by_parent(parent);
            }
            Err(_) => {}
        }
    }
    found
}

fn by_parent(parent: Pid) -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries
        .flatten()
        .filter_map(|e| parse(e.file_name().to_str()?));
    pids.filter(|pid| stat(*pid).is_some_and(|seen| seen.parent == Some(parent)))
        .collect()
}

fn is_alive(pid: Pid) -> bool {
    stat(pid).is_some_and(|seen| seen.is_alive())
}

pub(super) fn is_alive_in(pid: Pid, session: Pid) -> bool {
    stat(pid).is_some_and(|seen| seen.is_alive() && seen.session == Some(session))
}

/// What the kernel says of a process at one moment.
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

/// The name before the rest may hold spaces and parentheses, so the last `)` counts.
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
        parent: parse(parent),
        session: parse(session),
    })
}

pub(super) fn parse(pid: &str) -> Option<Pid> {
    pid.parse().ok().and_then(Pid::from_raw)
}

/// Kills one process of ours. Between listing and opening, its number may have passed to a stranger:
/// what the descriptor names is looked at again, and only a process below us is hit.
fn kill(pid: Pid) -> Option<OwnedFd> {
    let process = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    if !is_below_us(pid) {
        return None;
    }
    pidfd_send_signal(&process, Signal::KILL).ok()?;
    Some(process)
}

fn is_below_us(pid: Pid) -> bool {
    let us = getpid();
    let mut at = pid;
    // Far deeper than any real tree; a chain that changes under our eyes must not hold us.
    for _ in 0..4096 {
        match stat(at).and_then(|seen| seen.parent) {
            Some(parent) if parent == us => return true,
            Some(parent) => at = parent,
            None => return false,
        }
    }
    false
}

/// Until one of them has ended, or a moment has passed: who knows what was forked meanwhile.
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
    fn a_process_is_found_below_its_parent_and_a_zombie_is_not() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let pid = Pid::from_child(&child);
        assert!(descendants().contains(&pid));
        assert!(
            by_parent(getpid()).contains(&pid),
            "the long way finds it too"
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
    fn a_stranger_is_never_hit() {
        assert!(!is_below_us(Pid::INIT));
        assert!(kill(Pid::INIT).is_none());
    }
}
