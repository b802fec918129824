//! A day with a scripted host: 30 proven changes are recorded in a real repository, and replayed on a simulated clock.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says where it failed"
)]
#![allow(clippy::disallowed_methods, reason = "tests start programs themselves")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use supervisor_engine::Cause;
use supervisor_process::Launcher;
use supervisor_prove::{Report as ProofReport, Verdict};
use supervisor_shadow::{
    HostUsage, Machine, MachineState, RecordRequest, Replay, ReplayEnd, Replayed, Report, RunEnd,
    RunLimits, ShadowSettings, ShadowStore, ShadowTask, record, run,
};
use supervisor_test_support as _;
use supervisor_text::redact::Redactor;
use supervisor_verify::TestName;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

const TASKS: usize = 30;
const SECRET: &str = "hunter2-is-the-password";

/// The user's project and the store.
struct Day {
    project: tempfile::TempDir,
    store: ShadowStore,
    _state: tempfile::TempDir,
}

fn morning() -> Timestamp {
    "2026-03-02T08:00:00Z".parse().unwrap()
}

fn settings() -> ShadowSettings {
    ShadowSettings {
        since: morning(),
        model: None,
        budget_usd: 0.3,
        minutes: 120.0,
        by_plugin: false,
    }
}

impl Day {
    fn new() -> Self {
        let state = tempfile::tempdir().unwrap();
        let day = Self {
            project: tempfile::tempdir().unwrap(),
            store: ShadowStore::at(state.path().join("shadow")),
            _state: state,
        };
        day.git(&["init", "-q"]);
        day.write("app.py", "TOKEN = 'hunter2-is-the-password'\n");
        day.write(".gitignore", "ignored/\n");
        day.write("ignored/large.bin", "x");
        day.commit("start");
        day
    }

    fn git(&self, arguments: &[&str]) {
        let names = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
        let done = Command::new("git")
            .args(names)
            .args(arguments)
            .current_dir(self.project.path())
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
    }

    fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.project.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The host adds a function and its test, and `prove` finds that proven.
    fn work(&self, number: usize) {
        let code = fs::read_to_string(self.project.path().join("app.py")).unwrap();
        let body = "    x = 1\n".repeat(if number.is_multiple_of(3) { 80 } else { 2 });
        self.write(
            "app.py",
            &format!("{code}\n\ndef f{number}():\n{body}    return {number}\n"),
        );
        self.write(
            &format!("tests/test_f{number}.py"),
            &format!("from app import f{number}\n\n\ndef test_f{number}():\n    assert f{number}() == {number}\n"),
        );
    }

    fn record(&self, number: usize, verdict: Verdict) -> Result<ShadowTask, String> {
        let description = format!("add f{number}; the password is {SECRET}");
        self.record_as(number, verdict, "HEAD", &description)
    }

    fn record_as(
        &self,
        number: usize,
        verdict: Verdict,
        base: &str,
        description: &str,
    ) -> Result<ShadowTask, String> {
        let report = proof(number, verdict);
        let root = self.project.path().canonicalize().unwrap();
        let request = RecordRequest {
            root: &root,
            base,
            report: &report,
            description,
            test_cmd: None,
            host: Some(HostUsage {
                tokens_in: 1_000,
                tokens_out: 100,
                tokens_cached: 0,
                cost_usd: Some(0.1),
            }),
            now: morning() + SignedDuration::from_mins(10 * i64::try_from(number).unwrap()),
            redactor: &Redactor::with_values([SECRET]),
            launcher: &Launcher::this_program(),
            env: &std::env::vars_os().collect(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime
            .block_on(record(&self.store, &request, &CancellationToken::new()))
            .map_err(|error| error.to_string())
    }

    /// Everything below the project, with its contents.
    fn picture(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        fn collect(dir: &Path, into: &mut BTreeMap<PathBuf, Vec<u8>>) {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => collect(&path, into),
                    false => drop(into.insert(path.clone(), fs::read(path).unwrap())),
                }
            }
        }
        let mut picture = BTreeMap::new();
        collect(self.project.path(), &mut picture);
        picture
    }
}

fn proof(number: usize, verdict: Verdict) -> ProofReport {
    ProofReport {
        verdict,
        fail_without_change: vec![TestName(format!("tests/test_f{number}.py::test_f{number}"))],
        falsified: (1, 1),
        ..ProofReport::new("HEAD")
    }
}

