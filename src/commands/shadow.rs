//! `supervisor shadow`: switches shadow mode on and off, replays what it recorded, and reports what delegation would have
//! saved.

mod recording;
mod replay;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use supervisor_gym::passport::PassportBook;
use supervisor_shadow::{
    KEPT_DAYS, Report, RunEnd, RunLimits, RunSummary, ShadowSettings, ShadowStore, ThisMachine, run,
};
use supervisor_text::words::count;
use supervisor_workspace::state::StateDir;
use tokio_util::sync::CancellationToken;

pub(super) use recording::{Recording, follow_plugin, record_proven};
use replay::EngineReplay;

use super::signals::Signals;

/// Niceness of a run and of everything below it.
const NICENESS: i32 = 15;
const INTERRUPTED: u8 = 130;

/// See what cheaper models would have done of your own work, before anything changes
///
/// While it is on, each change that `prove` or the prove gate finds proven is recorded: its tests, and the files as they
/// were before. `shadow run` then asks the local models of your chain to do the same on a copy, while the machine is idle.
/// Nothing leaves this machine unless you name a model with --model, and your files are never touched. What is recorded is
/// redacted and kept for 14 days.
#[derive(Debug, Args)]
pub(super) struct ShadowCommand {
    #[command(subcommand)]
    action: ShadowAction,
}

