//! `supervisor simulate`: compares what different policies for walking a chain would have cost,
//! over recorded outcomes or published rates.

use crate::built_in;
use std::io::{IsTerminal as _, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use comfy_table::presets::NOTHING;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};
use serde_json::json;

use supervisor_engine::session::SessionLog;
use supervisor_engine::session::stats::is_of;
use supervisor_gym::results::read_results;
use supervisor_gym::simulate::{
    PolicySummary, RecordedTasks, SimulatedTier, TaskSource, compare, published_scenarios,
    recorded_from_gym, recorded_from_log,
};
use supervisor_settings::{CallOverrides, load};
use supervisor_text::words;

/// Show what other policies would have cost, over recorded outcomes or published rates
///
/// Compares always asking the top tier, the static chain with one try and with two, and the learned policy, on the same
/// tasks. Asks no model. Without `--log` and `--gym` it plans with published pass rates. The same seed gives the same
/// figures.
#[derive(Debug, Args)]
pub(super) struct SimulateCommand {
    /// Replay the calls of your session logs
    #[arg(long)]
    log: bool,
    /// Replay the outcomes of your gym runs
    #[arg(long, conflicts_with = "log")]
    gym: bool,
    /// The tool whose chain and calls are meant
    #[arg(long, value_name = "NAME", default_value = "tdd_green")]
    skill: String,
    /// Calls in one simulation
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    calls: u32,
    /// Simulations, each with a seed of its own
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    seeds: u32,
    /// The first seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Answers to the first ask of a local tier, of which the tests select; several numbers are compared. With `--gym`:
    /// what was measured with `gym --samples`
    #[arg(long, value_name = "N", value_delimiter = ',', conflicts_with = "log", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=16))]
    samples: Vec<u32>,
    /// What a minute of waiting is worth, in place of `policy.minute_usd`
    #[arg(long, value_name = "USD")]
    minute_usd: Option<f64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The results of all policies in one simulated world.
struct WorldSimulation {
    name: String,
    notes: Vec<String>,
    policies: Vec<PolicySummary>,
}

impl SimulateCommand {
    pub(super) fn run(
        self,
        config: Option<PathBuf>,
        out: &mut dyn Write,
    ) -> anyhow::Result<ExitCode> {
        let loaded = load(&built_in::sources(config))?;
        let minute_usd = self.minute_usd.unwrap_or(loaded.routing.policy.minute_usd);
        anyhow::ensure!(
            minute_usd.is_finite() && minute_usd >= 0.0,
            "--minute-usd `{minute_usd}` is not a price; give USD, such as 0.1"
        );
        let run = |world: &dyn TaskSource| {
            compare(
                world,
                self.calls as usize,
                u64::from(self.seeds),
                self.seed,
                minute_usd,
            )
        };
        let mut simulated = Vec::new();
        if self.log || self.gym {
            let route = loaded
                .routing
                .route(&self.skill, &CallOverrides::default())?;
            let tiers: Vec<SimulatedTier> = route
                .chain
                .tiers()
                .map(|tier| SimulatedTier {
                    model: tier.name.to_string(),
                    kind: tier.backend.tier,
                })
                .collect();
            let chain: Vec<&str> = tiers.iter().map(|tier| tier.model.as_str()).collect();
            let name = format!("{}: {}", self.skill, chain.join(" → "));
            let state = crate::commands::state_dir()?;
            let mut add = |name: String, world: &RecordedTasks| {
                let notes = vec![format!(
                    "{} recorded tasks, drawn with replacement",
                    world.tasks()
                )];
                let policies = run(world);
                simulated.push(WorldSimulation {
                    name,
                    notes,
                    policies,
                });
            };
            if self.log {
                let log = SessionLog::to_read(&state);
                let mut entries = Vec::new();
                for session in log.sessions()? {
                    let of_skill = log.reader(&session)?.map(|record| record.entry);
                    entries.extend(of_skill.filter(|entry| is_of(&entry.tool, &self.skill)));
                }
                add(name, &recorded_from_log(tiers, entries)?);
            } else {
                let path = super::gym::results_path(&state, super::gym::DEFAULT_RUN);
                let outcomes =
                    read_results(&path).with_context(|| format!("reading `{}`", path.display()))?;
                for samples in &self.samples {
                    let world = recorded_from_gym(tiers.clone(), outcomes.clone(), *samples)?;
                    add(self.with_samples(name.clone(), *samples), &world);
                }
            }
        } else {
            for scenario in published_scenarios() {
                for (world, how) in [
                    (&scenario.independent, "right independently"),
                    (
                        &scenario.nested,
                        "the stronger can do all that the weaker can",
                    ),
                ] {
                    for samples in &self.samples {
                        let name = format!("{}; {how}", scenario.name);
                        simulated.push(WorldSimulation {
                            name: self.with_samples(name, *samples),
                            notes: scenario.sources.clone(),
                            policies: run(&world.with_samples(*samples)),
                        });
                    }
                }
            }
        }
        let text = if self.json {
            self.as_json(minute_usd, &simulated)?
        } else {
            self.as_text(minute_usd, &simulated)
        };
        super::print(out, &text)?;
        Ok(ExitCode::SUCCESS)
    }

