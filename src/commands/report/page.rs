//! Renders the HTML page: static figures and charts, plus the calls as data for the page's script.
//! It is one file and loads nothing.
//!
//! Untrusted text is kept inert in three ways: the template escapes it, the script inserts it only
//! as text, and the content security policy allows only this program's own script and style, by
//! hash.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::charts;
use super::gather::{ModelFigures, ReportData};
use super::reasons::RefusalReason;
use super::timeline::format_time;
use crate::commands::stats::table::{cost, duration, money, name, share, short};
use crate::commands::stats::worth::{self, HostContext};
use supervisor_engine::Cause;
use supervisor_engine::session::stats::{AnswerClass, Worth};
use supervisor_text::words::{count, plain};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// Maximum rows of the shorter lists.
const MAX_ROWS: usize = 12;

/// What the tab "Is it worth it?" shows.
pub(super) struct WorthPage {
    pub(super) worth: Worth,
    pub(super) context: Option<HostContext>,
}

pub(super) fn render(data: &ReportData, worth: &WorthPage) -> String {
    let policy = format!(
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; style-src 'sha256-{}'; script-src 'sha256-{}'",
        digest(STYLE),
        digest(SCRIPT)
    );
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                link rel="icon" href="data:,";
                title { "supervisor report" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (head(data))
                main {
                    @if data.rows.is_empty() { (empty_notice(data)) } @else { (figures(data, worth)) }
                }
                (foot(data))
                (json_block("index", &index(data)))
                @for (place, details) in sorted_details(data) {
                    script type="application/json" id=(format!("d{place}")) { (PreEscaped(escape_script_json(details))) }
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

fn head(data: &ReportData) -> Markup {
    let mut parts = vec![format!(
        "{} in {}",
        count(data.rows.len(), "call"),
        count(data.sessions(), "session")
    )];
    let times = || data.rows.iter().filter_map(|row| row.ended_ms);
    if let (Some(first), Some(last)) = (times().min(), times().max()) {
        let (first, last) = (
            format_time(first, "%Y-%m-%d"),
            format_time(last, "%Y-%m-%d"),
        );
        parts.push(if first == last {
            first
        } else {
            format!("{first} to {last}")
        });
    }
    parts.extend(
        data.filter
            .skill
            .as_ref()
            .map(|skill| format!("skill {}", plain(skill))),
    );
    parts.extend(
        data.filter
            .session
            .as_ref()
            .map(|session| format!("session {session}")),
    );
    parts.extend(data.filter.since.map(|since| format!("since {since}")));
    html! {
        header {
            div {
                h1 { "supervisor" span.dim { " report" } }
                p.dim { (parts.join(" · ")) }
            }
            button #theme type="button" title="Light or dark" { "◐" }
        }
    }
}

fn empty_notice(data: &ReportData) -> Markup {
    html! {
        section.empty {
            h2 { "No calls" @if data.filter == supervisor_engine::session::Filter::default() { " yet" } }
            @if data.filter == supervisor_engine::session::Filter::default() {
                p { "Register the server with " code { "claude mcp add supervisor -- supervisor" } ", let a tool work, and make this page again." }
            } @else {
                p { "No call is left by what was asked for. Leave out " code { "--since" } ", " code { "--skill" } " or " code { "--session" } "." }
            }
        }
    }
}

/// The tabs are radio buttons, so that they work without the script.
fn figures(data: &ReportData, worth: &WorthPage) -> Markup {
    html! {
        div.tabs {
            input.tab type="radio" name="tab" id="tab-calls" checked;
            label for="tab-calls" { "What was done" }
            input.tab type="radio" name="tab" id="tab-worth";
            label for="tab-worth" { "Is it worth it?" }
            div.panel.calls-panel { (calls_panel(data)) }
            div.panel.worth-panel { (worth_panel(worth)) }
        }
    }
}

fn worth_panel(page: &WorthPage) -> Markup {
    let sentences = page.worth.advice.sentences();
    let (answer, rest) = sentences
        .split_first()
        .map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
    html! {
        section {
            h2 { (answer) }
            @for sentence in rest { p { (sentence) } }
            ul { @for line in worth::figures(&page.worth, page.context) { li { (line) } } }
        }
        section {
            h2 { "What is assumed" }
            ul.dim { @for line in &page.worth.assumptions { li { (line) } } }
        }
    }
}

fn calls_panel(data: &ReportData) -> Markup {
    html! {
        (cards(data))
        section {
            h2 { "Calls over time" span.dim { " " (data.timeline.unit()) ", UTC" } }
            p.legend { span.key.s-pass {} "pass " span.key.s-fail {} "fail: rejected by a check " span.key.s-error {} "error: no answer" }
            @if data.timeline.steps.is_empty() { p.dim { "No call has a time that can be read." } }
            @else { div.scroll { (charts::calls_over_time(&data.timeline)) } }
        }
        section {
            h2 { "Models" span.dim { " cheapest tier first; a click shows their calls" } }
            div.scroll { (models(data)) }
        }
        section {
            h2 { "From tier to tier" }
            @match data.flow.render() {
                Some(flow) => div.scroll { (flow) },
                None => p.dim { "No call asked a model." },
            }
        }
        section {
            h2 { "Saved" span.dim { " against always asking the top tier" } }
            (saved(data))
        }
        section {
            h2 { "Latency" span.dim { " of one attempt, checks included" } }
            div.scroll { (latency(data)) }
        }
        div.columns {
            section {
                h2 { "Why answers were refused" }
                (reasons(data, |class| matches!(class, AnswerClass::Rejected | AnswerClass::Undecided)))
            }
            section {
                h2 { "Why no answer came" }
                (reasons(data, |class| class == AnswerClass::NoAnswer))
            }
        }
        section {
            h2 { "Flaky tests" span.dim { " two runs of the same files, two results" } }
            (flaky(data))
        }
        (calls())
    }
}

fn cards(data: &ReportData) -> Markup {
    let total = &data.total;
    let both = &total.compared;
    let saved_usd = both.top_tier_cost_usd - both.cost_usd;
    let local = data
        .rows
        .iter()
        .filter(|row| row.is_accepted() && last_tier(data, row) == Some("local"))
        .count();
    let accepted = data.rows.iter().filter(|row| row.is_accepted()).count();
    html! {
        div.cards {
            div.card {
                div.name { "calls" } div.figure { (total.calls) }
                (charts::split(&[("s-pass", total.pass), ("s-fail", total.fail), ("s-error", total.error + total.other)]))
                div.note { (total.pass) " pass · " (total.fail) " fail · " (total.error + total.other) " error" }
            }
            div.card {
                div.name { "accepted from local models" } div.figure { (share((accepted > 0).then(|| local as f64 / accepted as f64))) }
                (charts::meter(local as f64 / accepted.max(1) as f64, "s-pass"))
                div.note { (local) " of " (count(accepted, "accepted answer")) }
            }
            div.card {
                div.name { "saved" }
                div.figure { @if both.calls > 0 { (signed(saved_usd)) } @else { "unknown" } }
                (charts::meter(if both.top_tier_cost_usd > 0.0 { saved_usd / both.top_tier_cost_usd } else { 0.0 }, "s-pass"))
                div.note { (money(both.cost_usd)) " instead of " @if total.top_tier.estimated > 0 { "about " } (money(both.top_tier_cost_usd)) }
            }
            div.card {
                div.name { "a call takes" } div.figure { (data.median_ms.map_or_else(|| "–".into(), duration)) }
                // The median relative to the 95th percentile.
                (charts::meter(ratio(data.median_ms, data.p95_ms), ""))
                div.note { "median; 95 % within " (data.p95_ms.map_or_else(|| "–".into(), duration)) }
            }
        }
    }
}

/// `part` divided by `whole`; 0 if either is unknown.
fn ratio(part: Option<u64>, whole: Option<u64>) -> f64 {
    match (part, whole) {
        #[expect(clippy::cast_precision_loss, reason = "a bar on a screen")]
        (Some(part), Some(whole)) if whole > 0 => part as f64 / whole as f64,
        _ => 0.0,
    }
}

fn last_tier(data: &ReportData, row: &super::rows::CallRow) -> Option<&'static str> {
    let last = row.attempts.last()?.model;
    data.models
        .iter()
        .find(|model| model.name_index == last)
        .map(|model| tier_word(model))
}

fn tier_word(model: &ModelFigures) -> &'static str {
    use supervisor_engine::TierKind;
    match model.stats.tier {
        TierKind::Local => "local",
        TierKind::Subagent => "subagent",
        TierKind::Managed => "managed",
    }
}

fn models(data: &ReportData) -> Markup {
    html! {
        table {
            thead { tr {
                th { "model" } th { "tier" } th.n { "asked" } th.wide { "accepted" } th.n { "rejected" } th.n { "other" } th.n { "errors" }
                th.n { "tokens in" } th.n { "out" } th.n { "cost" } th.n { "per accept" }
            } }
            tbody {
                @for (rank, model) in data.models.iter().enumerate() {
                    @let stats = &model.stats;
                    tr {
                        td { button.link type="button" data-model=(model.name_index) { span.key.(charts::series(rank)) {} bdi { (name(&stats.model)) } } }
                        td.dim { (tier_word(model)) }
                        td.n { (stats.attempts) }
                        td.wide { (charts::meter(stats.accept_rate.unwrap_or_default(), charts::series(rank))) span.rate { (share(stats.accept_rate)) } span.dim { " " (stats.accepted) } }
                        td.n { (stats.rejected) } td.n { (stats.other) } td.n { (stats.errors) }
                        td.n { (short(stats.tokens_in)) } td.n { (short(stats.tokens_out)) }
                        td.n { (cost(stats.cost_usd, stats.cost_unknown, stats.attempts)) }
                        td.n { @if stats.accepted > 0 && stats.cost_unknown < stats.attempts { (money(stats.cost_usd / stats.accepted as f64)) } @else { "–" } }
                    }
                }
            }
        }
    }
}

fn saved(data: &ReportData) -> Markup {
    let (total, both) = (&data.total, &data.total.compared);
    html! {
        @if both.calls == 0 {
            p.dim { "No call has both costs wholly known. Set " code { "price_in" } " and " code { "price_out" } " of your models in models.toml, 0 for a model of your own." }
        } @else {
            p.legend {
                span.key.k-alone {} "top tier alone, " @if total.top_tier.estimated > 0 { "about " } (money(both.top_tier_cost_usd)) " "
                span.key.k-spent {} "spent, " (money(both.cost_usd)) " "
                span.dim { (both.calls) " of " (count(total.calls, "call")) ", where both are known; " (total.top_tier.estimated) " estimated from the tokens of the last answer" }
            }
            @if !data.timeline.steps.is_empty() { div.scroll { (charts::savings(&data.timeline)) } }
        }
    }
}

fn latency(data: &ReportData) -> Markup {
    html! {
        table.latency {
            thead { tr { th { "model" } th.axis { div.ticks { span { "0.1 s" } span { "1 s" } span { "10 s" } span { "100 s" } span { "17 min" } } } th.n { "median" } th.n { "95 %" } th.n { "asking" } th.n { "checking" } th.n { "warm" } } }
            tbody {
                @for (rank, model) in data.models.iter().enumerate().filter(|(_, model)| model.stats.attempts > 0) {
                    @let all = (model.generate_ms + model.verify_ms) as f64;
                    @let part = |ms: u64| share((all > 0.0).then(|| ms as f64 / all));
                    tr {
                        td { bdi { (name(&model.stats.model)) } }
                        td.axis { (charts::latency(&model.latency, &model.stats, rank)) }
                        td.n { (model.stats.median_ms.map_or_else(|| "–".into(), duration)) }
                        td.n { (model.stats.p95_ms.map_or_else(|| "–".into(), duration)) }
                        td.n { (part(model.generate_ms)) } td.n { (part(model.verify_ms)) } td.n { (share(model.stats.warm_share)) }
                    }
                }
            }
        }
    }
}

fn reasons(data: &ReportData, wanted: impl Fn(AnswerClass) -> bool) -> Markup {
    let mut reasons: Vec<(usize, &RefusalReason)> = data
        .reasons
        .iter()
        .enumerate()
        .filter(|(_, reason)| wanted(reason.class))
        .collect();
    reasons.sort_by_key(|(place, reason)| (std::cmp::Reverse(reason.times), *place));
    let max_times = reasons.first().map_or(1, |(_, reason)| reason.times) as f64;
    let rest: usize = reasons
        .iter()
        .skip(MAX_ROWS)
        .map(|(_, reason)| reason.times)
        .sum();
    html! {
        @if reasons.is_empty() { p.dim { "None." } }
        ol.reasons {
            @for (place, reason) in reasons.iter().take(MAX_ROWS) {
                li { button.link type="button" data-reason=(place) {
                    span.times { (reason.times) }
                    span.what {
                        span.badge.(badge(reason.cause)) { (reason.cause.map_or("escalated", Cause::word)) }
                        @if !reason.gate.is_empty() { " " code { bdi { (name(&reason.gate)) } } }
                        " " bdi { (plain(&reason.pattern)) }
                        (charts::meter(reason.times as f64 / max_times, badge(reason.cause)))
                        span.dim.models { (models_of(data, reason)) }
                    }
                } }
            }
        }
        @if rest > 0 { p.dim { "and " (rest) " more for " (count(reasons.len() - MAX_ROWS, "other reason")) } }
    }
}

fn models_of(data: &ReportData, reason: &RefusalReason) -> String {
    let mut models: Vec<(&usize, &usize)> = reason.models.iter().collect();
    models.sort_by_key(|(model, times)| (std::cmp::Reverse(**times), **model));
    let parts: Vec<String> = models
        .iter()
        .take(3)
        .map(|(model, times)| format!("{} {times}", name(data.names.models.get(**model))))
        .collect();
    parts.join(", ")
}

/// CSS class for the colour of a cause.
fn badge(cause: Option<Cause>) -> &'static str {
    match cause {
        Some(Cause::Accepted) => "s-pass",
        Some(Cause::Tampered) => "s-error",
        Some(cause) if cause.verdict() == supervisor_engine::Verdict::Error => "s-none",
        _ => "s-fail",
    }
}

