//! Shares contents with another project that already stores them: a clone, another working tree, or
//! the same project in an overlay. Candidates are found by names and sizes, and contents are used
//! only if the bytes are equal. The other project's pack is hard-linked into our store, so removing
//! it elsewhere does no harm.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::manifest::{Area, Manifest, SharedPack};
use super::pack::PackBase;
use super::read::has_content;
use super::root::{Meta, Node};
use super::store::Store;

/// The smallest digests of a tree's names and sizes. Trees that share most files share most of
/// these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TreeSketch([u32; Self::DIGESTS]);

/// A pack of another store, hard-linked into ours.
pub(super) struct SharedContents {
    pub pack: SharedPack,
    pub base: PackBase,
    /// Positions of contents in it.
    pub at: HashMap<[u8; 32], u64>,
}

/// Number of stores to try: one may disappear meanwhile.
const MAX_CANDIDATES: usize = 3;

impl TreeSketch {
    const DIGESTS: usize = 8;
    /// Number of common digests that makes a store a candidate.
    const MIN_IN_COMMON: usize = 4;

    /// Returns `None` for a tree with only a few files, which is not worth sharing.
    pub(super) fn of(names: &[(Area, Vec<u8>, Meta)]) -> Option<Self> {
        let files = names
            .iter()
            .filter(|(area, _, meta)| *area == Area::Tree && meta.node == Node::File);
        let mut digests: Vec<u32> = files
            .map(|(_, path, meta)| {
                let digest = *blake3::Hasher::new()
                    .update(path)
                    .update(&meta.size.to_le_bytes())
                    .finalize()
                    .as_bytes();
                u32::from_le_bytes([digest[0], digest[1], digest[2], digest[3]])
            })
            .collect();
        digests.sort_unstable();
        digests.dedup();
        Some(Self(*digests.first_chunk()?))
    }

    /// Parses the sketch at the end of a pack's name.
    fn from_name(name: &OsStr) -> Option<Self> {
        let hex = name.to_str()?.strip_prefix("pack.")?.split_once('.')?.1;
        let digits: &[u8; Self::DIGESTS * 8] = hex.as_bytes().try_into().ok()?;
        let (digests, []) = digits.as_chunks::<8>() else {
            return None;
        };
        let mut sketch = [0; Self::DIGESTS];
        for (digest, text) in sketch.iter_mut().zip(digests) {
            *digest = u32::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok()?;
        }
        Some(Self(sketch))
    }

    fn in_common(&self, other: &Self) -> usize {
        self.0
            .iter()
            .filter(|digest| other.0.contains(digest))
            .count()
    }
}

impl fmt::Display for TreeSketch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|digest| write!(f, "{digest:08x}"))
    }
}

/// Returns the contents of the most similar store, linked into `store`. Without one, everything is
/// written.
pub(super) fn find_shared(
    projects: &Path,
    store: &Store,
    sketch: &TreeSketch,
) -> Option<SharedContents> {
    let mut candidates: Vec<(usize, PathBuf)> = stores(projects)
        .filter(|dir| dir != store.path())
        .filter_map(|dir| {
            let sketches = names(&dir)
                .into_iter()
                .filter_map(|name| TreeSketch::from_name(name.as_os_str()));
            let in_common = sketches.map(|found| found.in_common(sketch)).max()?;
            (in_common >= TreeSketch::MIN_IN_COMMON).then_some((in_common, dir))
        })
        .collect();
    candidates.sort_by(|a, b| b.cmp(a));
    candidates
        .into_iter()
        .take(MAX_CANDIDATES)
        .find_map(|(_, dir)| link_contents(&dir, store).ok())
}

fn link_contents(dir: &Path, store: &Store) -> io::Result<SharedContents> {
    let manifest = Store::newest_manifest(dir).ok_or(io::ErrorKind::NotFound)?;
    // What that store shares with a third one is at the beginning; a pack has at most one base.
    let pack = manifest.base.clone().unwrap_or_else(|| SharedPack {
        name: manifest.pack.clone(),
        length: referenced_length(&manifest),
    });
    let linked_path = store.path().join(&pack.name);
    match std::fs::hard_link(dir.join(&pack.name), &linked_path) {
        // Left by a killed call. Names are unique, so it is the same file.
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        result => result?,
    }
    let base = PackBase::open(linked_path, pack.length)?;
    let contents = manifest
        .entries
        .iter()
        .filter(|e| has_content(e.node) && e.at + e.size <= pack.length);
    let at = contents.map(|e| (e.hash, e.at)).collect();
    Ok(SharedContents { base, at, pack })
}

/// Returns the end of the contents that the manifest references. They are on disk and never change.
fn referenced_length(manifest: &Manifest) -> u64 {
    let contents = manifest.entries.iter().filter(|e| has_content(e.node));
    contents.map(|e| e.at + e.size).max().unwrap_or(0)
}

/// Returns the stores of all projects, including those of overlays.
fn stores(projects: &Path) -> impl Iterator<Item = PathBuf> {
    let dirs = names(projects)
        .into_iter()
        .flat_map(move |project| [projects.join(&project), projects.join(project).join("view")]);
    dirs.flat_map(|dir| {
        let stores = names(&dir)
            .into_iter()
            .filter(|name| name.as_encoded_bytes().starts_with(b"root-"));
        stores.map(move |name| dir.join(name)).collect::<Vec<_>>()
    })
}

fn names(dir: &Path) -> Vec<std::ffi::OsString> {
    std::fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sketch(files: impl Iterator<Item = (String, u64)>) -> Option<TreeSketch> {
        let meta = |size| Meta {
            size,
            ..Meta::from(&rustix::fs::stat("/proc/self/exe").expect("a file"))
        };
        TreeSketch::of(
            &files
                .map(|(path, size)| (Area::Tree, path.into_bytes(), meta(size)))
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn similar_trees_share_most_digests() {
        let files = |from: u64, to: u64| (from..to).map(|n| (format!("src/{n}.rs"), 100 + n));
        let (one, most, none) = (
            sketch(files(0, 100)),
            sketch(files(5, 105)),
            sketch(files(1000, 1100)),
        );
        let (one, most, none) = (
            one.expect("enough"),
            most.expect("enough"),
            none.expect("enough"),
        );
        assert!(
            one.in_common(&most) >= TreeSketch::MIN_IN_COMMON,
            "{one} {most}"
        );
        assert_eq!(one.in_common(&none), 0);
        assert_eq!(sketch(files(0, 7)), None);
        let name = format!("pack.0123456789abcdef.{one}");
        assert_eq!(TreeSketch::from_name(OsStr::new(&name)), Some(one));
        for other in [
            "pack.0123456789abcdef",
            "manifest.1",
            "pack.1.xyz",
            &name[..name.len() - 1],
        ] {
            assert_eq!(TreeSketch::from_name(OsStr::new(other)), None, "{other}");
        }
    }
}
