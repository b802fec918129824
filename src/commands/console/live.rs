//! The live line: the current step and its elapsed time, redrawn in place.
//!
//! This is written by hand because the existing crates park the cursor at the right edge, where the
//! `^C` that a terminal echoes breaks the line and leaves it behind. Here the cursor stays right
//! after the text.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use terminal_size::{Height, Width, terminal_size_of};
use unicode_width::UnicodeWidthChar as _;

const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const TICK: Duration = Duration::from_millis(100);
/// Columns kept free, for the cursor and an echoed `^C`.
const RESERVED_COLUMNS: usize = 4;
/// Returns to the first column and clears the row.
const CLEAR: &str = "\r\u{1b}[2K";

/// One live line on one terminal. Dropping it removes the line.
pub(super) struct Live {
    line: Arc<LiveLine>,
    ticker: Option<JoinHandle<()>>,
}

/// Shared with the ticker thread and with code that writes above the line.
pub(super) struct LiveLine {
    state: Mutex<State>,
    wake: Condvar,
    columns: fn() -> Option<usize>,
}

struct State {
    out: Box<dyn Write + Send>,
    text: String,
    started: Instant,
    frame: usize,
    visible: bool,
}

impl Live {
    /// `columns` returns the terminal's width and is called before each redraw.
    pub(super) fn new(out: impl Write + Send + 'static, columns: fn() -> Option<usize>) -> Self {
        let state = State {
            out: Box::new(out),
            text: String::new(),
            started: Instant::now(),
            frame: 0,
            visible: false,
        };
        let line = LiveLine {
            state: Mutex::new(state),
            wake: Condvar::new(),
            columns,
        };
        Self {
            line: Arc::new(line),
            ticker: None,
        }
    }

    pub(super) fn line(&self) -> &Arc<LiveLine> {
        &self.line
    }

    /// Shows this text; the time counts from now.
    pub(super) fn begin(&mut self, text: String) {
        self.hide();
        let mut state = self.line.lock();
        (state.text, state.started, state.visible) = (text, Instant::now(), true);
        self.line.draw(&mut state);
        drop(state);
        let line = Arc::clone(&self.line);
        self.ticker = std::thread::Builder::new()
            .name("live-line".into())
            .spawn(move || line.tick())
            .ok();
    }

    /// Replaces the text at once.
    pub(super) fn set_status(&self, text: String) {
        let mut state = self.line.lock();
        state.text = text;
        if state.visible {
            self.line.draw(&mut state);
        }
    }

    /// Removes the line.
    pub(super) fn hide(&mut self) {
        let mut state = self.line.lock();
        if std::mem::take(&mut state.visible) {
            state.write(CLEAR);
        }
        drop(state);
        self.line.wake.notify_all();
        if let Some(ticker) = self.ticker.take() {
            let _ = ticker.join();
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.hide();
    }
}

impl LiveLine {
    /// Lets the caller write lines: removes the live line, calls `write`, and draws the live line
    /// below.
    pub(super) fn write_above<T>(&self, write: impl FnOnce(&mut dyn Write) -> T) -> T {
        let mut state = self.lock();
        if state.visible {
            state.write(CLEAR);
        }
        let result = write(&mut *state.out);
        if state.visible {
            self.draw(&mut state);
        }
        result
    }

    fn tick(&self) {
        let mut state = self.lock();
        while state.visible {
            state = self
                .wake
                .wait_timeout(state, TICK)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            if state.visible {
                state.frame = (state.frame + 1) % FRAMES.len();
                self.draw(&mut state);
            }
        }
    }

    /// The time comes first, so that a narrow window cuts the text and not the time.
    fn draw(&self, state: &mut State) {
        let line = format!(
            "{} {:>3} s  {}",
            FRAMES[state.frame],
            state.started.elapsed().as_secs(),
            state.text
        );
        let columns = (self.columns)().unwrap_or(80);
        let line = format!(
            "{CLEAR}{}",
            cut(&line, columns.saturating_sub(RESERVED_COLUMNS))
        );
        state.write(&line);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Writes the text at once, so that no partial escape shows. Errors are ignored: a broken
    /// screen must not stop the command.
    fn write(&mut self, text: &str) {
        let _ = self
            .out
            .write_all(text.as_bytes())
            .and_then(|()| self.out.flush());
    }
}

/// Returns the text if it fits into `columns`, else the longest prefix that does with `…`.
fn cut(text: &str, columns: usize) -> Cow<'_, str> {
    let end_within = |columns: usize| {
        let mut used = 0;
        let mut ends = text.char_indices();
        ends.find_map(|(at, c)| {
            used += c.width().unwrap_or(0);
            (used > columns).then_some(at)
        })
    };
    match (end_within(columns), columns) {
        (None, _) => text.into(),
        (Some(_), 0) => "".into(),
        (Some(_), _) => {
            let end = end_within(columns - 1).unwrap_or_default();
            format!("{}…", &text[..end]).into()
        }
    }
}

/// Current width of the terminal at this stream.
pub(super) fn columns_of_stderr() -> Option<usize> {
    columns(terminal_size_of(io::stderr()))
}

pub(super) fn columns_of_stdout() -> Option<usize> {
    columns(terminal_size_of(io::stdout()))
}

fn columns(size: Option<(Width, Height)>) -> Option<usize> {
    size.map(|(Width(columns), _)| usize::from(columns))
        .filter(|columns| *columns > 0)
}

#[cfg(test)]
mod tests {
    use super::super::tests::SharedBuffer;
    use super::*;

    #[test]
    fn line_is_cut_by_display_width() {
        assert_eq!(cut("tier · 1", 6), "tier …");
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("e\u{301}a", 2), "e\u{301}a", "an accent takes no room");
        assert_eq!(cut("short", 80), "short");
        assert_eq!(cut("x", 0), "");
    }

    #[test]
    fn lines_are_written_above_and_hide_clears() {
        let sheet = SharedBuffer::default();
        let mut live = Live::new(sheet.clone(), || Some(20));
        live.begin("asking the small one for an answer".into());
        live.line()
            .write_above(|out| out.write_all(b"kept\n"))
            .expect("memory does not fail");
        live.set_status("other".into());
        live.hide();
        live.set_status("not to be seen".into());
        let text = sheet.text();
        assert!(text.starts_with("\r\u{1b}[2K⠋   0 s  asking"), "{text:?}");
        assert!(text.contains("\r\u{1b}[2Kkept\n\r\u{1b}[2K"), "{text:?}");
        assert!(
            text.contains("other") && text.ends_with(CLEAR) && !text.contains("not to be seen"),
            "{text:?}"
        );
        assert!(
            !text.contains("small"),
            "20 columns are not enough for it: {text:?}"
        );
    }

    #[test]
    fn spinner_advances_without_updates() {
        let sheet = SharedBuffer::default();
        let mut live = Live::new(sheet.clone(), || None);
        live.begin("waiting".into());
        let deadline = Instant::now() + Duration::from_secs(60);
        while !sheet.text().contains('⠙') {
            assert!(Instant::now() < deadline, "{:?}", sheet.text());
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(live);
        assert!(sheet.text().ends_with(CLEAR));
    }
}