fn flaky(data: &ReportData) -> Markup {
    html! {
        @if data.flaky.is_empty() { p.dim { "None seen." } }
        @else {
            div.scroll { table {
                thead { tr { th { "test" } th { "project" } th.n { "times" } th.n { "last" } } }
                tbody {
                    @for test in data.flaky.iter().take(3 * MAX_ROWS) {
                        tr {
                            td { code { bdi { (plain(&test.name)) } } } td.dim { bdi { (plain(data.names.projects.get(test.project))) } }
                            td.n { (test.times) } td.n { (test.last_ms.map_or_else(|| "–".into(), |ms| format_time(ms, "%Y-%m-%d"))) }
                        }
                    }
                }
            } }
            @if data.flaky.len() > 3 * MAX_ROWS { p.dim { "and " (data.flaky.len() - 3 * MAX_ROWS) " more" } }
        }
    }
}

/// Filled by the script.
fn calls() -> Markup {
    html! {
        section #calls {
            h2 { "Calls" span.dim #shown {} }
            noscript { p { "The list of calls needs JavaScript, which is in this file; nothing is loaded." } }
            form #filters {
                input #words type="search" placeholder="search message, reason, model, project, session" aria-label="search" autocomplete="off";
                select #skill aria-label="skill" { option value="" { "every skill" } }
                select #status aria-label="status" { option value="" { "every status" } @for word in ["pass", "fail", "error", "skip"] { option { (word) } } }
                select #model aria-label="model" { option value="" { "every model" } }
                select #cause aria-label="cause" { option value="" { "every cause" } }
                button #clear type="button" hidden { "clear" }
            }
            p #picked hidden {}
            div #list {}
            button #more type="button" hidden {}
        }
    }
}

