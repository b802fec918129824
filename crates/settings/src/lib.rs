//! Settings: which models are asked, in which order and within which limits. [`load`] reads
//! built-in `models.toml` < the user's file < environment into one checked [`Routing`]; each call
//! may add its own overrides. Nothing is validated again after that.

mod backend_kinds;
mod check;
mod cross_checks;
mod error;
mod file;
#[doc(hidden)]
pub mod fuzz;
mod keys;
mod layers;
mod load;
mod resolve;
mod sections;
mod types;
mod values;
mod variables;

pub use error::{Origin, Problem, RoutingError, SettingsLayer};
pub use load::{LoadedRouting, Sources, load};
pub use resolve::{Choices, SettingDecision, TierDecisions};
pub use sections::*;
pub use types::*;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
