//! Draws the screen: running calls with ended ones below, or one call with its steps or its diff.
//! Works at any size.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize as _};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::lines::{describe, describe_end, elapsed, head, is_good, one_line};
use super::view::{WatchMode, WatchView};
use crate::commands::stats::table::money;
use supervisor_engine::Cause;
use supervisor_engine::session::live::{LiveCall, LiveEvent, LiveKind};
use supervisor_text::words::count;

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// Rows of one call in the list.
const CALL_ROWS: usize = 3;

pub(super) fn draw(frame: &mut Frame<'_>, view: &WatchView) {
    let [top, middle, bottom] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let title = Line::from(vec![
        " supervisor ".bold().reversed(),
        format!(" {} at work", count(view.calls.len(), "call")).into(),
    ]);
    frame.render_widget(title, top);
    match (view.mode, view.selected_call()) {
        (WatchMode::Follow, Some(call)) => draw_steps(frame, middle, call, view),
        (WatchMode::Diff, Some(call)) => draw_diff(frame, middle, call, view),
        _ => draw_list(frame, middle, view),
    }
    frame.render_widget(foot(view), bottom);
}

fn foot(view: &WatchView) -> Line<'_> {
    if !view.note.is_empty() {
        return Line::from(format!(" {}", view.note)).yellow();
    }
    let words = match view.mode {
        WatchMode::ConfirmCancel => return Line::from(" cancel this call? y/n").yellow().bold(),
        WatchMode::List if view.calls.is_empty() => " q quit",
        WatchMode::List => " ↑↓ choose  enter follow  d diff  c cancel  q quit",
        WatchMode::Follow => " esc back  d diff  ↑↓ scroll  c cancel  q quit",
        WatchMode::Diff => " esc back  d steps  ↑↓ scroll  c cancel  q quit",
    };
    Line::from(words).dim()
}

fn draw_list(frame: &mut Frame<'_>, area: Rect, view: &WatchView) {
    let mut lines: Vec<Line<'_>> = Vec::new();
    for (n, call) in view.calls.iter().enumerate() {
        lines.extend(call_lines(call, n == view.selected, view.frame));
    }
    if view.calls.is_empty() {
        lines.push(Line::default());
        lines.push(Line::from(" No call is at work. They show up here as they begin.").dim());
    }
    if !view.ended.is_empty() {
        lines.push(Line::default());
        lines.push(Line::from(" ended").dim());
    }
    for ended in &view.ended {
        let good = is_good(ended.outcome.as_ref());
        let mark = if good {
            " ✓ ".green()
        } else {
            " ✗ ".yellow()
        };
        lines.push(Line::from(vec![
            mark,
            Span::from(head(&ended.call)).bold(),
            " ".into(),
            describe_end(ended).into(),
        ]));
    }
    // Keep the selected call visible.
    let last = (view.selected + 1) * CALL_ROWS;
    let scroll = last.saturating_sub(usize::from(area.height));
    frame.render_widget(Paragraph::new(lines).scroll((to_u16(scroll), 0)), area);
}

/// Three lines per call: its position, its current step and its last verdicts.
fn call_lines(call: &LiveCall, is_selected: bool, frame: usize) -> [Line<'static>; CALL_ROWS] {
    let spinner = if call.is_alive {
        FRAMES[frame % FRAMES.len()]
    } else {
        "†"
    };
    let bar = if is_selected { "▌" } else { " " };
    let name = if is_selected {
        Style::new().add_modifier(Modifier::BOLD).fg(Color::Cyan)
    } else {
        Style::new().bold()
    };
    let tier = call.events.iter().rev().find(|event| event.tier > 0);
    let place = tier.map_or_else(
        || format!("before tier 1/{}", call.header.chain.len()),
        |at| format!("tier {}/{} {}", at.tier, at.of, one_line(&at.model)),
    );
    let figures = format!(
        "{} · {place} · try {} · {}",
        elapsed(call),
        call.attempt(),
        money(call.cost_usd())
    );
    let now = call
        .now()
        .map_or_else(|| "beginning".into(), describe_without_tier);
    let verdicts: Vec<Span<'static>> = call.verdicts().rev().take(3).flat_map(verdict).collect();
    [
        Line::from(vec![
            format!("{bar}{spinner} ").into(),
            Span::styled(head(call), name),
            format!(" · {figures}").into(),
        ]),
        Line::from(vec![format!("{bar}  ").into(), now.into()]),
        Line::from([vec![format!("{bar}  ").into()], verdicts].concat()),
    ]
}

