//! The part of the sandbox made of mounts: a read-only file system with writable exceptions, masked
//! secrets and replaced files. Requires a private mount namespace.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, StatVfsMountFlags};
use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind, mount_bind_recursive, mount_change,
    mount_remount,
};

use super::super::sandbox::SandboxPlan;
use super::{SandboxError, overlays};

/// Mounts that stay as they are: devices and kernel interfaces, which hold no ordinary files.
const UNTOUCHED: &[&str] = &["/dev", "/proc", "/sys"];

/// Sets up the mounts of this namespace. Returns the directories that have an overlay.
pub(super) fn set_up(sandbox: &SandboxPlan) -> Result<Vec<PathBuf>, SandboxError> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(SandboxError::at("private mounts"))?;
    let writable: Vec<&Path> = sandbox.writable.iter().map(Path::new).collect();
    // Each writable path becomes a mount of its own, so that it stays writable when its
    // surroundings become read-only.
    let opened: Vec<(PathBuf, OwnedFd)> = writable
        .iter()
        .map(|path| Ok((path.to_path_buf(), open_path(path)?)))
        .collect::<Result<_, SandboxError>>()?;
    let opened_layer = sandbox
        .layered
        .as_ref()
        .map(overlays::OpenedLayer::open)
        .transpose()?;
    let mut layered = overlays::mount_over_temp_dirs(sandbox);
    layered.extend(opened_layer.map(overlays::OpenedLayer::mount).transpose()?);
    for (path, opened) in &opened {
        mount_bind_recursive(fd_path(opened), path)
            .map_err(SandboxError::at(format!("mounting `{}`", path.display())))?;
    }
    for mounted in mount_points() {
        let skipped = UNTOUCHED
            .iter()
            .any(|untouched| mounted.starts_with(untouched))
            || layered.contains(&mounted)
            || writable.iter().any(|path| mounted.starts_with(path));
        if skipped {
            continue;
        }
        let result = make_read_only(&mounted);
        // Errors are ignored except for `/`: a mount that cannot be reached cannot be changed, and
        // Landlock covers the rest.
        if mounted == Path::new("/") {
            result.map_err(SandboxError::at("a read-only file system"))?;
        }
    }
    for path in sandbox
        .read_only
        .iter()
        .map(Path::new)
        .filter(|path| is_below_any(path, &writable))
    {
        mount_bind_recursive(path, path)
            .and_then(|()| make_read_only(path))
            .map_err(SandboxError::at(format!(
                "mounting `{}` read-only",
                path.display()
            )))?;
    }
    for (new, old) in &sandbox.replaced {
        mount_bind(Path::new(new), Path::new(old))
            .and_then(|()| make_read_only(Path::new(old)))
            .map_err(SandboxError::at(format!(
                "putting another file at `{}`",
                Path::new(old).display()
            )))?;
    }
    let shown: Vec<&Path> = layered
        .iter()
        .map(PathBuf::as_path)
        .chain(writable.iter().copied())
        .collect();
    mask_hidden(sandbox, &shown)?;
    if sandbox.isolates_memory {
        mount_shared_memory(&writable)?;
    }
    Ok(layered)
}

/// Gives this run a shared memory of its own: files there outlive the processes that wrote them. A project in shared memory
/// stays where it is.
fn mount_shared_memory(writable: &[&Path]) -> Result<(), SandboxError> {
    let dir = Path::new(super::landlock::SHARED_MEMORY);
    let is_dir = dir.symlink_metadata().is_ok_and(|meta| meta.is_dir());
    if !is_dir || writable.iter().any(|path| path.starts_with(dir)) {
        return Ok(());
    }
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("none", dir, "tmpfs", flags, c"mode=1777").map_err(SandboxError::at("shared memory"))
}

