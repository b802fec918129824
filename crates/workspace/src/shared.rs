//! Contents that another project has kept already: a clone, another working tree, the same project seen through a view.
//! Found by names and sizes before anything is read; relied on only where the bytes are equal. A store that uses a pack
//! of another has a name of its own for it, a hard link: whatever is removed elsewhere, what it needs stays.

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

/// The smallest digests of a tree's names and sizes. Two trees that have most files in common have most of these in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TreeSketch([u32; Self::DIGESTS]);

/// A pack of another store, now under a name in ours.
pub(super) struct SharedContents {
    pub pack: SharedPack,
    pub base: PackBase,
    /// Where contents lie in it.
    pub at: HashMap<[u8; 32], u64>,
}

/// How many stores are tried: one may be gone by the time it is looked at.
const TRIED: usize = 3;

impl TreeSketch {
    const DIGESTS: usize = 8;
    /// So many in common are worth a look.
    const ALIKE: usize = 4;

    /// `None` for a tree of a few files, which has nothing worth sharing.
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

    /// From the end of a pack's name.
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

/// The contents of the store that is most alike, under a name in `store`. That there are none is never an error: then
/// everything is written.
pub(super) fn find_shared(
    projects: &Path,
    store: &Store,
    sketch: &TreeSketch,
) -> Option<SharedContents> {
    let mut alike: Vec<(usize, PathBuf)> = stores(projects)
        .filter(|dir| dir != store.path())
        .filter_map(|dir| {
            let sketches = names(&dir)
                .into_iter()
                .filter_map(|name| TreeSketch::from_name(name.as_os_str()));
            let most = sketches.map(|found| found.in_common(sketch)).max()?;
            (most >= TreeSketch::ALIKE).then_some((most, dir))
        })
        .collect();
    alike.sort_by(|a, b| b.cmp(a));
    alike
        .into_iter()
        .take(TRIED)
        .find_map(|(_, dir)| take_from(&dir, store).ok())
}

fn take_from(dir: &Path, store: &Store) -> io::Result<SharedContents> {
    let manifest = Store::newest_manifest(dir).ok_or(io::ErrorKind::NotFound)?;
    // What that store has from a third one lies at the beginning; only one base is ever stood on.
    let pack = manifest.base.clone().unwrap_or_else(|| SharedPack {
        name: manifest.pack.clone(),
        length: extent(&manifest),
    });
    let own = store.path().join(&pack.name);
    match std::fs::hard_link(dir.join(&pack.name), &own) {
        // Left by a call that was killed; names are never used twice.
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        linked => linked?,
    }
    let base = PackBase::open(own, pack.length)?;
    let contents = manifest
        .entries
        .iter()
        .filter(|e| has_content(e.node) && e.at + e.size <= pack.length);
    let at = contents.map(|e| (e.hash, e.at)).collect();
    Ok(SharedContents { base, at, pack })
}

/// As far as a manifest names contents, they are on disk and stay as they are.
fn extent(manifest: &Manifest) -> u64 {
    let contents = manifest.entries.iter().filter(|e| has_content(e.node));
    contents.map(|e| e.at + e.size).max().unwrap_or(0)
}

/// The stores of all projects, those of private views among them.
fn stores(projects: &Path) -> impl Iterator<Item = PathBuf> {
    let places = names(projects)
        .into_iter()
        .flat_map(move |project| [projects.join(&project), projects.join(project).join("view")]);
    places.flat_map(|place| {
        let stores = names(&place)
            .into_iter()
            .filter(|name| name.as_encoded_bytes().starts_with(b"root-"));
        stores.map(move |name| place.join(name)).collect::<Vec<_>>()
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
    fn trees_that_have_most_files_in_common_are_alike_and_others_are_not() {
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
        assert!(one.in_common(&most) >= TreeSketch::ALIKE, "{one} {most}");
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
