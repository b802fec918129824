//! Captures output in bounded memory: keeps the head and the tail and counts the bytes between
//! them.

use std::borrow::Cow;
use std::collections::VecDeque;

use tokio::io::{AsyncRead, AsyncReadExt};

use super::lines::LineSplitter;

/// Size of the read buffer, initially and after a program has filled it once.
const INITIAL_BUFFER: usize = 8 * 1024;
const PIPE_CAPACITY: usize = 64 * 1024;

/// How much of a stream to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaptureLimits {
    /// Bytes kept from the start.
    pub head: usize,
    /// Bytes kept from the end.
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

/// The captured output of one stream.
#[derive(Debug, Clone, Default)]
pub struct CapturedOutput {
    limits: CaptureLimits,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

impl CapturedOutput {
    pub fn with_limits(limits: CaptureLimits) -> Self {
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

    /// Returns the number of bytes written, including dropped ones.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns true if bytes were dropped from the middle.
    pub fn is_cut(&self) -> bool {
        self.total > (self.head.len() + self.tail.len()) as u64
    }

    /// Returns the kept bytes, with a marker where some are missing.
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

/// Reads a stream to its end. If the future is dropped earlier, `into` keeps what was read so far.
pub(super) async fn drain(
    from: Option<impl AsyncRead + Unpin>,
    into: &mut CapturedOutput,
    mut lines: Option<LineSplitter>,
) {
    let Some(mut from) = from else { return };
    // Most programs write little. One that fills the buffer gets a buffer of a whole pipe's
    // capacity.
    let mut buffer = vec![0; INITIAL_BUFFER];
    while let Ok(n @ 1..) = from.read(&mut buffer).await {
        into.push(&buffer[..n]);
        if let Some(lines) = &mut lines {
            lines.push(&buffer[..n]);
        }
        if n == INITIAL_BUFFER {
            buffer.resize(PIPE_CAPACITY, 0);
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
    fn long_output_keeps_head_and_tail() {
        let mut output = CapturedOutput::default();
        output.push(b"first");
        for _ in 0..100 {
            output.push(&[b'x'; 10_000]);
        }
        output.push(b"last");
        assert_eq!(output.total(), 1_000_009);
        let text = output.text();
        assert!(text.starts_with("first") && text.ends_with("last") && text.contains("bytes cut"));
        let CaptureLimits { head, tail } = CaptureLimits::default();
        assert!(text.len() < head + tail + 100);
    }

    #[test]
    fn chunking_does_not_change_kept_bytes() {
        let all: Vec<u8> = (0..=255).cycle().take(1000).collect();
        for limits in [
            CaptureLimits { head: 0, tail: 10 },
            CaptureLimits { head: 10, tail: 0 },
            CaptureLimits {
                head: 300,
                tail: 300,
            },
        ] {
            let mut whole = CapturedOutput::with_limits(limits);
            whole.push(&all);
            for size in [1, 7, 299, 300, 301, 999] {
                let mut pieces = CapturedOutput::with_limits(limits);
                all.chunks(size).for_each(|piece| pieces.push(piece));
                assert_eq!(
                    pieces.bytes(),
                    whole.bytes(),
                    "{limits:?} in pieces of {size}"
                );
            }
            assert!(whole.is_cut());
        }
        let mut fits = CapturedOutput::with_limits(CaptureLimits {
            head: 500,
            tail: 500,
        });
        fits.push(&all);
        assert!(!fits.is_cut());
        assert_eq!(fits.bytes(), all);
    }
}
