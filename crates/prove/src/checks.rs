//! The user's own checks, such as linters and type checkers: what is clean on the base must be clean with the change.

use std::path::Path;
use std::time::Instant;

use supervisor_verify::{DetectError, DetectRequest, Outcome, Suite, TestRun};

use crate::prove::ProofRun;
use crate::request::ProveError;

/// A check as something to run.
pub fn check_suite(root: &Path, check: &str) -> Result<Suite, DetectError> {
    let request = DetectRequest {
        root,
        near: None,
        test_cmd: Some(check),
        test_report: None,
        path: None,
    };
    request.detect()
}

/// Whether a check found nothing. A linter prints no test report; only its exit code counts. One
/// that cannot start on either side decides nothing.
pub fn is_clean(run: &TestRun) -> bool {
    run.exit_code() == Some(0) || *run.outcome() == Outcome::Passed
}

impl ProofRun<'_> {
    /// Checks that pass on the base and fail with the change.
    pub(crate) async fn newly_failing_checks(&mut self) -> Result<Vec<String>, ProveError> {
        let mut found = Vec::new();
        for check in self.request.checks {
            let suite = check_suite(self.request.root, check)
                .map_err(|error| ProveError::NoSuite(format!("`{check}`: {error}")))?;
            if self.is_clean(&suite, check, true).await? {
                continue;
            }
            if self.is_clean(&suite, check, false).await? {
                found.push(check.clone());
            }
        }
        Ok(found)
    }

    async fn is_clean(
        &mut self,
        suite: &Suite,
        check: &str,
        with_change: bool,
    ) -> Result<bool, ProveError> {
        let began = Instant::now();
        let edits = self.change.edits_to(|_, versions| {
            let version = if with_change {
                &versions.change
            } else {
                &versions.base
            };
            version.clone()
        });
        let run = self.run_edited(suite, &[&edits], None).await?;
        self.copy.reset()?;
        let is_clean = is_clean(&run);
        let result = format!(
            "{} {}",
            if is_clean { "clean" } else { "not clean" },
            if with_change {
                "with the change"
            } else {
                "on the base"
            }
        );
        self.note("check", check, &result, began.elapsed());
        Ok(is_clean)
    }
}
