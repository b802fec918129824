//! `supervisor statusline`: one line for the status line of Claude Code, which passes JSON on stdin and calls this often.

use std::io::{Read as _, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use clap::Args;
use serde_json::Value;

use super::stats::table::short;
use supervisor_engine::session::stats::{Admission, CallTally, Calls};
use supervisor_engine::session::{Filter, SessionLog};
use supervisor_text::words::count;

/// What one day's calls in this project cost and saved, as one line
///
/// For Claude Code: `"statusLine": {"type": "command", "command": "supervisor statusline"}` in its settings. It reads
/// Claude Code's JSON on stdin; without it, the current directory counts.
#[derive(Debug, Args)]
pub(super) struct StatusLine {}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const MAX_INPUT_BYTES: u64 = 1 << 20;

impl StatusLine {
    pub(super) fn run(self, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
        let mut input = String::new();
        if !std::io::IsTerminal::is_terminal(&std::io::stdin()) {
            // Whatever is wrong with the input: a status line shows no errors.
            let _ = std::io::stdin()
                .take(MAX_INPUT_BYTES)
                .read_to_string(&mut input);
        }
        let project = project_of(&input).or_else(|| std::env::current_dir().ok());
        let project = project.and_then(|path| path.canonicalize().ok());
        let calls = last_day(project)?;
        super::print(out, &line(&calls))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The project directory that Claude Code names.
fn project_of(input: &str) -> Option<PathBuf> {
    let input: Value = serde_json::from_str(input).ok()?;
    let named = [&input["workspace"]["project_dir"], &input["cwd"]];
    let path = named.into_iter().find_map(Value::as_str)?;
    Some(PathBuf::from(path)).filter(|path| path.is_absolute())
}

fn last_day(project: Option<PathBuf>) -> anyhow::Result<Calls> {
    let log = SessionLog::to_read(&crate::commands::state_dir()?);
    let since = SystemTime::now() - DAY;
    let filter = Filter {
        since: jiff::Timestamp::try_from(since).ok(),
        project,
        ..Filter::default()
    };
    let mut tally = CallTally::default();
    // A log that was not written to since has no call of this day.
    let is_recent = |path: &Path| {
        let modified = std::fs::metadata(path).and_then(|meta| meta.modified());
        modified.is_ok_and(|at| at >= since)
    };
    for session in log.sessions()? {
        if !is_recent(&log.path(&session)) {
            continue;
        }
        let Ok(reader) = log.reader(&session) else {
            continue;
        };
        reader
            .filter(|record| matches!(filter.admit(record), Admission::Counts(_)))
            .for_each(|record| tally.add(&record));
    }
    Ok(tally.finish())
}

/// `supervisor: 3 calls today, $0.02 instead of about $0.35`
fn line(calls: &Calls) -> String {
    let both = &calls.compared;
    let mut line = format!("supervisor: {} today", count(calls.calls, "call"));
    let tokens = calls.subscription_tokens;
    if tokens > 0 {
        line += &format!(", {} tokens of the subscription", short(tokens));
    }
    if calls.calls > 0 && (tokens == 0 || calls.cost_usd > 0.0) {
        line += &format!(", ${:.2}", calls.cost_usd);
    }
    if both.top_tier_cost_usd > both.cost_usd && calls.calls == both.calls {
        let about = if calls.top_tier.estimated > 0 {
            "about "
        } else {
            ""
        };
        line += &format!(" instead of {about}${:.2}", both.top_tier_cost_usd);
    }
    line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use supervisor_engine::session::stats::{ComparedCosts, TopTierCost};

    #[test]
    fn line_says_what_was_saved() {
        assert_eq!(line(&Calls::default()), "supervisor: 0 calls today\n");
        let calls = Calls {
            calls: 3,
            cost_usd: 0.02,
            top_tier: TopTierCost {
                estimated: 2,
                ..TopTierCost::default()
            },
            compared: ComparedCosts {
                calls: 3,
                cost_usd: 0.02,
                top_tier_cost_usd: 0.347,
            },
            ..Calls::default()
        };
        assert_eq!(
            line(&calls),
            "supervisor: 3 calls today, $0.02 instead of about $0.35\n"
        );
    }

    #[test]
    fn line_counts_tokens_of_a_subscription() {
        let mut calls = Calls {
            calls: 2,
            subscription_tokens: 12_345,
            ..Calls::default()
        };
        let tokens = "supervisor: 2 calls today, 12k tokens of the subscription";
        assert_eq!(line(&calls), format!("{tokens}\n"));
        calls.cost_usd = 0.5;
        assert_eq!(line(&calls), format!("{tokens}, $0.50\n"));
    }

    #[test]
    fn project_is_read_from_claude_code() {
        let input = r#"{"cwd": "/a/b", "workspace": {"current_dir": "/a/b", "project_dir": "/a"}}"#;
        assert_eq!(project_of(input).as_deref(), Some(Path::new("/a")));
        assert_eq!(
            project_of(r#"{"cwd": "/c"}"#).as_deref(),
            Some(Path::new("/c"))
        );
        assert_eq!(project_of("no JSON"), None);
    }
}
