//! How is a model asked, and is it there at all?
//! Knows HTTP, agent programs and what they say about themselves. Does not know what a good answer is.

mod env;
mod http;
pub mod installed;
pub mod loaded;
pub mod probe;
pub mod walk;
pub mod world;

pub use env::Env;
pub use http::Unreachable;
