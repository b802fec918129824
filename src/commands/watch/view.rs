//! What the person sees, without a terminal: the calls, which one is chosen, what was asked of it.

use super::keys::WatchKey;
use supervisor_engine::session::live;
use supervisor_engine::session::live::LiveCall;
use supervisor_engine::session::{RecordedOutcome, SessionLog};
use supervisor_workspace::state::StateDir;

/// Calls that ended while they were watched, and are still shown.
const ENDED_SHOWN: usize = 50;

#[derive(Debug, Default)]
pub(super) struct WatchView {
    pub(super) calls: Vec<LiveCall>,
    /// Newest first.
    pub(super) ended: Vec<EndedCall>,
    /// Among `calls`.
    pub(super) chosen: usize,
    pub(super) mode: WatchMode,
    /// What was asked or answered last.
    pub(super) note: String,
    pub(super) scroll: u16,
    /// Drawn, so that a screen on which nothing happens is seen to live.
    pub(super) frame: usize,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum WatchMode {
    #[default]
    List,
    /// One call, step by step.
    Follow,
    Diff,
    /// "Cancel it?"
    Asking,
}

/// A call that was seen and is over.
#[derive(Debug, Clone)]
pub(super) struct EndedCall {
    pub(super) call: LiveCall,
    /// As the log has it; `None`: there is no entry.
    pub(super) outcome: Option<RecordedOutcome>,
    pub(super) message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyOutcome {
    Stay,
    Leave,
}

impl WatchView {
    /// Looks at the files again.
    pub(super) fn look(&mut self, state: &StateDir) {
        self.frame = self.frame.wrapping_add(1);
        let now = live::live_calls(state);
        let chosen = self.chosen_call().map(|call| call.id.clone());
        let before = std::mem::take(&mut self.calls);
        for call in before
            .into_iter()
            .filter(|call| now.iter().all(|one| one.id != call.id))
        {
            self.ended.insert(0, EndedCall::find(state, call));
        }
        self.ended.truncate(ENDED_SHOWN);
        self.calls = now;
        match chosen.and_then(|id| self.calls.iter().position(|call| call.id == id)) {
            Some(place) => self.chosen = place,
            None => {
                self.chosen = self.chosen.min(self.calls.len().saturating_sub(1));
                if self.mode == WatchMode::Asking {
                    self.mode = WatchMode::List;
                }
            }
        }
    }

    pub(super) fn chosen_call(&self) -> Option<&LiveCall> {
        self.calls.get(self.chosen)
    }

    pub(super) fn press(&mut self, key: WatchKey, state: &StateDir) -> KeyOutcome {
        self.note.clear();
        if key == WatchKey::Leave {
            return KeyOutcome::Leave;
        }
        if self.mode == WatchMode::Asking {
            self.mode = WatchMode::List;
            self.note = match self
                .chosen_call()
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
            return KeyOutcome::Stay;
        }
        let inside = matches!(self.mode, WatchMode::Follow | WatchMode::Diff);
        match key {
            WatchKey::Up if inside => self.scroll = self.scroll.saturating_add(1),
            WatchKey::Down if inside => self.scroll = self.scroll.saturating_sub(1),
            WatchKey::Up => self.chosen = self.chosen.saturating_sub(1),
            WatchKey::Down => {
                self.chosen = (self.chosen + 1).min(self.calls.len().saturating_sub(1))
            }
            WatchKey::Enter | WatchKey::Diff if self.chosen_call().is_none() => {}
            WatchKey::Enter => (self.mode, self.scroll) = (WatchMode::Follow, 0),
            WatchKey::Diff if self.mode == WatchMode::Diff => self.mode = WatchMode::Follow,
            WatchKey::Diff => (self.mode, self.scroll) = (WatchMode::Diff, 0),
            WatchKey::Back if self.mode == WatchMode::List => return KeyOutcome::Leave,
            WatchKey::Back => self.mode = WatchMode::List,
            WatchKey::Cancel if self.chosen_call().is_some() => self.mode = WatchMode::Asking,
            WatchKey::Cancel | WatchKey::Yes | WatchKey::Leave | WatchKey::Other => {}
        }
        KeyOutcome::Stay
    }
}

impl EndedCall {
    /// The newest entry of its session and skill is its own.
    fn find(state: &StateDir, call: LiveCall) -> Self {
        let read = call
            .header
            .session_id
            .parse()
            .ok()
            .and_then(|id| SessionLog::to_read(state).read(&id).ok());
        let records = read.map(|history| history.records).unwrap_or_default();
        let record = records.into_iter().rfind(|record| {
            record.entry.skill == call.header.skill
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
