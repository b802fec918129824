//! How a run looks: on a terminal one live line with the time it has taken, finished lines above it; elsewhere plain
//! lines, without escapes. Knows terminals. Does not know what the lines are about.
//!
//! Text of others is made safe here: whatever goes through [`Console::now`] or a [`Paint`] cannot move the cursor.

mod live;
mod paint;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};

use self::live::{Live, LiveLine};
pub(super) use self::paint::Paint;
use supervisor_text::words;

/// The live line that log lines must step around; one at a time, as there is one terminal.
static LIVE: Mutex<Option<Arc<LiveLine>>> = Mutex::new(None);

/// Where a run is shown. Nothing that goes wrong with the screen stops the run.
pub(super) struct Console {
    screen: Screen,
    paint: Paint,
}

enum Screen {
    /// Lines can be replaced in place.
    Live(Live),
    Plain(Box<dyn Write + Send>),
}

impl Console {
    pub(super) fn stderr() -> Self {
        Self::on(io::stderr(), live::columns_of_stderr)
    }

    pub(super) fn stdout() -> Self {
        Self::on(io::stdout(), live::columns_of_stdout)
    }

    /// Plain lines, whatever the environment says.
    #[cfg(test)]
    pub(super) fn plain(out: impl Write + Send + 'static) -> Self {
        Self {
            screen: Screen::Plain(Box::new(out)),
            paint: Paint::Plain,
        }
    }

    fn on(
        stream: impl Write + IsTerminal + Send + 'static,
        columns: fn() -> Option<usize>,
    ) -> Self {
        let paint = Paint::on(&stream);
        let screen = if can_live(stream.is_terminal(), |name| std::env::var_os(name)) {
            Screen::Live(Live::new(stream, columns))
        } else {
            Screen::Plain(Box::new(stream))
        };
        Self { screen, paint }
    }

    /// Which colours the stream takes.
    pub(super) fn paint(&self) -> Paint {
        self.paint
    }

    /// Is there a line that is replaced in place?
    pub(super) fn is_live(&self) -> bool {
        matches!(self.screen, Screen::Live(_))
    }

    /// Something begins: its time counts from now.
    pub(super) fn begin(&mut self, what: &str) {
        match &mut self.screen {
            Screen::Live(live) => {
                live.begin(one_line(what));
                stepping_around(Some(live.line()));
            }
            Screen::Plain(_) => self.line(&one_line(what)),
        }
    }

    /// What is happening now: replaces the live line, or is a line of its own where there is none.
    pub(super) fn now(&mut self, what: &str) {
        match &self.screen {
            Screen::Live(live) => live.now(one_line(what)),
            Screen::Plain(_) => self.line(&one_line(what)),
        }
    }

    /// A line that stays, above the live one. It may be painted; text of others in it has gone through a [`Paint`].
    pub(super) fn line(&mut self, text: &str) {
        let write = |out: &mut dyn Write| {
            let _ = writeln!(out, "{text}").and_then(|()| out.flush());
        };
        match &mut self.screen {
            Screen::Live(live) => live.line().around(write),
            Screen::Plain(out) => write(out),
        }
    }

    /// Takes the live line away until something begins again.
    pub(super) fn rest(&mut self) {
        if let Screen::Live(live) = &mut self.screen {
            stepping_around(None);
            live.rest();
        }
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        self.rest();
    }
}

/// A terminal that can go back to the first column. Some runners of CI pretend to be one, and keep every redraw.
fn can_live(terminal: bool, variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let able = variable("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
    let in_ci =
        variable("CI").is_some_and(|value| !value.is_empty() && value != "false" && value != "0");
    terminal && able && !in_ci
}

fn one_line(text: &str) -> String {
    words::plain(text.trim()).replace(['\n', '\t'], " ")
}

fn stepping_around(line: Option<&Arc<LiveLine>>) {
    *LIVE.lock().unwrap_or_else(PoisonError::into_inner) = line.cloned();
}

/// Where log lines go: to stderr, and past the live line if there is one.
pub(super) fn beside_the_live_line() -> impl Write {
    LogLine
}

struct LogLine;

impl Write for LogLine {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let live = LIVE.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match live {
            Some(line) => line.around(|_| io::stderr().write_all(bytes))?,
            None => io::stderr().write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Paper instead of a terminal.
    #[derive(Clone, Default)]
    pub(super) struct Sheet(Arc<Mutex<Vec<u8>>>);

    impl Sheet {
        pub(super) fn text(&self) -> String {
            String::from_utf8(self.0.lock().expect("no thread panicked").clone()).expect("text")
        }
    }

    impl Write for Sheet {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0
                .lock()
                .expect("no thread panicked")
                .extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn without_a_terminal_each_step_is_a_plain_line() {
        let sheet = Sheet::default();
        let mut console = Console::plain(sheet.clone());
        console.begin("asking");
        console.now("tier 1/2 small\n\u{1b}[2Jrejected");
        let done = console.paint().good("done\u{1b}[0m");
        console.line(&done);
        console.rest();
        assert_eq!(
            sheet.text(),
            "asking\ntier 1/2 small \\u{1b}[2Jrejected\ndone\\u{1b}[0m\n"
        );
    }

    #[test]
    fn a_line_lives_where_the_cursor_can_go_back_and_not_every_redraw_is_kept() {
        let with = |pairs: &'static [(&str, &str)]| {
            move |name: &str| {
                pairs
                    .iter()
                    .find(|(n, _)| *n == name)
                    .map(|(_, value)| OsString::from(value))
            }
        };
        assert!(can_live(true, with(&[("TERM", "xterm")])));
        assert!(can_live(
            true,
            with(&[("TERM", "xterm"), ("CI", "false"), ("NO_COLOR", "1")])
        ));
        assert!(!can_live(false, with(&[("TERM", "xterm")])));
        for plain in [
            &[("TERM", "dumb")][..],
            &[("TERM", "")],
            &[],
            &[("TERM", "xterm"), ("CI", "true")],
        ] {
            assert!(!can_live(true, with(plain)), "{plain:?}");
        }
    }
}
