//! Was the model loaded already when it was asked? Looked up beside the question, never before it; what cannot be told
//! in time is unknown. Only for the log: nothing is routed by it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::Env;
use super::loaded::{self, Deployment};
use supervisor_settings::{Tier, Warm};

/// A look that takes longer than this says nothing.
const LIMIT: Duration = Duration::from_millis(200);

/// Looks up which models are loaded.
#[derive(Debug)]
pub struct Warmth {
    warm: Option<Warm>,
    env: Env,
    /// Which model stands behind a gateway's names, by backend. It changes only with the gateway's own settings.
    behind: Mutex<HashMap<String, Vec<Deployment>>>,
}

impl Warmth {
    pub fn new(warm: Option<Warm>, env: Env) -> Self {
        Self {
            warm,
            env,
            behind: Mutex::default(),
        }
    }

    /// `None` is unknown.
    pub async fn of(&self, tier: &Tier) -> Option<bool> {
        let warm = self.warm.as_ref()?;
        let (loaded, behind) = tokio::join!(loaded::loaded(warm, LIMIT), self.behind(tier));
        loaded::is_warm(&loaded.ok()?, &behind, &warm.url, &tier.model.id)
    }

    /// What stands behind the names of this tier's gateway; nothing if it does not say.
    async fn behind(&self, tier: &Tier) -> Vec<Deployment> {
        let name = &tier.backend.name;
        let known = self
            .behind
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(name)
            .cloned();
        if let Some(known) = known {
            return known;
        }
        match loaded::deployments(&tier.backend, &self.env, LIMIT).await {
            Ok(behind) => {
                self.behind
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(name.clone(), behind.clone());
                behind
            }
            Err(_) => Vec::new(),
        }
    }
}
