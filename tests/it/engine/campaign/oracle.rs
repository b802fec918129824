//! What must hold after every case, whatever was drawn.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::case::FaultCase;
use super::faults::CANARY;
use super::stage::{Observation, Stage, in_time};
use crate::support::mcp_session::PROGRAM;
use crate::support::mcp_session::result_of;

/// The bar for the program as users build it.
const PEAK_KB: u64 = 100_000;
/// And for the one that was built with these tests, whose pages are larger where it is not optimised.
const DEBUG_PEAK_KB: u64 = if cfg!(debug_assertions) {
    160_000
} else {
    PEAK_KB
};

/// How a case ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CaseEnd {
    Accepted,
    Refused,
    /// Cancelled or killed before there was one.
    NoReply,
}

/// How the case ended, and everything that is wrong with it.
pub(super) fn examine(
    case: &FaultCase,
    stage: &Stage,
    seen: &Observation,
) -> (CaseEnd, Vec<String>) {
    let mut wrong = Vec::new();
    let told = seen.reply.as_ref().map(result_of);
    let sessions = stage.scenario.state.path().join("state/sessions");
    let mut log = log_lines(&sessions, &mut wrong);
    let has_pass = |log: &[Value]| log.iter().any(|entry| entry["final_status"] == "pass");
    if told.is_none() && !has_pass(&log) && stage.was_accepted() {
        // Killed past its commit point. The next server writes the line that is missing.
        stage.start_once_more();
        log = log_lines(&sessions, &mut wrong);
        if !has_pass(&log) {
            wrong.push("accepted work that no line of the log tells of".into());
        }
    }
    let logged_pass = has_pass(&log);
    let is_pass = |told: &Value| told["status"] == "pass";
    let end = match &told {
        Some(told) if is_pass(told) => CaseEnd::Accepted,
        Some(_) => CaseEnd::Refused,
        None if logged_pass => CaseEnd::Accepted,
        None => CaseEnd::NoReply,
    };
    reply_comes_in_time(case, seen, &mut wrong);
    if told.is_some() && log.len() != 1 {
        wrong.push(format!("{} log entries for one answered call", log.len()));
    }
    project_is_kept(case, seen, end, told.as_ref(), &mut wrong);
    for path in differences(&seen.before.outside.files, &seen.after.outside.files) {
        wrong.push(format!("changed outside: {}", path.display()));
    }
    wrong.extend(
        seen.left
            .iter()
            .map(|process| format!("still runs: {process}")),
    );
    no_secret_is_told(stage, seen, &mut wrong);
    let may_take = if std::env::var_os(PROGRAM).is_some() {
        PEAK_KB
    } else {
        DEBUG_PEAK_KB
    };
    if seen.peak_kb > may_take {
        wrong.push(format!("{} kB of memory", seen.peak_kb));
    }
    if !case.interruption.is_kill() && stage.scratch() > 0 {
        wrong.push(format!(
            "{} entries left in the directory for temporary files",
            stage.scratch()
        ));
    }
    (end, wrong)
}

fn reply_comes_in_time(case: &FaultCase, seen: &Observation, wrong: &mut Vec<String>) {
    if seen.took > in_time() {
        wrong.push(format!("took {:?}", seen.took));
    }
    if seen.replies > 1 {
        wrong.push(format!("{} replies", seen.replies));
    }
    if !case.interruption.is_kill() && seen.code != Some(0) {
        wrong.push(format!("the server ended with {:?}", seen.code));
    }
    if case.interruption.wants_reply() && seen.reply.is_none() {
        wrong.push("no reply".into());
    }
    if seen.stderr.contains("panicked") {
        wrong.push(format!("a panic: {}", seen.stderr));
    }
}

