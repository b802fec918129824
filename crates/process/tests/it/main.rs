//! Starts programs, captures their output in bounded memory, and ends them with everything they started.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says where it failed"
)]
#![allow(clippy::disallowed_methods, reason = "tests start programs themselves")]

#[cfg(target_os = "linux")]
mod guard;
#[cfg(target_os = "linux")]
mod matrix;
#[cfg(target_os = "linux")]
mod sandbox;
mod trees;

use std::ffi::OsString;
use std::time::Duration;

use supervisor_process::{
    CaptureLimits, CapturedOutput, CommandSpec, End, StartError, Stdin, lines,
};
use supervisor_test_support::process::{LONG, launcher, sh, write_program};
use tokio_util::sync::CancellationToken;

supervisor_test_support::before_tests!(trees::act_in_role);

async fn run(spec: CommandSpec) -> supervisor_process::FinishedProcess {
    stoppable(spec, &CancellationToken::new()).await
}

async fn stoppable(
    spec: CommandSpec,
    stop: &CancellationToken,
) -> supervisor_process::FinishedProcess {
    tokio::time::timeout(LONG * 6, launcher().run(spec, stop))
        .await
        .expect("the run hangs")
}

fn text(captured: &CapturedOutput) -> String {
    captured.text().into_owned()
}

#[tokio::test]
async fn exit_codes_and_signals_are_told_apart() {
    for code in [0, 1, 3, 127, 255] {
        assert_eq!(
            run(sh(&format!("exit {code}"))).await.end,
            End::Exited(code)
        );
    }
    for signal in [6, 9, 15] {
        assert_eq!(
            run(sh(&format!("kill -{signal} $$"))).await.end,
            End::Signalled(signal)
        );
    }
}

#[tokio::test]
async fn streams_are_separate_and_complete() {
    let finished = run(sh("echo out; echo err >&2; printf last")).await;
    assert_eq!(finished.end, End::Exited(0));
    assert_eq!(text(&finished.stdout), "out\nlast");
    assert_eq!(text(&finished.stderr), "err\n");
    assert_eq!((finished.leaked, finished.survivors), (0, 0));
}

#[tokio::test]
async fn start_failure_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let plain = dir.path().join("plain");
    std::fs::write(&plain, "not a program").unwrap();
    let script = dir.path().join("script");
    write_program(&script, "#!/no/such/interpreter\n");
    let start = async |argv: &[&str], cwd: &std::path::Path| {
        let mut spec = CommandSpec::new(argv.iter().copied(), cwd);
        spec.env = sh("").env;
        match run(spec).await.end {
            End::CouldNotStart(why) => why,
            other => panic!("{argv:?} in {}: {other:?}", cwd.display()),
        }
    };
    assert_eq!(
        start(&["no-such-program-here"], dir.path()).await,
        StartError::NotFound("no-such-program-here".into())
    );
    assert!(matches!(
        start(&["./gone"], dir.path()).await,
        StartError::NotFound(_)
    ));
    assert!(matches!(
        start(&["./plain"], dir.path()).await,
        StartError::NotExecutable(_)
    ));
    assert!(matches!(
        start(&["sh"], &dir.path().join("gone")).await,
        StartError::NoDirectory(_)
    ));
    assert!(matches!(
        start(&["sh"], &plain).await,
        StartError::NoDirectory(_)
    ));
    assert!(matches!(
        start(&[], dir.path()).await,
        StartError::Other { .. }
    ));
    assert!(matches!(
        start(&["sh", "a\0b"], dir.path()).await,
        StartError::Other { .. }
    ));
    let why = start(&["./script"], dir.path()).await.to_string();
    assert!(why.contains("interpreter"), "{why}");
}

#[tokio::test]
async fn child_gets_only_the_given_environment() {
    let mut spec = sh("env");
    spec.env.insert("GIVEN".into(), "a b\nc".into());
    let seen = text(&run(spec).await.stdout);
    assert!(seen.contains("GIVEN=a b\nc\n"), "{seen}");
    let mut names: Vec<_> = seen
        .lines()
        .filter_map(|l| l.split_once('='))
        .map(|(name, _)| name)
        .collect();
    names.sort_unstable();
    // `sh` itself adds PWD, and some shells SHLVL and `_`.
    names.retain(|n| !["PWD", "SHLVL", "_", "OLDPWD"].contains(n));
    assert_eq!(names, ["GIVEN", "PATH", "SUPERVISOR_TREE"]);
}

