//! How a run looks: on a terminal one live line with the time it has taken, finished lines above it; elsewhere plain
//! lines, without escapes. Knows terminals. Does not know what the lines are about.
//!
//! Text of others is made safe here: whatever goes through [`Console::now`] or a [`Paint`] cannot move the cursor.

mod keys;

use std::ffi::OsString;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use self::keys::QuietKeys;
use crate::words;

/// The live line that log lines must step around; one at a time, as there is one terminal.
static LIVE: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Where a run is shown. Nothing that goes wrong with the screen stops the run.
pub(super) struct Console {
    out: Box<dyn Write + Send>,
    paint: Paint,
    /// Only where a line can be replaced in place.
    live: Option<ProgressBar>,
    _keys: Option<QuietKeys>,
}

impl Console {
    pub(super) fn stderr() -> Self {
        Self::on(io::stderr(), ProgressDrawTarget::stderr())
    }

    pub(super) fn stdout() -> Self {
        Self::on(io::stdout(), ProgressDrawTarget::stdout())
    }

    /// Plain lines, whatever the environment says.
    #[cfg(test)]
    pub(super) fn plain(out: impl Write + Send + 'static) -> Self {
        Self { out: Box::new(out), paint: Paint::Plain, live: None, _keys: None }
    }

    fn on(stream: impl Write + IsTerminal + AsFd + Send + 'static, target: ProgressDrawTarget) -> Self {
        let paint = Paint::on(&stream);
        // Hidden: not a terminal, or one that cannot move its cursor.
        let live = (!target.is_hidden() && !in_ci(std::env::var_os("CI"))).then(|| {
            let bar = ProgressBar::with_draw_target(None, target);
            bar.set_style(style());
            bar
        });
        let _keys = live.as_ref().and_then(|_| QuietKeys::on(&stream));
        Self { out: Box::new(stream), paint, live, _keys }
    }

    /// Which colours the stream takes.
    pub(super) fn paint(&self) -> Paint {
        self.paint
    }

    /// Is there a line that is replaced in place?
    pub(super) fn is_live(&self) -> bool {
        self.live.is_some()
    }

