//! Prints the report as text in three columns: label, value and source. Uses no colour.

use std::io::{self, Write};

use super::report::{ExplainReport, ExplainedSetting, ReportSkill, ReportTier};
use supervisor_text::words;

pub(super) fn write(report: &ExplainReport, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "settings from {}", sources(report))?;
    match &report.settings {
        None => report
            .skills
            .iter()
            .try_for_each(|skill| write_skill(skill, out)),
        Some(settings) => {
            writeln!(out, "\nskills")?;
            write_rows(report.skills.iter().map(short_row).collect(), out)?;
            writeln!(out, "\nsettings")?;
            write_rows(
                settings
                    .iter()
                    .map(|(key, set)| (key.clone(), set.value.to_string(), origin_text(set)))
                    .collect(),
                out,
            )?;
            writeln!(
                out,
                "\n`supervisor explain SKILL` shows one skill with its limits and backends."
            )
        }
    }
}

fn sources(report: &ExplainReport) -> String {
    let mut parts = vec![String::from("built-in")];
    parts.extend(report.sources.file.clone());
    match report.sources.variables.len() {
        0 => {}
        n => parts.push(words::count(n, "variable")),
    }
    parts.join(", ")
}

fn short_row(skill: &ReportSkill) -> Row {
    let models: Vec<&str> = skill
        .chain
        .value
        .iter()
        .map(|tier| tier.model.as_str())
        .collect();
    (
        skill.skill.clone(),
        models.join(" → "),
        source(&skill.chain),
    )
}

fn write_skill(skill: &ReportSkill, out: &mut dyn Write) -> io::Result<()> {
    let tiers = words::count(skill.chain.value.len(), "tier");
    let how = if skill.pinned {
        "pinned: no escalation, no verifier"
    } else {
        "cheapest first"
    };
    let mut all: Vec<Row> = vec![(
        "chain".into(),
        format!("{tiers}, {how}"),
        source(&skill.chain),
    )];
    for (number, tier) in skill.chain.value.iter().enumerate() {
        all.push((
            format!("tier {}", number + 1),
            tier.model.clone(),
            String::new(),
        ));
        all.extend(tier_rows(tier));
    }
    match &skill.verifier.value {
        Some(tier) => {
            all.push((
                "verifier".into(),
                tier.model.clone(),
                source(&skill.verifier),
            ));
            all.push((
                "  limit".into(),
                seconds(tier.limit_s.value),
                source(&tier.limit_s),
            ));
        }
        None => all.push((
            "verifier".into(),
            "none: gates alone decide".into(),
            source(&skill.verifier),
        )),
    }
    all.push((
        "attempts".into(),
        format!("{} in all", skill.max_attempts.value),
        source(&skill.max_attempts),
    ));
    all.extend(
        skill
            .policy
            .iter()
            .map(|sentence| ("policy".into(), sentence.clone(), String::new())),
    );
    all.push((
        "tests".into(),
        seconds(skill.tests_s.value),
        source(&skill.tests_s),
    ));
    all.push((
        "lock".into(),
        format!("waits {}", seconds(skill.lock_wait_s.value)),
        source(&skill.lock_wait_s),
    ));
    let usd = skill
        .budget_usd
        .value
        .map_or("no cap on USD".into(), |usd| format!("{usd} USD"));
    let tokens = skill
        .budget_tokens
        .value
        .map_or("no cap on tokens".into(), |n| format!("{n} tokens"));
    let time = skill
        .budget_s
        .value
        .map_or("no cap on time".into(), seconds);
    all.push(("budget".into(), usd, source(&skill.budget_usd)));
    all.push((String::new(), tokens, source(&skill.budget_tokens)));
    all.push((String::new(), time, source(&skill.budget_s)));
    writeln!(out, "\n{}", skill.skill)?;
    write_rows(all, out)
}

fn tier_rows(tier: &ReportTier) -> Vec<Row> {
    let rank = tier.tier.word();
    let how = tier.verb;
    let at = tier.at.value.as_deref().unwrap_or("nothing");
    let mut all = vec![(
        "  backend".into(),
        format!("{} ({rank}) {how} {at}", tier.backend),
        source(&tier.at),
    )];
    if let Some(now) = &tier.now {
        all.push(("  now".into(), now.clone(), String::new()));
    }
    if let Some(id) = &tier.id {
        all.push(("  asked as".into(), id.value.clone(), source(id)));
    }
    if let Some(key) = &tier.api_key_env {
        all.push(("  key".into(), format!("in ${}", key.value), source(key)));
    }
    all.push((
        "  limit".into(),
        seconds(tier.limit_s.value),
        source(&tier.limit_s),
    ));
    let attempts = words::count(tier.attempts_per_tier.value as usize, "ask");
    all.push((
        "  attempts".into(),
        format!("up to {attempts}"),
        source(&tier.attempts_per_tier),
    ));
    if tier.samples.value != supervisor_settings::Samples::default() {
        all.push((
            "  samples".into(),
            tier.samples.value.to_string(),
            source(&tier.samples),
        ));
    }
    all.push((
        "  context".into(),
        format!("{} tokens", tier.context.value),
        source(&tier.context),
    ));
    for (label, price) in [("in", &tier.price_in), ("out", &tier.price_out)] {
        if let Some(price) = price {
            all.push((
                "  price".into(),
                format!("{} USD per million {label}", price.value),
                source(price),
            ));
        }
    }
    all.extend(
        tier.passport
            .iter()
            .map(|passport| ("  passport".into(), passport.clone(), String::new())),
    );
    all
}

/// Maximum width of the value column. After a longer value, the source moves to the right.
const MAX_VALUE_WIDTH: usize = 70;

/// Label, value, and where it comes from.
type Row = (String, String, String);

fn write_rows(rows: Vec<Row>, out: &mut dyn Write) -> io::Result<()> {
    let width = |text: &str| text.chars().count();
    let first = rows.iter().map(|r| width(&r.0)).max().unwrap_or(0);
    // Keep one long value from pushing the last column of all rows off the screen.
    let second = rows
        .iter()
        .map(|r| width(&r.1))
        .max()
        .unwrap_or(0)
        .min(MAX_VALUE_WIDTH);
    for (label, value, source) in rows {
        let line = format!("  {label:first$}  {value:second$}  {source}");
        writeln!(out, "{}", words::plain(line.trim_end()))?;
    }
    Ok(())
}

fn source<T>(set: &ExplainedSetting<T>) -> String {
    format!("{} ({})", set.key, origin_text(set))
}

fn origin_text<T>(set: &ExplainedSetting<T>) -> String {
    set.origin
        .clone()
        .unwrap_or_else(|| String::from("built-in"))
}

fn seconds(s: f64) -> String {
    format!("{s} s")
}
