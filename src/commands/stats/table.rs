//! The three tables of `stats`, and number formatting shared with other commands.

use comfy_table::presets::NOTHING;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};

use supervisor_engine::session::Stats;
use supervisor_engine::session::stats::{Calls, ModelStats, SkillStats};
use supervisor_text::words::{cut_middle, plain};

/// Longer names are cut in the middle.
const MAX_NAME_LEN: usize = 60;

/// Outcomes of each model's answers.
pub(super) fn answers(stats: &Stats, width: Option<u16>) -> String {
    let head = [
        "answers", "asked", "accepted", "rejected", "other", "errors", "rate",
    ];
    by_model(stats, width, head, |model| {
        [
            model.attempts.to_string(),
            model.accepted.to_string(),
            model.rejected.to_string(),
            model.other.to_string(),
            model.errors.to_string(),
            share(model.accept_rate),
        ]
    })
}

/// Time, tokens and cost of each model's answers.
pub(super) fn effort(stats: &Stats, width: Option<u16>) -> String {
    let head = ["effort", "median", "95 %", "warm", "tokens", "out", "cost"];
    by_model(stats, width, head, |model| {
        let tokens = |n| {
            if model.attempts == model.tokens_unknown {
                dash()
            } else {
                short(n)
            }
        };
        [
            model.median_ms.map_or_else(dash, duration),
            model.p95_ms.map_or_else(dash, duration),
            share(model.warm_share),
            tokens(model.tokens_in),
            tokens(model.tokens_out),
            match model.subscription {
                0 => cost(model.cost_usd, model.cost_unknown, model.attempts),
                _ => String::from("subscription"),
            },
        ]
    })
}

/// Outcomes and cost of calls, and what the top tier alone would have cost.
pub(super) fn calls(stats: &Stats, width: Option<u16>) -> String {
    let mut table = table(
        width,
        &[
            "calls",
            "all",
            "pass",
            "fail",
            "error",
            "cost",
            "top tier alone",
        ],
    );
    let row = call_row;
    for skill in &stats.skills {
        add_row(
            &mut table,
            row(name(&skill.skill), &skill.calls, attempts(skill)),
        );
    }
    if stats.skills.len() > 1 {
        add_row(
            &mut table,
            row(
                "together".into(),
                &stats.total,
                stats.skills.iter().map(attempts).sum(),
            ),
        );
    }
    render_table(&table)
}

/// The same for each project; empty if there is only one.
pub(super) fn projects(stats: &Stats, width: Option<u16>) -> String {
    if stats.projects.len() < 2 {
        return String::new();
    }
    let head = [
        "projects",
        "all",
        "pass",
        "fail",
        "error",
        "cost",
        "top tier alone",
    ];
    let mut table = table(width, &head);
    for project in &stats.projects {
        let shown = match project.project.as_str() {
            "" => dash(),
            path => name(path),
        };
        add_row(
            &mut table,
            call_row(shown, &project.calls, project.calls.calls),
        );
    }
    render_table(&table)
}

fn call_row(name: String, calls: &Calls, attempts: usize) -> Vec<String> {
    vec![
        name,
        calls.calls.to_string(),
        calls.pass.to_string(),
        calls.fail.to_string(),
        (calls.error + calls.other).to_string(),
        paid(calls, attempts),
        top_tier(calls),
    ]
}

/// Dollars, and tokens of what a subscription paid: `$0.10 +12k tokens`.
fn paid(calls: &Calls, attempts: usize) -> String {
    let tokens = calls.subscription_tokens;
    let dollars = cost(calls.cost_usd, calls.cost_unknown, attempts);
    match tokens {
        0 => dollars,
        _ if calls.cost_usd == 0.0 && calls.cost_unknown == 0 => {
            format!("{} tokens", short(tokens))
        }
        _ => format!("{dollars} +{} tokens", short(tokens)),
    }
}

fn attempts(skill: &SkillStats) -> usize {
    skill.models.iter().map(|model| model.attempts).sum()
}

fn by_model<const N: usize, const M: usize>(
    stats: &Stats,
    width: Option<u16>,
    head: [&str; N],
    figures: impl Fn(&ModelStats) -> [String; M],
) -> String {
    let mut table = table(width, &head);
    for skill in stats.skills.iter().filter(|skill| !skill.models.is_empty()) {
        add_row(&mut table, vec![name(&skill.skill)]);
        for model in &skill.models {
            let mut row = vec![format!("  {}", name(&model.model))];
            row.extend(figures(model));
            add_row(&mut table, row);
        }
    }
    render_table(&table)
}

/// Creates a table. Without a terminal (`width` is `None`) it is as wide as it needs to be.
pub(crate) fn table(width: Option<u16>, head: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING);
    match width {
        Some(width) => table
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(width),
        None => table.set_content_arrangement(ContentArrangement::Disabled),
    };
    table.set_header(
        head.iter()
            .enumerate()
            .map(|(n, title)| aligned(n, (*title).to_owned())),
    );
    for (n, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, if n + 1 < head.len() { 2 } else { 0 }));
    }
    table
}

