//! Reads git's index far enough to know which paths are tracked and whether an entry changed.
//! The times in it are a cache that `git status` refreshes; they do not count.

/// What the index says, without its cache of file times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::workspace) struct Index {
    /// Over mode, object, stage, flags and path of every entry.
    pub digest: [u8; 32],
    /// Relative to the working tree's top, sorted.
    pub tracked: Vec<Vec<u8>>,
}

const HEADER: usize = 12;
/// ctime, mtime, dev, ino, mode, uid, gid, size: ten words, of which only the mode is the user's doing.
const STAT: usize = 40;
const MODE_AT: usize = 24;
/// assume-valid and stage; the length of the name says nothing new, and "extended" only that more follows.
const FLAGS: u16 = 0xb000;
const EXTENDED: u16 = 0x4000;
/// skip-worktree and intent-to-add.
const MORE_FLAGS: u16 = 0x6000;

/// `None` if these bytes are no index we can read (or a split one, whose other half lies elsewhere): then the bytes
/// themselves have to be compared.
pub(in crate::workspace) fn read_index(bytes: &[u8]) -> Option<Index> {
    // The hash at the end has the length of the objects' names; the names are tried in both lengths.
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
            // Entries are padded with NULs to a multiple of eight; one has been read.
            at = start + (at - 1 - start + 8) / 8 * 8;
            path
        };
        if path.is_empty() {
            return None;
        }
        for part in [mode, object, &(flags & FLAGS).to_be_bytes(), &(more & MORE_FLAGS).to_be_bytes()] {
            digest.update(part);
        }
        digest.update(&(path.len() as u64).to_be_bytes()).update(&path);
        if tracked.last() != Some(&path) {
            tracked.push(path.clone());
        }
        previous = path;
    }
    // Extensions: four letters and a length. `link` means that entries live in another file.
    while at < body.len() {
        let (name, size) = (body.get(at..at + 4)?, word(at + 4)? as usize);
        if name == b"link" {
            return None;
        }
        at = at.checked_add(8)?.checked_add(size)?;
    }
    (at == body.len()).then_some(())?;
    tracked.sort();
    Some(Index { digest: *digest.finalize().as_bytes(), tracked })
}

fn until_nul<'b>(bytes: &'b [u8], at: &mut usize) -> Option<&'b [u8]> {
    let rest = bytes.get(*at..)?;
    let end = rest.iter().position(|b| *b == 0)?;
    *at += end + 1;
    Some(&rest[..end])
}

/// git's offset encoding: seven bits at a time, each continuation adds one.
fn varint(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let mut value = 0usize;
    loop {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value = value.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
        value = value.checked_add(1)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn garbage_is_no_index_and_never_a_panic() {
        for cut in 0..64 {
            assert_eq!(read_index(&b"DIRC\0\0\0\x02\0\0\0\x01".repeat(8)[..cut]), None);
        }
    }
}
