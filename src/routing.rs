//! Which models, in which order, within which limits. One typed [`Routing`], made once at the edge from
//! built-in `models.toml` < the user's file < environment < this call. Past that line nothing is checked twice.
//! Knows figment and the environment. Does not know how a model is asked.

mod types;

pub use types::*;
