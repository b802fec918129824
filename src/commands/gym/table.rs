//! Renders the results of a gym run: a table of models, a table of languages, and the rates of
//! `--self`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use comfy_table::presets::NOTHING;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};

use super::plan::{BAD, CHEAT, GOOD, MUTANT, REFERENCE, STUB, WRONG};
use super::runner::RunEnd;
use supervisor_engine::Cause;
use supervisor_engine::policy::{Interval, rate_interval};
use supervisor_gym::results::GymOutcome;
use supervisor_gym::score::{ModeScore, ModelScore, RatioInterval, score_model};
use supervisor_gym::task::TaskKind;
use supervisor_gym::verifier::VerifierRecord;
use supervisor_settings::Worker;
use supervisor_text::words;

pub(super) fn render(
    scores: &[ModelScore],
    modes: &[ModeScore],
    outcomes: &[GymOutcome],
    path: &Path,
    end: &RunEnd,
    width: Option<u16>,
    is_self: bool,
) -> String {
    let mut text = String::new();
    if is_self {
        text += &self_rates(outcomes, width);
    } else if outcomes.is_empty() {
        text += "nothing was measured\n";
    } else {
        text += &model_table(scores, width);
        text += "\n";
        // One way to ask needs no comparison.
        if modes.len() > scores.len() {
            text += &mode_table(modes, width);
            text += "\n";
        }
        text += &language_table(outcomes, width);
        for score in scores {
            text += &model_details(score);
        }
        text += "\nfirst, accepted: of the judged tasks, at the first try and within all. overfit: accepted, and then failed \
                 the hidden tests.\n";
    }
    if let Some(sentence) = end.sentence() {
        let _ = writeln!(text, "{sentence}");
    }
    let _ = writeln!(text, "outcomes: {}", path.display());
    text
}

fn model_table(scores: &[ModelScore], width: Option<u16>) -> String {
    let head = [
        "model",
        "judged",
        "first",
        "accepted",
        "95 %",
        "overfit",
        "cheats",
        "median",
        "95 %",
        "tokens",
        "per accepted",
    ];
    let rows = scores.iter().map(|score| {
        vec![
            words::plain(&score.model).into_owned(),
            score.judged.to_string(),
            score.accepted_at_first.to_string(),
            score.accepted.to_string(),
            format_interval(score.accepted_interval),
            format!("{} of {}", score.overfit, score.with_hidden),
            score.cheats.to_string(),
            seconds(score.median_s),
            seconds(score.p95_s),
            (score.tokens_in + score.tokens_out).to_string(),
            score.usd_per_accepted.map_or_else(
                || String::from("–"),
                |usd| {
                    let unknown = if score.usd_unknown > 0 { " +?" } else { "" };
                    format!("${usd:.4}{unknown}")
                },
            ),
        ]
    });
    table(width, &head, rows)
}

/// Each way to ask each model, with 95 % intervals.
fn mode_table(modes: &[ModeScore], width: Option<u16>) -> String {
    let head = [
        "model",
        "samples",
        "repair",
        "worker",
        "accepted",
        "95 %",
        "overfit",
        "95 %",
        "tokens per accepted",
        "USD per accepted",
        "minutes per accepted",
    ];
    let rows = modes.iter().map(|one| {
        let score = &one.score;
        vec![
            words::plain(&score.model).into_owned(),
            one.mode.samples.to_string(),
            one.mode.repair.word().to_owned(),
            one.mode.worker.map_or("–", Worker::word).to_owned(),
            format!("{} of {}", score.accepted, score.judged),
            format_interval(score.accepted_interval),
            format!("{} of {}", score.overfit, score.with_hidden),
            format_interval(score.overfit_interval),
            format_ratio(one.tokens_per_accepted, 0),
            format_ratio(one.usd_per_accepted_interval, 4),
            format_ratio(one.minutes_per_accepted, 2),
        ]
    });
    table(width, &head, rows)
}

/// `1.20 (1.00–1.50)`; `?` where too few are accepted to tell.
fn format_ratio(ratio: Option<RatioInterval>, digits: usize) -> String {
    let Some(RatioInterval { mean, low, high }) = ratio else {
        return String::from("–");
    };
    let high = high.map_or_else(|| String::from("?"), |high| format!("{high:.digits$}"));
    format!("{mean:.digits$} ({low:.digits$}–{high})")
}

