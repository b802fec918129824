//! What a team shares in Postgres: logged calls, and a budget for each day. The session log on this machine stays the
//! source of truth. Nothing waits for the database but a reservation, and that only for a moment: when the database
//! cannot be reached, work goes on here, and what was logged is sent later.

mod budget;
mod config;
mod database;
mod figures;
mod outbox;
mod schema;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use supervisor_engine::session::SessionLog;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use budget::Settlements;
pub use budget::TeamBudget;
pub use config::{ConfigError, TeamConfig};
use database::Database;
pub use database::DatabaseError;
pub use figures::{ModelFigures, TeamFigures, Today};
use outbox::Outbox;

/// How often what other processes of this machine logged is looked for.
const PERIOD: Duration = Duration::from_secs(30);
/// How long the end of the program waits for what is not sent yet.
const FINISH_TIMEOUT: Duration = Duration::from_secs(3);

/// The connection of this process to what the team shares.
#[derive(Debug)]
pub struct SharedState {
    config: TeamConfig,
    database: Arc<Database>,
    settlements: Settlements,
    outbox: tokio::sync::Mutex<Outbox>,
    wake: Notify,
}

/// Sends in the background until it is ended.
#[derive(Debug)]
pub struct Sender {
    stop: CancellationToken,
    task: JoinHandle<()>,
    state: Arc<SharedState>,
}

impl SharedState {
    /// Connects to nothing yet. `folder` keeps how far the log was sent.
    pub fn new(config: TeamConfig, log: SessionLog, folder: PathBuf) -> Arc<Self> {
        let database = Arc::new(Database::new(config.postgres.clone()));
        let outbox = Outbox::new(log, folder, &config);
        Arc::new(Self {
            config,
            database,
            settlements: Settlements::default(),
            outbox: tokio::sync::Mutex::new(outbox),
            wake: Notify::new(),
        })
    }

    /// Sends new entries and settlements in the background.
    pub fn start(self: &Arc<Self>) -> Sender {
        let (state, stop) = (Arc::clone(self), CancellationToken::new());
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            while !stopped.is_cancelled() {
                if let Err(error) = state.send().await {
                    state.database.report(&error);
                }
                state.database.close_if_idle().await;
                tokio::select! {
                    () = stopped.cancelled() => {}
                    () = state.wake.notified() => {}
                    () = tokio::time::sleep(PERIOD) => {}
                }
            }
        });
        Sender {
            stop,
            task,
            state: Arc::clone(self),
        }
    }

    /// Makes the connection, and the tables where they are missing.
    pub async fn connect(&self) -> Result<(), DatabaseError> {
        self.database.query("select 1", &[]).await.map(drop)
    }

    /// Says that something was logged.
    pub fn wake(&self) {
        self.wake.notify_one();
    }

    /// Sends everything that is not sent yet; returns the number of entries that were new to the database.
    pub async fn send(&self) -> Result<u64, DatabaseError> {
        self.send_settlements().await?;
        self.outbox.lock().await.send(&self.database).await
    }
}

impl Sender {
    /// Sends what is left, for three seconds at most.
    pub async fn finish(&self) {
        self.stop.cancel();
        self.task.abort();
        let sent = tokio::time::timeout(FINISH_TIMEOUT, self.state.send()).await;
        if !matches!(sent, Ok(Ok(_))) {
            tracing::debug!("what was logged last goes to the team's database next time");
        }
    }
}

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
