//! A review as the engine sees it: the questions for each tier and the check of their answers.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::brief::Brief;
use super::material::Material;
use super::report::{self, Report};
use crate::backend::{Edits, Power};
use crate::engine::Cause;
use crate::engine::evidence::Evidence;
use crate::engine::job::{Checked, Failed, Found, Held, Job, Question, Work};
use crate::routing::Tier;
use crate::skills::common::Gates;
use crate::verify::Proof;
use crate::verify::findings::{self, Part};
use crate::words;
use crate::workspace::ChangeSet;

/// A review, ready to be asked.
pub(super) struct Review {
    pub(super) brief: Brief,
    pub(super) material: Material,
    /// What the questions of the attempt at hand showed.
    pub(super) asked: Mutex<Vec<Part>>,
}

impl Job for Review {
    fn discipline(&self) -> &str {
        &self.brief.discipline
    }

    fn task(&self) -> &str {
        &self.brief.task
    }

    fn question(&self, tier: &Tier, edits: Edits, evidence: &Evidence) -> Question {
        let first = self.questions(tier, edits, evidence).ok().and_then(|all| all.into_iter().next());
        // Nobody asks this of a tier that cannot take it on.
        first.unwrap_or_else(|| Question {
            prompt: self.brief.task.clone(),
            schema: Value::Null,
            power: Power::ReadOnly,
        })
    }

    fn questions(&self, tier: &Tier, _: Edits, evidence: &Evidence) -> Result<Vec<Question>, String> {
        let (parts, questions) = self.brief.questions(&self.material, tier, evidence)?;
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = parts;
        Ok(questions)
    }

    fn found(&self) -> Option<Found> {
        report::of_the_scan(&self.material)
    }

    fn check<'a>(&'a self, work: Work<'a>) -> BoxFuture<'a, Checked> {
        Box::pin(async move {
            let mut gates = Gates::default();
            let judged = self.judge(work, &mut gates).await;
            gates.close(judged)
        })
    }
}

impl Review {
    async fn judge(&self, work: Work<'_>, gates: &mut Gates) -> Result<Held, Failed> {
        let paths = |changed: &ChangeSet| changed.changes.iter().map(|change| change.path.clone()).collect();
        let (by_worker, by_others): (Vec<PathBuf>, Vec<PathBuf>) = match work.edits {
            Edits::InPlace => (paths(work.changed), Vec::new()),
            // Who has no tools has touched nothing: it was somebody else, and is said.
            Edits::AsData => {
                let (changed, _) = work.site.review(0).await.map_err(|error| gates.broken(&error))?;
                (Vec::new(), paths(&changed))
            }
        };
        let untouched = findings::untouched(&by_worker);
        if !untouched.passed() {
            return Err(gates.refuse(untouched.id(), Cause::Tampered, untouched.detail()));
        }
        gates.pass(untouched.id(), untouched.detail());
        if !by_others.is_empty() {
            let names = words::list(by_others.iter().map(|path| path.to_string_lossy()), 10);
            gates.pass("meanwhile", format!("changed by somebody else during the review: {names}"));
        }
        let parts = self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let replies: Vec<&Value> = work.replies.iter().map(|reply| &reply.body).collect();
        let mut judged = findings::judge(&self.material.scope, &parts, &self.brief.requirements, &replies);
        for check in &judged.checks {
            gates.check(check).map_err(|failed| Failed { runner_output: dropped(&judged), ..failed })?;
        }
        let mut checks = std::mem::take(&mut judged.checks);
        checks.insert(0, untouched);
        let proof = Proof::of_checks(checks).map_err(|e| gates.refuse("proof", Cause::Rejected, e.to_string()))?;
        Ok(Report { material: &self.material, judged, questions: parts.len(), by_others }.held(proof))
    }
}

/// What the server saw of a refused reply: every finding that did not hold.
fn dropped(judged: &findings::Judged) -> String {
    let line = |dropped: &findings::Dropped| format!("finding {}: {}\n", dropped.finding, dropped.because);
    words::cut_middle(&judged.dropped.iter().map(line).collect::<String>(), 4000).into_owned()
}
