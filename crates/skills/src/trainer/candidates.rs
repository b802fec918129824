//! Which calls can be learned from: an accepted attempt is an example, and each refused one before it makes a pair with
//! it. What was asked must have been kept.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::answers::private_names::PrivateNames;
use crate::answers::training::TrainingCandidate;
use crate::common::private_names;
use supervisor_engine::session::detail::{CallChoice, KeptExchange, LoggedCall};
use supervisor_engine::session::{SessionId, SessionLog};
use supervisor_engine::{Attempt, Cause};
use supervisor_models::Env;
use supervisor_text::redact::{REDACTED, Redactor};

/// Candidates of one call of the tool: what a model can judge with care.
const MOST: usize = 40;

/// Which calls are meant.
#[derive(Debug, Clone, Default)]
pub(super) struct TrainingScope {
    pub(super) session: Option<SessionId>,
    pub(super) since: Option<Timestamp>,
    pub(super) until: Option<Timestamp>,
}

/// What the log holds.
#[derive(Debug, Clone, Default)]
pub(super) struct GatheredCandidates {
    pub(super) candidates: Vec<TrainingCandidate>,
    pub(super) names: PrivateNames,
    /// Calls that were looked at.
    pub(super) calls: usize,
    /// What could not be used, and how often.
    pub(super) skipped: BTreeMap<&'static str, usize>,
    /// What may not be written down: which, and why.
    pub(super) refused: Vec<(String, String)>,
}

const NOT_KEPT: &str = "the question was not kept (`exchange = \"full\"` under [log] keeps it)";
const IN_PARTS: &str = "it was asked in parts";
const IN_PLACE: &str = "edited in place, so that there is no answer to imitate";
const CUT: &str = "its change is too long to be kept whole";
const KNOWN: &str = "written before";
const LATER: &str = "left for the next call";

impl GatheredCandidates {
    pub(super) fn from_log(
        log: &SessionLog,
        scope: &TrainingScope,
        known: &BTreeSet<String>,
        env: &Env,
        redactor: &Redactor,
    ) -> Result<Self, String> {
        let sessions = match &scope.session {
            Some(session) => vec![session.clone()],
            None => log.sessions().map_err(|e| e.to_string())?,
        };
        let mut calls: Vec<LoggedCall> = Vec::new();
        for session in sessions {
            let found = log
                .calls(&session, &CallChoice::All)
                .map_err(|e| e.to_string())?;
            calls.extend(found.into_iter().filter(|call| scope.holds(call)));
        }
        let mut gathered = Self {
            names: private_names(calls.iter(), env),
            calls: calls.len(),
            ..Self::default()
        };
        let mut found = Vec::new();
        for call in &calls {
            gathered.take_call(log, call, &mut found);
        }
        let mut seen = known.clone();
        for mut candidate in found {
            for text in [
                &mut candidate.rules,
                &mut candidate.prompt,
                &mut candidate.chosen,
            ] {
                *text = gathered.names.relative(text);
            }
            candidate.rejected = candidate
                .rejected
                .map(|text| gathered.names.relative(&text));
            if !seen.insert(candidate.digest()) {
                gathered.skip(KNOWN);
                continue;
            }
            let completions =
                |text: &str| text.contains(REDACTED) || redactor.name_of_secret(text).is_some();
            match candidate.find_fault(&gathered.names, completions) {
                Some(why) => gathered.refused.push((candidate.id, why)),
                None if gathered.candidates.len() == MOST => gathered.skip(LATER),
                None => gathered.candidates.push(candidate),
            }
        }
        Ok(gathered)
    }

    fn skip(&mut self, why: &'static str) {
        *self.skipped.entry(why).or_default() += 1;
    }

