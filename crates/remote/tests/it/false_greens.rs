//! Ends that look like a pass and are none. The script of each suite fails, so a pass can only come from the engine's
//! answer.

use bazel_remote_apis::build::bazel::remote::execution::v2::{ActionResult, OutputFile};
use supervisor_verify::Outcome;
use tonic::Code;

use super::engine::Order;
use super::setup::{Bench, notes};

const FAILS: &str = "exit 1\n";

#[tokio::test(flavor = "multi_thread")]
async fn time_limit_is_no_pass() {
    let bench = Bench::new(FAILS).await;
    bench.engine.order([Order::End(Code::DeadlineExceeded)]);
    let run = bench.run().await;
    assert_eq!(*run.outcome(), Outcome::TimedOut { limit_s: 100 });
}

#[tokio::test(flavor = "multi_thread")]
async fn end_without_status_ok_is_no_pass() {
    for code in [
        Code::Cancelled,
        Code::Aborted,
        Code::Internal,
        Code::Unknown,
    ] {
        let bench = Bench::new(FAILS).await;
        bench.engine.order([Order::End(code), Order::End(code)]);
        let run = bench.run().await;
        assert_eq!(*run.outcome(), Outcome::Failed, "{code:?}");
        let notes = notes(&run);
        assert!(
            notes.contains("ran on this machine, not remotely"),
            "{notes}"
        );
        let asked = bench.engine.state.lock().unwrap().asked.len();
        let tries = if code == Code::Cancelled { 1 } else { 2 };
        assert_eq!(asked, tries, "{code:?}: run again on infrastructure errors");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answer_without_result_is_no_pass() {
    let bench = Bench::new(FAILS).await;
    bench.engine.order([Order::NoResult, Order::NoResult]);
    let run = bench.run().await;
    assert_eq!(*run.outcome(), Outcome::Failed);
    assert!(notes(&run).contains("an end without a result"), "{run:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn exit_code_0_without_report_is_no_pass() {
    let bench = Bench::new(FAILS).await;
    let order = || Order::Result(Box::default());
    bench.engine.order([order(), order()]);
    let run = bench.run().await;
    assert_eq!(*run.outcome(), Outcome::Failed);
    assert!(
        notes(&run).contains("exit code 0 and without a report"),
        "{run:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn report_against_its_exit_code_is_no_pass() {
    let bench = Bench::new("exit 0\n").await;
    let worker = bench.worker("w");
    let run = bench.run().await;
    assert_eq!(*run.outcome(), Outcome::Passed, "{run:?}");
    worker.leave().await;
    let name = String::from("job-1");
    let passed = {
        let state = bench.engine.state.lock().unwrap();
        let finished = state.jobs[&name].state.borrow().response.clone();
        finished.and_then(|response| response.result).unwrap()
    };
    bench.write("check.sh", FAILS);
    // The report of a pass, from a run that did not pass; and a forged report.
    let mismatch = ActionResult {
        exit_code: 1,
        ..passed.clone()
    };
    let forged = ActionResult {
        output_files: vec![OutputFile {
            path: String::from("report.json"),
            contents: b"{\"version\":\"0\"}".to_vec(),
            ..OutputFile::default()
        }],
        ..passed
    };
    bench.engine.order([
        Order::Result(Box::new(mismatch)),
        Order::Result(Box::new(forged)),
    ]);
    let run = bench.run().await;
    assert_eq!(*run.outcome(), Outcome::Failed, "{run:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_source_is_built_anew() {
    let bench = Bench::new("").await;
    let _worker = bench.worker("w");
    bench.write(
        "Cargo.toml",
        "[package]\nname = \"small\"\nversion = \"0.1.0\"\n[lib]\npath = \"lib.rs\"\n",
    );
    let lib = |sum: &str| {
        bench.write(
            "lib.rs",
            &format!("pub fn add(a: i32, b: i32) -> i32 {{ {sum} }}\n#[test] fn adds() {{ assert_eq!(add(2, 3), 5) }}\n"),
        );
    };
    let suite = bench.suite_of("cargo test");
    let environment = bench.environment();
    for (sum, outcome) in [
        ("a + b", Outcome::Passed),
        ("a - b", Outcome::Failed),
        ("b + a", Outcome::Passed),
    ] {
        lib(sum);
        let run = suite.run(&environment, &Default::default()).await;
        assert_eq!(*run.outcome(), outcome, "{run:?}");
        assert!(notes(&run).contains("remote worker `w-1`"), "{run:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn repetitions_are_runs_of_their_own() {
    let mut bench = Bench::new("exit 0\n").await;
    bench.config.hermetic = true;
    let _worker = bench.worker("w");
    let (suite, environment) = (bench.suite(), bench.environment());
    let stop = Default::default();
    let first = suite.run(&environment, &stop).await;
    let cached = suite.run(&environment, &stop).await;
    let again = suite.run(&environment.for_repetition(), &stop).await;
    let is_cached = |run| notes(run).contains("from the engine's cache");
    assert_eq!(
        [is_cached(&first), is_cached(&cached), is_cached(&again)],
        [false, true, false]
    );
    let asked = bench.engine.state.lock().unwrap().asked.clone();
    assert_eq!(
        asked[0], asked[1],
        "equal files and commands are one Action"
    );
    assert_ne!(asked[1], asked[2], "an equal Action would be joined");
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_at_once_are_not_joined() {
    let bench = Bench::new("exit 0\n").await;
    let (suite, environment) = (bench.suite(), bench.environment());
    let stop = Default::default();
    let _worker = bench.worker("w");
    let (one, two) = tokio::join!(
        suite.run(&environment, &stop),
        suite.run(&environment, &stop)
    );
    assert!(one.outcome().is_passed() && two.outcome().is_passed());
    let state = bench.engine.state.lock().unwrap();
    assert_eq!(state.jobs.len(), 2, "each run has a result of its own");
}
