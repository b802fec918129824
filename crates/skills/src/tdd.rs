//! The TDD tools `tdd`, `tdd_red`, `tdd_green` and `tdd_refactor`. Each adds or changes one
//! behaviour at a time and verifies every step with the project's own tests.
//! Models write tests and code. This module decides whether a test is red, whether code is green
//! and whether the worker tampered with anything.

mod additions;
mod answer_reader;
mod baseline;
mod brief;
mod call;
mod check;
mod checks;
mod cycle;
mod cycle_report;
mod failures;
mod falsification;
mod file_requests;
mod gates;
mod green;
mod hidden_tests;
mod job;
mod memory;
mod mutants;
mod old_failures;
mod other_build;
mod params;
mod production_build;
mod red;
mod refactor;
mod repeat;
mod reply_format;
mod scope;
mod several;
mod step_size;
mod tests_in_file;
mod without_work;

use rmcp::{tool, tool_router};

pub use check::CheckArgument;
pub use memory::TddMemory;
pub use mutants::IdleMutants;
pub use params::{CycleParams, GreenParams, RedParams, RefactorParams};

use crate::{Call, Parameters};
use crate::{Reply, Tools};

#[tool_router(router = tdd_tools, vis = "pub")]
impl Tools {
    /// Call to add or change behaviour: each criterion test first (failing test in test_path, code, refactor if set),
    /// verified by the project's tests. If a criterion fails, its changes are rolled back; earlier ones are kept.
    #[tool(annotations(
        title = "Build behaviours test first",
        read_only_hint = false,
        destructive_hint = false,
        idempotent_hint = false,
        open_world_hint = true
    ))]
    async fn tdd(&self, Parameters(params): Parameters<CycleParams>, call: Call) -> Reply {
        Reply(cycle::run(self.app(), &params, &call).await)
    }

    /// Write one failing test for a behaviour. Verified: the suite fails by exactly the new test; only tests are changed.
    /// One that passes at once is taken back (fail).
    #[tool(annotations(
        title = "Write a failing test",
        read_only_hint = false,
        destructive_hint = false,
        idempotent_hint = false,
        open_world_hint = true
    ))]
    async fn tdd_red(&self, Parameters(params): Parameters<RedParams>, call: Call) -> Reply {
        Reply(call::run(self.app(), params.into(), &call).await)
    }

    /// Make a failing test (or `check`) pass with the least code. Verified: it passes, no other test is lost, no test or
    /// configuration is touched; all else is taken back.
    #[tool(annotations(
        title = "Make the failing test pass",
        read_only_hint = false,
        destructive_hint = false,
        idempotent_hint = false,
        open_world_hint = true
    ))]
    async fn tdd_green(&self, Parameters(params): Parameters<GreenParams>, call: Call) -> Reply {
        Reply(several::run(self.app(), params, &call).await)
    }

    /// Improve code under green tests. Verified: the suite passes before and after, no test is touched;
    /// what breaks a test or changes nothing is taken back (fail).
    #[tool(annotations(
        title = "Refactor under green tests",
        read_only_hint = false,
        destructive_hint = false,
        idempotent_hint = false,
        open_world_hint = true
    ))]
    async fn tdd_refactor(
        &self,
        Parameters(params): Parameters<RefactorParams>,
        call: Call,
    ) -> Reply {
        Reply(call::run(self.app(), params.into(), &call).await)
    }
}
