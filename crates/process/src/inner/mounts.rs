//! The walls made of mounts: everything read-only but what may be written, secrets behind empty masks, files that stand
//! in for others. Knows a private mount namespace. Does not know how it was entered.

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

use super::super::sandbox::Walls;
use super::{Obstacle, layers};

/// Mounts that stay as they are: devices and the kernel's own windows, which no file is kept in.
const LEFT_ALONE: &[&str] = &["/dev", "/proc", "/sys"];

/// Arranges the mounts of this namespace. Gives the directories that have a layer over them.
pub(super) fn arrange(walls: &Walls) -> Result<Vec<PathBuf>, Obstacle> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(Obstacle::at("private mounts"))?;
    let writable: Vec<&Path> = walls.writable.iter().map(Path::new).collect();
    // A mount of its own for each, so that it can stay writable when what surrounds it is not.
    let opened: Vec<(PathBuf, OwnedFd)> = writable
        .iter()
        .map(|path| Ok((path.to_path_buf(), open(path)?)))
        .collect::<Result<_, Obstacle>>()?;
    let opened_layer = walls
        .layered
        .as_ref()
        .map(layers::OpenedLayer::open)
        .transpose()?;
    let mut layered = layers::over_temporary(walls);
    layered.extend(opened_layer.map(layers::OpenedLayer::mount).transpose()?);
    for (path, opened) in &opened {
        mount_bind_recursive(from(opened), path)
            .map_err(Obstacle::at(format!("mounting `{}`", path.display())))?;
    }
    for mounted in mount_points() {
        let skipped = LEFT_ALONE.iter().any(|left| mounted.starts_with(left))
            || layered.contains(&mounted)
            || writable.iter().any(|path| mounted.starts_with(path));
        if skipped {
            continue;
        }
        let done = make_read_only(&mounted);
        // What cannot be reached cannot be changed; Landlock stands behind the rest.
        if mounted == Path::new("/") {
            done.map_err(Obstacle::at("a read-only file system"))?;
        }
    }
    for path in walls
        .read_only
        .iter()
        .map(Path::new)
        .filter(|path| is_within(path, &writable))
    {
        mount_bind_recursive(path, path)
            .and_then(|()| make_read_only(path))
            .map_err(Obstacle::at(format!(
                "mounting `{}` read-only",
                path.display()
            )))?;
    }
    for (new, old) in &walls.replaced {
        mount_bind(Path::new(new), Path::new(old))
            .and_then(|()| make_read_only(Path::new(old)))
            .map_err(Obstacle::at(format!(
                "putting another file at `{}`",
                Path::new(old).display()
            )))?;
    }
    mask(walls, &writable)?;
    Ok(layered)
}

/// Puts emptiness over what is hidden. What may be written below it is put back on top.
fn mask(walls: &Walls, writable: &[&Path]) -> Result<(), Obstacle> {
    let hidden: Vec<&Path> = walls.hidden.iter().map(Path::new).collect();
    let mut shown: Vec<(PathBuf, OwnedFd)> = Vec::new();
    for path in writable.iter().filter(|path| is_within(path, &hidden)) {
        shown.push((path.to_path_buf(), open(path)?));
    }
    for path in &hidden {
        // One that lies below another is gone already.
        let Ok(meta) = path.symlink_metadata() else {
            continue;
        };
        let failed = || Obstacle::at(format!("hiding `{}`", path.display()));
        if meta.is_dir() {
            mount(
                "none",
                *path,
                "tmpfs",
                MountFlags::NOSUID | MountFlags::NODEV,
                c"size=256k,mode=0755",
            )
            .map_err(failed())?;
            for (below, opened) in shown.iter().filter(|(below, _)| below.starts_with(path)) {
                put_back(below, opened)?;
            }
            make_read_only(path).map_err(failed())?;
        } else {
            mount_bind("/dev/null", *path).map_err(failed())?;
        }
    }
    Ok(())
}

fn put_back(path: &Path, opened: &OwnedFd) -> Result<(), Obstacle> {
    let made = if opened_dir(opened) {
        std::fs::create_dir_all(path)
    } else {
        path.parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| File::create(path).map(drop))
    };
    made.map_err(|source| Obstacle {
        step: format!("showing `{}`", path.display()),
        source,
    })?;
    mount_bind_recursive(from(opened), path)
        .map_err(Obstacle::at(format!("showing `{}`", path.display())))
}

pub(super) fn open(path: &Path) -> Result<OwnedFd, Obstacle> {
    rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        .map_err(Obstacle::at(format!("opening `{}`", path.display())))
}

/// What was opened, whatever lies over its path by now.
pub(super) fn from(opened: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", opened.as_raw_fd())
}

fn opened_dir(fd: &OwnedFd) -> bool {
    rustix::fs::fstat(fd)
        .is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir())
}

fn is_within(path: &Path, places: &[&Path]) -> bool {
    places.iter().any(|place| path.starts_with(place))
}

/// The other flags are kept: in a user namespace they are locked.
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

/// Every place where something is mounted now.
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

/// The kernel writes white space and backslashes as three octal digits.
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
    fn a_mount_point_with_white_space_is_read_as_it_is() {
        assert_eq!(unescape(br"/a\040b\134c\011"), b"/a b\\c\t");
        assert_eq!(unescape(br"/a\04"), br"/a\04");
    }

    #[test]
    fn the_root_is_a_mount_point() {
        assert!(mount_points().contains(&PathBuf::from("/")));
    }
}
