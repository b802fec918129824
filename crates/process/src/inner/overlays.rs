//! Overlays for directories that the command may change without affecting anything outside. Writes
//! go to memory, or to a directory where the shim finds them afterwards.

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, mount, mount_bind_recursive, unmount};

use super::super::sandbox::{LayerMount, SandboxPlan};
use super::SandboxError;
use super::mounts::{fd_path, mount_points, open_path};

/// Programs write here whatever `TMPDIR` says.
const TEMP_DIRS: &[&str] = &["/tmp", "/var/tmp"];
/// Mount options of the memory behind them.
const TMPFS_OPTIONS: &std::ffi::CStr = c"size=1g,mode=0700";

/// Mounts a memory-backed overlay over each temporary directory where possible; otherwise the
/// directory is read-only. The caller mounts writable paths below them again; other mounts are put
/// back here. Returns the directories that can be written.
pub(super) fn mount_over_temp_dirs(sandbox: &SandboxPlan) -> Vec<PathBuf> {
    let mut mounted_dirs = Vec::new();
    for dir in TEMP_DIRS.iter().map(Path::new) {
        let is_dir = dir.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        let is_writable = sandbox
            .writable
            .iter()
            .any(|path| dir.starts_with(Path::new(path)));
        if is_dir && !is_writable && mount_memory_layer(dir).is_ok() {
            mounted_dirs.push(dir.to_owned());
        }
    }
    mounted_dirs
}

fn mount_memory_layer(dir: &Path) -> Result<(), SandboxError> {
    let failed = || SandboxError::at(format!("a layer over `{}`", dir.display()));
    let lower = open_path(dir)?;
    let mut below: Vec<PathBuf> = mount_points()
        .into_iter()
        .filter(|point| point != dir && point.starts_with(dir))
        .collect();
    below.sort();
    let below: Vec<(PathBuf, OwnedFd)> = below
        .into_iter()
        .filter_map(|point| Some((point.clone(), open_path(&point).ok()?)))
        .collect();
    mount(
        "none",
        dir,
        "tmpfs",
        MountFlags::NOSUID | MountFlags::NODEV,
        TMPFS_OPTIONS,
    )
    .map_err(failed())?;
    let made = ["upper", "work"].map(|name| {
        let layer = dir.join(name);
        std::fs::create_dir(&layer)
            .map_err(|source| SandboxError::new("a layer in memory", source))
            .and_then(|()| open_path(&layer))
    });
    let mounted = match made {
        [Ok(upper), Ok(work)] => {
            copy_mode(&lower, &upper);
            mount_overlay(dir, &lower, &upper, &work)
        }
        [Err(error), _] | [_, Err(error)] => Err(error),
    };
    if mounted.is_err() {
        let _ = unmount(dir, rustix::mount::UnmountFlags::DETACH);
        return mounted;
    }
    for (point, opened) in &below {
        // A mount below another one came back with it, and a path that no longer exists has nothing
        // to show, so errors do not matter.
        let _ = mount_bind_recursive(fd_path(opened), point);
    }
    Ok(())
}

/// Opened before anything is mounted: a layer may be inside a directory that gets an overlay
/// itself.
pub(super) struct OpenedLayer {
    dir: PathBuf,
    lower: OwnedFd,
    upper: OwnedFd,
    work: OwnedFd,
}

impl OpenedLayer {
    pub(super) fn open(layer: &LayerMount) -> Result<Self, SandboxError> {
        let (dir, upper, work) = (
            Path::new(&layer.dir),
            Path::new(&layer.upper),
            Path::new(&layer.work),
        );
        Ok(Self {
            dir: dir.to_owned(),
            lower: open_path(dir)?,
            upper: open_path(upper)?,
            work: open_path(work)?,
        })
    }

    /// Mounts the overlay and returns its directory.
    pub(super) fn mount(self) -> Result<PathBuf, SandboxError> {
        copy_mode(&self.lower, &self.upper);
        mount_overlay(&self.dir, &self.lower, &self.upper, &self.work)?;
        Ok(self.dir)
    }
}

/// The mode of the upper directory is the one that the overlay shows.
fn copy_mode(lower: &OwnedFd, upper: &OwnedFd) {
    if let Ok(stat) = rustix::fs::fstat(lower) {
        let _ = rustix::fs::chmod(
            fd_path(upper),
            rustix::fs::Mode::from_raw_mode(stat.st_mode & 0o7777),
        );
    }
}

fn mount_overlay(
    at: &Path,
    lower: &OwnedFd,
    upper: &OwnedFd,
    work: &OwnedFd,
) -> Result<(), SandboxError> {
    let [lower, upper, work] = [lower, upper, work].map(fd_path);
    let options = format!("lowerdir={lower},upperdir={upper},workdir={work},userxattr,volatile");
    let options = CString::new(options).expect("the options contain no NUL byte");
    mount(
        "overlay",
        at,
        "overlay",
        MountFlags::NOSUID | MountFlags::NODEV,
        options.as_c_str(),
    )
    .map_err(SandboxError::at(format!("a layer over `{}`", at.display())))
}
