//! Output in bounded memory: the head and the tail are kept, the middle is counted.

use std::borrow::Cow;
use std::collections::VecDeque;

/// What a program wrote to one stream, as far as it was kept.
#[derive(Debug, Clone, Default)]
pub struct Captured {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

/// Kept from the start of a stream.
const HEAD: usize = 64 * 1024;
/// Kept from its end.
const TAIL: usize = 192 * 1024;

impl Captured {
    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let into_head = bytes.len().min(HEAD - self.head.len());
        self.head.extend_from_slice(&bytes[..into_head]);
        let rest = &bytes[into_head..];
        let rest = &rest[rest.len().saturating_sub(TAIL)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(TAIL);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    /// Bytes written in all.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// True if the middle is missing.
    pub fn is_cut(&self) -> bool {
        self.total > (self.head.len() + self.tail.len()) as u64
    }

    /// The bytes kept, with a marked cut where some are missing.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = self.head.clone();
        if self.is_cut() {
            let missing = self.total - (self.head.len() + self.tail.len()) as u64;
            out.extend_from_slice(format!("\n… [{missing} bytes cut] …\n").as_bytes());
        }
        out.extend(&self.tail);
        out
    }

    pub fn text(&self) -> Cow<'static, str> {
        Cow::Owned(String::from_utf8_lossy(&self.bytes()).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_keeps_its_first_and_last_words_and_counts_the_rest() {
        let mut seen = Captured::default();
        seen.push(b"first");
        for _ in 0..100 {
            seen.push(&[b'x'; 10_000]);
        }
        seen.push(b"last");
        assert_eq!(seen.total(), 1_000_009);
        let text = seen.text();
        assert!(text.starts_with("first") && text.ends_with("last") && text.contains("bytes cut"));
        assert!(text.len() < HEAD + TAIL + 100);
    }
}
