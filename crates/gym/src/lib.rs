//! What is a model worth? Tasks with hidden tests, runs of them through the real engine, what was measured per model,
//! and simulations over it. Knows tasks and outcomes. Does not know how a model is asked, nor how a table looks.

pub mod contradiction;
pub mod exercism;
pub mod mutant;
pub mod own_tasks;
pub mod passport;
pub mod results;
pub mod score;
pub mod simulate;
pub mod task;
pub mod verifier;