pub(crate) fn add_row(table: &mut Table, row: Vec<String>) {
    table.add_row(
        row.into_iter()
            .enumerate()
            .map(|(n, text)| aligned(n, text)),
    );
}

/// Aligns the first column left and the others right.
fn aligned(column: usize, text: String) -> Cell {
    let side = if column == 0 {
        CellAlignment::Left
    } else {
        CellAlignment::Right
    };
    Cell::new(text).set_alignment(side)
}

pub(crate) fn render_table(table: &Table) -> String {
    table
        .lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect()
}

/// Makes a name from the log safe to print.
pub(crate) fn name(name: &str) -> String {
    let shown = plain(name).replace(['\n', '\t'], " ");
    if shown.trim().is_empty() {
        "(no name)".into()
    } else {
        cut_middle(&shown, MAX_NAME_LEN).replace('\n', " ")
    }
}

pub(crate) fn dash() -> String {
    "–".into()
}

/// `84 %`, or a dash for `None`. Rounded down, so that only a full share is 100 % and 29.7 % stays
/// below 30 %.
pub(crate) fn share(share: Option<f64>) -> String {
    share.map_or_else(dash, |share| {
        format!("{:.0} %", (share * 100.0 + 1e-9).floor())
    })
}

/// `850 ms`, `4.2 s`, `192 s`, `34 min`, `2.1 h`.
pub(crate) fn duration(ms: u64) -> String {
    let s = ms as f64 / 1000.0;
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..9_950 => format!("{s:.1} s"),
        9_950..999_500 => format!("{s:.0} s"),
        999_500..5_970_000 => format!("{:.0} min", s / 60.0),
        _ => format!("{:.1} h", s / 3600.0),
    }
}

/// `950`, `9.6k`, `124k`, `4.6M`.
pub(crate) fn short(n: u64) -> String {
    match n {
        0..1_000 => n.to_string(),
        1_000..9_950 => format!("{:.1}k", n as f64 / 1e3),
        9_950..999_500 => format!("{:.0}k", n as f64 / 1e3),
        _ => format!("{:.1}M", n as f64 / 1e6),
    }
}

/// `$1.84`; small sums with four places.
pub(crate) fn money(usd: f64) -> String {
    if usd != 0.0 && usd.abs() < 0.1 {
        format!("${usd:.4}")
    } else {
        format!("${usd:.2}")
    }
}

/// The known cost and how many attempts have none: `$1.84 +3?`.
pub(crate) fn cost(usd: f64, unknown: usize, attempts: usize) -> String {
    match unknown {
        _ if attempts == 0 => dash(),
        0 => money(usd),
        _ if unknown == attempts => "unknown".into(),
        _ => format!("{} +{unknown}?", money(usd)),
    }
}

/// The top tier's cost, counting unknowns by call; `about` if a part is estimated.
fn top_tier(calls: &Calls) -> String {
    let top = &calls.top_tier;
    if top.unknown == calls.calls {
        return "unknown".into();
    }
    let about = if top.estimated > 0 { "about " } else { "" };
    let rest = if top.unknown > 0 {
        format!(" +{}?", top.unknown)
    } else {
        String::new()
    };
    format!("{about}{}{rest}", money(top.cost_usd))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short_with_unit() {
        let durations = [
            0, 999, 1_000, 9_949, 9_950, 999_499, 999_500, 5_969_999, 5_970_000,
        ]
        .map(duration);
        assert_eq!(
            durations,
            [
                "0 ms", "999 ms", "1.0 s", "9.9 s", "10 s", "999 s", "17 min", "99 min", "1.7 h"
            ]
        );
        assert_eq!(
            [0, 999, 1_000, 9_949, 9_950, 999_499, 999_500].map(short),
            ["0", "999", "1.0k", "9.9k", "10k", "999k", "1.0M"]
        );
        assert_eq!(
            [0.0, 0.0042, 0.1, 1.844].map(money),
            ["$0.00", "$0.0042", "$0.10", "$1.84"]
        );
        assert_eq!(
            [Some(0.297), Some(0.3), Some(0.999), Some(1.0), None].map(share),
            ["29 %", "30 %", "99 %", "100 %", "–"]
        );
        assert_eq!(
            [cost(0.0, 0, 4), cost(1.5, 3, 4), cost(0.0, 4, 4)],
            ["$0.00", "$1.50 +3?", "unknown"]
        );
    }

    #[test]
    fn name_from_log_is_escaped() {
        assert_eq!(name("a\u{1b}[31m\nb"), "a\\u{1b}[31m b");
        assert_eq!(name(" "), "(no name)");
        assert!(name(&"x".repeat(5_000)).len() <= MAX_NAME_LEN);
    }
}
