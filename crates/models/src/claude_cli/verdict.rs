//! What came of a run. Neither exit code nor `subtype` can be believed alone: a success is exactly one result, without
//! error, of at least one turn, with the structured answer, and exit code 0.

use serde_json::Value;

use super::Worker;
use super::stream::SeenStream;
use crate::{Ask, AskError, AskResult, Failure, FailureBlame, Reply, Usage, said};
use supervisor_process::{End, FinishedProcess, StartError};
use supervisor_settings::Tier;
use supervisor_text::words;

/// Kept of the last words.
const RAW: usize = 64 * 1024;

pub(super) fn judge(
    worker: &Worker,
    finished: &FinishedProcess,
    seen: &SeenStream,
    ask: &Ask,
    tier: &Tier,
    mut notes: Vec<String>,
) -> AskResult {
    let nothing = Value::Null;
    let result = seen.result.as_ref().unwrap_or(&nothing);
    notes.extend(denials(result));
    if seen.retries > 0 {
        notes.push(format!(
            "its API failed {} on the way",
            words::count(seen.retries as usize, "time")
        ));
    }
    let usage = usage(result, finished, seen);
    let said = result["result"].as_str().unwrap_or_default();
    let kept = worker
        .secrets
        .redact(&words::cut_middle(said, RAW))
        .into_owned();
    if let Some(why) = failure(worker, finished, seen, result, ask, tier) {
        let answer = if matches!(why, AskError::Malformed { .. }) {
            kept
        } else {
            String::new()
        };
        return Err(Box::new(Failure {
            why,
            usage,
            notes,
            answer,
        }));
    }
    Ok(Reply {
        body: result["structured_output"].clone(),
        raw: kept,
        model_answered: answered(result, &tier.model.id).unwrap_or_else(|| tier.model.id.clone()),
        usage,
        notes,
    })
}

fn failure(
    worker: &Worker,
    finished: &FinishedProcess,
    seen: &SeenStream,
    result: &Value,
    ask: &Ask,
    tier: &Tier,
) -> Option<AskError> {
    let model = tier.name.0.clone();
    let crashed = |why: String| AskError::Crashed {
        program: worker.program.clone(),
        why,
    };
    let code = match &finished.end {
        End::Cancelled => return Some(AskError::Cancelled),
        End::TimedOut => return Some(AskError::timed_out(tier, ask.limit)),
        End::CouldNotStart(why) => return Some(not_started(worker, why)),
        End::Signalled(signal) => return Some(crashed(format!("it was ended by signal {signal}"))),
        End::Exited(code) => *code,
    };
    if seen.results == 0 {
        return Some(without_result(worker, finished, seen, code));
    }
    if seen.results > 1 {
        return Some(AskError::Malformed {
            model,
            why: format!("it gave {} results", seen.results),
        });
    }
    let subtype = result["subtype"].as_str().unwrap_or_default();
    if subtype.starts_with("error") {
        return Some(gave_up(worker, result, subtype, model));
    }
    if result["is_error"].as_bool() != Some(false) {
        return Some(api_error(worker, result, tier));
    }
    if result["num_turns"].as_u64().unwrap_or_default() == 0 {
        return Some(AskError::NotAsked {
            said: said(worker, result),
        });
    }
    if code != 0 {
        return Some(crashed(format!("exit code {code} after a result")));
    }
    if let Some(answered) = other_model(result, &tier.model.id) {
        return Some(AskError::OtherModel {
            backend: worker.backend.clone(),
            model,
            answered,
        });
    }
    match &result["structured_output"] {
        Value::Object(_) => None,
        Value::Null => Some(AskError::Malformed {
            model,
            why: "it ended without its structured answer".into(),
        }),
        _ => Some(AskError::Malformed {
            model,
            why: "its structured answer is no object".into(),
        }),
    }
}

fn not_started(worker: &Worker, why: &StartError) -> AskError {
    match why {
        StartError::NoDirectory(_) => AskError::NotAsked {
            said: why.to_string(),
        },
        _ => AskError::NoProgram {
            backend: worker.backend.clone(),
            why: why.to_string(),
        },
    }
}

