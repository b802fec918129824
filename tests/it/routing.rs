//! Which models, in which order, within which limits.

mod chain;
mod env;
mod loaded;
mod messages;