/// Covers hidden paths with empty mounts. The shown paths below them are mounted again on top.
fn mask_hidden(sandbox: &SandboxPlan, shown: &[&Path]) -> Result<(), SandboxError> {
    let hidden: Vec<&Path> = sandbox.hidden.iter().map(Path::new).collect();
    let mut visible: Vec<(PathBuf, OwnedFd)> = Vec::new();
    for path in shown.iter().filter(|path| is_below_any(path, &hidden)) {
        visible.push((path.to_path_buf(), open_path(path)?));
    }
    for path in &hidden {
        // A path below another hidden path is already covered.
        let Ok(meta) = path.symlink_metadata() else {
            continue;
        };
        let failed = || SandboxError::at(format!("hiding `{}`", path.display()));
        if meta.is_dir() {
            mount(
                "none",
                *path,
                "tmpfs",
                MountFlags::NOSUID | MountFlags::NODEV,
                c"size=256k,mode=0755",
            )
            .map_err(failed())?;
            for (below, opened) in visible.iter().filter(|(below, _)| below.starts_with(path)) {
                mount_again(below, opened)?;
            }
            make_read_only(path).map_err(failed())?;
        } else {
            mount_bind("/dev/null", *path).map_err(failed())?;
        }
    }
    Ok(())
}

fn mount_again(path: &Path, opened: &OwnedFd) -> Result<(), SandboxError> {
    let created = if is_dir_fd(opened) {
        std::fs::create_dir_all(path)
    } else {
        path.parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| File::create(path).map(drop))
    };
    created.map_err(|source| SandboxError {
        step: format!("showing `{}`", path.display()),
        source,
    })?;
    mount_bind_recursive(fd_path(opened), path)
        .map_err(SandboxError::at(format!("showing `{}`", path.display())))
}

pub(super) fn open_path(path: &Path) -> Result<OwnedFd, SandboxError> {
    rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        .map_err(SandboxError::at(format!("opening `{}`", path.display())))
}

/// Returns a path to the opened file itself, whatever is mounted over its original path by now.
pub(super) fn fd_path(opened: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", opened.as_raw_fd())
}

fn is_dir_fd(fd: &OwnedFd) -> bool {
    rustix::fs::fstat(fd)
        .is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir())
}

fn is_below_any(path: &Path, dirs: &[&Path]) -> bool {
    dirs.iter().any(|dir| path.starts_with(dir))
}

/// Keeps the other flags: in a user namespace they are locked and cannot be cleared.
fn make_read_only(path: &Path) -> rustix::io::Result<()> {
    let now = rustix::fs::statvfs(path)?.f_flag;
    let mut flags = MountFlags::BIND | MountFlags::RDONLY;
    for (has, keeps) in [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ] {
        if now.contains(has) {
            flags |= keeps;
        }
    }
    mount_remount(path, flags, "")
}

/// Returns every mount point of this namespace.
pub(in super::super) fn mount_points() -> Vec<PathBuf> {
    let table = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    let mut found = Vec::new();
    for line in table.split(|byte| *byte == b'\n') {
        // `36 35 98:0 /root /mount/point options …`
        if let Some(point) = line.split(|byte| *byte == b' ').nth(4) {
            found.push(PathBuf::from(OsStr::from_bytes(&unescape(point))));
        }
    }
    found
}

/// The kernel escapes white space and backslashes as three octal digits.
fn unescape(written: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(written.len());
    let mut rest = written;
    while let [first, after @ ..] = rest {
        let octal = after
            .get(..3)
            .filter(|d| *first == b'\\' && d.iter().all(|d| (b'0'..=b'7').contains(d)));
        match octal {
            Some(digits) => {
                plain.push(digits.iter().fold(0_u8, |byte, digit| {
                    byte.wrapping_mul(8).wrapping_add(digit - b'0')
                }));
                rest = &after[3..];
            }
            None => {
                plain.push(*first);
                rest = after;
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octal_escapes_are_decoded() {
        assert_eq!(unescape(br"/a\040b\134c\011"), b"/a b\\c\t");
        assert_eq!(unescape(br"/a\04"), br"/a\04");
    }

    #[test]
    fn root_is_a_mount_point() {
        assert!(mount_points().contains(&PathBuf::from("/")));
    }
}