/// It refuses bad arguments with a line on stderr, before it says anything on stdout.
fn without_result(
    worker: &Worker,
    finished: &FinishedProcess,
    seen: &SeenStream,
    code: i32,
) -> AskError {
    let complaint = complaint(&finished.stderr.text());
    let complaint = said::said(&complaint, &worker.secrets);
    if !seen.began && (1..128).contains(&code) && !complaint.is_empty() {
        return AskError::CallRefused {
            program: worker.program.clone(),
            said: complaint,
        };
    }
    let mut why = match code {
        // So shells and the program itself report a signal.
        129..=159 => format!("it was ended by signal {}", code - 128),
        _ => format!("exit code {code} and no result"),
    };
    if seen.missed > 0 {
        why = format!(
            "{why}, but {} too long to be read",
            words::count(seen.missed, "line")
        );
    }
    if !complaint.is_empty() {
        why = format!("{why}: {complaint}");
    }
    AskError::Crashed {
        program: worker.program.clone(),
        why,
    }
}

/// Of much text (it may print its own source first) the line that says what is wrong.
fn complaint(stderr: &str) -> String {
    let lines = || {
        stderr
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
    };
    let found = lines().find(|line| line.len() < 400 && line.to_lowercase().starts_with("error"));
    found
        .or_else(|| lines().rfind(|line| line.len() < 400))
        .or_else(|| lines().next_back())
        .unwrap_or_default()
        .into()
}

