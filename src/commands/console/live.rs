//! The line that lives: what is happening and for how long, drawn again and again in the place where the cursor is.
//!
//! By hand, though there are good crates: they park the cursor at the right edge, where the `^C` that a terminal echoes
//! breaks the line and leaves it behind. Here the cursor stands behind the words, and everything on the row is ours.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use terminal_size::{Height, Width, terminal_size_of};
use unicode_width::UnicodeWidthChar as _;

const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const TICK: Duration = Duration::from_millis(100);
/// Columns kept free, for the cursor and an echoed `^C`.
const FREE: usize = 4;
/// Back to the first column, and the row is empty.
const CLEAR: &str = "\r\u{1b}[2K";

/// One live line on one terminal. Dropping it takes it away.
pub(super) struct Live {
    line: Arc<LiveLine>,
    ticker: Option<JoinHandle<()>>,
}

/// Shared with the thread that keeps the time, and with code that writes past it.
pub(super) struct LiveLine {
    state: Mutex<State>,
    woken: Condvar,
    columns: fn() -> Option<usize>,
}

struct State {
    out: Box<dyn Write + Send>,
    what: String,
    began: Instant,
    frame: usize,
    alive: bool,
}

impl Live {
    /// On a terminal with so many columns, asked for before each drawing.
    pub(super) fn new(out: impl Write + Send + 'static, columns: fn() -> Option<usize>) -> Self {
        let state = State {
            out: Box::new(out),
            what: String::new(),
            began: Instant::now(),
            frame: 0,
            alive: false,
        };
        let line = LiveLine {
            state: Mutex::new(state),
            woken: Condvar::new(),
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

    /// Shows these words; the time counts from now.
    pub(super) fn begin(&mut self, what: String) {
        self.rest();
        let mut state = self.line.lock();
        (state.what, state.began, state.alive) = (what, Instant::now(), true);
        self.line.draw(&mut state);
        drop(state);
        let line = Arc::clone(&self.line);
        self.ticker = std::thread::Builder::new()
            .name("live-line".into())
            .spawn(move || line.tick())
            .ok();
    }

    /// Shows other words, at once.
    pub(super) fn now(&self, what: String) {
        let mut state = self.line.lock();
        state.what = what;
        if state.alive {
            self.line.draw(&mut state);
        }
    }

    /// Takes the line away.
    pub(super) fn rest(&mut self) {
        let mut state = self.line.lock();
        if std::mem::take(&mut state.alive) {
            state.write(CLEAR);
        }
        drop(state);
        self.line.woken.notify_all();
        if let Some(ticker) = self.ticker.take() {
            let _ = ticker.join();
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.rest();
    }
}

impl LiveLine {
    /// Lets something else write lines: the live one steps aside and comes back below them.
    pub(super) fn around<T>(&self, write: impl FnOnce(&mut dyn Write) -> T) -> T {
        let mut state = self.lock();
        if state.alive {
            state.write(CLEAR);
        }
        let done = write(&mut *state.out);
        if state.alive {
            self.draw(&mut state);
        }
        done
    }

    fn tick(&self) {
        let mut state = self.lock();
        while state.alive {
            state = self
                .woken
                .wait_timeout(state, TICK)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            if state.alive {
                state.frame = (state.frame + 1) % FRAMES.len();
                self.draw(&mut state);
            }
        }
    }

    /// The time comes first, so that a narrow window cuts the words and not the time.
    fn draw(&self, state: &mut State) {
        let text = format!(
            "{} {:>3} s  {}",
            FRAMES[state.frame],
            state.began.elapsed().as_secs(),
            state.what
        );
        let columns = (self.columns)().unwrap_or(80);
        let text = format!("{CLEAR}{}", cut(&text, columns.saturating_sub(FREE)));
        state.write(&text);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// In one piece, so that no half escape is seen. A screen that cannot be written stops nothing.
    fn write(&mut self, text: &str) {
        let _ = self
            .out
            .write_all(text.as_bytes())
            .and_then(|()| self.out.flush());
    }
}

/// As much of the text as fits into so many columns.
fn cut(text: &str, columns: usize) -> &str {
    let mut used = 0;
    let end = text.char_indices().find(|(_, c)| {
        used += c.width().unwrap_or(0);
        used > columns
    });
    end.map_or(text, |(at, _)| &text[..at])
}

/// How wide the terminal at this stream is now.
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
    use super::super::tests::Sheet;
    use super::*;

    #[test]
    fn a_line_is_cut_by_what_it_takes_on_the_screen() {
        assert_eq!(cut("tier · 1", 6), "tier ·");
        assert_eq!(cut("日本語", 5), "日本");
        assert_eq!(cut("e\u{301}a", 1), "e\u{301}", "an accent takes no room");
        assert_eq!(cut("short", 80), "short");
        assert_eq!(cut("x", 0), "");
    }

    #[test]
    fn what_is_written_past_it_stands_above_and_the_end_leaves_nothing() {
        let sheet = Sheet::default();
        let mut live = Live::new(sheet.clone(), || Some(20));
        live.begin("asking the small one for an answer".into());
        live.line()
            .around(|out| out.write_all(b"kept\n"))
            .expect("memory does not fail");
        live.now("other".into());
        live.rest();
        live.now("not to be seen".into());
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
    fn it_moves_while_nothing_is_said() {
        let sheet = Sheet::default();
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
