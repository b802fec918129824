//! Manifests as earlier versions wrote them: a call may have been killed just before the program was replaced, and its
//! snapshot is all that can bring the project back.

use serde::Deserialize;

use super::{Area, LeftOut, Manifest, ManifestEntry, VERSION};
use crate::git::Repository;
use crate::root::Node;

/// Files had bytes, mode and time, and no more.
pub(super) const FIRST: u32 = 1;
/// Every project had a pack of its own.
pub(super) const SECOND: u32 = 2;

#[derive(Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
struct FirstManifest {
    #[cfg_attr(not(test), expect(dead_code, reason = "it was looked at before"))]
    version: u32,
    taken: i64,
    pack: String,
    entries: Vec<FirstEntry>,
    left_out: Vec<LeftOut>,
    repository: Option<Repository>,
    index: Option<[u8; 32]>,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
struct FirstEntry {
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
    if version == SECOND {
        // The same but for the base, which comes last: none.
        let none = postcard::to_stdvec(&None::<()>)?;
        return postcard::from_bytes(&[body, &none].concat()).map(|manifest| Manifest {
            version: VERSION,
            ..manifest
        });
    }
    let FirstManifest {
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

impl From<FirstEntry> for ManifestEntry {
    fn from(entry: FirstEntry) -> Self {
        let FirstEntry {
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
    use super::super::Why;
    use super::*;
    use crate::attributes::FileAttributes;
    use crate::root::Meta;

    /// Those of a file with two names.
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
            vec![LeftOut {
                path: b"target".to_vec(),
                why: Why::BuildOrCache,
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
    fn what_earlier_versions_wrote_is_read_as_it_was_meant() {
        let second = manifest(attributes());
        let mut body = postcard::to_stdvec(&Manifest {
            version: SECOND,
            ..second.clone()
        })
        .expect("encoded");
        assert_eq!(
            body.pop(),
            Some(0),
            "no base, which that version did not know"
        );
        assert_eq!(read(SECOND, &body).expect("read"), second);

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
            FirstEntry {
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
        let body = FirstManifest {
            version: FIRST,
            taken,
            pack,
            entries,
            left_out,
            repository,
            index,
        };
        assert_eq!(
            read(FIRST, &postcard::to_stdvec(&body).expect("encoded")).expect("read"),
            first
        );
    }
}
