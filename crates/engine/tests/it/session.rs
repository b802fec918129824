//! The log of every call, as users and other processes see it.

mod many;
pub(crate) mod roles;

use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use serde_json::{Value, json};
use supervisor_engine::evidence::FollowUpKind;
use supervisor_engine::policy::{TaskClass, TaskSize};
use supervisor_engine::session::{RecordedOutcome, SessionId, SessionLog};
use supervisor_engine::{
    AskRecord, Attempt, Basis, Cause, Entry, Gate, Opinion, Status, TopTier, Verdict, entry,
};
use supervisor_settings::TierKind;
use supervisor_test_support::programs::require;
use supervisor_text::redact::Redactor;
use supervisor_verify::Flags;
use supervisor_workspace::state::StateDir;

use roles::{Role, Scene};

/// A log in a directory of its own.
struct TestLog {
    _dir: tempfile::TempDir,
    state: StateDir,
    log: SessionLog,
}

fn test_log() -> TestLog {
    let dir = tempfile::tempdir().unwrap();
    let state = StateDir::at(dir.path().join("state")).unwrap();
    TestLog {
        log: SessionLog::open(&state).unwrap(),
        state,
        _dir: dir,
    }
}

fn id(name: &str) -> SessionId {
    name.parse().unwrap()
}

fn attempt(
    model: &str,
    tier: TierKind,
    cause: Cause,
    duration_ms: u64,
    warm_start: Option<bool>,
) -> Attempt {
    Attempt {
        attempt: 1,
        phase: String::new(),
        model: model.into(),
        tier,
        duration_ms,
        generate_ms: duration_ms,
        verify_ms: 0,
        warm_start,
        verified: cause == Cause::Accepted,
        gates_passed: cause == Cause::Accepted,
        verdict: Some(cause.verdict()),
        cause: Some(cause),
        unfinished: false,
        feedback: String::new(),
        reason: String::new(),
        hint: String::new(),
        output_summary: String::new(),
        runner_output: String::new(),
        tokens_in: None,
        tokens_out: None,
        cost_usd: None,
        verifier: None,
        author: None,
        subscription: false,
        flags: Flags::default(),
        asks: vec![],
        gates: vec![],
        flaky: vec![],
        exchange: vec![],
        diff: None,
    }
}

fn entry(session: &str, attempts: Vec<Attempt>) -> Entry {
    Entry {
        v: entry::VERSION,
        session_id: session.into(),
        cycle_id: String::new(),
        call: String::new(),
        timestamp: "2026-01-02T03:04:05.678Z".into(),
        skill: "tdd".into(),
        tool: "tdd_green".into(),
        phase: "green".into(),
        final_status: Status::Pass,
        cause: None,
        project_root: "/home/me/project".into(),
        file_path: "/home/me/project/src/lib.rs".into(),
        model_used: "claude-sonnet-4-6".into(),
        message: "2 tests pass".into(),
        input: json!({"test_file": "tests/a.rs", "timeout_s": 60}),
        attempts,
        duration_ms: 5120,
        top_tier: None,
        class: None,
        policy: None,
        foreground_ms: None,
        sandbox: String::new(),
    }
}

