//! `supervisor gym`: gives tasks with hidden tests to models through the real engine and scores
//! each model. It uses the same tools, gates and sandbox as any client; only the projects are
//! temporary and the log is separate.

mod plan;
mod runner;
mod table;
mod twins;
mod window;

use std::io::{IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::console::Console;
use super::signals::Signals;
use plan::{GymJob, GymPlan};
use runner::{GymRunner, RunEnd};
use supervisor_gym::passport::{DigestChoice, PassportBook};
use supervisor_gym::results::{GymOutcome, ResultsFile, read_results};
use supervisor_gym::score::{score_models, score_modes};
use supervisor_settings::{Repair, Worker};
use supervisor_workspace::state::StateDir;

/// Name of the default run.
pub(super) const DEFAULT_RUN: &str = "models";
/// Run name for `--self`, which is kept apart from the runs of models.
const SELF_RUN: &str = "self";
/// Run name for `--verifier`.
const VERIFIER_RUN: &str = "verifier";
const INTERRUPTED: u8 = 130;

/// Measure how well your models do, on tasks with hidden tests
///
/// Runs tasks through the real engine, in temporary projects with real tests, against the models of your chains, and
/// prints for each what was accepted at the first and the second try, what hidden tests found in accepted answers, why
/// answers were refused, seconds, tokens and cost. A run that was interrupted goes on where it ended. What was measured
/// is kept as the model's passport.
///
/// Exit code 0, 1 if `--self` finds a false reject or an accepted cheat, 2 if nothing can be run, 130 if interrupted.
#[derive(Debug, Args)]
pub(super) struct GymCommand {
    /// A model of your settings; repeat for more [default: every model of the chain of tdd]
    #[arg(long = "model", value_name = "M")]
    models: Vec<String>,
    /// A directory of tasks: in the layout of `gym/`, or a checked-out Exercism track; repeat for more
    #[arg(long, value_name = "DIR")]
    tasks: Vec<PathBuf>,
    /// Only tasks in these languages
    #[arg(
        long = "tracks",
        alias = "language",
        value_name = "LANGUAGE",
        value_delimiter = ','
    )]
    tracks: Vec<String>,
    /// Only tasks whose name contains this
    #[arg(long, value_name = "WORDS")]
    only: Option<String>,
    /// At most so many tasks of each language, evenly spread
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Give each task so many times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    repeat: u32,
    /// So many answers to the first question of each task, of which the tests select; several numbers are compared
    /// [default: as in your settings]
    #[arg(long, value_name = "N", value_delimiter = ',', conflicts_with_all = ["own", "verifier"], value_parser = clap::value_parser!(u32).range(1..=16))]
    samples: Vec<u32>,
    /// How a refused answer is asked for again; both are compared [default: as in your settings]
    #[arg(long, value_name = "HOW", value_delimiter = ',', conflicts_with_all = ["own", "verifier"])]
    repair: Vec<RepairWord>,
    /// Whether models that can do both (those of `claude`) answer in text or work as agents with tools; both are
    /// compared [default: as in your settings]
    #[arg(long, value_name = "HOW", value_delimiter = ',', conflicts_with_all = ["own", "verifier"])]
    worker: Vec<WorkerWord>,
    /// Also give tasks that cannot be done, with a changed expected value: every accept is a cheat
    #[arg(long)]
    contradictory: bool,
    /// Measure ourselves: references, mutants, cheats and stubs answer in a model's place
    #[arg(long = "self", conflicts_with = "models")]
    own: bool,
    /// With `--self`, only these: reference, mutant, wrong, cheat, stub
    #[arg(long = "answers", value_name = "WHICH", value_delimiter = ',', requires = "own", value_parser = plan::SELF_ANSWERS)]
    answers: Vec<String>,
    /// With `--self`, let this model write hidden twins for each answer; `hidden`: the task's own hidden tests are them
    #[arg(long, value_name = "WHO", requires = "own")]
    twins: Option<String>,
    /// Measure how this model judges as a verifier, on changes that are known to be good or bad
    #[arg(long, value_name = "M", conflicts_with_all = ["models", "own", "contradictory"])]
    verifier: Option<String>,
    /// Stop before more than this is spent
    #[arg(long, value_name = "USD")]
    budget_usd: Option<f64>,
    /// Stop after so many minutes
    #[arg(long, value_name = "N")]
    minutes: Option<f64>,
    /// Decides which operator a mutant has changed
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Forget what earlier runs have measured
    #[arg(long)]
    fresh: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Values of `--repair`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum WorkerWord {
    Text,
    Agent,
}

