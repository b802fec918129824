//! Shows the progress of a command. On a terminal this is one live line with the elapsed time,
//! below the finished lines; elsewhere it is plain lines without escapes.
//!
//! Untrusted text is escaped here: nothing that goes through [`Console::set_status`] or a [`Paint`]
//! can move the cursor.

mod live;
mod paint;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};

use self::live::{Live, LiveLine};
pub(super) use self::paint::Paint;
use supervisor_text::words;

/// The live line that log lines must be written above. There is at most one, as there is one
/// terminal.
static LIVE: Mutex<Option<Arc<LiveLine>>> = Mutex::new(None);

/// Wraps between words; a word that is too long gets its own line.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is always one");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

/// The line, wrapped at the width of the terminal; further lines are indented by two more columns.
/// Output that is not read on a terminal is not wrapped.
pub(super) fn fit_terminal(line: &str) -> String {
    let text = line.trim_start();
    let indent = &line[..line.len() - text.len()];
    match live::columns_of_stdout().filter(|_| io::stdout().is_terminal()) {
        Some(width) => {
            let room = width.saturating_sub(indent.len() + 2).max(16);
            format!(
                "{indent}{}",
                wrap(text, room).join(&format!("\n{indent}  "))
            )
        }
        None => line.to_owned(),
    }
}

/// Shows the progress of a command. Write errors are ignored: they must not stop the command.
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

    /// Writes plain lines, independent of the environment.
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
        let screen = if supports_live_line(stream.is_terminal(), |name| std::env::var_os(name)) {
            Screen::Live(Live::new(stream, columns))
        } else {
            Screen::Plain(Box::new(stream))
        };
        Self { screen, paint }
    }

    /// The colours that the stream supports.
    pub(super) fn paint(&self) -> Paint {
        self.paint
    }

    /// Whether the status is a line that is replaced in place.
    pub(super) fn is_live(&self) -> bool {
        matches!(self.screen, Screen::Live(_))
    }

    /// Starts a step; its elapsed time counts from now.
    pub(super) fn begin(&mut self, status: &str) {
        match &mut self.screen {
            Screen::Live(live) => {
                live.begin(one_line(status));
                set_current_live_line(Some(live.line()));
            }
            Screen::Plain(_) => self.print_line(&one_line(status)),
        }
    }

    /// Replaces the live line, or writes a new line where there is none.
    pub(super) fn set_status(&mut self, status: &str) {
        match &self.screen {
            Screen::Live(live) => live.set_status(one_line(status)),
            Screen::Plain(_) => self.print_line(&one_line(status)),
        }
    }

    /// Writes a permanent line above the live one. The text may contain colours; untrusted parts
    /// must have gone through a [`Paint`].
    pub(super) fn print_line(&mut self, text: &str) {
        let write = |out: &mut dyn Write| {
            let _ = writeln!(out, "{text}").and_then(|()| out.flush());
        };
        match &mut self.screen {
            Screen::Live(live) => live.line().write_above(write),
            Screen::Plain(out) => write(out),
        }
    }

    /// Removes the live line until the next [`Console::begin`].
    pub(super) fn clear_live_line(&mut self) {
        if let Screen::Live(live) = &mut self.screen {
            set_current_live_line(None);
            live.hide();
        }
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        self.clear_live_line();
    }
}

/// Needs a terminal that can return to the first column. Some CI runners pretend to be one but keep
/// every redraw.
fn supports_live_line(terminal: bool, variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let supports_cursor = variable("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
    let in_ci =
        variable("CI").is_some_and(|value| !value.is_empty() && value != "false" && value != "0");
    terminal && supports_cursor && !in_ci
}

fn one_line(text: &str) -> String {
    words::plain(text.trim()).replace(['\n', '\t'], " ")
}

fn set_current_live_line(line: Option<&Arc<LiveLine>>) {
    *LIVE.lock().unwrap_or_else(PoisonError::into_inner) = line.cloned();
}

/// Writer for log lines: stderr, above the live line if there is one.
pub(super) fn log_writer() -> impl Write {
    LogLine
}

struct LogLine;

impl Write for LogLine {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let live = LIVE.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match live {
            Some(line) => line.write_above(|_| io::stderr().write_all(bytes))?,
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

    #[test]
    fn wrapped_text_keeps_every_word() {
        let text = "`numerals::roman nine_is_ix` still fails: left: \"VIIII\", right: \"IX\"";
        let lines = wrap(text, 30);
        assert!(
            lines.iter().all(|line| line.chars().count() <= 30),
            "{lines:?}"
        );
        assert_eq!(lines.join(" "), text);
        assert_eq!(wrap("a/very/long/path b", 5), ["a/very/long/path", "b"]);
    }

    /// Collects the output in place of a terminal.
    #[derive(Clone, Default)]
    pub(super) struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

    impl SharedBuffer {
        pub(super) fn text(&self) -> String {
            String::from_utf8(self.0.lock().expect("no thread panicked").clone()).expect("text")
        }
    }

    impl Write for SharedBuffer {
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
    fn plain_console_writes_each_step_as_line() {
        let sheet = SharedBuffer::default();
        let mut console = Console::plain(sheet.clone());
        console.begin("asking");
        console.set_status("tier 1/2 small\n\u{1b}[2Jrejected");
        let done = console.paint().good("done\u{1b}[0m");
        console.print_line(&done);
        console.clear_live_line();
        assert_eq!(
            sheet.text(),
            "asking\ntier 1/2 small \\u{1b}[2Jrejected\ndone\\u{1b}[0m\n"
        );
    }

    #[test]
    fn live_line_needs_capable_terminal_outside_ci() {
        let with = |pairs: &'static [(&str, &str)]| {
            move |name: &str| {
                pairs
                    .iter()
                    .find(|(n, _)| *n == name)
                    .map(|(_, value)| OsString::from(value))
            }
        };
        assert!(supports_live_line(true, with(&[("TERM", "xterm")])));
        assert!(supports_live_line(
            true,
            with(&[("TERM", "xterm"), ("CI", "false"), ("NO_COLOR", "1")])
        ));
        assert!(!supports_live_line(false, with(&[("TERM", "xterm")])));
        for plain in [
            &[("TERM", "dumb")][..],
            &[("TERM", "")],
            &[],
            &[("TERM", "xterm"), ("CI", "true")],
        ] {
            assert!(!supports_live_line(true, with(plain)), "{plain:?}");
        }
    }
}
