//! A marker in the environment of every process of a tree, used to find them when the shim has died
//! too. A process that cleared its environment is found only if its parent still has the marker.

use std::ffi::OsStr;
use std::fmt;

/// The environment variable that holds the tag.
pub const TAG_VARIABLE: &str = "SUPERVISOR_TREE";

/// The tag of one tree, or of all trees of one call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProcessTag(String);

impl ProcessTag {
    /// Creates an unguessable tag.
    pub fn random() -> Self {
        let mut bytes = [0_u8; 16];
        let mut filled = 0;
        while filled < bytes.len() {
            match rustix::rand::getrandom(
                &mut bytes[filled..],
                rustix::rand::GetRandomFlags::empty(),
            ) {
                Ok(n) => filled += n,
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => panic!("the kernel's random numbers cannot be had: {e}"),
            }
        }
        Self(bytes.iter().map(|b| format!("{b:02x}")).collect())
    }

    /// Parses a stored tag. Accepts only the format of [`ProcessTag::random`]: a short tag could match
    /// unrelated processes.
    pub fn parse(text: &str) -> Option<Self> {
        let is_valid = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
        is_valid.then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn as_os_str(&self) -> &OsStr {
        OsStr::new(&self.0)
    }
}

impl fmt::Display for ProcessTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Kills every process with the tag, and its descendants, until none is found or five seconds have
/// passed. Returns how many were killed. For recovery, when no other process supervises those
/// trees. Blocks for some milliseconds.
#[cfg(target_os = "linux")]
pub fn sweep_tagged(tag: &ProcessTag) -> usize {
    kill_matching(tag, None)
}

/// The same for the tree of a killed shim, including the processes of the shim's session: a process
/// that the shim has just forked has no tag before exec but holds the shim's locks. The shim must
/// not have been reaped: only until then does its pid denote the same session.
#[cfg(target_os = "linux")]
pub(super) fn kill_orphaned_tree(tag: &ProcessTag, shim: rustix::process::Pid) -> usize {
    kill_matching(tag, Some(shim))
}

/// Other systems do not let us read the environment of a process.
#[cfg(not(target_os = "linux"))]
pub fn sweep_tagged(_tag: &ProcessTag) -> usize {
    0
}

#[cfg(not(target_os = "linux"))]
pub(super) fn kill_orphaned_tree(_tag: &ProcessTag, _shim: rustix::process::Pid) -> usize {
    0
}

#[cfg(target_os = "linux")]
fn kill_matching(tag: &ProcessTag, session: Option<rustix::process::Pid>) -> usize {
    use super::sweep;
    use std::collections::HashSet;
    use std::time::{Duration, Instant};

    const TIMEOUT: Duration = Duration::from_secs(5);
    // A process in the middle of `execve` shows no environment, so one empty scan is not enough.
    const REQUIRED_EMPTY_SCANS: usize = 2;

    let variable = [TAG_VARIABLE.as_bytes(), b"=", tag.0.as_bytes()].concat();
    let deadline = Instant::now() + TIMEOUT;
    let (mut killed_pids, mut empty_scans) = (HashSet::new(), 0);
    while empty_scans < REQUIRED_EMPTY_SCANS && Instant::now() < deadline {
        let found = find_matching(&variable, session);
        empty_scans = if found.is_empty() { empty_scans + 1 } else { 0 };
        let mut killed = Vec::new();
        for (pid, process) in found {
            if rustix::process::pidfd_send_signal(&process, rustix::process::Signal::KILL).is_ok() {
                killed_pids.insert(pid);
                killed.push(process);
            }
        }
        sweep::wait_for_one(&killed);
    }
    killed_pids.len()
}

/// Opens the pidfd before inspecting the process: if the pid is reused in between, the kill reaches
/// no process.
#[cfg(target_os = "linux")]
fn find_matching(
    variable: &[u8],
    session: Option<rustix::process::Pid>,
) -> Vec<(rustix::process::Pid, std::os::fd::OwnedFd)> {
    use super::sweep;
    use rustix::process::{PidfdFlags, getpid, pidfd_open};

    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(sweep::parse_pid) else {
            continue;
        };
        if pid == getpid() {
            continue;
        }
        let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else {
            continue;
        };
        let is_in_session =
            || session.is_some_and(|session| sweep::is_alive_in_session(pid, session));
        let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if !environ.split(|b| *b == 0).any(|entry| entry == variable) && !is_in_session() {
            continue;
        }
        // Children first: once their parent is dead, those without the tag cannot be recognised.
        for child in sweep::descendants_of(pid) {
            if child != getpid()
                && let Ok(opened) = pidfd_open(child, PidfdFlags::empty())
                && sweep::descendants_of(pid).contains(&child)
            {
                found.push((child, opened));
            }
        }
        found.push((pid, process));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_random_and_parse_strictly() {
        let tag = ProcessTag::random();
        assert_ne!(tag, ProcessTag::random());
        assert_eq!(ProcessTag::parse(tag.as_str()).as_ref(), Some(&tag));
        for wrong in [
            "",
            "ab",
            "../../../../../../../../../../etc",
            &tag.as_str()[..31],
        ] {
            assert_eq!(ProcessTag::parse(wrong), None);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn only_tagged_processes_are_killed() {
        let (tag, other) = (ProcessTag::random(), ProcessTag::random());
        let start = |tag: &ProcessTag| {
            let mut command = std::process::Command::new("sleep");
            command
                .arg("60")
                .env(TAG_VARIABLE, tag.as_os_str())
                .spawn()
                .unwrap()
        };
        let (mut marked, mut bystander) = (start(&tag), start(&other));
        assert_eq!(sweep_tagged(&tag), 1);
        assert!(!marked.wait().unwrap().success());
        assert_eq!(bystander.try_wait().unwrap(), None);
        assert_eq!(sweep_tagged(&tag), 0);
        bystander.kill().unwrap();
        bystander.wait().unwrap();
    }
}
