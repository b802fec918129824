//! Each line of a log carries a digest of itself and of the digest before it, so that a line which was changed, added or
//! removed by something else is noticed. Recomputed digests and a cut end are not: there is no key.
//! Knows the end of a line. Does not know what is in it.

/// How a line ends, around its digest.
const OPEN: &str = ",\"chain\":\"";
const CLOSE: &str = "\"}";
const DIGITS: usize = 32;
/// Bytes that a chain adds to a line.
pub(super) const LENGTH: usize = OPEN.len() + DIGITS + CLOSE.len();

/// The line, which is a JSON object and its newline, with its digest as the last field. Anything else is left as it is.
pub(super) fn seal(previous: Option<&str>, line: &[u8]) -> Vec<u8> {
    match line.strip_suffix(b"}\n") {
        Some(body) if body.len() > 1 => {
            let digest = digest(previous, body);
            [
                body,
                OPEN.as_bytes(),
                digest.as_bytes(),
                CLOSE.as_bytes(),
                b"\n",
            ]
            .concat()
        }
        _ => line.to_vec(),
    }
}

/// The digest at the end of a line without its newline; also at the end of a part of it.
pub(super) fn digest_of(line: &[u8]) -> Option<&str> {
    split(line).map(|(_, digest)| digest)
}

/// Follows a log from its first line.
#[derive(Debug, Default)]
pub(super) struct ChainCheck {
    previous: Option<String>,
    /// Lines before the first digest were written by an older version.
    has_begun: bool,
}

impl ChainCheck {
    /// Does this entry follow from the line before it?
    pub(super) fn follows(&mut self, line: &[u8]) -> bool {
        let Some((body, found)) = split(line) else {
            self.previous = None;
            return !self.has_begun;
        };
        let follows = digest(self.previous.as_deref(), body) == found;
        (self.previous, self.has_begun) = (Some(found.to_owned()), true);
        follows
    }

    /// A line that is no entry: its writer was killed, and the next one began anew.
    pub(super) fn skip(&mut self) {
        self.previous = None;
    }
}

fn split(line: &[u8]) -> Option<(&[u8], &str)> {
    let rest = line.strip_suffix(CLOSE.as_bytes())?;
    let (rest, digest) = rest.split_at_checked(rest.len().checked_sub(DIGITS)?)?;
    let body = rest.strip_suffix(OPEN.as_bytes())?;
    let digest = std::str::from_utf8(digest).ok()?;
    digest
        .bytes()
        .all(|byte| byte.is_ascii_hexdigit())
        .then_some((body, digest))
}

fn digest(previous: Option<&str>, body: &[u8]) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher
        .update(previous.unwrap_or_default().as_bytes())
        .update(b"\n")
        .update(body);
    hasher.finalize().to_hex()[..DIGITS].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines as they are written, one after the other.
    fn log(entries: &[&str]) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for entry in entries {
            let previous = lines.last().and_then(|line| digest_of(line.as_bytes()));
            let sealed = seal(previous, format!("{entry}\n").as_bytes());
            lines.push(
                String::from_utf8(sealed)
                    .expect("UTF-8")
                    .trim_end()
                    .to_owned(),
            );
        }
        lines
    }

    fn faults(lines: &[String]) -> usize {
        let mut check = ChainCheck::default();
        lines
            .iter()
            .filter(|line| !check.follows(line.as_bytes()))
            .count()
    }

    #[test]
    fn a_line_that_was_changed_added_or_removed_is_noticed() {
        let lines = log(&["{\"a\":1}", "{\"a\":2}", "{\"a\":3}", "{\"a\":4}"]);
        assert_eq!(faults(&lines), 0);
        for line in &lines {
            assert!(
                serde_json::from_str::<serde_json::Value>(line).is_ok(),
                "{line}"
            );
        }
        let mut changed = lines.clone();
        changed[1] = changed[1].replace("\"a\":2", "\"a\":9");
        let mut removed = lines.clone();
        removed.remove(1);
        let mut added = lines.clone();
        added.insert(2, String::from("{\"a\":9}"));
        let mut swapped = lines;
        swapped.swap(1, 2);
        for tampered in [changed, removed, added, swapped] {
            assert!(faults(&tampered) > 0, "{tampered:?}");
        }
    }

    #[test]
    fn lines_of_an_older_version_before_the_first_digest_are_fine() {
        let mut lines = vec![String::from("{\"old\":1}"), String::from("{\"old\":2}")];
        lines.extend(log(&["{\"a\":1}", "{\"a\":2}"]));
        assert_eq!(faults(&lines), 0);
    }

    #[test]
    fn what_is_no_object_is_left_as_it_is() {
        assert_eq!(seal(None, b"x\n"), b"x\n");
        assert_eq!(seal(None, b"{}\n"), b"{}\n");
    }
}