#[tokio::test]
async fn large_environment_and_arguments_arrive() {
    let mut spec = sh("echo ${#BIG3} ${#1} $#");
    for i in 0..8 {
        spec.env
            .insert(format!("BIG{i}").into(), "e".repeat(100_000).into());
    }
    spec.argv.push("name".into());
    spec.argv
        .extend((0..6).map(|_| OsString::from("a".repeat(100_000))));
    let finished = run(spec).await;
    assert_eq!(
        (finished.end, text(&finished.stdout)),
        (End::Exited(0), "100000 100000 6\n".into())
    );

    let mut too_large = sh("true");
    too_large
        .env
        .insert("HUGE".into(), "e".repeat(200_000).into());
    assert!(matches!(
        run(too_large).await.end,
        End::CouldNotStart(StartError::Other { .. })
    ));
}

#[tokio::test]
async fn input_is_written_and_closed() {
    let mut spec = sh("cat; echo end");
    let input = "x".repeat(300_000);
    spec.stdin = Stdin::Bytes(input.clone().into_bytes());
    spec.capture = CaptureLimits {
        head: 1_000_000,
        tail: 0,
    };
    assert_eq!(text(&run(spec).await.stdout), format!("{input}end\n"));
    assert_eq!(
        text(&run(sh("cat; echo end")).await.stdout,),
        "end\n",
        "without input it is null"
    );
}

#[tokio::test]
async fn unread_input_does_not_block() {
    let mut spec = sh("exit 4");
    spec.stdin = Stdin::Bytes(vec![b'x'; 10_000_000]);
    assert_eq!(run(spec).await.end, End::Exited(4));
}

#[tokio::test]
async fn child_gets_three_descriptors_only() {
    // `ls` has the directory open while it looks; that one names itself.
    for stdin in [Stdin::Null, Stdin::Bytes(b"x".to_vec())] {
        let mut spec = sh("exec ls -l /proc/self/fd");
        spec.stdin = stdin;
        let seen = text(&run(spec).await.stdout);
        let open: Vec<_> = seen.lines().filter_map(|l| l.split_once(" -> ")).collect();
        let strange: Vec<_> = open
            .iter()
            .filter(|(number, target)| {
                !["0", "1", "2"].contains(&number.rsplit(' ').next().unwrap())
                    && !target.starts_with("/proc/")
            })
            .collect();
        assert!(strange.is_empty() && open.len() == 4, "{seen}");
        assert!(
            !seen.contains("socket:"),
            "the control channel must stay with the shim: {seen}"
        );
    }
}

#[tokio::test]
async fn child_starts_with_default_signals() {
    let seen = text(
        &run(sh("grep -E '^Sig(Blk|Ign)' /proc/self/status"))
            .await
            .stdout,
    );
    for line in seen.lines() {
        let mask = u64::from_str_radix(line.split_whitespace().last().unwrap(), 16).unwrap();
        // The first 31; those above are the business of whoever started the tests.
        assert_eq!(
            mask & 0x7fff_ffff,
            0,
            "blocked or ignored from the start: {seen}"
        );
    }
    assert_eq!(seen.lines().count(), 2);
}

#[tokio::test]
async fn timeout_keeps_output_so_far() {
    let mut spec = sh("echo begun; sleep 600");
    spec.limit = Duration::from_millis(300);
    let finished = run(spec).await;
    assert_eq!(
        (finished.end, text(&finished.stdout)),
        (End::TimedOut, "begun\n".into())
    );
}

#[tokio::test]
async fn cooperative_program_ends_before_grace_period() {
    let (sink, mut seen) = lines();
    // `exec`, because a shell that is just starting a program may swallow the interrupt.
    let mut spec = sh("echo begun; exec sleep 600");
    spec.grace = LONG * 4;
    spec.on_line = Some(sink);
    let stop = CancellationToken::new();
    let (finished, ()) = tokio::join!(stoppable(spec, &stop), async {
        assert_eq!(seen.next().await.unwrap(), b"begun");
        stop.cancel();
    });
    assert_eq!(finished.end, End::Cancelled);
    assert!(finished.took < LONG);
}

#[tokio::test]
async fn interrupt_comes_before_kill() {
    let (sink, mut seen) = lines();
    let mut spec = sh("trap 'echo tidied; exit 0' INT; echo begun; while :; do sleep 0.05; done");
    spec.grace = LONG;
    spec.on_line = Some(sink);
    let stop = CancellationToken::new();
    let (finished, ()) = tokio::join!(stoppable(spec, &stop), async {
        assert_eq!(seen.next().await.unwrap(), b"begun");
        stop.cancel();
    });
    assert_eq!(
        (finished.end, text(&finished.stdout)),
        (End::Cancelled, "begun\ntidied\n".into())
    );
}

