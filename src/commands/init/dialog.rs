//! What is said to the person and asked of them. Without a terminal nothing is asked, and silence is no leave.

use std::io::{self, BufRead as _, IsTerminal as _, Write};

use supervisor_text::words;

pub(super) struct Dialog<'a> {
    out: &'a mut dyn Write,
    /// `--yes`: the file may be written.
    agreed: bool,
    asks: bool,
}

impl<'a> Dialog<'a> {
    pub(super) fn new(out: &'a mut dyn Write, agreed: bool) -> Self {
        let asks = !agreed && io::stdin().is_terminal() && io::stdout().is_terminal();
        Self { out, agreed, asks }
    }

    /// One line, with nothing in it that moves the cursor: parts of it come from servers.
    pub(super) fn say(&mut self, line: &str) -> io::Result<()> {
        self.print(&format!(
            "{}\n",
            words::plain(line).replace(['\n', '\t'], " ")
        ))
    }

    pub(super) fn print(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    /// May the file be written?
    pub(super) fn agrees(&mut self, question: &str) -> io::Result<bool> {
        Ok(self.agreed || self.confirm(question)?)
    }

    /// May something else be done? `--yes` is no answer to that.
    pub(super) fn confirm(&mut self, question: &str) -> io::Result<bool> {
        if !self.asks {
            return Ok(false);
        }
        self.say(question)?;
        // On a line of its own: the question may be longer than the terminal is wide.
        self.print("[y/N] ")?;
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line)?;
        Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
    }
}
