//! What a file has besides bytes, mode and time: an owner, extended attributes (ACLs are among them), further names.
//! Knows how they are read and put back. Does not know which file is meant.

use std::fs::File;
use std::os::unix::fs::fchown;

use rustix::fs::XattrFlags;
use rustix::process::{getegid, geteuid};
use serde::{Deserialize, Serialize};

use super::root::Meta;

/// Of a file that is not simply ours, with one name and nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileAttributes {
    /// User and group.
    owner: (u32, u32),
    pub links: u64,
    /// By name.
    extended: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The kernel's own bound for one value, and for the list of names.
const LONGEST: usize = 64 << 10;
/// Written by the system for every new file, or by an overlay for itself.
const NOT_OURS: &[&[u8]] = &[b"security.selinux", b"trusted.overlay.", b"user.overlay."];

impl FileAttributes {
    /// `None` for a file as we would make it.
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

    /// Gives a new file the owner and the attributes; says what could not be given.
    pub(super) fn put_on(&self, file: &File) -> Option<&'static str> {
        // First, because a change of owner takes some attributes away.
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

/// Sorted by name. A file system without them has none.
fn read_extended(file: &File) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut names = vec![0; 1024];
    let mut listed = rustix::fs::flistxattr(file, &mut names[..]);
    if listed.is_err() {
        names = vec![0; LONGEST];
        listed = rustix::fs::flistxattr(file, &mut names[..]);
    }
    let Ok(length) = listed.map(|length| length.min(names.len())) else {
        return Vec::new();
    };
    let wanted = names[..length]
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty());
    let wanted = wanted.filter(|name| !NOT_OURS.iter().any(|prefix| name.starts_with(prefix)));
    let read = |name: &[u8]| {
        let mut value = vec![0; LONGEST];
        let length = rustix::fs::fgetxattr(file, name, &mut value[..]).ok()?;
        value.truncate(length);
        Some((name.to_vec(), value))
    };
    let mut found: Vec<_> = wanted.filter_map(read).collect();
    found.sort();
    found
}
