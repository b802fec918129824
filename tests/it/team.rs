//! The bus of a team and the resident supervisor of its pipeline, through the built program.

mod bus;
mod checkpoints;
mod crashes;
mod defects;
mod definitions;
mod naive;
mod questions;
mod role_spec;
pub(crate) mod session;
