//! The charts as SVG. Colours come from the page's style sheet, which also handles dark mode and
//! narrow screens; charting crates write fixed colours into the image.

use maud::{Markup, html};

use super::gather::LatencyHistogram;
use super::timeline::Timeline;
use crate::commands::stats::table::{duration, money};
use supervisor_engine::session::stats::ModelStats;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 190.0;
/// Space for the axis labels on the left and the dates below.
const LEFT: f64 = 50.0;
const BOTTOM: f64 = 24.0;

/// CSS class for the colour of a model, by its rank.
pub(super) fn series(rank: usize) -> &'static str {
    const SERIES: [&str; 8] = ["s-0", "s-1", "s-2", "s-3", "s-4", "s-5", "s-6", "s-7"];
    SERIES[rank % SERIES.len()]
}

/// Stacked bars; clicking one shows its calls.
pub(super) fn calls_over_time(timeline: &Timeline) -> Markup {
    let max_value = timeline
        .steps
        .iter()
        .map(super::timeline::TimeStep::calls)
        .max()
        .unwrap_or_default()
        .max(1);
    let top = nice_ceiling(max_value as f64);
    let width = (WIDTH - LEFT) / timeline.steps.len().max(1) as f64;
    let bar = (width * 0.78).min(46.0);
    let scale = |calls: usize| calls as f64 / top * (HEIGHT - 12.0);
    frame(
        "Calls over time",
        &[0.0, top / 2.0, top].map(|value| (value / top, format_tick(value))),
        timeline,
        &html! {
            @for (n, step) in timeline.steps.iter().enumerate() {
                @let x = LEFT + n as f64 * width + (width - bar) / 2.0;
                @let tooltip = format!("{}: {} pass, {} fail, {} error", timeline.label(step.begins_ms), step.pass, step.fail, step.error);
                g.bar tabindex=[(step.calls() > 0).then_some("0")] role="button" aria-label=(tooltip)
                    data-from=(step.begins_ms) data-to=(step.begins_ms + timeline.step_ms) data-label=(timeline.label(step.begins_ms)) {
                    title { (tooltip) }
                    rect.hit x=(round(LEFT + n as f64 * width)) y="0" width=(round(width)) height=(HEIGHT) {}
                    @let mut y = HEIGHT;
                    @for (class, calls) in [("s-pass", step.pass), ("s-fail", step.fail), ("s-error", step.error)] {
                        @if calls > 0 {
                            @let () = y -= scale(calls);
                            rect.(class) x=(round(x)) y=(round(y)) width=(round(bar)) height=(round(scale(calls))) {}
                        }
                    }
                }
            }
        },
    )
}

/// Cumulative cost, and what the top tier alone would have cost.
pub(super) fn savings(timeline: &Timeline) -> Markup {
    let add = |pick: fn(&super::timeline::TimeStep) -> f64| -> Vec<f64> {
        let sums = timeline.steps.iter().scan(0.0, |sum, step| {
            *sum += pick(step);
            Some(*sum)
        });
        std::iter::once(0.0).chain(sums).collect()
    };
    let (spent, alone) = (add(|step| step.spent_usd), add(|step| step.top_tier_usd));
    let max_value = spent
        .iter()
        .chain(&alone)
        .copied()
        .fold(0.0, f64::max)
        .max(1e-9);
    let top = nice_ceiling(max_value);
    let width = (WIDTH - LEFT) / timeline.steps.len().max(1) as f64;
    let point = |n: usize, usd: f64| {
        format!(
            "{:.1} {:.1}",
            LEFT + n as f64 * width,
            HEIGHT - usd / top * (HEIGHT - 12.0)
        )
    };
    let line = |sums: &[f64]| {
        let points: Vec<String> = sums
            .iter()
            .enumerate()
            .map(|(n, usd)| point(n, *usd))
            .collect();
        points.join("L")
    };
    let back: Vec<String> = spent
        .iter()
        .enumerate()
        .rev()
        .map(|(n, usd)| point(n, *usd))
        .collect();
    let area = format!("M{}L{}Z", line(&alone), back.join("L"));
    frame(
        "Money spent, and what the top tier alone would have cost",
        &[0.0, top / 2.0, top].map(|value| (value / top, axis_money(value))),
        timeline,
        &html! {
            path.saved d=(area) {}
            path.line.alone d=(format!("M{}", line(&alone))) {}
            path.line.spent d=(format!("M{}", line(&spent))) {}
        },
    )
}

