//! Kept exchanges and the log of calls whose server died.

mod exchange;
