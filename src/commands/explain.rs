//! `supervisor explain`: shows the chain and limits in effect and where each value comes from.
//! Asks no model; for one skill it tries which tiers can be reached. The report is printed as text or as JSON.

mod measurements;
mod report;
mod text;

use crate::built_in;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;

use supervisor_engine::reach;
use supervisor_engine::services::{ModelHistory, NoModelHistory};
use supervisor_gym::passport::PassportBook;
use supervisor_models::{Backends, Env, SharedResources};
use supervisor_process::Launcher;
use supervisor_settings::{CallOverrides, LoadedRouting, Route, Routing, RoutingError, load};
use supervisor_workspace::state::StateDir;
use tokio_util::sync::CancellationToken;

#[derive(Debug, Args)]
pub(super) struct Explain {
    /// The skill to explain in full; without it, all of them in short
    skill: Option<String>,

    /// As if the call had named this model
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,

    /// As if the call had set this: `timeout_s`, `max_attempts`, `budget_usd` or `model`; can be repeated
    #[arg(long = "arg", value_name = "NAME=VALUE")]
    args: Vec<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Explain {
    pub(super) fn run(
        self,
        config: Option<PathBuf>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> anyhow::Result<ExitCode> {
        let loaded = load(&built_in::sources(config))?;
        let call = parse_overrides(self.model, &self.args)?;
        let mut report = build_report(
            &loaded,
            self.skill.as_deref(),
            &call,
            crate::commands::state_dir().ok().as_ref(),
        )?;
        if let Some(skill) = &self.skill {
            let route = loaded.routing.route(skill, &call)?;
            let history: Box<dyn ModelHistory> = match crate::commands::state_dir() {
                Ok(state) => Box::new(PassportBook::of(&state)),
                Err(_) => Box::new(NoModelHistory),
            };
            let runtime = super::runtime::build_runtime()?;
            let now = runtime.block_on(reach_tiers(&route, &*history));
            for (tier, now) in report.skills[0].chain.value.iter_mut().zip(now) {
                tier.now = Some(now);
            }
        }
        let mut text = Vec::new();
        if self.json {
            serde_json::to_writer_pretty(&mut text, &report)?;
            writeln!(text)?;
        } else {
            for warning in &report.warnings {
                writeln!(err, "warning: {warning}")?;
            }
            text::write(&report, &mut text)?;
        }
        super::print(out, &String::from_utf8_lossy(&text))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Says for each tier whether a call would ask it now, or why not.
async fn reach_tiers(route: &Route, history: &dyn ModelHistory) -> Vec<String> {
    let shared = SharedResources::new(Launcher::this_program(), Env::from_process(), 1);
    let backends = Backends::new(shared);
    let mut reached = Vec::new();
    for tier in route.chain.tiers() {
        if !route.pinned
            && let Some(off) = reach::switched_off(tier, &route.skill, history)
        {
            reached.push(format!("skipped: {}; {}", off.why, off.hint));
            continue;
        }
        let mut settled = tier.clone();
        let outage = backends
            .settle(&mut settled, &CancellationToken::new())
            .await;
        let (own, by) = (&tier.backend.name, &settled.backend.name);
        reached.push(match outage {
            Some(outage) => format!("skipped: {}; {}", outage.why, outage.hint),
            None if own != by => format!("asked through `{by}`: `{own}` is not set up"),
            None => "asked".into(),
        });
    }
    reached
}

/// Explains one skill in full, or all of them briefly, as JSON.
pub(super) fn explain_as_json(
    loaded: &LoadedRouting,
    state: &StateDir,
    skill: Option<&str>,
) -> Result<serde_json::Value, String> {
    let report = build_report(loaded, skill, &CallOverrides::default(), Some(state))
        .map_err(|error| error.to_string())?;
    serde_json::to_value(report).map_err(|error| error.to_string())
}

fn build_report(
    loaded: &LoadedRouting,
    skill: Option<&str>,
    call: &CallOverrides,
    state: Option<&StateDir>,
) -> Result<report::ExplainReport, RoutingError> {
    let skills = match skill {
        Some(skill) => vec![loaded.routing.choices(skill, call)?],
        None => Routing::known_skills()
            .map(|skill| loaded.routing.choices(skill, call))
            .collect::<Result<_, _>>()?,
    };
    let mut report = report::ExplainReport::new(loaded, &skills, skill.is_none());
    if let Some(state) = state {
        measurements::add_measurements(
            &mut report,
            &skills,
            &loaded.routing,
            &PassportBook::of(state),
        );
    }
    Ok(report)
}

/// Parses the overrides a call would set. Other tool arguments do not affect the routing and are
/// rejected.
fn parse_overrides(model: Option<String>, args: &[String]) -> anyhow::Result<CallOverrides> {
    let mut call = CallOverrides {
        model,
        ..CallOverrides::default()
    };
    for word in args {
        let Some((name, value)) = word.split_once('=') else {
            bail!(
                "`--arg {word}` has no name and `=`; write `--arg NAME=VALUE`, as in `--arg timeout_s=60`"
            );
        };
        let number = |takes: &str| -> anyhow::Result<f64> {
            value
                .trim()
                .parse::<f64>()
                .ok()
                .filter(|n| n.is_finite())
                .with_context(|| format!("`{name}` takes {takes}, not `{value}`"))
        };
        match name {
            "model" => call.model = Some(value.to_owned()),
            "timeout_s" => {
                let seconds = number("a number of seconds above 0")?;
                call.timeout = Some(
                    Duration::try_from_secs_f64(seconds)
                        .context("`timeout_s` takes a number of seconds above 0")?,
                );
            }
            "max_attempts" => {
                let n = value.trim().parse().ok();
                call.max_attempts = Some(n.with_context(|| {
                    format!("`max_attempts` takes a whole number from 1 on, not `{value}`")
                })?);
            }
            "budget_usd" => call.budget_usd = Some(number("an amount of USD above 0")?),
            other => bail!(
                "`{other}` of a call does not change the routing; `model`, `timeout_s`, `max_attempts` and `budget_usd` do"
            ),
        }
    }
    Ok(call)
}
