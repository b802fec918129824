//! A mark in the environment of every process of a tree, for the day when its shim has died too.
//! What has exec'd itself an empty environment is not found by it, unless its parent still carries the mark.

use std::ffi::OsStr;
use std::fmt;

/// The variable that carries the mark.
pub const TAG_VARIABLE: &str = "SUPERVISOR_TREE";

/// The mark of one tree, or of all trees of one call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Tag(String);

impl Tag {
    /// One that cannot be guessed.
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

    /// One that was written down. Only what [`Tag::random`] makes is taken: a short mark would hit strangers.
    pub fn parse(written: &str) -> Option<Self> {
        let sound = written.len() == 32 && written.bytes().all(|b| b.is_ascii_hexdigit());
        sound.then(|| Self(written.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn as_os_str(&self) -> &OsStr {
        OsStr::new(&self.0)
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Kills every process that carries the tag, and what is below it, until none is found any more or `PATIENCE` ends.
/// Returns how many were hit. For recovery, when no other process tends those trees; it blocks for some milliseconds.
#[cfg(target_os = "linux")]
pub fn sweep_tagged(tag: &Tag) -> usize {
    sweep_marked(tag, None)
}

/// The same for the tree of a shim that was killed, with whatever is still in the shim's session: what a shim has just forked
/// carries no tag before it is the command, but holds the shim's locks. The shim must not have been reaped: only so long
/// can its number mean no other session.
#[cfg(target_os = "linux")]
pub(super) fn sweep_deserted(tag: &Tag, shim: rustix::process::Pid) -> usize {
    sweep_marked(tag, Some(shim))
}

/// On other systems the environment of a process cannot be read; what left its group is out of reach.
#[cfg(not(target_os = "linux"))]
pub fn sweep_tagged(_tag: &Tag) -> usize {
    0
}

#[cfg(not(target_os = "linux"))]
pub(super) fn sweep_deserted(_tag: &Tag, _shim: rustix::process::Pid) -> usize {
    0
}

#[cfg(target_os = "linux")]
fn sweep_marked(tag: &Tag, session: Option<rustix::process::Pid>) -> usize {
    use super::sweep;
    use std::collections::HashSet;
    use std::time::{Duration, Instant};

    const PATIENCE: Duration = Duration::from_secs(5);
    // A process in the midst of `execve` shows no environment, so one empty look is not enough.
    const EMPTY_LOOKS: usize = 2;

    let mark = [TAG_VARIABLE.as_bytes(), b"=", tag.0.as_bytes()].concat();
    let deadline = Instant::now() + PATIENCE;
    let (mut hit, mut empty) = (HashSet::new(), 0);
    while empty < EMPTY_LOOKS && Instant::now() < deadline {
        let found = marked(&mark, session);
        empty = if found.is_empty() { empty + 1 } else { 0 };
        let mut killed = Vec::new();
        for (pid, process) in found {
            if rustix::process::pidfd_send_signal(&process, rustix::process::Signal::KILL).is_ok() {
                hit.insert(pid);
                killed.push(process);
            }
        }
        sweep::wait_for_one(&killed);
    }
    hit.len()
}

/// The descriptor is opened before the process is looked at: if the number changes hands in between, the kill hits no
/// process.
#[cfg(target_os = "linux")]
fn marked(
    mark: &[u8],
    session: Option<rustix::process::Pid>,
) -> Vec<(rustix::process::Pid, std::os::fd::OwnedFd)> {
    use super::sweep;
    use rustix::process::{PidfdFlags, getpid, pidfd_open};

    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(sweep::parse) else {
            continue;
        };
        if pid == getpid() {
            continue;
        }
        let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else {
            continue;
        };
        let is_of_session = || session.is_some_and(|session| sweep::is_alive_in(pid, session));
        let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if !environ.split(|b| *b == 0).any(|variable| variable == mark) && !is_of_session() {
            continue;
        }
        // Children first: once their parent is dead, those without the mark cannot be told from strangers.
        for child in sweep::below(pid) {
            if child != getpid()
                && let Ok(below) = pidfd_open(child, PidfdFlags::empty())
                && sweep::below(pid).contains(&child)
            {
                found.push((child, below));
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
    fn a_tag_is_long_random_and_read_back_only_whole() {
        let tag = Tag::random();
        assert_ne!(tag, Tag::random());
        assert_eq!(Tag::parse(tag.as_str()).as_ref(), Some(&tag));
        for wrong in [
            "",
            "ab",
            "../../../../../../../../../../etc",
            &tag.as_str()[..31],
        ] {
            assert_eq!(Tag::parse(wrong), None);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_marked_end_and_the_others_live() {
        let (tag, other) = (Tag::random(), Tag::random());
        let start = |tag: &Tag| {
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
