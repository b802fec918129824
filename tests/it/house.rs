//! Checks the documents: files and tests they name exist, and settings they show load.

mod architecture;
mod evals;
mod figures;
mod recipes;
mod requirements;
