//! Fuzz targets: arbitrary bytes as the output of a model server or agent program.

pub use super::claude_cli::fuzz::claude_stream;
pub use super::openai::fuzz::chat_completion;
