//! Engines and workers that fail. Each call still has a right result.

use std::time::Duration;

use supervisor_verify::Outcome;
use tokio_util::sync::CancellationToken;
use tonic::Code;

use super::engine::Order;
use super::setup::{Bench, notes};

const PASSES_WITH_FILE: &str = "test \"$(cat value.txt)\" = good\n";

#[tokio::test(flavor = "multi_thread")]
async fn suite_runs_on_a_worker_and_says_so() {
    let bench = Bench::new(PASSES_WITH_FILE).await;
    let _worker = bench.worker("w");
    bench.write("value.txt", "good");
    let run = bench.run().await;
    assert_eq!(*run.outcome(), Outcome::Passed, "{run:?}");
    assert!(
        notes(&run).contains("ran on the remote worker `w-1` (sandbox:"),
        "{run:?}"
    );
    bench.write("value.txt", "bad");
    let run = bench.run().await;
    assert_eq!(*run.outcome(), Outcome::Failed, "{run:?}");
    assert!(notes(&run).contains("ran on the remote worker"), "{run:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn project_is_at_its_own_path() {
    let bench = Bench::new("").await;
    let root = bench.project.path().canonicalize().unwrap();
    let script = format!(
        "test \"$PWD\" = {0} && test -f {0}/value.txt && touch made\n",
        root.display()
    );
    bench.write("check.sh", &script);
    bench.write("value.txt", "good");
    let _worker = bench.worker("w");
    let run = bench.run().await;
    assert_eq!(*run.outcome(), Outcome::Passed, "{run:?}");
    assert!(!notes(&run).contains("not at the project's own path"));
    assert!(
        !root.join("made").exists(),
        "the user's project is not written"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_blobs_are_sent_again() {
    let bench = Bench::new(PASSES_WITH_FILE).await;
    bench.write("value.txt", "good");
    // Larger than a batch of this engine.
    bench.write("large.bin", &"x".repeat(300_000));
    let _worker = bench.worker("w");
    bench.engine.order([Order::LoseBlobs]);
    let run = bench.run().await;
    assert_eq!(*run.outcome(), Outcome::Passed, "{run:?}");
    assert!(notes(&run).contains("run again, because"), "{run:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_worker_is_replaced_by_another() {
    let bench = Bench::new("sleep 2\n").await;
    let first = bench.worker("first");
    let (suite, environment) = (bench.suite(), bench.environment());
    let stop = CancellationToken::new();
    let run = suite.run(&environment, &stop);
    let kill = async {
        let has_bot = |bot: &'static str| {
            move |state: &super::engine::State| {
                let mut jobs = state.jobs.values();
                jobs.any(|job| job.bot.as_deref() == Some(bot))
            }
        };
        bench.engine.until(has_bot("first-1")).await;
        bench.engine.declare_dead("first-1");
        drop(first);
        let second = bench.worker("second");
        bench.engine.until(has_bot("second-1")).await;
        second
    };
    let (run, _second) = tokio::join!(run, kill);
    assert_eq!(*run.outcome(), Outcome::Passed, "{run:?}");
    assert!(notes(&run).contains("remote worker `second-1`"), "{run:?}");
    let state = bench.engine.state.lock().unwrap();
    assert_eq!(
        state.jobs.len(),
        1,
        "the same Action, given to another worker"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_call_cancels_the_action() {
    let bench = Bench::new("sleep 60\n").await;
    let _worker = bench.worker("w");
    let (suite, environment) = (bench.suite(), bench.environment());
    let stop = CancellationToken::new();
    let run = suite.run(&environment, &stop);
    let cancel = async {
        bench
            .engine
            .until(|state| state.jobs.values().any(|job| job.bot.is_some()))
            .await;
        stop.cancel();
    };
    let (run, ()) = tokio::join!(run, cancel);
    assert_eq!(*run.outcome(), Outcome::Cancelled);
    bench
        .engine
        .until(|state| !state.cancelled.is_empty())
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn full_queue_and_quota_leave_runs_here() {
    let mut bench = Bench::new("exit 0\n").await;
    bench.config.queue_limit = Duration::from_millis(50);
    let run = bench.run().await;
    assert_eq!(*run.outcome(), Outcome::Passed);
    assert!(notes(&run).contains("no worker took the run"), "{run:?}");

    let bench = Bench::new("exit 0\n").await;
    bench.engine.order([Order::Refuse(Code::ResourceExhausted)]);
    let (suite, environment) = (bench.suite(), bench.environment());
    for _ in 0..2 {
        let run = suite.run(&environment, &Default::default()).await;
        assert_eq!(*run.outcome(), Outcome::Passed);
        assert!(notes(&run).contains("RESOURCE_EXHAUSTED"), "{run:?}");
    }
    let asked = bench.engine.state.lock().unwrap().asked.len();
    assert_eq!(
        asked, 1,
        "an engine without quota is left alone for a while"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_digest_function_leaves_runs_here() {
    let bench = Bench::new("exit 0\n").await;
    bench.engine.state.lock().unwrap().digest_functions = vec![3];
    let run = bench.run().await;
    assert_eq!(*run.outcome(), Outcome::Passed);
    assert!(
        notes(&run).contains("neither SHA-256 nor BLAKE3"),
        "{run:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn blake3_serves_as_well() {
    let bench = Bench::new("exit 0\n").await;
    bench.engine.state.lock().unwrap().digest_functions = vec![9];
    bench.write("large.bin", &"x".repeat(300_000));
    let _worker = bench.worker("w");
    let run = bench.run().await;
    assert_eq!(*run.outcome(), Outcome::Passed);
    assert!(notes(&run).contains("ran on the remote worker"), "{run:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn engine_that_is_gone_leaves_runs_here() {
    let mut bench = Bench::new("exit 0\n").await;
    bench.config.engine.execution = String::from("grpc://127.0.0.1:1");
    let run = bench.run().await;
    assert_eq!(*run.outcome(), Outcome::Passed);
    assert!(notes(&run).contains("cannot be reached"), "{run:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_tool_on_the_worker_is_no_test_failure() {
    let bench = Bench::new("exit 0\n").await;
    let _worker = bench.worker("w");
    // The worker's PATH does not have it; this machine's has.
    let bin = tempfile::tempdir().unwrap();
    let tool = bin.path().join("only-here");
    std::fs::write(&tool, "#!/bin/sh\nexit 0\n").unwrap();
    std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut environment = bench.environment();
    let path = format!("{}:/usr/bin:/bin", bin.path().display());
    environment.env.insert("PATH".into(), path.into());
    let suite = bench.suite_of("only-here");
    let run = suite.run(&environment, &Default::default()).await;
    assert_eq!(*run.outcome(), Outcome::Passed, "{run:?}");
    assert!(
        notes(&run).contains("the worker cannot run these tests"),
        "{run:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_set_for_a_run_reach_the_worker() {
    let bench = Bench::new("test \"$MODE\" = production\n").await;
    let _worker = bench.worker("w");
    let mut environment = bench.environment();
    environment.env.insert("MODE".into(), "production".into());
    let run = bench.suite().run(&environment, &Default::default()).await;
    assert_eq!(*run.outcome(), Outcome::Passed, "{run:?}");
    assert!(notes(&run).contains("ran on the remote worker"), "{run:?}");
}
