//! Which models, in which order, within which limits. One typed [`Routing`], made once at the edge from
//! built-in `models.toml` < the user's file < environment < this call. Past that line nothing is checked twice.
//! Knows figment and the environment. Does not know how a model is asked.

mod check;
mod error;
mod file;
mod fit;
#[doc(hidden)]
pub mod fuzz;
mod keys;
mod kinds;
mod layers;
mod load;
mod raw;
mod resolve;
mod types;
mod variables;

pub use error::{Origin, Problem, RoutingError, SettingsLayer};
pub use load::{LoadedRouting, Sources, load};
pub use resolve::{Choices, SettingDecision, TierDecisions};
pub use types::*;
