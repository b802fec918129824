//! The question for each tier and the check of each answer. Cheap gates first, the tests that were named last.

use std::path::PathBuf;

use futures_util::future::BoxFuture;
use serde_json::json;

use super::answer::{self, Answer, Wrote};
use super::brief::Brief;
use super::files;
use super::visits::Visit;
use crate::backend::Edits;
use crate::engine::Cause;
use crate::engine::evidence::Evidence;
use crate::engine::job::{Checked, Failed, Found, Held, Job, Question, Work};
use crate::routing::Tier;
use crate::skills::common::{Gates, named};
use crate::verify::hypotheses::{self, Draft, Experiment, Lab, Shelf};
use crate::verify::{Bench, Repro};
use crate::words;

/// An error, ready to be asked about.
pub(super) struct Debug {
    /// Canonical.
    pub(super) root: PathBuf,
    pub(super) error: String,
    pub(super) brief: Brief,
    pub(super) repro: Option<Repro>,
    /// By the command that shows the error.
    pub(super) wrote: Wrote,
    pub(super) lab: Lab,
    /// Without a guard: the site gives one when something is run.
    pub(super) bench: Bench,
    pub(super) visit: Visit,
    pub(super) session: String,
}

impl Job for Debug {
    fn discipline(&self) -> &str {
        &self.brief.discipline
    }

    fn task(&self) -> &str {
        &self.brief.task
    }

    fn question(&self, tier: &Tier, _: Edits, evidence: &Evidence) -> Question {
        self.brief.question(tier, evidence)
    }

    fn found(&self) -> Option<Found> {
        self.repro.as_ref().map(|repro| Found {
            sentence: repro.sentence(),
            details: json!({"reproduced": repro.is_reproduced(), "repro": answer::repro(repro)}),
        })
    }

    fn check<'a>(&'a self, mut work: Work<'a>) -> BoxFuture<'a, Checked> {
        Box::pin(async move {
            let mut gates = Gates::default();
            let judged = self.judge(&mut work, &mut gates).await;
            gates.close(judged)
        })
    }
}

impl Debug {
    async fn judge(&self, work: &mut Work<'_>, gates: &mut Gates) -> Result<Held, Failed> {
        untouched(work, gates)?;
        let drafts = match hypotheses::drafts(&work.reply.body) {
            Ok(drafts) => drafts,
            Err(check) => return Err(gates.refuse_with(check.id(), Cause::Rejected, check.detail(), check.detail())),
        };
        work.checking("reading what the answer cites");
        let shelf = Shelf::of(drafts.iter().flat_map(Draft::files), |said| files::read(&self.root, said));
        let examined = hypotheses::examine(&drafts, &self.error, &shelf);
        gates.all(&examined.checks)?;
        let found = examined.hypotheses.expect("all checks held");
        let runs = found.iter().any(|h| matches!(h.experiment, Experiment::RunTest(_)));
        let guard = if runs { work.site.guard().map_err(|e| gates.broken(&e))? } else { None };
        let bench = Bench { guard, ..self.bench.clone() };
        let mut confirmed = Vec::new();
        for (n, hypothesis) in found.iter().enumerate() {
            let what = words::cut_end(&words::plain(&hypothesis.experiment.to_string()), 120).into_owned();
            work.checking(format!("confirming {} of {}: {what}", n + 1, found.len()));
            confirmed.push(self.lab.confirm(hypothesis, &shelf, &bench, work.stop).await);
        }
        drop(bench);
        let mut wrote = self.wrote.clone();
        if runs {
            // Whatever differs now, the tests wrote; it is taken back with the rest.
            wrote.add(&work.site.changes().map_err(|e| gates.broken(&e))?);
        }
        if runs && work.edits == Edits::AsData {
            let marked = work.site.armed().and_then(|armed| Ok(armed.mark_by_products()?));
            marked.map_err(|e| gates.broken(&e))?;
        }
        let proof = hypotheses::proof(examined.checks, self.repro.as_ref(), &confirmed);
        Ok(Answer { job: self, found: &found, confirmed: &confirmed, shelf: &shelf, wrote }.held(proof))
    }
}

/// A diagnosis changes nothing. The project was as it should be when the worker began, so that whatever differs is its own.
fn untouched(work: &Work<'_>, gates: &mut Gates) -> Result<(), Failed> {
    let changed = work.changed.changes.iter().map(|change| &change.path);
    let touched: Vec<&PathBuf> = changed.chain(work.changed.by_products.iter().map(|b| &b.path)).collect();
    if touched.is_empty() {
        gates.pass("untouched", "no file was changed");
        return Ok(());
    }
    let names: Vec<String> = touched.iter().take(5).map(|path| named(path)).collect();
    let more = touched.len().saturating_sub(names.len());
    let more = if more > 0 { format!(" and {}", words::count(more, "other")) } else { String::new() };
    let why = format!("nothing may be changed by a diagnosis, and it was: {}{more}", names.join(", "));
    Err(gates.refuse("untouched", Cause::Tampered, why))
}