#[tokio::test]
async fn ignored_interrupt_is_followed_by_terminate_and_kill() {
    for (trap, last_words) in [
        (
            "trap '' INT; trap 'echo terminated; exit 0' TERM",
            "terminated\n",
        ),
        ("trap '' INT TERM", ""),
    ] {
        let (sink, mut seen) = lines();
        let mut spec = sh(&format!("{trap}; echo begun; while :; do sleep 0.05; done"));
        spec.grace = Duration::from_secs(if last_words.is_empty() { 1 } else { 20 });
        spec.on_line = Some(sink);
        let stop = CancellationToken::new();
        let (finished, ()) = tokio::join!(stoppable(spec, &stop), async {
            assert_eq!(seen.next().await.unwrap(), b"begun");
            stop.cancel();
        });
        assert_eq!(
            (finished.end, text(&finished.stdout)),
            (End::Cancelled, format!("begun\n{last_words}"))
        );
    }
}

#[tokio::test]
async fn finished_program_is_not_cancelled() {
    let stop = CancellationToken::new();
    let finished = stoppable(sh("exit 7"), &stop).await;
    stop.cancel();
    assert_eq!(finished.end, End::Exited(7));
    assert_eq!(
        stoppable(sh("sleep 600"), &stop).await.end,
        End::Cancelled,
        "stopped before it began"
    );
}

#[tokio::test]
async fn leaked_processes_are_counted() {
    let finished = run(sh("sleep 600 & sleep 600 & exit 5")).await;
    assert_eq!(
        (finished.end, finished.leaked, finished.survivors),
        (End::Exited(5), 2, 0)
    );
}

#[test]
fn output_flood_uses_bounded_memory() {
    // In a process of its own, so that only this flood is measured.
    let dir = tempfile::tempdir().unwrap();
    let flooded = trees::role_command("Flooded", dir.path()).output().unwrap();
    assert!(
        flooded.status.success(),
        "{}",
        String::from_utf8_lossy(&flooded.stderr)
    );
}

fn act_as_flooded() {
    const FLOOD: u64 = 200_000_000;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(run(sh("exit 0")));
    let before = resident();
    let mut spec = sh(&format!(
        "echo first; yes 0123456789abcde | head -c {FLOOD}; echo; echo last"
    ));
    spec.limit = LONG * 5;
    let finished = runtime.block_on(run(spec));
    let grown = resident().saturating_sub(before);
    assert_eq!(
        (finished.end, finished.stdout.total()),
        (End::Exited(0), FLOOD + 12)
    );
    let kept = text(&finished.stdout);
    assert!(kept.starts_with("first\n") && kept.ends_with("last\n") && finished.stdout.is_cut());
    assert!(before > 0 && grown < 16_000_000, "grew by {grown} bytes");
}

/// Resident bytes of this process.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"));
    line.and_then(|l| l.trim().trim_end_matches(" kB").parse::<u64>().ok())
        .unwrap_or(0)
        * 1024
}

#[tokio::test]
async fn lines_arrive_while_program_runs() {
    let (sink, mut seen) = lines();
    // The program goes on only when its first line has been acted upon.
    let dir = tempfile::tempdir().unwrap();
    let flag = dir.path().join("go");
    let mut spec = sh(&format!(
        "echo one; while [ ! -e {} ]; do sleep 0.02; done; printf two",
        flag.display()
    ));
    spec.on_line = Some(sink);
    let (finished, rest) = tokio::join!(run(spec), async {
        let first = seen.next().await;
        std::fs::write(&flag, "").unwrap();
        (first, seen.next().await, seen.next().await)
    });
    assert_eq!(finished.end, End::Exited(0));
    assert_eq!(rest, (Some(b"one".to_vec()), Some(b"two".to_vec()), None));
}

#[tokio::test]
async fn concurrent_runs_do_not_mix() {
    let launcher = launcher();
    let runs = (0..24).map(|i| {
        let launcher = launcher.clone();
        tokio::spawn(async move {
            (
                i,
                launcher
                    .run(
                        sh(&format!("echo {i}; exit {i}")),
                        &CancellationToken::new(),
                    )
                    .await,
            )
        })
    });
    for run in runs.collect::<Vec<_>>() {
        let (i, finished) = run.await.unwrap();
        assert_eq!(
            (finished.end, text(&finished.stdout)),
            (End::Exited(i), format!("{i}\n"))
        );
    }
}
