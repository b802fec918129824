//! Runs suites on the workers of an engine, and on this machine where that is not possible.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bazel_remote_apis::build::bazel::remote::execution::v2::ActionResult;
use futures_util::future::{BoxFuture, FutureExt as _};
use parking_lot::Mutex;
use supervisor_process::ChildKind;
use supervisor_verify::{Outcome, RunEnvironment, Suite, SuiteExecutor, TestRun};
use tokio_util::sync::CancellationToken;
use tonic::Code;

use crate::action::{ActionRequest, Finished};
use crate::connection::{Connection, EngineAddress};
use crate::error::{RemoteError, first_line};
use crate::hashes::FileHashes;
use crate::inputs::{Inputs, ProjectPaths, collect};
use crate::suite_run::{
    COMMAND, EXIT_NOT_PASSED, EXIT_PASSED, PROGRAM, REPORT_FILE, SuiteReport, version,
};

/// A report above this size is not read.
const MAX_REPORT_BYTES: u64 = 256 << 20;
/// Time for a worker to fetch and place the files, besides that of the suite.
const PLACING_LIMIT: Duration = Duration::from_secs(120);
/// How long an engine that was not usable is left alone.
const PAUSE: Duration = Duration::from_secs(30);
/// Where workers other than our own look for `supervisor`.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// In mode `auto`, suites shorter than this stay on this machine.
const WORTH_SENDING: Duration = Duration::from_secs(2);

/// When suites are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteMode {
    /// Always.
    On,
    /// If that is expected to be faster.
    Auto,
}

/// An engine and how to use it.
#[derive(Debug, Clone)]
pub struct RemoteConfig {
    pub engine: EngineAddress,
    pub mode: RemoteMode,
    /// Properties that a worker must have.
    pub platform: BTreeMap<String, String>,
    /// Equal files and commands give equal results, so the engine's cache may answer.
    pub hermetic: bool,
    /// Names of variables that the tests need.
    pub env: Vec<String>,
    /// How long a run may wait for a worker.
    pub queue_limit: Duration,
    /// Keeps the digests of files.
    pub hashes_file: Option<PathBuf>,
}

/// Runs suites remotely. One per process, shared by all calls.
#[derive(Debug)]
pub struct RemoteExecutor {
    config: RemoteConfig,
    hashes: Arc<FileHashes>,
    engine: tokio::sync::Mutex<EngineState>,
    known: Mutex<HashMap<(PathBuf, String), Measured>>,
}

#[derive(Debug, Default)]
struct EngineState {
    connection: Option<Connection>,
    /// When it was last found unusable, and why.
    down: Option<(Instant, String)>,
}

/// What is known about one suite.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Measured {
    here: Option<Duration>,
    remote: Option<Duration>,
    /// A worker has built these tests and run them to their end.
    is_fit: bool,
}

impl Measured {
    fn prefers_remote(self) -> bool {
        match (self.here, self.remote) {
            (None, _) => false, // measured first
            (Some(here), None) => here >= WORTH_SENDING,
            (Some(here), Some(remote)) => here >= WORTH_SENDING && remote < here,
        }
    }
}

impl SuiteExecutor for RemoteExecutor {
    fn run<'a>(
        &'a self,
        suite: &'a Suite,
        environment: &'a RunEnvironment,
        stop: &'a CancellationToken,
    ) -> BoxFuture<'a, TestRun> {
        async move {
            let key = (suite.root().to_owned(), suite.command());
            let known = self.known.lock().get(&key).copied().unwrap_or_default();
            if self.config.mode == RemoteMode::Auto && !known.prefers_remote() {
                return self.run_here(key, suite, environment, stop).await;
            }
            let began = Instant::now();
            let tried = self.run_remotely(suite, environment, stop, known.is_fit);
            let error = match tried.await {
                Ok(run) => {
                    let mut all = self.known.lock();
                    let measured = all.entry(key).or_default();
                    measured.remote = Some(began.elapsed());
                    measured.is_fit |= is_verdict(&run);
                    return run;
                }
                Err(error) => error,
            };
            if let RemoteError::Cancelled = error {
                return suite.run_here(environment, stop).await;
            }
            let note = format!("ran on this machine, not remotely: {error}");
            tracing::warn!("`{}` {note}", suite.command());
            let run = self.run_here(key, suite, environment, stop).await;
            run.with_note(note)
        }
        .boxed()
    }
}

