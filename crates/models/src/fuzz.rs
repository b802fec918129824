//! Any bytes as what a model's server or program says.

pub use super::claude_cli::fuzz::claude_stream;
pub use super::openai::fuzz::chat_completion;
