//! Recovery by a started server.

mod formats;
mod recover;
mod restarts;