impl RemoteExecutor {
    pub fn new(config: RemoteConfig) -> Self {
        let hashes = Arc::new(FileHashes::open(config.hashes_file.clone()));
        Self {
            config,
            hashes,
            engine: tokio::sync::Mutex::default(),
            known: Mutex::default(),
        }
    }

    async fn run_here(
        &self,
        key: (PathBuf, String),
        suite: &Suite,
        environment: &RunEnvironment,
        stop: &CancellationToken,
    ) -> TestRun {
        let began = Instant::now();
        let run = suite.run_here(environment, stop).await;
        self.known.lock().entry(key).or_default().here = Some(began.elapsed());
        run
    }

    async fn run_remotely(
        &self,
        suite: &Suite,
        environment: &RunEnvironment,
        stop: &CancellationToken,
        is_fit: bool,
    ) -> Result<TestRun, RemoteError> {
        let prepare = async {
            let connection = self.connection().await?;
            let inputs = self.inputs(&connection, suite, environment).await?;
            Ok::<_, RemoteError>((connection, inputs))
        };
        let prepared = unless_stopped(prepare, stop).await;
        let is_cacheable = self.config.hermetic && !environment.execution.is_repetition;
        let run = match prepared {
            Err(error) => Err(error),
            Ok((connection, mut inputs)) => {
                let first = self
                    .run_once(
                        &connection,
                        &mut inputs,
                        suite,
                        environment,
                        stop,
                        is_cacheable,
                    )
                    .await;
                match first {
                    Err(error) if error.is_worth_a_retry() => {
                        let again = self
                            .run_once(&connection, &mut inputs, suite, environment, stop, false)
                            .await;
                        again.map(|run| run.with_note(format!("run again, because {error}")))
                    }
                    result => result,
                }
            }
        };
        if let Err(error) = &run
            && error.is_engine_down()
        {
            let mut engine = self.engine.lock().await;
            engine.connection = None;
            engine.down = Some((Instant::now(), error.to_string()));
        }
        let run = run?;
        // A missing tool or a missing package on the worker must not look like a defect of the code. Once the tests
        // have run there, a failed build is one.
        if !is_verdict(&run) && !is_fit && !matches!(run.outcome(), Outcome::TimedOut { .. }) {
            return Err(RemoteError::WorkerUnfit(first_line(&run.sentence())));
        }
        if matches!(run.outcome(), Outcome::CouldNotRun { .. }) {
            return Err(RemoteError::WorkerUnfit(first_line(&run.sentence())));
        }
        Ok(run)
    }

    async fn connection(&self) -> Result<Connection, RemoteError> {
        let mut engine = self.engine.lock().await;
        if let Some((since, why)) = &engine.down
            && since.elapsed() < PAUSE
        {
            return Err(RemoteError::Unreachable {
                address: self.config.engine.execution.clone(),
                why: format!("{why} (asked again {} s after that)", PAUSE.as_secs()),
            });
        }
        if let Some(connection) = &engine.connection {
            return Ok(connection.clone());
        }
        let opened = Connection::open(&self.config.engine).await;
        let opened = opened.and_then(|connection| match connection.can_execute {
            true => Ok(connection),
            false => Err(RemoteError::NoExecution),
        });
        match opened {
            Ok(connection) => {
                engine.down = None;
                engine.connection = Some(connection.clone());
                Ok(connection)
            }
            Err(error) => {
                engine.down = Some((Instant::now(), error.to_string()));
                Err(error)
            }
        }
    }

    async fn inputs(
        &self,
        connection: &Connection,
        suite: &Suite,
        environment: &RunEnvironment,
    ) -> Result<Inputs, RemoteError> {
        let project = ProjectPaths::of(suite, environment);
        let (suite, environment) = (suite.clone(), environment.clone());
        let (hashes, env) = (self.hashes.clone(), self.config.env.clone());
        let function = connection.function;
        tokio::task::spawn_blocking(move || {
            collect(&suite, &environment, &project, &env, function, &hashes)
        })
        .await
        .map_err(std::io::Error::other)?
    }

