//! `tdd_green` for several tests: those that are named, or all that are red now. Each file is a green
//! of its own, with its own proof and log entry; together they share a budget and are one call for
//! `undo`. The first that fails ends it; those before it are kept.

use std::path::Path;

use serde_json::{Value, json};

use super::call;
use super::cycle::{CycleTies, begin_cycle};
use super::params::{GreenParams, TddRequest, TestPaths};
use crate::{App, Call};
use supervisor_engine::CallResult;
use supervisor_engine::archive::archive;
use supervisor_engine::result::Status;

/// More files belong in several calls.
const MAX_FILES: usize = 20;

/// Runs one call. Errors are reported in the result.
pub(super) async fn run(app: &App, params: GreenParams, call: &Call) -> CallResult {
    let named = params
        .test_path
        .as_ref()
        .map(TestPaths::list)
        .unwrap_or_default();
    if named.len() == 1 || params.check.is_some() || params.dry_run {
        return call::run(app, params.into(), call).await;
    }
    if named.len() > MAX_FILES {
        let why = format!("test_path: {} are more than {MAX_FILES} files", named.len());
        return crate::reply::failed("tdd_green", why);
    }
    let root = Path::new(&params.project_root);
    let ties = match begin_cycle(app, "tdd_green", &params.common(), root) {
        Ok(ties) => ties,
        Err(why) => return crate::reply::failed("tdd_green", why),
    };
    let mut all: Vec<CallResult> = Vec::new();
    for n in 0..MAX_FILES {
        let test_path = match (named.as_slice(), n) {
            ([], _) => None,
            (named, n) if n < named.len() => Some(TestPaths::One(named[n].clone())),
            _ => break,
        };
        let request = request(&params, test_path, &ties);
        let (listener, stop) = (&call.progress, &call.stop);
        let result = call::run_in_cycle(app, request, listener, stop, ties.context.clone()).await;
        // What is left was not asked of a model, such as tests that were red with `HEAD` too.
        let is_over = named.is_empty() && n > 0 && result.more.attempts.is_empty();
        if is_over && result.status == Status::Error {
            break;
        }
        let goes_on = result.status == Status::Pass
            && (!named.is_empty() || !result.more.details["other_failures"].is_null());
        all.push(result);
        if !goes_on {
            break;
        }
    }
    match all.len() {
        0 | 1 => all.remove(0),
        _ => archive(&ties.environment.state, merged(all)).await,
    }
}

fn request(params: &GreenParams, test_path: Option<TestPaths>, ties: &CycleTies) -> TddRequest {
    GreenParams {
        test_path,
        session_id: Some(ties.session.clone()),
        ..params.clone()
    }
    .into()
}

/// One result for all of them: that of the last, with what the others add.
fn merged(all: Vec<CallResult>) -> CallResult {
    let steps: Vec<Value> = all
        .iter()
        .map(|one| {
            json!({"status": one.status, "verified": one.verified, "message": one.message,
                "model_used": one.model_used, "full_result": one.more.full_result})
        })
        .collect();
    let passed = all.iter().filter(|one| one.status == Status::Pass).count();
    let messages: Vec<&str> = all.iter().map(|one| one.message.as_str()).collect();
    let mut message = messages.join("; ");
    if passed < all.len() {
        let last = messages.last().copied().unwrap_or_default();
        message = format!("{passed} of {} are green and kept; {last}", all.len());
    }
    let verified = all.iter().all(|one| one.verified);
    let mut results = all.into_iter();
    let mut whole = results
        .next()
        .unwrap_or_else(|| crate::reply::failed("tdd_green", String::new()));
    for one in results {
        let (mut before, after) = (whole.more, one.more);
        before.attempts.extend(after.attempts.clone());
        for file in &after.files_changed {
            if !before.files_changed.contains(file) {
                before.files_changed.push(file.clone());
            }
        }
        before.diff += &after.diff;
        before.kept_in.extend(after.kept_in.clone());
        before.cost_usd = match (before.cost_usd, after.cost_usd) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or_default() + b.unwrap_or_default()),
        };
        before.duration_ms =
            Some(before.duration_ms.unwrap_or_default() + after.duration_ms.unwrap_or_default());
        before.gates = after.gates;
        before.details = after.details;
        before.next = after.next;
        whole = CallResult {
            more: before,
            ..one
        };
    }
    whole.more.full_result.clear();
    whole.more.diff_path.clear();
    if whole.more.details.is_null() {
        whole.more.details = json!({});
    }
    whole.more.details["steps"] = json!(steps);
    CallResult {
        message,
        verified,
        ..whole
    }
}
