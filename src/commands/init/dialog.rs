//! Terminal output and questions. Without a terminal nothing is asked and the answer is no.

use std::io::{self, BufRead as _, IsTerminal as _, Write};

use crate::commands::console;
use supervisor_text::words;

pub(super) struct Dialog<'a> {
    out: &'a mut dyn Write,
    /// `--yes`: the file may be written without asking.
    assume_yes: bool,
    interactive: bool,
}

impl<'a> Dialog<'a> {
    pub(super) fn new(out: &'a mut dyn Write, assume_yes: bool) -> Self {
        let interactive = !assume_yes && io::stdin().is_terminal() && io::stdout().is_terminal();
        Self {
            out,
            assume_yes,
            interactive,
        }
    }

    /// Prints one line, wrapped between words at the width of the terminal, and escapes control
    /// characters: parts of it come from servers.
    pub(super) fn print_line(&mut self, line: &str) -> io::Result<()> {
        let line = words::plain(line).replace(['\n', '\t'], " ");
        self.print(&(console::fit_terminal(&line) + "\n"))
    }

    pub(super) fn print(&mut self, text: &str) -> io::Result<()> {
        let written = self.out.write_all(text.as_bytes());
        match written.and_then(|()| self.out.flush()) {
            // A reader that stops early, such as `head`, is not an error.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written,
        }
    }

    pub(super) fn assumes_yes(&self) -> bool {
        self.assume_yes
    }

    /// Asks a question that `--yes` answers.
    pub(super) fn confirm_write(&mut self, question: &str) -> io::Result<bool> {
        Ok(self.assume_yes || self.confirm(question)?)
    }

    /// Asks any other question; `--yes` does not answer it. An empty line means yes.
    pub(super) fn confirm(&mut self, question: &str) -> io::Result<bool> {
        if !self.interactive {
            return Ok(false);
        }
        self.print_line(question)?;
        // On its own line: the question may be wider than the terminal.
        self.print("[Y/n] ")?;
        let mut line = String::new();
        // The end of input is not an answer.
        let is_answered = io::stdin().lock().read_line(&mut line)? > 0;
        let answer = line.trim().to_lowercase();
        Ok(is_answered && matches!(answer.as_str(), "" | "y" | "yes"))
    }
}