fn gave_up(worker: &Worker, result: &Value, subtype: &str, model: String) -> AskError {
    let errors: Vec<_> = result["errors"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let errors = said::said(&errors.join("; "), &worker.secrets);
    match subtype {
        "error_max_turns" => {
            // It counts the turn that it no longer took.
            let turns = result["num_turns"].as_u64().unwrap_or(1).saturating_sub(1);
            AskError::TurnsUsedUp {
                model,
                turns: u32::try_from(turns).unwrap_or(u32::MAX),
            }
        }
        "error_max_budget_usd" => AskError::BudgetUsedUp { model },
        "error_max_structured_output_retries" => AskError::Malformed {
            model,
            why: format!("its structured answer never fitted the schema: {errors}"),
        },
        _ => AskError::Crashed {
            program: worker.program.clone(),
            why: format!("{subtype}: {errors}"),
        },
    }
}

/// Called `success` by the program, with the failure in `is_error` and its text in `result`.
fn api_error(worker: &Worker, result: &Value, tier: &Tier) -> AskError {
    let (backend, model) = (worker.backend.clone(), tier.name.0.clone());
    let said = said(worker, result);
    let lower = said.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if result["stop_reason"] == "refusal" {
        return AskError::Declined { model, said };
    }
    if has(&["not logged in", "run /login"]) && worker.key.is_none() {
        return AskError::NotLoggedIn { backend, said };
    }
    if has(&[
        "prompt is too long",
        "input is too long",
        "request_too_large",
    ]) {
        return AskError::ContextTooLong { model, said };
    }
    if has(&["credit balance"]) {
        return AskError::NoCredit { backend, said };
    }
    match result["api_error_status"].as_u64() {
        Some(401 | 403) => match &worker.key {
            Some(key) => AskError::KeyRefused {
                backend,
                var: Some(key.var.clone()),
                said,
            },
            None => AskError::NotLoggedIn { backend, said },
        },
        Some(404) => AskError::UnknownModel {
            backend,
            model,
            id: tier.model.id.clone(),
            said,
        },
        Some(413) => AskError::ContextTooLong { model, said },
        Some(429) => AskError::RateLimited {
            backend,
            said,
            retry_after: None,
        },
        Some(400) => AskError::Unsupported { model, said },
        Some(status) => {
            let status = u16::try_from(status).unwrap_or_default();
            AskError::ServerFailed {
                backend,
                status,
                said,
                blame: FailureBlame::Model,
            }
        }
        None if has(&[
            "usage limit",
            "limit reached",
            "hit your limit",
            "rate limit",
            "rate_limit",
            "(429)",
        ]) =>
        {
            AskError::RateLimited {
                backend,
                said,
                retry_after: None,
            }
        }
        None if has(&["not logged in", "run /login", "api key"]) => AskError::KeyRefused {
            backend,
            var: worker.key.as_ref().map(|key| key.var.clone()),
            said,
        },
        None if has(&["overloaded", "(529)"]) => AskError::ServerFailed {
            backend,
            status: 529,
            said,
            blame: FailureBlame::Model,
        },
        // Without a word about the network it is a result that means nothing.
        None if !has(NO_CONNECTION) => {
            let why = match said.as_str() {
                "" => "its result reports an error without a word about it".into(),
                said => format!("its result reports an error: {said}"),
            };
            AskError::Malformed { model, why }
        }
        None => {
            let address = worker.base_url.as_deref().and_then(crate::http::shown);
            AskError::Unreachable {
                backend,
                address: address.unwrap_or_else(|| AskError::ITS_API.into()),
                why: said,
            }
        }
    }
}

/// How the program speaks of an API that it cannot reach.
const NO_CONNECTION: &[&str] = &[
    "connect",
    "network",
    "fetch failed",
    "econn",
    "enotfound",
    "eai_again",
    "etimedout",
    "timed out",
    "timeout",
    "socket",
    "certificate",
    "proxy",
    "dns",
];

fn said(worker: &Worker, result: &Value) -> String {
    said::said(
        result["result"].as_str().unwrap_or_default(),
        &worker.secrets,
    )
}

/// Money and tokens; `usage` of the result lags behind, so it is not read.
fn usage(result: &Value, finished: &FinishedProcess, seen: &SeenStream) -> Usage {
    if result.is_null() {
        let never_ran = matches!(finished.end, End::CouldNotStart(_))
            || (!seen.began && finished.end != End::TimedOut);
        return if never_ran && finished.end != End::Cancelled {
            Usage::NOTHING
        } else {
            Usage::default()
        };
    }
    let models = result["modelUsage"].as_object();
    let sum = |fields: &[&str]| {
        let counts = |m: &Value| {
            fields
                .iter()
                .filter_map(|f| m[*f].as_u64())
                .fold(0, u64::saturating_add)
        };
        models.map(|models| models.values().map(counts).fold(0, u64::saturating_add))
    };
    Usage {
        tokens_in: sum(&[
            "inputTokens",
            "cacheReadInputTokens",
            "cacheCreationInputTokens",
        ]),
        tokens_out: sum(&["outputTokens"]),
        cost_usd: result["total_cost_usd"].as_f64(),
    }
    .plausible()
}

/// The name of the model that did most of it, without a suffix such as `[1m]`.
fn answered(result: &Value, asked: &str) -> Option<String> {
    let models = result["modelUsage"].as_object()?;
    let named = models.keys().find(|name| is_same(asked, bare(name)));
    let most = || {
        models
            .iter()
            .max_by_key(|(_, m)| m["outputTokens"].as_u64())
            .map(|(name, _)| name)
    };
    named.or_else(most).map(|name| bare(name).to_owned())
}

/// Who answered, if none of the models used is the one that was asked for. Small helpers of the program beside it are
/// its own affair.
fn other_model(result: &Value, asked: &str) -> Option<String> {
    // These leave the choice to the program.
    if ["default", "best", "opusplan"].contains(&bare(asked)) {
        return None;
    }
    let answered = answered(result, asked)?;
    if is_same(asked, &answered) {
        None
    } else {
        Some(answered)
    }
}

/// `sonnet` and `claude-sonnet-4-6` name `claude-sonnet-4-6-20260101`, and so does its name at another provider.
fn is_same(asked: &str, answered: &str) -> bool {
    let asked = bare(asked).rsplit('/').next().unwrap_or_default();
    !asked.is_empty() && answered.contains(asked)
}

fn bare(model: &str) -> &str {
    model.split('[').next().unwrap_or_default()
}

fn denials(result: &Value) -> Option<String> {
    let denied = result["permission_denials"]
        .as_array()
        .filter(|denied| !denied.is_empty())?;
    let mut names: Vec<_> = denied
        .iter()
        .filter_map(|d| d["tool_name"].as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    let names = names.join(", ");
    let times = words::count(denied.len(), "tool call");
    Some(format!(
        "{times} of the worker denied: {}",
        words::cut_end(&words::plain(&names), 200)
    ))
}
