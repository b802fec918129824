//! Checks anybody's change with the project's own tests: does something break, do its tests fail without it, and can they
//! fail at all? No model, no MCP and no configuration is needed.
//!
//! [`prove`] runs the suite on the base, on the change, and on the base with only the change's tests. A test that passes
//! with the change and fails without it shows that the change does something; it is then falsified, to show that it
//! checks what it says.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod attestation;
mod baseline_cache;
mod change;
mod changed_tests;
mod checks;
mod companions;
mod falsification;
mod falsified_runs;
mod flags;
mod impact;
mod mutants;
mod project_copy;
mod prove;
mod red;
mod report;
mod request;
mod runs;
mod sarif;
mod test_changes;

pub use attestation::{AttestationError, CheckedProof, ProofNotes, user_signing_key};
pub use change::{ChangeError, Comparand, commit_id, files_at_commit, messages_since};
pub use checks::{check_suite, is_clean};
pub use companions::{files_below, mentions};
pub use falsified_runs::{EditedProject, FalsifiedRuns, touch_test_file, with_forced_rebuild};
pub use flags::{ChangedCode, flags_of};
pub use mutants::{ChangeMutants, MutantRunner, Mutants, SurvivingMutant, mutants_since};
pub use prove::prove;
pub use report::{Gap, Report, Step, Verdict, escape_markdown};
pub use request::{MutantMode, ProveError, ProveRequest};
pub use sarif::SarifLog;
pub use test_changes::{TestChange, TestChangeKind};
