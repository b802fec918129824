//! Live view of running calls: a small file of JSON lines per call, locked as long as its server
//! lives and removed when the call ends. The files are bounded, never synced and written by a
//! separate thread: a call does not wait for them, and errors here never affect the call.

mod file;
mod writer;

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

pub(super) use self::writer::show;
pub use self::writer::{THREAD, settle};
use crate::Cause;
use crate::event::{Event, ProgressLine};
use crate::services::LiveHeader;
use supervisor_text::words;
use supervisor_workspace::state::StateDir;

/// Directory below the state directory.
const FOLDER: &str = "live";
/// Maximum bytes of one file. Further events of the call are not shown.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Maximum bytes of a diff.
const MAX_DIFF_BYTES: usize = 32 << 10;

/// One event of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LiveEvent {
    pub at_ms: u64,
    pub kind: LiveKind,
    /// From 1; 0 if the event is not about a tier.
    #[serde(default)]
    pub tier: usize,
    #[serde(default)]
    pub of: usize,
    #[serde(default)]
    pub model: String,
    /// The activity, or why it ended.
    #[serde(default)]
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub diff: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LiveKind {
    Armed,
    Doing,
    Noted,
    Asking,
    Working,
    Checking,
    Judging,
    Ended,
    Accepted,
    /// A kind of a later version.
    #[serde(other)]
    Other,
}

/// A live call, as read from its file.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveCall {
    /// The name of its file: unique and short enough to type.
    pub id: String,
    pub header: LiveHeader,
    pub events: Vec<LiveEvent>,
    /// False if its server is gone.
    pub is_alive: bool,
}

impl LiveCall {
    /// The latest event.
    pub fn now(&self) -> Option<&LiveEvent> {
        self.events.last()
    }

    /// The finished attempts with their verdicts.
    pub fn verdicts(&self) -> impl DoubleEndedIterator<Item = &LiveEvent> {
        self.events
            .iter()
            .filter(|event| matches!(event.kind, LiveKind::Ended | LiveKind::Accepted))
    }

    /// Number of the current attempt, from 1; 0 before the first.
    pub fn attempt(&self) -> usize {
        let last = self.events.last().map(|event| event.kind);
        let over = self.verdicts().count();
        let working = !matches!(last, None | Some(LiveKind::Ended | LiveKind::Accepted));
        over + usize::from(
            working
                && self
                    .events
                    .iter()
                    .any(|event| event.kind == LiveKind::Asking),
        )
    }

    /// Sum over the finished attempts whose cost is known.
    pub fn cost_usd(&self) -> f64 {
        self.verdicts()
            .filter_map(|event| event.cost_usd)
            .fold(0.0, |sum, cost| sum + cost) // an empty `sum` is -0.0
    }

    /// The latest change that was tried.
    pub fn diff(&self) -> Option<&str> {
        self.verdicts()
            .rev()
            .map(|event| event.diff.as_str())
            .find(|diff| !diff.is_empty())
    }

    /// The latest text about tests: what ran, or what was seen.
    #[cfg(test)]
    fn tests(&self) -> Option<&str> {
        let about = |event: &&LiveEvent| matches!(event.kind, LiveKind::Checking | LiveKind::Noted);
        self.events
            .iter()
            .rev()
            .find(about)
            .map(|event| event.text.as_str())
    }
}

/// All visible calls of this user, oldest first. Files that cannot be parsed are left out: they may
/// be incomplete.
pub fn live_calls(state: &StateDir) -> Vec<LiveCall> {
    let Ok(entries) = fs::read_dir(state.path().join(FOLDER)) else {
        return Vec::new();
    };
    let mut calls: Vec<LiveCall> = entries
        .flatten()
        .filter_map(|entry| read(&entry.path()))
        .collect();
    calls.sort_by(|a, b| (&a.header.began, &a.id).cmp(&(&b.header.began, &b.id)));
    calls
}

/// Asks the server of this call to cancel it. Returns false if there is no such call.
pub fn ask_to_stop(state: &StateDir, id: &str) -> io::Result<bool> {
    let is_name = !id.is_empty() && id.len() <= 64 && id.bytes().all(|b| b.is_ascii_alphanumeric());
    let folder = state.path().join(FOLDER);
    if !is_name || !folder.join(format!("{id}.jsonl")).exists() {
        return Ok(false);
    }
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(folder.join(format!("{id}.stop")))?;
    Ok(true)
}

fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
}

fn read(path: &Path) -> Option<LiveCall> {
    if path.extension()? != "jsonl" {
        return None;
    }
    let id = path.file_stem()?.to_str()?.to_owned();
    let file = open(path).ok()?;
    let is_alive = file.try_lock_shared().is_err();
    let mut lines = BufReader::new(file.take(2 * MAX_FILE_BYTES))
        .split(b'\n')
        .map_while(Result::ok);
    let header = serde_json::from_slice(&lines.next()?).ok()?;
    let events = lines
        .filter_map(|line| serde_json::from_slice(&line).ok())
        .collect();
    Some(LiveCall {
        id,
        header,
        events,
        is_alive,
    })
}

