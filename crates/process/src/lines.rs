//! Lines of a program's output as they appear, for an observer. Watching never slows the program down:
//! what a slow reader has not taken yet is bounded in bytes, and what does not fit is counted as missed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// A longer line is not passed on.
pub const LONGEST_LINE: usize = 16 * 1024 * 1024;
/// Lines waiting to be taken, in bytes. With the longest line that is begun meanwhile this is most of what a flood may add
/// to the server's memory.
const WAITING: usize = 32 * 1024 * 1024;
/// What a waiting line takes besides its bytes; without it a flood of empty lines would have no bound.
const PER_LINE: usize = 64;

/// Both ends: one for [`Spec::on_line`](super::Spec::on_line), one to read from.
pub fn lines() -> (LineSink, Lines) {
    let (send, receive) = unbounded_channel();
    let count = Arc::new(Count::default());
    (
        LineSink {
            send,
            count: Arc::clone(&count),
        },
        Lines { receive, count },
    )
}

/// Where a run puts the lines of its stdout.
#[derive(Debug, Clone)]
pub struct LineSink {
    send: UnboundedSender<Vec<u8>>,
    count: Arc<Count>,
}

/// The lines, without their newlines, in order.
#[derive(Debug)]
pub struct Lines {
    receive: UnboundedReceiver<Vec<u8>>,
    count: Arc<Count>,
}

#[derive(Debug, Default)]
struct Count {
    waiting: AtomicUsize,
    missed: AtomicUsize,
}

impl Lines {
    /// The next line; `None` when the stream has ended and every line was taken.
    pub async fn next(&mut self) -> Option<Vec<u8>> {
        let line = self.receive.recv().await?;
        self.count
            .waiting
            .fetch_sub(line.len() + PER_LINE, Ordering::Relaxed);
        Some(line)
    }

    /// Lines that were too long, or came faster than they were taken.
    pub fn missed(&self) -> usize {
        self.count.missed.load(Ordering::Relaxed)
    }
}

impl LineSink {
    fn offer(&self, line: Vec<u8>) {
        let takes = line.len() + PER_LINE;
        if self.count.waiting.load(Ordering::Relaxed) + takes > WAITING {
            self.miss();
            return;
        }
        self.count.waiting.fetch_add(takes, Ordering::Relaxed);
        // There is no listener any more, which is no error.
        let _ = self.send.send(line);
    }

    fn miss(&self) {
        self.count.missed.fetch_add(1, Ordering::Relaxed);
    }
}

/// Cuts a stream into lines.
#[derive(Debug)]
pub(super) struct Splitter {
    sink: LineSink,
    begun: Vec<u8>,
    /// The line begun is too long already; skip to its end.
    skipping: bool,
}

impl Splitter {
    pub(super) fn new(sink: LineSink) -> Self {
        Self {
            sink,
            begun: Vec::new(),
            skipping: false,
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

    /// The stream has ended; a last line without newline counts.
    pub(super) fn finish(mut self) {
        if self.skipping || !self.begun.is_empty() {
            self.end_line();
        }
    }

    fn extend(&mut self, piece: &[u8]) {
        if self.skipping {
            return;
        }
        if self.begun.len() + piece.len() > LONGEST_LINE {
            self.skipping = true;
            self.begun = Vec::new();
        } else {
            self.begun.extend_from_slice(piece);
        }
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.skipping) {
            self.sink.miss();
        } else {
            self.sink.offer(std::mem::take(&mut self.begun));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn split(pieces: &[&[u8]]) -> (Vec<String>, usize) {
        let (sink, mut lines) = lines();
        let mut splitter = Splitter::new(sink);
        pieces.iter().for_each(|p| splitter.push(p));
        splitter.finish();
        let mut seen = Vec::new();
        while let Some(line) = lines.next().await {
            seen.push(String::from_utf8(line).unwrap());
        }
        (seen, lines.missed())
    }

    #[tokio::test]
    async fn lines_are_whole_wherever_the_pieces_were_cut() {
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
    async fn an_endless_line_is_missed_and_the_next_one_seen() {
        let megabyte = vec![b'x'; 1024 * 1024];
        let mut pieces = vec![megabyte.as_slice(); 17];
        pieces.push(b"\nafter\n");
        assert_eq!(split(&pieces).await, (vec!["after".into()], 1));
    }

    #[tokio::test]
    async fn lines_that_are_not_taken_are_bounded_and_counted() {
        let (sink, mut lines) = lines();
        let mut splitter = Splitter::new(sink);
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
    async fn empty_lines_that_are_not_taken_are_bounded_too() {
        let (sink, lines) = lines();
        let mut splitter = Splitter::new(sink);
        splitter.push(&vec![b'\n'; WAITING / PER_LINE + 5]);
        assert_eq!(lines.missed(), 5);
    }
}
