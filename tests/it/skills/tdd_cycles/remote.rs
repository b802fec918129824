//! The cycles of Python and Rust with every test run on a BuildGrid server with two workers, and a worker that is killed.
//! `tests/remote/run` starts the server and these tests.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::thread;

use super::{PYTHON, RUST};
use crate::support::mcp_session::program;
use crate::support::scenario::Scenario;
use supervisor_test_support::programs::require;
use tempfile::TempDir;

/// The address of the server.
fn engine() -> String {
    std::env::var("SUPERVISOR_TEST_ENGINE").expect("`tests/remote/run` starts a server and sets it")
}

/// `supervisor worker`, killed at the end.
struct Worker {
    process: Child,
    dir: TempDir,
    id: &'static str,
}

impl Worker {
    fn start(id: &'static str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let process = Self::spawn(id, &dir);
        Self { process, dir, id }
    }

    fn spawn(id: &str, dir: &TempDir) -> Child {
        let mut command = Command::new(program());
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if name.starts_with("SUPERVISOR_")
                || (name.starts_with("CARGO_") && name != "CARGO_HOME")
            {
                command.env_remove(name);
            }
        }
        command
            .args(["worker", "--connect", &engine(), "--id", id, "--dir"])
            .arg(dir.path())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// Without a chance to say goodbye; then the same worker again.
    fn kill_and_restart(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        self.process = Self::spawn(self.id, &self.dir);
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn on_engine(scenario: Scenario) -> Scenario {
    scenario
        .env("SUPERVISOR_REMOTE__MODE", "on")
        .env("SUPERVISOR_REMOTE__EXECUTION", &engine())
        .env("SUPERVISOR_LOG", "warn,supervisor_remote=info")
}

#[test]
#[ignore = "needs buildgrid"]
fn cycles_run_on_remote_workers() {
    require(PYTHON.needs);
    let _workers = [Worker::start("one"), Worker::start("two")];
    for cycle in [&PYTHON, &RUST] {
        let mut scenario = on_engine(Scenario::chain(&["small", "large"], cycle.files));
        cycle.walk_with(&mut scenario);
        let told = scenario.end_session().finish().stderr;
        assert!(!told.contains("ran on this machine"), "{told}");
        let runs = told.matches("ran on the remote worker").count();
        assert!(runs >= 4, "{runs} remote runs:\n{told}");
        assert!(told.contains("sandbox: namespaces"), "{told}");
    }
}

#[test]
#[ignore = "needs buildgrid"]
fn killed_worker_loses_no_run() {
    const RUNS: usize = 6;
    require(PYTHON.needs);
    let (mut first, _second) = (Worker::start("first"), Worker::start("second"));
    let test = |name: &str| format!("import time\n\n\ndef test_{name}():\n    time.sleep(2)\n");
    let scenarios: Vec<Scenario> = (0..RUNS)
        .map(|run| {
            let text = test(&format!("run_{run}"));
            on_engine(Scenario::chain(
                &["small"],
                &[("test_slow.py", text.as_str())],
            ))
        })
        .collect();
    let started: Vec<Child> = scenarios
        .iter()
        .map(|scenario| {
            let mut verify = scenario.command();
            verify.args(["verify", "--json", "--test-cmd", "pytest", "--project"]);
            verify.arg(scenario.root()).spawn().unwrap()
        })
        .collect();
    let in_work = first.dir.path().join("runs/first-1/input/project");
    while !in_work.is_dir() {
        thread::yield_now();
    }
    first.kill_and_restart();
    for mut run in started {
        let mut text = String::new();
        run.stdout
            .take()
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        assert!(run.wait().unwrap().success(), "{text}");
        assert!(text.contains("ran on the remote worker"), "{text}");
        assert!(!text.contains("ran on this machine"), "{text}");
    }
}