/// Equal to the byte unless accepted; then only what the result names is different.
fn project_is_kept(
    case: &FaultCase,
    seen: &Observation,
    end: CaseEnd,
    told: Option<&Value>,
    wrong: &mut Vec<String>,
) {
    let (before, after) = (&seen.before.project, &seen.after.project);
    let mut allowed: BTreeSet<&str> = BTreeSet::new();
    if end == CaseEnd::Accepted && case.tool != "review" {
        allowed.insert("code.py");
        // What tests write in place stays with accepted work, and the result names it.
        let lists = told.map(|told| [&told["files_changed"], &told["details"]["by_products"]]);
        let names = lists
            .into_iter()
            .flatten()
            .filter_map(Value::as_array)
            .flatten();
        allowed.extend(names.filter_map(Value::as_str));
    }
    // A call that was killed after it was logged has no result that could name what the tests left.
    let is_unnamed = |path: &Path| {
        end == CaseEnd::Accepted && told.is_none() && !before.files.contains_key(path)
    };
    for path in differences(&before.files, &after.files) {
        if !allowed.contains(path.to_string_lossy().as_ref()) && !is_unnamed(&path) {
            wrong.push(format!("differs in the project: {}", path.display()));
        }
    }
    if before.steering != after.steering {
        wrong.push("configuration or hooks of the repository differ".into());
    }
    if before.git != after.git {
        wrong.push("refs or index of the repository differ".into());
    }
    let is_view = told.is_some_and(|told| {
        told["sandbox"]
            .as_str()
            .is_some_and(|s| s.contains("private view"))
    });
    if is_view && end == CaseEnd::Refused && seen.before.stamps != seen.after.stamps {
        wrong.push("a file was touched although work was done in a private view".into());
    }
}

fn differences<V: PartialEq>(
    before: &std::collections::BTreeMap<PathBuf, V>,
    after: &std::collections::BTreeMap<PathBuf, V>,
) -> Vec<PathBuf> {
    let names: BTreeSet<&PathBuf> = before.keys().chain(after.keys()).collect();
    names
        .into_iter()
        .filter(|name| before.get(*name) != after.get(*name))
        .cloned()
        .collect()
}

/// Every line is whole JSON, and the last one ends.
fn log_lines(sessions: &Path, wrong: &mut Vec<String>) -> Vec<Value> {
    let mut entries = Vec::new();
    for file in fs::read_dir(sessions)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
    {
        if file.extension().is_none_or(|e| e != "jsonl") {
            continue;
        }
        let text = String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned();
        if !text.is_empty() && !text.ends_with('\n') {
            wrong.push("the log ends in the middle of a line".into());
        }
        for line in text.lines() {
            match serde_json::from_str::<Value>(line) {
                Ok(entry) => entries.push(entry),
                Err(error) => wrong.push(format!("a log line that is not JSON ({error}): {line}")),
            }
        }
    }
    entries
}

fn no_secret_is_told(stage: &Stage, seen: &Observation, wrong: &mut Vec<String>) {
    let mut told = vec![("stderr".to_owned(), seen.stderr.clone())];
    told.extend(
        seen.reply
            .iter()
            .chain(&seen.messages)
            .map(|m| ("stdout".to_owned(), m.to_string())),
    );
    told.extend(
        stage
            .gateway
            .asked()
            .into_iter()
            .map(|asked| ("what a model was asked".to_owned(), asked.body)),
    );
    for place in ["sessions", "results", "exchange"] {
        let mut dirs = vec![stage.scenario.state.path().join("state").join(place)];
        while let Some(dir) = dirs.pop() {
            for path in fs::read_dir(dir)
                .into_iter()
                .flatten()
                .flatten()
                .map(|entry| entry.path())
            {
                if path.is_dir() {
                    dirs.push(path);
                } else {
                    let text =
                        String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()).into_owned();
                    told.push((
                        format!("{place}/{}", path.file_name().unwrap().to_string_lossy()),
                        text,
                    ));
                }
            }
        }
    }
    for (place, text) in told {
        if let Some(at) = text.find(CANARY) {
            let before: String = text[..at].chars().rev().take(80).collect();
            wrong.push(format!(
                "a secret in {place} after `{}`",
                before.chars().rev().collect::<String>()
            ));
        }
    }
}
