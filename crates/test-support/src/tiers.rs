//! Tiers made by hand, for what is tested below the routing.

use std::time::Duration;

use supervisor_settings::{
    BackendKind, BackendSettings, EditFormat, Model, ModelName, Tier, TierKind,
};

/// A tier with nothing set but its names.
pub fn tier(backend: &str, kind: BackendKind, model: &str) -> Tier {
    Tier {
        name: ModelName(model.into()),
        backend: BackendSettings::named(backend, kind, TierKind::Local),
        instead: None,
        outage: None,
        model: Model::named(model, 8192),
        limit: Duration::from_secs(60),
        limit_by: "limits.local_s".into(),
        is_shortened: false,
        attempts: 1,
        samples: supervisor_settings::Samples::default(),
        edit_format: EditFormat::Auto,
    }
}
