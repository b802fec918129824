//! `events`: cost of making a call watchable. Compares writing its live file with the events of
//! three attempts to writing its log entry, which is on disk before the reply is sent. Both use the
//! same file system and alternate. The time that the call waits is what counts; the CPU time of the
//! writer thread is printed too.

use std::time::{Duration, Instant};

use serde_json::json;
use supervisor_engine::event::{AttemptSummary, ChainPosition, Event, ProgressLine};
use supervisor_engine::services::{LiveHeader, Recorder as _};
use supervisor_engine::session::SessionLog;
use supervisor_engine::session::live::{THREAD, settle};
use supervisor_engine::{Cause, Entry};
use supervisor_workspace::state::StateDir;

const ROUNDS: usize = 201;
const TIERS: usize = 3;

pub(super) fn run() {
    let dir = tempfile::tempdir().unwrap();
    let log = SessionLog::open(&StateDir::at(dir.path().join("state")).unwrap()).unwrap();
    let (entry, events) = (entry(), events());
    let (mut written, mut batched, mut one_by_one) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let began = Instant::now();
        log.append(&entry).unwrap();
        written.push(began.elapsed());

        let began = Instant::now();
        let live = log.show_live(&header());
        for line in &events {
            live.on_event(line);
        }
        drop(live);
        batched.push(began.elapsed());
        settle();
    }
    // As in real calls, the writer has time between two events, so that no events are batched.
    let before = writer_time();
    for _ in 0..ROUNDS {
        let mut waited = Duration::ZERO;
        let live = timed(&mut waited, || log.show_live(&header()));
        settle();
        for line in &events {
            timed(&mut waited, || live.on_event(line));
            settle();
        }
        timed(&mut waited, || drop(live));
        settle();
        one_by_one.push(waited);
    }
    let spent = before
        .zip(writer_time())
        .map(|(before, after)| (after - before) / u32::try_from(ROUNDS).unwrap());
    let written = median(written);
    println!("the log's own write, on disk when it returns: p50 {written:.1?}");
    let of_log = |time: Duration| time.as_secs_f64() / written.as_secs_f64();
    let events = u32::try_from(events.len()).unwrap();
    for (how, time) in [
        ("at once", median(batched)),
        ("one by one", median(one_by_one)),
    ] {
        println!(
            "a call waits for its stream of {events} events, {how}: p50 {time:.1?}, {:.1?} each; {:.3} × the log's write",
            time / events,
            of_log(time)
        );
    }
    match spent {
        Some(spent) => println!(
            "the thread that writes them, one by one, meanwhile: {spent:.1?} of processor time a call; {:.2} × the log's write",
            of_log(spent)
        ),
        None => println!("the thread that writes them: its time cannot be read here"),
    }
}

fn timed<T>(sum: &mut Duration, action: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let done = action();
    *sum += began.elapsed();
    done
}

/// CPU time of the writer thread so far.
fn writer_time() -> Option<Duration> {
    let tasks = std::fs::read_dir("/proc/self/task").ok()?;
    let of_thread = |path: std::path::PathBuf| {
        let name = std::fs::read_to_string(path.join("comm")).ok()?;
        let times = std::fs::read_to_string(path.join("schedstat")).ok()?;
        (name.trim() == THREAD).then_some(times)
    };
    let times = tasks.flatten().find_map(|task| of_thread(task.path()))?;
    Some(Duration::from_nanos(
        times.split_whitespace().next()?.parse().ok()?,
    ))
}

fn header() -> LiveHeader {
    LiveHeader {
        call: String::new(),
        session_id: "bench".into(),
        skill: "tdd_green".into(),
        phase: "green".into(),
        project_root: "/home/me/project".into(),
        began: jiff::Timestamp::now().to_string(),
        chain: (1..=TIERS).map(|n| format!("model-{n}")).collect(),
    }
}

/// Three attempts, each asked, checked twice and ended with a diff of 2 KB.
fn events() -> Vec<ProgressLine> {
    let mut events = vec![Event::Armed {
        files: 200,
        uncovered: Vec::new(),
    }];
    for tier in 1..=TIERS {
        let at = || ChainPosition {
            tier,
            of: TIERS,
            model: format!("model-{tier}"),
        };
        let left = AttemptSummary {
            cost_usd: Some(0.01),
            diff: "+a line of the change\n".repeat(100),
        };
        events.push(Event::Asking { at: at() });
        events.push(Event::Checking {
            at: at(),
            what: "applying 2 edits".into(),
        });
        events.push(Event::Checking {
            at: at(),
            what: "12 passed, 1 failed".into(),
        });
        events.push(Event::Ended {
            at: at(),
            cause: Cause::Rejected,
            because: "one test still fails".into(),
            left,
        });
    }
    let line = |event| ProgressLine {
        event,
        after: Duration::from_secs(1),
        line: "a line for people".into(),
    };
    events.into_iter().map(line).collect()
}

fn entry() -> Entry {
    let attempt = |n: usize| {
        json!({"attempt": n, "model": format!("model-{n}"), "tier": "local", "duration_ms": 4000,
               "cause": "rejected", "feedback": "one test still fails", "runner_output": "12 passed, 1 failed\n".repeat(50)})
    };
    let attempts: Vec<_> = (1..=TIERS).map(attempt).collect();
    let entry = json!({"v": 1, "session_id": "bench", "timestamp": "2026-01-31T12:00:00Z", "skill": "tdd_green",
                       "final_status": "fail", "message": "all tiers exhausted", "attempts": attempts});
    serde_json::from_value(entry).unwrap()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
