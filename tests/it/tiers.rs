//! Tiers made by hand, for what is tested below the routing.

use std::time::Duration;

use supervisor::routing::{Backend, BackendKind, Model, ModelName, Tier, TierKind};

/// A tier with nothing set but its names.
pub(crate) fn tier(backend: &str, kind: BackendKind, model: &str) -> Tier {
    Tier {
        name: ModelName(model.into()),
        backend: Backend {
            name: backend.into(),
            kind,
            tier: TierKind::Local,
            base_url: None,
            api_key_env: None,
            program: None,
            permission_mode: None,
            max_turns: None,
            env_pass: vec![],
            models: vec![],
            shares_quota_with: vec![],
            record: None,
        },
        model: Model {
            id: model.into(),
            context: 8192,
            price_in: None,
            price_out: None,
            limit: None,
            edit_format: None,
            backend: None,
        },
        limit: Duration::from_secs(60),
    }
}
