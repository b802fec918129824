//! Puts a directory at another path for this process and its children.

use std::path::Path;

use nix::sched::CloneFlags;
use rustix::mount::{MountPropagationFlags, mount_bind_recursive, mount_change};

use super::inner::{self, SandboxError};

/// Why a directory cannot be put at another path.
#[derive(Debug, thiserror::Error)]
#[error("`{path}` cannot be the place of the files: {why}")]
pub struct PlacementError {
    path: String,
    why: String,
}

/// Mounts `dir` at the absolute path `at` in a mount namespace of this process, and creates `at` if it is missing.
/// Needs a process with a single thread.
pub fn place_dir_at(dir: &Path, at: &Path) -> Result<(), PlacementError> {
    let refused = |why: String| PlacementError {
        path: at.display().to_string(),
        why,
    };
    let own = std::env::current_dir().map_err(|error| refused(error.to_string()))?;
    if !at.is_absolute() || at.parent().is_none() || own.starts_with(at) {
        return Err(refused(String::from("this process works in it")));
    }
    std::fs::create_dir_all(at).map_err(|error| refused(error.to_string()))?;
    mount_at(dir, at).map_err(|error| refused(error.to_string()))
}

fn mount_at(dir: &Path, at: &Path) -> Result<(), SandboxError> {
    let namespace = CloneFlags::CLONE_NEWNS;
    if !rustix::process::geteuid().is_root() || nix::sched::unshare(namespace).is_err() {
        inner::enter_user_namespace(namespace)?;
    }
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(SandboxError::at("private mounts"))?;
    mount_bind_recursive(dir, at).map_err(SandboxError::at("mounting it"))
}