#[test]
fn one_line_holds_the_whole_call() {
    let fixture = test_log();
    let mut rejected = attempt(
        "ollama/qwen3-coder",
        TierKind::Local,
        Cause::Rejected,
        4100,
        Some(false),
    );
    rejected.feedback = "tests::adds still fails".into();
    rejected.runner_output = "1 failed\nleft: 41\nright: 42".into();
    rejected.tokens_in = Some(1200);
    let mut accepted = attempt(
        "claude-sonnet-4-6",
        TierKind::Subagent,
        Cause::Accepted,
        1000,
        None,
    );
    (accepted.attempt, accepted.cost_usd) = (2, Some(0.013));
    let written = fixture
        .log
        .append(&entry("s", vec![rejected, accepted]))
        .unwrap();

    let text = std::fs::read_to_string(&written.path).unwrap();
    assert_eq!(text.len(), written.bytes);
    insta::with_settings!({filters => vec![(r"\d{4}-\d\d-\d\dT[0-9:.]+Z", "[time]"), (r#"_ms":\d+"#, r#"_ms":[ms]"#), (r#""chain":"[0-9a-f]{32}""#, r#""chain":"[digest]""#)]}, {
        insta::assert_snapshot!(text, @r#"{"v":2,"session_id":"s","timestamp":"[time]","skill":"tdd","tool":"tdd_green","phase":"green","final_status":"pass","project_root":"/home/me/project","file_path":"/home/me/project/src/lib.rs","model_used":"claude-sonnet-4-6","message":"2 tests pass","input":{"test_file":"tests/a.rs","timeout_s":60},"attempts":[{"attempt":1,"model":"ollama/qwen3-coder","tier":"local","duration_ms":[ms],"generate_ms":[ms],"verify_ms":[ms],"warm_start":false,"verified":false,"gates_passed":false,"verdict":"escalate","cause":"rejected","feedback":"tests::adds still fails","runner_output":"1 failed\nleft: 41\nright: 42","tokens_in":1200,"tokens_out":null,"cost_usd":null},{"attempt":2,"model":"claude-sonnet-4-6","tier":"subagent","duration_ms":[ms],"generate_ms":[ms],"verify_ms":[ms],"warm_start":null,"verified":true,"gates_passed":true,"verdict":"accept","cause":"accepted","tokens_in":null,"tokens_out":null,"cost_usd":0.013}],"duration_ms":[ms],"chain":"[digest]"}"#);
    });
}

#[test]
fn written_entries_are_read_back() {
    let fixture = test_log();
    let mut failed = entry(
        "s",
        vec![attempt("m", TierKind::Managed, Cause::Infra, 7, None)],
    );
    failed.final_status = Status::Error;
    for entry in [&entry("s", vec![]), &failed] {
        fixture.log.append(entry).unwrap();
    }
    let history = fixture.log.read(&id("s")).unwrap();
    assert_eq!(history.damage.summary(), None);
    let found: Vec<_> = history
        .records
        .into_iter()
        .map(|r| (r.entry, r.outcome))
        .collect();
    assert_eq!(
        found,
        [
            (entry("s", vec![]), RecordedOutcome::Pass),
            (failed, RecordedOutcome::Error)
        ]
    );
}

#[test]
fn missing_log_is_empty_and_others_are_listed() {
    let fixture = test_log();
    assert!(fixture.log.read(&id("never")).unwrap().records.is_empty());
    assert_eq!(fixture.log.sessions().unwrap(), []);
    for name in ["b", "a.jsonl", "a"] {
        fixture.log.append(&entry(name, vec![])).unwrap();
    }
    let directory = fixture.state.path().join("sessions");
    std::fs::write(directory.join("notes.txt"), "").unwrap();
    std::fs::write(directory.join("-no name.jsonl"), "").unwrap();
    assert_eq!(
        fixture.log.sessions().unwrap(),
        [id("a"), id("a.jsonl"), id("b")]
    );
}

#[test]
fn session_name_with_path_is_refused() {
    let fixture = test_log();
    let error = fixture
        .log
        .append(&entry("../escape", vec![]))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("`../escape`") && error.contains("letters"),
        "{error}"
    );
    assert!(!fixture.state.path().join("escape.jsonl").exists());
}

#[test]
fn log_and_directory_are_private() {
    let fixture = test_log();
    let written = fixture.log.append(&entry("s", vec![])).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (mode(&written.path), mode(written.path.parent().unwrap())),
        (0o600, 0o700)
    );
}

#[test]
fn removed_log_directory_is_recreated() {
    let fixture = test_log();
    fixture.log.append(&entry("s", vec![])).unwrap();
    std::fs::remove_dir_all(fixture.state.path()).unwrap();
    fixture.log.ready(&id("s")).unwrap();
    fixture.log.append(&entry("s", vec![])).unwrap();
    assert_eq!(fixture.log.read(&id("s")).unwrap().records.len(), 1);
}

#[test]
fn link_in_place_of_a_log_is_refused() {
    let fixture = test_log();
    let target = fixture.state.path().join("elsewhere");
    std::fs::write(&target, "").unwrap();
    symlink(&target, fixture.log.path(&id("s"))).unwrap();
    for error in [
        fixture
            .log
            .append(&entry("s", vec![]))
            .unwrap_err()
            .to_string(),
        fixture.log.read(&id("s")).unwrap_err().to_string(),
        fixture.log.ready(&id("s")).unwrap_err().to_string(),
    ] {
        assert!(
            error.contains("symbolic link") && error.contains("s.jsonl"),
            "{error}"
        );
    }
    assert_eq!(std::fs::read(&target).unwrap(), b"");
}

#[test]
fn secrets_in_any_field_are_redacted() {
    const CANARY: &str = "canary-8c1f\"e\\77";
    let fixture = test_log();
    let log = fixture
        .log
        .with_redactor(Arc::new(Redactor::with_values([CANARY])));
    // Every field is written out, so that a new one does not compile before it is thought of here.
    let told = || format!("before {CANARY} after");
    let attempt = Attempt {
        attempt: 1,
        phase: String::new(),
        model: told(),
        tier: TierKind::Local,
        duration_ms: 0,
        generate_ms: 0,
        verify_ms: 0,
        warm_start: None,
        verified: false,
        gates_passed: false,
        verdict: Some(Verdict::Error),
        cause: Some(Cause::Setup),
        unfinished: false,
        feedback: told(),
        reason: String::new(),
        hint: String::new(),
        output_summary: told(),
        runner_output: format!("{}{}", "x".repeat(65_530), told()), // across the cut
        tokens_in: None,
        tokens_out: None,
        cost_usd: None,
        verifier: Some(Opinion {
            model: told(),
            tokens_in: None,
            tokens_out: None,
            cost_usd: None,
        }),
        author: None,
        subscription: false,
        flags: {
            let mut flags = Flags::default();
            flags.raise("vague", told(), told());
            flags.answer("vague", true, &told());
            flags
        },
        asks: vec![AskRecord {
            sample: None,
            cause: None,
            follow_up: Some(FollowUpKind::Repair),
            said: told(),
            duration_ms: 0,
            tokens_in: None,
            tokens_out: None,
            cost_usd: None,
        }],
        gates: vec![Gate {
            id: told(),
            pass: false,
            detail: told(),
        }],
        flaky: vec![told()],
        exchange: vec![],
        diff: None,
    };
    let entry = Entry {
        v: 1,
        session_id: "s".into(),
        cycle_id: told(),
        call: told(),
        timestamp: told(),
        skill: told(),
        tool: told(),
        phase: told(),
        final_status: Status::Fail,
        cause: Some(Cause::Crashed),
        project_root: told(),
        file_path: told(),
        model_used: told(),
        message: told(),
        input: json!({"deep": [{CANARY: told()}], "env": {"OTHER_API_KEY": "not known by value"}}),
        attempts: vec![attempt],
        duration_ms: 0,
        top_tier: Some(TopTier {
            model: told(),
            cost_usd: None,
            basis: Basis::Estimated,
        }),
        class: Some(TaskClass {
            skill: told(),
            language: told(),
            size: TaskSize::Small,
        }),
        policy: None,
        foreground_ms: None,
        sandbox: String::new(),
    };
    let written = log.append(&entry).unwrap();
    let text = std::fs::read_to_string(written.path).unwrap();
    let around = |at: usize| {
        text[at.saturating_sub(100)..]
            .chars()
            .take(200)
            .collect::<String>()
    };
    for secret in ["canary", "not known by value"] {
        assert_eq!(text.find(secret).map(around), None);
    }
    assert_eq!(
        text.matches("[redacted]").count(),
        28,
        "10 fields, 3 in the input, 12 in the attempt, 1 in the top tier, 2 in the class"
    );
}

#[test]
fn huge_output_is_cut_in_the_middle() {
    let fixture = test_log();
    let mut long = attempt("m", TierKind::Local, Cause::Rejected, 1, None);
    long.runner_output = format!("first line\n{}\nlast line", "noise\n".repeat(400_000));
    let was = long.runner_output.len();
    let written = fixture.log.append(&entry("s", vec![long; 30])).unwrap();
    assert!(written.bytes <= 1 << 20, "{}", written.bytes);
    assert_eq!(written.cut.len(), 30);
    assert_eq!(
        (written.cut[0].field.as_str(), written.cut[0].was),
        (".attempts[0].runner_output", was)
    );
    let history = fixture.log.read(&id("s")).unwrap();
    let kept = &history.records[0].entry.attempts[29].runner_output;
    assert!(
        kept.starts_with("first line") && kept.ends_with("last line") && kept.contains("bytes cut"),
        "{kept}"
    );
}

#[test]
fn full_disk_leaves_no_half_line() {
    let fixture = test_log();
    fixture.log.append(&entry("s", vec![])).unwrap();
    // The kernel cuts the file off in the middle of a line, as a full disk does.
    let said = Role::WriteUntilRefused.play_limited(Scene {
        state: fixture.state.path(),
        session: "s",
    });
    assert!(
        said.contains("no room") && said.contains("s.jsonl") && said.contains("free some space"),
        "{said}"
    );
    let text = std::fs::read(fixture.log.path(&id("s"))).unwrap();
    assert_eq!(text.last(), Some(&b'\n'));
    fixture.log.append(&entry("s", vec![])).unwrap();
    let history = fixture.log.read(&id("s")).unwrap();
    assert!(
        history.records.len() > 3 && history.damage.lines() == 0,
        "{:?}",
        history.damage
    );
}

const NOBODY: u32 = 65534;

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn unwritable_log_directory_is_refused() {
    let fixture = test_log();
    let scene = Scene {
        state: fixture.state.path(),
        session: "s",
    };
    let sessions = fixture.state.path().join("sessions");
    // No mode keeps root from writing.
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        set_mode(fixture._dir.path(), 0o755);
        for path in [fixture.state.path(), &sessions] {
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }
    set_mode(&sessions, 0o500);
    let said = if is_root {
        Role::WriteOnce.play_as(NOBODY, scene)
    } else {
        Role::WriteOnce.play(scene)
    };
    set_mode(&sessions, 0o700);
    assert!(
        said.contains("cannot be used") && said.contains("s.jsonl"),
        "{said}"
    );
}

#[test]
#[ignore = "needs root"]
fn log_of_another_user_is_refused() {
    assert!(
        rustix::process::geteuid().is_root(),
        "run this test as root"
    );
    let fixture = test_log();
    let scene = Scene {
        state: fixture.state.path(),
        session: "s",
    };
    let sessions = fixture.state.path().join("sessions");
    let said = Role::WriteOnce.play_as(NOBODY, scene);
    assert!(
        said.contains("the state directory") && said.contains("another user"),
        "{said}"
    );

    set_mode(fixture._dir.path(), 0o755);
    for path in [fixture.state.path(), &sessions] {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    assert_eq!(
        Role::WriteOnce.play_as(
            NOBODY,
            Scene {
                session: "own",
                ..scene
            }
        ),
        "written"
    );

    set_mode(&sessions, 0o500);
    let said = Role::WriteOnce.play_as(NOBODY, scene);
    assert!(
        said.contains("cannot be used") && said.contains("s.jsonl") && said.contains("ermission"),
        "{said}"
    );
    set_mode(&sessions, 0o700);

    let foreign = sessions.join("s.jsonl");
    std::fs::write(&foreign, "").unwrap();
    for mode in [0o600, 0o666] {
        set_mode(&foreign, mode);
        let said = Role::WriteOnce.play_as(NOBODY, scene);
        assert!(said.contains("belongs to another user"), "{said}");
    }
    assert_eq!(std::fs::read(&foreign).unwrap(), b"");
}

/// As they stand in the README.
const ESCALATIONS: &str = r#"[inputs | fromjson? | .attempts[]?] | map(select(.verdict == "escalate")) | group_by(.model)[] | {model: .[0].model, escalations: length}"#;
const LATENCY: &str = r#"[inputs | fromjson? | .attempts[]?] | group_by(.model)[] | {model: .[0].model, mean_ms: (map(.duration_ms) | add / length)}"#;
const COLD_STARTS: &str = r#"[inputs | fromjson? | .attempts[]?] | map(select(.warm_start == false)) | group_by(.model)[] | {model: .[0].model, cold_starts: length}"#;

#[test]
#[ignore = "needs jq"]
fn readme_jq_lines_count_correctly() {
    require(&["jq"]);
    let fixture = test_log();
    let (local, cloud) = ("ollama/qwen3-coder", "claude-sonnet-4-6");
    fixture
        .log
        .append(&entry(
            "one",
            vec![
                attempt(local, TierKind::Local, Cause::Rejected, 4000, Some(false)),
                attempt(cloud, TierKind::Subagent, Cause::Accepted, 900, None),
            ],
        ))
        .unwrap();
    // A writer that died is no reason to lose the count.
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .open(fixture.log.path(&id("one")))
        .unwrap();
    file.write_all(b"{\"attempts\":[{\"model\":\"to").unwrap();
    for attempts in [
        vec![attempt(
            local,
            TierKind::Local,
            Cause::CannotVerify,
            2000,
            Some(true),
        )],
        vec![attempt(local, TierKind::Local, Cause::Infra, 0, None)],
        vec![],
    ] {
        fixture.log.append(&entry("one", attempts)).unwrap();
    }
    fixture
        .log
        .append(&entry(
            "two",
            vec![attempt(
                cloud,
                TierKind::Subagent,
                Cause::Accepted,
                300,
                None,
            )],
        ))
        .unwrap();

    let logs = [fixture.log.path(&id("one")), fixture.log.path(&id("two"))];
    let jq = |program: &str| -> Vec<Value> {
        let output = Command::new("jq")
            .args(["-cnR", program])
            .args(&logs)
            .output()
            .unwrap();
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect()
    };
    assert_eq!(jq(ESCALATIONS), [json!({"model": local, "escalations": 2})]);
    assert_eq!(
        jq(LATENCY),
        [
            json!({"model": cloud, "mean_ms": 600}),
            json!({"model": local, "mean_ms": 2000})
        ]
    );
    assert_eq!(jq(COLD_STARTS), [json!({"model": local, "cold_starts": 1})]);
}

/// As the requirement has them: nothing in them forgives a line without `attempts`.
const PLAIN: [&str; 3] = [
    r#"[.[].attempts[] | select(.verdict == "escalate")] | group_by(.model) | map({model: .[0].model, n: length})"#,
    "[.[].attempts[]] | group_by(.model) | map({model: .[0].model, n: (map(.duration_ms) | add / length)})",
    "[.[].attempts[] | select(.warm_start == false)] | group_by(.model) | map({model: .[0].model, n: length})",
];

#[test]
#[ignore = "needs jq"]
fn plain_jq_lines_accept_calls_without_attempts() {
    require(&["jq"]);
    let fixture = test_log();
    let mut failed = entry("plain", vec![]);
    failed.final_status = Status::Error;
    fixture.log.append(&failed).unwrap();
    let refused = attempt("small", TierKind::Local, Cause::Rejected, 4000, Some(false));
    fixture.log.append(&entry("plain", vec![refused])).unwrap();
    for program in PLAIN {
        let path = fixture.log.path(&id("plain"));
        let output = Command::new("jq")
            .args(["-cs", program])
            .arg(path)
            .output()
            .unwrap();
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let n = if program.contains("duration") {
            4000
        } else {
            1
        };
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(found, json!([{"model": "small", "n": n}]), "{program}");
    }
}

#[test]
fn recovery_leaves_running_calls_alone() {
    use std::sync::atomic::{AtomicBool, Ordering};

    use supervisor_engine::services::Recorder as _;
    use supervisor_engine::session::recover_open_calls;

    let fixture = test_log();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                assert_eq!(recover_open_calls(&fixture.log), 0);
            }
        });
        for n in 0..2_000 {
            let entry = Entry {
                call: format!("call-{n}"),
                ..entry("many", vec![])
            };
            let open = fixture.log.begin(&entry).unwrap();
            let closed = open.close(&entry);
            done.fetch_or(closed.is_err(), Ordering::Relaxed);
            closed.unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(fixture.log.reader(&id("many")).unwrap().count(), 2_000);
}