/// The event for observers. Heartbeats are left out: observers track the time themselves.
fn event_of(line: &ProgressLine) -> Option<LiveEvent> {
    let (kind, at, text) = match &line.event {
        Event::Armed { files, .. } => (
            LiveKind::Armed,
            None,
            format!("snapshot of {}", words::count(*files, "file")),
        ),
        Event::Doing { what } => (LiveKind::Doing, None, what.clone()),
        Event::Noted { what } => (LiveKind::Noted, None, what.clone()),
        Event::Still(_) => return None,
        Event::Asking { at } => (LiveKind::Asking, Some(at), String::new()),
        Event::Working { at, what } => (LiveKind::Working, Some(at), what.clone()),
        Event::Checking { at, what } => (LiveKind::Checking, Some(at), what.clone()),
        Event::Judging { at, verifier } => (LiveKind::Judging, Some(at), verifier.clone()),
        Event::Ended { at, because, .. } => (LiveKind::Ended, Some(at), because.clone()),
        Event::Accepted { at, because, .. } => (LiveKind::Accepted, Some(at), because.clone()),
    };
    let (cause, left) = match &line.event {
        Event::Ended { cause, left, .. } => (Some(*cause), Some(left)),
        Event::Accepted { left, .. } => (Some(Cause::Accepted), Some(left)),
        _ => (None, None),
    };
    Some(LiveEvent {
        at_ms: u64::try_from(line.after.as_millis()).unwrap_or(u64::MAX),
        kind,
        tier: at.map_or(0, |at| at.tier),
        of: at.map_or(0, |at| at.of),
        model: at.map(|at| at.model.clone()).unwrap_or_default(),
        text: words::cut_end(&text, 400).into_owned(),
        cause,
        cost_usd: left.and_then(|left| left.cost_usd),
        diff: left
            .map(|left| words::cut_middle(&left.diff, MAX_DIFF_BYTES).into_owned())
            .unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::event::{AttemptSummary, ChainPosition};

    fn header() -> LiveHeader {
        LiveHeader {
            call: String::new(),
            session_id: "s".into(),
            skill: "tdd_green".into(),
            phase: "green".into(),
            project_root: "/p".into(),
            began: "2026-01-02T03:04:05Z".into(),
            chain: vec!["small".into(), "large".into()],
        }
    }

    fn line(event: Event) -> ProgressLine {
        ProgressLine {
            event,
            after: Duration::from_secs(2),
            line: String::new(),
        }
    }

    #[test]
    fn live_file_is_removed_when_call_ends() {
        let dir = tempfile::tempdir().expect("temp dir");
        let state = StateDir::at(dir.path().join("s")).expect("absolute");
        assert_eq!(live_calls(&state), []);
        let live = show(&state, &header());
        let at = ChainPosition {
            tier: 1,
            of: 2,
            model: "small".into(),
        };
        live.on_event(&line(Event::Asking { at: at.clone() }));
        live.on_event(&line(Event::Still(Box::new(Event::Asking {
            at: at.clone(),
        }))));
        live.on_event(&line(Event::Checking {
            at: at.clone(),
            what: "3 passed".into(),
        }));
        let left = AttemptSummary {
            cost_usd: Some(0.5),
            diff: "+x\n".into(),
        };
        live.on_event(&line(Event::Ended {
            at: at.clone(),
            cause: Cause::Rejected,
            because: "no".into(),
            left,
        }));
        live.on_event(&line(Event::Asking {
            at: ChainPosition { tier: 2, ..at },
        }));
        settle();
        let calls = live_calls(&state);
        let [call] = calls.as_slice() else {
            panic!("{calls:?}")
        };
        assert!(call.is_alive);
        assert_eq!(
            (
                call.events.len(),
                call.attempt(),
                call.cost_usd(),
                call.diff()
            ),
            (4, 2, 0.5, Some("+x\n"))
        );
        assert_eq!(
            (call.tests(), call.now().map(|event| event.tier)),
            (Some("3 passed"), Some(2))
        );
        assert!(!live.is_stop_requested());
        assert!(
            !ask_to_stop(&state, "../x").expect("no path")
                && !ask_to_stop(&state, "0").expect("none")
        );
        assert!(ask_to_stop(&state, &call.id).expect("asked") && live.is_stop_requested());
        drop(live);
        settle();
        assert_eq!(
            fs::read_dir(state.path().join(FOLDER))
                .expect("there")
                .count(),
            0
        );
    }

    #[test]
    fn files_of_dead_servers_are_removed() {
        let dir = tempfile::tempdir().expect("temp dir");
        let state = StateDir::at(dir.path().join("s")).expect("absolute");
        let folder = state.sub(FOLDER).expect("made");
        let mut text = serde_json::to_string(&header()).expect("plain data");
        text += "\n{\"at_ms\":1,\"kind\":\"later\",\"more\":1}\n{\"at_ms\":2,\"ki";
        fs::write(folder.join("dead.jsonl"), text).expect("written");
        fs::write(folder.join("half.jsonl"), "{\"sess").expect("written");
        fs::write(folder.join("other"), "x").expect("written");
        let calls = live_calls(&state);
        assert_eq!(calls.len(), 1);
        assert_eq!(
            (
                calls[0].is_alive,
                calls[0].events.len(),
                calls[0].events[0].kind
            ),
            (false, 1, LiveKind::Other)
        );
        let live = show(&state, &header());
        settle();
        assert_eq!(live_calls(&state).len(), 1, "only the living one");
        drop(live);
    }
}