/// Does short tasks in four minutes each, at two cents.
struct Scripted {
    asked: Vec<String>,
    stopped_after: Vec<Duration>,
    never_ends: bool,
    cost_usd: Option<f64>,
}

impl Default for Scripted {
    fn default() -> Self {
        Self {
            asked: Vec::new(),
            stopped_after: Vec::new(),
            never_ends: false,
            cost_usd: Some(0.02),
        }
    }
}

impl Replay for Scripted {
    async fn replay(
        &mut self,
        task: &ShadowTask,
        dir: &Path,
        budget_usd: f64,
        stop: &CancellationToken,
    ) -> Result<ReplayEnd, String> {
        assert!(budget_usd > 0.0, "nothing is asked without money");
        let code = fs::read_to_string(dir.join("app.py")).unwrap();
        let name = task.tests[0].rsplit("test_").next().unwrap();
        assert!(
            !code.contains(&format!("def {name}(")),
            "the code is as it was"
        );
        assert!(dir.join(&task.test_path).is_file(), "the tests are there");
        self.asked.push(task.id.clone());
        let time = Duration::from_secs(if self.never_ends { 1_000_000 } else { 240 });
        let began = Instant::now();
        tokio::select! {
            () = sleep(time) => {}
            () = stop.cancelled() => {
                self.stopped_after.push(began.elapsed());
                return Ok(ReplayEnd::Stopped {
                    cost_usd: self.cost_usd,
                });
            }
        }
        let accepted = task.lines < 50;
        Ok(ReplayEnd::Done(Replayed {
            model: String::from("local/small"),
            accepted,
            cause: Some(if accepted {
                Cause::Accepted
            } else {
                Cause::Rejected
            }),
            said: String::new(),
            seconds: 240.0,
            cost_usd: self.cost_usd,
        }))
    }
}

/// A machine that is needed from some time on, and free again later.
struct Needed {
    began: Instant,
    from: Duration,
    to: Duration,
    as_what: MachineState,
}

impl Needed {
    fn never() -> Self {
        Self::between(Duration::MAX, Duration::MAX)
    }

    fn between(from: Duration, to: Duration) -> Self {
        Self {
            began: Instant::now(),
            from,
            to,
            as_what: MachineState::Busy,
        }
    }
}

impl Machine for Needed {
    fn state(&mut self) -> MachineState {
        let now = self.began.elapsed();
        match now >= self.from && now < self.to {
            true => self.as_what,
            false => MachineState::Idle,
        }
    }
}

fn limits() -> RunLimits {
    RunLimits {
        budget_usd: 0.3,
        time: Duration::from_secs(7_200),
        waits: true,
        ignores_machine: false,
    }
}

/// Runs on a clock that jumps whenever everybody waits.
fn simulated<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(work)
}

#[test]
fn day_of_tasks_is_replayed_within_its_budget() {
    let day = Day::new();
    assert!(day.record(0, Verdict::Proven).is_err(), "it is off");
    day.store.switch_on(&settings()).unwrap();
    for number in 0..TASKS {
        day.work(number);
        assert!(day.record(number, Verdict::Unproven).is_err());
        day.record(number, Verdict::Proven).unwrap();
        day.record(number, Verdict::Proven).unwrap();
        day.commit(&format!("f{number}"));
    }
    assert_eq!(
        day.store.tasks().len(),
        TASKS,
        "the same change is one task"
    );
    let before = day.picture();
    let stop = CancellationToken::new();
    let mut host = Scripted::default();
    let first = simulated(async {
        // For an hour in between, somebody works.
        let busy = Duration::from_secs(1_000)..Duration::from_secs(4_300);
        let mut machine = Needed::between(busy.start, busy.end);
        run(&day.store, &mut host, &mut machine, limits(), &stop)
            .await
            .unwrap()
    });
    // 15 at two cents are the budget; one of them was given up when the machine was needed.
    assert_eq!(
        (first.end, first.replayed, first.given_up),
        (RunEnd::Money, 14, 1)
    );
    assert!(first.spent_usd <= 0.3 + 1e-9, "{}", first.spent_usd);
    assert_eq!(first.accepted, 9);
    let second = simulated(async {
        let short = RunLimits {
            time: Duration::from_secs(1_000),
            ..limits()
        };
        run(&day.store, &mut host, &mut Needed::never(), short, &stop)
            .await
            .unwrap()
    });
    assert_eq!(
        (second.end, second.replayed),
        (RunEnd::Time, 4),
        "four of 240 s fit into 1,000 s"
    );
    let third = simulated(async {
        run(&day.store, &mut host, &mut Needed::never(), limits(), &stop)
            .await
            .unwrap()
    });
    assert_eq!((third.end, third.replayed), (RunEnd::Done, 12));
    assert_eq!(
        day.picture(),
        before,
        "nothing of the user's tree is touched"
    );

    let report = Report::of(&day.store.tasks());
    assert_eq!(
        (report.recorded, report.replayed, report.accepted),
        (30, 30, 20)
    );
    assert!((report.cost_usd - 0.6).abs() < 1e-9 && (report.seconds - 7_200.0).abs() < 1e-9);
    assert_eq!((report.host_tokens, report.host_known), (22_000, 20));
    assert!((report.host_usd.unwrap() - 2.0).abs() < 1e-9);
    assert_eq!(report.advice(), "switch on `tdd` for python under 50 lines");
    let text = report.to_text();
    assert!(
        text.contains("of 30 real tasks the local model would have done 20 (49 % to 81 %)"),
        "{text}"
    );
}

