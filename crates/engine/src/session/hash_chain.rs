//! Hash chain of a log: each line carries a digest of itself and of the previous digest, so that
//! changed, added or removed lines are detected. There is no key, so recomputed digests and a
//! truncated end are not detected.

/// The end of a line, around its digest.
const DIGEST_PREFIX: &str = ",\"chain\":\"";
const DIGEST_SUFFIX: &str = "\"}";
const DIGITS: usize = 32;
/// Bytes that the digest adds to a line.
pub(super) const DIGEST_FIELD_LEN: usize = DIGEST_PREFIX.len() + DIGITS + DIGEST_SUFFIX.len();

/// Adds the digest as the last field of a line, which must be a JSON object with a newline.
/// Anything else is returned unchanged.
pub(super) fn add_digest(previous: Option<&str>, line: &[u8]) -> Vec<u8> {
    match line.strip_suffix(b"}\n") {
        Some(body) if body.len() > 1 => {
            let digest = digest(previous, body);
            [
                body,
                DIGEST_PREFIX.as_bytes(),
                digest.as_bytes(),
                DIGEST_SUFFIX.as_bytes(),
                b"\n",
            ]
            .concat()
        }
        _ => line.to_vec(),
    }
}

/// The digest at the end of a line (or of a part of it) without its newline.
pub(super) fn digest_of(line: &[u8]) -> Option<&str> {
    split(line).map(|(_, digest)| digest)
}

/// Checks a log from its first line.
#[derive(Debug, Default)]
pub(super) struct ChainCheck {
    previous: Option<String>,
    /// Lines before the first digest were written by an older version.
    has_begun: bool,
}

impl ChainCheck {
    /// Whether the digest of this entry matches the line before it.
    pub(super) fn follows(&mut self, line: &[u8]) -> bool {
        let Some((body, found)) = split(line) else {
            self.previous = None;
            return !self.has_begun;
        };
        let follows = digest(self.previous.as_deref(), body) == found;
        (self.previous, self.has_begun) = (Some(found.to_owned()), true);
        follows
    }

    /// Skips a line that is not an entry: its writer was killed, and the next one started a new
    /// chain.
    pub(super) fn skip(&mut self) {
        self.previous = None;
    }
}

fn split(line: &[u8]) -> Option<(&[u8], &str)> {
    let rest = line.strip_suffix(DIGEST_SUFFIX.as_bytes())?;
    let (rest, digest) = rest.split_at_checked(rest.len().checked_sub(DIGITS)?)?;
    let body = rest.strip_suffix(DIGEST_PREFIX.as_bytes())?;
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

    /// Log lines, written one after the other.
    fn log(entries: &[&str]) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for entry in entries {
            let previous = lines.last().and_then(|line| digest_of(line.as_bytes()));
            let with_digest = add_digest(previous, format!("{entry}\n").as_bytes());
            lines.push(
                String::from_utf8(with_digest)
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
    fn tampered_lines_are_detected() {
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
    fn older_lines_without_digest_are_accepted() {
        let mut lines = vec![String::from("{\"old\":1}"), String::from("{\"old\":2}")];
        lines.extend(log(&["{\"a\":1}", "{\"a\":2}"]));
        assert_eq!(faults(&lines), 0);
    }

    #[test]
    fn lines_without_object_are_unchanged() {
        assert_eq!(add_digest(None, b"x\n"), b"x\n");
        assert_eq!(add_digest(None, b"{}\n"), b"{}\n");
    }
}
