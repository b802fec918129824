//! Caps on what is spent in a day, in a week, in a project and by a person. What calls spend is
//! appended to a file in the state directory under a lock, so that a restart forgets nothing and
//! servers that run at once count together. An ask is reserved before it is sent and settled after it.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use supervisor_settings::SpendCaps;

const DAY: SignedDuration = SignedDuration::from_hours(24);
const WEEK: SignedDuration = SignedDuration::from_hours(24 * 7);
/// No ask takes longer: a reservation that is older belongs to a process that was killed, and its
/// estimate counts.
const ABANDONED_AFTER: SignedDuration = SignedDuration::from_hours(2);
/// A larger file loses what is older than a week.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// A cap that leaves too little.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cap {
    Day,
    Week,
    Project,
    Person,
}

impl Cap {
    /// The key that sets it.
    pub fn key(self) -> &'static str {
        match self {
            Self::Day => "budgets.day_usd",
            Self::Week => "budgets.week_usd",
            Self::Project => "budgets.project_day_usd",
            Self::Person => "budgets.person_day_usd",
        }
    }

    /// What was spent too much, and where.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Day => "in the last 24 hours",
            Self::Week => "in the last 7 days",
            Self::Project => "in this project in the last 24 hours",
            Self::Person => "by you in the last 24 hours",
        }
    }
}

/// What was spent, and the caps on it. Clones share the file.
#[derive(Debug, Clone)]
pub struct SpendLedger {
    file: PathBuf,
    caps: SpendCaps,
    person: String,
}

/// The ledger for calls in one project.
#[derive(Debug, Clone)]
pub struct ProjectSpend {
    ledger: Arc<SpendLedger>,
    project: String,
}

/// One line: a reservation, or what became of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct SpendLine {
    id: u64,
    /// Milliseconds since the epoch.
    at_ms: i64,
    usd: f64,
    /// What counts for a reservation that nobody settled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    likely: Option<f64>,
    project: String,
    person: String,
}

/// The locked ledger. The lock is released when this is dropped.
pub(crate) struct OpenLedger<'a> {
    of: &'a ProjectSpend,
    file: File,
    _lock: File,
    lines: HashMap<u64, SpendLine>,
    now: Timestamp,
}

/// A reservation in the ledger.
#[derive(Debug)]
pub(crate) struct ReservedSpend {
    of: ProjectSpend,
    line: SpendLine,
}

impl SpendLedger {
    /// `None` without caps: nothing is counted then.
    pub fn new(state_dir: &Path, caps: SpendCaps) -> Option<Self> {
        let user = || std::env::var("USER").ok().filter(|user| !user.is_empty());
        (caps != SpendCaps::default()).then(|| Self {
            file: state_dir.join("spend.jsonl"),
            caps,
            person: user().unwrap_or_else(|| rustix::process::getuid().as_raw().to_string()),
        })
    }

    pub fn for_project(self: &Arc<Self>, project: &str) -> ProjectSpend {
        ProjectSpend {
            ledger: Arc::clone(self),
            project: project.to_owned(),
        }
    }
}

impl ProjectSpend {
    pub(crate) fn file(&self) -> &Path {
        &self.ledger.file
    }

    /// Locks and reads the ledger. Damaged lines are skipped: a killed process may leave one.
    pub(crate) fn open(&self, now: Timestamp) -> io::Result<OpenLedger<'_>> {
        let lock = open_private(&self.ledger.file.with_extension("lock"))?;
        lock.lock()?;
        let mut file = open_private(&self.ledger.file)?;
        let mut text = Vec::new();
        Read::by_ref(&mut file)
            .take(MAX_FILE_BYTES * 16)
            .read_to_end(&mut text)?;
        let mut lines = HashMap::new();
        for line in text.split(|byte| *byte == b'\n') {
            if let Ok(line) = serde_json::from_slice::<SpendLine>(line)
                && line.age(now) < WEEK
            {
                lines.insert(line.id, line);
            }
        }
        let mut open = OpenLedger {
            of: self,
            file,
            _lock: lock,
            lines,
            now,
        };
        if text.last().is_some_and(|byte| *byte != b'\n') {
            open.file.write_all(b"\n")?;
        }
        if text.len() as u64 > MAX_FILE_BYTES {
            open.compact()?;
        }
        Ok(open)
    }
}

