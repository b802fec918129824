//! What tests stand on and no test itself: fake servers and programs, terminals, benches, what is said when something is skipped.

pub(crate) mod debug_bench;
pub(crate) mod machine;
pub(crate) mod mcp_bench;
pub(crate) mod mcp_tools;
pub(crate) mod review_bench;
pub(crate) mod role;
pub(crate) mod tasks_bench;
pub(crate) mod tdd_bench;
pub(crate) mod terminal;
