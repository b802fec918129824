//! Several answers to one question. Each is checked cheaply, then judged in full in order of promise;
//! the first that is accepted wins. If none is, the best one stands for all of them: its refusal is
//! what the next try gets to see.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::Cause;
use super::event::Event;
use super::exchange::ExchangeRecord;
use super::project_access::Site;
use super::skill::Skill;
use super::tier_attempt::{TierAttempt, TierAttemptReport, answer_hash};
use super::work::{AcceptedWork, FailingTests, RefusedWork, Screening, SeenEdits, SubmittedWork};
use supervisor_models::{Edits, Reply};
use supervisor_verify::Flags;
use supervisor_workspace::ChangeSet;

/// The answers of one round. There are at least two.
pub(super) struct Candidates {
    pub(super) answers: Vec<Result<Vec<Reply>, RefusedWork>>,
    /// What was stored of each.
    pub(super) exchange: Vec<Option<ExchangeRecord>>,
    pub(super) edits: Edits,
    pub(super) last_answer: Option<blake3::Hash>,
}

/// The verdict on all answers.
pub(super) struct Choice {
    pub(super) verdict: Result<AcceptedWork, RefusedWork>,
    /// How each one ended.
    pub(super) ends: Vec<CandidateEnd>,
    /// The answer that the verdict is about; `None` if it is about none of them.
    pub(super) number: Option<usize>,
}

/// How one answer ended, for the log.
pub(super) struct CandidateEnd {
    /// `None` if it was not judged: it equals another one, or another one was accepted before.
    pub(super) cause: Option<Cause>,
    pub(super) said: String,
}

/// What is known of a candidate that passed the cheap checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Promise {
    number: usize,
    /// Number of answers that make these edits.
    agreeing: usize,
    diff_bytes: usize,
}

/// What is known of a refused candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RefusedCandidate {
    cause: Cause,
    /// The server's checks passed, and the verifier refused.
    gates_passed: bool,
    /// Number of tests that fail with it, if they ran.
    failing: Option<usize>,
    diff_bytes: usize,
}

/// What most answers agree on is judged first, then the smallest change.
fn in_order_of_promise(mut candidates: Vec<Promise>) -> Vec<usize> {
    candidates.sort_by_key(|one| (Reverse(one.agreeing), one.diff_bytes, one.number));
    candidates.into_iter().map(|one| one.number).collect()
}

/// The refused candidate that is closest to being accepted: the fewest failing tests, then the
/// smallest change.
fn best_refused(refused: &[Option<RefusedCandidate>]) -> Option<usize> {
    let distance = |one: &RefusedCandidate| {
        let step = match one.cause {
            Cause::Rejected if one.gates_passed => 0,
            Cause::CannotVerify => 1,
            Cause::Rejected if one.failing.is_some() => 2,
            Cause::Rejected => 3,
            Cause::Contradiction => 4,
            Cause::Unreadable | Cause::Incapable => 5,
            Cause::Tampered => 6,
            _ => 7,
        };
        (step, one.failing, one.diff_bytes)
    };
    let known = refused.iter().enumerate();
    known
        .filter_map(|(n, one)| Some((distance(one.as_ref()?), n)))
        .min()
        .map(|(_, n)| n)
}

/// One answer on its way through the checks.
struct Candidate {
    replies: Option<Vec<Reply>>,
    refused: Option<RefusedWork>,
    /// An earlier candidate that makes the same edits.
    same_as: Option<usize>,
    agreeing: usize,
    trace: Trace,
}

/// What judging a candidate left in the report of its attempt.
#[derive(Default)]
struct Trace {
    diff: String,
    files: Vec<String>,
    answer: Option<blake3::Hash>,
    repeats: bool,
    summary: String,
    gates_passed: bool,
    flags: Flags,
}

impl Trace {
    /// Takes it out of the report, which is then ready for the next candidate.
    fn take_from(report: &mut TierAttemptReport) -> Self {
        Self {
            diff: std::mem::take(&mut report.diff),
            files: std::mem::take(&mut report.files),
            answer: report.answer.take(),
            repeats: std::mem::take(&mut report.repeats),
            summary: std::mem::take(&mut report.attempt.output_summary),
            gates_passed: std::mem::take(&mut report.attempt.gates_passed),
            flags: std::mem::take(&mut report.attempt.flags),
        }
    }

    fn put_into(self, report: &mut TierAttemptReport) {
        report.diff = self.diff;
        report.files = self.files;
        report.answer = self.answer;
        report.repeats = self.repeats;
        report.attempt.output_summary = self.summary;
        report.attempt.gates_passed = self.gates_passed;
        report.attempt.flags = self.flags;
    }
}

