//! Maps key events to commands.

use ratatui::crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers};

/// A command of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WatchKey {
    Up,
    Down,
    /// Opens the selected call.
    Enter,
    Back,
    Diff,
    Cancel,
    Yes,
    Quit,
    /// Does nothing except dismiss a question.
    Other,
}

pub(super) fn read_key(event: &Event) -> Option<WatchKey> {
    let Event::Key(key) = event else { return None };
    if key.kind == KeyEventKind::Release {
        return None;
    }
    Some(match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => WatchKey::Quit,
        KeyCode::Char('q') => WatchKey::Quit,
        KeyCode::Up | KeyCode::Char('k') => WatchKey::Up,
        KeyCode::Down | KeyCode::Char('j') => WatchKey::Down,
        KeyCode::Enter | KeyCode::Right | KeyCode::Char('l') => WatchKey::Enter,
        KeyCode::Esc | KeyCode::Left | KeyCode::Backspace | KeyCode::Char('h') => WatchKey::Back,
        KeyCode::Char('d') => WatchKey::Diff,
        KeyCode::Char('c') => WatchKey::Cancel,
        KeyCode::Char('y') => WatchKey::Yes,
        _ => WatchKey::Other,
    })
}
