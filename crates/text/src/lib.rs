//! Text helpers shared by all crates: redaction of secrets, truncation and counting for messages, prompt templates.

pub mod prompts;
pub mod redact;
pub mod words;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
