//! Turns a finished run into an answer or an error. Neither the exit code nor `subtype` is reliable
//! alone. A run succeeds if it has exactly one result, without an error, of at least one turn, with
//! a structured answer, and exit code 0.

use serde_json::Value;

use super::Program;
use super::stream::StreamState;
use crate::{Ask, AskError, AskResult, Failure, FailureBlame, Reply, Usage, extract, remote_text};
use supervisor_process::{End, FinishedProcess, StartError};
use supervisor_settings::{Tier, Worker};
use supervisor_text::words;

/// Maximum bytes of the final text that are kept.
const MAX_RAW_BYTES: usize = 64 * 1024;
/// The sign of a chat template without tools, or of a model that writes its calls as text.
const NO_TOOL_CALLED: &str = "it called no tool: its server may not offer tools to this model";

pub(super) fn judge(
    worker: &Program,
    finished: &FinishedProcess,
    seen: &StreamState,
    ask: &Ask,
    tier: &Tier,
    mut notes: Vec<String>,
) -> AskResult {
    let null = Value::Null;
    let result = seen.result.as_ref().unwrap_or(&null);
    notes.extend(denials(result));
    if seen.retries > 0 {
        notes.push(format!(
            "its API failed {} on the way",
            words::count(seen.retries as usize, "time")
        ));
    }
    let mut usage = usage(result, finished, seen);
    let is_own = tier.backend.runs_own_models();
    if is_own && usage != Usage::ZERO {
        // What the program believes that other models cost is made up.
        usage.cost_usd = tier.model.price(usage.tokens_in, usage.tokens_out);
    }
    let is_text = tier.worker() == Worker::Text;
    let detail = if is_text || is_own {
        &seen.text
    } else {
        result["result"].as_str().unwrap_or_default()
    };
    let raw = worker
        .redactor
        .redact(&words::cut_middle(detail, MAX_RAW_BYTES))
        .into_owned();
    let failed = failure(worker, finished, seen, result, ask, tier);
    let is_edit = is_own && !is_text && ask.wants_text();
    let body = match failed {
        // Whatever such a run says at its end, tests judge the tree that it left.
        Some(why) if is_edit && seen.tools > 0 && !is_ended_by_us(&why) => {
            notes.push(format!("its run ended with an error: {why}"));
            Ok(Value::Null)
        }
        Some(why) => Err(why),
        None if is_edit => {
            if seen.tools == 0 {
                notes.push(NO_TOOL_CALLED.into());
            }
            Ok(Value::Null)
        }
        None if is_text || is_own => text_body(&seen.text, result, ask, tier),
        None => structured_body(result, tier),
    };
    let body = match body {
        Ok(body) => body,
        Err(why) => {
            let answer = match why {
                AskError::Malformed { .. } => raw,
                // It printed something else than the envelope asked for.
                AskError::Crashed { .. } if seen.results == 0 => {
                    let printed = finished.stdout.text();
                    let printed = words::cut_middle(printed.trim(), MAX_RAW_BYTES);
                    worker.redactor.redact(&printed).into_owned()
                }
                _ => String::new(),
            };
            return Err(Box::new(Failure {
                why,
                usage,
                notes,
                answer,
            }));
        }
    };
    Ok(Reply {
        body,
        raw,
        model_answered: answering_model(result, &tier.model.id)
            .unwrap_or_else(|| tier.model.id.clone()),
        usage,
        notes,
    })
}

fn is_ended_by_us(why: &AskError) -> bool {
    matches!(
        why,
        AskError::Cancelled | AskError::TimedOut { .. } | AskError::NoProgram { .. }
    )
}

fn failure(
    worker: &Program,
    finished: &FinishedProcess,
    seen: &StreamState,
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
        return Some(missing_result(worker, finished, seen, code));
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
            detail: result_text(worker, result),
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
    None
}