    /// The name of a world, with the number of samples where several are compared.
    fn with_samples(&self, name: String, samples: u32) -> String {
        match self.samples.as_slice() {
            [1] => name,
            _ => format!("{name}; {}", words::count(samples as usize, "sample")),
        }
    }

    fn as_json(
        &self,
        minute_usd: f64,
        simulated: &[WorldSimulation],
    ) -> serde_json::Result<String> {
        let worlds: Vec<_> = simulated
            .iter()
            .map(|s| json!({"name": s.name, "notes": s.notes, "policies": s.policies}))
            .collect();
        let report = json!({"v": 1, "calls": self.calls, "seeds": self.seeds, "seed": self.seed, "minute_usd": minute_usd, "worlds": worlds});
        Ok(serde_json::to_string_pretty(&report)? + "\n")
    }

    fn as_text(&self, minute_usd: f64, simulated: &[WorldSimulation]) -> String {
        let mut text = format!(
            "{} calls, {} seeds from {}, a minute at ${minute_usd}; figures per call, ± half of the 95 % interval\n",
            self.calls, self.seeds, self.seed
        );
        for one in simulated {
            text += &format!("\n{}\n", one.name);
            text += &table(&one.policies);
        }
        let mut notes: Vec<&String> = simulated.iter().flat_map(|one| &one.notes).collect();
        notes.sort();
        notes.dedup();
        text += "\n";
        for note in notes {
            text += &format!("{note}\n");
        }
        text += "saving: money against always asking the top tier. with time: money and minutes together.\n";
        text
    }
}

fn table(policies: &[PolicySummary]) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING);
    let width = std::io::stdout()
        .is_terminal()
        .then(terminal_size::terminal_size)
        .flatten();
    match width {
        Some((terminal_size::Width(columns), _)) => table
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(columns.max(60)),
        None => table.set_content_arrangement(ContentArrangement::Disabled),
    };
    let aligned = |n: usize, text: String| {
        Cell::new(text).set_alignment(if n == 0 {
            CellAlignment::Left
        } else {
            CellAlignment::Right
        })
    };
    let head = [
        "policy",
        "accepted",
        "cost",
        "minutes",
        "with time",
        "saving",
    ];
    table.set_header(
        head.iter()
            .enumerate()
            .map(|(n, title)| aligned(n, (*title).to_owned())),
    );
    for policy in policies {
        let row = [
            policy.policy.clone(),
            format!(
                "{:.1} ± {:.1} %",
                policy.accepted.mean * 100.0,
                policy.accepted.half_width * 100.0
            ),
            format!("${:.3} ± {:.3}", policy.usd.mean, policy.usd.half_width),
            format!(
                "{:.2} ± {:.2}",
                policy.minutes.mean, policy.minutes.half_width
            ),
            format!(
                "${:.3} ± {:.3}",
                policy.priced.mean, policy.priced.half_width
            ),
            format!("{:.0} %", policy.saving * 100.0),
        ];
        table.add_row(
            row.into_iter()
                .enumerate()
                .map(|(n, text)| aligned(n, text)),
        );
    }
    for (n, column) in table.column_iter_mut().enumerate() {
        column.set_padding((if n == 0 { 2 } else { 0 }, 2));
    }
    table
        .lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect()
}
