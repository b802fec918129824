//! Plain output for a pipe, a file or a terminal without cursor control.

use std::collections::HashMap;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use super::view::{EndedCall, WatchView};
use crate::commands::stats::table::money;
use supervisor_engine::Cause;
use supervisor_engine::session::RecordedOutcome;
use supervisor_engine::session::live::{LiveCall, LiveEvent, LiveKind};
use supervisor_text::words::{cut_end, plain};
use supervisor_workspace::state::StateDir;

/// Prints the calls that run now.
pub(super) fn print_once(state: &StateDir, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    let mut view = WatchView::default();
    view.refresh(state);
    let mut text = String::new();
    for call in &view.calls {
        let now = call.now().map_or_else(|| "beginning".into(), describe);
        text += &format!(
            "{} {} · {now} · {} · {}\n",
            call.id,
            head(call),
            elapsed(call),
            money(call.cost_usd())
        );
    }
    if view.calls.is_empty() {
        text += "no call is at work\n";
    }
    crate::commands::print(out, &text)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints each step of each call as it happens, until the reader is gone.
pub(super) fn follow(
    state: &StateDir,
    out: &mut dyn Write,
    pause: Duration,
) -> anyhow::Result<ExitCode> {
    let (mut view, mut printed) = (WatchView::default(), HashMap::new());
    view.refresh(state);
    if view.calls.is_empty() {
        // On stderr, because another program may read the lines.
        let _ = writeln!(
            io::stderr(),
            "no call is at work yet; each step of each call will be a line here, Ctrl-C leaves"
        );
    }
    loop {
        view.refresh(state);
        let lines = new_lines(&mut view, &mut printed);
        match out.write_all(lines.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                return Ok(ExitCode::SUCCESS);
            }
            written => written?,
        }
        std::thread::sleep(pause);
    }
}

fn new_lines(view: &mut WatchView, printed: &mut HashMap<String, usize>) -> String {
    let mut text = String::new();
    for call in &view.calls {
        let count = printed.entry(call.id.clone()).or_default();
        for event in call.events.iter().skip(*count) {
            text += &format!(
                "{} {} · {} · {} s\n",
                call.id,
                head(call),
                describe(event),
                event.at_ms / 1000
            );
        }
        *count = call.events.len();
    }
    for ended in view.ended.drain(..).rev() {
        printed.remove(&ended.call.id);
        text += &format!(
            "{} {} · {}\n",
            ended.call.id,
            head(&ended.call),
            describe_end(&ended)
        );
    }
    text
}

/// `tdd_green in project`.
pub(super) fn head(call: &LiveCall) -> String {
    let project = call
        .header
        .project_root
        .rsplit('/')
        .next()
        .unwrap_or_default();
    let skill = one_line(&call.header.skill);
    if project.is_empty() {
        skill
    } else {
        format!("{skill} in {}", one_line(project))
    }
}

/// `tier 1/3 qwen3-coder rejected: answer_is_42 still fails`.
pub(super) fn describe(event: &LiveEvent) -> String {
    let text = cut_end(&one_line(&event.text), 300).into_owned();
    let tier = format!(
        "tier {}/{} {}",
        event.tier,
        event.of,
        one_line(&event.model)
    );
    match event.kind {
        LiveKind::Armed | LiveKind::Doing | LiveKind::Noted | LiveKind::Other => text,
        LiveKind::Asking => format!("{tier} · asking"),
        LiveKind::Working | LiveKind::Checking => format!("{tier} · {text}"),
        LiveKind::Judging => format!("{tier} · {text} judges"),
        LiveKind::Ended | LiveKind::Accepted => {
            format!(
                "{tier} {}: {text}",
                event.cause.map_or("ended", Cause::word)
            )
        }
    }
}

pub(super) fn describe_end(ended: &EndedCall) -> String {
    let message = cut_end(&one_line(&ended.message), 300).into_owned();
    match &ended.outcome {
        Some(outcome) => format!("{}: {message}", outcome.word()),
        None if ended.call.is_alive => "over".into(),
        None => "its server is gone".into(),
    }
}

pub(super) fn is_good(outcome: Option<&RecordedOutcome>) -> bool {
    outcome == Some(&RecordedOutcome::Pass)
}

/// Time since the call started.
pub(super) fn elapsed(call: &LiveCall) -> String {
    let began: Option<jiff::Timestamp> = call.header.began.parse().ok();
    let seconds = began.map_or(0, |began| {
        jiff::Timestamp::now()
            .duration_since(began)
            .as_secs()
            .max(0)
    });
    match seconds {
        0..600 => format!("{seconds} s"),
        _ => format!("{} min", seconds / 60),
    }
}

pub(super) fn one_line(text: &str) -> String {
    plain(text).replace(['\n', '\t'], " ")
}
