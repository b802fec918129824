//! Terminal colours. All output must make sense without them.

use std::ffi::OsString;
use std::io::IsTerminal;

use anstyle::{AnsiColor, Style};

use supervisor_text::words;

/// Whether a stream supports colours. All methods escape control characters in the text they are
/// given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    Colour,
    Plain,
}

impl Paint {
    pub(crate) fn on(stream: &impl IsTerminal) -> Self {
        Self::decide(stream.is_terminal(), |name| std::env::var_os(name))
    }

    fn decide(terminal: bool, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let disabled = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
        let supports_colour = variable("TERM").is_some_and(|term| term != "dumb");
        if terminal && supports_colour && !disabled {
            Self::Colour
        } else {
            Self::Plain
        }
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.styled(AnsiColor::Green.on_default(), text)
    }

    pub(crate) fn bad(self, text: &str) -> String {
        self.styled(AnsiColor::Red.on_default(), text)
    }

    pub(crate) fn warning(self, text: &str) -> String {
        self.styled(AnsiColor::Yellow.on_default(), text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.styled(Style::new().dimmed(), text)
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.styled(Style::new().bold(), text)
    }

    /// Colours a unified diff line by line.
    pub(crate) fn diff(self, diff: &str) -> String {
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
    use super::*;

    #[test]
    fn colours_respect_terminal_and_environment() {
        let with = |pairs: &'static [(&str, &str)]| {
            move |name: &str| {
                pairs
                    .iter()
                    .find(|(n, _)| *n == name)
                    .map(|(_, value)| OsString::from(value))
            }
        };
        let xterm = [("TERM", "xterm")].as_slice();
        assert_eq!(
            Paint::decide(true, with(&[("TERM", "xterm")])),
            Paint::Colour
        );
        assert_eq!(
            Paint::decide(true, with(&[("TERM", "xterm"), ("NO_COLOR", "")])),
            Paint::Colour,
            "empty is unset"
        );
        for plain in [
            &[("TERM", "xterm"), ("NO_COLOR", "1")][..],
            &[("TERM", "dumb")],
            &[],
        ] {
            assert_eq!(Paint::decide(true, with(plain)), Paint::Plain, "{plain:?}");
        }
        assert_eq!(Paint::decide(false, with(xterm)), Paint::Plain);
    }

    #[test]
    fn diff_text_is_same_without_colour() {
        let diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\u{1b}[2J\n+new\n same";
        assert_eq!(Paint::Plain.diff(diff), diff.replace('\u{1b}', "\\u{1b}"));
        let coloured = Paint::Colour.diff(diff);
        assert!(
            coloured.contains("\u{1b}[31m-old\\u{1b}[2J\u{1b}[0m"),
            "{coloured:?}"
        );
        assert!(
            coloured.contains("\u{1b}[32m+new\u{1b}[0m\n same"),
            "{coloured:?}"
        );
    }
}
