//! Renders logged calls: one line per call of a session, or one call with all its attempts.

use std::fmt::Write as _;

use crate::commands::console::Paint;
use supervisor_engine::session::detail::LoggedCall;
use supervisor_engine::session::{RecordedOutcome, SessionLog};
use supervisor_engine::{Attempt, Cause};
use supervisor_text::words;
use supervisor_text::words::{cut_end, plain};

/// Maximum bytes shown of one argument.
const MAX_ARGUMENT_BYTES: usize = 2_000;

/// One line per call.
pub(super) fn outline(calls: &[LoggedCall], paint: Paint, width: usize) -> String {
    let mut text = String::new();
    for call in calls {
        let entry = call.entry();
        let status = paint_status(paint, &call.record.outcome);
        let head = format!(
            "{:>3}  {}  {}",
            call.index,
            format_time(&entry.timestamp),
            entry.tool
        );
        let message = entry.message.lines().next().unwrap_or_default();
        let message = cut_end(message, width.saturating_sub(head.len() + 9).max(30));
        let _ = writeln!(
            text,
            "{:>3}  {}  {} {status}  {}",
            call.index,
            format_time(&entry.timestamp),
            plain(&entry.tool),
            plain(&message)
        );
    }
    text + &paint.dim("`supervisor log show SESSION NUMBER` shows one call whole") + "\n"
}

/// Everything the log has about one call.
pub(super) fn full(
    log: &SessionLog,
    call: &LoggedCall,
    with_prompts: bool,
    paint: Paint,
) -> String {
    let entry = call.entry();
    let mut text = format!(
        "{} {}  {}\n",
        paint.bold(&format!("{} · {}", call.citation(), entry.tool)),
        paint_status(paint, &call.record.outcome),
        plain(&entry.message)
    );
    for (name, value) in [
        ("project", entry.project_root.as_str()),
        ("file", &entry.file_path),
        ("model", &entry.model_used),
        ("cause", entry.cause.map_or("", Cause::word)),
        ("ended", &entry.timestamp),
        ("call", &entry.call),
    ] {
        if !value.is_empty() {
            let _ = writeln!(
                text,
                "{}  {}",
                paint.dim(&format!("{name:<8}")),
                plain(value)
            );
        }
    }
    let _ = writeln!(
        text,
        "{}  {}",
        paint.dim("took    "),
        seconds(entry.duration_ms)
    );
    for (name, value) in entry.input.as_object().into_iter().flatten() {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        let is_redundant = name == "project_root"
            || name == "session_id"
            || matches!(value.as_str(), "" | "false" | "[]" | "null");
        if !is_redundant {
            section(&mut text, paint, name, &cut_end(&value, MAX_ARGUMENT_BYTES));
        }
    }
    for attempt in &entry.attempts {
        text += &one_attempt(log, attempt, with_prompts, paint);
    }
    if entry.attempts.is_empty() {
        text += "\nno model was asked\n";
    }
    text + "\n"
}

fn one_attempt(log: &SessionLog, attempt: &Attempt, with_prompts: bool, paint: Paint) -> String {
    let cause = attempt.cause.map_or("", Cause::word);
    let painted = if attempt.cause == Some(Cause::Accepted) {
        paint.good(cause)
    } else {
        paint.bad(cause)
    };
    let tokens = |n: Option<u64>| n.map_or("?".to_owned(), |n| n.to_string());
    let cost = attempt
        .cost_usd
        .map_or(String::new(), |usd| format!(", {usd:.4} USD"));
    let mut text = format!(
        "\n{} {painted}  {} ({}), {}, {} tokens in, {} out{cost}\n",
        paint.bold(&format!("attempt {}", attempt.attempt)),
        plain(&attempt.model),
        attempt.tier.word(),
        seconds(attempt.duration_ms),
        tokens(attempt.tokens_in),
        tokens(attempt.tokens_out),
    );
    section(&mut text, paint, "why", &attempt.feedback);
    let exchanges = log.exchanges(attempt);
    for (n, exchange) in exchanges.iter().enumerate() {
        let number = if exchanges.len() > 1 {
            format!(" {}", n + 1)
        } else {
            String::new()
        };
        if with_prompts {
            section(
                &mut text,
                paint,
                &format!("rules{number}"),
                exchange.rules.as_deref().unwrap_or_default(),
            );
            section(
                &mut text,
                paint,
                &format!("asked{number}"),
                exchange.prompt.as_deref().unwrap_or_default(),
            );
        }
        match &exchange.answer {
            Some(answer) => section(&mut text, paint, &format!("answered{number}"), answer),
            None if attempt.exchange[n].answer.is_some() => {
                section(
                    &mut text,
                    paint,
                    &format!("answered{number}"),
                    "(no longer kept)",
                );
            }
            None => {}
        }
    }
    if exchanges.is_empty() {
        section(&mut text, paint, "answered", &attempt.output_summary);
    }
    if let Some(diff) = log.kept_diff(attempt) {
        let _ = write!(
            text,
            "  {}\n{}\n",
            paint.dim("change"),
            indented(&paint.diff(&diff))
        );
    }
    section(&mut text, paint, "tests", &attempt.runner_output);
    text
}

fn section(text: &mut String, paint: Paint, title: &str, body: &str) {
    let body = body.trim_end();
    if !body.trim().is_empty() {
        let _ = write!(text, "  {}\n{}\n", paint.dim(title), indented(&plain(body)));
    }
}

fn indented(text: &str) -> String {
    text.lines()
        .map(|line| format!("    {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

fn paint_status(paint: Paint, outcome: &RecordedOutcome) -> String {
    match outcome {
        RecordedOutcome::Pass => paint.good("pass"),
        RecordedOutcome::Fail => paint.warning("fail"),
        RecordedOutcome::Error => paint.bad("error"),
        RecordedOutcome::Skipped => paint.dim("skip"),
        RecordedOutcome::Other(word) => plain(word).into_owned(),
    }
}

fn format_time(timestamp: &str) -> String {
    plain(timestamp.get(..16).unwrap_or(timestamp)).replace('T', " ")
}

fn seconds(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        _ => words::count(usize::try_from(ms / 1_000).unwrap_or(usize::MAX), "second"),
    }
}
