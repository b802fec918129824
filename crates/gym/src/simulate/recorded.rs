//! Replays outcomes recorded by the session log or the gym. If a model was not asked for a task,
//! its outcome at another task of the same kind is used. If a second try is missing after a refused
//! first one, it is taken from another task as well.

use std::collections::BTreeMap;

use super::{SimulatedTask, SimulatedTier, TaskSource, TryOutcome, TurnOutcome};
use crate::results::GymOutcome;
use supervisor_engine::policy::{TaskClass, TaskSize};
use supervisor_engine::{Attempt, Cause, Entry};
use supervisor_settings::TierKind;

/// Recorded tasks and the chain to simulate.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedTasks {
    tiers: Vec<SimulatedTier>,
    tasks: Vec<RecordedTask>,
    /// All turns of each tier, for tasks it was not asked for.
    turns: Vec<Vec<(TaskClass, TurnOutcome)>>,
}

#[derive(Debug, Clone, PartialEq)]
struct RecordedTask {
    class: TaskClass,
    turns: Vec<Option<TurnOutcome>>,
}

/// Why nothing can be replayed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NothingRecorded {
    #[error(
        "no outcome of any model of this chain was recorded ({0}); let it work for a while, or run `supervisor gym`"
    )]
    NoTasks(String),
    #[error(
        "nothing was recorded of `{0}`, so what it would have done is unknown; run `supervisor gym --model {0}`"
    )]
    NoTurns(String),
}

impl RecordedTasks {
    fn new(tiers: Vec<SimulatedTier>, tasks: Vec<RecordedTask>) -> Result<Self, NothingRecorded> {
        if tasks.is_empty() {
            let chain: Vec<&str> = tiers.iter().map(|tier| tier.model.as_str()).collect();
            return Err(NothingRecorded::NoTasks(chain.join(", ")));
        }
        let mut turns = vec![Vec::new(); tiers.len()];
        for task in &tasks {
            for (n, turn) in task.turns.iter().enumerate() {
                turns[n].extend(turn.clone().map(|turn| (task.class.clone(), turn)));
            }
        }
        match turns.iter().position(Vec::is_empty) {
            Some(n) => Err(NothingRecorded::NoTurns(tiers[n].model.clone())),
            None => Ok(Self {
                tiers,
                tasks,
                turns,
            }),
        }
    }

    /// How many tasks were recorded.
    pub fn tasks(&self) -> usize {
        self.tasks.len()
    }
}

impl TaskSource for RecordedTasks {
    fn tiers(&self) -> &[SimulatedTier] {
        &self.tiers
    }

    fn draw(&self, rng: &mut fastrand::Rng) -> SimulatedTask {
        let task = &self.tasks[rng.usize(..self.tasks.len())];
        let fill = |(n, turn): (usize, &Option<TurnOutcome>)| {
            // Always draw, so that later tasks do not depend on what is known here.
            let at = rng.u64(..);
            let pick = |accepts: &dyn Fn(&TurnOutcome) -> bool| {
                let candidates = || self.turns[n].iter().filter(|(_, turn)| accepts(turn));
                let same_class: Vec<_> = candidates()
                    .filter(|(class, _)| *class == task.class)
                    .collect();
                let all = if same_class.is_empty() {
                    candidates().collect()
                } else {
                    same_class
                };
                let place = usize::try_from(at % all.len().max(1) as u64).unwrap_or_default();
                all.get(place).map(|(_, turn)| turn.clone())
            };
            let mut turn = turn.clone().or_else(|| pick(&|_| true)).unwrap_or_default();
            if let [only] = turn.as_slice()
                && only.is_refused
                && let Some(longer) = pick(&|turn| turn.len() > 1)
            {
                turn.extend_from_slice(&longer[1..]);
            }
            turn
        };
        let turns = task.turns.iter().enumerate().map(fill).collect();
        SimulatedTask {
            class: task.class.clone(),
            turns,
        }
    }
}

/// The tasks of a session log for which models of this chain were asked.
pub fn recorded_from_log(
    tiers: Vec<SimulatedTier>,
    entries: impl IntoIterator<Item = Entry>,
) -> Result<RecordedTasks, NothingRecorded> {
    let mut tasks = Vec::new();
    for entry in entries {
        let class = entry.class.clone().unwrap_or_else(|| TaskClass {
            skill: entry.tool.clone(),
            language: "any".into(),
            size: TaskSize::Small,
        });
        let turns: Vec<Option<TurnOutcome>> = tiers
            .iter()
            .map(|tier| turn_of(entry.attempts.iter().filter(|a| a.model == tier.model)))
            .collect();
        if turns.iter().any(Option::is_some) {
            tasks.push(RecordedTask { class, turns });
        }
    }
    RecordedTasks::new(tiers, tasks)
}

/// The tasks of gym runs: each task once, with the outcome of each model. Of a local model only those
/// with this many answers to a first ask; of the others those with one.
pub fn recorded_from_gym(
    tiers: Vec<SimulatedTier>,
    outcomes: impl IntoIterator<Item = GymOutcome>,
    samples: u32,
) -> Result<RecordedTasks, NothingRecorded> {
    let mut tasks: BTreeMap<(String, u32), RecordedTask> = BTreeMap::new();
    for outcome in outcomes {
        let Some(n) = tiers.iter().position(|tier| tier.model == outcome.model) else {
            continue;
        };
        let wanted = match tiers[n].kind {
            TierKind::Local => samples,
            TierKind::Subagent | TierKind::Managed => 1,
        };
        let Some(turn) = outcome.turn().filter(|_| outcome.mode.samples == wanted) else {
            continue;
        };
        let task = tasks
            .entry((outcome.task.clone(), outcome.repeat))
            .or_insert_with(|| RecordedTask {
                class: outcome.class(),
                turns: vec![None; tiers.len()],
            });
        task.turns[n] = Some(turn);
    }
    RecordedTasks::new(tiers, tasks.into_values().collect())
}

/// What one call asked of one tier, if it says something about the model.
fn turn_of<'a>(attempts: impl Iterator<Item = &'a Attempt>) -> Option<TurnOutcome> {
    let tries: TurnOutcome = attempts
        .filter(|attempt| attempt.evidence().is_some())
        .map(|attempt| TryOutcome {
            accepted: attempt.cause == Some(Cause::Accepted),
            is_refused: attempt.cause == Some(Cause::Rejected),
            usd: attempt.cost_usd.unwrap_or_default(),
            seconds: attempt.duration_ms as f64 / 1000.0,
        })
        .collect();
    (!tries.is_empty()).then_some(tries)
}
