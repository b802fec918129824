//! Delivers the lines of a program's output to an observer while it runs. Observing never slows the
//! program down: lines that a slow reader has not taken are bounded in bytes, and those that do not
//! fit are counted as missed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Longer lines are not passed on.
pub(crate) const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;
/// Limit for queued lines, in bytes. Together with one line in progress, this is about the most
/// that a flood of output adds to the server's memory.
const MAX_QUEUED_BYTES: usize = 32 * 1024 * 1024;
/// Memory of a queued line besides its bytes. Without it, empty lines would not be bounded.
const LINE_OVERHEAD: usize = 64;

/// Returns both ends: the sink for [`CommandSpec::on_line`](super::CommandSpec::on_line) and the receiver.
pub fn lines() -> (LineSink, Lines) {
    let (send, receive) = unbounded_channel();
    let counts = Arc::new(LineCounts::default());
    (
        LineSink {
            send,
            counts: Arc::clone(&counts),
        },
        Lines { receive, counts },
    )
}

/// Receives the lines of a program's stdout.
#[derive(Debug, Clone)]
pub struct LineSink {
    send: UnboundedSender<Vec<u8>>,
    counts: Arc<LineCounts>,
}

/// The lines in order, without their newlines.
#[derive(Debug)]
pub struct Lines {
    receive: UnboundedReceiver<Vec<u8>>,
    counts: Arc<LineCounts>,
}

#[derive(Debug, Default)]
struct LineCounts {
    queued_bytes: AtomicUsize,
    missed: AtomicUsize,
}

impl Lines {
    /// Returns the next line, or `None` when the stream has ended and every line was taken.
    pub async fn next(&mut self) -> Option<Vec<u8>> {
        let line = self.receive.recv().await?;
        self.counts
            .queued_bytes
            .fetch_sub(line.len() + LINE_OVERHEAD, Ordering::Relaxed);
        Some(line)
    }

    /// Returns the number of lines that were too long or arrived faster than they were taken.
    pub fn missed(&self) -> usize {
        self.counts.missed.load(Ordering::Relaxed)
    }
}

impl LineSink {
    fn push(&self, line: Vec<u8>) {
        let size = line.len() + LINE_OVERHEAD;
        if self.counts.queued_bytes.load(Ordering::Relaxed) + size > MAX_QUEUED_BYTES {
            self.count_missed();
            return;
        }
        self.counts.queued_bytes.fetch_add(size, Ordering::Relaxed);
        // An error only means that nobody listens any more.
        let _ = self.send.send(line);
    }

    fn count_missed(&self) {
        self.counts.missed.fetch_add(1, Ordering::Relaxed);
    }
}

/// Splits a stream into lines.
#[derive(Debug)]
pub(super) struct LineSplitter {
    sink: LineSink,
    partial: Vec<u8>,
    /// The current line is too long; skip to its end.
    is_skipping: bool,
}

impl LineSplitter {
    pub(super) fn new(sink: LineSink) -> Self {
        Self {
            sink,
            partial: Vec::new(),
            is_skipping: false,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let mut pieces = bytes.split(|b| *b == b'\n');
        let mut piece = pieces.next().unwrap_or_default();
        for next in pieces {
            self.extend(piece);
            self.end_line();
            piece = next;
        }
        self.extend(piece);
    }

    /// Ends the stream. A last line without a newline counts.
    pub(super) fn finish(mut self) {
        if self.is_skipping || !self.partial.is_empty() {
            self.end_line();
        }
    }

    fn extend(&mut self, piece: &[u8]) {
        if self.is_skipping {
            return;
        }
        if self.partial.len() + piece.len() > MAX_LINE_BYTES {
            self.is_skipping = true;
            self.partial = Vec::new();
        } else {
            self.partial.extend_from_slice(piece);
        }
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.is_skipping) {
            self.sink.count_missed();
        } else {
            self.sink.push(std::mem::take(&mut self.partial));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn split(pieces: &[&[u8]]) -> (Vec<String>, usize) {
        let (sink, mut lines) = lines();
        let mut splitter = LineSplitter::new(sink);
        pieces.iter().for_each(|p| splitter.push(p));
        splitter.finish();
        let mut seen = Vec::new();
        while let Some(line) = lines.next().await {
            seen.push(String::from_utf8(line).unwrap());
        }
        (seen, lines.missed())
    }

    #[tokio::test]
    async fn lines_are_joined_across_chunks() {
        let (seen, missed) = split(&[b"on", b"e\ntwo\n", b"", b"\nfo", b"ur"]).await;
        assert_eq!(
            (seen, missed),
            (
                vec!["one".into(), "two".into(), String::new(), "four".into()],
                0
            )
        );
        assert_eq!(split(&[b"one\n"]).await, (vec!["one".into()], 0));
    }

    #[tokio::test]
    async fn overlong_line_is_counted_as_missed() {
        let megabyte = vec![b'x'; 1024 * 1024];
        let mut pieces = vec![megabyte.as_slice(); 17];
        pieces.push(b"\nafter\n");
        assert_eq!(split(&pieces).await, (vec!["after".into()], 1));
    }

    #[tokio::test]
    async fn queued_lines_are_bounded() {
        let (sink, mut lines) = lines();
        let mut splitter = LineSplitter::new(sink);
        let line = [vec![b'x'; 1024 * 1024], vec![b'\n']].concat();
        for _ in 0..70 {
            splitter.push(&line);
        }
        assert_eq!(lines.missed(), 39);
        lines.next().await.unwrap();
        splitter.push(&line);
        assert_eq!(lines.missed(), 39, "there is room again");
    }

    #[tokio::test]
    async fn queued_empty_lines_are_bounded() {
        let (sink, lines) = lines();
        let mut splitter = LineSplitter::new(sink);
        splitter.push(&vec![b'\n'; MAX_QUEUED_BYTES / LINE_OVERHEAD + 5]);
        assert_eq!(lines.missed(), 5);
    }
}
