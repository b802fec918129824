//! Output in bounded memory: the head and the tail are kept, the middle is counted.

use std::borrow::Cow;
use std::collections::VecDeque;

use tokio::io::{AsyncRead, AsyncReadExt};

use super::lines::Splitter;

/// Bytes read at once: at first, and from a program that says much.
const FIRST: usize = 8 * 1024;
const WHOLE_PIPE: usize = 64 * 1024;

/// How much of a stream is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaptureLimits {
    /// From its start, in bytes.
    pub head: usize,
    /// From its end, in bytes.
    pub tail: usize,
}

impl Default for CaptureLimits {
    fn default() -> Self {
        Self {
            head: 64 * 1024,
            tail: 192 * 1024,
        }
    }
}

/// What a program wrote to one stream, as far as it was kept.
#[derive(Debug, Clone, Default)]
pub struct CapturedOutput {
    limits: CaptureLimits,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

impl CapturedOutput {
    pub fn within(limits: CaptureLimits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        let CaptureLimits { head, tail } = self.limits;
        self.total += bytes.len() as u64;
        let into_head = bytes.len().min(head - self.head.len());
        self.head.extend_from_slice(&bytes[..into_head]);
        let rest = &bytes[into_head..];
        let rest = &rest[rest.len().saturating_sub(tail)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(tail);
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

/// Reads a stream to its end. Dropped before that, what was read so far is kept.
pub(super) async fn drain(
    from: Option<impl AsyncRead + Unpin>,
    into: &mut CapturedOutput,
    mut lines: Option<Splitter>,
) {
    let Some(mut from) = from else { return };
    // Most programs say little; a program that fills this once is read in pieces as large as a pipe holds.
    let mut buffer = vec![0; FIRST];
    while let Ok(n @ 1..) = from.read(&mut buffer).await {
        into.push(&buffer[..n]);
        if let Some(lines) = &mut lines {
            lines.push(&buffer[..n]);
        }
        if n == FIRST {
            buffer.resize(WHOLE_PIPE, 0);
        }
    }
    if let Some(lines) = lines {
        lines.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_keeps_its_first_and_last_words_and_counts_the_rest() {
        let mut seen = CapturedOutput::default();
        seen.push(b"first");
        for _ in 0..100 {
            seen.push(&[b'x'; 10_000]);
        }
        seen.push(b"last");
        assert_eq!(seen.total(), 1_000_009);
        let text = seen.text();
        assert!(text.starts_with("first") && text.ends_with("last") && text.contains("bytes cut"));
        let CaptureLimits { head, tail } = CaptureLimits::default();
        assert!(text.len() < head + tail + 100);
    }

    #[test]
    fn any_cutting_into_pieces_keeps_the_same_bytes() {
        let all: Vec<u8> = (0..=255).cycle().take(1000).collect();
        for limits in [
            CaptureLimits { head: 0, tail: 10 },
            CaptureLimits { head: 10, tail: 0 },
            CaptureLimits {
                head: 300,
                tail: 300,
            },
        ] {
            let mut whole = CapturedOutput::within(limits);
            whole.push(&all);
            for size in [1, 7, 299, 300, 301, 999] {
                let mut pieces = CapturedOutput::within(limits);
                all.chunks(size).for_each(|piece| pieces.push(piece));
                assert_eq!(
                    pieces.bytes(),
                    whole.bytes(),
                    "{limits:?} in pieces of {size}"
                );
            }
            assert!(whole.is_cut());
        }
        let mut fits = CapturedOutput::within(CaptureLimits {
            head: 500,
            tail: 500,
        });
        fits.push(&all);
        assert!(!fits.is_cut());
        assert_eq!(fits.bytes(), all);
    }
}
