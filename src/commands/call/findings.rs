//! The findings of a review for code scanning (SARIF) and as a comment (Markdown).

use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use supervisor_engine::result::CallResult;
use supervisor_prove::{SarifLog, escape_markdown};
use supervisor_text::words;

/// A finding as `review` reports it.
#[derive(Deserialize)]
struct Finding {
    severity: String,
    file: String,
    line: usize,
    end_line: Option<usize>,
    #[serde(default)]
    rule: String,
    why: String,
    #[serde(default)]
    fix: String,
}

fn findings(answer: &CallResult) -> Vec<Finding> {
    let all = answer.more.details["findings"].as_array();
    let read = |one: &Value| Finding::deserialize(one).ok();
    all.into_iter().flatten().filter_map(read).collect()
}

pub(super) fn sarif(answer: &CallResult) -> Value {
    let properties = json!({"status": answer.status, "message": answer.message});
    let mut log = SarifLog::new("supervisor review", env!("CARGO_PKG_VERSION"), properties);
    for finding in findings(answer) {
        let rule = match finding.rule.as_str() {
            "" => "review",
            rule => rule,
        };
        let level = match finding.severity.as_str() {
            "critical" => "error",
            "warning" => "warning",
            _ => "note",
        };
        let text = match finding.fix.as_str() {
            "" => finding.why,
            fix => format!("{} Fix: {fix}", finding.why),
        };
        let end = finding.end_line.unwrap_or(finding.line);
        let place = (Path::new(&finding.file), finding.line, end);
        log.add(rule, level, &text, Some(place));
    }
    log.into_json()
}

pub(super) fn markdown(answer: &CallResult) -> String {
    let (status, message) = (json!(answer.status), escape_markdown(&answer.message));
    let mut text = format!("**{}**: {message}\n", status.as_str().unwrap_or_default());
    let findings = findings(answer);
    if !findings.is_empty() {
        text += "\n| | where | what | fix |\n| --- | --- | --- | --- |\n";
    }
    for finding in findings {
        let [severity, file, why, fix] =
            [&finding.severity, &finding.file, &finding.why, &finding.fix]
                .map(|t| escape_markdown(t));
        text += &format!(
            "| {severity} | `{file}:{}` | {why} | {fix} |\n",
            finding.line
        );
    }
    let unseen = answer.more.details["coverage"].as_array();
    let unseen = unseen
        .into_iter()
        .flatten()
        .filter(|file| file["read"] == "no");
    for file in unseen {
        let [name, why] = [&file["file"], &file["note"]]
            .map(|text| escape_markdown(text.as_str().unwrap_or_default()));
        text += &format!("\nNot reviewed: `{name}` {why}\n");
    }
    words::plain(&text).into_owned()
}
