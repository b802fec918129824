//! `supervisor worker`: a worker for BuildGrid, by the Remote Workers API. Each slot is a session of its own that holds
//! one lease at a time.

mod blob_cache;
mod lease;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use devtools::remoteworkers::v1test2::{
    BotSession, BotStatus, CreateBotSessionRequest, Device, Lease, LeaseState,
    UpdateBotSessionRequest, Worker, device, worker,
};
use googleapis_tonic_google_devtools_remoteworkers_v1test2::google::{devtools, rpc};
use supervisor_process::{Launcher, SandboxMode};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tonic::Code;

use crate::connection::{Connection, EngineAddress, limited};
use crate::error::RemoteError;
use blob_cache::BlobCache;
use lease::{LeaseEnd, LeaseRunner};

/// The engine answers an idle worker when there is work, at the latest after this time.
const IDLE_POLL: Duration = Duration::from_secs(30);
/// How often a worker with a lease reports: a cancelled lease is noticed then.
const BUSY_POLL: Duration = Duration::from_secs(2);
/// Limit for the answer to a report, and for the last one.
const REPORT_LIMIT: Duration = Duration::from_secs(10);
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// A worker: which engine it works for, and how.
#[derive(Debug, Clone)]
pub struct WorkerConfig {
    pub engine: EngineAddress,
    /// Properties that Actions may ask for.
    pub platform: Vec<(String, String)>,
    /// Names the worker. The same after a restart: the engine then gives its interrupted work to others at once.
    pub id: String,
    /// Actions at once.
    pub slots: u32,
    /// For inputs, blobs and private caches. Used by one worker at a time.
    pub dir: PathBuf,
    pub sandbox: SandboxMode,
    pub launcher: Launcher,
}

/// Takes and runs Actions until `stop` is cancelled. `on_ready` is called for each slot when the engine knows it.
pub async fn work(
    config: WorkerConfig,
    on_ready: impl Fn(&str) + Send + Sync + 'static,
    stop: CancellationToken,
) -> Result<(), RemoteError> {
    let connection = Connection::open(&config.engine).await?;
    let cache = Arc::new(BlobCache::open(config.dir.join("blobs"))?);
    let on_ready = Arc::new(on_ready);
    let slots = (1..=config.slots.max(1)).map(|slot| {
        let id = format!("{}-{slot}", config.id);
        let runner = LeaseRunner {
            connection: connection.clone(),
            cache: cache.clone(),
            dir: config.dir.join("runs").join(&id),
            caches: config.dir.join("caches"),
            bot: id.clone(),
            sandbox: config.sandbox,
            launcher: config.launcher.clone(),
        };
        let slot = Slot {
            connection: connection.clone(),
            session: new_session(&id, &config.platform),
            runner: Arc::new(runner),
            running: None,
        };
        let (on_ready, stop) = (on_ready.clone(), stop.clone());
        tokio::spawn(slot.work(on_ready, stop))
    });
    let slots: Vec<JoinHandle<()>> = slots.collect();
    for slot in slots {
        slot.await.map_err(std::io::Error::other)?;
    }
    config.launcher.wait_for_all().await;
    Ok(())
}

fn new_session(id: &str, platform: &[(String, String)]) -> BotSession {
    let properties = platform.iter();
    let device = Device {
        handle: id.to_owned(),
        properties: properties
            .map(|(key, value)| device::Property {
                key: key.clone(),
                value: value.clone(),
            })
            .collect(),
    };
    let properties = platform.iter();
    BotSession {
        bot_id: id.to_owned(),
        status: BotStatus::Ok as i32,
        worker: Some(Worker {
            devices: vec![device],
            properties: properties
                .map(|(key, value)| worker::Property {
                    key: key.clone(),
                    value: value.clone(),
                })
                .collect(),
            configs: Vec::new(),
        }),
        ..BotSession::default()
    }
}

/// One session with the engine.
struct Slot {
    connection: Connection,
    /// As the engine sent it last, with our leases.
    session: BotSession,
    runner: Arc<LeaseRunner>,
    running: Option<RunningLease>,
}

/// A lease that is being worked on. Dropping it ends its processes.
struct RunningLease {
    id: String,
    task: JoinHandle<LeaseEnd>,
    stop: CancellationToken,
    /// Set when the task has ended.
    end: Option<LeaseEnd>,
}

