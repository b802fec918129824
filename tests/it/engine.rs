//! What happens next in a call: the chain, its tiers, its record; and calls while everything misbehaves.

mod campaign;
mod secrets;
