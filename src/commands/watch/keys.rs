//! Keys, by what they mean.

use ratatui::crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers};

/// What a person wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WatchKey {
    Up,
    Down,
    /// Closer to the chosen call.
    Enter,
    Back,
    Diff,
    Cancel,
    Yes,
    Leave,
    /// Means nothing, but takes a question back.
    Other,
}

pub(super) fn read_key(event: &Event) -> Option<WatchKey> {
    let Event::Key(key) = event else { return None };
    if key.kind == KeyEventKind::Release {
        return None;
    }
    Some(match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => WatchKey::Leave,
        KeyCode::Char('q') => WatchKey::Leave,
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
