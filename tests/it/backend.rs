//! The real programs behind which models live.

mod real_claude;
mod real_claude_chain;
mod real_claude_tdd;
mod real_claude_words;
mod real_litellm;
mod real_litellm_tdd;
pub(crate) mod real_llama;
mod real_llama_chain;
mod real_llama_init;
mod real_llama_passport;
