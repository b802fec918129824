//! A project, an engine and workers.

use std::sync::Arc;
use std::time::Duration;

use supervisor_process::{Launcher, SandboxMode, environment};
use supervisor_remote::{
    EngineAddress, RemoteConfig, RemoteError, RemoteExecutor, RemoteMode, WorkerConfig, work,
};
use supervisor_verify::{DetectRequest, Execution, RunEnvironment, Suite, TestRun, TestSandbox};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::engine::FakeEngine;

/// A project whose suite is one shell script.
pub(super) struct Bench {
    pub(super) project: TempDir,
    pub(super) engine: FakeEngine,
    pub(super) address: String,
    pub(super) config: RemoteConfig,
}

/// A worker that ends with this value.
pub(super) struct TestWorker {
    _dir: TempDir,
    task: JoinHandle<Result<(), RemoteError>>,
    stop: CancellationToken,
}

impl TestWorker {
    /// Lets it say goodbye.
    pub(super) async fn leave(mut self) {
        self.stop.cancel();
        (&mut self.task).await.unwrap().unwrap();
    }
}

impl Drop for TestWorker {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Bench {
    pub(super) async fn new(script: &str) -> Self {
        let engine = FakeEngine::new();
        let address = engine.serve().await;
        let bench = Self {
            project: tempfile::tempdir().unwrap(),
            engine,
            config: config(&address),
            address,
        };
        bench.write("check.sh", script);
        bench
    }

    pub(super) fn write(&self, path: &str, text: &str) {
        let path = self.project.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(super) fn suite(&self) -> Suite {
        self.suite_of("sh check.sh")
    }

    pub(super) fn suite_of(&self, command: &str) -> Suite {
        let root = self.project.path().canonicalize().unwrap();
        let request = DetectRequest {
            root: &root,
            near: None,
            test_cmd: Some(command),
            test_report: None,
            path: None,
        };
        request.detect().unwrap()
    }

    pub(super) fn environment(&self) -> RunEnvironment {
        let executor = Arc::new(RemoteExecutor::new(self.config.clone()));
        RunEnvironment {
            launcher: Launcher::this_program(),
            env: environment::tests(std::env::vars_os(), &[], &[]),
            limit: Duration::from_secs(100),
            guard: None,
            sandbox: TestSandbox::default(),
            execution: Execution::with(executor),
        }
    }

    pub(super) async fn run(&self) -> TestRun {
        self.suite()
            .run(&self.environment(), &CancellationToken::new())
            .await
    }

    pub(super) fn worker(&self, id: &str) -> TestWorker {
        let dir = tempfile::tempdir().unwrap();
        let config = WorkerConfig {
            engine: engine_at(&self.address),
            platform: Vec::new(),
            id: id.to_owned(),
            slots: 1,
            dir: dir.path().to_owned(),
            sandbox: SandboxMode::Auto,
            launcher: Launcher::this_program(),
        };
        let stop = CancellationToken::new();
        TestWorker {
            task: tokio::spawn(work(config, |_| {}, stop.clone())),
            stop,
            _dir: dir,
        }
    }
}

fn engine_at(address: &str) -> EngineAddress {
    EngineAddress {
        execution: address.to_owned(),
        cas: None,
        instance: String::new(),
        token: None,
    }
}

fn config(address: &str) -> RemoteConfig {
    RemoteConfig {
        engine: engine_at(address),
        mode: RemoteMode::On,
        platform: Default::default(),
        hermetic: false,
        env: Vec::new(),
        queue_limit: Duration::from_secs(60),
        hashes_file: None,
    }
}

/// The remarks of a run, as one text.
pub(super) fn notes(run: &TestRun) -> String {
    run.notes().join("\n")
}