#[test]
fn run_stops_within_a_second_when_the_machine_is_needed() {
    let day = Day::new();
    day.store.switch_on(&settings()).unwrap();
    day.work(1);
    day.record(1, Verdict::Proven).unwrap();
    for as_what in [MachineState::Busy, MachineState::OnBattery] {
        let mut host = Scripted {
            never_ends: true,
            ..Scripted::default()
        };
        let summary = simulated(async {
            let mut machine = Needed {
                as_what,
                ..Needed::between(Duration::from_millis(10_100), Duration::MAX)
            };
            let limits = RunLimits {
                waits: false,
                ..limits()
            };
            run(
                &day.store,
                &mut host,
                &mut machine,
                limits,
                &CancellationToken::new(),
            )
            .await
            .unwrap()
        });
        assert_eq!(summary.end, RunEnd::Machine(as_what));
        let ended = host.stopped_after[0];
        assert!(ended < Duration::from_millis(11_100), "{ended:?}");
        assert!(
            day.store.tasks()[0].replayed.is_none(),
            "it is left for the next run"
        );
    }
}

/// Idle for a moment, busy for a moment.
struct Restless(u64);

impl Machine for Restless {
    fn state(&mut self) -> MachineState {
        self.0 += 1;
        match self.0.is_multiple_of(4) {
            true => MachineState::Busy,
            false => MachineState::Idle,
        }
    }
}

#[test]
fn restless_machine_ends_the_run() {
    let day = Day::new();
    day.store.switch_on(&settings()).unwrap();
    for number in 0..3 {
        day.work(number);
        day.record(number, Verdict::Proven).unwrap();
        day.commit(&format!("f{number}"));
    }
    let mut host = Scripted {
        never_ends: true,
        ..Scripted::default()
    };
    let stop = CancellationToken::new();
    let summary = simulated(async {
        run(&day.store, &mut host, &mut Restless(0), limits(), &stop)
            .await
            .unwrap()
    });
    assert_eq!(
        (summary.end, summary.given_up),
        (RunEnd::Done, 6),
        "each task is begun twice"
    );
    assert!(
        (summary.spent_usd - 0.12).abs() < 1e-9,
        "{}",
        summary.spent_usd
    );
}

#[test]
fn unknown_cost_ends_a_run_with_a_budget() {
    let day = Day::new();
    day.store.switch_on(&settings()).unwrap();
    for number in 0..3 {
        day.work(number);
        day.record(number, Verdict::Proven).unwrap();
        day.commit(&format!("f{number}"));
    }
    let replayed = |budget_usd| {
        let mut host = Scripted {
            cost_usd: None,
            ..Scripted::default()
        };
        let stop = CancellationToken::new();
        let limits = RunLimits {
            budget_usd,
            ..limits()
        };
        let summary = simulated(async {
            run(&day.store, &mut host, &mut Needed::never(), limits, &stop)
                .await
                .unwrap()
        });
        (summary.end, summary.replayed)
    };
    assert_eq!(replayed(0.3), (RunEnd::UnknownCost, 1));
}

