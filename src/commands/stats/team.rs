//! The figures of the whole team, where the settings name its database. Without the database the command still shows those of
//! this machine.

use std::fmt::Write as _;

use supervisor_engine::session::SessionLog;
use supervisor_settings::Routing;
use supervisor_shared_state::{SharedState, TeamConfig, TeamFigures};
use supervisor_workspace::state::StateDir;

/// `None` if no database is named.
pub(super) fn figures(
    routing: &Routing,
    state: &StateDir,
    since: Option<jiff::Timestamp>,
) -> Option<Result<TeamFigures, String>> {
    let variable = |name: &str| std::env::var(name).ok();
    let config = match TeamConfig::new(&routing.team, variable) {
        Ok(config) => config?,
        Err(error) => return Some(Err(error.to_string())),
    };
    Some(read(config, state, since).map_err(|error| error.to_string()))
}

fn read(
    config: TeamConfig,
    state: &StateDir,
    since: Option<jiff::Timestamp>,
) -> anyhow::Result<TeamFigures> {
    let runtime = crate::commands::runtime::build_runtime()?;
    let shared = SharedState::new(config, SessionLog::to_read(state), state.sub("shared")?);
    let since = since.map_or(0.0, |since| since.as_duration().as_secs_f64());
    let figures = runtime.block_on(async {
        // What this machine logged last belongs to the figures.
        shared.send().await?;
        shared.figures(since).await
    });
    runtime.shutdown_background();
    Ok(figures?)
}

/// As text, below the figures of this machine.
pub(super) fn text(figures: &Result<TeamFigures, String>) -> String {
    let figures = match figures {
        Ok(figures) => figures,
        Err(error) => {
            return format!(
                "\nThe team's figures cannot be read: {error}. Those above are of this machine; check `team.database`.\n"
            );
        }
    };
    let mut text = format!(
        "\nTeam {}: {} calls of {} people, {} passed, ${:.2}\n",
        figures.team, figures.calls, figures.people, figures.passed, figures.cost_usd
    );
    for model in &figures.models {
        let _ = writeln!(
            text,
            "  {}: {} of {} attempts accepted, ${:.2}",
            model.model, model.accepted, model.attempts, model.cost_usd
        );
    }
    let of = |used: f64, cap: Option<f64>| match cap {
        Some(cap) => format!("${used:.2} of ${cap:.2}"),
        None => format!("${used:.2}, no cap"),
    };
    let today = &figures.today;
    let _ = writeln!(
        text,
        "Today (UTC), spent and reserved: the team {}; you {}",
        of(today.team_usd, today.team_cap_usd),
        of(today.own_usd, today.own_cap_usd)
    );
    supervisor_text::words::plain(&text).into_owned()
}
