//! Selects training candidates from the log: an accepted attempt is an example, and each refused
//! attempt before it forms a pair with it. The prompt must have been kept.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::training::TrainingCandidate;
use crate::common::private_names;
use crate::common::private_names::PrivateNames;
use supervisor_engine::session::detail::{CallChoice, LoggedCall, StoredExchange};
use supervisor_engine::session::{SessionId, SessionLog};
use supervisor_engine::{Attempt, Cause};
use supervisor_models::Env;
use supervisor_text::redact::{REDACTED, Redactor};

/// Max candidates per call; a model cannot judge more with care.
const MAX_CANDIDATES: usize = 40;

/// Which calls to use.
#[derive(Debug, Clone, Default)]
pub(super) struct TrainingScope {
    pub(super) session: Option<SessionId>,
    pub(super) since: Option<Timestamp>,
    pub(super) until: Option<Timestamp>,
}

/// The candidates found in the log.
#[derive(Debug, Clone, Default)]
pub(super) struct GatheredCandidates {
    pub(super) candidates: Vec<TrainingCandidate>,
    pub(super) names: PrivateNames,
    /// Number of calls examined.
    pub(super) calls: usize,
    /// Reasons for skipping, with counts.
    pub(super) skipped: BTreeMap<&'static str, usize>,
    /// Candidates that must not be written: id and reason.
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
            calls.extend(found.into_iter().filter(|call| scope.includes(call)));
        }
        let mut gathered = Self {
            names: private_names(calls.iter(), env),
            calls: calls.len(),
            ..Self::default()
        };
        let mut found = Vec::new();
        for call in &calls {
            gathered.add_call(log, call, &mut found);
        }
        let mut seen = known.clone();
        for mut candidate in found {
            for text in [
                &mut candidate.rules,
                &mut candidate.prompt,
                &mut candidate.chosen,
            ] {
                *text = gathered.names.make_relative(text);
            }
            candidate.rejected = candidate
                .rejected
                .map(|text| gathered.names.make_relative(&text));
            if !seen.insert(candidate.digest()) {
                gathered.skip(KNOWN);
                continue;
            }
            let hides_secret =
                |text: &str| text.contains(REDACTED) || redactor.describe_secret(text).is_some();
            match candidate.find_fault(&gathered.names, hides_secret) {
                Some(why) => gathered.refused.push((candidate.id, why)),
                None if gathered.candidates.len() == MAX_CANDIDATES => gathered.skip(LATER),
                None => gathered.candidates.push(candidate),
            }
        }
        Ok(gathered)
    }

    fn skip(&mut self, why: &'static str) {
        *self.skipped.entry(why).or_default() += 1;
    }

    fn add_call(
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
        // Only refusals that reflect the model's quality. A timeout teaches nothing.
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
                        skill: call.entry().tool.clone(),
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
                    skill: call.entry().tool.clone(),
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
    fn includes(&self, call: &LoggedCall) -> bool {
        let is_work = !matches!(call.entry().tool.as_str(), "retrospective" | "trainer");
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

/// Builds a pair with the prompt of the refused attempt, which is where the better answer was
/// needed.
fn pair(
    log: &SessionLog,
    refused: &Attempt,
    accepted: &Attempt,
) -> Result<(String, String, String, String), &'static str> {
    let (asked, answered) = (last_exchange(log, refused)?, last_exchange(log, accepted)?);
    let (Some(rules), Some(prompt)) = (asked.rules, asked.prompt) else {
        return Err(NOT_KEPT);
    };
    // If either edit was made in place, show both as diffs, so that the pair does not teach the
    // format.
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
    let StoredExchange {
        rules,
        prompt,
        answer,
    } = last_exchange(log, accepted)?;
    match (rules, prompt, answer) {
        (Some(rules), Some(prompt), Some(answer)) => Ok((rules, prompt, answer)),
        _ => Err(NOT_KEPT),
    }
}

/// The exchange that produced the answer: the last one after repairs and file requests.
fn last_exchange(log: &SessionLog, attempt: &Attempt) -> Result<StoredExchange, &'static str> {
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