impl<S: Skill> TierAttempt<'_, S> {
    /// Judges several answers.
    pub(super) async fn choose(
        &self,
        candidates: Candidates,
        shown: S::Shown,
        site: &mut Site,
        report: &mut TierAttemptReport,
    ) -> Choice {
        let Candidates {
            answers,
            exchange,
            edits,
            last_answer,
        } = candidates;
        let mut all = distinct_by_text(answers);
        let stopped = |all: &[Candidate], refused| Choice {
            verdict: Err(refused),
            ends: ends_of(all, None),
            number: None,
        };
        let to_judge: Vec<usize> = (0..all.len())
            .filter(|n| all[*n].replies.is_some() && all[*n].same_as.is_none())
            .collect();
        let is_screened = to_judge.len() > 1;
        if is_screened {
            let mut seen = SeenEdits::default();
            for n in &to_judge {
                if let Err(refused) = self
                    .screen(*n, &mut all, edits, shown.clone(), &mut seen, site, report)
                    .await
                {
                    return stopped(&all, refused);
                }
                let refused = all[*n].refused.take();
                all[*n].refused =
                    refused.map(|refused| self.add_answer_path(refused, exchange[*n].as_ref()));
            }
        }
        let promises = to_judge
            .into_iter()
            .filter(|n| all[*n].refused.is_none() && all[*n].same_as.is_none())
            .map(|n| Promise {
                number: n,
                agreeing: all[n].agreeing,
                diff_bytes: all[n].trace.diff.len(),
            });
        for n in in_order_of_promise(promises.collect()) {
            self.say(format!("judging answer {} of {}", n + 1, all.len()));
            let replies = all[n].replies.take().unwrap_or_default();
            let judged = self
                .examine(
                    &replies,
                    edits,
                    shown.clone(),
                    last_answer,
                    is_screened.then_some(n),
                    site,
                    report,
                )
                .await;
            let refused = match judged {
                Ok(accepted) => {
                    return Choice {
                        verdict: Ok(accepted),
                        ends: ends_of(&all, Some(n)),
                        number: Some(n),
                    };
                }
                Err(refused) => self.add_answer_path(refused, exchange[n].as_ref()),
            };
            all[n].trace = Trace::take_from(report);
            all[n].refused = Some(refused.clone());
            if refused.cause == Cause::Cancelled {
                std::mem::take(&mut all[n].trace).put_into(report);
                return stopped(&all, refused);
            }
            if let Err(error) = self.restore_project(site, report).await {
                report.restore_error = Some(error);
                return stopped(&all, refused);
            }
        }
        let known: Vec<Option<RefusedCandidate>> = all.iter().map(RefusedCandidate::of).collect();
        let Some(best) = best_refused(&known) else {
            let refused = RefusedWork::new(Cause::Infra, "no answer was given");
            return stopped(&all, refused);
        };
        let ends = ends_of(&all, None);
        let chosen = all.swap_remove(best);
        chosen.trace.put_into(report);
        Choice {
            verdict: Err(chosen.refused.unwrap_or_else(RefusedWork::cancelled)),
            ends,
            number: Some(best),
        }
    }

    /// Checks one candidate cheaply and restores the project. An error ends the attempt.
    #[expect(
        clippy::too_many_arguments,
        reason = "one candidate with what is needed to check it"
    )]
    async fn screen(
        &self,
        number: usize,
        all: &mut [Candidate],
        edits: Edits,
        shown: S::Shown,
        seen: &mut SeenEdits,
        site: &mut Site,
        report: &mut TierAttemptReport,
    ) -> Result<(), RefusedWork> {
        let stop = self.context.stop;
        self.say(format!("checking answer {} of {}", number + 1, all.len()));
        let replies = all[number].replies.clone().unwrap_or_default();
        report.answer = Some(answer_hash(replies.iter().map(|reply| &reply.body), ""));
        let work = SubmittedWork {
            replies: &replies,
            edits,
            changed: &ChangeSet::default(),
            candidate: Some(number),
            site,
            stop,
            redactor: &self.context.services.redactor,
            author: None,
            reporter: self.context.reporter,
            at: self.at,
        };
        let screened = tokio::select! {
            screened = self.call.skill.screen(work, shown, seen) => screened,
            () = stop.cancelled() => return Err(RefusedWork::cancelled()),
        };
        // What cannot be read is found again when the candidate is judged.
        let _ = report.record_changes(site).await;
        all[number].trace = Trace::take_from(report);
        match screened {
            Ok(Screening::Passed) => {}
            Ok(Screening::SameAs(first)) => {
                all[number].same_as = Some(first);
                all[first].agreeing += all[number].agreeing;
            }
            Err(refused) if refused.cause == Cause::Cancelled => return Err(refused),
            Err(refused) => all[number].refused = Some(refused),
        }
        if let Err(error) = self.restore_project(site, report).await {
            let refused = RefusedWork::new(Cause::CannotVerify, error.to_string());
            report.restore_error = Some(error);
            return Err(refused);
        }
        Ok(())
    }

    fn say(&self, what: String) {
        self.context.reporter.report(Event::Working {
            at: self.at.clone(),
            what,
        });
    }
}

