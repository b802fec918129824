//! The locks that a process tree holds while it works in a project, so that the project is restored
//! if the server dies.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use super::{ProcessTag, SandboxedProject};

/// The locks of a tree and what to recover if the server dies. Cheap to clone.
///
/// Both locks are `flock`s on open files. Never unlock the project lock explicitly: that would
/// release it for the shims too. A process that needs the project idle (a restore) takes the tree
/// lock exclusively through *its own* open file. The lock is granted when the last tree has ended,
/// and no new tree starts while it is held.
#[derive(Debug, Clone)]
pub struct ProjectGuard {
    /// Locked by the server. Each shim keeps the same lock until it exits.
    pub project_lock: Arc<OwnedFd>,
    /// Identifies the lock file. Each tree takes a shared lock through its own open file.
    pub tree_lock: Arc<OwnedFd>,
    /// An absolute path that the shim passes to `on_orphaned`.
    pub recovery_dir: Option<PathBuf>,
    /// Set in the environment of every process of the tree.
    pub tag: ProcessTag,
    /// What the sandbox needs to know about the project.
    pub project: Option<SandboxedProject>,
}
