//! State of the screen, independent of the terminal: the calls, the selection and the mode.

use super::keys::WatchKey;
use supervisor_engine::session::live;
use supervisor_engine::session::live::LiveCall;
use supervisor_engine::session::{RecordedOutcome, SessionLog};
use supervisor_workspace::state::StateDir;

/// Maximum number of ended calls shown.
const MAX_ENDED: usize = 50;

#[derive(Debug, Default)]
pub(super) struct WatchView {
    pub(super) calls: Vec<LiveCall>,
    /// Newest first.
    pub(super) ended: Vec<EndedCall>,
    /// Index into `calls`.
    pub(super) selected: usize,
    pub(super) mode: WatchMode,
    /// The last message to the user.
    pub(super) note: String,
    pub(super) scroll: u16,
    /// Frame of the spinner, which shows that the screen is updating.
    pub(super) frame: usize,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum WatchMode {
    #[default]
    List,
    /// One call, step by step.
    Follow,
    Diff,
    /// Asks whether to cancel the call.
    ConfirmCancel,
}

/// A call that ended while it was watched.
#[derive(Debug, Clone)]
pub(super) struct EndedCall {
    pub(super) call: LiveCall,
    /// The outcome in the log; `None` if there is no entry.
    pub(super) outcome: Option<RecordedOutcome>,
    pub(super) message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyOutcome {
    Continue,
    Quit,
}

impl WatchView {
    /// Reads the live files again.
    pub(super) fn refresh(&mut self, state: &StateDir) {
        self.frame = self.frame.wrapping_add(1);
        let now = live::live_calls(state);
        let selected = self.selected_call().map(|call| call.id.clone());
        let before = std::mem::take(&mut self.calls);
        for call in before
            .into_iter()
            .filter(|call| now.iter().all(|one| one.id != call.id))
        {
            self.ended.insert(0, EndedCall::find(state, call));
        }
        self.ended.truncate(MAX_ENDED);
        self.calls = now;
        match selected.and_then(|id| self.calls.iter().position(|call| call.id == id)) {
            Some(index) => self.selected = index,
            None => {
                self.selected = self.selected.min(self.calls.len().saturating_sub(1));
                if self.mode == WatchMode::ConfirmCancel {
                    self.mode = WatchMode::List;
                }
            }
        }
    }

    pub(super) fn selected_call(&self) -> Option<&LiveCall> {
        self.calls.get(self.selected)
    }

    pub(super) fn handle_key(&mut self, key: WatchKey, state: &StateDir) -> KeyOutcome {
        self.note.clear();
        if key == WatchKey::Quit {
            return KeyOutcome::Quit;
        }
        if self.mode == WatchMode::ConfirmCancel {
            self.mode = WatchMode::List;
            self.note = match self
                .selected_call()
                .filter(|_| key == WatchKey::Yes)
                .map(|call| call.id.clone())
            {
                None => "not cancelled".into(),
                Some(id) => match live::ask_to_stop(state, &id) {
                    Ok(true) => "asked to cancel; the project will be as it was".into(),
                    Ok(false) => "it is over already".into(),
                    Err(error) => format!("cannot ask for it: {error}"),
                },
            };
            return KeyOutcome::Continue;
        }
        let is_call_open = matches!(self.mode, WatchMode::Follow | WatchMode::Diff);
        match key {
            WatchKey::Up if is_call_open => self.scroll = self.scroll.saturating_add(1),
            WatchKey::Down if is_call_open => self.scroll = self.scroll.saturating_sub(1),
            WatchKey::Up => self.selected = self.selected.saturating_sub(1),
            WatchKey::Down => {
                self.selected = (self.selected + 1).min(self.calls.len().saturating_sub(1));
            }
            WatchKey::Enter | WatchKey::Diff if self.selected_call().is_none() => {}
            WatchKey::Enter => (self.mode, self.scroll) = (WatchMode::Follow, 0),
            WatchKey::Diff if self.mode == WatchMode::Diff => self.mode = WatchMode::Follow,
            WatchKey::Diff => (self.mode, self.scroll) = (WatchMode::Diff, 0),
            WatchKey::Back if self.mode == WatchMode::List => return KeyOutcome::Quit,
            WatchKey::Back => self.mode = WatchMode::List,
            WatchKey::Cancel if self.selected_call().is_some() => {
                self.mode = WatchMode::ConfirmCancel;
            }
            WatchKey::Cancel | WatchKey::Yes | WatchKey::Quit | WatchKey::Other => {}
        }
        KeyOutcome::Continue
    }
}

impl EndedCall {
    /// Takes the newest matching entry of the session as the call's own.
    fn find(state: &StateDir, call: LiveCall) -> Self {
        let read = call
            .header
            .session_id
            .parse()
            .ok()
            .and_then(|id| SessionLog::to_read(state).read(&id).ok());
        let records = read.map(|history| history.records).unwrap_or_default();
        let record = records.into_iter().rfind(|record| {
            record.entry.tool == call.header.skill
                && record.entry.timestamp.as_str() >= call.header.began.as_str()
        });
        let (outcome, message) = record.map_or((None, String::new()), |record| {
            (Some(record.outcome), record.entry.message)
        });
        Self {
            call,
            outcome,
            message,
        }
    }
}
