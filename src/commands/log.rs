//! `supervisor log`: shows sessions and single calls of the session log. `stats` has the totals.

mod page;

use std::io::{IsTerminal as _, Write};
use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, Subcommand};
use serde_json::json;

use supervisor_engine::session::detail::{CallChoice, LoggedCall};
use supervisor_engine::session::{SessionId, SessionLog};
use supervisor_text::words::{count, did_you_mean, plain};

use super::console::Paint;

/// Show sessions and their calls: what was asked, what came back, why it was refused
#[derive(Debug, Args)]
pub(super) struct LogCommand {
    #[command(subcommand)]
    operation: LogOperation,
}

#[derive(Debug, Subcommand)]
enum LogOperation {
    /// List the sessions, the newest last
    List,
    /// Show the calls of a session, or one call with all that is kept of it
    Show(ShowCall),
}

#[derive(Debug, Args)]
struct ShowCall {
    /// The session: its name, its number in `log list`, or the beginning of its name; `last` is the one that was
    /// written to last
    session: String,

    /// One call: its number in the session, or the beginning of its id; `last` is the last one
    call: Option<String>,

    /// Print the questions too, where they were kept (`exchange = "full"` under [log])
    #[arg(long)]
    prompts: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl LogCommand {
    pub(super) fn run(self, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
        let log = SessionLog::to_read(&crate::commands::state_dir()?);
        let text = match self.operation {
            LogOperation::List => list(&log)?,
            LogOperation::Show(show) => show.text(&log)?,
        };
        super::print(out, &text)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn list(log: &SessionLog) -> anyhow::Result<String> {
    let sessions = by_time(log)?;
    if sessions.is_empty() {
        return Ok(format!("no session yet in {}\n", log.directory().display()));
    }
    let width = sessions.len().to_string().len();
    let lines = sessions
        .iter()
        .zip((1..=sessions.len()).rev())
        .map(|(id, n)| {
            let calls = log.calls(id, &CallChoice::All).unwrap_or_default();
            let skills: std::collections::BTreeSet<&str> = calls
                .iter()
                .map(|call| call.entry().tool.as_str())
                .collect();
            let last = calls
                .last()
                .map_or("", |call| call.entry().timestamp.as_str());
            let skills: Vec<&str> = skills.into_iter().collect();
            let when = last.get(..16).unwrap_or(last).replace('T', " ");
            format!(
                "{n:width$}  {when}  {id}  {} ({}){}\n",
                count(calls.len(), "call"),
                plain(&skills.join(", ")),
                in_projects(&calls)
            )
        });
    Ok(lines.collect())
}

/// Sessions, the newest last. Names chosen by users are not chronological.
fn by_time(log: &SessionLog) -> anyhow::Result<Vec<SessionId>> {
    let mut sessions = log.sessions()?;
    sessions.sort_by_key(|id| modified_at(log, id));
    Ok(sessions)
}

/// ` in ~/shop`, or nothing for calls without a project.
fn in_projects(calls: &[LoggedCall]) -> String {
    let home = std::env::var("HOME").unwrap_or_default();
    let roots: std::collections::BTreeSet<&str> = calls
        .iter()
        .map(|call| call.entry().project_root.as_str())
        .filter(|root| !root.is_empty())
        .collect();
    let short = |root: &str| match root.strip_prefix(&home) {
        Some(rest) if !home.is_empty() && rest.starts_with('/') => format!("~{rest}"),
        _ => root.to_owned(),
    };
    match roots.len() {
        0 => String::new(),
        _ => format!(
            "  in {}",
            plain(&supervisor_text::words::list(
                roots.into_iter().map(short),
                2
            ))
        ),
    }
}

fn modified_at(log: &SessionLog, id: &SessionId) -> Option<std::time::SystemTime> {
    std::fs::metadata(log.path(id))
        .and_then(|meta| meta.modified())
        .ok()
}

impl ShowCall {
    fn text(&self, log: &SessionLog) -> anyhow::Result<String> {
        let id = self.session(log)?;
        let choice = match self.call.as_deref() {
            None => CallChoice::All,
            Some("last") => CallChoice::Index(log.calls(&id, &CallChoice::All)?.len()),
            Some(call) => CallChoice::parse(call),
        };
        let calls = log.calls(&id, &choice)?;
        if calls.is_empty() {
            let all = log.calls(&id, &CallChoice::All)?.len();
            let wanted = plain(self.call.as_deref().unwrap_or_default()).into_owned();
            bail!(
                "session `{id}` has no call `{wanted}`; it has {}, numbered from 1",
                count(all, "call")
            );
        }
        if self.json {
            let shown: Vec<_> = calls.iter().map(|call| self.as_json(log, call)).collect();
            return Ok(serde_json::to_string_pretty(&shown)? + "\n");
        }
        let paint = Paint::on(&std::io::stdout());
        let width = std::io::stdout()
            .is_terminal()
            .then(terminal_size::terminal_size)
            .flatten();
        let width = width.map_or(100, |(terminal_size::Width(columns), _)| {
            usize::from(columns)
        });
        Ok(match self.call {
            None => page::outline(&calls, paint, width),
            Some(_) => calls
                .iter()
                .map(|call| page::full(log, call, self.prompts, paint))
                .collect(),
        })
    }

    fn session(&self, log: &SessionLog) -> anyhow::Result<SessionId> {
        let sessions = log.sessions()?;
        if self.session == "last" {
            let last = sessions.into_iter().max_by_key(|id| modified_at(log, id));
            return last
                .ok_or_else(|| anyhow::anyhow!("no session yet in {}", log.directory().display()));
        }
        let id: SessionId = self.session.parse()?;
        if sessions.contains(&id) {
            return Ok(id);
        }
        if let Ok(number @ 1..) = self.session.parse::<usize>()
            && let Some(numbered) = by_time(log)?.into_iter().rev().nth(number - 1)
        {
            return Ok(numbered);
        }
        let mut beginning = sessions
            .iter()
            .filter(|known| known.as_str().starts_with(id.as_str()));
        if let (Some(only), None) = (beginning.next(), beginning.next()) {
            return Ok(only.clone());
        }
        match did_you_mean(id.as_str(), sessions.iter().map(SessionId::as_str)) {
            Some(near) => bail!("session `{id}` has no log; did you mean `{near}`?"),
            None => {
                bail!(
                    "session `{id}` has no log in {}; `supervisor log list` shows them",
                    log.directory().display()
                )
            }
        }
    }

    fn as_json(&self, log: &SessionLog, call: &LoggedCall) -> serde_json::Value {
        let mut shown = json!(call.entry());
        shown["index"] = json!(call.index);
        shown["final_status"] = json!(call.record.outcome.word());
        for (n, attempt) in call.entry().attempts.iter().enumerate() {
            let exchange: Vec<_> = log
                .exchanges(attempt)
                .into_iter()
                .map(|kept| {
                    let asked = |text: Option<String>| text.filter(|_| self.prompts);
                    json!({"rules": asked(kept.rules), "prompt": asked(kept.prompt), "answer": kept.answer})
                })
                .collect();
            shown["attempts"][n]["texts"] = json!(exchange);
            shown["attempts"][n]["diff_text"] = json!(log.kept_diff(attempt));
        }
        shown
    }
}
