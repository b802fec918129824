//! Named checks in code, for what a definition cannot express. To add one, write a function and
//! list it here.

pub mod decisions;
pub mod health;
mod planning;
mod specification;

use super::check::CheckContext;
use super::definition::CheckDefinition;
use super::verdict::CheckFinding;

type NamedCheck = (
    &'static str,
    fn(&CheckContext<'_>, &CheckDefinition) -> CheckFinding,
);

/// Names that a definition may use with `kind = "code"`.
pub const NAMES: &[NamedCheck] = &[
    ("scope", specification::scope),
    (
        "architecture_coverage",
        specification::architecture_coverage,
    ),
    ("quality_trend", specification::quality_trend),
    ("open_questions", specification::open_questions),
    ("decision_chain", decisions::decision_chain),
    ("wisdom_consistency", decisions::wisdom_consistency),
    ("plan_coverage", planning::plan_coverage),
    ("complexity", planning::complexity),
    ("dependency_chain", planning::dependency_chain),
    ("execution_method", planning::execution_method),
    ("upstream_consumed", planning::upstream_consumed),
    ("errors_per_role", health::errors_per_role),
    ("stale_tasks", health::stale_tasks),
    ("duplicate_spawns", health::duplicate_spawns),
];
