//! What can be asked, over stdio, with recorded models.

mod breaker;
mod checks;
pub(crate) mod debug;
mod hidden_tests;
mod lookback;
mod model_names;
mod mutants;
mod prove;
mod refused_answers;
pub(crate) mod review;
pub(crate) mod spec;
mod stay_local;
pub(crate) mod tdd;
mod tdd_baselines;
mod tdd_call;
mod tdd_checks;
mod tdd_commit;
mod tdd_cycles;
mod tdd_projects;
mod tdd_secrets;
mod tier;
