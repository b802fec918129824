//! What happens next in a call: the chain, its tiers, its record; and calls while everything misbehaves.

pub(crate) mod agent;
mod campaign;
mod chain;
mod record;
mod rounds;
mod secrets;