/// Latency histogram of one model on a logarithmic axis, with the median and the 95th percentile.
pub(super) fn latency(histogram: &LatencyHistogram, stats: &ModelStats, rank: usize) -> Markup {
    let max_value = histogram
        .counts
        .iter()
        .copied()
        .max()
        .unwrap_or_default()
        .max(1) as f64;
    let width = 300.0 / LatencyHistogram::STEPS as f64;
    let mark = |ms: Option<u64>| ms.map(|ms| round(LatencyHistogram::position(ms) * 300.0));
    let tooltip = format!(
        "median {}, 95 % within {}",
        stats.median_ms.map_or_else(|| "–".into(), duration),
        stats.p95_ms.map_or_else(|| "–".into(), duration)
    );
    html! {
        svg.spark viewBox="0 0 300 40" preserveAspectRatio="none" role="img" aria-label=(tooltip) {
            title { (tooltip) }
            line.axis x1="0" y1="39.5" x2="300" y2="39.5" {}
            @for (n, count) in histogram.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                @let height = (*count as f64 / max_value * 36.0).max(2.0);
                rect.(series(rank)) x=(round(n as f64 * width + 0.5)) y=(round(39.0 - height)) width=(round(width - 1.0)) height=(round(height)) {}
            }
            @if let Some(x) = mark(stats.median_ms) { line.median x1=(x) x2=(x) y1="0" y2="39" {} }
            @if let Some(x) = mark(stats.p95_ms) { line.p95 x1=(x) x2=(x) y1="0" y2="39" {} }
        }
    }
}

/// Leaves out the cents of large amounts, to fit the axis.
fn axis_money(usd: f64) -> String {
    if usd < 100.0 {
        money(usd)
    } else {
        format!("${usd:.0}")
    }
}

/// A horizontal bar for a share from 0 to 1.
pub(super) fn meter(share: f64, class: &str) -> Markup {
    html! {
        svg.meter viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" {
            rect.track width="100" height="8" rx="2" {}
            rect.(class) width=(round(share.clamp(0.0, 1.0) * 100.0)) height="8" rx="2" {}
        }
    }
}

/// A horizontal bar split into parts.
pub(super) fn split(parts: &[(&str, usize)]) -> Markup {
    let total = parts.iter().map(|(_, count)| count).sum::<usize>().max(1) as f64;
    html! {
        svg.meter viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" {
            rect.track width="100" height="8" {}
            @let mut x = 0.0;
            @for (class, count) in parts {
                @let width = *count as f64 / total * 100.0;
                rect.(class) x=(round(x)) width=(round(width)) height="8" {}
                @let () = x += width;
            }
        }
    }
}

fn frame(label: &str, ticks: &[(f64, String)], timeline: &Timeline, inside: &Markup) -> Markup {
    let steps = timeline.steps.len();
    let width = (WIDTH - LEFT) / steps.max(1) as f64;
    let every = steps.div_ceil(8).max(1);
    html! {
        svg.chart viewBox=(format!("0 0 {WIDTH} {}", HEIGHT + BOTTOM)) role="img" aria-label=(label) {
            @for (share, tick_label) in ticks {
                @let y = round(HEIGHT - share * (HEIGHT - 12.0));
                line.grid x1=(LEFT) x2=(WIDTH) y1=(y) y2=(y) {}
                text.tick x=(LEFT - 6.0) y=(y) dy="3" text-anchor="end" { (tick_label) }
            }
            (inside)
            @for (n, step) in timeline.steps.iter().enumerate().step_by(every) {
                text.tick x=(round(LEFT + (n as f64 + 0.5) * width)) y=(HEIGHT + 16.0) text-anchor="middle" {
                    (timeline.label(step.begins_ms).trim_start_matches(|c: char| c.is_ascii_digit()).trim_start_matches('-'))
                }
            }
        }
    }
}

/// Rounds up to 1, 2 or 5 times a power of ten.
fn nice_ceiling(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|times| times * power)
        .into_iter()
        .find(|nice| *nice >= value)
        .unwrap_or(value)
}

fn format_tick(value: f64) -> String {
    if value.fract() == 0.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.1}")
    }
}

fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axis_ends_at_round_number() {
        assert_eq!(
            [1.0, 3.0, 7.0, 12.0, 0.03].map(nice_ceiling),
            [1.0, 5.0, 10.0, 20.0, 0.05]
        );
    }
}
