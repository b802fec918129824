//! Settings made by hand from the built-in ones, for tests that are not about files and variables. Addresses may be
//! such as no file would be allowed to have.

use supervisor_settings::{BackendSettings, Routing, Sources, Warm, load};

/// The built-in settings.
pub fn built_in() -> Routing {
    load(&Sources::built_in(crate::MODELS_TOML))
        .unwrap()
        .routing
}

/// An OpenAI-compatible backend at this address.
pub fn gateway(name: &str, base_url: Option<&str>) -> BackendSettings {
    let mut backend = built_in().backends.remove("litellm").unwrap();
    backend.name = name.into();
    backend.base_url = base_url.map(Into::into);
    backend.api_key_env = Some("GATE_KEY".into());
    backend
}

/// The built-in settings with these backends in place of their own.
pub fn routing(backends: impl IntoIterator<Item = BackendSettings>, warm: Option<Warm>) -> Routing {
    let backends = backends.into_iter().map(|b| (b.name.clone(), b)).collect();
    Routing {
        backends,
        warm,
        ..built_in()
    }
}

/// The agent backend, whose program is looked up on the PATH.
pub fn claude() -> BackendSettings {
    built_in().backends.remove("claude").unwrap()
}