    async fn run_once(
        &self,
        connection: &Connection,
        inputs: &mut Inputs,
        suite: &Suite,
        environment: &RunEnvironment,
        stop: &CancellationToken,
        is_cacheable: bool,
    ) -> Result<TestRun, RemoteError> {
        let request = ActionRequest {
            arguments: vec![PROGRAM.to_owned(), COMMAND.to_owned()],
            variables: BTreeMap::from([(String::from("PATH"), String::from(PATH))]),
            outputs: vec![REPORT_FILE.to_owned()],
            platform: self.config.platform.clone(),
            input_root: inputs.root.clone(),
            limit: environment.limit + PLACING_LIMIT,
            queue_limit: self.config.queue_limit,
            is_cacheable,
        };
        let action = request.describe(connection, &mut inputs.blobs);
        let sent = unless_stopped(connection.send_missing(&inputs.blobs), stop).await?;
        tracing::debug!("sent {} blobs with {} bytes", sent.blobs, sent.bytes);
        let finished = match connection.execute(&request, action, stop).await {
            Err(RemoteError::NotFinished {
                code: Code::DeadlineExceeded,
                ..
            }) => {
                let note = String::from("the engine ended it");
                return Ok(suite.timed_out(environment.limit).with_note(note));
            }
            finished => finished?,
        };
        let report = read_report(connection, &finished.result).await?;
        if let Some(sandbox) = &report.sandbox {
            environment.sandbox.record.note(ChildKind::Tests, sandbox);
            let project = environment.guard.as_ref().and_then(|g| g.project.as_ref());
            if let Some(project) = project {
                project.record.note(ChildKind::Tests, sandbox);
            }
        }
        let note = note(&finished, &report);
        tracing::info!("`{}` {note}", suite.command());
        Ok(report.run.with_note(note))
    }
}

async fn unless_stopped<T>(
    work: impl Future<Output = Result<T, RemoteError>>,
    stop: &CancellationToken,
) -> Result<T, RemoteError> {
    tokio::select! {
        () = stop.cancelled() => Err(RemoteError::Cancelled),
        done = work => done,
    }
}

/// Whether the tests were built and ran to their end.
fn is_verdict(run: &TestRun) -> bool {
    matches!(run.outcome(), Outcome::Passed | Outcome::Failed)
}

fn note(finished: &Finished, report: &SuiteReport) -> String {
    let metadata = finished.result.execution_metadata.as_ref();
    let worker = metadata.map_or("", |metadata| metadata.worker.as_str());
    let worker = if worker.is_empty() {
        String::from("a remote worker")
    } else {
        format!("the remote worker `{}`", first_line(worker))
    };
    let sandbox = report.sandbox.as_ref();
    let sandbox = sandbox.map_or(String::from("no sandbox"), |sandbox| {
        format!("sandbox: {sandbox}")
    });
    let mut note = format!("ran on {worker} ({sandbox})");
    if !report.at_root {
        note.push_str(", not at the project's own path");
    }
    if finished.is_cached {
        note.push_str("; the result is from the engine's cache");
    }
    note
}

/// Reads the report of a run. Without one, and without the exit code that belongs to it, there is no result.
async fn read_report(
    connection: &Connection,
    result: &ActionResult,
) -> Result<SuiteReport, RemoteError> {
    let exit_code = result.exit_code;
    let file = result.output_files.iter().find(|f| f.path == REPORT_FILE);
    let Some(file) = file.filter(|_| [EXIT_PASSED, EXIT_NOT_PASSED].contains(&exit_code)) else {
        let mut output = result.stderr_raw.clone();
        if let (true, Some(digest)) = (output.is_empty(), &result.stderr_digest) {
            output = connection.read(digest, 1 << 20).await.unwrap_or_default();
        }
        return Err(RemoteError::NoReport {
            exit_code,
            output: first_line(&String::from_utf8_lossy(&output)),
        });
    };
    let bytes = match &file.digest {
        Some(digest) if file.contents.is_empty() => {
            connection.read(digest, MAX_REPORT_BYTES).await?
        }
        _ => file.contents.clone(),
    };
    let report: SuiteReport = serde_json::from_slice(&bytes)
        .map_err(|error| RemoteError::BadReport(error.to_string()))?;
    if report.version != version() {
        return Err(RemoteError::BadReport(format!(
            "it has version {}, and this program has {}",
            first_line(&report.version),
            version()
        )));
    }
    if report.run.outcome().is_passed() != (exit_code == EXIT_PASSED) {
        return Err(RemoteError::Disagreement(exit_code));
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_sends_what_is_faster_there() {
        let seconds = |s: Option<u64>| s.map(Duration::from_secs);
        for (here, remote, expected) in [
            (None, None, false),
            (Some(1), None, false),
            (Some(10), None, true),
            (Some(10), Some(5), true),
            (Some(10), Some(11), false),
            (Some(1), Some(0), false),
        ] {
            let measured = Measured {
                here: seconds(here),
                remote: seconds(remote),
                is_fit: true,
            };
            assert_eq!(measured.prefers_remote(), expected, "{measured:?}");
        }
    }
}
