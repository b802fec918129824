//! Recovery by a started server.

mod formats;
mod storm;