fn foot(data: &ReportData) -> Markup {
    html! {
        footer.dim {
            @if let Some(unread) = data.unread.summary() { p { "Not counted: " (unread) "." } }
            @if data.unread.newer > 0 { p { (count(data.unread.newer, "call")) " by a newer version, counted as far as this one understands them." } }
            @if data.details.len() < data.rows.len() {
                p #left-out { "The " (data.details.len()) " newest calls can be opened; the others are in the figures and in the list. " code { "--since" } " and " code { "--session" } " show fewer calls with all of them." }
            }
            p {
                "Made " (data.made_at.strftime("%Y-%m-%d %H:%M UTC")) " by supervisor " (env!("CARGO_PKG_VERSION"))
                " from the session logs alone. rate: accepted of accepted and rejected. other: answers that say nothing about quality. +n?: as many unknown."
            }
        }
    }
}

/// The data of all calls for the script, with the names they refer to.
fn index(data: &ReportData) -> Value {
    let reasons: Vec<Value> = data
        .reasons
        .iter()
        .map(|reason| json!([reason.cause.map(Cause::word), reason.gate, reason.pattern]))
        .collect();
    json!({
        "skills": data.names.skills.names(), "models": data.names.models.names(), "projects": data.names.projects.names(),
        "sessions": data.names.sessions.names(), "reasons": reasons,
        "calls": data.rows.iter().map(super::rows::CallRow::to_json).collect::<Vec<_>>(),
    })
}

fn sorted_details(data: &ReportData) -> Vec<(usize, &str)> {
    let mut details: Vec<(usize, &str)> = data
        .details
        .iter()
        .map(|(place, text)| (*place, text.as_str()))
        .collect();
    details.sort_unstable();
    details
}

fn json_block(id: &str, value: &Value) -> Markup {
    html! { script type="application/json" id=(id) { (PreEscaped(escape_script_json(&value.to_string()))) } }
}

/// Escapes `<`, so that the JSON cannot close its `script` element. In JSON, `<` only occurs in
/// strings, where the escape is allowed.
fn escape_script_json(json: &str) -> String {
    json.replace('<', "\\u003c")
}

fn digest(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(Sha256::digest(text.as_bytes()))
}

/// Formats an amount that may be negative.
fn signed(usd: f64) -> String {
    if usd < 0.0 {
        format!("−{}", money(-usd))
    } else {
        money(usd)
    }
}
