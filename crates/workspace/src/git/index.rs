//! Reads git's index far enough to know which paths are tracked and whether an entry changed.
//! Ignores the file times in it, which are a cache that `git status` refreshes.
//!
//! Parsed by hand, because a worker controls these bytes and `gix-index` 0.58 is not safe for that:
//! it follows unchecked offsets when reading with several threads, loses names of 4,095 bytes and
//! more, drops unknown mode bits, and adds 33 crates.

/// The contents of the index, without file times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Index {
    /// Digest of mode, object, stage, flags and path of every entry.
    pub digest: [u8; 32],
    /// Tracked paths relative to the top of the working tree, sorted.
    pub tracked: Vec<Vec<u8>>,
}

const HEADER: usize = 12;
/// ctime, mtime, dev, ino, mode, uid, gid, size: ten words, of which only the mode is meaningful.
const STAT: usize = 40;
const MODE_AT: usize = 24;
/// assume-valid and stage. The name length is redundant, and "extended" only says that more flags
/// follow.
const FLAGS: u16 = 0xb000;
const EXTENDED: u16 = 0x4000;
/// skip-worktree and intent-to-add.
const MORE_FLAGS: u16 = 0x6000;

/// Returns `None` if this is not a readable index (or a split one, whose other half is in another
/// file). The caller then compares the bytes themselves.
pub(crate) fn read_index(bytes: &[u8]) -> Option<Index> {
    // The trailing hash is as long as an object id, so try both lengths.
    [20, 32].into_iter().find_map(|oid| parse(bytes, oid))
}

fn parse(bytes: &[u8], oid: usize) -> Option<Index> {
    let body = bytes.get(..bytes.len().checked_sub(oid)?)?;
    let word = |at: usize| Some(u32::from_be_bytes(body.get(at..at + 4)?.try_into().ok()?));
    let half = |at: usize| Some(u16::from_be_bytes(body.get(at..at + 2)?.try_into().ok()?));
    if body.get(..4)? != b"DIRC" {
        return None;
    }
    let (version, count) = (word(4)?, word(8)?);
    if !(2..=4).contains(&version) {
        return None;
    }
    let mut digest = blake3::Hasher::new();
    let mut tracked: Vec<Vec<u8>> = Vec::new();
    let (mut at, mut previous) = (HEADER, Vec::new());
    for _ in 0..count {
        let start = at;
        let mode = body.get(at + MODE_AT..at + MODE_AT + 4)?;
        let object = body.get(at + STAT..at + STAT + oid)?;
        at += STAT + oid;
        let flags = half(at)?;
        at += 2;
        let mut more = 0;
        if flags & EXTENDED != 0 {
            (version >= 3).then_some(())?;
            more = half(at)?;
            at += 2;
        }
        let path = if version == 4 {
            let drop = varint(body, &mut at)?;
            let mut path: Vec<u8> = previous.get(..previous.len().checked_sub(drop)?)?.to_vec();
            path.extend_from_slice(until_nul(body, &mut at)?);
            path
        } else {
            let path = until_nul(body, &mut at)?.to_vec();
            // Entries are padded with NULs to a multiple of eight; one NUL has been read.
            at = start + (at - 1 - start + 8) / 8 * 8;
            path
        };
        if path.is_empty() {
            return None;
        }
        for part in [
            mode,
            object,
            &(flags & FLAGS).to_be_bytes(),
            &(more & MORE_FLAGS).to_be_bytes(),
        ] {
            digest.update(part);
        }
        digest
            .update(&(path.len() as u64).to_be_bytes())
            .update(&path);
        if tracked.last() != Some(&path) {
            tracked.push(path.clone());
        }
        previous = path;
    }
    // Extensions: four letters and a length. `link` means that entries are in another file.
    while at < body.len() {
        let (name, size) = (body.get(at..at + 4)?, word(at + 4)? as usize);
        if name == b"link" {
            return None;
        }
        at = at.checked_add(8)?.checked_add(size)?;
    }
    (at == body.len()).then_some(())?;
    tracked.sort();
    Some(Index {
        digest: *digest.finalize().as_bytes(),
        tracked,
    })
}

fn until_nul<'b>(bytes: &'b [u8], at: &mut usize) -> Option<&'b [u8]> {
    let rest = bytes.get(*at..)?;
    let end = rest.iter().position(|b| *b == 0)?;
    *at += end + 1;
    Some(&rest[..end])
}

/// Git's offset encoding: seven bits per byte, and each continuation adds one.
fn varint(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let mut value = 0usize;
    loop {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value = value
            .checked_mul(128)?
            .checked_add(usize::from(byte & 0x7f))?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
        value = value.checked_add(1)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn garbage_is_not_an_index() {
        for cut in 0..64 {
            assert_eq!(
                read_index(&b"DIRC\0\0\0\x02\0\0\0\x01".repeat(8)[..cut]),
                None
            );
        }
    }

    /// Version 2, two entries, no extension and a zero checksum, as written with `index.skipHash`.
    fn small(name: &[u8]) -> Vec<u8> {
        let mut bytes = b"DIRC\0\0\0\x02\0\0\0\x02".to_vec();
        for name in [b"a".as_slice(), name] {
            let start = bytes.len();
            bytes.extend([0; 24]);
            bytes.extend(0o100_644_u32.to_be_bytes());
            bytes.extend([0; 12]);
            bytes.extend([7; 20]);
            bytes.extend((name.len().min(0xfff) as u16).to_be_bytes());
            bytes.extend(name);
            let padded = (bytes.len() - start + 8) / 8 * 8;
            bytes.resize(start + padded, 0);
        }
        bytes.extend([0; 20]);
        bytes
    }

    #[test]
    fn names_of_any_length_are_read() {
        for length in [1, 7, 8, 4094, 4095, 4096, 5000] {
            let name = vec![b'x'; length];
            let index =
                read_index(&small(&name)).unwrap_or_else(|| panic!("a name of {length} bytes"));
            assert_eq!(index.tracked, [b"a".to_vec(), name]);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn mutated_index_never_panics(
            spots in proptest::collection::vec((0..400_usize, any::<u8>()), 1..12), version in 2..5_u8,
            tail in proptest::collection::vec(any::<u8>(), 0..80), ends in any::<bool>()) {
            let mut bytes = small(b"some/name");
            bytes[7] = version;
            bytes.truncate(bytes.len() - 20);
            bytes.extend(tail);
            if ends {
                bytes.extend(b"EOIE\0\0\0\x18\0\0\0\x8c");
            }
            bytes.extend([0; 20]);
            for (at, byte) in spots {
                if let Some(spot) = bytes.get_mut(at) {
                    *spot = byte;
                }
            }
            let _ = read_index(&bytes);
        }
    }
}
