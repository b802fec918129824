//! What every skill that asks models shares: the common arguments, the way into a call, paths inside the project,
//! the list of gates. No skill itself, so it has no line in the table.

mod begin;
mod gates;
mod params;
mod paths;

pub(super) use begin::{Begun, failed};
pub(super) use gates::{Gates, named};
pub(super) use params::{Common, filled, params};
pub(super) use paths::{caps, existing, inside};
