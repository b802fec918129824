//! How is a model asked, and is it there at all?
//! A backend answers one question, text in and one JSON object out, until told to stop. Knows HTTP, agent programs and
//! what they say about themselves. Does not know what a good answer is: retries, escalation and judgement are the engine's.

mod ask;
pub mod breaker;
mod claude_cli;
pub mod cost;
pub mod digest;
pub mod discover;
mod env;
mod error;
mod extract;
#[doc(hidden)]
pub mod fuzz;
mod http;
mod ingest;
pub mod installed;
mod kind;
pub mod loaded;
mod openai;
pub mod probe;
pub mod replay;
mod said;
pub mod walk;
pub mod warm;
pub mod world;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use supervisor_process::Launcher;
use supervisor_settings::{BackendKind, Tier};

pub use ask::{Ask, AskStep, Edits, Power, Reply, Shell, Usage};
pub use env::Env;
pub use error::{AskError, Failure, FailureBlame, FailureCause};
pub use extract::object;
pub use http::Unreachable;
pub use ingest::post_to_service;
pub use kind::{BackendFacts, BackendPlace};

/// Every kind of backend. A new one is a file with its facts, its `mod` and its line here; what its table in
/// `models.toml` may hold is its entry in `routing/kinds.rs`.
static KINDS: &[(BackendKind, &dyn BackendFacts)] = &[
    (BackendKind::Openai, &openai::OpenaiKind),
    (BackendKind::ClaudeCli, &claude_cli::ClaudeCliKind),
    (BackendKind::Replay, &replay::ReplayKind),
];

/// What is known about a kind of backend.
pub fn facts_of(kind: BackendKind) -> &'static dyn BackendFacts {
    KINDS
        .iter()
        .find(|(known, _)| *known == kind)
        .map(|(_, facts)| *facts)
        .expect("a test finds each kind in the table")
}

/// What came of one ask. Boxed, because a failure also says what was spent.
pub type AskResult = Result<Reply, Box<Failure>>;

/// One way to ask models.
pub trait Backend: Send + Sync {
    /// How edits come back, which decides what the brief asks for.
    fn edits(&self) -> Edits;

    /// Asks once. Ends within `ask.limit`, or as soon as `stop` is cancelled; nothing it started is left then.
    /// `progress` is called from the same task, between waits, and must not block.
    fn ask<'a>(
        &'a self,
        ask: &'a Ask,
        tier: &'a Tier,
        stop: &'a CancellationToken,
        progress: &'a (dyn Fn(AskStep) + Send + Sync),
    ) -> BoxFuture<'a, AskResult>;
}

/// What all backends of one server share.
#[derive(Clone, Debug)]
pub struct SharedResources {
    pub launcher: Launcher,
    /// Where keys are looked up and agents' environments are chosen from.
    pub env: Env,
    /// One permit for each agent program that may run at once.
    pub workers: Arc<Semaphore>,
}

impl SharedResources {
    pub fn new(launcher: Launcher, env: Env, max_workers: u32) -> Self {
        Self {
            launcher,
            env,
            workers: Arc::new(Semaphore::new(max_workers.max(1) as usize)),
        }
    }
}

/// The backends of one server, each connected when it is first needed.
pub struct Backends {
    shared: SharedResources,
    connected: Mutex<HashMap<String, Arc<dyn Backend>>>,
}

impl Backends {
    pub fn new(shared: SharedResources) -> Self {
        Self {
            shared,
            connected: Mutex::default(),
        }
    }

    /// The backend that serves a tier.
    pub fn of(&self, tier: &Tier) -> Result<Arc<dyn Backend>, AskError> {
        let mut connected = self
            .connected
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(backend) = connected.get(&tier.backend.name) {
            return Ok(Arc::clone(backend));
        }
        let mut backend = facts_of(tier.backend.kind).connect(&tier.backend, &self.shared)?;
        if let Some(file) = &tier.backend.record {
            let redactor = self
                .shared
                .env
                .redactor(tier.backend.api_key_env.as_deref());
            backend = Arc::new(replay::Recording::new(backend, file, Arc::new(redactor)));
        }
        connected.insert(tier.backend.name.clone(), Arc::clone(&backend));
        Ok(backend)
    }

    /// Puts a backend of one's own under a name: scripted answers in tests, or one wrapped in a recorder.
    pub fn put(&self, name: impl Into<String>, backend: Arc<dyn Backend>) {
        self.connected
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(name.into(), backend);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_a_kind_has_its_line_in_the_table() {
        let kinds: Vec<_> = KINDS
            .iter()
            .map(|(kind, _)| kind.name().replace('-', "_"))
            .collect();
        let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut found = Vec::new();
        for entry in std::fs::read_dir(dir).expect("the folder of backends") {
            let path = entry.expect("an entry").path();
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            if text.contains("impl BackendFacts for ") {
                found.push(
                    path.file_stem()
                        .expect("a name")
                        .to_string_lossy()
                        .into_owned(),
                );
            }
        }
        found.sort();
        let mut listed = kinds;
        listed.sort();
        assert_eq!(found, listed);
    }
}
