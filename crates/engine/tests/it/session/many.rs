//! Eight processes write into one log and some are killed in the middle. Nobody else loses a line.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use supervisor_engine::session::SessionLog;
use supervisor_engine::{Cause, Entry};
use supervisor_settings::TierKind;

use super::roles::{Role, Scene, append_line, open_append};
use super::{attempt, entry, id, test_log};

const WRITERS: usize = 8;
/// The first ones are killed, several times each, wherever they happen to be.
const VICTIMS: usize = 3;
const KILLS_EACH: usize = 6;
/// Killed while half a line is written and the lock is held.
const DYING: usize = 20;
const SESSION: &str = "shared";
/// A safety net for a machine that hangs, not a measure.
const PATIENCE: Duration = Duration::from_secs(1200);

/// Which records a process writes. A killed writer's successor is another run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) writer: usize,
    pub(super) run: usize,
    pub(super) from: usize,
    pub(super) to: usize,
}

#[test]
fn killed_writers_do_not_damage_a_shared_log() {
    let each = if std::env::var("SUPERVISOR_TEST_LONG").is_ok_and(|v| v == "1") {
        10_000
    } else {
        500
    };
    let fixture = test_log();
    let scene = Scene {
        state: fixture.state.path(),
        session: SESSION,
    };

    let killed = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let kills = if writer < VICTIMS { KILLS_EACH } else { 0 };
                scope.spawn(move || run_writer(scene, writer, each, kills))
            })
            .collect();
        for n in 0..DYING {
            kill_in_the_middle(scene, n);
        }
        writers
            .into_iter()
            .map(|writer| writer.join().unwrap())
            .sum::<usize>()
    });

    // Read here without our own reader, so that it is not the judge of itself; line by line, for the long form is 2 GB.
    let mut lines = BufReader::new(File::open(fixture.log.path(&id(SESSION))).unwrap());
    let bytes = lines.get_ref().metadata().unwrap().len();
    let (mut found, mut torn_dying, mut torn_killed, mut interleaved) =
        (BTreeSet::new(), 0, 0, Vec::new());
    let (mut longest, mut twice) = (0, 0);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line).unwrap() > 0 {
        let whole = std::mem::take(&mut line);
        let line = whole.strip_suffix(b"\n").unwrap_or(&whole);
        longest = longest.max(line.len());
        match serde_json::from_slice::<Entry>(line) {
            Ok(entry) => {
                assert_eq!(
                    entry.input["hash"],
                    json!(hash(&entry)),
                    "the text of {} was changed",
                    entry.message
                );
                twice += usize::from(!found.insert(entry.message));
            }
            Err(_) if line.starts_with(DYING_WORDS.as_bytes()) => torn_dying += 1,
            // What a killed writer left says whose it is, unless it died within the first few bytes.
            Err(error) if error.is_eof() && owner(line).is_none_or(|writer| writer < VICTIMS) => {
                torn_killed += 1;
            }
            Err(error) => interleaved.push(error.to_string()),
        }
    }
    let confirmed: BTreeSet<String> = (0..WRITERS)
        .flat_map(|writer| confirmed_by(fixture.state.path(), writer))
        .collect();
    let lost: Vec<_> = confirmed.difference(&found).collect();
    let _ = writeln!(
        std::io::stderr(),
        "{WRITERS} processes × {each}: {} lines, {} MB, longest {} KB; {} told as written, {} lost, {} interleaved, \
         {twice} twice; {} killed with -9, {} torn lines",
        found.len(),
        bytes / 1_000_000,
        longest / 1000,
        confirmed.len(),
        lost.len(),
        interleaved.len(),
        killed + DYING,
        torn_dying + torn_killed,
    );
    assert_eq!(
        (lost.len(), interleaved.len(), twice),
        (0, 0, 0),
        "{lost:?} {interleaved:?}"
    );
    assert_eq!(torn_dying, DYING, "each half line stands alone");
    assert!(
        torn_killed <= killed,
        "{torn_killed} torn by {killed} kills"
    );
    assert_eq!(killed, VICTIMS * KILLS_EACH);
    assert!(
        confirmed.len() >= WRITERS * each - killed && (100_000..210_000).contains(&longest),
        "{} {longest}",
        confirmed.len()
    );

    let mut reader = fixture.log.reader(&id(SESSION)).unwrap();
    assert_eq!(
        (reader.by_ref().count(), reader.damage().lines()),
        (found.len(), torn_dying + torn_killed)
    );
}

/// Lets a writer do its records, killing it `kills` times on the way. Says how often it was killed.
fn run_writer(scene: Scene<'_>, writer: usize, each: usize, kills: usize) -> usize {
    let (mut from, mut killed) = (0, 0);
    for run in 0..=kills {
        let mut child = Role::WriteMany(Part {
            writer,
            run,
            from,
            to: each,
        })
        .start(scene);
        if run == kills {
            assert!(child.wait().unwrap().success(), "writer {writer} failed");
            break;
        }
        // Any moment will do, as long as it is not the same one each time.
        let enough = from + each / (kills + 2) + random(writer, run, 7) as usize % 11;
        wait_until(|| last(scene.state, writer) >= enough);
        child.kill().unwrap();
        child.wait().unwrap();
        killed += 1;
        from = last(scene.state, writer);
        assert!(
            from < each,
            "writer {writer} was done before it could be killed"
        );
    }
    killed
}

