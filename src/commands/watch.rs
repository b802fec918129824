//! `supervisor watch`: what all running servers of this user do now. On a terminal a screen that can be walked through;
//! elsewhere plain lines. Reads the live files of calls and, for those that end meanwhile, their entry in the log.

mod keys;
mod lines;
mod screen;
mod view;

use std::io::{IsTerminal as _, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use ratatui::crossterm::event;

use supervisor_workspace::state::StateDir;
use view::{KeyOutcome, WatchView};

/// Show what all running servers do now: calls, tiers, tests, cost, verdicts
///
/// On a terminal: arrow keys choose a call, Enter follows it, d shows its diff, c cancels it, q leaves. Elsewhere each
/// step of each call is a line.
#[derive(Debug, Args)]
pub(super) struct WatchCommand {
    /// Print what is going on now as plain lines, and leave
    #[arg(long)]
    once: bool,
}

/// How often files are looked at; a person does not see more.
const LOOK: Duration = Duration::from_millis(250);

impl WatchCommand {
    pub(super) fn run(self, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
        let state = StateDir::locate()?;
        if self.once {
            return lines::print_once(&state, out);
        }
        let able = std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
        if std::io::stdout().is_terminal() && std::io::stdin().is_terminal() && able {
            watch_screen(&state)
        } else {
            lines::follow(&state, out, LOOK)
        }
    }
}

/// Draws until the person leaves. Whatever happens, the terminal is as it was.
fn watch_screen(state: &StateDir) -> anyhow::Result<ExitCode> {
    let mut terminal = ratatui::try_init().context("the terminal cannot be drawn on")?;
    let watched = watch_until_left(state, &mut terminal);
    ratatui::restore();
    watched.context("the terminal went away")?;
    Ok(ExitCode::SUCCESS)
}

fn watch_until_left(
    state: &StateDir,
    terminal: &mut ratatui::DefaultTerminal,
) -> std::io::Result<()> {
    let mut view = WatchView::default();
    loop {
        view.look(state);
        terminal.draw(|frame| screen::draw(frame, &view))?;
        if !event::poll(LOOK)? {
            continue;
        }
        if let Some(key) = keys::read_key(&event::read()?)
            && view.press(key, state) == KeyOutcome::Leave
        {
            return Ok(());
        }
    }
}