/// Describes the event without its tier, which the line above shows.
fn describe_without_tier(event: &LiveEvent) -> String {
    match event.kind {
        LiveKind::Asking => "asking".into(),
        LiveKind::Judging => format!("{} judges", one_line(&event.text)),
        LiveKind::Ended | LiveKind::Accepted => {
            format!(
                "{}: {}",
                event.cause.map_or("ended", Cause::word),
                one_line(&event.text)
            )
        }
        _ => one_line(&event.text),
    }
}

fn verdict(event: &LiveEvent) -> [Span<'static>; 2] {
    let word = event.cause.map_or("ended", Cause::word);
    let text = format!("{} {word}", one_line(&event.model));
    let span = if event.kind == LiveKind::Accepted {
        text.green()
    } else {
        text.yellow()
    };
    [span, format!(": {}  ", one_line(&event.text)).dim()]
}

fn draw_steps(frame: &mut Frame<'_>, area: Rect, call: &LiveCall, view: &WatchView) {
    let [summary, steps] =
        Layout::vertical([Constraint::Length(3), Constraint::Min(0)]).areas(area);
    frame.render_widget(
        Paragraph::new(call_lines(call, true, view.frame).to_vec()),
        summary,
    );
    let lines: Vec<Line<'_>> = call
        .events
        .iter()
        .map(|event| {
            let style = match event.kind {
                LiveKind::Accepted => Style::new().green(),
                LiveKind::Ended => Style::new().yellow(),
                _ => Style::new(),
            };
            let time = format!("{:>6.1} s  ", event.at_ms as f64 / 1000.0);
            Line::from(vec![time.dim(), Span::styled(describe(event), style)])
        })
        .collect();
    frame.render_widget(
        Paragraph::new(visible_lines(lines, steps, view.scroll)),
        steps,
    );
}

fn draw_diff(frame: &mut Frame<'_>, area: Rect, call: &LiveCall, view: &WatchView) {
    let diff = call.diff().unwrap_or("no change was tried yet");
    let lines: Vec<Line<'_>> = diff
        .lines()
        .map(|line| {
            let text = supervisor_text::words::plain(line).replace('\t', "    ");
            match line.as_bytes().first() {
                Some(b'+') => Line::from(text).green(),
                Some(b'-') => Line::from(text).red(),
                Some(b'@') => Line::from(text).cyan(),
                _ => Line::from(text),
            }
        })
        .collect();
    // Start at the top of the diff.
    let max_scroll = lines.len().saturating_sub(usize::from(area.height));
    let from = max_scroll
        .saturating_sub(usize::from(view.scroll))
        .min(max_scroll);
    let from = if view.scroll == 0 { 0 } else { from };
    frame.render_widget(
        Paragraph::new(lines.into_iter().skip(from).collect::<Vec<_>>()),
        area,
    );
}