    fn take_call(
        &mut self,
        log: &SessionLog,
        call: &LoggedCall,
        found: &mut Vec<TrainingCandidate>,
    ) {
        let attempts = &call.entry().attempts;
        let Some(accepted) = attempts
            .iter()
            .find(|attempt| attempt.cause == Some(Cause::Accepted))
        else {
            return;
        };
        // What speaks about a model's quality; a time-out teaches nothing.
        let is_refused = |a: &&Attempt| {
            matches!(
                a.cause,
                Some(Cause::Rejected | Cause::Tampered | Cause::Unreadable)
            )
        };
        for refused in attempts
            .iter()
            .take_while(|a| a.attempt < accepted.attempt)
            .filter(is_refused)
        {
            match pair(log, refused, accepted) {
                Ok((rules, prompt, chosen, rejected)) => {
                    let id = format!(
                        "d{}",
                        found.iter().filter(|one| one.rejected.is_some()).count() + 1
                    );
                    found.push(TrainingCandidate {
                        id,
                        skill: call.entry().skill.clone(),
                        rules,
                        prompt,
                        chosen,
                        rejected: Some(rejected),
                    });
                }
                Err(why) => self.skip(why),
            }
        }
        match example(log, accepted) {
            Ok((rules, prompt, chosen)) => {
                let id = format!(
                    "s{}",
                    found.iter().filter(|one| one.rejected.is_none()).count() + 1
                );
                found.push(TrainingCandidate {
                    id,
                    skill: call.entry().skill.clone(),
                    rules,
                    prompt,
                    chosen,
                    rejected: None,
                });
            }
            Err(why) => self.skip(why),
        }
    }
}

impl TrainingScope {
    fn holds(&self, call: &LoggedCall) -> bool {
        let is_work = !matches!(call.entry().skill.as_str(), "retrospective" | "trainer");
        let ended: Option<Timestamp> = call.entry().timestamp.parse().ok();
        let in_time = match (self.since, self.until, ended) {
            (None, None, _) => true,
            (_, _, None) => false,
            (since, until, Some(at)) => {
                since.is_none_or(|since| at >= since) && until.is_none_or(|until| at <= until)
            }
        };
        is_work && in_time
    }
}

/// Asked as the refused one was: that is where the better answer should have come.
fn pair(
    log: &SessionLog,
    refused: &Attempt,
    accepted: &Attempt,
) -> Result<(String, String, String, String), &'static str> {
    let (asked, answered) = (last_exchange(log, refused)?, last_exchange(log, accepted)?);
    let (Some(rules), Some(prompt)) = (asked.rules, asked.prompt) else {
        return Err(NOT_KEPT);
    };
    // Where one was made in place, both are shown as changes: a pair must not teach the form.
    let as_change = is_in_place(accepted) || is_in_place(refused);
    let chosen = if as_change {
        Some(change(log, accepted)?)
    } else {
        answered.answer
    };
    let rejected = match change(log, refused) {
        Ok(change) if as_change => Some(change),
        _ => asked.answer,
    };
    chosen
        .zip(rejected)
        .map(|(chosen, rejected)| (rules, prompt, chosen, rejected))
        .ok_or(NOT_KEPT)
}

fn example(log: &SessionLog, accepted: &Attempt) -> Result<(String, String, String), &'static str> {
    if is_in_place(accepted) {
        return Err(IN_PLACE);
    }
    let KeptExchange {
        rules,
        prompt,
        answer,
    } = last_exchange(log, accepted)?;
    match (rules, prompt, answer) {
        (Some(rules), Some(prompt), Some(answer)) => Ok((rules, prompt, answer)),
        _ => Err(NOT_KEPT),
    }
}

/// The question that was answered in the end; after a repair or a need, the last one.
fn last_exchange(log: &SessionLog, attempt: &Attempt) -> Result<KeptExchange, &'static str> {
    if attempt.exchange.len() > attempt.asks.len().max(1) {
        return Err(IN_PARTS);
    }
    log.exchanges(attempt).pop().ok_or(NOT_KEPT)
}

fn is_in_place(attempt: &Attempt) -> bool {
    attempt.exchange.iter().any(|exchange| exchange.in_place)
}

fn change(log: &SessionLog, attempt: &Attempt) -> Result<String, &'static str> {
    let diff = log.kept_diff(attempt).ok_or(NOT_KEPT)?;
    if diff.contains(" bytes cut") {
        return Err(CUT);
    }
    Ok(format!("```diff\n{}\n```\n", diff.trim_end()))
}