    /// Something begins: its time counts from now.
    pub(super) fn begin(&mut self, what: &str) {
        if let Some(bar) = &self.live {
            bar.reset();
            bar.set_message(one_line(what));
            bar.enable_steady_tick(Duration::from_millis(100));
            *LIVE.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.clone());
        } else {
            self.line(&one_line(what));
        }
    }

    /// What is happening now: replaces the live line, or is a line of its own where there is none.
    pub(super) fn now(&mut self, what: &str) {
        match &self.live {
            Some(bar) => bar.set_message(one_line(what)),
            None => self.line(&one_line(what)),
        }
    }

    /// A line that stays, above the live one. It may be painted; text of others in it has gone through a [`Paint`].
    pub(super) fn line(&mut self, text: &str) {
        let out = &mut self.out;
        let mut write = || {
            let _ = writeln!(out, "{text}").and_then(|()| out.flush());
        };
        match &self.live {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Takes the live line away until something begins again.
    pub(super) fn rest(&mut self) {
        if let Some(bar) = &self.live {
            *LIVE.lock().unwrap_or_else(PoisonError::into_inner) = None;
            bar.disable_steady_tick();
            bar.finish_and_clear();
        }
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        self.rest();
    }
}

/// The time comes first, so that a narrow window cuts the words and not the time.
fn style() -> ProgressStyle {
    let seconds = |state: &ProgressState, f: &mut dyn fmt::Write| {
        let _ = write!(f, "{} s", state.elapsed().as_secs());
    };
    ProgressStyle::with_template("{spinner} {seconds:>5}  {wide_msg}")
        .expect("the template is well formed")
        .with_key("seconds", seconds)
}

/// Some runners of CI pretend to be a terminal and keep every redraw.
fn in_ci(variable: Option<OsString>) -> bool {
    variable.is_some_and(|value| !value.is_empty() && value != "false" && value != "0")
}

fn one_line(text: &str) -> String {
    words::plain(text.trim()).replace(['\n', '\t'], " ")
}

/// Where log lines go: to stderr, and past the live line if there is one.
pub(super) fn beside_the_live_line() -> impl Write {
    LogLine
}

struct LogLine;

impl Write for LogLine {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let live = LIVE.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let write = || io::stderr().write_all(bytes);
        match live {
            Some(bar) => bar.suspend(write)?,
            None => write()?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Colours, or none. Everything must make sense without them. What it is given it makes safe to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paint {
    Colour,
    Plain,
}

impl Paint {
    pub(super) fn on(stream: &impl IsTerminal) -> Self {
        Self::decide(stream.is_terminal(), |name| std::env::var_os(name))
    }

    fn decide(terminal: bool, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let refused = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
        let able = variable("TERM").is_some_and(|term| term != "dumb");
        if terminal && able && !refused { Self::Colour } else { Self::Plain }
    }

    pub(super) fn good(self, text: &str) -> String {
        self.styled(AnsiColor::Green.on_default(), text)
    }

    pub(super) fn bad(self, text: &str) -> String {
        self.styled(AnsiColor::Red.on_default(), text)
    }

    pub(super) fn doubtful(self, text: &str) -> String {
        self.styled(AnsiColor::Yellow.on_default(), text)
    }

    pub(super) fn dim(self, text: &str) -> String {
        self.styled(Style::new().dimmed(), text)
    }

    pub(super) fn bold(self, text: &str) -> String {
        self.styled(Style::new().bold(), text)
    }

    /// A unified diff, line by line.
    pub(super) fn diff(self, diff: &str) -> String {
        let lines = diff.lines().map(|line| match line.as_bytes() {
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => self.bold(line),
            [b'+', ..] => self.good(line),
            [b'-', ..] => self.bad(line),
            [b'@', ..] => self.styled(AnsiColor::Cyan.on_default(), line),
            _ => words::plain(line).into_owned(),
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    fn styled(self, style: Style, text: &str) -> String {
        let text = words::plain(text);
        match self {
            Self::Colour if !text.is_empty() => format!("{style}{text}{style:#}"),
            Self::Colour | Self::Plain => text.into_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[derive(Clone, Default)]
    struct Sheet(Arc<Mutex<Vec<u8>>>);

    impl Write for Sheet {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("nobody panics").extend_from_slice(bytes);
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
        let text = String::from_utf8(sheet.0.lock().expect("nobody panics").clone()).expect("text");
        assert_eq!(text, "asking\ntier 1/2 small \\u{1b}[2Jrejected\ndone\\u{1b}[0m\n");
    }

    #[test]
    fn colours_are_for_terminals_that_want_them() {
        let with = |pairs: &'static [(&str, &str)]| {
            move |name: &str| pairs.iter().find(|(n, _)| *n == name).map(|(_, value)| OsString::from(value))
        };
        let xterm = [("TERM", "xterm")].as_slice();
        assert_eq!(Paint::decide(true, with(&[("TERM", "xterm")])), Paint::Colour);
        assert_eq!(Paint::decide(true, with(&[("TERM", "xterm"), ("NO_COLOR", "")])), Paint::Colour, "empty is unset");
        for plain in [&[("TERM", "xterm"), ("NO_COLOR", "1")][..], &[("TERM", "dumb")], &[]] {
            assert_eq!(Paint::decide(true, with(plain)), Paint::Plain, "{plain:?}");
        }
        assert_eq!(Paint::decide(false, with(xterm)), Paint::Plain);
    }

    #[test]
    fn a_diff_is_coloured_by_line_and_reads_the_same_without() {
        let diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\u{1b}[2J\n+new\n same";
        assert_eq!(Paint::Plain.diff(diff), diff.replace('\u{1b}', "\\u{1b}"));
        let coloured = Paint::Colour.diff(diff);
        assert!(coloured.contains("\u{1b}[31m-old\\u{1b}[2J\u{1b}[0m"), "{coloured:?}");
        assert!(coloured.contains("\u{1b}[32m+new\u{1b}[0m\n same"), "{coloured:?}");
    }

    #[test]
    fn a_terminal_in_ci_is_none() {
        assert!(in_ci(Some("true".into())) && in_ci(Some("1".into())));
        assert!(!in_ci(None) && !in_ci(Some("".into())) && !in_ci(Some("false".into())));
    }
}
