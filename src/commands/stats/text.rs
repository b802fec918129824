//! Renders `stats` as text: the tables, a legend, what could not be counted, and advice.

use std::fmt::Write as _;
use std::path::Path;

use super::remedy::{Remedy, RemedyStep};
use super::{AdviceWithRemedy, table};
use supervisor_engine::session::stats::{ADVISED_BELOW, Calls, ENOUGH};
use supervisor_engine::session::{Filter, Stats};
use supervisor_text::words::{count, plain};

/// Maximum line length outside tables; less on a narrower terminal.
const WIDTH: usize = 80;

pub(super) fn render(
    stats: &Stats,
    filter: &Filter,
    advice_list: &[AdviceWithRemedy<'_>],
    worth: &[String],
    directory: &Path,
    width: Option<u16>,
) -> String {
    // Below this width a table is unreadable anyway, and the terminal can wrap it.
    let width = width.map(|width| width.max(60));
    let mut page = TextPage {
        text: String::new(),
        width: width.map_or(WIDTH, |width| WIDTH.min(width.into())),
    };
    if stats.is_empty() {
        page.write_empty(filter, directory);
        page.write_unread(stats);
        return page.text;
    }
    page.text += &head(stats);
    page.text += "\n\n";
    if stats.skills.iter().any(|skill| !skill.models.is_empty()) {
        page.text += &table::answers(stats, width);
        page.text += "\n";
        page.text += &table::effort(stats, width);
        page.text += "\n";
    }
    page.text += &table::calls(stats, width);
    page.text += "\n";
    let projects = table::projects(stats, width);
    if !projects.is_empty() {
        page.text += &projects;
        page.text += "\n";
    }
    for line in legend(stats) {
        page.write_paragraph(&line);
    }
    page.write_unread(stats);
    page.write_unreadable(stats);
    page.write_missing_prices(stats);
    page.text += "\n";
    for line in worth {
        page.write_paragraph(line);
    }
    for one in advice_list
        .iter()
        .filter(|one| one.remedy.step != RemedyStep::Done)
    {
        page.text += "\n";
        page.write_advice(one);
    }
    page.text
}

struct TextPage {
    text: String,
    width: usize,
}

impl TextPage {
    fn write_empty(&mut self, filter: &Filter, directory: &Path) {
        let sentence = if *filter == Filter::default() {
            format!(
                "No calls yet: {} holds no session log. Register the server with `claude mcp add supervisor -- supervisor`, \
                 let a tool work, and look again.",
                directory.display()
            )
        } else {
            let mut wanted = Vec::new();
            wanted.extend(filter.skill.as_ref().map(|skill| format!("of `{skill}`")));
            wanted.extend(
                filter
                    .session
                    .as_ref()
                    .map(|session| format!("in session `{session}`")),
            );
            wanted.extend(
                filter
                    .project
                    .as_ref()
                    .map(|project| format!("in `{}`", project.display())),
            );
            wanted.extend(filter.since.map(|since| format!("since {since}")));
            format!(
                "No calls {}. Ask for more, or for all with `supervisor stats`.",
                wanted.join(" ")
            )
        };
        self.write_paragraph(&sentence);
    }

    fn write_unread(&mut self, stats: &Stats) {
        if let Some(summary) = stats.unread.summary() {
            self.write_paragraph(&format!("Not counted: {summary}."));
        }
        if stats.unread.newer > 0 {
            let calls = count(stats.unread.newer, "call");
            self.write_paragraph(&format!(
                "{calls} by a newer version, counted as far as this one understands them."
            ));
        }
        if stats.unread.tampered > 0 {
            let lines = count(stats.unread.tampered, "line");
            self.write_paragraph(&format!(
                "warning: {lines} of the log may not be as written: something else than supervisor changed, added or \
                 removed lines, so these figures may be wrong."
            ));
        }
        for why in &stats.unread.first_errors {
            self.write_paragraph(&format!("  {why}"));
        }
    }

    /// Lists the files with answers that could not be parsed.
    fn write_unreadable(&mut self, stats: &Stats) {
        for model in stats.skills.iter().flat_map(|skill| &skill.models) {
            for path in &model.unreadable_answers {
                self.write_paragraph(&format!(
                    "unreadable: {} wrote {}",
                    table::name(&model.model),
                    plain(path)
                ));
            }
        }
    }

    /// Suggests setting prices where that would make costs known.
    fn write_missing_prices(&mut self, stats: &Stats) {
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
        let names: Vec<String> = missing
            .iter()
            .map(|model| format!("[models.\"{}\"]", table::name(model)))
            .collect();
        self.write_paragraph(&format!(
            "hint: some costs are unknown. Set price_in and price_out in models.toml, 0 for a model that costs nothing: {}. \
                 Local models count as free.",
            names.join(", ")
        ));
    }

    fn write_advice(&mut self, AdviceWithRemedy { advice, remedy }: &AdviceWithRemedy<'_>) {
        self.write_paragraph(&format!(
            "advice: {} is mostly wrong at {}: {} of {} answers were accepted ({}; advised below {} of at least {ENOUGH}).",
            table::name(&advice.model),
            table::name(&advice.skill),
            advice.accepted,
            advice.judged,
            table::share(Some(advice.accept_rate)),
            table::share(Some(ADVISED_BELOW)),
        ));
        let Remedy {
            table,
            line,
            now,
            step,
        } = remedy;
        let now = now
            .as_ref()
            .map(|now| format!("; {now} decides now"))
            .unwrap_or_default();
        let what = match step {
            RemedyStep::LeaveOut => format!("leave it out in {table} of models.toml{now}"),
            RemedyStep::Replace => {
                format!(
                    "it is alone: put a stronger one into the chain in {table} of models.toml{now}"
                )
            }
            RemedyStep::ChangeVariable => format!("leave it out of the variable{now}"),
            RemedyStep::Done => return,
        };
        self.write_paragraph(&format!("  {what}"));
        if let Some(line) = line {
            let _ = writeln!(self.text, "    {}", plain(line));
        }
    }

    /// Wraps text with the indent of its first line and keeps a number together with its percent
    /// sign.
    fn write_paragraph(&mut self, text: &str) {
        let text = &text.replace(" %", "\u{a0}%");
        let indent = " ".repeat(text.len() - text.trim_start().len());
        let mut line = indent.clone();
        for word in text.split(' ').filter(|word| !word.is_empty()) {
            let has_words = !line.trim().is_empty();
            if has_words && line.chars().count() + 1 + word.chars().count() > self.width {
                self.write_line(&line);
                line.clone_from(&indent);
            } else if has_words {
                line.push(' ');
            }
            line += word;
        }
        self.write_line(&line);
    }

    fn write_line(&mut self, line: &str) {
        let _ = writeln!(self.text, "{}", line.replace('\u{a0}', " "));
    }
}

/// The heading, such as `312 calls in 14 sessions, 2026-01-02 to 2026-03-01`.
fn head(stats: &Stats) -> String {
    let mut head = format!(
        "{} in {}",
        count(stats.total.calls, "call"),
        count(stats.sessions, "session")
    );
    if let (Some(from), Some(to)) = (&stats.from, &stats.to) {
        let day = |time: &str| time.split('T').next().unwrap_or_default().to_owned();
        let (from, to) = (day(from), day(to));
        head += &if from == to {
            format!(", {from}")
        } else {
            format!(", {from} to {to}")
        };
    }
    head
}

fn legend(stats: &Stats) -> Vec<String> {
    let mut lines = vec![
        "rate: accepted of accepted and rejected. other: answers that say nothing about quality (tampered, \
         contradiction, cannot_verify). errors: no answer. Skipped tiers were not asked and do not count."
            .to_owned(),
        "median, 95 %: by nearest rank. warm: share of the attempts where that is known. tokens: in and out. \
         +n?: as many unknown."
            .to_owned(),
    ];
    let top = &stats.total.top_tier;
    let mut line = String::from(
        "top tier alone: what asking only the last model of each chain would have cost",
    );
    if top.estimated > 0 {
        let _ = write!(
            line,
            "; known for {}, estimated for {} from the tokens of the last answer and its prices",
            count(top.asked + top.no_model_asked, "call"),
            top.estimated
        );
    }
    if top.unknown > 0 {
        let _ = write!(
            line,
            "; {} of {} unknown",
            top.unknown,
            count(stats.total.calls, "call")
        );
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
            if total.top_tier.estimated > 0 {
                "about "
            } else {
                ""
            },
            table::money(both.top_tier_cost_usd),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use supervisor_engine::session::SessionLog;
    use supervisor_workspace::state::StateDir;

    #[test]
    fn text_fits_terminal_width() {
        let dir = tempfile::tempdir().expect("temp dir");
        let state = StateDir::at(dir.path().to_owned()).expect("absolute");
        let log = SessionLog::open(&state).expect("made");
        let attempt = |model: &str, cause: &str| {
            serde_json::json!({"model": model, "tier": "local", "duration_ms": 200_000, "cause": cause,
                "tokens_in": 5_000_000, "tokens_out": 300_000, "cost_usd": 12.5})
        };
        let long = "ollama/qwen3-coder-30b-tuned";
        let call = serde_json::json!({"timestamp": "2026-01-02T03:04:05Z", "skill": "tdd_refactor", "final_status": "pass",
            "attempts": [attempt(long, "rejected"), attempt("claude-sonnet-4-6", "accepted")]});
        std::fs::write(
            log.directory().join("s.jsonl"),
            format!("{call}\n").repeat(10),
        )
        .expect("written");
        let stats = Stats::gather(&log, &Filter::default()).expect("read");
        let page = |width| {
            let line = String::from(
                "  - a line that is long enough to be folded, as the sentences of the answer are, and then some more",
            );
            render(
                &stats,
                &Filter::default(),
                &[],
                &[line],
                log.directory(),
                width,
            )
        };
        for width in [60, 70, 80, 200] {
            let page = page(Some(width));
            let longest = page
                .lines()
                .map(|line| line.chars().count())
                .max()
                .unwrap_or_default();
            assert!(
                longest <= usize::from(width),
                "{longest} columns of {width}:\n{page}"
            );
        }
        assert!(
            page(Some(80)).contains(long),
            "in 80 columns its name is whole:\n{}",
            page(Some(80))
        );
        assert_eq!(
            page(None),
            page(Some(80)),
            "without a terminal nothing is folded"
        );
        assert_eq!(page(Some(20)), page(Some(60)), "there the terminal folds");
    }
}