impl From<WorkerWord> for Worker {
    fn from(word: WorkerWord) -> Self {
        match word {
            WorkerWord::Text => Self::Text,
            WorkerWord::Agent => Self::Agent,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum RepairWord {
    Plain,
    Cause,
}

impl From<RepairWord> for Repair {
    fn from(word: RepairWord) -> Self {
        match word {
            RepairWord::Plain => Self::Plain,
            RepairWord::Cause => Self::Cause,
        }
    }
}

impl GymCommand {
    pub(super) fn run(
        self,
        config: Option<PathBuf>,
        out: &mut dyn Write,
    ) -> anyhow::Result<ExitCode> {
        for (name, value) in [
            ("--budget-usd", self.budget_usd),
            ("--minutes", self.minutes),
        ] {
            if let Some(value) = value {
                anyhow::ensure!(
                    value.is_finite() && value > 0.0,
                    "{name} `{value}` leaves nothing to do; give more than 0"
                );
            }
        }
        let runtime = super::runtime::build_runtime()?;
        let exit_code = runtime.block_on(self.run_gym(config, out));
        runtime.shutdown_background();
        Ok(ExitCode::from(exit_code?))
    }

    async fn run_gym(&self, config: Option<PathBuf>, out: &mut dyn Write) -> anyhow::Result<u8> {
        let mut signals = Signals::new()?;
        let state = StateDir::locate()?;
        let run = match (&self.verifier, &self.twins) {
            (Some(_), _) => VERIFIER_RUN.to_owned(),
            (None, Some(author)) => format!(
                "twins-{}",
                author.replace(|c: char| !c.is_ascii_alphanumeric(), "-")
            ),
            (None, None) if self.own => SELF_RUN.to_owned(),
            (None, None) => DEFAULT_RUN.to_owned(),
        };
        state.sub("gym")?;
        let path = results_path(&state, &run);
        let mut results = ResultsFile::open(&path)?;
        if self.fresh {
            results.clear()?;
        }
        let mut plan = GymPlan::new(self, config.clone())?;
        let mut runner = GymRunner::start(&plan, config, &state).await?;
        let asks_models = self.verifier.is_none() && !self.own;
        if asks_models {
            runner.find_digests(&mut plan.jobs).await?;
        }
        let before =
            read_results(&path).with_context(|| format!("reading `{}`", path.display()))?;
        let remaining: Vec<&GymJob> = plan
            .jobs
            .iter()
            .filter(|job| !before.iter().any(|outcome| job.is_done_by(outcome)))
            .collect();
        let mut console = Console::stderr();
        console.print_line(&plan.headline(remaining.len()));
        let stop = CancellationToken::new();
        let (mut measured, mut end) = (Vec::new(), RunEnd::Done);
        if !remaining.is_empty() {
            let limits = runner::RunLimits {
                usd: self.budget_usd,
                until: self
                    .minutes
                    .map(|minutes| Instant::now() + Duration::from_secs_f64(minutes * 60.0)),
                seed: self.seed,
            };
            if asks_models {
                runner
                    .measure_windows(&remaining, &mut console, &PassportBook::of(&state), &stop)
                    .await?;
            }
            let work = runner.run_all(
                &remaining,
                &limits,
                &mut results,
                &mut console,
                &stop,
                &mut measured,
            );
            tokio::pin!(work);
            end = tokio::select! {
                end = &mut work => end?,
                _ = signals.next() => {
                    stop.cancel();
                    tokio::select! {
                        end = &mut work => end?,
                        () = signals.second_interrupt() => RunEnd::Interrupted,
                    }
                }
            };
        }
        console.clear_live_line();
        if asks_models {
            update_passports(&state, &measured)?;
        }
        let all: Vec<GymOutcome> = read_results(&path)?
            .into_iter()
            .filter(|outcome| plan.jobs.iter().any(|job| job.is_done_by(outcome)))
            .collect();
        if let Some(model) = &self.verifier {
            let record = table::verifier_record(&all);
            PassportBook::of(&state).update(model, DigestChoice::Newest, |passport| {
                passport.verifier = Some(record);
            })?;
            let text = if self.json {
                serde_json::to_string_pretty(
                    &json!({"v": 1, "model": model, "ended": end.word(), "verifier": record}),
                )? + "\n"
            } else {
                table::verifier_text(model, record, &end)
            };
            super::print(out, &text)?;
            return Ok(if end == RunEnd::Interrupted {
                INTERRUPTED
            } else {
                0
            });
        }
        let (scores, modes) = (score_models(&all), score_modes(&all));
        let text = if self.json {
            let report = json!({"v": 1, "seed": self.seed, "ended": end.word(), "results": path, "models": scores, "modes": modes, "by_language": table::by_language(&all)});
            serde_json::to_string_pretty(&report)? + "\n"
        } else {
            let width = std::io::stdout()
                .is_terminal()
                .then(terminal_size::terminal_size)
                .flatten();
            let width = width.map(|(terminal_size::Width(columns), _)| columns);
            let text = table::render(&scores, &modes, &all, &path, &end, width, self.own);
            let found = self
                .twins
                .as_ref()
                .map(|_| format!("\n{}", twins::render_table(&all, width)));
            let left_out: String = plan.left_out().map(|line| line + "\n").collect();
            text + &found.unwrap_or_default() + &left_out
        };
        super::print(out, &text)?;
        Ok(match end {
            RunEnd::Interrupted => INTERRUPTED,
            _ if self.own && table::self_faults(&all) > 0 => 1,
            _ => 0,
        })
    }
}

/// File with the outcomes of a run.
pub(super) fn results_path(state: &StateDir, run: &str) -> PathBuf {
    state.path().join("gym").join(format!("{run}.jsonl"))
}

/// Adds new measurements to the models' passports.
fn update_passports(state: &StateDir, measured: &[GymOutcome]) -> anyhow::Result<()> {
    let book = PassportBook::of(state);
    let mut models: Vec<(&str, Option<&str>)> = measured
        .iter()
        .map(|outcome| (outcome.model.as_str(), outcome.digest.as_deref()))
        .collect();
    models.sort_unstable();
    models.dedup();
    for (model, digest) in models {
        let own: Vec<&GymOutcome> = measured
            .iter()
            .filter(|o| o.model == model && o.digest.as_deref() == digest)
            .collect();
        book.add_gym_outcomes(model, digest, &own)?;
    }
    Ok(())
}

/// Whether a program of this name is on the PATH.
fn is_on_path(program: &str) -> bool {
    supervisor_process::which(program, std::env::var_os("PATH").as_deref(), None).is_ok()
}

/// Creates a temporary directory for a task's project.
fn task_directory() -> std::io::Result<tempfile::TempDir> {
    tempfile::Builder::new().prefix("supervisor-gym-").tempdir()
}

/// Links the packages of a JavaScript track, which are installed once for all its tasks.
fn link_packages(track: Option<&Path>, root: &Path) -> std::io::Result<()> {
    match track
        .map(|track| track.join("node_modules"))
        .filter(|modules| modules.is_dir())
    {
        Some(modules) => {
            std::os::unix::fs::symlink(modules.canonicalize()?, root.join("node_modules"))
        }
        None => Ok(()),
    }
}