fn structured_body(result: &Value, tier: &Tier) -> Result<Value, AskError> {
    let why = match &result["structured_output"] {
        Value::Object(_) => return Ok(result["structured_output"].clone()),
        Value::Null => "it ended without its structured answer",
        _ => "its structured answer is not an object",
    };
    Err(AskError::Malformed {
        model: tier.name.0.clone(),
        why: why.into(),
    })
}

/// The answer of a text worker. The program treats a paused turn as a finished one.
fn text_body(text: &str, result: &Value, ask: &Ask, tier: &Tier) -> Result<Value, AskError> {
    let malformed = |why: String| AskError::Malformed {
        model: tier.name.0.clone(),
        why,
    };
    if result["stop_reason"] == "pause_turn" {
        return Err(malformed("it paused before its answer was complete".into()));
    }
    if ask.wants_text() {
        return Ok(Value::String(text.to_owned()));
    }
    extract::object(text, &extract::required(&ask.schema))
        .map(Value::Object)
        .map_err(|why| malformed(why.to_string()))
}

fn not_started(worker: &Program, why: &StartError) -> AskError {
    match why {
        StartError::NoDirectory(_) => AskError::NotAsked {
            detail: why.to_string(),
        },
        StartError::NoSandbox { why, .. } if worker.has_private_network => {
            AskError::Misconfigured {
                setting: format!("backends.{}.sandbox", worker.backend),
                why: format!(
                    "a program without a network cannot be started here: {why}; set it to \"off\" to run this one \
                     without a sandbox and with the network of this machine"
                ),
            }
        }
        _ => AskError::NoProgram {
            backend: worker.backend.clone(),
            why: why.to_string(),
        },
    }
}

/// The program reports bad arguments on stderr, before it prints anything on stdout.
fn missing_result(
    worker: &Program,
    finished: &FinishedProcess,
    seen: &StreamState,
    code: i32,
) -> AskError {
    let error_line = error_line(&finished.stderr.text());
    let error_line = remote_text::sanitize(&error_line, &worker.redactor);
    if !seen.began && (1..128).contains(&code) && !error_line.is_empty() {
        return AskError::CallRefused {
            program: worker.program.clone(),
            detail: error_line,
        };
    }
    let mut why = match code {
        // Shells and the program itself report a signal this way.
        129..=159 => format!("it was ended by signal {}", code - 128),
        _ => format!("exit code {code} and no result"),
    };
    if seen.missed > 0 {
        why = format!(
            "{why}, but {} too long to be read",
            words::count(seen.missed, "line")
        );
    }
    if !error_line.is_empty() {
        why = format!("{why}: {error_line}");
    }
    AskError::Crashed {
        program: worker.program.clone(),
        why,
    }
}