impl OpenLedger<'_> {
    /// What the tightest cap leaves, and which it is.
    pub(crate) fn left(&self) -> Option<(f64, Cap)> {
        let ProjectSpend { ledger, project } = self.of;
        let caps = &ledger.caps;
        let spent = |since: SignedDuration, counts: &dyn Fn(&SpendLine) -> bool| -> f64 {
            let recent = |line: &&SpendLine| line.age(self.now) < since;
            let lines = self.lines.values().filter(recent);
            lines
                .filter(|line| counts(line))
                .map(|line| self.counted(line))
                .sum()
        };
        let all = &|_: &SpendLine| true;
        let here = &|line: &SpendLine| line.project == *project;
        let own = &|line: &SpendLine| line.person == ledger.person;
        let left = [
            (caps.day, Cap::Day, spent(DAY, all)),
            (caps.week, Cap::Week, spent(WEEK, all)),
            (caps.project_day, Cap::Project, spent(DAY, here)),
            (caps.person_day, Cap::Person, spent(DAY, own)),
        ];
        left.into_iter()
            .filter_map(|(cap, which, spent)| Some(((cap? - spent).max(0.0), which)))
            .min_by(|a, b| a.0.total_cmp(&b.0))
    }

    pub(crate) fn reserve(mut self, usd: f64, likely: f64) -> io::Result<ReservedSpend> {
        let line = SpendLine {
            id: fastrand::u64(..),
            at_ms: self.now.as_millisecond(),
            usd,
            likely: Some(likely.min(usd)),
            project: self.of.project.clone(),
            person: self.of.ledger.person.clone(),
        };
        append(&mut self.file, &line)?;
        Ok(ReservedSpend {
            of: self.of.clone(),
            line,
        })
    }

    fn counted(&self, line: &SpendLine) -> f64 {
        match line.likely {
            Some(likely) if line.age(self.now) > ABANDONED_AFTER => likely,
            _ => line.usd,
        }
    }

    /// Replaces the file by one with only what still counts.
    fn compact(&mut self) -> io::Result<()> {
        let path = &self.of.ledger.file;
        let dir = path.parent().unwrap_or(path);
        let mut kept = tempfile::NamedTempFile::new_in(dir)?;
        for line in self.lines.values() {
            append(kept.as_file_mut(), line)?;
        }
        kept.persist(path).map_err(|error| error.error)?;
        self.file = open_private(path)?;
        Ok(())
    }
}

impl SpendLine {
    fn age(&self, now: Timestamp) -> SignedDuration {
        SignedDuration::from_millis(now.as_millisecond().saturating_sub(self.at_ms))
    }
}

impl ReservedSpend {
    /// Replaces the reservation by what was used. If that fails, the reservation goes on to count.
    pub(crate) fn settle(self, usd: f64) -> io::Result<()> {
        let line = SpendLine {
            usd,
            likely: None,
            ..self.line
        };
        let mut open = self.of.open(Timestamp::now())?;
        append(&mut open.file, &line)
    }
}

fn open_private(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .read(true)
        .append(true)
        .mode(0o600)
        .open(path)
}

