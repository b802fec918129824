//! `supervisor watch`: shows what all running servers of this user do now, as an interactive screen
//! on a terminal and as plain lines elsewhere. Reads the live files of calls and, for calls that
//! end meanwhile, their log entry.

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

/// How often files are read; faster would not be visible.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

impl WatchCommand {
    pub(super) fn run(self, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
        let state = crate::commands::state_dir()?;
        if self.once {
            return lines::print_once(&state, out);
        }
        let can_draw =
            std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
        if std::io::stdout().is_terminal() && std::io::stdin().is_terminal() && can_draw {
            run_screen(&state)
        } else {
            lines::follow(&state, out, POLL_INTERVAL)
        }
    }
}

/// Draws until the user quits. Always restores the terminal.
fn run_screen(state: &StateDir) -> anyhow::Result<ExitCode> {
    let mut terminal = ratatui::try_init().context("the terminal cannot be drawn on")?;
    let result = draw_until_quit(state, &mut terminal);
    ratatui::restore();
    result.context("the terminal went away")?;
    Ok(ExitCode::SUCCESS)
}

fn draw_until_quit(
    state: &StateDir,
    terminal: &mut ratatui::DefaultTerminal,
) -> std::io::Result<()> {
    let mut view = WatchView::default();
    loop {
        view.refresh(state);
        terminal.draw(|frame| screen::draw(frame, &view))?;
        if !event::poll(POLL_INTERVAL)? {
            continue;
        }
        if let Some(key) = keys::read_key(&event::read()?)
            && view.handle_key(key, state) == KeyOutcome::Quit
        {
            return Ok(());
        }
    }
}
