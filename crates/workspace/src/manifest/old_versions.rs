//! Reads manifests of earlier versions: a call may have been killed just before the program was
//! updated, and only its snapshot can restore the project.

use serde::Deserialize;

use super::{Area, ExcludedPath, Manifest, ManifestEntry, VERSION};
use crate::git::Repository;
use crate::root::Node;

/// Without file attributes.
pub(super) const VERSION_1: u32 = 1;
/// Without shared packs.
pub(super) const VERSION_2: u32 = 2;

#[derive(Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
struct ManifestV1 {
    #[cfg_attr(not(test), expect(dead_code, reason = "checked by the caller"))]
    version: u32,
    taken: i64,
    pack: String,
    entries: Vec<EntryV1>,
    left_out: Vec<ExcludedPath>,
    repository: Option<Repository>,
    index: Option<[u8; 32]>,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
struct EntryV1 {
    area: Area,
    path: Vec<u8>,
    node: Node,
    mode: u32,
    size: u64,
    mtime: i64,
    ctime: i64,
    ino: u64,
    hash: [u8; 32],
    at: u64,
}

pub(super) fn read(version: u32, body: &[u8]) -> postcard::Result<Manifest> {
    if version == VERSION_2 {
        // Only the base, the last field, is missing: append `None`.
        let none = postcard::to_stdvec(&None::<()>)?;
        return postcard::from_bytes(&[body, &none].concat()).map(|manifest| Manifest {
            version: VERSION,
            ..manifest
        });
    }
    let ManifestV1 {
        taken,
        pack,
        entries,
        left_out,
        repository,
        index,
        ..
    } = postcard::from_bytes(body)?;
    let entries = entries.into_iter().map(ManifestEntry::from).collect();
    Ok(Manifest {
        version: VERSION,
        taken,
        pack,
        entries,
        left_out,
        repository,
        index,
        base: None,
    })
}

impl From<EntryV1> for ManifestEntry {
    fn from(entry: EntryV1) -> Self {
        let EntryV1 {
            area,
            path,
            node,
            mode,
            size,
            mtime,
            ctime,
            ino,
            hash,
            at,
        } = entry;
        Self {
            area,
            path,
            node,
            mode,
            size,
            mtime,
            ctime,
            ino,
            hash,
            at,
            attributes: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::UnprotectedReason;
    use super::*;
    use crate::attributes::FileAttributes;
    use crate::root::Meta;

    /// Attributes of a file with two hard links.
    fn attributes() -> Option<Box<FileAttributes>> {
        let dir = tempfile::tempdir().expect("temp dir");
        let [one, two] = ["one", "two"].map(|name| dir.path().join(name));
        std::fs::write(&one, "x").expect("written");
        std::fs::hard_link(&one, two).expect("linked");
        let file = std::fs::File::open(one).expect("opened");
        let meta = Meta::from(&rustix::fs::fstat(&file).expect("stat"));
        FileAttributes::of(&file, &meta)
    }

    fn manifest(attributes: Option<Box<FileAttributes>>) -> Manifest {
        let (area, path, node, hash) = (Area::Git, b"x\xff".to_vec(), Node::File, [7; 32]);
        let entry = ManifestEntry {
            area,
            path,
            node,
            mode: 0o755,
            size: 5,
            mtime: -1,
            ctime: 2,
            ino: 3,
            hash,
            at: 4,
            attributes,
        };
        let (entries, left_out) = (
            vec![entry],
            vec![ExcludedPath {
                path: b"target".to_vec(),
                why: UnprotectedReason::BuildOrCache,
            }],
        );
        let index = Some([9; 32]);
        Manifest {
            version: VERSION,
            taken: 1,
            pack: "pack.1".into(),
            entries,
            left_out,
            repository: None,
            index,
            base: None,
        }
    }

    #[test]
    fn earlier_versions_can_be_read() {
        let second = manifest(attributes());
        let mut body = postcard::to_stdvec(&Manifest {
            version: VERSION_2,
            ..second.clone()
        })
        .expect("encoded");
        assert_eq!(body.pop(), Some(0), "that version had no base");
        assert_eq!(read(VERSION_2, &body).expect("read"), second);

        let first = manifest(None);
        let Manifest {
            taken,
            pack,
            entries,
            left_out,
            repository,
            index,
            ..
        } = first.clone();
        let entries = entries.into_iter().map(|entry| {
            let ManifestEntry {
                area,
                path,
                node,
                mode,
                size,
                mtime,
                ctime,
                ino,
                hash,
                at,
                ..
            } = entry;
            EntryV1 {
                area,
                path,
                node,
                mode,
                size,
                mtime,
                ctime,
                ino,
                hash,
                at,
            }
        });
        let entries = entries.collect();
        let body = ManifestV1 {
            version: VERSION_1,
            taken,
            pack,
            entries,
            left_out,
            repository,
            index,
        };
        assert_eq!(
            read(VERSION_1, &postcard::to_stdvec(&body).expect("encoded")).expect("read"),
            first
        );
    }
}
