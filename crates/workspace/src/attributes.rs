//! File attributes besides bytes, mode and time: owner, extended attributes (including ACLs) and
//! hard links.

use std::fs::File;
use std::os::unix::fs::fchown;

use rustix::fs::XattrFlags;
use rustix::process::{getegid, geteuid};
use serde::{Deserialize, Serialize};

use super::root::Meta;

/// Attributes of a file that differs from one we would create.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileAttributes {
    /// User and group.
    owner: (u32, u32),
    pub links: u64,
    /// Values by name.
    extended: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The kernel's limit for one value and for the list of names.
const MAX_XATTR_BYTES: usize = 64 << 10;
/// Set by the system for every new file, or internal to overlayfs.
const SKIPPED_PREFIXES: &[&[u8]] = &[b"security.selinux", b"trusted.overlay.", b"user.overlay."];

impl FileAttributes {
    /// Returns `None` if the file has our owner, one link and no extended attributes.
    pub(super) fn of(file: &File, meta: &Meta) -> Option<Box<Self>> {
        let extended = read_extended(file);
        let own = (geteuid().as_raw(), getegid().as_raw());
        let is_plain = meta.owner == own && meta.links <= 1 && extended.is_empty();
        (!is_plain).then(|| {
            Box::new(Self {
                owner: meta.owner,
                links: meta.links,
                extended,
            })
        })
    }

    /// Sets owner and attributes on a new file. Returns what could not be set.
    pub(super) fn apply_to(&self, file: &File) -> Option<&'static str> {
        // First, because changing the owner clears some attributes.
        let owned = fchown(file, Some(self.owner.0), Some(self.owner.1));
        let set = |(name, value): &(Vec<u8>, Vec<u8>)| {
            rustix::fs::fsetxattr(file, name.as_slice(), value, XattrFlags::empty()).is_ok()
        };
        let all_set = self.extended.iter().filter(|pair| !set(pair)).count() == 0;
        match (owned.is_ok(), all_set) {
            (true, true) => None,
            (false, true) => Some("its owner"),
            (true, false) => Some("extended attributes"),
            (false, false) => Some("its owner and extended attributes"),
        }
    }
}

/// Returns the attributes sorted by name; empty if the file system has none.
fn read_extended(file: &File) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut names = vec![0; 1024];
    let mut listed = rustix::fs::flistxattr(file, &mut names[..]);
    if listed.is_err() {
        names = vec![0; MAX_XATTR_BYTES];
        listed = rustix::fs::flistxattr(file, &mut names[..]);
    }
    let Ok(length) = listed.map(|length| length.min(names.len())) else {
        return Vec::new();
    };
    let relevant = names[..length]
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty());
    let relevant = relevant.filter(|name| {
        !SKIPPED_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
    });
    let read = |name: &[u8]| {
        let mut value = vec![0; MAX_XATTR_BYTES];
        let length = rustix::fs::fgetxattr(file, name, &mut value[..]).ok()?;
        value.truncate(length);
        Some((name.to_vec(), value))
    };
    let mut found: Vec<_> = relevant.filter_map(read).collect();
    found.sort();
    found
}