#[derive(Debug, Subcommand)]
enum ShadowAction {
    /// Record proven changes from now on
    On {
        /// Ask this model in the place of the local ones of the chain; it may be outside of this machine
        #[arg(long, value_name = "NAME")]
        model: Option<String>,
        /// Most that one run may spend; local models cost nothing
        #[arg(long, value_name = "USD", default_value_t = 1.0)]
        budget_usd: f64,
        /// Most that one run may take
        #[arg(long, value_name = "N", default_value_t = 120.0)]
        minutes: f64,
    },
    /// Record no more; what is recorded stays until it is purged or too old
    Off,
    /// Show whether it is on and what is recorded
    Status,
    /// Show what would have been saved, and the setting that follows
    Report {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove everything that was recorded
    Purge,
    /// Replay what is recorded, at low priority, and stop within a second when the machine is needed
    Run {
        /// End when the machine is busy, instead of waiting until it is idle again
        #[arg(long)]
        no_wait: bool,
        /// Run although the machine is needed, or it cannot be told whether it is
        #[arg(long)]
        anyway: bool,
        /// In place of the minutes of `shadow on`
        #[arg(long, value_name = "N")]
        minutes: Option<f64>,
        /// In place of the budget of `shadow on`
        #[arg(long, value_name = "USD")]
        budget_usd: Option<f64>,
    },
}

impl ShadowCommand {
    pub(super) fn run(
        self,
        config: Option<PathBuf>,
        out: &mut dyn Write,
    ) -> anyhow::Result<ExitCode> {
        let state = StateDir::locate()?;
        let store = ShadowStore::of(&state);
        let now = Timestamp::now();
        let text = match self.action {
            ShadowAction::On {
                model,
                budget_usd,
                minutes,
            } => {
                store.switch_on(&ShadowSettings {
                    since: now,
                    model,
                    budget_usd,
                    minutes,
                    by_plugin: false,
                })
                .with_context(|| {
                    let dir = state.path().display();
                    format!("`{dir}` cannot be written; set $SUPERVISOR_STATE_DIR to a directory that can")
                })?;
                String::from(
                    "shadow mode is on: changes that `prove` or the prove gate finds proven are recorded\n\
                     next: `supervisor shadow run`, by hand or at night from cron, then `supervisor shadow report`\n",
                )
            }
            ShadowAction::Off => {
                store.switch_off()?;
                String::from(
                    "shadow mode is off; `supervisor shadow purge` removes what was recorded\n",
                )
            }
            ShadowAction::Status => {
                store.expire(now)?;
                status(&store)
            }
            ShadowAction::Report { json } => {
                store.expire(now)?;
                let report = Report::of(&store.tasks());
                match json {
                    true => {
                        let mut value = serde_json::to_value(&report)?;
                        value["advice"] = report.advice().into();
                        serde_json::to_string_pretty(&value)? + "\n"
                    }
                    false => report.to_text(),
                }
            }
            ShadowAction::Purge => format!("removed {}\n", count(store.purge()?, "task")),
            ShadowAction::Run {
                no_wait,
                anyway,
                minutes,
                budget_usd,
            } => {
                store.expire(now)?;
                let Some(settings) = store.settings() else {
                    anyhow::bail!("shadow mode is off; switch it on with `supervisor shadow on`");
                };
                let limits = RunLimits {
                    budget_usd: budget_usd.unwrap_or(settings.budget_usd),
                    time: Duration::from_secs_f64(
                        minutes.unwrap_or(settings.minutes).max(0.0) * 60.0,
                    ),
                    waits: !no_wait,
                    ignores_machine: anyway,
                };
                // The models' servers keep their priority; the tests and this program do not.
                let _ = rustix::process::nice(NICENESS);
                let runtime = tokio::runtime::Builder::new_multi_thread()
                    .enable_all()
                    .build()?;
                let summary =
                    runtime.block_on(run_tasks(config, &state, &store, &settings, limits))?;
                super::print(out, &describe(&summary))?;
                return Ok(ExitCode::from(match summary.end {
                    RunEnd::Interrupted => INTERRUPTED,
                    RunEnd::Failed(_) => 2,
                    _ => 0,
                }));
            }
        };
        super::print(out, &text)?;
        Ok(ExitCode::SUCCESS)
    }
}

async fn run_tasks(
    config: Option<PathBuf>,
    state: &StateDir,
    store: &ShadowStore,
    settings: &ShadowSettings,
    limits: RunLimits,
) -> anyhow::Result<RunSummary> {
    let mut signals = Signals::new()?;
    let stop = CancellationToken::new();
    let mut replay = EngineReplay::start(config, store, settings.model.clone()).await?;
    let mut machine = ThisMachine::default();
    let summary = {
        let work = run(store, &mut replay, &mut machine, limits, &stop);
        tokio::pin!(work);
        tokio::select! {
            summary = &mut work => summary?,
            _ = signals.next() => {
                stop.cancel();
                work.await?
            }
        }
    };
    replay.finish(&PassportBook::of(state)).await?;
    Ok(summary)
}

fn status(store: &ShadowStore) -> String {
    let tasks = store.tasks();
    let replayed = tasks.iter().filter(|task| task.replayed.is_some()).count();
    let mut text = match store.settings() {
        Some(settings) => format!(
            "on since {}{}, at most ${:.2} and {:.0} minutes a run, {}\n",
            settings.since.strftime("%Y-%m-%d"),
            if settings.by_plugin {
                " by the plugin's option"
            } else {
                ""
            },
            settings.budget_usd,
            settings.minutes,
            match &settings.model {
                Some(model) => format!("asking {}", supervisor_text::words::plain(model)),
                None => String::from("asking local models only"),
            }
        ),
        None => String::from("off\n"),
    };
    text += &format!(
        "{} recorded, {replayed} replayed; kept for {KEPT_DAYS} days\n",
        count(tasks.len(), "task")
    );
    text
}

fn describe(summary: &RunSummary) -> String {
    let why = match &summary.end {
        RunEnd::Done => String::from("nothing is left to replay"),
        RunEnd::Money => String::from("the budget is spent"),
        RunEnd::UnknownCost => String::from(
            "it is not known what the last replay cost, so the budget cannot be kept; set `price_in` and `price_out` of the model",
        ),
        RunEnd::OtherRun => String::from("another `supervisor shadow run` is at work"),
        RunEnd::Time => String::from("the time is over"),
        RunEnd::Machine(state) => format!("the machine is {}", state.word()),
        RunEnd::Interrupted => String::from("interrupted"),
        RunEnd::Failed(why) => {
            format!("no model could be asked: {why}; `supervisor doctor` says more")
        }
    };
    let given_up = match summary.given_up {
        0 => String::new(),
        n => format!(", {n} given up for the next run"),
    };
    let refused = match summary.refused.last() {
        None => String::new(),
        Some(why) => format!(", {} left out ({why})", summary.refused.len()),
    };
    format!(
        "{} replayed, {} accepted{given_up}{refused}, ${:.2} spent; {why}\n",
        count(summary.replayed, "task"),
        summary.accepted,
        summary.spent_usd
    )
}