/// Finds the line that names the error; the program may print its own source first.
fn error_line(stderr: &str) -> String {
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

fn gave_up(worker: &Program, result: &Value, subtype: &str, model: String) -> AskError {
    let errors: Vec<_> = result["errors"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let errors = remote_text::sanitize(&errors.join("; "), &worker.redactor);
    match subtype {
        "error_max_turns" => {
            // The program counts the turn that it no longer took.
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

/// The program calls these `success`, sets `is_error` and puts the text into `result`.
fn api_error(worker: &Program, result: &Value, tier: &Tier) -> AskError {
    let (backend, model) = (worker.backend.clone(), tier.name.0.clone());
    let detail = result_text(worker, result);
    let lower = detail.to_lowercase();
    let mentions = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    match result["stop_reason"].as_str() {
        Some("refusal") => return AskError::Declined { model, detail },
        Some("max_tokens") => return AskError::AnswerCut { model },
        Some("model_context_window_exceeded") => {
            return AskError::ContextTooLong { model, detail };
        }
        _ => {}
    }
    if mentions(&["not logged in", "run /login"]) && worker.key.is_none() {
        return AskError::NotLoggedIn { backend, detail };
    }
    if mentions(&[
        "prompt is too long",
        "input is too long",
        "request_too_large",
    ]) {
        return AskError::ContextTooLong { model, detail };
    }
    if mentions(&["credit balance"]) {
        return AskError::NoCredit { backend, detail };
    }
    match result["api_error_status"].as_u64() {
        Some(401 | 403) => match &worker.key {
            Some(key) => AskError::KeyRefused {
                backend,
                var: Some(key.var.clone()),
                detail,
            },
            None if worker.base_url.is_some() => AskError::NoKey {
                backend,
                var: None,
                detail,
            },
            None => AskError::NotLoggedIn { backend, detail },
        },
        Some(404) => AskError::UnknownModel {
            backend,
            model,
            id: tier.model.id.clone(),
            detail,
        },
        Some(413) => AskError::ContextTooLong { model, detail },
        Some(429) => AskError::RateLimited {
            backend,
            detail,
            retry_after: None,
        },
        Some(400) => AskError::Unsupported { model, detail },
        Some(status) => {
            let status = u16::try_from(status).unwrap_or_default();
            AskError::ServerFailed {
                backend,
                status,
                detail,
                blame: FailureBlame::Model,
            }
        }
        None if mentions(&[
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
                detail,
                retry_after: None,
            }
        }
        None if mentions(&["not logged in", "run /login", "api key"]) => AskError::KeyRefused {
            backend,
            var: worker.key.as_ref().map(|key| key.var.clone()),
            detail,
        },
        None if mentions(&["overloaded", "(529)"]) => AskError::ServerFailed {
            backend,
            status: 529,
            detail,
            blame: FailureBlame::Model,
        },
        // If the text does not mention the network, the result is malformed.
        None if !mentions(NO_CONNECTION) => {
            let why = match detail.as_str() {
                "" => "its result reports an error without a word about it".into(),
                detail => format!("its result reports an error: {detail}"),
            };
            AskError::Malformed { model, why }
        }
        None => {
            let address = worker
                .base_url
                .as_deref()
                .and_then(crate::http::displayable);
            AskError::Unreachable {
                backend,
                address: address.unwrap_or_else(|| AskError::ITS_API.into()),
                why: detail,
            }
        }
    }
}

/// Words the program uses when it cannot reach its API.
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

fn result_text(worker: &Program, result: &Value) -> String {
    remote_text::sanitize(
        result["result"].as_str().unwrap_or_default(),
        &worker.redactor,
    )
}

/// Reads cost and tokens. The result's `usage` lags behind, so it is not read.
fn usage(result: &Value, finished: &FinishedProcess, seen: &StreamState) -> Usage {
    if result.is_null() {
        let never_ran = matches!(finished.end, End::CouldNotStart(_))
            || (!seen.began && finished.end != End::TimedOut);
        return if never_ran && finished.end != End::Cancelled {
            Usage::ZERO
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

/// The model that did most of the work, without a suffix such as `[1m]`.
fn answering_model(result: &Value, asked: &str) -> Option<String> {
    let models = result["modelUsage"].as_object()?;
    let named = models
        .keys()
        .find(|name| is_same_model(asked, strip_variant(name)));
    let most_used = || {
        models
            .iter()
            .max_by_key(|(_, m)| m["outputTokens"].as_u64())
            .map(|(name, _)| name)
    };
    named
        .or_else(most_used)
        .map(|name| strip_variant(name).to_owned())
}

/// The model that answered, if the requested one was not used at all. The program may use small
/// helper models beside it.
fn other_model(result: &Value, asked: &str) -> Option<String> {
    // These names leave the choice to the program.
    if ["default", "best", "opusplan"].contains(&strip_variant(asked)) {
        return None;
    }
    let answered = answering_model(result, asked)?;
    if is_same_model(asked, &answered) {
        None
    } else {
        Some(answered)
    }
}

/// `sonnet` and `claude-sonnet-4-6` both match `claude-sonnet-4-6-20260101`, also with a provider's
/// prefix.
fn is_same_model(asked: &str, answered: &str) -> bool {
    let asked = strip_variant(asked).rsplit('/').next().unwrap_or_default();
    !asked.is_empty() && answered.contains(asked)
}

fn strip_variant(model: &str) -> &str {
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
