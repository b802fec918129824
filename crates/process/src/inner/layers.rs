//! Directories that the command may change as it likes, without anything outside changing: an overlay over each. What it
//! writes lies in memory, or where the shim finds it afterwards.

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, mount, mount_bind_recursive, unmount};

use super::super::sandbox::{WalledLayer, Walls};
use super::Obstacle;
use super::mounts::{from, mount_points, open};

/// Programs write there by habit, whatever `TMPDIR` says.
const TEMPORARY: &[&str] = &["/tmp", "/var/tmp"];
/// What may be written there.
const ROOM: &std::ffi::CStr = c"size=1g,mode=0700";

/// Where these exist and it can be done; without it they can only be read. What is writable below is mounted again by the
/// caller; other mounts are put back here. Gives the directories that can be written.
pub(super) fn over_temporary(walls: &Walls) -> Vec<PathBuf> {
    let mut done = Vec::new();
    for place in TEMPORARY.iter().map(Path::new) {
        let is_dir = place.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        let is_writable = walls
            .writable
            .iter()
            .any(|path| place.starts_with(Path::new(path)));
        if is_dir && !is_writable && over_one(place).is_ok() {
            done.push(place.to_owned());
        }
    }
    done
}

fn over_one(place: &Path) -> Result<(), Obstacle> {
    let failed = || Obstacle::at(format!("a layer over `{}`", place.display()));
    let lower = open(place)?;
    let mut below: Vec<PathBuf> = mount_points()
        .into_iter()
        .filter(|point| point != place && point.starts_with(place))
        .collect();
    below.sort();
    let below: Vec<(PathBuf, OwnedFd)> = below
        .into_iter()
        .filter_map(|point| Some((point.clone(), open(&point).ok()?)))
        .collect();
    mount(
        "none",
        place,
        "tmpfs",
        MountFlags::NOSUID | MountFlags::NODEV,
        ROOM,
    )
    .map_err(failed())?;
    let made = ["upper", "work"].map(|name| {
        let dir = place.join(name);
        std::fs::create_dir(&dir)
            .map_err(|source| Obstacle::new("a layer in memory", source))
            .and_then(|()| open(&dir))
    });
    let mounted = match made {
        [Ok(upper), Ok(work)] => {
            take_mode(&lower, &upper);
            overlay(place, &lower, &upper, &work)
        }
        [Err(obstacle), _] | [_, Err(obstacle)] => Err(obstacle),
    };
    if mounted.is_err() {
        let _ = unmount(place, rustix::mount::UnmountFlags::DETACH);
        return mounted;
    }
    for (point, opened) in &below {
        // One that is below another came with it; a place that is gone shows nothing.
        let _ = mount_bind_recursive(from(opened), point);
    }
    Ok(())
}

/// Opened before anything is mounted: a layer may lie in a directory that gets one itself.
pub(super) struct OpenedLayer {
    dir: PathBuf,
    lower: OwnedFd,
    upper: OwnedFd,
    work: OwnedFd,
}

impl OpenedLayer {
    pub(super) fn open(layer: &WalledLayer) -> Result<Self, Obstacle> {
        let (dir, upper, work) = (
            Path::new(&layer.dir),
            Path::new(&layer.upper),
            Path::new(&layer.work),
        );
        Ok(Self {
            dir: dir.to_owned(),
            lower: open(dir)?,
            upper: open(upper)?,
            work: open(work)?,
        })
    }

    /// Gives the directory.
    pub(super) fn mount(self) -> Result<PathBuf, Obstacle> {
        take_mode(&self.lower, &self.upper);
        overlay(&self.dir, &self.lower, &self.upper, &self.work)?;
        Ok(self.dir)
    }
}

/// The layer's own mode is the one that the directory is seen with.
fn take_mode(lower: &OwnedFd, upper: &OwnedFd) {
    if let Ok(stat) = rustix::fs::fstat(lower) {
        let _ = rustix::fs::chmod(
            from(upper),
            rustix::fs::Mode::from_raw_mode(stat.st_mode & 0o7777),
        );
    }
}

fn overlay(at: &Path, lower: &OwnedFd, upper: &OwnedFd, work: &OwnedFd) -> Result<(), Obstacle> {
    let [lower, upper, work] = [lower, upper, work].map(from);
    let options = format!("lowerdir={lower},upperdir={upper},workdir={work},userxattr,volatile");
    let options = CString::new(options).expect("numbers and letters");
    mount(
        "overlay",
        at,
        "overlay",
        MountFlags::NOSUID | MountFlags::NODEV,
        options.as_c_str(),
    )
    .map_err(Obstacle::at(format!("a layer over `{}`", at.display())))
}