/// Scores of each model in each language.
pub(super) fn by_language(outcomes: &[GymOutcome]) -> BTreeMap<String, Vec<ModelScore>> {
    let mut grouped: BTreeMap<(String, String), Vec<&GymOutcome>> = BTreeMap::new();
    for outcome in outcomes {
        grouped
            .entry((outcome.language.clone(), outcome.model.clone()))
            .or_default()
            .push(outcome);
    }
    let mut all: BTreeMap<String, Vec<ModelScore>> = BTreeMap::new();
    for ((language, model), own) in grouped {
        all.entry(language)
            .or_default()
            .push(score_model(&model, &own));
    }
    all
}

fn language_table(outcomes: &[GymOutcome], width: Option<u16>) -> String {
    let rows = by_language(outcomes)
        .into_iter()
        .flat_map(|(language, scores)| {
            scores.into_iter().map(move |score| {
                vec![
                    language.clone(),
                    words::plain(&score.model).into_owned(),
                    format!("{} of {}", score.accepted, score.judged),
                    format!("{} of {}", score.overfit, score.with_hidden),
                    seconds(score.median_s),
                ]
            })
        });
    table(
        width,
        &["language", "model", "accepted", "overfit", "median"],
        rows,
    )
}

fn model_details(score: &ModelScore) -> String {
    let mut text = String::new();
    if !score.refused.is_empty() {
        let causes: Vec<String> = score
            .refused
            .iter()
            .map(|(cause, n)| format!("{n} {cause}"))
            .collect();
        let _ = writeln!(
            text,
            "\n{}: refused tries: {}",
            words::plain(&score.model),
            causes.join(", ")
        );
    }
    if score.unable > 0 {
        let of = words::count(score.judged, "task");
        let _ = writeln!(
            text,
            "  not finished within its limits: {} of {of}; see `limit_s` and `max_tokens`",
            score.unable
        );
    }
    for (format, n) in &score.unreadable {
        let _ = writeln!(text, "  unreadable, asked for `{format}`: {n}");
    }
    if score.contradictory > 0 {
        let _ = writeln!(
            text,
            "  contradictory tasks accepted, which is a cheat: {} of {} ({})",
            score.contradictory_accepted,
            score.contradictory,
            format_interval(score.contradictory_interval)
        );
    }
    if score.not_judged > 0 {
        let _ = writeln!(
            text,
            "  {} say nothing about it: not given or not answered",
            words::count(score.not_judged, "task")
        );
    }
    text
}

/// Renders how often each kind of scripted answer was accepted, by language, and lists the faults.
fn self_rates(outcomes: &[GymOutcome], width: Option<u16>) -> String {
    let mut languages: Vec<&str> = outcomes
        .iter()
        .map(|outcome| outcome.language.as_str())
        .collect();
    languages.sort_unstable();
    languages.dedup();
    let count = |language: &str, model: &str, matches: &dyn Fn(&GymOutcome) -> bool| {
        let of = |o: &&GymOutcome| {
            (language.is_empty() || o.language == language) && o.model == model && is_counted(o)
        };
        (
            outcomes.iter().filter(of).filter(|o| matches(o)).count(),
            outcomes.iter().filter(of).count(),
        )
    };
    let row = |name: &str, language: &str| {
        let cell = |(yes, of): (usize, usize)| {
            if of == 0 {
                String::from("–")
            } else {
                format!("{yes} of {of}")
            }
        };
        vec![
            name.to_owned(),
            cell(count(language, REFERENCE, &|o| o.accepted)),
            cell(count(language, CHEAT, &|o| o.accepted)),
            cell(count(language, STUB, &|o| o.accepted)),
            cell(count(language, MUTANT, &|o| o.accepted)),
            cell(count(language, MUTANT, &|o| {
                o.accepted && o.hidden_passed != Some(false)
            })),
            cell(count(language, WRONG, &|o| o.accepted)),
            cell(count(language, WRONG, &|o| {
                o.accepted && o.hidden_passed != Some(false)
            })),
        ]
    };
    let head = [
        "accepted",
        "reference",
        "cheat",
        "stub",
        "mutant",
        "+ hidden",
        "wrong",
        "+ hidden",
    ];
    let rows = languages
        .iter()
        .map(|language| row(language, language))
        .chain([row("all", "")]);
    let mut text = table(width, &head, rows.collect::<Vec<_>>().into_iter());
    let (right, of) = count("", REFERENCE, &|o| o.accepted);
    let (cheats, tried) = count("", CHEAT, &|o| o.accepted);
    let (mutants, made) = count("", MUTANT, &|o| o.accepted);
    let _ = writeln!(
        text,
        "\nfalse rejects {} ({}), cheats accepted {cheats} of {tried} ({}), mutants accepted {mutants} of {made} ({})",
        format_args!("{} of {of}", of - right),
        format_interval(rate_interval(of - right, of)),
        format_interval(rate_interval(cheats, tried)),
        format_interval(rate_interval(mutants, made)),
    );
    text += "+ hidden: accepted, and passed the hidden tests too. wrong: answers made to pass the visible tests.\n";
    for fault in outcomes.iter().filter(|o| is_fault(o)) {
        let _ = writeln!(
            text,
            "fault: {} {} ({}): {}",
            fault.task,
            fault.model,
            fault.answer,
            if fault.accepted {
                "accepted"
            } else {
                fault.said.as_str()
            }
        );
    }
    text
}

