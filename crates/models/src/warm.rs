//! Checks whether a model was already loaded when it was asked. The lookup runs beside the
//! question, never before it, and counts as unknown if it is too slow. It is only logged and does
//! not affect routing.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::Env;
use super::model_list::{self, Deployment};
use supervisor_settings::{Tier, Warm};

/// Slower lookups count as unknown.
const TIMEOUT: Duration = Duration::from_millis(200);

/// Looks up which models are loaded.
#[derive(Debug)]
pub struct WarmCheck {
    warm: Option<Warm>,
    env: Env,
    /// Deployments by backend. They change only with the gateway's own settings, so they are
    /// cached.
    deployments: Mutex<HashMap<String, Vec<Deployment>>>,
}

impl WarmCheck {
    pub fn new(warm: Option<Warm>, env: Env) -> Self {
        Self {
            warm,
            env,
            deployments: Mutex::default(),
        }
    }

    /// Whether the tier's model is loaded. `None` means unknown.
    pub async fn of(&self, tier: &Tier) -> Option<bool> {
        let warm = self.warm.as_ref()?;
        let (loaded, deployments) =
            tokio::join!(model_list::loaded(warm, TIMEOUT), self.deployments(tier));
        model_list::is_warm(&loaded.ok()?, &deployments, &warm.url, &tier.model.id)
    }

    /// The deployments of this tier's gateway; empty if it does not report them.
    async fn deployments(&self, tier: &Tier) -> Vec<Deployment> {
        let name = &tier.backend.name;
        let known = self
            .deployments
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(name)
            .cloned();
        if let Some(known) = known {
            return known;
        }
        match model_list::deployments(&tier.backend, &self.env, TIMEOUT).await {
            Ok(deployments) => {
                self.deployments
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(name.clone(), deployments.clone());
                deployments
            }
            Err(_) => Vec::new(),
        }
    }
}
