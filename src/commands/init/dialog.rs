//! Terminal output and questions. Without a terminal nothing is asked and the answer is no.

use std::io::{self, BufRead as _, IsTerminal as _, Write};

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

    /// Prints one line and escapes control characters: parts of it come from servers.
    pub(super) fn print_line(&mut self, line: &str) -> io::Result<()> {
        self.print(&format!(
            "{}\n",
            words::plain(line).replace(['\n', '\t'], " ")
        ))
    }

    pub(super) fn print(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    /// Asks whether to write the file; `--yes` answers it.
    pub(super) fn confirm_write(&mut self, question: &str) -> io::Result<bool> {
        Ok(self.assume_yes || self.confirm(question)?)
    }

    /// Asks any other question; `--yes` does not answer it.
    pub(super) fn confirm(&mut self, question: &str) -> io::Result<bool> {
        if !self.interactive {
            return Ok(false);
        }
        self.print_line(question)?;
        // On its own line: the question may be wider than the terminal.
        self.print("[y/N] ")?;
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line)?;
        Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
    }
}