/// The last lines that fit, moved up by `scroll` rows.
fn visible_lines(lines: Vec<Line<'_>>, area: Rect, scroll: u16) -> Vec<Line<'_>> {
    let end = lines
        .len()
        .saturating_sub(usize::from(scroll))
        .max(lines.len().min(usize::from(area.height)));
    let begin = end.saturating_sub(usize::from(area.height));
    lines.into_iter().skip(begin).take(end - begin).collect()
}

fn to_u16(n: usize) -> u16 {
    u16::try_from(n).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::keys::WatchKey;
    use super::super::view::KeyOutcome;
    use super::*;
    use supervisor_engine::services::LiveHeader;
    use supervisor_workspace::state::StateDir;

    fn event(kind: LiveKind, tier: usize, text: &str, cause: Option<Cause>) -> LiveEvent {
        let model = if tier == 1 {
            "qwen3-coder"
        } else {
            "claude-sonnet\u{1b}[2J"
        };
        let diff = if cause.is_some() {
            "@@ -1 +1 @@\n-a\n+b\n".into()
        } else {
            String::new()
        };
        LiveEvent {
            at_ms: 1_500,
            kind,
            tier,
            of: 2,
            model: model.into(),
            text: text.into(),
            cause,
            cost_usd: Some(0.25),
            diff,
        }
    }

    fn view() -> WatchView {
        let header = LiveHeader {
            call: String::new(),
            session_id: "s".into(),
            skill: "tdd_green".into(),
            phase: "green".into(),
            project_root: "/home/me/roman".into(),
            began: jiff::Timestamp::now().to_string(),
            chain: vec!["qwen3-coder".into(), "claude-sonnet".into()],
        };
        let events = vec![
            event(LiveKind::Asking, 1, "", None),
            event(LiveKind::Checking, 1, "running `cargo test`", None),
            event(
                LiveKind::Ended,
                1,
                "answer_is_42 still fails",
                Some(Cause::Rejected),
            ),
            event(LiveKind::Checking, 2, "2 passed\n(0.4 s)", None),
        ];
        let call = |id: &str| LiveCall {
            id: id.into(),
            header: header.clone(),
            events: events.clone(),
            is_alive: true,
        };
        WatchView {
            calls: vec![call("a"), call("b")],
            ..WatchView::default()
        }
    }

    fn render_rows(view: &WatchView, columns: u16, rows: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(columns, rows)).expect("memory");
        terminal.draw(|frame| draw(frame, view)).expect("memory");
        let buffer = terminal.backend().buffer().clone();
        (0..rows)
            .map(|y| {
                (0..columns)
                    .map(|x| buffer[(x, y)].symbol())
                    .collect::<String>()
                    .trim_end()
                    .to_owned()
            })
            .collect()
    }

    #[test]
    fn call_shows_tier_cost_step_and_verdict() {
        let rows = render_rows(&view(), 80, 24);
        assert_eq!(rows[0], " supervisor  2 calls at work");
        assert!(
            rows[1].contains("tdd_green in roman · 0 s · tier 2/2 claude-sonnet\\u{1b}[2J · try 2"),
            "{}",
            rows[1]
        );
        assert_eq!(rows[2], "▌  2 passed (0.4 s)");
        assert_eq!(rows[3], "▌  qwen3-coder rejected: answer_is_42 still fails");
        assert!(
            rows[23].contains("c cancel") && render_rows(&view(), 200, 60)[1].contains("$0.25")
        );
    }

    #[test]
    fn every_mode_draws_at_any_size() {
        for mode in [
            WatchMode::List,
            WatchMode::Follow,
            WatchMode::Diff,
            WatchMode::ConfirmCancel,
        ] {
            for (columns, rows) in [(1, 1), (20, 5), (20, 24), (80, 24), (200, 60)] {
                for scroll in [0, 3, u16::MAX] {
                    render_rows(
                        &WatchView {
                            mode,
                            scroll,
                            ..view()
                        },
                        columns,
                        rows,
                    );
                    render_rows(
                        &WatchView {
                            mode,
                            scroll,
                            ..WatchView::default()
                        },
                        columns,
                        rows,
                    );
                }
            }
        }
        assert!(
            render_rows(
                &WatchView {
                    mode: WatchMode::Diff,
                    ..view()
                },
                20,
                8
            )
            .iter()
            .any(|row| row == "+b")
        );
    }

    #[test]
    fn keys_navigate_and_cancel_needs_confirmation() {
        let dir = tempfile::tempdir().expect("temp dir");
        let state = StateDir::at(dir.path().to_owned()).expect("absolute");
        let mut view = view();
        for (key, mode) in [
            (WatchKey::Down, WatchMode::List),
            (WatchKey::Enter, WatchMode::Follow),
            (WatchKey::Diff, WatchMode::Diff),
            (WatchKey::Back, WatchMode::List),
            (WatchKey::Cancel, WatchMode::ConfirmCancel),
            (WatchKey::Other, WatchMode::List),
        ] {
            assert_eq!(
                (view.handle_key(key, &state), view.mode),
                (KeyOutcome::Continue, mode),
                "{key:?}"
            );
        }
        assert_eq!((view.selected, view.note.as_str()), (1, "not cancelled"));
        view.handle_key(WatchKey::Cancel, &state);
        view.handle_key(WatchKey::Yes, &state);
        assert_eq!(view.note, "it is over already");
        assert_eq!(view.handle_key(WatchKey::Quit, &state), KeyOutcome::Quit);
    }
}
