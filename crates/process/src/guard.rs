//! What a tree holds on to while it works in a project, so that the server's death leaves nothing open.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use super::{Tag, WalledProject};

/// The locks a tree keeps, and what is to be finished should the server die. Cheap to clone.
///
/// Both are `flock`s on open files. Never unlock the project's explicitly: that would take it from the shims too.
/// A process that needs the project at rest (a restore) takes the tree lock exclusively *through an open of its own*;
/// it is granted when the last tree has ended, and as long as it is held no new one starts.
#[derive(Debug, Clone)]
pub struct Guard {
    /// Locked by the server; each shim keeps the same lock until it leaves.
    pub project_lock: Arc<OwnedFd>,
    /// Names the file; each tree takes a share of it through an open of its own.
    pub tree_lock: Arc<OwnedFd>,
    /// Absolute; handed to the shim's `on_orphaned`.
    pub ticket: Option<PathBuf>,
    /// Carried by every process of the tree.
    pub tag: Tag,
    /// What the walls around the tree need to know of the project.
    pub project: Option<WalledProject>,
}
