//! Text helpers shared by all crates: redaction of secrets, truncation and counting for messages, prompt templates.

pub mod prompts;
pub mod redact;
pub mod words;