/// Answers that differ only in white space or the order of keys count as one.
fn distinct_by_text(answers: Vec<Result<Vec<Reply>, RefusedWork>>) -> Vec<Candidate> {
    let mut seen: HashMap<blake3::Hash, usize> = HashMap::new();
    let mut all: Vec<Candidate> = Vec::with_capacity(answers.len());
    for (n, answer) in answers.into_iter().enumerate() {
        let mut candidate = Candidate {
            replies: None,
            refused: None,
            same_as: None,
            agreeing: 1,
            trace: Trace::default(),
        };
        match answer {
            Ok(replies) => {
                let hash = answer_hash(replies.iter().map(|reply| &reply.body), "");
                let first = *seen.entry(hash).or_insert(n);
                if first < n {
                    candidate.same_as = Some(first);
                    all[first].agreeing += 1;
                }
                candidate.replies = Some(replies);
            }
            Err(refused) => candidate.refused = Some(refused),
        }
        all.push(candidate);
    }
    all
}

fn ends_of(all: &[Candidate], accepted: Option<usize>) -> Vec<CandidateEnd> {
    let end = |(n, one): (usize, &Candidate)| match (&one.refused, one.same_as) {
        _ if accepted == Some(n) => CandidateEnd {
            cause: Some(Cause::Accepted),
            said: String::new(),
        },
        (Some(refused), _) => CandidateEnd {
            cause: Some(refused.cause),
            said: refused.feedback.clone(),
        },
        (None, Some(first)) => CandidateEnd {
            cause: None,
            said: format!("makes the same edits as answer {}", first + 1),
        },
        (None, None) => CandidateEnd {
            cause: None,
            said: String::from("not judged"),
        },
    };
    all.iter().enumerate().map(end).collect()
}

impl RefusedCandidate {
    fn of(candidate: &Candidate) -> Option<Self> {
        let refused = candidate.refused.as_ref()?;
        Some(Self {
            cause: refused.cause,
            gates_passed: candidate.trace.gates_passed,
            failing: refused.failing.as_ref().map(FailingTests::count),
            diff_bytes: candidate.trace.diff.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agreement_then_small_change_comes_first() {
        let one = |number, agreeing, diff_bytes| Promise {
            number,
            agreeing,
            diff_bytes,
        };
        for (candidates, order) in [
            (vec![one(0, 1, 50), one(1, 1, 20)], vec![1, 0]),
            (vec![one(0, 1, 20), one(1, 2, 50)], vec![1, 0]),
            (vec![one(2, 1, 20), one(0, 1, 20)], vec![0, 2]),
            (vec![], vec![]),
        ] {
            assert_eq!(
                in_order_of_promise(candidates.clone()),
                order,
                "{candidates:?}"
            );
        }
    }

    #[test]
    fn fewest_failing_then_smallest_is_best() {
        let one = |cause, gates_passed, failing, diff_bytes| {
            Some(RefusedCandidate {
                cause,
                gates_passed,
                failing,
                diff_bytes,
            })
        };
        use Cause::{CannotVerify, Contradiction, Infra, Rejected, Tampered, Unreadable};
        for (refused, best) in [
            (vec![], None),
            (vec![None, None], None),
            (
                vec![
                    one(Rejected, false, Some(3), 10),
                    one(Rejected, false, Some(1), 90),
                ],
                Some(1),
            ),
            (
                vec![
                    one(Rejected, false, Some(1), 90),
                    one(Rejected, false, Some(1), 10),
                ],
                Some(1),
            ),
            // The first of equals.
            (
                vec![
                    one(Rejected, false, Some(1), 10),
                    one(Rejected, false, Some(1), 10),
                ],
                Some(0),
            ),
            // Tests that ran beat an answer that did not get so far.
            (
                vec![
                    one(Rejected, false, None, 1),
                    one(Rejected, false, Some(9), 90),
                ],
                Some(1),
            ),
            // Only the verifier was against it.
            (
                vec![
                    one(Rejected, false, Some(1), 1),
                    one(Rejected, true, None, 90),
                ],
                Some(1),
            ),
            (
                vec![
                    one(Rejected, false, Some(1), 1),
                    one(CannotVerify, false, None, 90),
                ],
                Some(1),
            ),
            // What was judged beats what could not be.
            (
                vec![
                    one(Infra, false, None, 0),
                    one(Tampered, false, None, 0),
                    one(Unreadable, false, None, 0),
                    one(Contradiction, false, None, 0),
                ],
                Some(3),
            ),
            (
                vec![one(Infra, false, None, 0), one(Tampered, false, None, 0)],
                Some(1),
            ),
            (vec![None, one(Infra, false, None, 0)], Some(1)),
        ] {
            assert_eq!(best_refused(&refused), best, "{refused:?}");
        }
    }
}