fn append(file: &mut File, line: &SpendLine) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    file.write_all(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caps(day: f64, week: f64, project: f64) -> SpendCaps {
        SpendCaps {
            day: Some(day),
            week: Some(week),
            project_day: Some(project),
            person_day: None,
        }
    }

    fn ledger(dir: &Path, caps: SpendCaps) -> Arc<SpendLedger> {
        Arc::new(SpendLedger::new(dir, caps).expect("caps"))
    }

    fn at(hours: i64) -> Timestamp {
        Timestamp::now() + SignedDuration::from_hours(hours)
    }

    #[test]
    fn tightest_cap_is_named() {
        let dir = tempfile::tempdir().expect("made");
        let ledger = ledger(dir.path(), caps(5.0, 8.0, 2.0));
        let (a, b) = (ledger.for_project("/a"), ledger.for_project("/b"));
        let spend = |of: &ProjectSpend, hours, usd| {
            let reserved = of.open(at(hours)).and_then(|open| open.reserve(usd, usd));
            drop(reserved.expect("reserved"));
        };
        let left = |of: &ProjectSpend| {
            let (usd, cap) = of.open(at(0)).expect("opened").left().expect("capped");
            ((usd * 100.0).round(), cap)
        };
        spend(&a, -24 * 8, 100.0);
        assert_eq!(left(&a), (200.0, Cap::Project));
        spend(&a, -1, 1.5);
        assert_eq!(
            (left(&a), left(&b)),
            ((50.0, Cap::Project), (200.0, Cap::Project))
        );
        spend(&b, -48, 5.75);
        assert_eq!(left(&b), (75.0, Cap::Week));
        assert!(SpendLedger::new(dir.path(), SpendCaps::default()).is_none());
    }

    #[test]
    fn restart_keeps_what_was_spent() {
        let dir = tempfile::tempdir().expect("made");
        let open = || ledger(dir.path(), caps(5.0, 9.0, 9.0)).for_project("/a");
        let reserve = |usd, likely| {
            let here = open();
            let reserved = here.open(at(0)).and_then(|open| open.reserve(usd, likely));
            reserved.expect("reserved")
        };
        let left = |now| open().open(now).expect("opened").left().expect("capped").0;
        reserve(4.0, 1.0).settle(0.5).expect("settled");
        assert!((left(at(0)) - 4.5).abs() < 1e-9, "settled at what was used");
        // Its process is killed.
        drop(reserve(3.0, 1.0));
        assert!(
            (left(at(0)) - 1.5).abs() < 1e-9,
            "it may still be under way"
        );
        assert!((left(at(3)) - 3.5).abs() < 1e-9, "its estimate counts");
        let file = dir.path().join("spend.jsonl");
        let mut text = std::fs::read(&file).expect("read");
        text.extend(b"{\"id\":1,\"at_ms\":17");
        std::fs::write(&file, text).expect("written");
        reserve(1.0, 1.0).settle(1.0).expect("settled");
        assert!(
            (left(at(3)) - 2.5).abs() < 1e-9,
            "a torn line loses nothing"
        );
    }

    #[test]
    fn concurrent_reservations_never_cross_the_cap() {
        let dir = tempfile::tempdir().expect("made");
        let granted: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        // One for each thread, as in another process.
                        let here = ledger(dir.path(), caps(5.0, 9.0, 9.0)).for_project("/a");
                        let mut granted = 0;
                        for _ in 0..4 {
                            let open = here.open(at(0)).expect("opened");
                            if open.left().is_some_and(|(usd, _)| usd >= 0.5) {
                                drop(open.reserve(0.5, 0.5).expect("reserved"));
                                granted += 1;
                            }
                        }
                        granted
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().expect("ended"))
                .sum()
        });
        assert_eq!(granted, 10);
    }

    #[test]
    fn large_ledger_is_compacted() {
        let dir = tempfile::tempdir().expect("made");
        let here = ledger(dir.path(), caps(5.0, 9.0, 9.0)).for_project("/a");
        let old = SpendLine {
            id: 7,
            at_ms: at(-24 * 30).as_millisecond(),
            usd: 1.0,
            likely: None,
            project: "/a".into(),
            person: "me".into(),
        };
        let mut line = serde_json::to_string(&old).expect("JSON");
        line.push('\n');
        let many = usize::try_from(MAX_FILE_BYTES).expect("small") / line.len() + 1;
        std::fs::write(dir.path().join("spend.jsonl"), line.repeat(many)).expect("written");
        drop(
            here.open(at(0))
                .and_then(|open| open.reserve(2.0, 2.0))
                .expect("reserved"),
        );
        let text = std::fs::read_to_string(dir.path().join("spend.jsonl")).expect("read");
        assert_eq!(text.lines().count(), 1, "{} bytes", text.len());
        assert_eq!(
            here.open(at(0)).expect("opened").left().map(|(usd, _)| usd),
            Some(3.0)
        );
    }
}
