//! One connection, made when it is needed and made anew when it broke. While the database cannot be reached, callers get
//! that answer at once, except that one of them tries again from time to time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::schema;

/// One statement, or making a connection.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long a database that did not answer is left alone.
const PAUSE: Duration = Duration::from_secs(5);

/// How long a connection is kept that nobody uses.
const MAX_IDLE: Duration = Duration::from_secs(60);

#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    #[error("it did not answer {} s ago", PAUSE.as_secs())]
    LeftAlone,
    #[error("no answer within {} s", TIMEOUT.as_secs())]
    TimedOut,
    #[error("{}", with_cause(.0))]
    Postgres(#[from] tokio_postgres::Error),
    #[error("no secure connection can be made: {0}")]
    Tls(#[from] rustls::Error),
    #[error("the outbox cannot be written: {0}")]
    Outbox(#[from] std::io::Error),
}

/// tokio-postgres says "db error" and leaves the rest to the source.
fn with_cause(error: &tokio_postgres::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

impl DatabaseError {
    /// Whether the database itself refused the statement, so that trying again is of no use.
    pub(crate) fn is_refusal(&self) -> bool {
        // Class 57 is a shutdown or a cancel, 53 is out of resources, 40 is a conflict, 08 is the connection.
        let Self::Postgres(error) = self else {
            return false;
        };
        error.code().is_some_and(|code| {
            !["08", "40", "53", "57"]
                .iter()
                .any(|class| code.code().starts_with(class))
        })
    }
}

#[derive(Debug)]
pub(crate) struct Database {
    config: Config,
    client: tokio::sync::Mutex<Option<Arc<Client>>>,
    failed: Mutex<Option<Instant>>,
    used: Mutex<Option<Instant>>,
    is_reported: AtomicBool,
}

impl Database {
    pub(crate) fn new(config: Config) -> Self {
        Self {
            config,
            client: tokio::sync::Mutex::default(),
            failed: Mutex::default(),
            used: Mutex::default(),
            is_reported: AtomicBool::new(false),
        }
    }

    /// Runs one statement, which is one transaction.
    pub(crate) async fn query(
        &self,
        statement: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, DatabaseError> {
        let work = async {
            let client = self.client().await?;
            Ok(client.query(statement, parameters).await?)
        };
        let done = tokio::time::timeout(TIMEOUT, work).await;
        let done = done.unwrap_or(Err(DatabaseError::TimedOut));
        match &done {
            Ok(_) => {
                *self.used.lock() = Some(Instant::now());
                if self.is_reported.swap(false, Ordering::Relaxed) {
                    tracing::info!("the team's database can be reached again");
                }
            }
            Err(DatabaseError::LeftAlone) => {}
            Err(error) if error.is_refusal() => {}
            Err(_) => {
                *self.failed.lock() = Some(Instant::now());
                *self.client.lock().await = None;
            }
        }
        done
    }

    /// Ends a connection that was not used for a while: a database has room for few.
    pub(crate) async fn close_if_idle(&self) {
        if self.used.lock().is_some_and(|at| at.elapsed() >= MAX_IDLE) {
            *self.client.lock().await = None;
        }
    }

    /// Says once that the database cannot be reached, until it can again.
    pub(crate) fn report(&self, error: &DatabaseError) {
        if !self.is_reported.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "the team's database cannot be used: {error}. Work goes on here, and what is logged is sent later; \
                 check `team.database` if this stays"
            );
        }
    }

    async fn client(&self) -> Result<Arc<Client>, DatabaseError> {
        let mut kept = self.client.lock().await;
        if let Some(client) = kept.as_ref().filter(|client| !client.is_closed()) {
            return Ok(Arc::clone(client));
        }
        let is_paused = self.failed.lock().is_some_and(|at| at.elapsed() < PAUSE);
        if is_paused {
            return Err(DatabaseError::LeftAlone);
        }
        let client = Arc::new(connect(&self.config).await?);
        schema::migrate(&client).await?;
        *self.failed.lock() = None;
        *kept = Some(Arc::clone(&client));
        Ok(client)
    }
}

async fn connect(config: &Config) -> Result<Client, DatabaseError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_platform_verifier()?
        .with_no_client_auth();
    let (client, connection) = config.connect(MakeRustlsConnect::new(tls)).await?;
    tokio::spawn(async move {
        // The client notices by itself.
        if let Err(error) = connection.await {
            tracing::debug!("the connection to the team's database ended: {error}");
        }
    });
    Ok(client)
}