impl Drop for RunningLease {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl RunningLease {
    /// Waits until the work has ended; safe to drop and to call again.
    async fn wait(&mut self) {
        if self.end.is_none() {
            let end = (&mut self.task).await;
            self.end = Some(end.unwrap_or_else(|error| LeaseEnd::failed(&error.to_string())));
        }
    }
}

impl Slot {
    async fn work(mut self, on_ready: Arc<impl Fn(&str)>, stop: CancellationToken) {
        let mut pause = Duration::from_millis(100);
        while !stop.is_cancelled() {
            let poll = self.poll_limit(&stop).await;
            if stop.is_cancelled() {
                break;
            }
            let was_new = self.session.name.is_empty();
            let report = self.report(poll);
            let answer = tokio::select! {
                () = stop.cancelled() => break,
                answer = report => answer,
            };
            match answer {
                Ok(session) => {
                    pause = Duration::from_millis(100);
                    self.apply(session);
                    if was_new {
                        on_ready(&self.session.bot_id);
                    }
                }
                Err(status) if is_session_lost(&status, was_new) => {
                    tracing::info!("the engine forgot this worker: {}", status.message());
                    self.running = None;
                    self.session.name.clear();
                    self.session.leases.clear();
                    self.session.version.clear();
                    self.pause(&mut pause, &stop).await;
                }
                // The same session again: a new one would make the engine repeat the work.
                Err(status) => {
                    tracing::info!("the engine does not answer: {}", status.message());
                    self.pause(&mut pause, &stop).await;
                }
            }
        }
        self.leave().await;
    }

    async fn pause(&self, pause: &mut Duration, stop: &CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = sleep(*pause) => {}
        }
        *pause = (*pause * 2).min(MAX_PAUSE);
    }

    /// Waits until there is something to report, and returns how long the engine may take to answer.
    async fn poll_limit(&mut self, stop: &CancellationToken) -> Duration {
        let Some(running) = &mut self.running else {
            return IDLE_POLL;
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = running.wait() => {}
            () = sleep(BUSY_POLL) => {}
        }
        REPORT_LIMIT
    }

    async fn report(&self, limit: Duration) -> Result<BotSession, tonic::Status> {
        let mut session = self.session.clone();
        session.leases = self.leases();
        let mut bots = self.connection.bots();
        let answer = async {
            if session.name.is_empty() {
                let request = CreateBotSessionRequest {
                    parent: self.connection.instance.clone(),
                    bot_session: Some(session),
                };
                bots.create_bot_session(limited(request, limit)).await
            } else {
                let request = UpdateBotSessionRequest {
                    name: session.name.clone(),
                    bot_session: Some(session),
                    update_mask: None,
                };
                bots.update_bot_session(limited(request, limit)).await
            }
        };
        // The engine answers before its own limit; this one is for an engine that is gone.
        match timeout(limit + Duration::from_secs(5), answer).await {
            Ok(answer) => answer.map(tonic::Response::into_inner),
            Err(_) => Err(tonic::Status::unavailable("no answer")),
        }
    }

    fn leases(&self) -> Vec<Lease> {
        let mut leases = self.session.leases.clone();
        for lease in &mut leases {
            let Some(running) = self.running.as_ref().filter(|r| r.id == lease.id) else {
                continue;
            };
            lease.state = LeaseState::Active as i32;
            if let Some(end) = &running.end {
                lease.state = LeaseState::Completed as i32;
                lease.status = Some(rpc::Status {
                    code: end.code as i32,
                    message: end.message.clone(),
                    details: Vec::new(),
                });
                lease.result = end.result.clone();
            }
        }
        leases
    }

    /// Starts what is new and ends what the engine no longer wants.
    fn apply(&mut self, session: BotSession) {
        let is_wanted = |lease: &Lease| {
            lease.state == LeaseState::Pending as i32 || lease.state == LeaseState::Active as i32
        };
        let reported = self.running.as_ref().is_some_and(|r| r.end.is_some());
        if let Some(running) = &self.running {
            let kept = session.leases.iter();
            let is_kept = kept
                .filter(|lease| is_wanted(lease))
                .any(|l| l.id == running.id);
            if reported || !is_kept {
                self.running = None;
            }
        }
        self.session = session;
        self.session.leases.retain(is_wanted);
        let new = self.session.leases.first().cloned();
        if let (None, Some(lease)) = (&self.running, new) {
            let (runner, stop) = (self.runner.clone(), CancellationToken::new());
            let token = stop.clone();
            self.running = Some(RunningLease {
                id: lease.id,
                task: tokio::spawn(async move { runner.run(lease.payload, &token).await }),
                stop,
                end: None,
            });
        }
    }

    /// Says goodbye, so that the engine gives interrupted work to others at once.
    async fn leave(mut self) {
        if self.session.name.is_empty() {
            return;
        }
        if let Some(running) = &mut self.running
            && running.end.is_none()
        {
            running.stop.cancel();
            running.wait().await;
            running.end = Some(LeaseEnd::leaving());
        }
        self.session.status = BotStatus::BotTerminating as i32;
        let _ = timeout(REPORT_LIMIT, self.report(REPORT_LIMIT)).await;
    }
}

/// Whether the engine does not know the session any more. The first answer to a session cannot say so.
fn is_session_lost(status: &tonic::Status, was_new: bool) -> bool {
    !was_new && matches!(status.code(), Code::InvalidArgument | Code::NotFound)
}
