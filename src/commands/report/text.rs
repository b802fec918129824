//! Renders the report as text.

use std::cmp::Reverse;
use std::fmt::Write as _;
use std::path::Path;

use super::gather::ReportData;
use super::timeline::format_time;
use crate::commands::stats::table::{
    add_row, cost, dash, duration, money, name, render_table, share, table,
};
use supervisor_engine::Cause;
use supervisor_engine::session::Filter;
use supervisor_engine::session::stats::AnswerClass;
use supervisor_text::words::{count, cut_end, plain};

/// Maximum rows of each list.
const MAX_ROWS: usize = 8;

pub(super) fn render(data: &ReportData, directory: &Path) -> String {
    let mut out = String::new();
    if data.rows.is_empty() {
        let why = if data.filter == Filter::default() {
            format!(
                "No calls yet: {} holds no session log. Register the server with `claude mcp add supervisor -- supervisor`, \
                 let a tool work, and look again.",
                directory.display()
            )
        } else {
            "No calls match --since, --skill, --session or --project.".into()
        };
        let _ = writeln!(out, "{why}");
        write_unread(&mut out, data);
        return out;
    }
    let total = &data.total;
    let _ = writeln!(
        out,
        "{} in {}: {} passed, {} failed, {} without an answer",
        count(total.calls, "call"),
        count(data.sessions(), "session"),
        total.pass,
        total.fail,
        total.error + total.other
    );
    let both = &total.compared;
    if both.calls > 0 {
        let about = if total.top_tier.estimated > 0 {
            "about "
        } else {
            ""
        };
        let _ = writeln!(
            out,
            "{} spent, {about}{} by the top tier alone, over {} of them where both are known",
            money(both.cost_usd),
            money(both.top_tier_cost_usd),
            both.calls
        );
    }
    let width =
        terminal_size::terminal_size().map(|(terminal_size::Width(columns), _)| columns.max(60));
    let mut models = table(
        width,
        &[
            "model", "asked", "accepted", "rate", "median", "95 %", "cost",
        ],
    );
    for model in &data.models {
        let stats = &model.stats;
        add_row(
            &mut models,
            vec![
                name(&stats.model),
                stats.attempts.to_string(),
                stats.accepted.to_string(),
                share(stats.accept_rate),
                stats.median_ms.map_or_else(dash, duration),
                stats.p95_ms.map_or_else(dash, duration),
                cost(stats.cost_usd, stats.cost_unknown, stats.attempts),
            ],
        );
    }
    if !data.models.is_empty() {
        let _ = write!(out, "\n{}", render_table(&models));
    }
    let mut reasons: Vec<_> = data
        .reasons
        .iter()
        .filter(|one| matches!(one.class, AnswerClass::Rejected | AnswerClass::Undecided))
        .collect();
    reasons.sort_by_key(|reason| (Reverse(reason.times), &reason.pattern));
    if !reasons.is_empty() {
        let _ = writeln!(out, "\ncommonest reasons for rejection");
    }
    for reason in reasons.iter().take(MAX_ROWS) {
        let cause = reason.cause.map_or("escalated", Cause::word);
        let gate = if reason.gate.is_empty() {
            String::new()
        } else {
            format!(" {}:", name(&reason.gate))
        };
        let why = plain(&reason.pattern).replace(['\n', '\t'], " ");
        let _ = writeln!(
            out,
            "{:>5}  {cause}:{gate} {}",
            reason.times,
            cut_end(&why, 100)
        );
    }
    if !data.flaky.is_empty() {
        let _ = writeln!(out, "\nflaky tests");
    }
    for test in data.flaky.iter().take(MAX_ROWS) {
        let last = test
            .last_ms
            .map_or_else(dash, |ms| format_time(ms, "%Y-%m-%d"));
        let _ = writeln!(out, "{:>5}  {}, last {last}", test.times, name(&test.name));
    }
    out.push('\n');
    write_unread(&mut out, data);
    out +=
        "hint: `supervisor report --html report.html` writes the page with charts and every call\n";
    out
}

fn write_unread(out: &mut String, data: &ReportData) {
    if let Some(summary) = data.unread.summary() {
        let _ = writeln!(out, "Not counted: {summary}.");
    }
}