#[test]
fn commit_messages_describe_a_change_without_transcript() {
    let day = Day::new();
    day.store.switch_on(&settings()).unwrap();
    day.work(1);
    day.commit(&format!("add f1\n\nthe password is {SECRET}"));
    let task = day.record_as(1, Verdict::Proven, "HEAD~1", "").unwrap();
    assert!(
        task.description.starts_with("add f1\n") && !task.description.contains(SECRET),
        "{}",
        task.description
    );
}

#[test]
fn plugin_option_does_not_override_shadow_off() {
    let day = Day::new();
    // A variable of this process would reach other tests, so a file as the plugin leaves it.
    let by_plugin = ShadowSettings {
        by_plugin: true,
        ..settings()
    };
    day.store.switch_on(&by_plugin).unwrap();
    assert!(day.store.settings().unwrap().by_plugin);
    day.store.switch_off().unwrap();
    day.store.follow_plugin().unwrap();
    assert!(day.store.settings().is_none());
}

#[test]
fn only_one_run_works_at_a_time() {
    let day = Day::new();
    day.store.switch_on(&settings()).unwrap();
    day.work(1);
    day.record(1, Verdict::Proven).unwrap();
    let ends = simulated(async {
        let (mut first, mut second) = (Scripted::default(), Scripted::default());
        let (mut one, mut other) = (Needed::never(), Needed::never());
        let stop = CancellationToken::new();
        let (first, second) = tokio::join!(
            run(&day.store, &mut first, &mut one, limits(), &stop),
            run(&day.store, &mut second, &mut other, limits(), &stop),
        );
        [first.unwrap().end, second.unwrap().end]
    });
    assert_eq!(ends, [RunEnd::Done, RunEnd::OtherRun]);
}

#[test]
fn killed_run_leaves_its_task_for_the_next() {
    let day = Day::new();
    day.store.switch_on(&settings()).unwrap();
    day.work(1);
    day.record(1, Verdict::Proven).unwrap();
    let before = day.picture();
    simulated(async {
        let mut host = Scripted::default();
        let (mut machine, stop) = (Needed::never(), CancellationToken::new());
        let work = run(&day.store, &mut host, &mut machine, limits(), &stop);
        assert!(
            tokio::time::timeout(Duration::from_secs(30), work)
                .await
                .is_err()
        );
    });
    assert_eq!(day.picture(), before);
    let again = simulated(async {
        run(
            &day.store,
            &mut Scripted::default(),
            &mut Needed::never(),
            limits(),
            &CancellationToken::new(),
        )
        .await
        .unwrap()
    });
    assert_eq!((again.end, again.replayed), (RunEnd::Done, 1));
}

#[test]
fn stored_tasks_hold_no_secret_and_expire() {
    let day = Day::new();
    day.store.switch_on(&settings()).unwrap();
    day.work(1);
    let task = day.record(1, Verdict::Proven).unwrap();
    assert!(!task.description.contains(SECRET) && task.description.contains("add f1"));
    let mut seen = 0;
    let mut folders = vec![day._state.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            seen += 1;
            let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            assert!(!text.contains(SECRET), "{}", path.display());
            assert!(!path.ends_with("large.bin"), "what git ignores is not kept");
        }
    }
    assert!(seen >= 4, "{seen}");
    let later = |days: i64| task.recorded_at + SignedDuration::from_hours(24 * days);
    let log = day.store.calls().join("sessions/shadow-2026-03-02.jsonl");
    fs::create_dir_all(log.parent().unwrap()).unwrap();
    let written = fs::File::create(&log).unwrap();
    written.set_modified(task.recorded_at.into()).unwrap();
    assert_eq!(day.store.expire(later(13)).unwrap(), 0);
    assert!(log.exists());
    assert_eq!(day.store.expire(later(15)).unwrap(), 1);
    assert!(!log.exists(), "logs of replays expire, too");
    day.record(1, Verdict::Proven).unwrap();
    assert_eq!(day.store.purge().unwrap(), 1);
    assert!(day.store.tasks().is_empty() && day.store.settings().is_some());
    day.store.switch_off().unwrap();
    assert!(day.store.settings().is_none());
}