/// Starts a process that writes half a line under the lock, and kills it there.
fn kill_in_the_middle(scene: Scene<'_>, n: usize) {
    let mut child = Role::DieInTheMiddle(n).start(scene);
    let sign = sign(scene.state, n);
    wait_until(|| sign.exists());
    child.kill().unwrap();
    child.wait().unwrap();
}

const DYING_WORDS: &str = "{\"v\":1,\"session_id\":\"dying";

/// Played in a process of its own, which is killed at the end.
pub(super) fn die_in_the_middle(log: &Path, n: usize) {
    // As a writer does it, up to the middle.
    let mut file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .open(log)
        .unwrap();
    file.lock().unwrap();
    let (mut last, length) = ([b'\n'], file.metadata().unwrap().len());
    if length > 0 {
        file.read_exact_at(&mut last, length - 1).unwrap();
    }
    let lead = if last == *b"\n" { "" } else { "\n" };
    file.write_all(format!("{lead}{DYING_WORDS}{}", "…".repeat(1000 * n)).as_bytes())
        .unwrap();
    std::fs::write(sign(log.ancestors().nth(2).unwrap(), n), "").unwrap();
    loop {
        std::thread::park();
    }
}

/// Played in a process of its own: each record is told as written once it is, and not before.
pub(super) fn write(log: &SessionLog, session: &str, part: Part) {
    let state = log
        .path(&session.parse().unwrap())
        .ancestors()
        .nth(2)
        .unwrap()
        .to_owned();
    let mut acks = open_append(&ack_file(&state, part.writer));
    for n in part.from..part.to {
        let record = record(session, part, n);
        log.append(&record).unwrap();
        append_line(&mut acks, &format!("{} {}", n + 1, record.message));
    }
}

/// Up to 200 KB, most much less, with whatever makes JSON longer than its text.
fn record(session: &str, Part { writer, run, .. }: Part, n: usize) -> Entry {
    let size = 200.0 * 1000f64.powf(random(writer, run, n) as f64 / u64::MAX as f64);
    let word = [
        "plain words ",
        "é\"quoted\"\n",
        "日本語\t",
        "\\path\\to\u{1} ",
    ][n % 4];
    let mut attempts = vec![
        attempt(
            &format!("model-{writer}"),
            TierKind::Local,
            Cause::Rejected,
            1,
            None
        );
        4
    ];
    for attempt in &mut attempts {
        attempt.runner_output = word.repeat(size as usize / 4 / json!(word).to_string().len());
    }
    let mut entry = entry(session, attempts);
    entry.tool = format!("writer-{writer}");
    entry.message = format!("{writer}.{run}.{n}");
    entry.input = Value::Null;
    entry.input = json!({"hash": hash(&entry)});
    entry
}

fn hash(entry: &Entry) -> String {
    let mut hasher = blake3::Hasher::new();
    for text in entry
        .attempts
        .iter()
        .map(|a| &a.runner_output)
        .chain([&entry.message, &entry.tool])
    {
        hasher.update(text.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

/// The same for the same place: a failure can be looked at again.
fn random(writer: usize, run: usize, n: usize) -> u64 {
    let hash = blake3::hash(format!("{writer} {run} {n}").as_bytes());
    u64::from_le_bytes(hash.as_bytes()[..8].try_into().unwrap())
}

fn owner(line: &[u8]) -> Option<usize> {
    let text = String::from_utf8_lossy(line);
    let (_, rest) = text.split_once("\"skill\":\"writer-")?;
    rest.chars()
        .next()?
        .to_digit(10)
        .map(|digit| digit as usize)
}

fn ack_file(state: &Path, writer: usize) -> PathBuf {
    state.join(format!("acks-{writer}"))
}

fn sign(state: &Path, n: usize) -> PathBuf {
    state.join(format!("dying-{n}"))
}

/// The records which a writer has told as written.
fn confirmed_by(state: &Path, writer: usize) -> Vec<String> {
    let text = std::fs::read_to_string(ack_file(state, writer)).unwrap();
    text.lines()
        .map(|line| line.split_once(' ').unwrap().1.to_owned())
        .collect()
}

/// How many records a writer has told as written. Looks at the end alone, because it is asked all the time.
fn last(state: &Path, writer: usize) -> usize {
    let Ok(file) = File::open(ack_file(state, writer)) else {
        return 0;
    };
    let from = file.metadata().unwrap().len().saturating_sub(64);
    let mut end = [0; 256];
    let n = file.read_at(&mut end, from).unwrap();
    let end = std::str::from_utf8(&end[..n]).unwrap();
    end.lines()
        .next_back()
        .map_or(0, |line| line.split_once(' ').unwrap().0.parse().unwrap())
}

fn wait_until(ready: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !ready() {
        assert!(Instant::now() < until, "nothing happened for {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
