//! The page for people: the tables, what they mean, what could not be counted, and advice.

use std::fmt::Write as _;
use std::path::Path;

use super::remedy::{Remedy, Step};
use super::{Advised, table};
use crate::session::stats::{ADVISED_BELOW, Calls, ENOUGH};
use crate::session::{Filter, Stats};
use crate::words::count;

/// Longest line of what is not a table.
const WIDTH: usize = 80;

pub(super) fn text(
    stats: &Stats,
    filter: &Filter,
    advised: &[Advised<'_>],
    directory: &Path,
    width: Option<u16>,
) -> String {
    let mut page = String::new();
    if stats.is_empty() {
        nothing(&mut page, filter, directory);
        unread(&mut page, stats);
        return page;
    }
    page += &head(stats);
    page += "\n\n";
    if stats.skills.iter().any(|skill| !skill.models.is_empty()) {
        page += &table::answers(stats, width);
        page += "\n";
        page += &table::effort(stats, width);
        page += "\n";
    }
    page += &table::calls(stats, width);
    page += "\n";
    for line in legend(stats) {
        paragraph(&mut page, &line);
    }
    unread(&mut page, stats);
    prices(&mut page, stats);
    for one in advised.iter().filter(|one| one.remedy.step != Step::Done) {
        page += "\n";
        advice(&mut page, one);
    }
    page
}

/// `312 calls in 14 sessions, 2026-01-02 to 2026-03-01`
fn head(stats: &Stats) -> String {
    let mut head = format!("{} in {}", count(stats.total.calls, "call"), count(stats.sessions, "session"));
    if let (Some(from), Some(to)) = (&stats.from, &stats.to) {
        let day = |time: &str| time.split('T').next().unwrap_or_default().to_owned();
        let (from, to) = (day(from), day(to));
        head += &if from == to { format!(", {from}") } else { format!(", {from} to {to}") };
    }
    head
}

fn nothing(page: &mut String, filter: &Filter, directory: &Path) {
    let sentence = if *filter == Filter::default() {
        format!(
            "No calls yet: {} holds no session log. Register the server with `claude mcp add supervisor -- supervisor`, \
             let a tool work, and look again.",
            directory.display()
        )
    } else {
        let mut wanted = Vec::new();
        wanted.extend(filter.skill.as_ref().map(|skill| format!("of `{skill}`")));
        wanted.extend(filter.session.as_ref().map(|session| format!("in session `{session}`")));
        wanted.extend(filter.since.map(|since| format!("since {since}")));
        format!("No calls {}. Ask for more, or for all with `supervisor stats`.", wanted.join(" "))
    };
    paragraph(page, &sentence);
}

fn legend(stats: &Stats) -> Vec<String> {
    let mut lines = vec![
        "rate: accepted of accepted and rejected. other: answers that say nothing about quality (tampered, \
         contradiction, cannot_verify). errors: no answer. Skipped tiers were not asked and do not count."
            .to_owned(),
        "median, 95 %: by nearest rank. warm: share of the attempts where that is known. tokens: in and out. +n?: as many unknown.".to_owned(),
    ];
    let top = &stats.total.top_tier;
    let mut line = String::from("top tier alone: what asking only the last model of each chain would have cost");
    if top.estimated > 0 {
        let _ = write!(
            line,
            "; known for {} that asked it, estimated for {} from the tokens of the last answer and its prices",
            count(top.asked + top.no_model_asked, "call"),
            top.estimated
        );
    }
    if top.unknown > 0 {
        let _ = write!(line, "; {} of {} unknown", top.unknown, count(stats.total.calls, "call"));
    }
    lines.push(line + ".");
    lines.extend(compared(&stats.total));
    lines
}

fn compared(total: &Calls) -> Option<String> {
    let both = &total.compared;
    (both.calls > 0).then(|| {
        format!(
            "Where both are known ({} of {}): {} spent, {}{} by the top tier alone.",
            both.calls,
            count(total.calls, "call"),
            table::money(both.cost_usd),
            if total.top_tier.estimated > 0 { "about " } else { "" },
            table::money(both.top_tier_cost_usd),
        )
    })
}

fn unread(page: &mut String, stats: &Stats) {
    if let Some(summary) = stats.unread.summary() {
        paragraph(page, &format!("Not counted: {summary}."));
    }
    for why in &stats.unread.told {
        paragraph(page, &format!("  {why}"));
    }
}

/// Unknown costs that a price would make known.
fn prices(page: &mut String, stats: &Stats) {
    let mut missing: Vec<&str> = stats
        .skills
        .iter()
        .flat_map(|skill| &skill.models)
        .filter(|model| model.price_missing > 0)
        .map(|model| model.model.as_str())
        .collect();
    missing.sort_unstable();
    missing.dedup();
    if missing.is_empty() {
        return;
    }
    let names: Vec<String> = missing.iter().map(|model| format!("[models.\"{}\"]", table::name(model))).collect();
    paragraph(
        page,
        &format!(
            "hint: costs are unknown for want of a price; set price_in and price_out in models.toml, 0 for a model of \
             your own: {}",
            names.join(", ")
        ),
    );
}

fn advice(page: &mut String, Advised { advice, remedy }: &Advised<'_>) {
    paragraph(
        page,
        &format!(
            "advice: in {}, {} of {} answers by {} were accepted ({}), fewer than {:.0} % of at least {ENOUGH}: its turn \
             costs more than it brings.",
            table::name(&advice.skill),
            advice.accepted,
            advice.judged,
            table::name(&advice.model),
            table::share(Some(advice.accept_rate)),
            ADVISED_BELOW * 100.0,
        ),
    );
    let Remedy { table, line, now, step } = remedy;
    let now = now.as_ref().map(|now| format!("; now {now} decides")).unwrap_or_default();
    let what = match step {
        Step::LeaveOut => format!("leave it out, in {table} of models.toml{now}"),
        Step::Replace => {
            format!("it is alone there: put a stronger model in its place, as `chain` in {table} of models.toml{now}")
        }
        Step::ChangeVariable => format!("leave it out of the variable{now}"),
        Step::Done => return,
    };
    paragraph(page, &format!("  {what}"));
    if let Some(line) = line {
        let _ = writeln!(page, "    {}", crate::words::plain(line));
    }
}

/// Words filled into lines, which are set in as far as the first one.
fn paragraph(page: &mut String, text: &str) {
    let indent = " ".repeat(text.len() - text.trim_start().len());
    let mut line = indent.clone();
    for word in text.split_whitespace() {
        let begun = !line.trim().is_empty();
        if begun && line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(page, "{line}");
            line.clone_from(&indent);
        } else if begun {
            line.push(' ');
        }
        line += word;
    }
    let _ = writeln!(page, "{line}");
}
