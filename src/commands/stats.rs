//! `supervisor stats`: figures about the models from the session logs, as a table or as JSON. Only
//! the logs count; the current settings are read only to name the line that advice refers to.

mod remedy;
pub(super) mod table;
#[cfg(feature = "database")]
mod team;
mod text;
pub(super) mod worth;

use crate::built_in;
use std::io::{IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;
use serde::Serialize;
use serde_json::json;

use remedy::Remedy;
use supervisor_engine::session::since::Since;
use supervisor_engine::session::stats::{Advice, Worth, is_of};
use supervisor_engine::session::{Filter, SessionId, SessionLog, Stats};
use supervisor_settings::{LoadedRouting, Routing, load};
use supervisor_text::words::{count, did_you_mean, one_of, plain};

/// Show what each model is worth and what it cost, from the session logs
///
/// Also what always asking the top tier would have cost, and which model is not worth its turn. Every figure comes from
/// the logs in the state directory; docs/log.md has the jq lines that recompute them.
#[derive(Debug, Args)]
pub(super) struct StatsCommand {
    /// Count only calls since a date (2026-01-31, UTC), a time, or so long ago (7d, 36h, 2w)
    #[arg(long, value_name = "WHEN")]
    since: Option<Since>,

    /// Count only this skill; `tdd` stands for its three tools
    #[arg(long, value_name = "NAME")]
    skill: Option<String>,

    /// Count only this session
    #[arg(long, value_name = "ID")]
    session: Option<SessionId>,

    /// Count only calls in this project
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Advice and what to do about it.
#[derive(Debug, Serialize)]
struct AdviceWithRemedy<'a> {
    #[serde(flatten)]
    advice: &'a Advice,
    #[serde(flatten)]
    remedy: Remedy,
}

impl StatsCommand {
    pub(super) fn run(
        self,
        config: Option<PathBuf>,
        out: &mut dyn Write,
    ) -> anyhow::Result<ExitCode> {
        let state = crate::commands::state_dir()?;
        let log = SessionLog::to_read(&state);
        let sessions = log.sessions()?;
        if let Some(session) = self
            .session
            .as_ref()
            .filter(|session| !sessions.contains(session))
        {
            let hint = match did_you_mean(session.as_str(), sessions.iter().map(SessionId::as_str))
            {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("it holds {}", count(sessions.len(), "session")),
            };
            bail!(
                "--session `{session}` has no log in {}; {hint}",
                log.directory().display()
            );
        }
        let filter = Filter {
            since: self.since.map(Since::time),
            skill: self.skill,
            session: self.session,
            project: self.project.as_deref().map(project_root).transpose()?,
        };
        let stats = Stats::gather(&log, &filter)?;
        if let Some(skill) = filter.skill.as_deref().filter(|_| stats.is_empty()) {
            ensure_known_skill(skill)?;
        }
        // `doctor` reports broken settings; the figures do not need them.
        let loaded = load(&built_in::sources(config)).ok();
        let advice = add_remedies(&stats, loaded.as_ref());
        let text = if self.json {
            let worth = worth::judge(&stats.worth, loaded.as_ref());
            render_json(&stats, &filter, &advice, &worth)?
        } else {
            let width = std::io::stdout()
                .is_terminal()
                .then(terminal_size::terminal_size)
                .flatten();
            let width = width.map(|(terminal_size::Width(columns), _)| columns);
            let worth = worth::paragraphs(
                &worth::judge(&stats.worth, loaded.as_ref()),
                worth::HostContext::measure(&state),
            );
            text::render(&stats, &filter, &advice, &worth, log.directory(), width)
        };
        #[cfg(feature = "database")]
        let text = with_team(text, self.json, &filter, &state, loaded.as_ref());
        super::print(out, &text)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Adds the figures of the team. They know of no single session, skill or project.
#[cfg(feature = "database")]
fn with_team(
    text: String,
    json: bool,
    filter: &Filter,
    state: &supervisor_workspace::state::StateDir,
    loaded: Option<&LoadedRouting>,
) -> String {
    let is_narrow = filter.skill.is_some() || filter.session.is_some() || filter.project.is_some();
    let figures = loaded
        .filter(|_| !is_narrow)
        .and_then(|loaded| team::figures(&loaded.routing, state, filter.since));
    match (figures, json) {
        (None, _) => text,
        (Some(figures), false) => text + &team::text(&figures),
        (Some(figures), true) => {
            let mut report: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
            report["team"] = match figures {
                Ok(figures) => json!(figures),
                Err(error) => json!({"error": error}),
            };
            serde_json::to_string_pretty(&report).unwrap_or(text) + "\n"
        }
    }
}

/// The directory as the log names it.
pub(super) fn project_root(given: &Path) -> anyhow::Result<PathBuf> {
    given.canonicalize().with_context(|| {
        format!(
            "--project `{}` cannot be opened",
            plain(&given.to_string_lossy())
        )
    })
}

/// The figures as JSON, after the filter, with a remedy for each advice.
fn render_json(
    stats: &Stats,
    filter: &Filter,
    advice: &[AdviceWithRemedy<'_>],
    worth: &Worth,
) -> serde_json::Result<String> {
    let figures: serde_json::Map<String, serde_json::Value> =
        serde_json::from_value(serde_json::to_value(stats)?)?;
    let since = filter.since.map(|since| since.to_string());
    let mut report = json!({
        "v": stats.v,
        "filter": {"since": since, "skill": filter.skill, "session": filter.session, "project": filter.project},
    });
    // `extend` keeps the position of existing keys.
    report
        .as_object_mut()
        .expect("is an object")
        .extend(figures);
    report["advice"] = json!(advice);
    report["worth"] = json!(worth);
    Ok(serde_json::to_string_pretty(&report)? + "\n")
}

fn add_remedies<'a>(stats: &'a Stats, loaded: Option<&LoadedRouting>) -> Vec<AdviceWithRemedy<'a>> {
    let remedy = |advice: &Advice| Remedy::of(loaded, &advice.skill, &advice.model);
    stats
        .advice
        .iter()
        .map(|advice| AdviceWithRemedy {
            advice,
            remedy: remedy(advice),
        })
        .collect()
}

/// Rejects a skill that does not exist. One that was never called is fine.
fn ensure_known_skill(skill: &str) -> anyhow::Result<()> {
    if Routing::known_skills().any(|known| is_of(known, skill)) {
        return Ok(());
    }
    let shown = plain(skill);
    match did_you_mean(skill, Routing::known_skills()) {
        Some(near) => bail!("--skill `{shown}` is not a skill; did you mean `{near}`?"),
        None => bail!(
            "--skill `{shown}` is not a skill, and no log names it; there are {}",
            one_of(Routing::known_skills()).replace(" or ", " and ")
        ),
    }
}
