//! Services that are used with a key from the environment. Prices are data with a date.

/// When the prices below were written down.
pub(super) const PRICES_OF: &str = "November 2026";

/// A service with an API that the backends speak.
#[derive(Debug, PartialEq)]
pub(super) struct HostedService {
    pub(super) name: &'static str,
    /// Name of its backend.
    pub(super) slug: &'static str,
    pub(super) key_var: &'static str,
    /// Its OpenAI-compatible API; `None` if the backend is built in.
    pub(super) base_url: Option<&'static str>,
    /// The name that chains use, and the model's name at the service.
    pub(super) model: &'static str,
    pub(super) id: &'static str,
    pub(super) context: u32,
    /// USD for a million tokens.
    pub(super) price_in: f64,
    pub(super) price_out: f64,
}

pub(super) const SERVICES: &[HostedService] = &[
    HostedService {
        name: "Anthropic",
        slug: "anthropic",
        key_var: "ANTHROPIC_API_KEY",
        base_url: None,
        model: "anthropic/haiku",
        id: "haiku",
        context: 200_000,
        price_in: 1.0,
        price_out: 5.0,
    },
    HostedService {
        name: "OpenAI",
        slug: "openai",
        key_var: "OPENAI_API_KEY",
        base_url: Some("https://api.openai.com/v1"),
        model: "gpt-5-mini",
        id: "gpt-5-mini",
        context: 400_000,
        price_in: 0.25,
        price_out: 2.0,
    },
    HostedService {
        name: "OpenRouter",
        slug: "openrouter",
        key_var: "OPENROUTER_API_KEY",
        base_url: Some("https://openrouter.ai/api/v1"),
        model: "openrouter/qwen3-coder",
        id: "qwen/qwen3-coder",
        context: 262_144,
        price_in: 0.22,
        price_out: 0.95,
    },
    HostedService {
        name: "Gemini",
        slug: "gemini",
        key_var: "GEMINI_API_KEY",
        base_url: Some("https://generativelanguage.googleapis.com/v1beta/openai"),
        model: "gemini-2.5-flash",
        id: "gemini-2.5-flash",
        context: 1_000_000,
        price_in: 0.3,
        price_out: 2.5,
    },
];
