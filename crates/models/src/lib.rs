//! Backends send one question to a model and return one JSON object (or text). This module also
//! probes which backends are available. Retries, escalation and judging answers belong to the
//! engine.

mod anthropic;
mod ask;
pub mod availability;
pub mod breaker;
pub mod chain_status;
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
pub mod installed;
mod kind;
pub mod model_list;
mod notes_service;
mod openai;
pub mod probe;
mod remote_text;
pub mod replay;
mod samples;
mod server;
mod settle;
pub mod warm;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use supervisor_process::Launcher;
use supervisor_settings::{BackendKind, Tier};

pub use ask::{Ask, AskStep, Edits, Reply, Shell, ToolAccess, Usage};
use discover::DiscoveredServer;
pub use env::Env;
pub use error::{AskError, Failure, FailureBlame, FailureCause};
pub use extract::object;
pub use http::{Unreachable, client_for_address, fetch};
pub use kind::{BackendFacts, BackendLocation};
pub use notes_service::post_to_service;

/// Every kind of backend. To add one, write a file with its [`BackendFacts`], declare its `mod` and
/// list it here. The keys of its table in `models.toml` are declared in `backend_kinds.rs` of
/// `supervisor-settings`.
static KINDS: &[(BackendKind, &dyn BackendFacts)] = &[
    (BackendKind::Openai, &openai::OpenaiKind),
    (BackendKind::Anthropic, &anthropic::AnthropicKind),
    (BackendKind::ClaudeCli, &claude_cli::ClaudeCliKind),
    (BackendKind::Replay, &replay::ReplayKind),
];

/// Looks up the implementation of a backend kind.
pub fn facts_of(kind: BackendKind) -> &'static dyn BackendFacts {
    KINDS
        .iter()
        .find(|(known, _)| *known == kind)
        .map(|(_, facts)| *facts)
        .expect("every kind is listed in KINDS (checked by a test)")
}

/// The result of one question. The error is boxed because it also carries usage and notes.
pub type AskResult = Result<Reply, Box<Failure>>;

/// One way to ask models.
pub trait Backend: Send + Sync {
    /// How edits are returned. This decides which answer format the prompt asks for.
    fn edits(&self, tier: &Tier) -> Edits;

    /// Asks once. Returns within `ask.limit`, after at most as long a wait for a free worker, or as soon as `stop` is cancelled, and leaves no
    /// process or connection behind. `progress` is called from the same task between awaits and
    /// must not block.
    fn ask<'a>(
        &'a self,
        ask: &'a Ask,
        tier: &'a Tier,
        stop: &'a CancellationToken,
        progress: &'a (dyn Fn(AskStep) + Send + Sync),
    ) -> BoxFuture<'a, AskResult>;

    /// Asks for `ask.samples` answers that do not know of each other, within `ask.samples_limit`.
    /// Returns at least one, and fewer than asked for if asking on would fail like the last one.
    /// Unless a backend knows better, one is asked for after another: a server that computes on the
    /// CPU, or has one slot, takes longer for several at once.
    fn ask_samples<'a>(
        &'a self,
        ask: &'a Ask,
        tier: &'a Tier,
        stop: &'a CancellationToken,
        progress: &'a (dyn Fn(AskStep) + Send + Sync),
    ) -> BoxFuture<'a, Vec<AskResult>> {
        Box::pin(samples::one_by_one(
            self,
            ask,
            tier,
            stop,
            progress,
            Vec::new(),
        ))
    }
}

/// State shared by all backends of one server.
#[derive(Clone, Debug)]
pub struct SharedResources {
    pub launcher: Launcher,
    /// Source of API keys and of the environment variables passed to agents.
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
    /// The servers of this machine, and when they were looked for.
    found: tokio::sync::Mutex<Option<(Instant, Vec<DiscoveredServer>)>>,
}

impl Backends {
    pub fn new(shared: SharedResources) -> Self {
        Self {
            shared,
            connected: Mutex::default(),
            found: tokio::sync::Mutex::default(),
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

    fn is_connected(&self, name: &str) -> bool {
        self.connected
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains_key(name)
    }

    /// Registers a backend under a name, for example one with scripted answers in tests.
    pub fn put(&self, name: impl Into<String>, backend: Arc<dyn Backend>) {
        self.connected
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(name.into(), backend);
    }
}

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_backend_kind_is_listed() {
        let kinds: Vec<_> = KINDS
            .iter()
            .map(|(kind, _)| kind.name().replace('-', "_"))
            .collect();
        let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut found = Vec::new();
        for entry in std::fs::read_dir(dir).expect("the folder of backends") {
            let path = entry.expect("an entry").path();
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            if !path.ends_with("lib.rs") && text.contains("\nimpl BackendFacts for ") {
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