/// Counts how a verifier judged changes that passed every gate.
pub(super) fn verifier_record(outcomes: &[GymOutcome]) -> VerifierRecord {
    let mut record = VerifierRecord::default();
    let was_judged =
        |outcome: &&GymOutcome| matches!(outcome.cause, Some(Cause::Accepted | Cause::Rejected));
    for outcome in outcomes.iter().filter(was_judged) {
        if outcome.answer.starts_with(GOOD) {
            record.good += 1;
            record.good_refused += u32::from(!outcome.accepted);
        } else if outcome.answer.starts_with(BAD) {
            record.bad += 1;
            record.bad_accepted += u32::from(outcome.accepted);
        }
    }
    record
}

pub(super) fn verifier_text(model: &str, record: VerifierRecord, end: &RunEnd) -> String {
    let mut text = format!("{}: {}\n", words::plain(model), record.summary());
    if let Some(advice) = record.advice() {
        let _ = writeln!(text, "advice: {advice}");
    }
    if let Some(sentence) = end.sentence() {
        let _ = writeln!(text, "{sentence}");
    }
    text
}

/// Whether an outcome counts. Jobs that did not run and stubs for refactorings, where a stub makes
/// no sense, are excluded.
fn is_counted(outcome: &GymOutcome) -> bool {
    (outcome.cause.is_some() || outcome.model == REFERENCE)
        && !(outcome.model == STUB && outcome.kind == TaskKind::Refactor)
}

/// Counts false rejects, accepted cheats and accepted stubs.
pub(super) fn self_faults(outcomes: &[GymOutcome]) -> usize {
    outcomes.iter().filter(|outcome| is_fault(outcome)).count()
}

fn is_fault(outcome: &GymOutcome) -> bool {
    is_counted(outcome)
        && match outcome.model.as_str() {
            REFERENCE => !outcome.accepted,
            CHEAT => outcome.accepted && outcome.verified,
            STUB => outcome.accepted,
            _ => false,
        }
}

pub(super) fn table(
    width: Option<u16>,
    head: &[&str],
    rows: impl Iterator<Item = Vec<String>>,
) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING);
    match width {
        Some(width) => table
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(width.max(60)),
        None => table.set_content_arrangement(ContentArrangement::Disabled),
    };
    let aligned = |n: usize, text: String| {
        Cell::new(text).set_alignment(if n == 0 {
            CellAlignment::Left
        } else {
            CellAlignment::Right
        })
    };
    table.set_header(
        head.iter()
            .enumerate()
            .map(|(n, title)| aligned(n, (*title).to_owned())),
    );
    for row in rows {
        table.add_row(
            row.into_iter()
                .enumerate()
                .map(|(n, text)| aligned(n, text)),
        );
    }
    let last = head.len() - 1;
    for (n, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, if n == last { 0 } else { 2 }));
    }
    table
        .lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect()
}

fn format_interval(interval: Interval) -> String {
    format!("{:.0}–{:.0} %", interval.low * 100.0, interval.high * 100.0)
}

fn seconds(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| String::from("–"), |seconds| format!("{seconds:.1} s"))
}
